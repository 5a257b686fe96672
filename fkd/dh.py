"""A robot's chain as a Denavit-Hartenberg table, with the residual that proves it.

Axes that are nearly parallel leave a choice. Taken as skew, their common normal lies far away: metres of d that nearly
cancel, and the digits of a double end. Taken as parallel, the angle between them is lost. Which of the two loses less
depends on the arm, so both are tried, and the table with the least residual is given.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite, pi
from typing import Any

import numpy as np

from fkd.errors import InvalidParams, cut
from fkd.kernel.dh import Chain, Line, extract, line, product, sines, with_ends
from fkd.kernel.motion import Frame, Tree, apply, compose, invert, joined, parted, walk
from fkd.kernel.pose import matrix
from fkd.kernels import Kernels
from fkd.model import Joint, Model

CONVENTIONS = ("standard", "modified")
PARALLEL = 1e-6  # rad: below, axes may be taken as parallel
EXACTLY = 1e-12  # rad: below, they are
DOUBTFUL = 1e-3  # rad: below, the common normal is far away
BELOW = 1.0 - 1e-9
GOOD = 1e-9  # m and rad: the residual of a well-posed chain
FAR = 100.0  # m: no arm is so long, so such a d nearly cancels with another
SAMPLES = 24  # configurations over which the residual is measured
REACH = 2.0  # m: how far a slide without limits is moved for it


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
    samples = _samples(kernels, joints, link, base)
    best, least, taken = None, inf, EXACTLY
    apart = sines(with_ends(axes, T_base_link))
    # One threshold for each way to divide the doubtful pairs: just below each, so that it and all above count as skew.
    for threshold in [PARALLEL, *sorted({s * BELOW for s in apart if EXACTLY < s <= PARALLEL}, reverse=True)]:
        yield
        found = extract(axes, T_base_link, convention, threshold)
        yield
        residual = _residual(found, convention, joints, samples)
        if best is None or residual < 0.5 * least:  # the coarser one, where it makes no difference
            best, least, taken = found, residual, threshold
    assert best is not None
    result = {
        "convention": convention, "rows": [_row(j, values) for j, values in zip(joints, best.rows, strict=True)],
        "base": matrix(best.base), "tool": matrix(best.tool), "residual": least, "cases": list(best.cases),
    }  # fmt: skip
    if followers := {j.name: _driven(kernels.model, j) for j in joints if j.mimic}:
        result["mimic"] = followers
    if warnings := _warnings(["the base", *(f"`{j.name}`" for j in joints), f"`{link}`"], apart, best, least, taken):
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
    return joints, axes, tuple(_floats(compose(T_base_start, at_end)))


def _floats(values: Frame) -> list[float]:
    """What the kinematics gave of floats."""
    return [float(x) for x in values]  # type: ignore[arg-type]


def _samples(kernels: Kernels, joints: Sequence[Joint], link: str, base: str) -> list[tuple[list[float], list[float]]]:
    """Values of each joint of the chain and the pose there, by the kernel itself."""
    rng = random.Random(0)
    kernel = kernels.poses((link,), base)
    tree = kernels.tree
    found = []
    for _ in range(SAMPLES):
        q = [rng.uniform(-pi, pi) for _ in range(tree.width)]
        for j in kernels.model.independent:
            if j.type == "prismatic":
                q[j.index] = rng.uniform(*_slide(j))
        found.append(([j.ratio * q[j.index] + j.bias for j in joints], kernel(q)))
    return found


def _slide(joint: Joint) -> tuple[float, float]:
    """The range in which a slide is tried."""
    lower, upper = (joint.limits.lower, joint.limits.upper) if joint.limits else (None, None)
    ends = sorted(x if x is not None and abs(x) < FAR else s * REACH for x, s in ((lower, -1.0), (upper, 1.0)))
    return ends[0], ends[1]


def _residual(chain: Chain, convention: str, joints: Sequence[Joint], samples: Sequence[tuple[list[float], list[float]]]) -> float:
    """The largest difference between an entry of the table's pose and of the robot's, in m and rad."""
    worst = 0.0
    base, tool = (np.array(matrix(T)).reshape(4, 4) for T in (chain.base, chain.tool))
    for values, expected in samples:
        T = base
        for joint, row, value in zip(joints, chain.rows, values, strict=True):
            T = T @ (product(convention, row, 0.0, value) if joint.type == "prismatic" else product(convention, row, value))
        worst = max(worst, float(np.abs(T @ tool - np.reshape(expected, (4, 4))).max()))
    return worst if isfinite(worst) else inf


def _row(joint: Joint, values: Sequence[float]) -> dict[str, Any]:
    row = {"joint": joint.name, "type": joint.type, **dict(zip(("a", "alpha", "d", "theta"), values, strict=True))}
    if joint.type != "continuous" and joint.limits and joint.limits.lower is not None:
        row |= {"lower": joint.limits.lower, "upper": joint.limits.upper}
    return row


def _driven(model: Model, follower: Joint) -> dict[str, Any]:
    """What a follower's value is: multiplier * the value of `joint` + offset."""
    return {"joint": model.q_names[follower.index], "multiplier": follower.ratio, "offset": follower.bias}


def _warnings(names: Sequence[str], apart: Sequence[float], chain: Chain, residual: float, threshold: float) -> list[str]:
    """What a user of the table should know."""
    found = []
    for (a, b), sine in zip(pairwise(names), apart, strict=True):
        if EXACTLY < sine < DOUBTFUL:
            # extract() takes as parallel what is not above the threshold
            how = "taken as parallel" if sine <= threshold else "not taken as parallel"
            found.append(f"the axes of {a} and {b} are {sine:.2g} rad from parallel, and {how}")
    if any(abs(d) > FAR or abs(a) > FAR for a, _, d, _ in chain.rows):
        found.append("lengths of hundreds of metres nearly cancel: keep every digit of this table")
    if residual > GOOD:
        found.append(f"the table misses the robot by {residual:.2g} m or rad")
    return found
