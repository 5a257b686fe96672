"""A serial chain's axes -> exact Denavit-Hartenberg rows, standard and modified, with constant base and tool.

One construction serves both conventions. Line 0 is the base's z axis, lines 1 to n are the joints' axes at q = 0,
line n+1 is the tip's z axis. Between neighbours lies a common normal: its direction x, length a, twist alpha and its
two feet. Row i of the standard table turns from normal i-1 to normal i and then crosses normal i; row i of the
modified table crosses normal i-1 and then turns to normal i.
Source: Denavit and Hartenberg 1955; Craig, Introduction to Robotics, 3.4 (modified).

Extended precision: axes parallel to within a milliradian put the feet hundreds of metres away, and the digits lost
there are those that make the table exact. Nearer still, the table's own doubles run out of digits: of what is lost by
leaving out the angle, and by rounding feet so far away, each pair of axes is given the lesser.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXACTLY = 1e-12  # rad from parallel: below, axes are, and the angle is noise
PARALLEL = 1e-6  # rad: below, they are taken as parallel where that loses less
DIGITS = 2.0**-52  # of a length, lost when it is added to and taken away again
NEARLY = 1e-3  # rad from parallel: then the common normal may be a thousand times as far away as the axes are apart

Vector = NDArray[np.longdouble]
Extended = np.longdouble


@dataclass(frozen=True)
class Line:
    """An axis: a point on it and its unit direction, in the base at q = 0."""

    point: Vector
    direction: Vector


@dataclass(frozen=True)
class Normal:
    """The common normal of two neighbouring lines: direction, length (m), twist (rad), feet on both."""

    x: Vector
    a: Any  # Extended
    alpha: Any  # Extended
    near: Vector
    far: Vector
    case: str  # skew, intersecting, parallel, collinear


@dataclass(frozen=True)
class Chain:
    """Rows (a, alpha, d, theta) in m and rad at q = 0; T_base_0 and T_n_tip as 12 numbers; a case name a row."""

    rows: tuple[tuple[float, float, float, float], ...]
    base: tuple[float, ...]
    tool: tuple[float, ...]
    cases: tuple[str, ...]


def vector(values: Sequence[float]) -> Vector:
    return np.array(values, dtype=Extended)


def line(point: Sequence[float], direction: Sequence[float]) -> Line:
    """A line from plain numbers; the direction is normalised in extended precision."""
    z = vector(direction)
    return Line(vector(point), z / np.sqrt(z @ z))


def extract(axes: Sequence[Line], T_base_tip: Sequence[float], convention: str) -> Generator[None, None, Chain]:
    """The table of a chain, in a step for each pair of neighbours.

    axes: the joints' lines, base to tip; T_base_tip: 12 numbers at q = 0; convention: "standard" or "modified".
    """
    T = np.array(T_base_tip, dtype=Extended).reshape(3, 4)
    lines = with_ends(axes, T_base_tip)
    first, last = lines[0], lines[-1]
    normals: list[Normal] = []
    foot, x = first.point, vector((1.0, 0.0, 0.0))
    for k, (here, there) in enumerate(pairwise(lines)):
        end = (last.point, T[:, 0]) if k == len(axes) else None
        found = normal(here, there, foot, x, end)
        normals.append(found)
        far_away = found.case in ("skew", "intersecting") and abs(np.sin(found.alpha)) < NEARLY
        foot, x = there.point if far_away else found.far, found.x
        yield
    turns = []
    for k in range(1, len(normals)):
        z = lines[k].direction
        before, after = normals[k - 1], normals[k]
        theta = np.arctan2(cross(before.x, after.x) @ z, before.x @ after.x)
        turns.append((theta, (after.near - before.far) @ z))
    if convention == "standard":
        crossed, start, stop = normals[1:], (normals[0], 1, "far"), (normals[-1], len(axes) + 1, "far")
    else:
        crossed, start, stop = normals[:-1], (normals[0], 0, "near"), (normals[-1], len(axes), "near")
    rows = tuple(
        (clean(n.a), clean(n.alpha), clean(d), clean(theta)) for n, (theta, d) in zip(crossed, turns, strict=True)
    )
    base = frame(start[0].x, lines[start[1]].direction, getattr(start[0], start[2]))
    end_frame = frame(stop[0].x, lines[stop[1]].direction, getattr(stop[0], stop[2]))
    tool = np.concatenate([end_frame[:, :3].T @ T[:, :3], (end_frame[:, :3].T @ (T[:, 3] - end_frame[:, 3]))[:, None]], axis=1)
    flat = [tuple(clean(v) for v in M.ravel()) for M in (base, tool)]
    return Chain(rows, flat[0], flat[1], tuple(n.case for n in crossed))


def with_ends(axes: Sequence[Line], T_base_tip: Sequence[float]) -> list[Line]:
    """The base's z axis, the joints' axes, the tip's z axis.

    The ends may be chosen: base and tool hold whatever is between them and the frames that they stand for. So where they
    are nearly parallel to their neighbours, they are made so.
    """
    T = np.array(T_base_tip, dtype=Extended).reshape(3, 4)
    first = line((0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    last = Line(T[:, 3], T[:, 2] / np.sqrt(T[:, 2] @ T[:, 2]))
    return [_aligned(first, axes[0]), *axes, _aligned(last, axes[-1])] if axes else [first, last]


def _aligned(end: Line, axis: Line) -> Line:
    """An end's line, in the direction of its neighbour where that is nearly its own."""
    c = turned(end.direction, axis.direction)
    if c @ c > NEARLY * NEARLY:
        return end
    return Line(end.point, axis.direction if end.direction @ axis.direction > 0 else -axis.direction)


