"""Rotations between their forms: laws everywhere, and most of all where the forms are singular.

The oracle is numpy: products of elementary matrices, and half turns as 2 n n' - 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fkd.kernel import pose

Matrix = npt.NDArray[np.float64]
RIGHT = math.pi / 2
EYE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


# -- the oracle --------------------------------------------------------------------------------------------------------


def elementary(rpy: Sequence[float]) -> Matrix:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    (sr, cr), (sp, cp), (sy, cy) = ((math.sin(a), math.cos(a)) for a in rpy)
    X = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    Y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    product: Matrix = Z @ Y @ X
    return product


def about(axis: Sequence[float], angle: float) -> Matrix:
    """n n' + cos (1 - n n') + sin [n]x."""
    n = np.array(axis, dtype=float)
    x, y, z = n
    product: Matrix = (
        np.outer(n, n)
        + math.cos(angle) * (np.eye(3) - np.outer(n, n))
        + math.sin(angle) * np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    )
    return product


def by_quaternion(q: Sequence[float]) -> Matrix:
    """The vectors of the basis turned by q v q*, each product written out by scalar and vector parts."""

    def times(a: Matrix, b: Matrix) -> Matrix:
        v = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
        return np.append(v, a[3] * b[3] - a[:3] @ b[:3])

    unit = np.array(q, dtype=float) / np.linalg.norm(q)
    turned = [times(times(unit, np.append(e, 0.0)), unit * (-1, -1, -1, 1))[:3] for e in np.eye(3)]
    return np.array(turned).T


def square(r: Sequence[float]) -> Matrix:
    return np.array(r, dtype=float).reshape(3, 3)


def apart(a: Sequence[float] | Matrix, b: Sequence[float] | Matrix) -> float:
    return float(np.abs(np.ravel(a) - np.ravel(b)).max())


def flat(R: Matrix) -> tuple[float, ...]:
    return tuple(float(x) for x in R.ravel())


def unit(v: Sequence[float]) -> tuple[float, float, float]:
    length = math.hypot(*v)
    return (v[0] / length, v[1] / length, v[2] / length)


# -- random rotations --------------------------------------------------------------------------------------------------

SMALL = st.integers(-17, -1).map(lambda e: 10.0**e)
NEAR = st.tuples(st.sampled_from([-1.0, 0.0, 1.0]), SMALL).map(lambda t: t[0] * t[1])
ANGLE = st.one_of(
    st.floats(-7, 7),
    st.tuples(st.integers(-4, 4), NEAR).map(lambda t: t[0] * RIGHT + t[1]),  # at and near right angles
)
LOCKED = st.tuples(st.sampled_from([-RIGHT, RIGHT]), NEAR).map(lambda t: t[0] + t[1])
RPY = st.one_of(st.tuples(ANGLE, ANGLE, ANGLE), st.tuples(ANGLE, LOCKED, ANGLE), st.tuples(NEAR, NEAR, NEAR))
AXIS = st.one_of(
    st.tuples(*[st.sampled_from([-1.0, 0.0, 1.0])] * 3).filter(any),
    st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: max(map(abs, v)) > 1e-3),
    st.tuples(st.sampled_from([-1.0, 1.0]), NEAR, NEAR).flatmap(st.permutations),
).map(unit)
COMPONENT = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0]), st.floats(-1, 1), NEAR)
QUATERNION = st.tuples(*[COMPONENT] * 4).filter(lambda q: max(map(abs, q)) > 1e-3)


def check_unit(q: Sequence[float]) -> None:
    """The conventions of a quaternion."""
    assert abs(math.hypot(*q) - 1.0) <= 1e-15
    assert q[3] >= 0.0
    assert all(str(c) != "-0.0" for c in q)
    if q[3] == 0.0:
        assert next(c for c in q if c != 0.0) > 0.0


# -- roll, pitch, yaw --------------------------------------------------------------------------------------------------


@given(RPY)
def test_angles_give_the_product_of_elementary_rotations(rpy: tuple[float, float, float]) -> None:
    r = pose.rotation_from_rpy(rpy)
    assert apart(r, elementary(rpy)) <= 2.1e-15  # of which 1e-15 is what counts as the rounding of pi
    assert all(str(x) != "-0.0" for x in r)


@pytest.mark.parametrize("quarters", [(a, b, c) for a in range(-2, 3) for b in range(-2, 3) for c in range(-2, 3)])
def test_right_angles_are_exact(quarters: tuple[int, int, int]) -> None:
    r = pose.rotation_from_rpy([k * RIGHT for k in quarters])
    assert set(r) <= {-1.0, 0.0, 1.0}
    assert apart(r, elementary([k * RIGHT for k in quarters])) < 1e-15


@pytest.mark.parametrize(
    ("rpy", "r"),
    [
        ((RIGHT, 0, 0), (1, 0, 0, 0, 0, -1, 0, 1, 0)),
        ((0, RIGHT, 0), (0, 0, 1, 0, 1, 0, -1, 0, 0)),
        ((0, 0, RIGHT), (0, -1, 0, 1, 0, 0, 0, 0, 1)),
        ((0, -RIGHT, 0), (0, 0, -1, 0, 1, 0, 1, 0, 0)),
        ((RIGHT, 0, RIGHT), (0, 0, 1, 1, 0, 0, 0, 1, 0)),  # roll first, about the fixed x
    ],
)
def test_the_order_of_the_axes(rpy: tuple[float, ...], r: tuple[float, ...]) -> None:
    assert pose.rotation_from_rpy(rpy) == r


@given(RPY)
@example((0.3, RIGHT, 0.5))
@example((0.3, -RIGHT, 0.5))
@example((3.0, RIGHT - 1e-12, -3.0))
@example((3.0, RIGHT - 6e-13, -3.0))
@example((0.3, RIGHT - 4e-13, 0.5))
@example((math.pi, 0.0, math.pi))
@example((0.0, math.pi, 0.0))
@example((-1e-17, 0.0, 1e-17))
def test_the_angles_of_a_rotation_give_it_back(rpy: tuple[float, float, float]) -> None:
    r = pose.rotation_from_rpy(rpy)
    first, other, lock = pose.rpy_from_rotation(r)
    for angles in (first, other):
        assert apart(elementary(angles), r) <= 1e-12
        assert apart(pose.rotation_from_rpy(angles), r) <= 1e-12
        assert all(-math.pi <= a <= math.pi for a in angles)
    assert -RIGHT <= first[1] <= RIGHT
    assert all(str(a) != "-0.0" for a in first)
    if lock:
        assert first == other
        assert first[0] == 0.0
        assert abs(math.cos(first[1])) < 1e-12


@given(st.tuples(st.floats(-3.14, 3.14), st.floats(-1.57, 1.57), st.floats(-3.14, 3.14)))
def test_away_from_lock_the_angles_themselves_come_back(rpy: tuple[float, float, float]) -> None:
    first, other, lock = pose.rpy_from_rotation(pose.rotation_from_rpy(rpy))
    assert not lock
    assert apart(first, rpy) <= 1e-15 / math.cos(rpy[1]) + 1e-15 / math.cos(rpy[1]) ** 2
    assert abs(abs(other[1]) + abs(first[1]) - math.pi) <= 1e-15


@given(st.sampled_from([RIGHT, -RIGHT]), st.floats(-3, 3), st.floats(-3, 3))
def test_in_lock_only_one_combination_of_roll_and_yaw_is_defined(pitch: float, roll: float, yaw: float) -> None:
    first, other, lock = pose.rpy_from_rotation(pose.rotation_from_rpy((roll, pitch, yaw)))
    assert lock
    assert first == other
    combined = yaw - roll if pitch > 0 else yaw + roll
    assert abs(math.remainder(first[2] - combined, 2 * math.pi)) <= 1e-14
    assert first[:2] == (0.0, pitch)


# -- quaternions -------------------------------------------------------------------------------------------------------


@given(QUATERNION, st.floats(-150, 150))
@example((0.0, 0.0, 0.0, 1.0), -150.0)
def test_a_quaternion_of_any_norm_gives_its_rotation(q: tuple[float, ...], exponent: float) -> None:
    r = pose.rotation_from_quaternion([c * 10.0**exponent for c in q])
    assert apart(r, by_quaternion(q)) <= 2e-15
    assert pose.rotation_error(r) <= 2e-15


@given(QUATERNION)
@example((0.0, 0.0, 0.0, -1.0))
@example((1e-17, 0.0, 0.0, 1.0))
@example((1.0, 1.0, 1.0, 1e-17))
@example((-1.0, 0.0, 0.0, -1e-300))
@example((0.0, -1.0, 1.0, 0.0))
def test_the_quaternion_of_a_rotation_is_the_one_it_came_from(q: tuple[float, ...]) -> None:
    back = pose.quaternion_from_rotation(pose.rotation_from_quaternion(q))
    check_unit(back)
    u = [c / math.hypot(*q) for c in q]
    assert min(apart(back, u), apart(back, [-c for c in u])) <= 1e-15
    assert apart(pose.rotation_from_quaternion(back), by_quaternion(q)) <= 3e-15


@given(AXIS)
def test_a_half_turn_about_any_axis(n: tuple[float, float, float]) -> None:
    """R = 2 n n' - 1: the trace is -1, and the quaternion is n itself."""
    R = 2.0 * np.outer(n, n) - np.eye(3)
    q = pose.quaternion_from_rotation(flat(R))
    check_unit(q)
    assert min(apart(q, (*n, 0.0)), apart(q, (*(-c for c in n), 0.0))) <= 1e-15
    axis, angle = pose.axis_angle_from_quaternion(q)
    assert angle == pytest.approx(math.pi, abs=1e-15)
    assert apart(np.cross(axis, n), (0, 0, 0)) <= 1e-15


