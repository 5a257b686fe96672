"""A robot's chain as a Denavit-Hartenberg table, with the residual that proves it.

The residual is what a user of the table will see: its rows, rounded to doubles and multiplied in doubles, against the
robot's own kernel. Where axes are nearly parallel (see `fkd.kernel.dh`) it is not nothing, and the table says so.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import hypot, inf, isfinite, pi
from typing import Any

import numpy as np

from fkd.errors import InvalidParams, cut
from fkd.kernel.dh import EXACTLY, NEARLY, Chain, Line, extract, line, product, sines
from fkd.kernel.motion import Frame, Tree, apply, compose, invert, joined, parted, walk
from fkd.kernel.pose import matrix
from fkd.kernels import Kernels
from fkd.model import Joint, Model

CONVENTIONS = ("standard", "modified")
GOOD = 1e-9  # m and rad: the residual of a well-posed chain
FAR = 10.0  # times the reach of the chain: no row needs that, unless two nearly cancel
SAMPLES = 24  # configurations over which the residual is measured
REACH = 2.0  # m: how far a slide without limits is moved for it
LONGEST = 100.0  # m: a slide's limits beyond that are none


def table(kernels: Kernels, link: str, base: str, convention: str) -> Generator[None, None, dict[str, Any]]:
    """The rows of the chain from base to link, one a moving joint, as the method `dh` answers them.

    a, d in m, alpha, theta in rad; a joint's value adds to theta (or d, where it slides). T_base_link is the product of
    base (T_base_0), the rows, and tool (T_n_link). A joint that is passed against its direction, on the way from base up
    to where the branches meet, turns about its axis reversed.
    A generator, because it takes some milliseconds: each step takes less than one.
    Raises ModelError for unknown links, InvalidParams for a planar or floating joint on the way.
    """
    if convention not in CONVENTIONS:
        raise InvalidParams(f"a DH table is {' or '.join(CONVENTIONS)}, not `{cut(str(convention))}`", reason="unknown-choice",
                            path="$.params.convention", expected=list(CONVENTIONS), got=cut(str(convention)))
    joints, axes, T_base_link = _axes(kernels, link, base)
    yield
    chain = yield from extract(axes, T_base_link, convention)
    residual = reach = 0.0
    rng = random.Random(0)
    kernel = kernels.poses((link,), base)
    for _ in range(SAMPLES):
        yield
        q = _sample(kernels.model, rng)
        try:
            T = kernel(q)
            off = _off(chain, convention, joints, [j.ratio * q[j.index] + j.bias for j in joints], T)
        except (ValueError, OverflowError):  # the sine of infinity
            off = inf
        if not isfinite(off):
            raise _overflow(base, link)
        residual, reach = max(residual, off), max(reach, hypot(*T[3:12:4]))
    result = {
        "convention": convention, "rows": [_row(j, values) for j, values in zip(joints, chain.rows, strict=True)],
        "base": matrix(chain.base), "tool": matrix(chain.tool), "residual": residual, "cases": list(chain.cases),
    }  # fmt: skip
    if followers := {j.name: _driven(kernels.model, j) for j in joints if j.mimic}:
        result["mimic"] = followers
    between = chain.cases[:-1] if convention == "standard" else chain.cases[1:]  # of the joints' axes, without the ends
    if warnings := [*_near(joints, axes, between), *_lost(chain, reach, residual)]:
        result["warnings"] = warnings
    return result


def _axes(kernels: Kernels, link: str, base: str) -> tuple[list[Joint], list[Line], tuple[float, ...]]:
    """The moving joints from base to link, their axes in base with every joint's value at zero, and T_base_link there."""
    model = kernels.model
    model.require_link(link, "$.params.link")
    model.require_link(base, "$.params.base")
    # Followers too are at zero, whatever their source: their values are added like any joint's.
    tree = Tree(tuple(e and replace(e, bias=0.0) for e in kernels.tree.edges), kernels.tree.width)
    zero = [0.0] * tree.width
    for j in model.independent:
        if j.type == "floating":
            zero[j.index + 6] = 1.0
    end, start = kernels.places[link], kernels.places[base]
    way = walk(tree, zero, [end], start)
    T_base_start = invert(joined(way.placed[start].rotation, way.placed[start].position))
    by_place = {kernels.places[j.child]: j for j in model.joints}
    joints, axes = [], []
    for route, sign in ((reversed(way.routes[start]), -1.0), (way.routes[end], 1.0)):
        for place in route:
            joint, edge = by_place[place], tree.edges[place]
            if edge is None or edge.kind == "fixed":
                continue
            if edge.kind in ("planar", "floating"):
                raise InvalidParams(f"joint `{joint.name}` is {edge.kind}; a DH table holds joints with one axis only",
                                    reason=f"{edge.kind}-joint", path="$.params.link", expected="revolute, continuous and prismatic joints",
                                    got=edge.kind)
            before = way.placed[edge.parent]
            T_start_joint = compose(joined(before.rotation, before.position), edge.T_parent_joint)
            R, p = parted(compose(T_base_start, T_start_joint))
            joints.append(joint)
            axes.append(line(_floats(p), [sign * x for x in _floats(apply(R, edge.axis))]))
    at_end = joined(way.placed[end].rotation, way.placed[end].position)
    T_base_end = _floats(compose(T_base_start, at_end))
    if not all(map(isfinite, [*T_base_end, *(x for a in axes for x in a.point)])):
        raise _overflow(base, link)
    return joints, axes, tuple(T_base_end)


