"""The kinematics, written once over scalars of any kind: floats give the slow, obvious reference, symbols a trace.

A robot reaches this module as a `Tree`: places instead of names. Frames are 12 scalars, the upper 3x4 part of a
homogeneous matrix, row-major, rotations 9, positions 3; `T_a_b` takes coordinates in b into a.
Source: the URDF specification, <joint>; Rodrigues' rotation formula for revolute joints; for floating joints the
rotation matrix of a quaternion (x, y, z, w) of any non-zero norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot

from fkd.kernel.scalar import Ref, cos, sin

Frame = Sequence[Ref]
EYE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
ORIGIN = (0.0, 0.0, 0.0)
IDENTITY: Frame = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Edge:
    """One joint: from link place `parent`, moved by q[index ...] as `kind` says. A mimic chain is in ratio and bias."""

    kind: str
    parent: int
    T_parent_joint: tuple[float, ...]
    axis: tuple[float, float, float]
    index: int
    ratio: float
    bias: float


@dataclass(frozen=True, slots=True)
class Tree:
    """`edges[k]` carries link place k; the root's edge is None. Any order, no rings."""

    edges: tuple[Edge | None, ...]
    width: int  # values in q


def product(A: Frame, B: Frame) -> list[Ref]:
    """Two rotations of 9 scalars -> their product."""
    a00, a01, a02, a10, a11, a12, a20, a21, a22 = A
    b00, b01, b02, b10, b11, b12, b20, b21, b22 = B
    return [
        a00 * b00 + a01 * b10 + a02 * b20, a00 * b01 + a01 * b11 + a02 * b21, a00 * b02 + a01 * b12 + a02 * b22,
        a10 * b00 + a11 * b10 + a12 * b20, a10 * b01 + a11 * b11 + a12 * b21, a10 * b02 + a11 * b12 + a12 * b22,
        a20 * b00 + a21 * b10 + a22 * b20, a20 * b01 + a21 * b11 + a22 * b21, a20 * b02 + a21 * b12 + a22 * b22,
    ]  # fmt: skip


def apply(R: Frame, v: Frame) -> list[Ref]:
    """A rotation of 9 scalars and a vector of 3 -> the rotated vector."""
    x, y, z = v
    return [R[0] * x + R[1] * y + R[2] * z, R[3] * x + R[4] * y + R[5] * z, R[6] * x + R[7] * y + R[8] * z]


def joined(R: Frame, p: Frame) -> list[Ref]:
    """Rotation of 9 and position of 3 -> frame of 12."""
    return [R[0], R[1], R[2], p[0], R[3], R[4], R[5], p[1], R[6], R[7], R[8], p[2]]


def parted(T: Frame) -> tuple[Frame, Frame]:
    """Frame of 12 -> rotation of 9, position of 3."""
    return (T[0], T[1], T[2], T[4], T[5], T[6], T[8], T[9], T[10]), (T[3], T[7], T[11])


def compose(A: Frame, B: Frame) -> list[Ref]:
    """T_a_b, T_b_c -> T_a_c."""
    (R, p), (S, t) = parted(A), parted(B)
    moved = apply(R, t)
    return joined(product(R, S), [moved[0] + p[0], moved[1] + p[1], moved[2] + p[2]])


def invert(T: Frame) -> list[Ref]:
    """T_a_b -> T_b_a."""
    r00, r01, r02, x, r10, r11, r12, y, r20, r21, r22, z = T
    return [
        r00, r10, r20, -(r00 * x + r10 * y + r20 * z),
        r01, r11, r21, -(r01 * x + r11 * y + r21 * z),
        r02, r12, r22, -(r02 * x + r12 * y + r22 * z),
    ]  # fmt: skip


def coordinate(axis: Sequence[float]) -> int | None:
    """Which coordinate axis a unit vector lies along (either way), if it does so exactly."""
    along = [k for k, a in enumerate(axis) if a != 0.0]
    return along[0] if len(along) == 1 else None


