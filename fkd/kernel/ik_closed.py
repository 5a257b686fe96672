"""The closed forms of two kinds of six-axis arm, over axes in the pose q = 0: X = E1 E2 E3 E4 E5 E6, E_i the turn of
everything about axis i by q_i, X the motion that takes the tip from its pose at q = 0 to its target.

Either kind comes down to two equations that are linear in the cosine and sine of two of the angles. They give
candidates only: some solve the equations and not the problem, and the axes need not be quite what is assumed.
Source: Pieper 1968 for the wrist; after Elias and Wen 2022, arXiv:2211.05737, who take both apart into subproblems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan2, copysign, pi

import numpy as np

from fkd.kernel.ik_angles import (
    Vector,
    add,
    angle_between,
    angles,
    cross,
    dot,
    minus,
    pairs,
    size,
    split,
    turn,
    unit,
    wrapped,
)

AWAY = [k * 0.25 * pi for k in (0, 1, -1, 2, -2, 3, -3, 4)]  # from the seed, where a free angle is tried
APART = 1e-3  # sine of the angle between axes that must not be parallel, and lengths that must not vanish
SQUARE = 1e-6  # axes this near to a right angle have one: the sine of the angle between is then had without loss

Candidate = tuple[list[float], bool]  # six angles, and whether one of them was free and is the seed's
ClosedForm = Callable[["Motion", Sequence[float]], list[Candidate]]


@dataclass(frozen=True, slots=True)
class Axis:
    """A joint's axis at q = 0: unit direction, and a point on it."""

    along: Vector
    point: Vector


@dataclass(frozen=True, slots=True)
class Motion:
    """v -> rows v + shift."""

    rows: tuple[Vector, Vector, Vector]
    shift: Vector

    def turned(self, v: Vector) -> Vector:
        return (dot(self.rows[0], v), dot(self.rows[1], v), dot(self.rows[2], v))

    def moved(self, v: Vector) -> Vector:
        return add(self.turned(v), self.shift)

    def inverse(self) -> Motion:
        a, b, c = self.rows
        rows = ((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2]))
        x, y, z = Motion(rows, (0.0, 0.0, 0.0)).turned(self.shift)
        return Motion(rows, (-x, -y, -z))


def spherical_wrist(axes: Sequence[Axis]) -> tuple[float, ClosedForm] | None:
    """The closed form for axes 4, 5, 6 through one point, and by how much they miss it; None for a degenerate arm."""
    (k1, c1), (k2, c2), (k3, c3), (k4, _), (k5, _), (k6, _) = ((a.along, a.point) for a in axes)
    if size(cross(k4, k5)) < APART or size(cross(k5, k6)) < APART:
        return None
    W = _nearest_point(axes[3:])
    miss = max(size(cross(a.along, minus(W, a.point))) for a in axes[3:])

    # elbow: W turned about axis 3, seen from axis 2, is `from_3` + across_3 cos + beside_3 sin
    along, across_3, beside_3 = split(k3, minus(W, c3))
    from_3 = add(minus(c3, c2), along)
    N = ((dot(k2, across_3), dot(k2, beside_3)), (2.0 * dot(from_3, across_3), 2.0 * dot(from_3, beside_3)))
    n = (dot(k2, from_3), dot(from_3, from_3) + dot(across_3, across_3))
    # wrist: k6 turned about axis 5 has along k4 the component `d` + a cos + b sin
    along, across, beside = split(k5, k6)
    d, a, b = dot(k4, along), dot(k4, across), dot(k4, beside)
    square = abs(dot(k4, k5)) < SQUARE and abs(dot(k5, k6)) < SQUARE
    e6 = unit(cross(k6, k5))

    def candidates(X: Motion, seed: Sequence[float]) -> list[Candidate]:
        # X W turned back about axis 1 is W turned about axis 3 and 2: same height over axis 2, same distance from c2
        p = minus(X.moved(W), c1)
        along, across, beside = split(k1, p)
        from_1 = add(minus(c1, c2), along)
        M = ((dot(k2, across), -dot(k2, beside)), (2.0 * dot(from_1, across), -2.0 * dot(from_1, beside)))
        m = (dot(k2, from_1), dot(from_1, from_1) + dot(across, across))
        g6, f6 = X.turned(k6), X.turned(e6)
        found: list[Candidate] = []
        for q1, q3, free in pairs(M, N, (n[0] - m[0], n[1] - m[1]), (seed[0], seed[2])):
            u = minus(add(turn(k1, -q1, p), c1), c2)
            v = minus(add(turn(k3, q3, minus(W, c3)), c3), c2)
            q2 = angle_between(k2, v, u)
            at_q2 = seed[1] if q2 is None else q2
            g, f = (turn(k3, -q3, turn(k2, -at_q2, turn(k1, -q1, x))) for x in (g6, f6))
            if square:
                half = atan2(size(cross(k4, g)), dot(k4, g))
                q5s = [atan2(b, a) + half, atan2(b, a) - half]
            else:
                q5s = angles(a, b, dot(k4, g) - d)
            for q5 in q5s:
                q4 = angle_between(k4, turn(k5, q5, k6), g)
                at_q4 = seed[3] if q4 is None else q4
                q6 = angle_between(k6, e6, turn(k5, -q5, turn(k4, -at_q4, f)))
                if q6 is not None:
                    found.append(([q1, at_q2, q3, at_q4, q5, q6], free or q2 is None or q4 is None))
        return found

    return miss, candidates


