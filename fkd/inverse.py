"""Inverse kinematics of one model: a solver for each (base, link), and every answer checked by the robot's own kernel."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import degrees, dist, isfinite
from time import monotonic

from fkd.aim import Aim
from fkd.configuration import Configurations
from fkd.errors import IkFailed, InvalidParams
from fkd.kernel.ik import Ik
from fkd.kernel.ik_answer import Answer, Goal, Solution
from fkd.kernel.motion import compose
from fkd.kernel.pose import angle_between, matrix, rotation_of, translation_of
from fkd.kernel.steps import finished
from fkd.kernels import Kernels
from fkd.limits import limits, middle
from fkd.model import Model

Clock = Callable[[], float]

KEPT_SOLVERS = 16  # (base, link) pairs; each takes some 0.5 MB
# What the solver is asked for, of a tolerance: what it finds only just good enough, the kernel may find only just not.
CLOSER = 0.99
FARTHEST_SEED = 1e6  # rad or m; farther from 0 a double has no digits left for a solution near the seed

WHY = {
    "unreachable": "does not reach this pose: at best it is {off}; best_effort gives that configuration",
    "limits": "reaches this pose only outside the joint limits: inside them it is at best {off}; best_effort gives that",
    "singular": "comes ever more slowly towards this singular pose, and ended {off}; loosen the tolerances, or seed anew",
    "deadline": "was not brought to this pose within timeout_ms {timeout:g}: it got as near as {off}; give more time",
}  # fmt: skip


class OwnTime:
    """A clock that runs while the search does: what others are given in between is not its time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent = 0.0
        self._since = clock()

    def __call__(self) -> float:
        return self._spent + self._clock() - self._since

    def steps(self, search: Generator[None, None, Answer]) -> Generator[None, None, Answer]:
        """The search, timed."""
        while True:
            self._since = self._clock()
            try:
                next(search)
            except StopIteration as end:
                answer: Answer = end.value
                return answer
            self._spent += self._clock() - self._since
            yield


@dataclass(frozen=True, slots=True)
class Found:
    """What was found: solutions, nearest to the seed first; and by which method, in how many steps and further starts.

    Each solution has `q` ((dof,) in the order of q), `position_error` (m), `orientation_error` (rad; None where only the
    position was asked), `converged` (False only for best_effort) and `singular` (one of infinitely many).
    """

    solutions: list[Solution]
    method: str
    iterations: int
    restarts: int

    @property
    def q(self) -> list[float]:
        """The first solution's configuration."""
        return self.solutions[0].q


