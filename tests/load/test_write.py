"""Model -> URDF -> model: bit-identical kernels, whatever the joints, the order of q, the unit and the names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.load import model_of
from fkd.load.build import Choices, build_model
from fkd.load.check import check_description, refuse_errors
from fkd.load.settings import Settings
from fkd.load.urdf import read_urdf
from fkd.load.write import write_urdf
from fkd.load.xml import parse_xml
from fkd.model import Limits, Model
from fkd.robot import Robot

TEXT = """<robot name="a &amp; &quot;b&quot;"><link name="r&lt;t"/><link name="x"/><link name="y"/><link name="z"/><link name="w"/><link name="v"/>
<joint name="one" type="revolute"><parent link="r&lt;t"/><child link="x"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/><limit lower="-1.5" upper="2" velocity="3"/></joint>
<joint name="two" type="prismatic"><parent link="x"/><child link="y"/><axis xyz="0 0 2"/><limit lower="-0.1" upper="9" effort="4" velocity="1"/></joint>
<joint name="three" type="planar"><parent link="y"/><child link="z"/><axis xyz="1 1 0"/></joint>
<joint name="four" type="continuous"><parent link="z"/><child link="w"/><mimic joint="one" multiplier="-0.3" offset="0.1"/></joint>
<joint name="five" type="floating"><parent link="w"/><child link="v"/></joint></robot>"""


def model(text: str, **choices: object) -> Model:
    description = read_urdf(parse_xml(text.encode(), "m.urdf"))
    refuse_errors(check_description(description), "m.urdf")
    return build_model(description, Choices(**choices), digest="", trust="unbundled", source="m.urdf")  # type: ignore[arg-type]


def again(first: Model) -> Model:
    return model_of(read_urdf(parse_xml(write_urdf(first).encode(), "m.urdf")), Settings(), "m.urdf")


def same(first: Model, second: Model) -> bool:
    """All that the kinematics and the wire tell of a model, to the last bit (velocity and effort are told below)."""
    limits = lambda j: j.limits and (j.limits.lower, j.limits.upper)  # noqa: E731
    tell = lambda m: [(j.name, j.type, j.parent, j.child, j.T_parent_joint, j.axis, limits(j), j.mimic, j.index, j.ratio, j.bias)  # noqa: E731
                      for j in sorted(m.joints, key=lambda j: j.name)]  # fmt: skip
    return tell(first) == tell(second) and [j.name for j in first.independent] == [j.name for j in second.independent] and first.links == second.links


triple = st.tuples(*[st.floats(-4, 4)] * 3)


@given(triple, triple, triple.filter(lambda v: max(map(abs, v)) > 1e-6))
def test_what_is_written_reads_back_to_the_last_bit(xyz: tuple, rpy: tuple, axis: tuple) -> None:
    text = TEXT.format(**{k: " ".join(map(repr, v)) for k, v in (("xyz", xyz), ("rpy", rpy), ("axis", axis))})
    first = model(text)
    second = again(first)
    assert same(first, second)
    assert write_urdf(second) == write_urdf(first)
    q = [0.1 * k + 0.05 for k in range(first.dof)]
    assert Robot(first).poses(q, first.links) == Robot(second).poses(q, first.links)


PLAIN = TEXT.format(xyz="1 2 3", rpy="0.1 0.2 0.3", axis="0 0 1")


def test_the_order_of_q_is_that_of_the_document_written() -> None:
    first = model(PLAIN, joints=["five", "three", "one", "two"])
    assert [j.name for j in again(first).independent] == ["five", "three", "one", "two"]
    assert same(first, again(first))


def test_units_and_calibration_are_in_the_numbers() -> None:
    first = model(PLAIN, per_metre=1000.0, calibration={"two": ((0.5, 0.0, 0.0), (0.0, 0.0, 0.25))})
    second = again(first)
    assert same(first, second)
    assert second.by_name["one"].xyz == (0.001, 0.002, 0.003)
    assert second.by_name["two"].limits.upper == 0.009
    assert second.by_name["two"].xyz == (0.5, 0.0, 0.0)


def test_other_readers_find_the_limits_that_they_ask_for() -> None:
    """They refuse a revolute joint without limits, and a limit without effort and velocity."""
    text = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
<joint name="free" type="revolute"><parent link="a"/><child link="b"/></joint>
<joint name="held" type="revolute"><parent link="b"/><child link="c"/><limit lower="-1" upper="1" velocity="2"/></joint></robot>"""
    second = again(model(text))
    assert second.by_name["free"].type == "continuous"
    assert second.by_name["held"].limits == Limits(-1.0, 1.0, 2.0, 0.0)


@pytest.mark.parametrize("name", sorted(p.name for p in (Path(__file__).parent.parent / "robots").glob("*.urdf") if "broken" not in p.name))
def test_every_robot_of_the_tests_survives_the_trip(name: str) -> None:
    text = (Path(__file__).parent.parent / "robots" / name).read_text()
    first = model(text)
    assert same(first, again(first))
