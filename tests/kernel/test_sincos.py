"""Sine and cosine by table against libm's, one element at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.kernel.sincos import LARGEST, SinCos, aligned

BOUND = 1.2e-16  # one unit in the last place of numbers from 0.5 to 1 is 1.1e-16


def both(x: np.ndarray, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of a block (m, n)."""
    s, c = np.empty_like(x), np.empty_like(x)
    with np.errstate(all="ignore"):
        SinCos(rows or x.shape[1])(x, s, c)
    return s, c


@given(st.one_of(st.floats(-7, 7), st.floats(-LARGEST, LARGEST), st.floats(-1e-300, 1e-300)))
def test_within_a_unit_of_libm(x: float) -> None:
    s, c = both(np.array([[x]]))
    assert abs(s[0, 0] - math.sin(x)) <= BOUND
    assert abs(c[0, 0] - math.cos(x)) <= BOUND


@pytest.mark.parametrize("scale", [1e-4, 0.01, 1.0, 3.2, 100.0, LARGEST])
def test_within_a_unit_of_libm_everywhere(scale: float) -> None:
    x = np.random.default_rng(5).uniform(-scale, scale, (2, 20_000))
    s, c = both(x)
    assert np.abs(s - np.vectorize(math.sin)(x)).max() <= BOUND
    assert np.abs(c - np.vectorize(math.cos)(x)).max() <= BOUND
    assert np.abs(s * s + c * c - 1.0).max() <= 3 * BOUND


@given(st.floats(-1e-3, 1e-3))
def test_small_angles_keep_their_relative_precision(x: float) -> None:
    s, c = both(np.array([[x]]))
    assert s[0, 0] == pytest.approx(math.sin(x), rel=BOUND, abs=0.0)
    assert c[0, 0] == math.cos(x)


@pytest.mark.parametrize("quarters", range(-9, 10))
def test_right_angles(quarters: int) -> None:
    """The nearest double to a multiple of a quarter turn misses it by less than 1e-15."""
    s, c = both(np.array([[quarters * math.pi / 2.0]]))
    assert s[0, 0] == pytest.approx((0, 1, 0, -1)[quarters % 4], abs=1e-15)
    assert c[0, 0] == pytest.approx((1, 0, -1, 0)[quarters % 4], abs=1e-15)


def test_beyond_the_table_libm_answers_and_neighbours_are_not_touched() -> None:
    x = np.random.default_rng(6).uniform(-3, 3, (3, 40))
    s, c = both(x)
    far = x.copy()
    far[0, 3], far[1, 7], far[2, 0], far[2, 39] = 1e22, -1.0001 * LARGEST, math.nan, math.inf
    before = far.copy()
    s2, c2 = both(far)
    assert np.array_equal(far, before, equal_nan=True)
    near = np.abs(far) <= LARGEST
    assert np.array_equal(s2[near], s[near])
    assert np.array_equal(c2[near], c[near])
    for at in ((0, 3), (1, 7)):
        assert s2[at] == pytest.approx(math.sin(far[at]), abs=1e-15)
        assert c2[at] == pytest.approx(math.cos(far[at]), abs=1e-15)
    assert np.isnan([s2[2, 0], c2[2, 0], s2[2, 39], c2[2, 39]]).all()


@pytest.mark.parametrize(
    ("m", "n", "rows"), [(1, 1, 1), (7, 5, 8), (9, 1000, 1000), (5, 3999, 4000), (3, 9000, 9000), (2, 0, 8)]
)
def test_blocks_of_any_shape(m: int, n: int, rows: int) -> None:
    """Blocks are cut into pieces and may be parts of wider arrays; neither changes a bit."""
    x = np.random.default_rng(7).uniform(-9, 9, (m, n))
    wide = [np.zeros((m, rows)) for _ in range(3)]
    wide[0][:, :n] = x
    SinCos(rows)(*(w[:, :n] for w in wide))
    s, c = both(x.reshape(1, -1))
    assert np.array_equal(wide[1][:, :n], s.reshape(m, n))
    assert np.array_equal(wide[2][:, :n], c.reshape(m, n))
    assert not wide[1][:, n:].any()


@pytest.mark.parametrize("rows", [8, 24, 4000])
def test_aligned_lines_start_at_cache_lines(rows: int) -> None:
    pool = aligned(3, rows)
    assert pool.shape == (3, rows)
    assert [line.ctypes.data % 64 for line in pool] == [0, 0, 0]
