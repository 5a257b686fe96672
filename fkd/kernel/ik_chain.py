"""What inverse kinematics needs of a chain: which values of q move the tip, within what limits, and two functions.

One generated function measures how far the tool is from its target and how each value moves it; another makes of that
one damped least-squares step. Both are traced from the same kinematics as every other kernel, so that what is constant
or shared in a robot's Jacobian is folded away. Where lengths are weighed against angles, one rad counts as much as a
fifth of the chain's reach: that is the unit of length below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import atan2, ceil, hypot, inf, isfinite, sqrt, tau

from fkd.kernel.emit_python import compile_python
from fkd.kernel.jacobian import cross, pose_and_jacobian
from fkd.kernel.motion import EYE, Edge, Tree, joined, route
from fkd.kernel.program import Program, record
from fkd.kernel.scalar import Ref

Function = Callable[[list[float]], list[float]]

# A range that lacks less than this of a full turn (limits written as 6.2832 or 3.1416) is a full turn to the search;
# what it then finds in the gap is moved onto the limit and measured anew.
GAP = 1e-4
# Of 0.1 to 0.3 the mean number of iterations is flat, at 1 it is half as much again.
UNIT = 0.2  # of the reach
WIDE = 100.0  # m; limits of a slide beyond this are how files write "none" (999999 is seen): they give no measure


@dataclass(frozen=True, slots=True)
class Target:
    """Where the tool shall be: `values` = R_base_link (9), the tool's origin in the base (3) and in the link (3), these
    two in the chain's unit of length."""

    values: list[float]
    position_only: bool


@dataclass(frozen=True, slots=True)
class Column:
    """One value of q that moves the tip: place in q, limits (infinite for none), whether it turns anything, period in
    which it repeats the pose (0: never), and the change that counts as one (1 rad, or the unit of length)."""

    index: int
    lower: float
    upper: float
    angle: bool
    period: float
    scale: float

    @property
    def bounded(self) -> bool:
        """Whether the search must heed the limits: not if they leave room for a whole period."""
        if self.period and self.upper - self.lower >= self.period - GAP:
            return False
        return isfinite(self.lower) or isfinite(self.upper)

    def within(self, x: float) -> float:
        """The value inside the limits nearest to x, whole periods aside: x itself, x after some periods, or a limit."""
        if self.lower <= x <= self.upper:
            return x
        if self.period and isfinite(x):
            above = x + self.period * ceil((self.lower - x) / self.period)  # the first at or over the lower limit
            if self.lower <= above <= self.upper:
                return above
            return self.lower if self.lower - (above - self.period) < above - self.upper else self.upper
        return self.lower if x < self.lower else self.upper

    def near(self, x: float, seed: float) -> float:
        """x moved by whole periods to where it is inside the limits and nearest to `seed`; x, if nowhere inside."""
        if not self.period:
            return x
        best = x + self.period * round((seed - x) / self.period)
        if best < self.lower:
            best += self.period * ceil((self.lower - best) / self.period)
        elif best > self.upper:
            best -= self.period * ceil((best - self.upper) / self.period)
        return best if self.lower <= best <= self.upper else self.within(x)

    def centred(self, x: float) -> float:
        """x moved by whole periods to within half a period of the middle of the range that is sampled."""
        if not self.period:
            return x
        middle = 0.5 * (self.lower + self.upper) if self.bounded else 0.0
        return x - self.period * round((x - middle) / self.period)

    def difference(self, a: float, b: float) -> float:
        """a - b, whole periods aside, in units of its scale."""
        d = a - b
        if self.period:
            d -= self.period * round(d / self.period)
        return d / self.scale


@dataclass(frozen=True, slots=True)
class Functions:
    """measure: the columns' values + target -> position error (3, in the unit of length), then for a whole pose the rotation's
    sine-weighted axis (3) and trace, then the Jacobian's varying entries.
    step: those entries + error + damping + one weight a bounded column -> what each column is to be moved by, before
    its weight."""

    measure: Function
    step: Function


