"""The small problems that inverse kinematics in closed form is made of. Angles in rad, vectors of 3 floats."""

from __future__ import annotations

from math import acos, atan2, cos, hypot, pi, sin

import numpy as np

Vector = tuple[float, float, float]
Row = tuple[float, float]
Pair = tuple[float, float, bool]  # two angles, and whether one of them was free and is the seed's

SLACK = 1e-3  # how far over 1 a cosine may come out and count as 1: what is then no solution fails its verification
VOID = 1e-10  # what a coefficient must exceed to say anything, all being of order 1
DEPENDENT = 1e-9  # ratio of singular values below which two rows are one
DOUBTFUL = 1e-3  # ratio below which they are tried as one, too


def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def minus(a: Vector, b: Vector) -> Vector:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def size(a: Vector) -> float:
    return hypot(*a)


def unit(a: Vector) -> Vector:
    s = 1.0 / hypot(*a)
    return (a[0] * s, a[1] * s, a[2] * s)


def split(axis: Vector, v: Vector) -> tuple[Vector, Vector, Vector]:
    """v turned by t about the unit vector `axis` is along + across cos t + beside sin t -> (along, across, beside)."""
    d = dot(axis, v)
    along = (axis[0] * d, axis[1] * d, axis[2] * d)
    return along, minus(v, along), cross(axis, v)


def turn(axis: Vector, angle: float, v: Vector) -> Vector:
    """v turned by `angle` about the unit vector `axis`."""
    along, across, beside = split(axis, v)
    s, c = sin(angle), cos(angle)
    return (
        along[0] + across[0] * c + beside[0] * s,
        along[1] + across[1] * c + beside[1] * s,
        along[2] + across[2] * c + beside[2] * s,
    )


def angle_between(axis: Vector, a: Vector, b: Vector) -> float | None:
    """The turn about the unit vector `axis` that brings a over b, seen along it; None if either lies on the axis."""
    _, across, beside = split(axis, a)
    there = split(axis, b)[1]
    if min(size(across), size(there)) < VOID:
        return None
    return atan2(dot(beside, there), dot(across, there))


def angles(a: float, b: float, c: float) -> list[float]:
    """All t with a cos t + b sin t = c: two, or none. (a, b) must not be void."""
    r = hypot(a, b)
    if abs(c) > r * (1.0 + SLACK):
        return []
    middle, half = atan2(b, a), acos(max(-1.0, min(1.0, c / r)))
    return [middle + half, middle - half]


def pairs(M: tuple[Row, Row], N: tuple[Row, Row], h: Row, seed: Row) -> list[Pair]:
    """All (s, t) with M (cos s, sin s) = N (cos t, sin t) + h, up to four. An angle that is free is the seed's.

    Where M has two independent rows, (cos s, sin s) is linear in (cos t, sin t), and its length of 1 is an equation
    of the fourth degree in exp(it). Where it has one, that row's other half fixes t alone, and then the row gives s.
    """
    scale = [max(hypot(*m), hypot(*n)) for m, n in zip(M, N, strict=True)]
    scale = [s if s > VOID else 1.0 for s in scale]
    M = ((M[0][0] / scale[0], M[0][1] / scale[0]), (M[1][0] / scale[1], M[1][1] / scale[1]))
    N = ((N[0][0] / scale[0], N[0][1] / scale[0]), (N[1][0] / scale[1], N[1][1] / scale[1]))
    h = (h[0] / scale[0], h[1] / scale[1])
    swapped, back = (seed[1], seed[0]), (-h[0], -h[1])
    of_M, of_N = _independence(M), _independence(N)
    if of_M == 0.0 and of_N == 0.0:
        return []
    if of_M == 0.0:
        return [(s, t, True) for t, s, _ in _second_free(N, back, swapped)]
    if of_N == 0.0:
        return _second_free(M, h, seed)
    found: list[Pair] = []
    if of_M < DOUBTFUL:
        found += _one_row(M, N, h, seed)
    if of_N < DOUBTFUL and not of_M < DEPENDENT:
        found += [(s, t, free) for t, s, free in _one_row(N, M, back, swapped)]
    if of_M >= DEPENDENT and of_N >= DEPENDENT:
        if of_M >= of_N:
            found += _fourth_degree(M, N, h)
        else:
            found += [(s, t, free) for t, s, free in _fourth_degree(N, M, back)]
    return found


def _independence(M: tuple[Row, Row]) -> float:
    """The smaller singular value over the larger, about. 0 for a void matrix alone; rows that are multiples: nearly."""
    (a, b), (c, d) = M
    size = a * a + b * b + c * c + d * d
    return 0.0 if size < VOID * VOID else max(abs(a * d - b * c) / size, 1e-30)


def _second_free(M: tuple[Row, Row], h: Row, seed: Row) -> list[Pair]:
    """M (cos s, sin s) = h, whatever t."""
    (a, b), (c, d) = M
    if _independence(M) > DOUBTFUL:
        det = a * d - b * c
        return [(atan2((a * h[1] - c * h[0]) / det, (h[0] * d - h[1] * b) / det), seed[1], True)]
    row, value = max(((hypot(*m), m), v) for m, v in zip(M, h, strict=True))
    return [(s, seed[1], True) for s in angles(*row[1], value)]


def _one_row(M: tuple[Row, Row], N: tuple[Row, Row], h: Row, seed: Row) -> list[Pair]:
    """As `pairs`, M's rows being multiples of one."""
    i = 0 if hypot(*M[0]) >= hypot(*M[1]) else 1
    j = 1 - i
    k = (M[i][0] * M[j][0] + M[i][1] * M[j][1]) / (M[i][0] ** 2 + M[i][1] ** 2)
    a, b, c = N[j][0] - k * N[i][0], N[j][1] - k * N[i][1], k * h[i] - h[j]
    free = hypot(a, b) < VOID
    ts = [seed[1]] if free else angles(a, b, c)
    return [(s, t, free) for t in ts for s in angles(*M[i], N[i][0] * cos(t) + N[i][1] * sin(t) + h[i])]


def _fourth_degree(M: tuple[Row, Row], N: tuple[Row, Row], h: Row) -> list[Pair]:
    """As `pairs`, M having an inverse. The roots that are angles lie on the unit circle."""
    (a, b), (c, d) = M
    det = a * d - b * c
    inverse = ((d / det, -b / det), (-c / det, a / det))
    (p, q), (r, s) = [tuple(i[0] * N[0][k] + i[1] * N[1][k] for k in range(2)) for i in inverse]
    u, v = [i[0] * h[0] + i[1] * h[1] for i in inverse]
    # |(p q; r s) (cos t, sin t) + (u, v)|^2 = 1, in z = exp(it)
    A, B, C = p * p + r * r, p * q + r * s, q * q + s * s
    D, E, F = p * u + r * v, q * u + s * v, u * u + v * v - 1.0
    z4, z3 = 0.25 * (A - C) - 0.5j * B, D - 1j * E
    roots = np.roots([z4, z3, 0.5 * (A + C) + F, z3.conjugate(), z4.conjugate()])
    found: list[Pair] = []
    for z in roots:
        if abs(abs(z) - 1.0) < SLACK:
            x, y = z.real / abs(z), z.imag / abs(z)
            found.append((atan2(r * x + s * y + v, p * x + q * y + u), float(np.angle(z)), False))
    return found


def wrapped(angle: float) -> float:
    """Into [-pi, pi], by whole turns."""
    return angle - 2.0 * pi * round(angle / (2.0 * pi))
