"""fk and decompose: the same bytes from a daemon and from a file, and what people read says what the wire says."""

from __future__ import annotations

import json
import math
import re
from math import cos, pi, sin
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.ctl import text

Q = ["-0.1", "-.25", "1e-1", "-2.5E-1", "0.5", "-1"]
LINE = 1e-9  # printed numbers have nine decimals


@pytest.fixture(scope="module")
def arm(robots):
    return str(robots / "wire_arm.urdf")


@pytest.fixture(scope="module")
def cart(robots):
    return str(robots / "ctl_cart.urdf")


def matrix(entries: str) -> list[str]:
    return ["--matrix", *entries.split()]


def numbers(line: str) -> list[float]:
    return [float(w) for w in re.findall(r"-?\d+\.\d+", line)]


def product(a: list[float], b: list[float]) -> list[float]:
    return [sum(a[4 * i + k] * b[4 * k + j] for k in range(4)) for i in range(4) for j in range(4)]


def rotation(roll: float, pitch: float, yaw: float) -> list[list[float]]:
    """Rz(yaw) Ry(pitch) Rx(roll), multiplied out by hand."""
    cr, sr, cp, sp, cy, sy = cos(roll), sin(roll), cos(pitch), sin(pitch), cos(yaw), sin(yaw)
    return [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]


def hook(run: float, swing: float) -> list[float]:
    """rail -> hook of ctl_crane, by hand."""
    c, s = cos(swing), sin(swing)
    return [c, -s, 0, run + 0.5 + 2 * c, s, c, 0, 2 * s, 0, 0, 1, 1, 0, 0, 0, 1]


def fk_json(fkctl, *words: Any) -> dict[str, Any]:
    ran = fkctl(*words, "--json")
    assert ran.status == 0, ran
    return json.loads(ran.out)["poses"]


# -- one answer, whoever gives it --------------------------------------------------------------------------------------

SAME = [
    ["fk", *Q],
    ["fk", *Q, "--deg"],
    ["fk", *Q, "--link", "all"],
    ["fk", *Q, "--link", "hand", "--link", "base", "--base", "flange"],
    ["fk", *Q, "--format", "pose"],
    ["fk", *Q, "--format=ros"],
    ["fk", "j6=-1", "j1=-0.1", "j2=-.25", "j3=1e-1", "j4=-2.5E-1", "j5=0.5"],
    ["decompose", *Q],
    ["decompose", *Q, "--link", "hand", "--base", "shoulder", "--deg"],
    ["decompose", *matrix("0 -1 0 -.5 1 0 0 1e-3 0 0 1 -2E-1 0 0 0 1")],
    ["model"],
    ["check"],
    ["ping"],
    ["call", "compute_fk", "[0, 0, 0, 0, 0, 0]"],
    ["call", "compute_fk", '{"q": {"j1": 1}, "missing": "zero",\n "links": "all"}'],
    ["fk"],
    ["fk", "1"],
    ["fk", *Q, "--link", "hnad"],
    ["fk", *Q, "--link", "j3"],
    ["fk", *Q, "--link", ""],
    ["fk", *Q, "--base", "nowhere"],
    ["fk", "j7=1"],
    ["fk", "j1=1"],
    ["fk", "j1=1,2"],
    ["decompose", *Q, "--link", "all"],
    ["decompose", *matrix("2 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1")],
    ["call", "compute_fk", '{"qq": 1}'],
    ["call", "compute_fq", "[]"],
    ["call", "compute_fk", "[1e308, 0, 0, 0, 0, 0]"],
]


@pytest.mark.parametrize("words", SAME, ids=" ".join)
def test_daemon_and_file_answer_alike(fkctl, shared_daemon, arm, words):
    """Byte for byte, errors too."""
    by_file = fkctl(*words, "--json", "--model", arm)
    assert fkctl(*words, "--json", "--socket", shared_daemon.path) == by_file
    assert by_file.status in (0, 1)
    assert words[0] in ("ping", "check") or fkctl(*words, "--model", arm) == fkctl(*words, "--socket", shared_daemon.path)


@pytest.mark.parametrize(
    ("words", "method", "params"),
    [
        (["fk", *Q], "compute_fk", {"q": [float(w) for w in Q]}),
        (["fk", *Q, "--link=all"], "compute_fk", {"q": [float(w) for w in Q], "links": "all"}),
        (["fk", *Q, "--format=ros", "--deg", "--base=hand"], "compute_fk",
         {"q": [float(w) for w in Q], "format": "ros", "degrees": True, "base": "hand"}),
        (["decompose", *Q, "--link=hand"], "decompose", {"q": [float(w) for w in Q], "link": "hand"}),
        (["model"], "model", []),
        (["check"], "check", []),
        (["ping"], "ping", []),
    ],
)  # fmt: skip
def test_json_is_exactly_the_wires_result(fkctl, shared_daemon, words, method, params):
    talk = shared_daemon.connect()
    talk.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 5}).encode() + b"\n")
    line = talk.line().decode()
    assert line == '{"jsonrpc":"2.0","result":' + fkctl(*words, "--json", "--socket", shared_daemon.path).out[:-1] + ',"id":5}'


