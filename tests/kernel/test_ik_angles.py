"""Laws of the small problems: what is planted is found, and what is found solves the equations."""

from __future__ import annotations

from math import cos, hypot, pi, sin
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fkd.kernel.ik_angles import Row, angle_between, angles, cross, dot, pairs, size, split, turn, unit, wrapped

NUMBER = st.floats(-3.0, 3.0)
TURN = st.floats(-pi, pi)
VECTOR = st.tuples(NUMBER, NUMBER, NUMBER)
AXIS = VECTOR.filter(lambda v: hypot(*v) > 0.1).map(unit)


def near(a: float, b: float) -> float:
    return abs(wrapped(a - b))


@given(AXIS, TURN, VECTOR)
def test_turn_keeps_length_and_the_part_along_the_axis(axis, t, v) -> None:
    w = turn(axis, t, v)
    assert size(w) == pytest.approx(size(v), abs=1e-12)
    assert dot(axis, w) == pytest.approx(dot(axis, v), abs=1e-12)
    assert turn(axis, -t, w) == pytest.approx(v, abs=1e-12)


@given(VECTOR)
def test_turn_is_right_handed(v) -> None:
    x, y, z = v
    assert turn((0.0, 0.0, 1.0), pi / 2, v) == pytest.approx((-y, x, z), abs=1e-12)


@given(AXIS, TURN, VECTOR)
def test_angle_between_undoes_turn(axis, t, v) -> None:
    assume(size(split(axis, v)[1]) > 1e-3)
    found = angle_between(axis, v, turn(axis, t, v))
    assert found is not None
    assert near(found, t) < 1e-9


def test_no_angle_about_an_axis_that_a_vector_lies_on() -> None:
    assert angle_between((0.0, 0.0, 1.0), (0.0, 0.0, 2.0), (1.0, 0.0, 0.0)) is None
    assert angle_between((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (1e-14, 0.0, 1.0)) is None


@given(NUMBER, NUMBER, TURN)
def test_angles_finds_what_is_planted(a, b, t) -> None:
    assume(hypot(a, b) > 1e-3)
    c = a * cos(t) + b * sin(t)
    found = angles(a, b, c)
    assert min(near(t, x) for x in found) < 1e-6  # two that meet are had to half the digits
    for x in found:
        assert a * cos(x) + b * sin(x) == pytest.approx(c, abs=1e-9)


def test_angles_of_what_is_out_of_reach() -> None:
    assert angles(3.0, 4.0, 5.1) == []
    assert angles(3.0, 4.0, 5.0 + 1e-12) == pytest.approx(angles(3.0, 4.0, 5.0))


def planted(rnd: Random, M: tuple[Row, Row], N: tuple[Row, Row]) -> tuple[Row, float, float]:
    s, t = rnd.uniform(-pi, pi), rnd.uniform(-pi, pi)
    h = [M[i][0] * cos(s) + M[i][1] * sin(s) - N[i][0] * cos(t) - N[i][1] * sin(t) for i in range(2)]
    return (h[0], h[1]), s, t


def rows(rnd: Random, kind: str) -> tuple[Row, Row]:
    a, b = (rnd.uniform(-1, 1), rnd.uniform(-1, 1)), (rnd.uniform(-1, 1), rnd.uniform(-1, 1))
    k = rnd.uniform(-2, 2)
    void = (0.0, 0.0)
    return {"whole": (a, b), "multiples": (a, (k * a[0], k * a[1])), "first": (a, void), "second": (void, a)}[kind]


KINDS = ["whole", "multiples", "first", "second"]


# but not one equation for two angles
BOTH = [(m, n) for m in KINDS for n in KINDS if not (m == n and m in ("first", "second"))]


@pytest.mark.parametrize(("of_M", "of_N"), BOTH)
def test_pairs_finds_what_is_planted(of_M: str, of_N: str) -> None:
    rnd = Random(7)
    for _ in range(50):
        M, N = rows(rnd, of_M), rows(rnd, of_N)
        h, s, t = planted(rnd, M, N)
        found = pairs(M, N, h, (0.0, 0.0))
        assert 1 <= len({(round(x, 6), round(y, 6)) for x, y, _ in found}) <= 8
        assert min(max(near(s, x), near(t, y)) for x, y, _ in found) < 1e-5
        assert not any(free for *_, free in found)


def test_pairs_with_a_free_angle_take_the_seeds() -> None:
    M, void = ((0.8, 0.1), (0.2, 0.7)), ((0.0, 0.0), (0.0, 0.0))
    h = (0.8 * cos(0.5) + 0.1 * sin(0.5), 0.2 * cos(0.5) + 0.7 * sin(0.5))
    assert pairs(M, void, h, (9.0, 0.3)) == [(pytest.approx(0.5), 0.3, True)]
    assert pairs(void, M, (-h[0], -h[1]), (0.3, 9.0)) == [(0.3, pytest.approx(0.5), True)]
    assert pairs(void, void, (0.0, 0.0), (0.0, 0.0)) == []


@given(AXIS, AXIS)
def test_cross_is_square_to_both(a, b) -> None:
    assert dot(cross(a, b), a) == pytest.approx(0.0, abs=1e-12)
    assert dot(cross(a, b), b) == pytest.approx(0.0, abs=1e-12)
