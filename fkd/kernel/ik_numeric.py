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
from itertools import chain as joined
from itertools import islice
from math import cos, inf, pi, sin
from operator import add, mul

from fkd.kernel.ik_answer import Answer, Goal, Solution
from fkd.kernel.ik_chain import Chain
from fkd.kernel.ik_column import Column
from fkd.kernel.ik_starts import Starts

Clock = Callable[[], float]
Bounds = Sequence[tuple[int, float, float, Column]]

DAMPING = 0.1  # times the squared error: from 0.02 to 0.2 the mean number of iterations is flat
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
CLOSE = 0.5  # a way from the seed (rad, units of length; root of the sum of squares) so short that it kept the branch
SAME = 1e-4  # two solutions closer than this are one
FINE = 1e-18  # squared error; a solution that is not this good gets one more step, which most often makes it so
STALL = 1e-11  # a step as small as this changes nothing
SLOW = 1e-3  # rad, units of length; a descent that came closer and still falls at its end is at a singular pose


@dataclass(slots=True)
class Descent:
    """Where a descent ended: values of the columns, and what the step function measured there (nothing yet: [inf])."""

    x: list[float]
    at: list[float]
    solved: bool = False
    falling: bool = False  # it ran out of iterations, not of progress


class Expired(Exception):
    """The deadline has passed."""


