"""Numeric inverse kinematics for any chain: damped least squares inside the limits, from many starts.

One descent is Levenberg-Marquardt with the damping in proportion to the squared error (Sugihara 2011, IEEE Trans.
Robotics 27(5)), raised where a step does not help. Limits are an active set: a value at its limit that the step would
push outwards is held fast, the step is solved anew for the others, and it is let go as soon as its multiplier turns.
What no descent gets out of (a valley that is not a solution) costs a few iterations and then the next start is taken.

A search is a generator that rests after every iteration (20 to 40 us), so that its owner may serve others in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as joined, islice
from math import inf, sqrt
from operator import add, mul

from fkd.kernel.ik_answer import Answer, Goal, Solution
from fkd.kernel.ik_chain import Chain, Column, rotation_error
from fkd.kernel.ik_starts import Starts

Clock = Callable[[], float]
Bounds = Sequence[tuple[int, float, float, Column]]
# squared error, position error, angle, whether within tolerance; the Jacobian's entries and the error as `step` wants them
Measured = tuple[float, float, float, bool, list[float]]

DAMPING = 0.1  # times the squared error: from 0.02 to 0.2 the mean number of iterations is flat
FLOOR = 1e-10  # damping that is always there, so that the matrix is positive definite whatever the chain
RAISE = 4.0  # damping after a step that did not help
STEP = 1.0  # rad; the largest step of any angle: beyond, the linear model says nothing
PATIENT_STEP = 0.35  # the same where the branch of the seed is to be kept
HOPE = 0.5  # the squared error after two more steps, against before: a descent that does worse is left
NEAR = 0.1  # squared error within which a seed's own branch is followed to the end, and not left early
FAR = 1.0  # squared error beyond which a seed is no start, but only pulls (in rad^2)
PULL = {"one": 0.03, "nearest": 0.2, "all": 0.0}  # weight of the distance from the seed in the choice of starts
SHORT, LONG = 20, 100  # iterations of one descent, of a patient one
STARTS = 100  # starts before a target counts as unreachable
MORE = {"one": 0, "nearest": 12, "all": 64}  # starts, all in all, once a solution has been found
MOST = {"one": 1, "nearest": 16, "all": 16}  # solutions at which a search ends
STARTS_FREE = 16  # starts without limits, to tell whether they are the reason
CLOSE = 0.5  # a solution closer to the seed than this (rad or units of length, in each value) is taken as its branch
SAME = 1e-4  # two solutions closer than this are one
FINE = 1e-18  # squared error; a solution that is not this good gets one more step, which most often makes it so
STALL = 1e-11  # a step as small as this changes nothing
SLOW = 1e-3  # m or rad; a descent that has come closer than this and still falls at its end is at a singular pose


@dataclass(slots=True)
class Descent:
    """Where a descent ended: values of the columns, squared error, and what that is made of (unit of length; rad)."""

    x: list[float]
    error: float = inf
    position: float = inf
    angle: float = inf
    solved: bool = False
    falling: bool = False  # it ran out of iterations, not of progress


class Expired(Exception):
    """The deadline has passed."""


class Search:
    """One goal on one chain. `run` is the generator; it returns the Answer.

    rest: (width,) what stands for a seed where there is none. deadline: in seconds on `clock`; None for no bound but
    the number of starts.
    """

    def __init__(
        self, chain: Chain, starts: Starts, rest: Sequence[float], goal: Goal, deadline: float | None, clock: Clock
    ) -> None:
        self.chain, self.starts, self.goal = chain, starts, goal
        self.base = list(goal.seed if goal.seed is not None else rest)
        self.seed = chain.chosen(self.base)
        self.target = chain.target(goal.T_base_tool, goal.tool, goal.position_only)
        self.functions = chain.functions(goal.position_only)
        self.position_tolerance = goal.position_tolerance / chain.length
        self.deadline, self.clock = deadline, clock
        self.iterations = 0
        self.descents = 0
        self.best = Descent([c.within(x) for c, x in zip(chain.columns, self.seed, strict=True)])

    def run(self) -> Generator[None, None, Answer]:
        """Search; rests after every iteration."""
        try:
            found, reason = (yield from self._found()), ""
            if not found:
                reason = yield from self._reason()
                found = [self.best] if self.best.solved else []
        except Expired:
            found, reason = [], "deadline"
        solutions = [self._solution(d) for d in found]
        nearest = None if solutions else self._solution(self.best)
        return Answer(solutions, nearest, reason, "numeric", self.iterations, max(self.descents - 1, 0))

    def _found(self) -> Generator[None, None, list[Descent]]:
        """The solutions that the goal asks for, as far as the budget goes."""
        goal, chain = self.goal, self.chain
        found: list[Descent] = []
        try:
            keep = goal.solutions == "nearest"
            off = self._measure(self.best.x)[0]
            if keep or (goal.seed is not None and off < FAR):
                step = PATIENT_STEP if keep else STEP
                end = yield from self._descend(list(self.best.x), patient=keep or off < NEAR, stride=step)
                if end.solved:
                    found.append(end)
                    if goal.solutions == "one" or (keep and chain.apart(end.x, self.seed) <= CLOSE):
                        return found
            yield from self.starts.prepare()
            for tried, x in enumerate(self._starts()):
                if tried >= (MORE[goal.solutions] if found else STARTS):
                    break
                end = yield from self._descend(x)
                if end.solved and all(chain.apart(end.x, f.x) > SAME for f in found):
                    found.append(end)
                if len(found) == MOST[goal.solutions]:
                    break
        except Expired:
            if not found:
                raise
        found.sort(key=lambda d: chain.distance(d.x, self.seed))
        return found if goal.solutions == "all" else found[:1]

    def _starts(self) -> Iterator[list[float]]:
        return self.starts.nearest(self.target, self.seed, PULL[self.goal.solutions] if self.goal.seed is not None else 0.0)

    def _reason(self) -> Generator[None, None, str]:
        """Why nothing was found, after one more, patient try that makes `best` the nearest or even a solution."""
        end = yield from self._descend(self.best.x, patient=True)
        if end.solved:
            return ""
        if self.chain.bounded:
            for x in joined([end.x], islice(self._starts(), STARTS_FREE)):
                free = yield from self._descend(x, free=True)
                if free.solved:
                    return "limits"
        slow = end.falling and end.position * self.chain.length < SLOW and end.angle < SLOW
        return "singular" if slow else "unreachable"

    def _solution(self, d: Descent) -> Solution:
        if d.error == inf:  # nothing measured yet, or beyond what can be squared
            position, angle = self.chain.errors(d.x, self.target)
        else:
            position, angle = d.position * self.chain.length, d.angle
        return Solution(self.chain.whole(d.x, self.base), position, None if self.goal.position_only else angle, d.solved)

    def _descend(
        self, x: list[float], *, patient: bool = False, stride: float = STEP, free: bool = False
    ) -> Generator[None, None, Descent]:
        """From x down, as far as it is worth it. patient: to the very end. free: without limits, and not for `best`."""
        measure, weights, bounded = self._measure, list(self.chain.weights), [] if free else self.chain.bounded
        at = measure(x)
        self.descents += 1
        hope = 1.0 - 1e-12 if patient else HOPE
        before, last, falling, polished = inf, at[0], False, False  # squared errors of the two poses before this one
        damping = DAMPING
        for _ in range(LONG if patient else SHORT):
            if at[3] and (polished or at[0] < FINE) or not at[0] < inf:
                break
            polished = at[3]
            move = list(map(mul, self._step(x, at, damping, weights, bounded), weights))
            largest = max(map(abs, map(mul, move, self.chain.angles)), default=0.0)
            if largest > stride:
                k = stride / largest
                move = [m * k for m in move]
            next_x = list(map(add, x, move))
            for k, lower, upper, column in bounded:
                if not lower <= next_x[k] <= upper:
                    next_x[k] = column.within(next_x[k])
            new = measure(next_x)
            self.iterations += 1
            if new[0] < at[0]:
                x, at, before, last = next_x, new, last, at[0]
                if new[0] > hope * before and not new[3]:
                    break
            else:
                damping *= RAISE
                if largest < STALL:
                    break
            if self.deadline is not None and self.clock() >= self.deadline and not at[3]:
                if not free:
                    self._keep(Descent(x, *at[:4]))
                raise Expired
            yield
        else:
            falling = True
        end = Descent(x, *at[:4], falling)
        return end if free else self._keep(end)

    def _step(self, x: list[float], at: Measured, damping: float, weights: list[float], bounded: Bounds) -> list[float]:
        """One damped step; `weights` are made 0 for the values that their limits hold fast, or restored."""
        step, system = self.functions.step, [*at[4], damping * at[0] + FLOOR]
        touching = [(k, x[k] <= lower) for k, lower, upper, _ in bounded if not lower < x[k] < upper]
        settled = False
        while True:
            v = step(system + [weights[k] for k, *_ in self.chain.bounded])
            changed = False
            for k, low in touching:
                outward = v[k] < 0.0 if low else v[k] > 0.0
                if outward and weights[k]:
                    weights[k], changed = 0.0, True
                elif not outward and not weights[k] and not settled:  # only once a step: it could go round
                    weights[k], changed = self.chain.weights[k], True
            if not changed:
                return v
            settled = True

    def _measure(self, x: list[float]) -> Measured:
        out = self.functions.measure(x + self.target.values)
        px, py, pz = out[0], out[1], out[2]
        square = px * px + py * py + pz * pz
        position = sqrt(square)
        near = position <= self.position_tolerance
        if self.goal.position_only:
            return square, position, 0.0, near, out[3:] + out[:3]
        rx, ry, rz, angle = rotation_error(out)
        near = near and angle <= self.goal.orientation_tolerance
        return square + angle * angle, position, angle, near, [*out[7:], px, py, pz, rx, ry, rz]

    def _keep(self, end: Descent) -> Descent:
        """Brought inside the limits near the seed, measured there if that is elsewhere, and remembered if the best."""
        if end.solved or end.error < self.best.error:
            x = [c.near(v, s) for c, v, s in zip(self.chain.columns, end.x, self.seed, strict=True)]
            if x != end.x:
                end = Descent(x, *self._measure(x)[:4], end.falling)
            if end.solved or end.error < self.best.error:
                self.best = end
        return end
