"""A chain as inverse kinematics sees it: the values of q that move the tip, and how far the tip is from its target.

Where lengths are weighed against angles, one rad counts as much as a fifth of the chain's reach: that is the unit of
length below.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from math import atan2, hypot, sqrt

from fkd.kernel.ik_column import columns, reach
from fkd.kernel.ik_step import Function, generate_pose, generate_step
from fkd.kernel.motion import Edge, Tree, route
from fkd.kernel.steps import finished

# Of 0.1 to 0.3 the mean number of iterations is flat, at 1 it is half as much again.
UNIT = 0.2  # of the reach


@dataclass(frozen=True, slots=True)
class Target:
    """Where the tool shall be: `values` = R_base_link (9), the tool's origin in the base (3) and in the link (3), these
    two in the chain's unit of length."""

    values: list[float]
    position_only: bool


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
        self.reach = reach(self.edges, lower, upper)
        self.length = UNIT * self.reach
        self.columns = columns(self.edges, lower, upper, self.length)
        self.bounded = [(k, c.lower, c.upper, c) for k, c in enumerate(self.columns) if c.bounded]
        self.weights = [c.scale * c.scale for c in self.columns]
        self.free = [self.weights[k] for k, *_ in self.bounded]  # none of the bounded ones held fast
        self.units = [1.0 / c.scale for c in self.columns]
        self.angles = [float(c.angle) for c in self.columns]
        self.scaled = Tree(tuple(e and _scaled(e, 1.0 / self.length) for e in tree.edges), tree.width)
        planar = [e.index + k for e in self.edges if e.kind == "planar" for k in (0, 1)]
        self._planar = dict.fromkeys(planar, 1.0 / self.length)  # such joints have no ratio that could be scaled
        self._steps: dict[bool, Function] = {}

    def target(self, T_base_tool: Sequence[float], tool: Sequence[float] | None, position_only: bool) -> Target:
        """Both frames are 12 or 16 numbers, row-major; tool is T_link_tool, none for the link itself."""
        T, k = T_base_tool, 1.0 / self.length
        R, p, point = [*T[0:3], *T[4:7], *T[8:11]], [k * T[3], k * T[7], k * T[11]], [0.0, 0.0, 0.0]
        if tool is not None:
            S = (*tool[0:3], *tool[4:7], *tool[8:11])
            R = [sum(R[3 * i + c] * S[3 * j + c] for c in range(3)) for i in range(3) for j in range(3)]
            point = [k * tool[3], k * tool[7], k * tool[11]]
        return Target([*R, *p, *point], position_only)

    def step(self, position_only: bool) -> Function:
        """The generated function, for the whole pose or the position alone: see `generate_step`."""
        if position_only not in self._steps:
            finished(self.prepare(position_only))
        return self._steps[position_only]

    def prepare(self, position_only: bool) -> Generator[None, None, None]:
        """Make what `step` returns, if it is not there yet, with rests. Two at once do the work twice and agree."""
        if position_only not in self._steps:
            self._steps[position_only] = yield from generate_step(
                self.scaled, self.link, self.base, self.columns, self._planar, position_only
            )

    def pose(self) -> Function:
        """Compiled anew: values of the columns -> T_base_link, 12 numbers, lengths in the unit of length."""
        return generate_pose(self.scaled, self.link, self.base, self.columns, self._planar)

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
        """The largest difference of two settings, whole periods aside (rad; slides in the unit of length)."""
        return max((abs(c.difference(x, y)) for c, x, y in zip(self.columns, a, b, strict=True)), default=0.0)

    def way(self, a: Sequence[float], b: Sequence[float]) -> float:
        """The root of the sum of squares of the moves from one to the other, turns counted in full."""
        return hypot(*((x - y) * u for x, y, u in zip(a, b, self.units, strict=True)))

    def errors(self, at: Sequence[float]) -> tuple[float, float]:
        """Position error (units of length) and orientation error (rad) out of what the step function measured."""
        return sqrt(at[1]), atan2(sqrt(at[2]), at[3])


def _way(tree: Tree, link: int, base: int) -> list[Edge]:
    """The joints that move link against base, in the order from base to link."""
    up, down = route(tree, base), route(tree, link)
    shared = sum(a == b for a, b in zip(up, down, strict=False))
    edges = [tree.edges[place] for place in (*reversed(up[shared:]), *down[shared:])]
    return [e for e in edges if e is not None]


def _scaled(edge: Edge, k: float) -> Edge:
    """The same joint with lengths times k; q keeps its unit (but for planar joints)."""
    T = edge.T_parent_joint
    moved = replace(edge, T_parent_joint=tuple(x * k if i in (3, 7, 11) else x for i, x in enumerate(T)))
    return replace(moved, ratio=edge.ratio * k, bias=edge.bias * k) if edge.kind == "prismatic" else moved