@pytest.mark.parametrize(
    ("n", "q"),
    [((1, 1, 0), (1, 1, 0, 0)), ((1, -1, 0), (1, -1, 0, 0)), ((-1, 1, 0), (1, -1, 0, 0)), ((0, -1, -1), (0, 1, 1, 0)),
     ((1, 0, 0), (1, 0, 0, 0)), ((0, -1, 0), (0, 1, 0, 0)), ((0, 0, -1), (0, 0, 1, 0)), ((-1, 0, 1), (1, 0, -1, 0))],
)  # fmt: skip
def test_the_signs_of_half_turns(n: tuple[int, ...], q: tuple[int, ...]) -> None:
    axis = unit(n)
    got = pose.quaternion_from_rotation(flat(2.0 * np.outer(axis, axis) - np.eye(3)))
    assert apart(got, np.array(q) / math.hypot(*q)) <= 1e-15


@given(
    AXIS,
    st.one_of(NEAR, NEAR.map(lambda d: math.pi + d), NEAR.map(lambda d: -math.pi + d), st.floats(-math.pi, math.pi)),
)
def test_axis_and_angle(n: tuple[float, float, float], angle: float) -> None:
    """Near the identity, near half turns and between: the rotation rebuilt from axis and angle is the one given."""
    R = about(n, angle)
    q = pose.quaternion_from_rotation(flat(R))
    check_unit(q)
    assert apart(by_quaternion(q), R) <= 4e-15
    axis, turn = pose.axis_angle_from_quaternion(q)
    assert abs(math.hypot(*axis) - 1.0) <= 2e-15
    assert 0.0 <= turn <= math.pi
    assert apart(about(axis, turn), R) <= 4e-15
    if 1e-3 < abs(angle) < 3.14:
        assert turn == pytest.approx(abs(angle), abs=1e-12)
        assert apart(np.array(axis) * math.copysign(1.0, angle), n) <= 1e-12


