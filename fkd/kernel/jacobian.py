"""The geometric Jacobian, written once over scalars of any kind, in one program with the pose.

Rows: linear, then angular velocity of the tip per unit of each value of q, in the axes of the base, reference point
at the tip's origin. Followers are folded into their source's column.
Source: Siciliano et al., Robotics: Modelling, Planning and Control, 3.1; for floating joints
omega = 2 vec(dq q*) / |q|^2 with q* the conjugate.
"""

from __future__ import annotations

from collections.abc import Sequence

from fkd.kernel.motion import Edge, Frame, Tree, apply, compose, invert, joined, parted, plane, product, walk
from fkd.kernel.scalar import Ref

Twist = tuple[Frame, Frame]  # linear velocity of the joint's origin and angular velocity, per unit of one value of q


def cross(a: Frame, b: Frame) -> list[Ref]:
    """Cross product of two vectors of 3."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def pose_and_jacobian(tree: Tree, q: Sequence[Ref], link: int, base: int) -> tuple[Frame, list[list[Ref]]]:
    """T_base_link as 12 scalars, and the Jacobian as 6 rows of `tree.width` scalars."""
    way = walk(tree, q, [link], base)
    tip = way.placed[link]
    columns: list[list[Ref]] = [[0.0] * 6 for _ in range(tree.width)]
    for end, sign in ((link, 1.0), (base, -1.0)):  # a joint on the base's branch moves the tip backwards
        for place in way.routes[end]:
            edge = tree.edges[place]
            if edge is None or edge.kind == "fixed":
                continue
            at = way.placed[place]
            R_joint = product(way.placed[edge.parent].rotation, parted(edge.T_parent_joint)[0])
            arm = [a - b for a, b in zip(tip.position, at.position, strict=True)]
            for k, (linear, angular) in enumerate(twists(edge, q)):
                w = apply(R_joint, angular)
                v = [a + b for a, b in zip(apply(R_joint, linear), cross(w, arm), strict=True)]
                column = columns[edge.index + k]
                for i, x in enumerate((*v, *w)):
                    column[i] = column[i] + sign * edge.ratio * x
    T_start_tip = joined(tip.rotation, tip.position)
    if base == way.start:
        return T_start_tip, [[c[i] for c in columns] for i in range(6)]
    T_base_start = invert(joined(way.placed[base].rotation, way.placed[base].position))
    R_base_start = parted(T_base_start)[0]
    turned = [[*apply(R_base_start, c[:3]), *apply(R_base_start, c[3:])] for c in columns]
    return compose(T_base_start, T_start_tip), [[c[i] for c in turned] for i in range(6)]


def seen_from(T: Frame, rows: Sequence[Sequence[Ref]], tool: Frame | None, in_tip: bool) -> list[list[Ref]]:
    """A Jacobian with its reference point at the tool, and its axes those of the base, or of the tip.

    T: T_base_link, 12 or 16 scalars; rows: 6 x n, at the link, in the base; tool: T_link_tool likewise, or None; in_tip:
    in the axes of the tool, or of the link where there is none.
    """
    columns = [[row[k] for row in rows] for k in range(len(rows[0]))]
    R_base_tip = [T[i] for i in (0, 1, 2, 4, 5, 6, 8, 9, 10)]
    if tool is not None:
        arm = apply(R_base_tip, (tool[3], tool[7], tool[11]))
        columns = [[*(a + b for a, b in zip(c[:3], cross(c[3:], arm), strict=True)), *c[3:]] for c in columns]
        R_base_tip = product(R_base_tip, [tool[i] for i in (0, 1, 2, 4, 5, 6, 8, 9, 10)])
    if in_tip:
        R_tip_base = [R_base_tip[i] for i in (0, 3, 6, 1, 4, 7, 2, 5, 8)]
        columns = [[*apply(R_tip_base, c[:3]), *apply(R_tip_base, c[3:])] for c in columns]
    return [[c[i] for c in columns] for i in range(6)]


def twists(edge: Edge, q: Sequence[Ref]) -> list[Twist]:
    """A joint's twists per unit of each of its values, in the joint frame, before the mimic ratio."""
    still = (0.0, 0.0, 0.0)
    if edge.kind in ("revolute", "continuous"):
        return [(still, edge.axis)]
    if edge.kind == "prismatic":
        return [(edge.axis, still)]
    if edge.kind == "planar":
        u, v = plane(edge.axis)
        return [(u, still), (v, still), (still, edge.axis)]
    x, y, z, w = q[edge.index + 3 : edge.index + 7]
    k = 2.0 / (x * x + y * y + z * z + w * w)
    slides: list[Twist] = [((1.0, 0.0, 0.0), still), ((0.0, 1.0, 0.0), still), ((0.0, 0.0, 1.0), still)]
    turns = ((w, z, -y), (-z, w, x), (y, -x, w), (-x, -y, -z))
    return slides + [(still, [k * c for c in turn]) for turn in turns]