class Chain:
    """The way from `base` to `link` (places in the tree) as inverse kinematics sees it. Immutable but for a cache.

    lower, upper: limits for each value of q (tree.width), infinite for none; rad|m.
    Raises ValueError for a floating joint on the way: its seven values have no limits and no minimal step.
    """

    def __init__(self, tree: Tree, link: int, base: int, lower: Sequence[float], upper: Sequence[float]) -> None:
        self.tree, self.link, self.base = tree, link, base
        self.edges = _way(tree, link, base)
        if any(e.kind == "floating" for e in self.edges):
            raise ValueError("a floating joint on the way from base to link")
        self.reach = _reach(self.edges, lower, upper)
        self.length = UNIT * self.reach
        self.columns = _columns(self.edges, lower, upper, self.length)
        self.bounded = [(k, c.lower, c.upper, c) for k, c in enumerate(self.columns) if c.bounded]
        self.weights = [c.scale * c.scale for c in self.columns]
        self.units = [1.0 / c.scale for c in self.columns]
        self.angles = [float(c.angle) for c in self.columns]
        self.scaled = Tree(tuple(e and _scaled(e, 1.0 / self.length) for e in tree.edges), tree.width)
        self._functions: dict[bool, Functions] = {}

    def target(self, T_base_tool: Sequence[float], tool: Sequence[float] | None, position_only: bool) -> Target:
        """Both frames are 12 or 16 numbers, row-major; tool is T_link_tool, none for the link itself."""
        T, k = T_base_tool, 1.0 / self.length
        R, p, point = [*T[0:3], *T[4:7], *T[8:11]], [k * T[3], k * T[7], k * T[11]], [0.0, 0.0, 0.0]
        if tool is not None:
            S = (*tool[0:3], *tool[4:7], *tool[8:11])
            R = [sum(R[3 * i + c] * S[3 * j + c] for c in range(3)) for i in range(3) for j in range(3)]
            point = [k * tool[3], k * tool[7], k * tool[11]]
        return Target([*R, *p, *point], position_only)

    def functions(self, position_only: bool) -> Functions:
        """The generated pair, for the whole pose or the position alone."""
        if position_only not in self._functions:
            self._functions[position_only] = _generate(self, position_only)
        return self._functions[position_only]

    def chosen(self, q: Sequence[float]) -> list[float]:
        """The columns' values out of a whole q."""
        return [q[c.index] for c in self.columns]

    def whole(self, x: Sequence[float], rest: Sequence[float]) -> list[float]:
        """A whole q: x in the columns, the others from `rest`."""
        q = [float(v) for v in rest]
        for c, v in zip(self.columns, x, strict=True):
            q[c.index] = v
        return q

    def apart(self, a: Sequence[float], b: Sequence[float]) -> float:
        """The largest difference of two settings of the columns, whole periods aside (rad; slides in the unit of length)."""
        return max((abs(c.difference(x, y)) for c, x, y in zip(self.columns, a, b, strict=True)), default=0.0)

    def distance(self, a: Sequence[float], b: Sequence[float]) -> float:
        """The sum of squares of the same differences."""
        return sum(c.difference(x, y) ** 2 for c, x, y in zip(self.columns, a, b, strict=True))

    def errors(self, x: list[float], target: Target) -> tuple[float, float]:
        """Position error (m) and orientation error (rad; 0 where position alone counts) at x."""
        out = self.functions(target.position_only).measure(x + target.values)
        return hypot(*out[:3]) * self.length, 0.0 if target.position_only else abs(rotation_error(out)[3])


def rotation_error(out: Sequence[float]) -> tuple[float, float, float, float]:
    """What `measure` says of the rotation -> rotation vector still to go (3, base axes) and its angle (rad)."""
    x, y, z = out[3], out[4], out[5]  # twice the sine of the angle, along the axis
    s = sqrt(x * x + y * y + z * z)
    angle = atan2(s, out[6] - 1.0)  # the trace is 1 + 2 cos
    if s == 0.0:  # at half a turn the axis is lost: zero makes the search start elsewhere
        return 0.0, 0.0, 0.0, angle
    f = angle / s
    return x * f, y * f, z * f, angle


def _way(tree: Tree, link: int, base: int) -> list[Edge]:
    """The joints that move link against base, in the order from base to link."""
    up, down = route(tree, base), route(tree, link)
    shared = sum(a == b for a, b in zip(up, down, strict=False))
    edges = [tree.edges[place] for place in (*reversed(up[shared:]), *down[shared:])]
    return [e for e in edges if e is not None]


def _reach(edges: Sequence[Edge], lower: Sequence[float], upper: Sequence[float]) -> float:
    """No pose of the chain is further than this from its base (m), slides without limits aside; 1 for all angles."""
    total = 0.0
    for e in edges:
        T = e.T_parent_joint
        total += hypot(T[3], T[7], T[11])
        if e.kind == "prismatic":
            ends = [abs(e.ratio * x + e.bias) for x in (lower[e.index], upper[e.index])]
            total += max((x for x in ends if x <= WIDE), default=0.0)
    return total if 0.0 < total < inf else 1.0


def _scaled(edge: Edge, k: float) -> Edge:
    """The same joint with lengths times k; q keeps its unit (a planar joint has no ratio, so its q must be scaled)."""
    T = edge.T_parent_joint
    moved = replace(edge, T_parent_joint=tuple(x * k if i in (3, 7, 11) else x for i, x in enumerate(T)))
    return replace(moved, ratio=edge.ratio * k, bias=edge.bias * k) if edge.kind == "prismatic" else moved


def _columns(edges: Sequence[Edge], lower: Sequence[float], upper: Sequence[float], length: float) -> list[Column]:
    turns: dict[int, list[float]] = {}  # place in q -> ratios of the angles that it drives
    slides: set[int] = set()
    for e in edges:
        if e.kind in ("revolute", "continuous") and e.ratio:
            turns.setdefault(e.index, []).append(abs(e.ratio))
        elif e.kind == "prismatic" and e.ratio:
            slides.add(e.index)
        elif e.kind == "planar":
            slides |= {e.index, e.index + 1}
            turns.setdefault(e.index + 2, []).append(1.0)
    columns = []
    for i in sorted(slides | turns.keys()):
        ratios = turns.get(i, [])
        period = 0.0
        if i not in slides and all(r / min(ratios) % 1.0 == 0.0 for r in ratios):
            period = tau / min(ratios)
        columns.append(Column(i, lower[i], upper[i], bool(ratios), period, 1.0 if ratios else length))
    return columns


