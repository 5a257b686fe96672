"""Limits of q as inverse kinematics heeds them: what files write, and what they mean by it."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from fkd.limits import limits, middle
from fkd.model import Joint, Limits, Mimic, Model

PLACE = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
TURN = Joint("j", "revolute", "a", "b", PLACE, (0.0, 0.0, 1.0), limits=Limits(-1.0, 2.0), index=0)


def model(*joints: Joint) -> Model:
    independent = tuple(j for j in joints if j.width)
    return Model("m", "a", ("a", *(j.child for j in joints)), joints, independent, None, "a")


def follower(ratio: float, bias: float, lower: float | None, upper: float | None, kind: str = "revolute") -> Joint:
    return replace(TURN, name="f", type=kind, parent="b", child="c", limits=Limits(lower, upper),
                   mimic=Mimic("j", ratio, bias), ratio=ratio, bias=bias)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("revolute", Limits(-1.0, 2.0), (-1.0, 2.0)),
        ("revolute", Limits(2.0, -1.0), (-1.0, 2.0)),  # reversed
        ("revolute", Limits(0.5, 0.5), (0.5, 0.5)),  # locked
        ("revolute", Limits(0.0, 0.0), (-inf, inf)),  # URDF's default, for none
        ("revolute", Limits(None, None), (-inf, inf)),
        ("revolute", None, (-inf, inf)),
        ("continuous", Limits(0.0, 0.0), (-inf, inf)),
        ("continuous", Limits(-1.0, 1.0), (-inf, inf)),
        ("prismatic", Limits(0.1, 0.4), (0.1, 0.4)),
    ],
)
def test_limits_are_as_they_are_meant(kind: str, written: Limits | None, meant: tuple[float, float]) -> None:
    assert limits(model(replace(TURN, type=kind, limits=written))) == ([meant[0]], [meant[1]])


@pytest.mark.parametrize(
    ("ratio", "bias", "lower", "upper", "meant"),
    [
        (2.0, 0.5, -0.5, 1.5, (-0.5, 0.5)),  # 2 q + 0.5 within -0.5 .. 1.5
        (-1.0, 0.0, -0.25, 9.0, (-1.0, 0.25)),  # turned round
        (1.0, 0.0, -9.0, 9.0, (-1.0, 2.0)),  # wider than the source's own
        (1.0, 0.0, 5.0, 6.0, (-1.0, 2.0)),  # contradicts the source
        (-1.0, 0.0, 1.0, 2.0, (-1.0, 2.0)),  # leaves one point only
        (1.0, 0.0, 0.0, 0.0, (-1.0, 2.0)),  # none
        (1.0, 0.0, None, None, (-1.0, 2.0)),
        (0.0, 0.3, 1.0, 2.0, (-1.0, 2.0)),  # stands still
        (1e-320, 0.0, -1.0, 1.0, (-1.0, 2.0)),
    ],
)
def test_a_followers_limits_hold_for_its_source(
    ratio: float, bias: float, lower: float | None, upper: float | None, meant: tuple[float, float]
) -> None:
    assert limits(model(TURN, follower(ratio, bias, lower, upper))) == ([meant[0]], [meant[1]])


def test_a_follower_that_turns_all_round_has_none() -> None:
    assert limits(model(TURN, follower(1.0, 0.0, 0.25, 0.5, "continuous"))) == ([-1.0], [2.0])


def test_wide_joints_have_none_and_rest_where_they_are() -> None:
    drive = replace(TURN, type="planar", limits=None)
    flight = replace(TURN, name="g", type="floating", parent="b", child="c", limits=None, index=3)
    robot = model(drive, flight)
    lower, upper = limits(robot)
    assert (lower, upper) == ([-inf] * 10, [inf] * 10)
    assert middle(robot, lower, upper) == [0.0] * 9 + [1.0]


@pytest.mark.parametrize(
    ("lower", "upper", "rest"),
    [
        (-1.0, 2.0, 0.5), (-inf, inf, 0.0), (1.0, inf, 1.0), (-inf, -2.0, -2.0), (-1e6, 1e6, 0.0), (0.0, 999999.0, 0.0),
        (3.0, 999999.0, 3.0), (-1e308, 1e308, 0.0), (1e308, 1.5e308, 1e308),
    ],
)  # fmt: skip
def test_the_middle_is_of_limits_that_mean_something(lower: float, upper: float, rest: float) -> None:
    assert middle(model(TURN), [lower], [upper]) == [rest]
