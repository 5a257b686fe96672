"""Inverse kinematics in closed form: all solutions, up to eight, for two kinds of six-axis arm.

Spherical wrist: the last three axes meet in a point, the first three lie as they like. Three parallel axes: the second
to the fourth, as in the arms of Universal Robots. Either may be seen from the tip as well as from the base. A kind is
recognised by the axes alone, whatever the file's frames, signs and offsets.

Axes that a file gives to seven digits miss each other by 1e-8. What the closed form finds for the nearest ideal arm is
therefore only where a few damped Newton steps on the true kinematics begin, and what these do not bring to 1e-9 is no
solution.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from fkd.kernel.ik_chain import Chain, Target
from fkd.kernel.ik_closed import Axis, ClosedForm, Motion, spherical_wrist, three_parallel
from fkd.kernel.jacobian import pose_and_jacobian

EXACT = 1e-6  # rad or units of length by which axes may miss the ideal, and all solutions are still found
CLOSE = 0.02  # and by which the ideal is still a good start (a calibrated arm); near singular poses one may be lost
VERIFIED = 1e-9  # rad or units of length; what a solution's error must not exceed
STEPS = 40  # Newton steps at most; none or one will do for an exact arm
DAMPING = 0.1  # of these, over the squared error
ENOUGH = 1e-24  # squared error at which no step is needed
STILL = 1e-13  # rad; a step that moves nothing: a target that is not quite a rotation leaves an error for good
# Where the ideal arm is at a singular pose, the true one may have two solutions to either side: what Newton steps
# cannot leave from the very crest is tried from next to it.
NUDGES = (0.0, 0.03, -0.03)
SAME = 1e-6  # rad; solutions that differ less are one

Placed = tuple[list[float], bool]  # values of the columns, and whether one of infinitely many


@dataclass(frozen=True, slots=True)
class Analytic:
    """The closed form of one chain. `exact`: all solutions are found; else the arm is only nearly of its kind."""

    chain: Chain
    kind: str  # "spherical wrist" or "three parallel axes"
    exact: bool
    backwards: bool  # the kind is seen from the tip
    candidates: ClosedForm
    zero: Motion  # T_base_link at q = 0

    def solve(
        self, target: Target, seed: Sequence[float], tolerances: tuple[float, float], first: bool
    ) -> Generator[None, None, tuple[list[Placed], bool]]:
        """Rests after every candidate; returns the solutions inside the limits, each where it is nearest to the seed,
        and whether there are others outside.

        seed: values of the columns. tolerances: units of length, and rad; heeded where they are finer than 1e-9.
        first: only the solution that is nearest to the seed.
        """
        chain = self.chain
        found: list[Placed] = []
        inside: list[Placed] = []
        candidates = self._nearest_first(target, seed)
        yield
        for candidate, free in candidates:
            for nudge in (0.0,) if self.exact else NUDGES:
                x, position, angle = self._polished([v + nudge for v in candidate], target)
                yield
                good = position <= min(VERIFIED, tolerances[0]) and angle <= min(VERIFIED, tolerances[1])
                if good:
                    break
            if not good or any(chain.apart(x, y) < SAME for y, _ in found):
                continue
            found.append((x, free))
            placed = [c.inside(v, s) for c, v, s in zip(chain.columns, x, seed, strict=True)]
            if None not in placed:
                inside.append(([v for v in placed if v is not None], free))
                if first:
                    break
        return inside, len(found) > len(inside)

    def _nearest_first(self, target: Target, seed: Sequence[float]) -> list[Placed]:
        """What the closed form gives, in the order of the way from the seed."""
        motion, start, columns = self._motion(target), list(seed), self.chain.columns
        if self.backwards:
            motion, start = motion.inverse(), [-x for x in reversed(start)]
        found = self.candidates(motion, start)
        if self.backwards:
            found = [([-v for v in reversed(x)], free) for x, free in found]
        placed = [([c.near(v, s) for c, v, s in zip(columns, x, seed, strict=True)], x, free) for x, free in found]
        placed.sort(key=lambda p: self.chain.way(p[0], seed))
        return [(x, free) for _, x, free in placed]

    def _motion(self, target: Target) -> Motion:
        """What takes the link from its pose at q = 0 to its target, in units of length."""
        r, p, point = target.values[:9], target.values[9:12], target.values[12:15]
        rows = ((r[0], r[1], r[2]), (r[3], r[4], r[5]), (r[6], r[7], r[8]))
        x, y, z = Motion(rows, (0.0, 0.0, 0.0)).turned((-point[0], -point[1], -point[2]))
        goal, back = Motion(rows, (p[0] + x, p[1] + y, p[2] + z)), self.zero.inverse()
        i, j, k = (goal.turned(row) for row in self.zero.rows)  # the columns of the whole rotation
        return Motion(((i[0], j[0], k[0]), (i[1], j[1], k[1]), (i[2], j[2], k[2])), goal.moved(back.shift))

    def _polished(self, x: list[float], target: Target) -> tuple[list[float], float, float]:
        """x after Newton steps on the true kinematics, its position error (units of length) and angle (rad)."""
        chain, damping = self.chain, DAMPING
        step = chain.step(False)
        at = step([*x, *target.values, damping, *chain.free])
        for _ in range(STEPS):
            if at[0] < ENOUGH or max(map(abs, at[4:])) < STILL:
                break
            moved = [a + b for a, b in zip(x, at[4:], strict=True)]
            new = step([*moved, *target.values, damping, *chain.free])
            if new[0] < at[0]:
                x, at = moved, new
            elif at[0] < VERIFIED * VERIFIED:
                break
            else:
                damping *= 8.0
                at = step([*x, *target.values, damping, *chain.free])
        return x, *chain.errors(at)


def recognise(chain: Chain) -> Analytic | None:
    """The closed form that fits a chain best; None if neither does."""
    moving = [e for e in chain.edges if e.kind != "fixed"]
    plain = all(e.kind in ("revolute", "continuous") and e.ratio == 1.0 for e in moving)
    if len(moving) != 6 or len(chain.columns) != 6 or not plain:
        return None
    T, J = pose_and_jacobian(chain.scaled, [0.0] * chain.tree.width, chain.link, chain.base)
    axes = []
    for c in chain.columns:
        vx, vy, vz, x, y, z = (float(row[c.index]) for row in J)  # type: ignore[arg-type]
        # the tip's velocity is w x (tip - point)
        point = (T[3] + y * vz - z * vy, T[7] + z * vx - x * vz, T[11] + x * vy - y * vx)
        axes.append(Axis((x, y, z), point))  # type: ignore[arg-type]
    t = [float(v) for v in T]  # type: ignore[arg-type]
    zero = Motion(((t[0], t[1], t[2]), (t[4], t[5], t[6]), (t[8], t[9], t[10])), (t[3], t[7], t[11]))
    best: tuple[float, Analytic] | None = None
    for backwards in (False, True):
        seen = axes[::-1] if backwards else axes
        for kind, form in (("spherical wrist", spherical_wrist(seen)), ("three parallel axes", three_parallel(seen))):
            if form is not None and form[0] < CLOSE and (best is None or form[0] < best[0] - EXACT):
                best = form[0], Analytic(chain, kind, form[0] < EXACT, backwards, form[1], zero)
    return best[1] if best else None
