"""Tables of chains of any lines, against products of elementary matrices; named cases by hand."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.kernel.dh import extract, line, product, sines, with_ends
from fkd.kernel.steps import finished

CONVENTIONS = ("standard", "modified")
coordinate = st.floats(-1, 1)
angle = st.floats(-pi, pi)


def rot(axis: str, t: float) -> np.ndarray:
    """An elementary turn as 4x4."""
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    R = np.eye(4)
    R[i, i] = R[j, j] = cos(t)
    R[i, j], R[j, i] = -sin(t), sin(t)
    return R


def shift(axis: str, x: float) -> np.ndarray:
    T = np.eye(4)
    T["xyz".index(axis), 3] = x
    return T


def about(point: np.ndarray, axis: np.ndarray, t: float) -> np.ndarray:
    """A turn about a line. Source: Rodrigues' formula."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    R = np.eye(3) + sin(t) * K + (1 - cos(t)) * K @ K
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, point - R @ point
    return T


def row_by_hand(convention: str, a: float, alpha: float, d: float, theta: float) -> np.ndarray:
    if convention == "standard":
        return rot("z", theta) @ shift("z", d) @ shift("x", a) @ rot("x", alpha)
    return rot("x", alpha) @ shift("x", a) @ rot("z", theta) @ shift("z", d)


@given(st.sampled_from(CONVENTIONS), coordinate, angle, coordinate, angle, angle, coordinate)
@settings(deadline=None)
def test_a_row_is_the_product_of_its_elementary_matrices(convention: str, a: float, alpha: float, d: float, theta: float, q: float, s: float) -> None:
    assert np.abs(product(convention, (a, alpha, d, theta), q, s) - row_by_hand(convention, a, alpha, d + s, theta + q)).max() < 1e-15


