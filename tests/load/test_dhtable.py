"""DH tables in: the robot that comes out against products of elementary matrices, and every refusal with its place."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load import model_of
from fkd.load.dhread import Stated, read_table
from fkd.load.dhtable import describe_table
from fkd.load.settings import Settings
from fkd.load.urdf import read_urdf
from fkd.load.write import write_urdf
from fkd.load.xml import parse_xml
from fkd.robot import Robot

ALL = Stated("standard", "m", "rad")
ANGLE = {"rad": 1.0, "deg": math.pi / 180}
LENGTH = {"m": 1.0, "cm": 0.01, "mm": 0.001}


def turn(axis: int, angle: float) -> np.ndarray:
    """An elementary rotation, 4x4, written from its definition."""
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    T = np.eye(4)
    T[i, i] = T[j, j] = math.cos(angle)
    T[i, j], T[j, i] = -math.sin(angle), math.sin(angle)
    return T


def slide(axis: int, length: float) -> np.ndarray:
    T = np.eye(4)
    T[axis, 3] = length
    return T


def by_hand(table: dict[str, Any], q: list[float]) -> np.ndarray:
    """The tip's pose by multiplying the rows' four elementary matrices."""
    a_, l_ = ANGLE[table["angle_unit"]], LENGTH[table["length_unit"]]
    T = np.eye(4)
    values = iter(q)
    for row in table["rows"]:
        theta, d = row["theta"] * a_, row["d"] * l_
        if row["type"] == "prismatic":
            d += next(values)
        elif row["type"] != "fixed":
            theta += next(values)
        parts = [turn(2, theta), slide(2, d), slide(0, row["a"] * l_), turn(0, row["alpha"] * a_)]
        if table["convention"] == "modified":
            parts = [parts[3], parts[2], parts[0], parts[1]]
        for part in parts:
            T = T @ part
    return T


def robot(table: dict[str, Any]) -> Robot:
    read = read_table(json.dumps(table).encode(), "t.json")
    return Robot(model_of(describe_table(read), Settings(), "t.json"))


def rewritten(first: Robot) -> Robot:
    """The robot after a trip through the text of a URDF."""
    return Robot(model_of(read_urdf(parse_xml(write_urdf(first.model).encode(), "t.urdf")), Settings(), "t.urdf"))


numbers = st.floats(-2, 2, allow_nan=False).map(lambda x: round(x, 6)) | st.sampled_from([0.0, 0.5])
right_angles = st.sampled_from([0.0, 90.0, -90.0, 180.0])


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    angle_unit, length_unit = draw(st.sampled_from(sorted(ANGLE))), draw(st.sampled_from(sorted(LENGTH)))
    angles = (numbers | right_angles.map(lambda x: x * ANGLE["deg"])).map(lambda x: x / ANGLE[angle_unit])
    lengths = numbers.map(lambda x: x / LENGTH[length_unit])
    kinds = st.sampled_from(["revolute", "revolute", "continuous", "prismatic", "fixed"])
    rows = [
        {"joint": f"j{k}", "type": draw(kinds), "a": draw(lengths), "alpha": draw(angles), "d": draw(lengths), "theta": draw(angles)}
        for k in range(draw(st.integers(1, 12)))
    ]
    return {"convention": draw(st.sampled_from(["standard", "modified"])), "angle_unit": angle_unit, "length_unit": length_unit, "rows": rows}


@given(tables(), st.lists(st.floats(-3, 3), min_size=12, max_size=12))
@settings(deadline=None)
def test_a_table_gives_what_its_matrices_multiply_to(table: dict[str, Any], values: list[float]) -> None:
    found = robot(table)
    q = values[: found.dof]
    expected = by_hand(table, q)
    reach = max(1.0, np.abs(expected).max(), sum(abs(r["a"]) + abs(r["d"]) for r in table["rows"]) * LENGTH[table["length_unit"]])
    got = np.reshape(found.poses(q, ("tool0",), "base_link")["tool0"], (4, 4))
    assert np.abs(got - expected).max() <= 1e-12 * reach
    again = rewritten(found)
    assert again.poses(q, ("tool0",), "base_link") == found.poses(q, ("tool0",), "base_link")  # to the last bit


def test_base_and_tool_count() -> None:
    table = {"convention": "standard", "angle_unit": "deg", "length_unit": "mm", "base": {"xyz": [0, 100, 0], "rpy": [0, 0, 90]},
             "tool": {"matrix": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 50], [0, 0, 0, 1]]},
             "rows": [{"joint": "j", "a": 200, "alpha": 90, "d": 0, "theta": 0}]}  # fmt: skip
    expected = slide(1, 0.1) @ turn(2, math.pi / 2) @ turn(2, 0.3) @ slide(0, 0.2) @ turn(0, math.pi / 2) @ slide(2, 0.05)
    assert np.abs(np.reshape(robot(table).pose([0.3]), (4, 4)) - expected).max() < 1e-15


def test_limits_are_in_the_tables_units() -> None:
    text = b"# convention: standard\n# length_unit: mm\n# angle_unit: deg\njoint,type,a,alpha,d,theta,lower,upper\nr,revolute,0,0,0,0,-180,90\np,prismatic,0,0,0,0,-9,250\nc,continuous,0,0,0,0,,\n"
    joints = model_of(describe_table(read_table(text, "t.csv")), Settings(), "t.csv").by_name
    assert (joints["r"].limits.lower, joints["r"].limits.upper) == (-math.pi, math.pi / 2)
    assert (joints["p"].limits.lower, joints["p"].limits.upper) == (-0.009, 0.25)
    assert joints["c"].limits is None


@pytest.mark.parametrize("missing", ["convention", "length_unit", "angle_unit"])
def test_what_a_table_means_is_never_guessed(missing: str) -> None:
    table = {"convention": "standard", "length_unit": "m", "angle_unit": "rad", "rows": [{"joint": "j", "a": 0, "alpha": 0, "d": 0, "theta": 0}]}
    del table[missing]
    with pytest.raises(BundleRefused, match=missing) as e:
        read_table(json.dumps(table).encode(), "t.json")
    assert e.value.reason == f"dh-{missing.replace('_', '-')}"
    assert read_table(json.dumps(table).encode(), "t.json", ALL).rows


def test_the_caller_may_not_contradict_the_file() -> None:
    with pytest.raises(BundleRefused, match="modified"):
        read_table(b'{"convention":"modified","rows":[]}', "t.json", ALL)


HEAD = "joint,type,a,alpha,d,theta\n"


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", "dh-empty", None), (HEAD, "dh-empty", None), (HEAD + "j,revolute,0,0,0\n", "dh-cells", 2), (HEAD + "j,revolute,0,0,0,0,1\n", "dh-cells", 2),
        (HEAD + "j,revolute,0,x,0,0\n", "dh-number", 2), (HEAD + "j,revolute,0,nan,0,0\n", "dh-number", 2), (HEAD + "j,revolute,0,1e999,0,0\n", "dh-number", 2),
        (HEAD + 'j,revolute,0,"0,5",0,0\n', "dh-number", 2), (HEAD + "j,revolute,0,1_0,0,0\n", "dh-number", 2), (HEAD + "j,spherical,0,0,0,0\n", "dh-type", 2),
        (HEAD + ",revolute,0,0,0,0\n", "dh-joint", 2), (HEAD + "j,revolute,,0,0,0\n", "dh-absent", 2), (HEAD + "\nj,revolute,0,0,0,0\nj,revolute,0,0,0,0\n", "dh-joint-twice", 4),
        ("joint,typ,a,alpha,d,theta\nj,revolute,0,0,0,0\n", "dh-column", 1), ("joint,a,a,alpha,d,theta\n", "dh-column", 1),
        ("joint,type,a,alpha,d,theta,lower\nj,revolute,0,0,0,0,1\n", "dh-limits", 2), (HEAD + 'j,revo"lute,0,0,0,0\n', "dh-type", 2),
    ],
)  # fmt: skip
def test_a_bad_csv_is_refused_with_its_line(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(BundleRefused) as e:
        read_table(text.encode(), "t.csv", ALL)
    assert (e.value.reason, e.value.data.get("line")) == (reason, line)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "dh-shape"), ("{}", "dh-shape"), ('{"rows":{}}', "dh-shape"), ('{"rows":[1]}', "dh-shape"), ("{", "dh-syntax"), ("[" * 100_000, "dh-syntax"),
        ('{"rows":[],"rows":[]}', "dh-key"), ('{"rows":[],"bases":1}', "dh-key"), ('{"rows":[{"joint":"j","a":true,"alpha":0,"d":0,"theta":0}]}', "dh-number"),
        ('{"rows":[{"joint":1,"a":0,"alpha":0,"d":0,"theta":0}]}', "dh-joint"), ('{"rows":[{"joint":"j","a":NaN,"alpha":0,"d":0,"theta":0}]}', "dh-number"),
        ('{"rows":[{"joint":"j","a":0,"alpha":0,"d":0,"theta":0}],"base":[1]}', "dh-pose"), ('{"rows":[{"joint":"j","a":0,"alpha":0,"d":0,"theta":0}],"tool":{"xzy":[]}}', "dh-pose"),
        ('{"rows":[{"joint":"j","a":0,"alpha":0,"d":0,"theta":0,"theta_offset":1}]}', "dh-column"),
    ],
)  # fmt: skip
def test_a_bad_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BundleRefused) as e:
        read_table(text.encode(), "t.json", ALL)
    assert e.value.reason == reason


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode), st.sampled_from(["t.csv", "t.json", "t.toml"]))
@settings(deadline=None)
def test_garbage_is_refused_and_nothing_else(data: bytes, name: str) -> None:
    with contextlib.suppress(BundleRefused):
        read_table(data, name, ALL)


def test_huge_tables_and_numbers_are_refused_at_once() -> None:
    row = {"joint": "j", "a": 0, "alpha": 0, "d": 0, "theta": 0}
    many = {"rows": [], **{f"k{i}": 1 for i in range(40_000)}}
    for text in (json.dumps({"rows": [{**row, "a": 10**400}]}), json.dumps(many), json.dumps(many)[:-2] + ',"k0":1}', "x" * 300_000):
        with pytest.raises(BundleRefused):
            read_table(text.encode(), "t.json", ALL)
    with pytest.raises(BundleRefused):
        read_table(b"j" * 140_000 + b",type\n", "t.csv", ALL)
    far = {"rows": [{**row, "a": 1.7e308, "joint": name, "type": "fixed"} for name in ("i", "j")]}
    with pytest.raises(BundleRefused) as e:
        describe_table(read_table(json.dumps(far).encode(), "t.json", ALL))
    assert e.value.reason == "dh-overflow"


def test_toml_reads_as_json_does() -> None:
    toml = b'convention = "modified"\nlength_unit = "m"\nangle_unit = "rad"\n[[rows]]\njoint = "j"\na = 0.1\nalpha = 0\nd = 1\ntheta_offset = 0.5\n'
    row = read_table(toml, "t.toml").rows[0]
    assert (row.a, row.d, row.theta, row.type) == (0.1, 1.0, 0.5, "revolute")