def three_parallel(axes: Sequence[Axis]) -> tuple[float, ClosedForm] | None:
    """The closed form for axes 2, 3, 4 in parallel, and by how much they miss it (rad); None for a degenerate arm."""
    (k1, c1), (_, c2), (k, c3), (_, c4), (k5, c5), (k6, c6) = ((a.along, a.point) for a in axes)
    signs = [copysign(1.0, dot(a.along, k)) for a in axes[1:4]]
    miss = max(size(cross(a.along, k)) for a in axes[1:4])
    link_2, link_3 = split(k, minus(c3, c2))[1], split(k, minus(c4, c3))[1]
    if min(size(cross(k1, k)), size(cross(k5, k)), size(cross(k6, k5)), size(link_2), size(link_3)) < APART:
        return None
    along_1, across_1, beside_1 = split(k1, k)
    along_5, across_5, beside_5 = split(k5, k)
    along_6, across_6, beside_6 = split(k5, minus(c6, c5))
    N = ((dot(k6, across_5), -dot(k6, beside_5)), (dot(k, across_6), dot(k, beside_6)))
    n = (dot(k6, along_5), dot(k, add(along_6, c5)))
    middle_5 = atan2(N[0][1], N[0][0])
    square = abs(dot(k, k5)) < SQUARE and abs(dot(k5, k6)) < SQUARE
    turned_3 = cross(k, link_3)
    a, b = 2.0 * dot(link_2, link_3), 2.0 * dot(link_2, turned_3)
    lengths = dot(link_2, link_2) + dot(link_3, link_3)
    e = unit(link_2)

    def inner(X: Motion, q1: float, q5: float, q6: float, seed: Sequence[float], free: bool) -> list[Candidate]:
        # what is left to axes 2 to 4: where c4 shall be, and the whole turn in the plane
        y = add(turn(k5, -q5, minus(c4, c5)), c5)
        y = X.moved(add(turn(k6, -q6, minus(y, c6)), c6))
        u = split(k, minus(add(turn(k1, -q1, minus(y, c1)), c1), c2))[1]
        whole = angle_between(k, e, turn(k1, -q1, X.turned(turn(k6, -q6, turn(k5, -q5, e)))))
        found: list[Candidate] = []
        for q3 in angles(a, b, dot(u, u) - lengths):
            q2 = angle_between(k, add(link_2, turn(k, q3, link_3)), u)
            at_q2 = seed[1] * signs[0] if q2 is None else q2
            if whole is not None:
                three = [s * x for s, x in zip(signs, (at_q2, q3, whole - at_q2 - q3), strict=True)]
                found.append(([q1, *three, q5, q6], free or q2 is None))
        return found

    def candidates(X: Motion, seed: Sequence[float]) -> list[Candidate]:
        # E1' E6' E5' is a motion in the plane of k (' for the inverse): it keeps k, and the height of c6 over the plane
        back = X.inverse()
        g, p = X.turned(k6), minus(X.moved(c6), c1)
        M = ((dot(g, across_1), dot(g, beside_1)), (dot(p, across_1), dot(p, beside_1)))
        m = (dot(g, along_1), dot(p, along_1) + dot(k, c1))
        found: list[Candidate] = []
        for q1, q5, free in pairs(M, N, (n[0] - m[0], n[1] - m[1]), (seed[0], seed[4])):
            h = back.turned(turn(k1, q1, k))
            if square:
                q5 = middle_5 + copysign(atan2(size(cross(k6, h)), dot(k6, h)), wrapped(q5 - middle_5))
            q6 = angle_between(k6, h, turn(k5, -q5, k))
            if q6 is not None:
                found += inner(X, q1, q5, q6, seed, free)
                continue
            for away in AWAY:  # q6 is free, but the elbow may be out of reach where the seed has it
                family = inner(X, q1, q5, seed[5] + away, seed, True)
                found += family
                if family:
                    break
        return found

    return miss, candidates


def _nearest_point(axes: Sequence[Axis]) -> Vector:
    """The point with the least sum of squared distances from lines that are not all parallel."""
    P = [np.eye(3) - np.outer(a.along, a.along) for a in axes]
    x, y, z = np.linalg.solve(sum(P), sum(p @ np.array(a.point) for p, a in zip(P, axes, strict=True)))
    return (float(x), float(y), float(z))