# -- fk ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("run", "swing"), [(0, 0), (0.25, -0.5), (-1.5, 2.0), (-0.125, pi)])
def test_fk_of_a_crane_is_what_the_hand_computes(fkctl, crane, run, swing):
    poses = fk_json(fkctl, "--model", crane, "fk", run, swing, "--link", "hook")
    assert poses["hook"] == pytest.approx(hook(run, swing), abs=1e-15)


def test_degrees_are_for_angles_alone(fkctl, crane):
    """`run` slides: its metres are never scaled."""
    poses = fk_json(fkctl, "--model", crane, "fk", "0.25", "-90", "--deg", "--link", "hook")
    assert poses["hook"] == pytest.approx(hook(0.25, -pi / 2), abs=1e-15)
    assert fkctl("--model", crane, "fk", "0.25", "-90", "--deg", "--link", "hook").out.rstrip().endswith("-90.000000000 deg")


def test_values_by_name_in_any_order(fkctl, crane):
    assert fkctl("--model", crane, "fk", "swing=-.5", "run=0.25") == fkctl("--model", crane, "fk", "0.25", "-.5")


def test_a_follower_may_be_named_if_it_agrees(fkctl, crane):
    expected = fkctl("--model", crane, "fk", "run=0", "swing=-.5")
    assert fkctl("--model", crane, "fk", "balance=0.5", "run=0", "swing=-.5") == expected
    ran = fkctl("--model", crane, "fk", "balance=0.75", "run=0", "swing=-.5")
    assert ran.status == 1
    assert "`balance` follows `swing`" in ran.err


def test_a_wide_joint_takes_its_values_with_commas(fkctl, cart):
    by_name = fk_json(fkctl, "--model", cart, "fk", "drive=-1,2,-0.5", "left_mast=1", "right_mast=0", "--link", "left")
    assert by_name == fk_json(fkctl, "--model", cart, "fk", "-1", "2", "-0.5", "1", "0", "--link", "left")
    c, s = cos(-0.5), sin(-0.5)
    expected = [c, -s, 0, -1 - 0.25 * s, s, c, 0, 2 + 0.25 * c, 0, 0, 1, 1, 0, 0, 0, 1]
    assert by_name["left"] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["0.5", "swing=1"], 2, "give all values as numbers in model order, or all as name=value"),
        (["run=1", "run=1"], 2, "joint `run` is given twice"),
        (["0.5", "hook"], 2, "`hook` is not a number"),
        (["0.5"], 1, "q has 1 number; robot `ctl_crane` takes 2 (run, swing)"),
        (["runn=1"], 1, "did you mean `run`?"),
        (["hook=1"], 1, "it is a link"),
        (["eye=1", "run=0", "swing=0"], 1, "joint `eye` is fixed"),
        (["run=1"], 1, "no value for joint `swing`"),
        (["0", "0", "--link", "hok"], 1, "did you mean `hook`?"),
        (["0", "0", "--link", "eye"], 1, "`eye` is a joint, not a link; its child link is `hook`"),
        (["0", "0", "--base", "rial"], 1, "did you mean `rail`?"),
    ],
)
def test_what_does_not_fit_the_robot_is_named(fkctl, crane, words, status, says):
    ran = fkctl("--model", crane, "fk", *words)
    assert ran.status == status
    assert says in ran.err
    assert not ran.out


def test_no_single_tip_lists_the_candidates_and_the_way_out(fkctl, cart):
    ran = fkctl("--model", cart, "fk", *"00000")
    assert ran.status == 1
    assert all(word in ran.err for word in ("`left`", "`right`", "--tip", "bundle.toml"))


def test_links_come_in_the_order_asked_for_and_once_each(fkctl, crane):
    poses = fk_json(fkctl, "--model", crane, "fk", "0", "0", "--link=hook", "--link=rail", "--link=hook", "--link=jib")
    assert list(poses) == ["hook", "rail", "jib"]
    assert list(fk_json(fkctl, "--model", crane, "fk", "0", "0", "--link=all")) == ["rail", "carriage", "jib", "hook", "weight"]


def test_base_and_link_compose(fkctl, arm):
    """T_root_hand = T_root_forearm * T_forearm_hand."""
    from_root = fk_json(fkctl, "--model", arm, "fk", *Q, "--link=all")
    from_forearm = fk_json(fkctl, "--model", arm, "fk", *Q, "--link=all", "--base=forearm")
    for link, T in from_root.items():
        assert product(from_root["forearm"], from_forearm[link]) == pytest.approx(T, abs=1e-12)