class Search:
    """One goal on one chain. `run` is the generator; it returns the Answer.

    rest: (width,) what stands for a seed where there is none. deadline: in seconds on `clock`; None for no bound but
    `budget`, the number of starts.
    """

    def __init__(
        self, chain: Chain, starts: Starts, rest: Sequence[float], goal: Goal, deadline: float | None, clock: Clock,
        budget: int = STARTS,
    ) -> None:  # fmt: skip
        self.chain, self.starts, self.goal = chain, starts, goal
        self.base = list(goal.seed if goal.seed is not None else rest)
        self.seed = chain.chosen(self.base)
        self.target = chain.target(goal.T_base_tool, goal.tool, goal.position_only)
        self.step = chain.step(goal.position_only)
        # tolerances as the step function measures: squared position; squared sine, or cosine from a right angle on
        self.square = (goal.position_tolerance / chain.length) ** 2
        acute = goal.orientation_tolerance < 0.5 * pi
        self.sine2 = sin(goal.orientation_tolerance) ** 2 if acute else 2.0
        self.cosine = cos(goal.orientation_tolerance) if goal.orientation_tolerance < pi else -2.0
        self.deadline, self.clock, self.budget = deadline, clock, budget
        self.iterations = 0
        self.descents = 0
        self.best = Descent([c.within(x) for c, x in zip(chain.columns, self.seed, strict=True)], [inf])

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
            off = self._measured(self.best.x)[0] if goal.seed is not None else inf
            if keep or off < FAR:
                step = PATIENT_STEP if keep else STEP
                end = yield from self._descend(list(self.best.x), patient=keep or off < NEAR, stride=step)
                if end.solved:
                    found.append(end)
                    if goal.solutions == "one" or (keep and chain.way(end.x, self.seed) <= CLOSE):
                        return found
            for _ in self.starts.prepare():
                if self._late():
                    raise Expired
                yield
            for tried, x in enumerate(self._starts()):
                if tried >= (MORE[goal.solutions] if found else self.budget):
                    break
                yield  # a descent that is left at once does not rest
                end = yield from self._descend(x)
                if end.solved and all(chain.apart(end.x, f.x) > SAME for f in found):
                    found.append(end)
                if len(found) == MOST[goal.solutions]:
                    break
        except Expired:
            if not found:
                raise
        if len(found) > 1:
            found.sort(key=lambda d: chain.way(d.x, self.seed))
        return found if goal.solutions == "all" else found[:1]

    def _starts(self) -> Iterator[list[float]]:
        pull = PULL[self.goal.solutions] if self.goal.seed is not None else 0.0
        pulled = self.starts.nearest(self.target, self.seed, pull)
        if not pull:
            yield from pulled
            return
        # Near the seed all starts may lie in one hollow without a solution: every other one does not heed it.
        free: Iterator[list[float]] | None = None
        for x in pulled:
            yield x
            free = free or self.starts.nearest(self.target, self.seed, 0.0)
            yield next(free, x)

    def _reason(self) -> Generator[None, None, str]:
        """Why nothing was found, after one more, patient try that makes `best` the nearest or even a solution."""
        end = yield from self._descend(self.best.x, patient=True)
        if end.solved:
            return ""
        if self.chain.bounded:
            for x in joined([end.x], islice(self._starts(), STARTS_FREE)):
                yield
                free = yield from self._descend(x, free=True)
                if free.solved:
                    return "limits"
        slow = end.falling and end.at[0] < SLOW * SLOW
        return "singular" if slow else "unreachable"

    def _solution(self, d: Descent) -> Solution:
        at = d.at if d.at[0] < inf else self._measured(d.x)
        position, angle = self.chain.errors(at)
        orientation = None if self.goal.position_only else angle
        return Solution(self.chain.whole(d.x, self.base), position * self.chain.length, orientation, d.solved)

    def _descend(
        self, x: list[float], *, patient: bool = False, stride: float = STEP, free: bool = False
    ) -> Generator[None, None, Descent]:
        """From x down, as far as it is worth it. patient: to the very end. free: without limits, and not for `best`."""
        chain, step, target = self.chain, self.step, self.target.values
        bounded = [] if free else chain.bounded
        weights, touching = list(chain.weights), bool(bounded)
        damping = DAMPING
        more = [damping, *chain.free]  # what the step function takes beside x and the target
        at = step(x + target + more)
        self.descents += 1
        hope = 1.0 - 1e-12 if patient else HOPE
        before, last = inf, at[0]  # squared errors of the two poses before this one
        falling = polished = False
        for _ in range(LONG if patient else SHORT):
            solved = self._good(at)
            if (solved and (polished or at[0] < FINE)) or not at[0] < inf:
                break
            if not solved and self._late():
                if not free:
                    self._keep(Descent(x, at))
                raise Expired
            polished, settled = solved, False
            while touching and hold(bounded, x, at, weights, chain.weights, settled):
                more = [damping, *(weights[k] for k, *_ in bounded)]
                at, settled = step(x + target + more), True
            move = list(map(mul, at[4:], weights))
            largest = max(map(abs, map(mul, move, chain.angles)), default=0.0)
            if largest > stride:
                k = stride / largest
                move = [m * k for m in move]
            next_x = list(map(add, x, move))
            for i, lower, upper, column in bounded:
                if not lower < next_x[i] < upper:
                    next_x[i], touching = column.within(next_x[i]), True
            new = step(next_x + target + more)
            self.iterations += 1
            if new[0] < at[0]:
                x, at, before, last = next_x, new, last, at[0]
                if new[0] > hope * before and not solved:
                    break
            else:
                if largest < STALL:
                    break
                damping *= RAISE
                more[0] = damping
                at = step(x + target + more)
            yield
        else:
            falling = True
        end = Descent(x, at, self._good(at), falling)
        return end if free else self._keep(end)

    def _measured(self, x: list[float]) -> list[float]:
        return self.step(x + self.target.values + [DAMPING, *self.chain.free])

    def _good(self, at: list[float]) -> bool:
        return at[1] <= self.square and (at[2] <= self.sine2 if at[3] > 0.0 else at[3] >= self.cosine)

    def _late(self) -> bool:
        return self.deadline is not None and self.clock() >= self.deadline

    def _keep(self, end: Descent) -> Descent:
        """Brought inside the limits near the seed, measured there if that is elsewhere, and remembered if the best."""
        if end.solved or end.at[0] < self.best.at[0]:
            x = [c.near(v, s) for c, v, s in zip(self.chain.columns, end.x, self.seed, strict=True)]
            if x != end.x:
                at = self._measured(x)
                end = Descent(x, at, self._good(at), end.falling)
            if end.solved or end.at[0] < self.best.at[0]:
                self.best = end
        return end


def hold(
    bounded: Bounds, x: list[float], at: list[float], weights: list[float], whole: Sequence[float], settled: bool
) -> bool:
    """Give the weight 0 to values that a step would push out of their limits, and, unless settled, their `whole` one to
    those that it would bring back in. Whether there were any: then the step must be computed anew, and then it could go
    round for ever if values were let go again.
    """
    changed = False
    for k, lower, upper, _ in bounded:
        if not lower < x[k] < upper:
            v = at[4 + k]
            outward = (v < 0.0 and x[k] <= lower) or (v > 0.0 and x[k] >= upper)
            if outward and weights[k]:
                weights[k], changed = 0.0, True
            elif not outward and not weights[k] and not settled:
                weights[k], changed = whole[k], True
    return changed