@pytest.mark.parametrize("small", [1e-5, 1e-10, 1e-100, 1e-155, 1e-160, 1e-162, 1e-200, 1e-300])
@pytest.mark.parametrize("n", [(1, 0, 0), (0, 0, -1), (1, 2, -3)])
def test_a_rotation_by_next_to_nothing_keeps_its_axis(n: tuple[float, ...], small: float) -> None:
    axis = unit(n)
    x, y, z = (small * c for c in axis)
    q = pose.quaternion_from_rotation((1.0, -z, y, z, 1.0, -x, -y, x, 1.0))
    check_unit(q)
    got, angle = pose.axis_angle_from_quaternion(q)
    assert apart(got, axis) <= 1e-14
    assert angle == pytest.approx(small, rel=1e-9)


def test_no_rotation() -> None:
    assert pose.quaternion_from_rotation(EYE) == (0.0, 0.0, 0.0, 1.0)
    assert pose.axis_angle_from_quaternion((0.0, 0.0, 0.0, 1.0)) == ((0.0, 0.0, 1.0), 0.0)
    assert pose.rpy_from_rotation(EYE) == ((0.0, 0.0, 0.0), (math.pi, math.pi, math.pi), False)


@pytest.mark.parametrize(
    "q", [(0.0, 0.0, 0.0, 0.0), (math.inf, 0.0, 0.0, 1.0), (math.nan, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0, math.nan)]
)
def test_a_quaternion_without_a_norm_is_refused(q: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="norm"):
        pose.rotation_from_quaternion(q)