def test_people_read_what_the_wire_says(fkctl, arm):
    poses = fk_json(fkctl, "--model", arm, "fk", *Q, "--link=all", "--base=hand")
    lines = fkctl("--model", arm, "fk", *Q, "--link=all", "--base=hand").out.splitlines()
    assert len(lines) == 6 * len(poses)
    for k, (link, T) in enumerate(poses.items()):
        title, *rows, last = lines[6 * k : 6 * k + 6]
        assert title == f"{link} in hand"
        assert [x for row in rows for x in numbers(row)] == pytest.approx(T, abs=LINE)
        xyz, rpy = numbers(last)[:3], numbers(last)[3:]
        assert xyz == pytest.approx(T[3:12:4], abs=LINE)
        assert [x for row in rotation(*rpy) for x in row] == pytest.approx([T[i] for i in (0, 1, 2, 4, 5, 6, 8, 9, 10)], abs=1e-8)


@pytest.mark.parametrize("form", ["pose", "ros"])
def test_the_other_formats(fkctl, crane, form):
    out = fkctl("--model", crane, "fk", "0.25", "1", "--link=hook", "--format", form).out
    x, y, z = hook(0.25, 1)[3:12:4]
    quaternion = [0, 0, sin(0.5), cos(0.5)]
    if form == "ros":
        pose = json.loads(out.splitlines()[1])
        assert [pose["position"][k] for k in "xyz"] == pytest.approx([x, y, z])
        assert [pose["orientation"][k] for k in "xyzw"] == pytest.approx(quaternion)
    else:
        assert numbers(out) == pytest.approx([x, y, z, *quaternion, 0, 0, 1], abs=LINE)


# -- decompose ---------------------------------------------------------------------------------------------------------


def test_decompose_says_all_forms(fkctl, arm):
    found = json.loads(fkctl("--model", arm, "decompose", *Q, "--json").out)
    lines = fkctl("--model", arm, "decompose", *Q).out.splitlines()
    assert [x for row in lines[:4] for x in numbers(row)] == pytest.approx(found["matrix"], abs=LINE)
    shown = {line[2:14].strip(): numbers(line[14:]) for line in lines[4:]}
    axis = found["axis_angle"]
    expected = {
        "xyz": found["xyz"], "rpy": found["rpy"], "or rpy": found["rpy_alt"], "quaternion": found["quaternion"],
        "axis, angle": [*axis["axis"], axis["angle"]],
    }  # fmt: skip
    assert shown.keys() == expected.keys()
    assert all(shown[k] == pytest.approx(expected[k], abs=LINE) for k in shown)
    in_degrees = fkctl("--model", arm, "decompose", *Q, "--matrix", *map(repr, found["matrix"]), "--deg")
    assert in_degrees.status == 2  # q and --matrix


def test_decompose_of_a_matrix_is_that_of_its_configuration(fkctl, arm):
    at_q = json.loads(fkctl("--model", arm, "decompose", *Q, "--json").out)
    of_matrix = json.loads(fkctl("--model", arm, "decompose", "--json", "--matrix", *map(repr, at_q["matrix"])).out)
    assert of_matrix == at_q


def test_gimbal_lock_is_said(fkctl, crane):
    quarter_pitch = matrix("0 0 1 0  0 1 0 0  -1 0 0 0  0 0 0 1")
    out = fkctl("--model", crane, "decompose", "--deg", *quarter_pitch).out
    assert "gimbal lock" in out
    assert "or rpy" not in out
    assert "90.000000000" in out


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (matrix("1 0 0 0 0 1 0 0 0 0 1 0 0 0 0"), 2, "argument --matrix: expected 16 arguments"),
        (matrix("1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 one"), 2, "`one` is not a number"),
        ([*matrix("1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"), "7"], 2, "--matrix stands alone"),
        ([*matrix("1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"), "--link=hook"], 2, "--matrix stands alone"),
        (matrix("1 0 0 0 0 1 0 0 0 0 1 0 -.5 0 0 1"), 1, "not 0 0 0 1; is the matrix column-major?"),
        (matrix("1 0 0 0 0 1 0 0 0 0 -1 0 0 0 0 1"), 1, "is not a rotation"),
        (["0", "0", "--link", "hok"], 1, "did you mean `hook`?"),
    ],
)  # fmt: skip
def test_what_cannot_be_decomposed(fkctl, crane, words, status, says):
    ran = fkctl("--model", crane, "decompose", *words)
    assert ran.status == status
    assert says in ran.err


# -- numbers in print --------------------------------------------------------------------------------------------------


@given(st.floats(-1e9, 1e9))
def test_a_printed_number_is_near_and_never_minus_zero(x):
    shown = text.number(x)
    assert float(shown) == pytest.approx(x, abs=0.5000001e-9, rel=1e-15)
    assert not (float(shown) == 0.0 and math.copysign(1.0, float(shown)) < 0.0)
