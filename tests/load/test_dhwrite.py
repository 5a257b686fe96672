"""Tables out: whatever is written, in any form, reads back as the same robot; what cannot be said is not written."""

from __future__ import annotations

import json
from math import pi
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.errors import BundleRefused, FkdError
from fkd.load import model_of
from fkd.load.dhread import Stated, read_table
from fkd.load.dhtable import describe_table
from fkd.load.dhwrite import KINDS, write_table
from fkd.load.settings import Settings
from fkd.load.urdf import read_urdf
from fkd.load.write import write_urdf
from fkd.load.xml import parse_xml
from fkd.robot import Robot

CONVENTIONS = ("standard", "modified")


def robot(text: str, file: str = "t.csv") -> Robot:
    return Robot(model_of(describe_table(read_table(text.encode(), file)), Settings(), file))


def through_urdf(first: Robot) -> Robot:
    return Robot(model_of(read_urdf(parse_xml(write_urdf(first.model).encode(), "t.urdf")), Settings(), "t.urdf"))


def chain(joints: list[dict[str, Any]]) -> Robot:
    """A robot of joints in a row: name, kind, xyz, rpy, axis, and perhaps mimic (source, multiplier, offset)."""
    text = ["<robot name='chain'><link name='l0'/>"]
    for k, j in enumerate(joints):
        xyz, rpy, axis = (" ".join(map(repr, j[key])) for key in ("xyz", "rpy", "axis"))
        rule = ""
        if "mimic" in j:
            source, multiplier, offset = j["mimic"]
            rule = f"<mimic joint={quoteattr(source)} multiplier='{multiplier!r}' offset='{offset!r}'/>"
        text.append(
            f"<link name='l{k + 1}'/><joint name={quoteattr(j['name'])} type='{j['kind']}'><parent link='l{k}'/><child link='l{k + 1}'/>"
            f"<origin xyz='{xyz}' rpy='{rpy}'/><axis xyz='{axis}'/><limit lower='-1.25' upper='0.7' effort='1' velocity='1'/>{rule}</joint>"
        )
    return Robot(model_of(read_urdf(parse_xml(("".join(text) + "</robot>").encode(), "c.urdf")), Settings(), "c.urdf"))


length = st.floats(-1, 1)
turn = st.sampled_from([0.0, pi / 2, -pi / 2, pi, 1.5708, 1e-4]) | st.floats(-pi, pi)
joint = st.fixed_dictionaries({
    "kind": st.sampled_from(["revolute", "continuous", "prismatic"]), "xyz": st.tuples(length, length, length),
    "rpy": st.tuples(turn, turn, turn), "axis": st.sampled_from([(1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.6, 0.0, 0.8)]),
})  # fmt: skip


@given(st.lists(joint, min_size=1, max_size=6), st.sampled_from(KINDS), st.sampled_from(CONVENTIONS), st.data())
@settings(max_examples=25, deadline=None)
def test_a_table_leads_back_to_the_same_robot(joints: list, kind: str, convention: str, data: st.DataObject) -> None:
    for k, j in enumerate(joints):
        j["name"] = f"j{k}"
        if k and data.draw(st.integers(0, 3)) == 0:
            j["mimic"] = (f"j{data.draw(st.integers(0, k - 1))}", data.draw(st.floats(-2, 2)), data.draw(st.floats(-1, 1)))
    first = chain(joints)
    link = first.links[-1]
    found = first.dh(convention, link, "l0")
    second = through_urdf(robot(write_table(found, f"t.{kind}"), f"t.{kind}"))
    assert second.joints == first.joints
    for a, b in zip(first.model.joints, second.model.joints, strict=False):  # a table's robot has its tool besides
        assert (a.name, a.type, a.ratio, a.bias, a.index) == (b.name, b.type, b.ratio, b.bias, b.index)
        if a.type != "continuous":
            assert a.limits
            assert b.limits
            assert (a.limits.lower, a.limits.upper) == (b.limits.lower, b.limits.upper)
    far = max([1.0, *(abs(row[k]) for row in found["rows"] for k in ("a", "d"))])
    for q in np.random.default_rng(1).uniform(-1, 1, (4, first.dof)):
        assert np.abs(first.fk(q, link, "l0") - second.fk(q, "tool0")).max() < 1e-13 + 1e-14 * far + 4 * found["residual"]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8), st.sampled_from(KINDS))