# -- noise -------------------------------------------------------------------------------------------------------------


@given(RPY, st.integers(-16, -9), st.lists(st.floats(-1, 1), min_size=9, max_size=9))
def test_a_noisy_rotation_still_gives_finite_unit_results(
    rpy: tuple[float, float, float], exponent: int, noise: list[float]
) -> None:
    size = 10.0**exponent
    r = tuple(x + size * e for x, e in zip(pose.rotation_from_rpy(rpy), noise, strict=True))
    assert pose.rotation_error(r) <= 7 * size
    q = pose.quaternion_from_rotation(r)
    check_unit(q)
    axis, angle = pose.axis_angle_from_quaternion(q)
    assert abs(math.hypot(*axis) - 1.0) <= 1e-15
    first, other, _ = pose.rpy_from_rotation(r)
    near = 20 * size + 1e-12
    for R in (by_quaternion(q), about(axis, angle), elementary(first), elementary(other)):
        assert apart(R, r) <= near


@given(
    st.sampled_from([RIGHT, -RIGHT]),
    st.floats(-3, 3),
    st.floats(-3, 3),
    st.lists(st.floats(-1, 1), min_size=9, max_size=9),
)
def test_noise_in_lock(pitch: float, roll: float, yaw: float, noise: list[float]) -> None:
    """A matrix that went through nine digits of text: roll and yaw are arbitrary, but together they must be right."""
    r = tuple(round(x + 1e-9 * e, 9) for x, e in zip(pose.rotation_from_rpy((roll, pitch, yaw)), noise, strict=True))
    for angles in pose.rpy_from_rotation(r)[:2]:
        assert apart(elementary(angles), r) <= 1e-8


@given(QUATERNION, st.floats(1e-12, 0.1))
def test_how_far_a_matrix_is_from_a_rotation(q: tuple[float, ...], size: float) -> None:
    R = by_quaternion(q)
    assert pose.rotation_error(flat(R)) <= 3e-15
    assert pose.rotation_error(flat(R * (1.0 + size))) == pytest.approx(2 * size + size * size, abs=1e-14)
    assert pose.rotation_error(flat(R @ np.diag((1.0, 1.0, -1.0)))) >= 2.0  # a mirror
    assert pose.rotation_error(flat(-R)) >= 2.0


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e200])
@pytest.mark.parametrize("place", range(9))
def test_what_is_no_number_is_no_rotation(value: float, place: int) -> None:
    r = [*EYE[:place], value, *EYE[place + 1 :]]
    assert pose.rotation_error(r) == math.inf


# -- matrices ----------------------------------------------------------------------------------------------------------


@given(st.tuples(*[st.floats(-1e3, 1e3)] * 3), RPY)
def test_frames_and_matrices_hold_their_parts(p: tuple[float, float, float], rpy: tuple[float, float, float]) -> None:
    r = pose.rotation_from_rpy(rpy)
    frame = pose.frame(p, r)
    T = np.array(pose.matrix(frame)).reshape(4, 4)
    assert np.array_equal(T[:3, :3], square(r))
    assert np.array_equal(T[:3, 3], p)
    assert np.array_equal(T[3], (0, 0, 0, 1))
    for m in (frame, pose.matrix(frame)):
        assert pose.rotation_of(m) == r
        assert pose.translation_of(m) == p