class Inverse:
    """The solvers of one model, made when they are first asked for. Safe to share between threads."""

    def __init__(self, model: Model, kernels: Kernels, configurations: Configurations) -> None:
        self._model, self._kernels, self._configurations = model, kernels, configurations
        self._lower, self._upper = limits(model)
        self._middle = middle(model, self._lower, self._upper)
        self._solvers: OrderedDict[tuple[str, str], Ik] = OrderedDict()

    def prepare(self, link: str | None = None, base: str | None = None) -> None:
        """Compile a solver now, by default the tip's: some 30 ms that nobody then has to wait for.

        Raises ModelError for unknown names or no tip, InvalidParams for a floating joint on the way.
        """
        finished(self.solver(*self._way(link, base)).prepare())

    def solve(self, aim: Aim, clock: Clock = monotonic) -> Found:
        """Configurations that take the link, or the tool on it, to its pose.

        Raises IkFailed with the nearest that was found and the reason; ModelError and InvalidParams as for `Aim`.
        """
        return finished(self.search(aim, clock))

    def search(self, aim: Aim, clock: Clock = monotonic) -> Generator[None, None, Found]:
        """`solve` as a generator: each step takes some 0.2 ms, or 5 ms at most while a solver is still to be compiled,
        which does not count against the deadline."""
        link, base = self._way(aim.link, aim.base)
        ik = self.solver(link, base)
        if aim.method == "analytic":
            _require_analytic(ik, aim, link, base)
        goal = Goal(
            aim.T_base_tool, aim.tool, self._seed(aim, ik), aim.solutions, CLOSER * aim.position_tolerance,
            CLOSER * aim.orientation_tolerance, aim.position_only,
        )  # fmt: skip
        yield from ik.prepare(aim.position_only)
        measure = Measure(self._kernels.poses((link,), base), ik, aim)
        yield
        try:
            own = OwnTime(clock)
            answer = yield from own.steps(ik.search(goal, aim.method, 1e-3 * aim.timeout_ms, own))
            measured = []
            for s in (*answer.solutions, answer.nearest):
                if s is not None and (found := measure(s)) is not None:
                    measured.append(found)
                    yield
        except (ArithmeticError, ValueError):
            raise InvalidParams("poses on the way to this one are beyond the range of a double", reason="overflow",
                                path="$.params.pose", expected="numbers of a robot's size", got="too large") from None
        solutions = [s for s in measured if s.converged] or (measured[:1] if aim.best_effort else [])
        if not solutions:
            raise self._failed(aim, answer, measured[0] if measured else None, measure, link)
        return Found([self._given(s, aim) for s in solutions], answer.method, answer.iterations, answer.restarts)

    def solver(self, link: str, base: str) -> Ik:
        """The solver of this chain, from the cache or made now; it may still have to be prepared."""
        key = (base, link)
        ik = self._solvers.get(key)
        if ik is None:
            self._refuse_floating(link, base)
            places = self._kernels.places
            ik = Ik(self._kernels.tree, places[link], places[base], self._lower, self._upper, self._middle)
            ik = self._solvers.setdefault(key, ik)  # another thread may have been faster
            while len(self._solvers) > KEPT_SOLVERS:
                self._solvers.popitem(last=False)
        else:
            with suppress(KeyError):  # another thread's may have pushed it out meanwhile
                self._solvers.move_to_end(key)
        return ik

    def _way(self, link: str | None, base: str | None) -> tuple[str, str]:
        model = self._model
        found = model.require_tip() if link is None else model.require_link(link, "$.params.link")
        return found, model.base if base is None else model.require_link(base, "$.params.base")

    def _refuse_floating(self, link: str, base: str) -> None:
        way = set(self._model.chain(link)) ^ set(self._model.chain(base))
        for joint in self._model.joints:
            if joint.type == "floating" and joint in way:
                raise InvalidParams(
                    f"the floating joint `{joint.name}` lies between `{base}` and `{link}`: it could take the link anywhere; "
                    f"ask for the pose in `{joint.child}` or in a link behind it, as `base`",
                    reason="floating-joint", path="$.params.base", expected="no floating joint between base and link",
                    got=joint.name, did_you_mean=joint.child,
                )  # fmt: skip

    def _seed(self, aim: Aim, ik: Ik) -> list[float] | None:
        """The whole of q that a search starts from, rad|m; None where the caller gives none."""
        wide = next((j for j in self._model.independent if j.width > 1), None)
        if aim.degrees and wide is not None:
            raise InvalidParams(f"`degrees` is not defined for the {wide.type} joint `{wide.name}`; take radians",
                                reason="degrees-undefined", path="$.params.degrees", expected="false", got="true")
        if aim.seed is None:
            return None
        path, given = "$.params.seed", aim.seed
        if isinstance(given, Mapping):
            whole = self._units(self._middle, aim)
            absent = {j.name: whole[j.index : j.index + j.width] for j in self._model.independent if j.name not in given}
            given = {name: x[0] if len(x) == 1 else x for name, x in absent.items()} | dict(given)
        q = self._configurations.read(given, degrees=aim.degrees, path=path)
        self._configurations.check_quaternions(q, path)
        for c in ik.chain.columns:
            if abs(q[c.index]) > FARTHEST_SEED:
                name = self._model.q_names[c.index]
                raise InvalidParams(f"the seed of `{name}` is {q[c.index]:g}; expected at most {FARTHEST_SEED:g} either way",
                                    reason="out-of-range", path=path, expected=f"within {FARTHEST_SEED:g}", got=q[c.index])
        return q

    def _units(self, q: Sequence[float], aim: Aim) -> list[float]:
        """q as the caller wants it: in degrees, if so asked, where it is an angle."""
        if not aim.degrees:
            return list(q)
        joints = (self._model.by_name[name] for name in self._model.q_names)
        return [degrees(x) if j.type in ("revolute", "continuous") else x for x, j in zip(q, joints, strict=True)]

    def _given(self, s: Solution, aim: Aim) -> Solution:
        return Solution(self._units(s.q, aim), s.position_error, s.orientation_error, s.converged, s.singular)

    def _failed(self, aim: Aim, answer: Answer, nearest: Solution | None, measure: Measure, link: str) -> IkFailed:
        """The error that says why, how near it got, and what might help."""
        reason = answer.reason or "unreachable"
        off, data = "infinitely far off", {}
        if nearest is not None:
            off = _off(nearest, aim)
            data = {"q": self._units(nearest.q, aim), "pose": measure.pose(nearest.q),
                    "position_error": nearest.position_error, "orientation_error": nearest.orientation_error}
        message = f"`{link}` " + WHY[reason].format(off=off, timeout=aim.timeout_ms)
        n = len(measure.columns)
        if n < 6 and not aim.position_only:
            message += f"; {n} joint value{'s' if n != 1 else ''} cannot take it everywhere: position_only frees the orientation"
        return IkFailed(
            message, reason=reason, nearest=data or None, position_error=nearest and nearest.position_error,
            orientation_error=nearest and nearest.orientation_error, iterations=answer.iterations,
            restarts=answer.restarts, method=answer.method,
        )  # fmt: skip


