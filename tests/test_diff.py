"""diff: what changed and which links moved, against numbers known by hand."""

from __future__ import annotations

import math

import pytest

from fkd.diff import compare
from fkd.load import model_of
from fkd.load.settings import Settings
from fkd.load.urdf import read_urdf
from fkd.load.xml import parse_xml
from fkd.robot import Robot

TEXT = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
<joint name="j1" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 {z}"/><axis xyz="0 0 1"/><limit lower="-1" upper="{upper}"/></joint>
<joint name="j2" type="revolute"><parent link="b"/><child link="c"/><origin xyz="1 0 0" rpy="{roll} 0 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"/></joint></robot>"""


def robot(z: float = 0.1, upper: float = 1.0, roll: float = 0.0, text: str = TEXT) -> Robot:
    return Robot(model_of(read_urdf(parse_xml(text.format(z=z, upper=upper, roll=roll).encode(), "r.urdf")), Settings(), "r.urdf"))


def test_a_robot_is_the_same_as_itself() -> None:
    found = compare(robot(), robot())
    assert found.same
    assert [m.link for m in found.moved] == ["a", "b", "c"]


def test_a_raised_joint_moves_all_behind_it_by_as_much() -> None:
    found = compare(robot(), robot(z=0.1025))
    moved = {m.link: m for m in found.moved}
    assert moved["a"].position == 0.0
    assert moved["b"].position == pytest.approx(0.0025, abs=1e-15)
    assert moved["c"].position == pytest.approx(0.0025, abs=1e-15)
    assert max(m.angle for m in found.moved) == 0.0
    assert [(j, key) for j, key, _, _ in found.joints_changed] == [("j1", "xyz")]


def test_a_rolled_origin_turns_what_is_behind_it() -> None:
    moved = {m.link: m for m in compare(robot(), robot(roll=math.radians(2))).moved}
    assert moved["c"].position == 0.0
    # R_x(2 deg) beside R_y(q): the angle between them is 2 deg whatever q is, because both have the same R_y(q) behind
    assert moved["c"].angle == pytest.approx(math.radians(2), abs=1e-12)


def test_a_limit_alone_moves_nothing_and_is_told() -> None:
    found = compare(robot(), robot(upper=1.5))
    assert not found.same
    assert all(m.position == 0.0 for m in found.moved)
    assert found.joints_changed[0][:2] == ("j1", "limits")


def test_names_that_came_and_went() -> None:
    other = robot(text=TEXT.replace('"c"', '"tool"').replace('"j2"', '"wrist"'))
    found = compare(robot(), other)
    assert (found.links_added, found.links_removed) == (["tool"], ["c"])
    assert (found.joints_added, found.joints_removed) == (["wrist"], ["j2"])
    assert found.tip_changed == ("c", "tool")


def test_the_same_samples_every_time() -> None:
    assert compare(robot(), robot(z=0.2, roll=0.3)) == compare(robot(), robot(z=0.2, roll=0.3))
