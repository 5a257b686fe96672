"""Laws of one value of q: limits, and angles that come round."""

from __future__ import annotations

from math import inf, pi, tau

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.kernel.ik_column import Column, columns, reach
from fkd.kernel.motion import IDENTITY, Edge

ENDS = st.floats(-8.0, 8.0)
VALUES = st.floats(-50.0, 50.0)


def angle(lower: float, upper: float, period: float = tau) -> Column:
    return Column(0, lower, upper, True, period, 1.0)


def edge(kind: str, index: int, ratio: float = 1.0, bias: float = 0.0, shift: float = 0.0) -> Edge:
    T = (*IDENTITY[:3], shift, *IDENTITY[4:])
    return Edge(kind, 0, T, (0.0, 0.0, 1.0), index, ratio, bias)  # type: ignore[arg-type]


@given(ENDS, ENDS, VALUES, VALUES)
def test_within_and_near_stay_inside(a: float, b: float, x: float, seed: float) -> None:
    c = angle(min(a, b), max(a, b))
    for y in (c.within(x), c.near(x, seed)):
        assert c.lower <= y <= c.upper
    assert c.within(c.within(x)) == c.within(x)


@given(ENDS, ENDS, VALUES)
def test_within_is_the_nearest_on_the_circle(a: float, b: float, x: float) -> None:
    c = angle(min(a, b), max(a, b))
    got = abs(c.difference(c.within(x), x))
    for k in range(101):
        other = c.lower + (c.upper - c.lower) * k / 100
        assert got <= abs(c.difference(other, x)) + 1e-9


@given(ENDS, ENDS, VALUES, VALUES)
def test_near_is_the_nearest_to_the_seed_of_all_that_are_inside(a: float, b: float, x: float, seed: float) -> None:
    c = angle(min(a, b), max(a, b))
    got = c.near(x, seed)
    same = [x + k * tau for k in range(-20, 21) if c.lower <= x + k * tau <= c.upper]
    for y in same:
        assert abs(got - seed) <= abs(y - seed) + 1e-9
    if same:
        assert abs(c.difference(got, x)) < 1e-9


def test_near_takes_a_limit_that_rounding_just_misses() -> None:
    c = angle(-2.1600300535367287, 5.0)
    assert c.near(-2.1600300535367287, -6.0) == c.lower
    c = angle(-7.630247304397329, 1.8036318503496442)  # the upper limit and x are the same angle
    assert c.near(8.08681715752923, 35.0) == c.upper


@pytest.mark.parametrize(("lower", "upper"), [(-inf, inf), (-inf, 1.0), (1.0, inf)])
@given(x=VALUES, seed=VALUES)
def test_open_limits(lower: float, upper: float, x: float, seed: float) -> None:
    c = angle(lower, upper)
    assert not c.bounded
    for y in (c.within(x), c.near(x, seed)):
        assert lower <= y <= upper
        assert c.difference(y, x) == pytest.approx(0.0, abs=1e-9)


def test_an_angle_a_turn_away_is_inside() -> None:
    c = angle(0.39, 6.28)
    assert c.near(-2.0, 0.5) == pytest.approx(tau - 2.0)
    assert c.inside(-2.0, 0.5) == pytest.approx(tau - 2.0)
    assert c.inside(0.2, 0.5) is None
    assert c.inside(0.39 - 1e-12, 0.5) == 0.39


def test_the_representative_nearest_to_the_seed_of_several() -> None:
    c = angle(-tau, tau)
    assert c.near(1.0, 0.0) == 1.0
    assert c.near(1.0, -5.0) == pytest.approx(1.0 - tau)
    assert c.near(1.0, 100.0) == 1.0


@given(ENDS, ENDS, VALUES)
def test_a_slide_is_clipped_and_never_comes_round(a: float, b: float, x: float) -> None:
    c = Column(0, min(a, b), max(a, b), False, 0.0, 0.5)
    assert c.within(x) == min(max(x, c.lower), c.upper)
    assert c.difference(x, 0.0) == x / 0.5


@pytest.mark.parametrize(("span", "bounded"), [(tau, False), (6.2832, False), (2 * 3.1415, True), (tau - 1e-5, False)])
def test_a_range_of_a_whole_turn_is_no_bound(span: float, bounded: bool) -> None:
    assert angle(-span / 2, span / 2).bounded is bounded


def test_periods_of_mimic_joints() -> None:
    def period(*edges: Edge) -> float:
        (column,) = columns(edges, [-inf], [inf], 1.0)
        return column.period

    assert period(edge("revolute", 0)) == tau
    assert period(edge("revolute", 0), edge("revolute", 0, ratio=-3.0)) == tau
    assert period(edge("revolute", 0, ratio=0.5)) == 2 * tau
    assert period(edge("revolute", 0), edge("revolute", 0, ratio=1.5)) == 0.0
    assert period(edge("revolute", 0), edge("prismatic", 0, ratio=0.1)) == 0.0
    assert period(edge("prismatic", 0)) == 0.0


def test_columns_come_in_the_order_of_the_joints_and_once_each() -> None:
    edges = [edge("revolute", 4), edge("fixed", -1), edge("planar", 1), edge("revolute", 0)]
    got = columns([*edges, edge("revolute", 4, ratio=2.0)], [-1.0] * 5, [1.0] * 5, 0.25)
    assert [c.index for c in got] == [4, 1, 2, 3, 0]
    assert [c.angle for c in got] == [True, False, False, True, True]
    assert [c.scale for c in got] == [1.0, 0.25, 0.25, 1.0, 1.0]


def test_reach_bounds_the_chain() -> None:
    edges = [edge("revolute", 0, shift=0.5), edge("prismatic", 1, shift=-0.25), edge("fixed", -1, shift=0.125)]
    assert reach(edges, [-pi, -0.5], [pi, 0.25]) == 0.5 + 0.25 + 0.125 + 0.5
    assert reach(edges, [-pi, -inf], [pi, 999999.0]) == 0.875  # limits that say nothing
    assert reach([edge("revolute", 0)], [-pi], [pi]) == 1.0
    assert reach([edge("revolute", 0, shift=1e-16)], [-pi], [pi]) == 1.0  # the rounding of an origin