# What the next axis is to the last: its direction and a point on it, from the last one's.
KINDS = ("skew", "intersecting", "parallel", "antiparallel", "collinear", "nearly", "any")


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, list[bool]]:
    """Axes (point, direction), T_base_tip at zero, and which joints slide."""
    count = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def unit() -> np.ndarray:
        v = rng.normal(size=3)
        return v / np.linalg.norm(v)

    axes = [(rng.uniform(-1, 1, 3), [np.array([0.0, 0.0, 1.0]), unit()][draw(st.integers(0, 1))])]
    while len(axes) < count:
        point, z = axes[-1]
        kind = draw(st.sampled_from(KINDS))
        side = np.cross(z, unit())
        side /= np.linalg.norm(side)
        if kind == "collinear":
            axes.append((point + rng.uniform(-1, 1) * z, z * rng.choice([-1.0, 1.0])))
        elif kind in ("parallel", "antiparallel"):
            axes.append((point + side * rng.uniform(0.05, 1) + z * rng.uniform(-1, 1), -z if kind == "antiparallel" else z))
        elif kind == "nearly":
            tilt = 10 ** rng.uniform(-13, -2)
            towards = [side, np.cross(side, z)][rng.integers(2)]  # in the first case the foot is far away
            axes.append((point + side * rng.uniform(0.05, 1), z * cos(tilt) + towards * sin(tilt)))
        elif kind == "intersecting":
            axes.append((point + rng.uniform(-1, 1) * z, side))
        else:
            axes.append((point + rng.uniform(-1, 1, 3), side if kind == "skew" else unit()))
    tip = np.eye(4)
    tip[:3, :3] = about(np.zeros(3), unit(), rng.uniform(-pi, pi))[:3, :3]
    tip[:3, 3] = rng.uniform(-1, 1, 3)
    return axes, tip, draw(st.lists(st.booleans(), min_size=count, max_size=count))


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(chain=chains(), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_the_table_moves_as_the_axes_do(convention: str, chain: tuple, seed: int) -> None:
    axes, T_base_tip, slides = chain
    lines = [line(p, z) for p, z in axes]
    found = finished(extract(lines, T_base_tip[:3].ravel().tolist(), convention))
    rng = np.random.default_rng(seed)
    for q in (np.zeros(len(axes)), rng.uniform(-pi, pi, len(axes))):
        expected = np.eye(4)
        for (point, z), value, slide in zip(axes, q, slides, strict=True):
            step = about(point, z, value)
            if slide:
                step = np.eye(4)
                step[:3, 3] = value * z
            expected = expected @ step
        expected = expected @ T_base_tip
        T = np.vstack([np.reshape(found.base, (3, 4)), [0, 0, 0, 1]])
        for row, value, slide in zip(found.rows, q, slides, strict=True):
            T = T @ (product(convention, row, 0.0, value) if slide else product(convention, row, value))
        T = T @ np.vstack([np.reshape(found.tool, (3, 4)), [0, 0, 0, 1]])
        # A foot that is 1e6 m away is told in 1e-10 m; an angle that is left out turns what comes after it.
        far = max(1.0, *(abs(x) for row in found.rows for x in (row[0], row[2])))
        between = found.rows[:-1] if convention == "standard" else found.rows[1:]
        left_out = sum(s for s, row in zip(sines(lines), between, strict=True) if row[1] in (0.0, pi))
        assert np.abs(T - expected).max() < (1e-13 + 1e-15 * far + 10 * left_out) * len(axes)
        assert far * 2**-52 < 1e-7  # however near to parallel


def planar(*kinds: float) -> list[tuple[tuple[float, float, float], tuple[float, float, float]]]:
    """Axes along z (1) or against it (-1), a metre apart along x."""
    return [((float(k), 0.0, 0.0), (0.0, 0.0, z)) for k, z in enumerate(kinds)]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_antiparallel_axes_have_a_half_turn_between_them(convention: str) -> None:
    tip = [1, 0, 0, 2, 0, 1, 0, 0, 0, 0, 1, 0]
    found = finished(extract([line(p, z) for p, z in planar(1, -1)], tip, convention))
    between = found.rows[0] if convention == "standard" else found.rows[1]
    assert between[:2] == (1.0, pi)
    assert found.cases[0 if convention == "standard" else 1] == "parallel"


def test_the_textbooks_planar_arm() -> None:
    """Two parallel axes, a and b apart: a1, a2 and nothing else."""
    axes = [line((0, 0, 0), (0, 0, 1)), line((0.5, 0, 0), (0, 0, 1))]
    found = finished(extract(axes, [1, 0, 0, 0.75, 0, 1, 0, 0, 0, 0, 1, 0], "standard"))
    assert found.rows == ((0.5, 0.0, 0.0, 0.0), (0.25, 0.0, 0.0, 0.0))
    assert found.base == found.tool == (1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)


@pytest.mark.parametrize("tilt", [1e-3, 1e-4, 1e-5])
def test_nearly_parallel_axes_are_skew_lines_far_away(tilt: float) -> None:
    """Tilted about x at a distance b along x, the common normal is x itself; about y it is b / tan(tilt) away."""
    tip = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
    near = finished(extract([line((0, 0, 0), (0, 0, 1)), line((0.25, 0, 0), (0, sin(tilt), cos(tilt)))], tip, "standard"))
    assert near.rows[0][0] == pytest.approx(0.25)
    assert abs(near.rows[0][2]) < 1e-9
    far = finished(extract([line((0, 0, 0), (0, 0, 1)), line((0.25, 0, 0), (sin(tilt), 0, cos(tilt)))], tip, "standard"))
    assert abs(far.rows[0][2]) == pytest.approx(0.25 / np.tan(tilt), rel=1e-9)
    assert far.rows[0][0] == 0.0
    assert far.cases[0] == "intersecting"


@pytest.mark.parametrize("opposed", [1.0, -1.0])
@pytest.mark.parametrize("tilt", [1e-11, 1e-9, 1e-8, 1e-7])
def test_of_two_losses_the_lesser(tilt: float, opposed: float) -> None:
    """The angle is left out where a foot 0.25 m / tilt away would lose more; a foot that is near loses nothing."""
    tip = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
    far = finished(extract([line((0, 0, 0), (0, 0, 1)), line((0.25, 0, 0), (sin(tilt), 0, opposed * cos(tilt)))], tip, "standard"))
    near = finished(extract([line((0, 0, 0), (0, 0, 1)), line((0.25, 0, 0), (0, sin(tilt), opposed * cos(tilt)))], tip, "standard"))
    taken = abs(far.rows[0][1]) in (0.0, pi)
    assert taken is (tilt < 2**-52 * 0.25 / tilt)
    assert far.cases[0] == ("parallel" if taken else "intersecting")
    assert near.cases[0] == "skew"
    assert abs(sin(near.rows[0][1])) == pytest.approx(tilt, abs=3e-16)
    assert near.rows[0][0] == pytest.approx(0.25)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_table_comes_back_from_a_far_foot_at_once(convention: str) -> None:
    """Not along further parallel axes, whose own rounding would be seen from afar."""
    tilted = (sin(1e-6), 0.0, cos(1e-6))
    axes = [line((0.25 * k, 0, 0), (0, 0, 1) if k == 0 else tilted) for k in range(4)]
    d = [row[2] for row in finished(extract(axes, [1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0], convention)).rows]
    assert abs(d[0]) == pytest.approx(0.25e6)
    assert d[0] + d[1] == pytest.approx(0, abs=1e-6)
    assert max(map(abs, d[2:])) < 1e-6


def test_ends_are_aligned_where_that_costs_nothing() -> None:
    tilt = 1e-6
    axes = [line((0, 0, 0), (sin(tilt), 0, cos(tilt)))]
    lines = with_ends(axes, [1, 0, 0, 0.5, 0, 1, 0, 0, 0, 0, 1, 0])
    assert sines(lines) == [0.0, 0.0]
    found = finished(extract(axes, [1, 0, 0, 0.5, 0, 1, 0, 0, 0, 0, 1, 0], "modified"))
    assert max(abs(x) for x in found.rows[0]) < 1.0