def rotate(axis: Sequence[float], s: Ref, c: Ref) -> list[Ref]:
    """Rotation about the unit vector `axis` by the angle with sine s and cosine c -> 9 scalars (Rodrigues)."""
    k = coordinate(axis)
    if k is not None:  # the general form would leave (1 - c) + c behind
        s = s * axis[k]
        if k == 0:
            return [1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c]
        if k == 1:
            return [c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c]
        return [c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0]
    x, y, z = axis
    v = 1.0 - c
    return [
        c + v * (x * x), v * (x * y) - s * z, v * (x * z) + s * y,
        v * (x * y) + s * z, c + v * (y * y), v * (y * z) - s * x,
        v * (x * z) - s * y, v * (y * z) + s * x, c + v * (z * z),
    ]  # fmt: skip


def plane(normal: Sequence[float]) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The in-plane unit vectors u, v of a planar joint: +x and +y after the smallest rotation of +z to `normal`.

    For normal = -z, where the smallest rotation is not unique, half a turn about x.
    """
    x, y, z = normal
    if x == 0.0 and y == 0.0:
        return (1.0, 0.0, 0.0), (0.0, 1.0 if z > 0.0 else -1.0, 0.0)
    across = hypot(x, y)  # x, y may be so small that their squares vanish
    cx, cy, w = x / across, y / across, 1.0 - z
    return (1.0 - w * cx * cx, -w * cx * cy, -x), (-w * cx * cy, 1.0 - w * cy * cy, -y)


def floating(values: Sequence[Ref]) -> tuple[Frame, Frame]:
    """(x, y, z, qx, qy, qz, qw) -> rotation, position. Any non-zero norm will do; a zero norm divides by zero.

    The diagonal is written with half the squared norm in place of 1, so that a norm beyond the range of a double gives
    NaN, which every caller looks for, and not the identity.
    """
    px, py, pz, x, y, z, w = values
    norm2 = x * x + y * y + z * z + w * w
    s, half = 2.0 / norm2, 0.5 * norm2
    return [
        s * (half - (y * y + z * z)), s * (x * y - z * w), s * (x * z + y * w),
        s * (x * y + z * w), s * (half - (x * x + z * z)), s * (y * z - x * w),
        s * (x * z - y * w), s * (y * z + x * w), s * (half - (x * x + y * y)),
    ], (px, py, pz)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a link is: R = `before` * turn(axis, s, c) and p, in the frame that the walk started from.

    The last turn is kept apart, so that a further turn about the same axis adds to it instead of multiplying
    matrices: sin and cos of a sum cost six operations. `turns` counts those in `before`.
    """

    rotation: Frame
    position: Frame
    before: Frame
    axis: tuple[float, float, float] | None = None
    s: Ref = 0.0
    c: Ref = 1.0
    turns: int = 0


START = Placed(EYE, ORIGIN, EYE)


def step(at: Placed, edge: Edge, q: Sequence[Ref]) -> Placed:
    """From a joint's parent link to its child. Lengths in m, angles in rad."""
    R_origin, p_origin = parted(edge.T_parent_joint)
    moved = apply(at.rotation, p_origin)
    position: Frame = [moved[0] + at.position[0], moved[1] + at.position[1], moved[2] + at.position[2]]
    if edge.kind in ("revolute", "continuous"):
        value = q[edge.index] * edge.ratio + edge.bias
        return turned(at, R_origin, position, edge.axis, sin(value), cos(value))
    if edge.kind in ("fixed", "prismatic") and tuple(R_origin) == EYE:
        placed = replace(at, position=position)
    else:
        rotation = product(at.rotation, R_origin)
        placed = Placed(rotation, position, rotation, turns=at.turns + (at.axis is not None))
    if edge.kind == "fixed":
        return placed
    if edge.kind == "prismatic":
        value = q[edge.index] * edge.ratio + edge.bias
        return slid(placed, [a * value for a in edge.axis])
    if edge.kind == "planar":
        along_u, along_v, theta = q[edge.index : edge.index + 3]
        u, v = plane(edge.axis)
        placed = slid(placed, [along_u * a + along_v * b for a, b in zip(u, v, strict=True)])
        return turned(placed, EYE, placed.position, edge.axis, sin(theta), cos(theta))
    if edge.kind == "floating":
        R, p = floating(q[edge.index : edge.index + 7])
        placed = slid(placed, p)
        rotation = product(placed.rotation, R)
        return Placed(rotation, placed.position, rotation, turns=placed.turns + 1)
    raise ValueError(f"no motion for joint kind {edge.kind!r}")


def slid(at: Placed, by: Frame) -> Placed:
    """Moved by a vector in the link's own frame."""
    d = apply(at.rotation, by)
    p = at.position
    return replace(at, position=[p[0] + d[0], p[1] + d[1], p[2] + d[2]])


def turned(at: Placed, R_origin: Frame, position: Frame, axis: tuple[float, float, float], s: Ref, c: Ref) -> Placed:
    """Turned about `axis` of a frame that R_origin takes into the link's own.

    Where R_origin is itself a turn about the axis, it joins the joint's own. Where the link was turned about the same
    axis last, the two join as well, unless much has turned before: then the sum would cost more than it saves.
    """
    offset = about(axis, R_origin)
    if offset is not None:
        s, c = added(s, c, *offset)
        if at.axis == axis and at.turns <= 1:
            s, c = added(at.s, at.c, s, c)
            return Placed(product(at.before, rotate(axis, s, c)), position, at.before, axis, s, c, at.turns)
        before = at.rotation
    else:
        before = product(at.rotation, R_origin)
    turns = at.turns + (at.axis is not None)
    return Placed(product(before, rotate(axis, s, c)), position, before, axis, s, c, turns)


def added(s1: Ref, c1: Ref, s2: Ref, c2: Ref) -> tuple[Ref, Ref]:
    """Sine and cosine of the sum of two angles; exact to rounding however many turns the angles have."""
    return s1 * c2 + c1 * s2, c1 * c2 - s1 * s2


def about(axis: tuple[float, float, float], R: Frame) -> tuple[float, float] | None:
    """Sine and cosine of R's angle, if R (9 floats) is a turn about a coordinate `axis`; else None."""
    k = coordinate(axis)
    if tuple(R) == EYE:
        return 0.0, 1.0
    if k is None:
        return None
    i, j = (k + 1) % 3, (k + 2) % 3
    if R[4 * k] != 1.0 or any((R[3 * k + i], R[3 * k + j], R[3 * i + k], R[3 * j + k])):
        return None  # even 1e-9, beside which R's own 1 rounds to 1, is a lean of the axis
    return R[3 * j + i] * axis[k], R[3 * i + i]  # type: ignore[return-value]


def route(tree: Tree, link: int) -> list[int]:
    """The link places from the root to `link`, both included."""
    path = [link]
    while (edge := tree.edges[path[-1]]) is not None:
        path.append(edge.parent)
    return path[::-1]


@dataclass(frozen=True, slots=True)
class Walk:
    """All links between a base and its targets, placed in the frame of the last link that they all share.

    Joints above that link move base and targets alike, so they do not appear at all.
    """

    start: int
    placed: dict[int, Placed]
    routes: dict[int, list[int]]  # from start (not included) to each target and to the base


def walk(tree: Tree, q: Sequence[Ref], links: Sequence[int], base: int) -> Walk:
    """Place `links`, `base` and all between them."""
    routes = {link: route(tree, link) for link in (*links, base)}
    shared = routes[base]
    for path in routes.values():
        shared = [a for a, b in zip(shared, path, strict=False) if a == b]
    placed = {shared[-1]: START}
    routes = {link: path[len(shared) :] for link, path in routes.items()}
    for path in routes.values():
        for link in path:
            edge = tree.edges[link]
            if link not in placed and edge is not None:
                placed[link] = step(placed[edge.parent], edge, q)
    return Walk(shared[-1], placed, routes)


def forward(tree: Tree, q: Sequence[Ref], links: Sequence[int], base: int) -> list[Frame]:
    """T_base_link for each of `links` (places) at q: (width,) -> frames of 12 scalars."""
    way = walk(tree, q, links, base)
    T_start = {link: joined(way.placed[link].rotation, way.placed[link].position) for link in way.routes}
    if base == way.start:
        return [T_start[link] for link in links]
    T_base_start = invert(T_start[base])
    return [IDENTITY if link == base else compose(T_base_start, T_start[link]) for link in links]