@settings(deadline=None)
def test_a_name_is_kept_or_the_table_is_not_written(name: str, kind: str) -> None:
    found = {"convention": "standard", "base": np.eye(4).ravel().tolist(), "tool": np.eye(4).ravel().tolist(), "residual": 0.0,
             "rows": [{"joint": name, "type": "revolute", "a": 0.1, "alpha": 1e-300, "d": -0.0, "theta": 0.1 + 0.2}]}  # fmt: skip
    try:
        text = write_table(found, f"t.{kind}")
    except FkdError:
        return
    (row,) = read_table(text.encode(), f"t.{kind}").rows
    assert (row.joint, row.a, row.alpha, row.d, row.theta) == (name, 0.1, 1e-300, 0.0, 0.1 + 0.2)


def test_ordinary_names_are_kept_in_every_form() -> None:
    for name in ("joint_1", "robot/a1", "Gelenk größer", 'say "a", b', "関節🤖"):
        first = chain([{"name": name, "kind": "revolute", "xyz": (0.1, 0.0, 0.0), "rpy": (0.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0)}])
        for kind in KINDS:
            assert robot(write_table(first.dh(), f"t.{kind}"), f"t.{kind}").joints == (name,)


def test_trips_do_not_drift() -> None:
    rng = np.random.default_rng(2)
    joints: list[dict[str, Any]] = [
        {"name": f"j{k}", "kind": "revolute", "xyz": xyz, "rpy": rpy, "axis": (0.0, 0.6, 0.8)}
        for k, (xyz, rpy) in enumerate(zip(rng.uniform(-0.5, 0.5, (6, 3)).tolist(), rng.uniform(-3, 3, (6, 3)).tolist(), strict=True))
    ]
    joints[3]["rpy"] = (7e-4, 0.0, 0.0)  # as of a calibrated arm
    first = chain(joints)
    robots = [first]
    for k in range(10):
        last = robots[-1]
        text = write_table(last.dh(CONVENTIONS[k % 2], last.links[-1], last.model.root), "t.csv")
        robots.append(through_urdf(robot(text)))
    for q in rng.uniform(-2, 2, (5, 6)):
        assert np.abs(first.fk(q, "l6", "l0") - robots[-1].fk(q, "tool0")).max() < 1e-11


def test_what_cannot_be_said_is_not_written() -> None:
    plain = chain([{"name": "j1", "kind": "revolute", "xyz": (0.1, 0.0, 0.0), "rpy": (0.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0)}])
    with pytest.raises(FkdError, match=r"written as \.csv, \.toml or \.json"):
        write_table(plain.dh(), "t.xlsx")
    with pytest.raises(FkdError, match="has no rows"):
        write_table(plain.dh("standard", "l0", "l0"), "t.json")
    pair = chain([
        {"name": "one", "kind": "revolute", "xyz": (0.1, 0.0, 0.0), "rpy": (0.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0)},
        {"name": "two", "kind": "revolute", "xyz": (0.1, 0.0, 0.0), "rpy": (0.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0), "mimic": ("one", 2.0, 0.5)},
    ])  # fmt: skip
    with pytest.raises(FkdError, match="`two` follows `one`, which is not in this chain"):
        write_table(pair.dh("standard", "l2", "l1"), "t.json")


# -- what a written table has that others seldom do: base, tool and followers, in comment lines too --------------------

ROWS = "joint,type,a,alpha,d,theta\nj1,revolute,100,0,0,0\nj2,prismatic,0,0,50,0\nj3,fixed,0,0,10,0\n"
MM = Stated("standard", "mm", "deg")