class Measure:
    """Measures a configuration by the robot's own kernel, not by the solver's."""

    def __init__(self, kernel: Callable[[Sequence[float]], list[float]], ik: Ik, aim: Aim) -> None:
        self._kernel, self.columns, self._aim = kernel, ik.chain.columns, aim

    def pose(self, q: Sequence[float]) -> list[float]:
        """T_base_tool, 16 numbers."""
        T, tool = self._kernel(q), self._aim.tool
        return T if tool is None else matrix(compose(T[:12], tool[:12]))  # type: ignore[arg-type]

    def __call__(self, s: Solution) -> Solution | None:
        """The same configuration with its true errors, converged if these and all values are within their bounds; None
        if it has no finite pose."""
        aim, T = self._aim, self.pose(s.q)
        position = dist(translation_of(T), translation_of(aim.T_base_tool))
        if not isfinite(position + sum(T)):
            return None
        angle = None if aim.position_only else angle_between(rotation_of(T), rotation_of(aim.T_base_tool))
        good = position <= aim.position_tolerance and (angle is None or angle <= aim.orientation_tolerance)
        inside = all(c.lower <= s.q[c.index] <= c.upper for c in self.columns)
        return Solution(s.q, position, angle, good and inside, s.singular)


def _off(s: Solution, aim: Aim) -> str:
    """How far off a configuration is, in words; what is within tolerance counts as nothing."""
    position, angle = s.position_error, s.orientation_error
    mm = 1e3 * position if position > aim.position_tolerance else 0.0
    if angle is None:
        return f"{mm:.3g} mm off"
    return f"{mm:.3g} mm and {degrees(angle) if angle > aim.orientation_tolerance else 0.0:.3g} deg off"


def _require_analytic(ik: Ik, aim: Aim, link: str, base: str) -> None:
    """Raise InvalidParams where no closed form can answer."""
    if aim.position_only:
        why = "it takes a whole pose, not position_only"
    elif ik.analytic is None:
        n = len(ik.chain.columns)
        what = "whose axes are arranged otherwise" if n == 6 else f"which has {n}"
        why = ("it is for six turning joints with a spherical wrist or with three parallel axes, "
               f"not for the way from `{base}` to `{link}`, {what}")  # fmt: skip
    else:
        return
    raise InvalidParams(f"no analytic solution: {why}; method auto or numeric answers all the same",
                        reason="no-analytic", path="$.params.method", expected="auto or numeric", got="analytic")