def sines(lines: Sequence[Line]) -> list[float]:
    """The sine of the angle between each two neighbours: how far from parallel they are."""
    return [float(np.sqrt(c @ c)) for c in (turned(a.direction, b.direction) for a, b in pairwise(lines))]


def normal(here: Line, there: Line, foot: Vector, x_before: Vector, end: tuple[Vector, Vector] | None) -> Normal:
    """The common normal of two lines.

    foot: where the last normal met `here`, or the joint itself where that is far away; x_before: the last direction.
    Where the lines leave a choice: the offset along parallel axes is 0, collinear axes keep x, and x points forwards, so
    that theta stays small. end: the tip's origin and x direction, which settle the choice after the last joint so that
    the tool vanishes where it can.
    """
    z, w = here.direction, there.direction
    c = turned(z, w)
    sine = np.sqrt(c @ c)
    skew = sine > EXACTLY
    if skew:
        along = cross(there.point - here.point, w) @ c / (sine * sine)  # from here.point to the foot
        skew = sine > PARALLEL or sine > DIGITS * abs(along)
    if not skew:
        along = ((end[0] if end is not None else foot) - here.point) @ z
    near = here.point + along * z
    far = there.point + ((near - there.point) @ w) * w
    a: Any  # an extended scalar, for which NumPy's versions have different types
    if skew:
        x = c / sine
        a = (far - near) @ x
        case = "skew" if abs(a) > 1e-12 else "intersecting"
    else:
        across = far - near
        across = across - (across @ z) * z
        a = np.sqrt(across @ across)
        case = "parallel" if a > 1e-12 else "collinear"
        if case == "parallel":
            x = across / a
        else:
            x, a = (end[1] if end is not None else x_before), Extended(0)
            x = x - (x @ z) * z
            x = x / np.sqrt(x @ x)
    if x @ x_before < -1e-9 and not (case == "collinear" and end is not None):
        x, a = -x, -a
    if not skew:
        return Normal(x, a, Extended(0.0 if z @ w > 0 else math.pi), near, far, case)
    return Normal(x, a, np.arctan2(c @ x, z @ w), near, far, case)


def frame(x: Vector, z: Vector, origin: Vector) -> Vector:
    """A frame from its x and z directions -> (3, 4); x is made exactly normal to z."""
    x = x - (x @ z) * z
    x = x / np.sqrt(x @ x)
    return np.stack([x, cross(z, x), z, origin], axis=1)


def turned(z: Vector, w: Vector) -> Vector:
    """z x w of two directions, to the last digit however near to parallel they are: their difference is exact."""
    return cross(z, w - z if z @ w > 0 else w + z)


def cross(a: Vector, b: Vector) -> Vector:
    """The vector product; NumPy's own takes fifteen times as long for one."""
    (ax, ay, az), (bx, by, bz) = a, b
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def clean(value: Any) -> float:
    """To double, without the noise of right angles."""
    x = float(value)
    return 0.0 if abs(x) < 1e-15 else x


def product(convention: str, row: Sequence[float], value_theta: float = 0.0, value_d: float = 0.0) -> NDArray[np.float64]:
    """One row's transform (4, 4), with the joint's value added to theta (rad) or d (m)."""
    a, alpha, d, theta = row
    theta, d = theta + value_theta, d + value_d
    ct, st, ca, sa = math.cos(theta), math.sin(theta), math.cos(alpha), math.sin(alpha)
    if convention == "standard":  # Rz(theta) Tz(d) Tx(a) Rx(alpha)
        return np.array([
            [ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0],
        ])  # fmt: skip
    return np.array([  # Rx(alpha) Tx(a) Rz(theta) Tz(d)
        [ct, -st, 0.0, a], [st * ca, ct * ca, -sa, -sa * d], [st * sa, ct * sa, ca, ca * d], [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip
