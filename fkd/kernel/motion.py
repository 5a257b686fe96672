"""The kinematics, written once over scalars of any kind: floats give the slow, obvious reference, symbols a trace.

A robot reaches this module as a `Tree`: places instead of names. Frames are 12 scalars, the upper 3x4 part of a
homogeneous matrix, row-major; `T_a_b` takes coordinates in b into a.
Source: the URDF specification, <joint>; Rodrigues' rotation formula for revolute joints; for floating joints the
rotation matrix of a quaternion (x, y, z, w) of any non-zero norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fkd.kernel.scalar import Ref, cos, sin

Frame = Sequence[Ref]
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


def compose(A: Frame, B: Frame) -> list[Ref]:
    """T_a_b, T_b_c -> T_a_c."""
    a00, a01, a02, ax, a10, a11, a12, ay, a20, a21, a22, az = A
    b00, b01, b02, bx, b10, b11, b12, by, b20, b21, b22, bz = B
    return [
        a00 * b00 + a01 * b10 + a02 * b20, a00 * b01 + a01 * b11 + a02 * b21,
        a00 * b02 + a01 * b12 + a02 * b22, a00 * bx + a01 * by + a02 * bz + ax,
        a10 * b00 + a11 * b10 + a12 * b20, a10 * b01 + a11 * b11 + a12 * b21,
        a10 * b02 + a11 * b12 + a12 * b22, a10 * bx + a11 * by + a12 * bz + ay,
        a20 * b00 + a21 * b10 + a22 * b20, a20 * b01 + a21 * b11 + a22 * b21,
        a20 * b02 + a21 * b12 + a22 * b22, a20 * bx + a21 * by + a22 * bz + az,
    ]  # fmt: skip


def invert(T: Frame) -> list[Ref]:
    """T_a_b -> T_b_a."""
    r00, r01, r02, x, r10, r11, r12, y, r20, r21, r22, z = T
    return [
        r00, r10, r20, -(r00 * x + r10 * y + r20 * z),
        r01, r11, r21, -(r01 * x + r11 * y + r21 * z),
        r02, r12, r22, -(r02 * x + r12 * y + r22 * z),
    ]  # fmt: skip


def rotate(axis: Sequence[float], angle: Ref) -> list[Ref]:
    """Rotation by `angle` (rad) about the unit vector `axis` -> 9 scalars row-major (Rodrigues)."""
    x, y, z = axis
    s, c = sin(angle), cos(angle)
    if abs(x) + abs(y) + abs(z) == 1.0:  # along a coordinate axis: the general form would leave (1 - c) + c behind
        s = s * (x + y + z)
        if x:
            return [1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c]
        if y:
            return [c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c]
        return [c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0]
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
    # 1 / (1 + z), written so that nothing cancels near z = -1
    k = 1.0 / (1.0 + z) if z >= 0.0 else (1.0 - z) / (x * x + y * y)
    return (1.0 - k * x * x, -k * x * y, -x), (-k * x * y, 1.0 - k * y * y, -y)


def motion(edge: Edge, q: Sequence[Ref]) -> Frame:
    """What a joint adds at q, in its own frame. Lengths in m, angles in rad."""
    if edge.kind == "fixed":
        return IDENTITY
    value = q[edge.index] * edge.ratio + edge.bias
    if edge.kind in ("revolute", "continuous"):
        r = rotate(edge.axis, value)
        return [*r[0:3], 0.0, *r[3:6], 0.0, *r[6:9], 0.0]
    if edge.kind == "prismatic":
        x, y, z = (a * value for a in edge.axis)
        return [1.0, 0.0, 0.0, x, 0.0, 1.0, 0.0, y, 0.0, 0.0, 1.0, z]
    if edge.kind == "planar":
        along_u, along_v, theta = q[edge.index : edge.index + 3]
        u, v = plane(edge.axis)
        r = rotate(edge.axis, theta)
        x, y, z = (along_u * a + along_v * b for a, b in zip(u, v, strict=True))
        return [*r[0:3], x, *r[3:6], y, *r[6:9], z]
    if edge.kind == "floating":
        return floating(q[edge.index : edge.index + 7])
    raise ValueError(f"no motion for joint kind {edge.kind!r}")


def floating(values: Sequence[Ref]) -> Frame:
    """(x, y, z, qx, qy, qz, qw) -> frame. The quaternion need not be unit; a zero norm divides by zero."""
    px, py, pz, x, y, z, w = values
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return [
        1.0 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w), px,
        s * (x * y + z * w), 1.0 - s * (x * x + z * z), s * (y * z - x * w), py,
        s * (x * z - y * w), s * (y * z + x * w), 1.0 - s * (x * x + y * y), pz,
    ]  # fmt: skip


def route(tree: Tree, link: int) -> list[int]:
    """The link places from the root to `link`, both included."""
    path = [link]
    while (edge := tree.edges[path[-1]]) is not None:
        path.append(edge.parent)
    return path[::-1]


def forward(tree: Tree, q: Sequence[Ref], links: Sequence[int], base: int) -> list[Frame]:
    """T_base_link for each of `links` (places) at q: (width,) -> frames of 12 scalars.

    The walk starts at the last link that base and all targets share, so that joints which move all of them alike
    do not appear in the result at all.
    """
    routes = {link: route(tree, link) for link in (*links, base)}
    shared = routes[base]
    for path in routes.values():
        shared = [a for a, b in zip(shared, path, strict=False) if a == b]
    start = shared[-1]
    T_start: dict[int, Frame] = {start: IDENTITY}  # T_start_link for every link on the way
    for path in routes.values():
        for link in path[len(shared) :]:
            edge = tree.edges[link]
            if link in T_start or edge is None:
                continue
            T_start[link] = compose(compose(T_start[edge.parent], edge.T_parent_joint), motion(edge, q))
    if base == start:
        return [T_start[link] for link in links]
    T_base_start = invert(T_start[base])
    return [IDENTITY if link == base else compose(T_base_start, T_start[link]) for link in links]