def _generate(chain: Chain, position_only: bool) -> Functions:
    """Trace and compile the two functions of a chain."""
    columns, n = chain.columns, len(chain.columns)
    rows = 3 if position_only else 6
    factors = [1.0] * chain.tree.width
    for e in chain.edges:
        if e.kind == "planar":
            factors[e.index] = factors[e.index + 1] = 1.0 / chain.length

    def measure(x: Sequence[Ref]) -> Sequence[Sequence[Ref]]:
        q: list[Ref] = [0.0] * chain.tree.width
        for c, value in zip(columns, x[:n], strict=True):
            q[c.index] = factors[c.index] * value
        R_target, p_target, point = x[n : n + 9], x[n + 9 : n + 12], x[n + 12 : n + 15]
        # the tool's origin is one more fixed frame, whose place is not known yet
        mount = Edge("fixed", chain.link, tuple(joined(EYE, point)), (1.0, 0.0, 0.0), -1, 1.0, 0.0)  # type: ignore[arg-type]
        tree = Tree((*chain.scaled.edges, mount), chain.tree.width)
        T, J = pose_and_jacobian(tree, q, len(chain.tree.edges), chain.base)
        error = [p_target[i] - T[4 * i + 3] for i in range(3)]
        if not position_only:
            axis: list[Ref] = [0.0, 0.0, 0.0]
            trace: Ref = 0.0
            for i in range(3):
                is_, should = [T[i], T[4 + i], T[8 + i]], [R_target[i], R_target[3 + i], R_target[6 + i]]
                axis = [a + b for a, b in zip(axis, cross(is_, should), strict=True)]
                trace = trace + (is_[0] * should[0] + is_[1] * should[1] + is_[2] * should[2])
            error += [*axis, trace]
        return [error, [J[i][c.index] * factors[c.index] for i in range(rows) for c in columns]]

    program = record(n + 15, measure)
    errors, entries = program.outputs
    varying = list(dict.fromkeys(place for place in entries if place not in program.constants))

    def step(x: Sequence[Ref]) -> Sequence[Sequence[Ref]]:
        known: dict[int, Ref] = {**program.constants, **dict(zip(varying, x, strict=False))}
        J = [[known[entries[i * n + j]] for j in range(n)] for i in range(rows)]
        inputs = list(x[len(varying) :])
        error, damping, bounded = inputs[:rows], inputs[rows], inputs[rows + 1 :]
        weights: list[Ref] = list(chain.weights)
        for (j, *_), w in zip(chain.bounded, bounded, strict=True):
            weights[j] = w
        return [damped_step(J, error, damping, weights)]

    measured = Program(program.width, program.nodes, program.constants, ((*errors, *varying),))
    stepped = record(len(varying) + rows + 1 + len(chain.bounded), step)
    return Functions(compile_python(measured, "ik measure"), compile_python(stepped, "ik step"))


def damped_step(J: Sequence[Sequence[Ref]], e: Sequence[Ref], damping: Ref, weights: Sequence[Ref]) -> list[Ref]:
    """J^T y with (J W J^T + damping I) y = e, by LDL^T without pivots: the matrix is positive definite.

    W times the result is the step that minimises |J dq - e|^2 + damping |dq|^2 in the metric of W. For a column held
    fast (weight 0) the result has the sign in which that column would still lower the error.
    """
    m, n = len(e), len(weights)
    L: list[list[Ref]] = [[0.0] * m for _ in range(m)]  # unit lower triangle, and U = L D
    U: list[list[Ref]] = [[0.0] * m for _ in range(m)]
    inverse: list[Ref] = []
    JW = [[J[i][j] * weights[j] for j in range(n)] for i in range(m)]
    for j in range(m):
        for i in range(j, m):
            s: Ref = damping if i == j else 0.0
            for c in range(n):
                s = s + JW[j][c] * J[i][c]
            for c in range(j):
                s = s - U[i][c] * L[j][c]
            U[i][j] = s
        inverse.append(1.0 / U[j][j])
        for i in range(j + 1, m):
            L[i][j] = U[i][j] * inverse[j]
    y = list(e)
    for i in range(m):
        for c in range(i):
            y[i] = y[i] - L[i][c] * y[c]
    y = [a * b for a, b in zip(y, inverse, strict=True)]
    for i in reversed(range(m)):
        for c in range(i + 1, m):
            y[i] = y[i] - L[c][i] * y[c]
    result: list[Ref] = []
    for j in range(n):
        s = 0.0
        for i in range(m):
            s = s + J[i][j] * y[i]
        result.append(s)
    return result