def read(head: str) -> Any:
    return read_table((head + ROWS).encode(), "t.csv", MM)


def test_comment_lines_say_base_tool_and_mimic_in_the_tables_units() -> None:
    head = '# base: {"xyz": [0, 0, 400], "rpy": [0, 0, 90]}\n# mimic: {"j2": {"joint": "j1", "multiplier": 0.5, "offset": 20}}\n'
    found = Robot(model_of(describe_table(read(head)), Settings(), "t.csv"))
    turned = np.array([[0.0, -1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.1], [0.0, 0.0, 1.0, 0.4 + 0.05 + 0.01 + 0.02]])
    assert np.abs(found.fk([0.0])[:3] - turned).max() < 1e-16
    assert found.fk([pi / 3])[2, 3] == pytest.approx(0.48 + 0.5 * 60e-3, abs=1e-15)  # half a millimetre a degree


@pytest.mark.parametrize(("head", "reason", "message"), [
    ("# base: bolted to the floor\n", "dh-syntax", "t.csv:1: `base` in a comment line is JSON"),
    ("# tool: [1, 2, 3]\n", "dh-pose", "`tool` is no pose"),
    ("# convention: standard\n# convention: modified\n", "dh-key", "t.csv:2: `convention` is given twice"),
    ("# mimic: [1]\n", "dh-mimic", "a table of followers"),
    ('# mimic: {"j9": {"joint": "j1"}}\n', "dh-mimic", "`j9`, which is no moving joint"),
    ('# mimic: {"j3": {"joint": "j1"}}\n', "dh-mimic", "`j3`, which is no moving joint"),
    ('# mimic: {"j2": {"joint": "j1", "ratio": 2}}\n', "dh-mimic", "has joint, multiplier, offset"),
    ('# mimic: {"j2": 5}\n', "dh-mimic", "has joint, multiplier, offset"),
    ('# mimic: {"j2": {"multiplier": 2}}\n', "dh-mimic", "names no moving `joint`"),
    ('# mimic: {"j2": {"joint": "J1"}}\n', "dh-mimic", "did you mean `j1`"),
    ('# mimic: {"j2": {"joint": "j1", "offset": "x"}}\n', "dh-number", "offset of joint `j2` is `x`"),
    ("# mimic: " + "[" * 100_000 + "\n", "dh-syntax", "`mimic` in a comment line is JSON"),
])  # fmt: skip
def test_what_they_say_wrong_is_refused(head: str, reason: str, message: str) -> None:
    with pytest.raises(BundleRefused) as e:
        read(head)
    assert e.value.reason == reason
    assert message in str(e.value)


def test_rings_of_followers_are_refused() -> None:
    for rules in ({"j1": {"joint": "j1"}}, {"j1": {"joint": "j2"}, "j2": {"joint": "j1"}}):
        with pytest.raises(BundleRefused, match="mimic"):
            model_of(describe_table(read(f"# mimic: {json.dumps(rules)}\n")), Settings(), "t.csv")


@pytest.mark.parametrize("near", [0.0, 1e-15, 1e-14, 3e-13, 6e-13, 1e-9])
@pytest.mark.parametrize("roll", [0.0, 0.7, -2.5])
def test_a_frame_in_gimbal_lock_costs_no_digits(near: float, roll: float) -> None:
    """The convention for people, roll 0, would miss it by as much as it is from lock."""
    cp, sp, cr, sr = np.sin(near), np.cos(near), np.cos(roll), np.sin(roll)  # pitch: a quarter turn less `near`
    T = np.array([[cp, sp * sr, sp * cr, 0], [0, cr, -sr, 0], [-sp, cp * sr, cp * cr, 0], [0, 0, 0, 1]])
    row = {"joint": "j", "type": "revolute", "a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0}
    table = {"convention": "standard", "rows": [row], "base": T.ravel().tolist(), "tool": np.eye(4).ravel().tolist(), "residual": 0.0}
    assert np.abs(robot(write_table(table, "t.json"), "t.json").fk([0.0]) - T).max() < 2e-15