def _floats(values: Frame) -> list[float]:
    """What the kinematics gave of floats."""
    return [float(x) for x in values]  # type: ignore[arg-type]


def _overflow(base: str, link: str) -> InvalidParams:
    return InvalidParams(f"the chain from `{base}` to `{link}` is beyond the range of a double", reason="overflow", path="$.params.link",
                         expected="a chain whose poses are finite", got="lengths or ratios too large")


def _sample(model: Model, rng: random.Random) -> list[float]:
    """A configuration: any angles, slides within their limits."""
    q = [rng.uniform(-pi, pi) for _ in range(model.dof)]
    for j in model.independent:
        if j.type == "prismatic":
            lower, upper = (j.limits.lower, j.limits.upper) if j.limits else (None, None)
            ends = [x if x is not None and abs(x) < LONGEST else s * REACH for x, s in ((lower, -1.0), (upper, 1.0))]
            q[j.index] = rng.uniform(*ends)
    return q


def _off(chain: Chain, convention: str, joints: Sequence[Joint], values: Sequence[float], T_base_link: Sequence[float]) -> float:
    """The largest difference between an entry of the table's pose and of the robot's, in m and rad."""
    base, tool, expected = (np.array(T).reshape(4, 4) for T in (matrix(chain.base), matrix(chain.tool), T_base_link))
    with np.errstate(all="ignore"):  # the caller looks for what is not finite
        T = base
        for joint, row, value in zip(joints, chain.rows, values, strict=True):
            T = T @ (product(convention, row, 0.0, value) if joint.type == "prismatic" else product(convention, row, value))
        return float(np.abs(T @ tool - expected).max())


def _row(joint: Joint, values: Sequence[float]) -> dict[str, Any]:
    row = {"joint": joint.name, "type": joint.type, **dict(zip(("a", "alpha", "d", "theta"), values, strict=True))}
    if joint.type != "continuous" and joint.limits and joint.limits.lower is not None:
        row |= {"lower": joint.limits.lower, "upper": joint.limits.upper}
    return row


def _driven(model: Model, follower: Joint) -> dict[str, Any]:
    """What a follower's value is: multiplier * the value of `joint` + offset."""
    return {"joint": model.q_names[follower.index], "multiplier": follower.ratio, "offset": follower.bias}


def _near(joints: Sequence[Joint], axes: Sequence[Line], cases: Sequence[str]) -> list[str]:
    """Which neighbours are nearly parallel, and what was made of it."""
    found = []
    for (here, there), sine, case in zip(pairwise(joints), sines(axes), cases, strict=True):
        if EXACTLY < sine <= NEARLY:
            taken = "taken as parallel" if case in ("parallel", "collinear") else "not taken as parallel"
            found.append(f"the axes of `{here.name}` and `{there.name}` are {sine:.2g} rad from parallel, and {taken}")
    return found


def _lost(chain: Chain, reach: float, residual: float) -> list[str]:
    """What becomes of the digits."""
    found = []
    longest = max((max(abs(a), abs(d)) for a, _, d, _ in chain.rows), default=0.0)
    if longest > FAR * reach:
        found.append(f"lengths up to {longest:.3g} m nearly cancel, in a chain that reaches {reach:.3g} m: keep every digit of this table")
    if residual > GOOD:
        found.append(f"the table misses the robot by {residual:.2g} m or rad")
    return found
