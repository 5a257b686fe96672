"""Limits of the values of q, and the configuration in the middle of them, as inverse kinematics takes them from a model."""

from __future__ import annotations

from math import inf

from fkd.configuration import NEUTRAL
from fkd.kernel.ik_column import WIDE
from fkd.model import Joint, Model


def limits(model: Model) -> tuple[list[float], list[float]]:
    """Lower and upper limit of each value of q, rad|m; infinite where there is none.

    Reversed limits are sorted. Both 0, which is what URDF puts where a file gives none, is none; continuous, planar and
    floating joints have none. A follower's limits hold for its source too, through ratio and bias, unless they leave
    nothing of the source's own range: then the file contradicts itself, and the source's own word counts.
    """
    lower, upper = [-inf] * model.dof, [inf] * model.dof
    for joint in model.independent:
        if joint.width == 1:
            lower[joint.index], upper[joint.index] = _own(joint)
    for joint in model.joints:
        if joint.mimic and joint.ratio:
            ends = sorted((end - joint.bias) / joint.ratio for end in _own(joint))
            low, high = max(lower[joint.index], ends[0]), min(upper[joint.index], ends[1])
            if low < high:
                lower[joint.index], upper[joint.index] = low, high
    return lower, upper


def _own(joint: Joint) -> tuple[float, float]:
    """What the file says of this joint alone."""
    if joint.type not in ("revolute", "prismatic") or joint.limits is None:
        return -inf, inf
    lower, upper = joint.limits.lower, joint.limits.upper
    if lower is None or upper is None or lower == upper == 0.0:
        return -inf, inf
    return min(lower, upper), max(lower, upper)


def middle(model: Model, lower: list[float], upper: list[float]) -> list[float]:
    """The middle of the limits (rad|m, all of q): 0, or the limit next to it, where they are infinite or so wide that
    they only mean "none"; for floating joints no displacement."""
    q = [0.5 * (low + high) if low >= -WIDE and high <= WIDE else min(max(0.0, low), high)
         for low, high in zip(lower, upper, strict=True)]  # fmt: skip
    for joint in model.independent:
        if joint.type == "floating":
            q[joint.index : joint.index + 7] = NEUTRAL[7]
    return q
