"""Service.call: every method's forms, and what a caller hears who gets one wrong.

Expected poses are worked out by hand from the robots' round numbers (tests/robots/wire_*.urdf).
"""

from __future__ import annotations

import json
import re
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from fkd.dispatch import METHODS, run, serving
from fkd.errors import FkdError, InvalidParams, MethodNotFound, ModelError, NotPermitted
from fkd.robot import load
from fkd.service import Session

ROBOTS = Path(__file__).parent / "robots"
arm = Session(serving(load(ROBOTS / "wire_arm.urdf")))
gripper = Session(serving(load(ROBOTS / "wire_gripper.urdf")))
slides = Session(serving(load(ROBOTS / "wire_slides.urdf")))

angles = st.floats(-3, 3)
lengths = st.floats(-2, 2)
IDENTITY = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
HOME = [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1]  # wire_arm at q = 0: stretched along x


def ask(session: Session, method: str, params: Any = None) -> Any:
    raw = Raw() if params is None else Raw(json.dumps(params).encode())
    return json.loads(run(session, method, raw), parse_constant=pytest.fail)


def refused(session: Session, method: str, params: Any) -> FkdError:
    raw = Raw(params if isinstance(params, bytes) else json.dumps(params).encode())
    with pytest.raises(FkdError) as e:
        run(session, method, raw)
    assert re.fullmatch(r"[a-z0-9-]+", e.value.reason)
    return e.value


def rz(angle: float, x: float = 0, y: float = 0, z: float = 0) -> list[float]:
    """A turn about z at a place, as 16 numbers."""
    c, s = cos(angle), sin(angle)
    return [c, -s, 0, x, s, c, 0, y, 0, 0, 1, z, 0, 0, 0, 1]


def close(a: Any, b: Any) -> bool:
    return bool(a == pytest.approx(b, abs=1e-12))


# -- compute_fk --------------------------------------------------------------------------------------------------------


@given(st.lists(angles, min_size=6, max_size=6))
def test_both_forms_and_an_object_give_the_same_pose(q: list[float]) -> None:
    flat = ask(arm, "compute_fk", q)
    assert ask(arm, "compute_fk", {"q": q})["poses"] == {"tool0": flat}
    assert ask(arm, "compute_fk", {"q": {f"j{k + 1}": v for k, v in reversed(list(enumerate(q)))}})["poses"] == {"tool0": flat}


@given(angles)
def test_the_first_axis_turns_the_stretched_arm_about_z(angle: float) -> None:
    expected = rz(angle, 1.0625 * cos(angle), 1.0625 * sin(angle), 0.75)
    assert close(ask(arm, "compute_fk", [angle, 0, 0, 0, 0, 0]), expected)


@given(lengths, angles)
def test_followers_follow(lift: float, k: float) -> None:
    """right turns by -k, its tip by 2 (-k) + 0.5 more."""
    poses = ask(gripper, "compute_fk", {"q": {"knuckle": k, "lift": lift}, "links": "all"})["poses"]
    assert list(poses) == ["rail", "palm", "left", "right", "right_tip"]
    assert close(poses["rail"], IDENTITY)
    assert close(poses["left"], rz(k, 0, 0.0625, lift))
    assert close(poses["right"], rz(-k, 0, -0.0625, lift))
    assert close(poses["right_tip"], rz(-3 * k + 0.5, 0.125 * cos(k), -0.0625 - 0.125 * sin(k), lift))


@given(st.permutations(["base", "hand", "tool0", "forearm"]), st.lists(angles, min_size=6, max_size=6))
def test_links_come_in_the_order_asked_each_as_if_asked_alone(links: list[str], q: list[float]) -> None:
    poses = ask(arm, "compute_fk", {"q": q, "links": links})["poses"]
    assert list(poses) == links
    for link in links:
        assert close(poses[link], ask(arm, "compute_fk", {"q": q, "links": link})["poses"][link])


def test_links_default_to_the_tip_and_all_means_every_link() -> None:
    q = [0] * 6
    assert list(ask(arm, "compute_fk", {"q": q})["poses"]) == ["tool0"]
    assert list(ask(arm, "compute_fk", {"q": q, "links": None})["poses"]) == ["tool0"]
    assert tuple(ask(arm, "compute_fk", {"q": q, "links": "all"})["poses"]) == arm.robot.links
    assert list(ask(arm, "compute_fk", {"q": q, "links": ["hand", "tool0", "hand"]})["poses"]) == ["hand", "tool0"]


@given(lengths, lengths)
def test_base_is_the_frame_that_poses_are_in(s1: float, s2: float) -> None:
    ask_from = {"q": [s1, s2], "links": ["bed", "slide"], "base": "carriage"}
    poses = ask(slides, "compute_fk", ask_from)["poses"]
    assert close(poses["bed"][3], -s1)
    assert close(poses["slide"][3], 0.125 + s2)


TOOL_FORMS = {
    "matrix, flat": rz(pi / 2, 0.5, 0, 0),
    "matrix, nested": [rz(pi / 2, 0.5, 0, 0)[k : k + 4] for k in (0, 4, 8, 12)],
    "matrix in an object": {"matrix": rz(pi / 2, 0.5, 0, 0)},
    "xyz and rpy": {"xyz": [0.5, 0, 0], "rpy": [0, 0, pi / 2]},
    "xyz and quaternion": {"xyz": [0.5, 0, 0], "quaternion": [0, 0, 0.5**0.5, 0.5**0.5]},
    "the other quaternion": {"xyz": [0.5, 0, 0], "quaternion": [0, 0, -(0.5**0.5), -(0.5**0.5)]},
    "ros": {"position": {"x": 0.5, "y": 0, "z": 0}, "orientation": {"x": 0, "y": 0, "z": 0.5**0.5, "w": 0.5**0.5}},
}


@pytest.mark.parametrize("tool", TOOL_FORMS.values(), ids=TOOL_FORMS.keys())
def test_a_tool_in_any_form_is_appended_to_each_link(tool: Any) -> None:
    poses = ask(slides, "compute_fk", {"q": [1, 2], "links": ["bed", "slide"], "tool": tool})["poses"]
    assert close(poses["bed"], rz(pi / 2, 0.5, 0, 0))
    assert close(poses["slide"], rz(pi / 2, 3.625, 0, 0))


@pytest.mark.parametrize(
    ("tool", "pose"),
    [({"xyz": [1, 2, 3]}, [1, 2, 3]), ({"rpy": [0, 0, 0]}, [0, 0, 0]), ({"quaternion": [0, 0, 0, 1]}, [0, 0, 0])],
)
def test_parts_of_a_tool_that_are_left_out_move_nothing(tool: Any, pose: list[float]) -> None:
    found = ask(slides, "compute_fk", {"q": [0, -0.125], "tool": tool})["poses"]["slide"]
    assert [found[3], found[7], found[11]] == pose


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ([1, 2, 3], "$.params.tool"),
        ([[1, 0, 0, 0]] * 3, "$.params.tool"),
        ([[1, 0, 0]] * 4, "$.params.tool"),
        ({}, "$.params.tool"),
        ({"xyz": [1, 2]}, "$.params.tool.xyz"),
        ({"rpy": [1, 2, 3, 4]}, "$.params.tool.rpy"),
        ({"quaternion": [0, 0, 0, 2]}, "$.params.tool.quaternion"),
        ({"quaternion": [0, 0, 0, 0]}, "$.params.tool.quaternion"),
        ({"quaternion": [1, 0, 0]}, "$.params.tool.quaternion"),
        ({"quaternion": [0, 0, 0, 1], "rpy": [0, 0, 1e-3]}, "$.params.tool"),
        ({"matrix": IDENTITY, "xyz": [0, 0, 0]}, "$.params.tool"),
        ({"position": {"x": 0, "y": 0, "z": 0}}, "$.params.tool"),
        ({"position": {"x": 0, "y": 0, "z": 0}, "rpy": [0, 0, 0]}, "$.params.tool"),
        ({"position": {"x": 0, "y": 0}, "orientation": {"x": 0, "y": 0, "z": 0, "w": 1}}, "$.params.tool.position"),
        ({"matrix": [*IDENTITY[:12], 0, 0, 0, 2]}, "$.params.tool.matrix"),
        ([2, *IDENTITY[1:]], "$.params.tool"),
        ([-1, *IDENTITY[1:]], "$.params.tool"),  # a reflection
        ("tool0", "$.params.tool"),
        (7, "$.params.tool"),
        ({"xyz": [1, 2, "3"]}, "$.params.tool.xyz[2]"),
        ({"xzy": [1, 2, 3]}, "$.params.tool.xzy"),
        ({"position": {"x": 0, "y": 0, "z": 0, "w": 0}, "orientation": {"x": 0, "y": 0, "z": 0, "w": 1}}, "$.params.tool.position.w"),
    ],
)  # fmt: skip
def test_a_tool_that_is_no_pose_is_refused_with_the_place(tool: Any, path: str) -> None:
    error = refused(slides, "compute_fk", {"q": [0, 0], "tool": tool})
    assert (type(error), error.data["path"]) == (InvalidParams, path)
    assert {"expected", "got"} <= error.data.keys()


def test_degrees_are_for_turning_joints_alone() -> None:
    named = ask(gripper, "compute_fk", {"q": {"lift": 1.5, "knuckle": 30}, "degrees": True})["poses"]["left"]
    assert close(named, rz(pi / 6, 0, 0.0625, 1.5))
    assert ask(gripper, "compute_fk", {"q": [1.5, 30], "degrees": True})["poses"]["left"] == named
    assert close(ask(slides, "compute_fk", {"q": [90, 45], "degrees": True})["poses"]["slide"][3], 135.125)


@given(st.lists(angles, min_size=6, max_size=6))
def test_the_three_formats_say_the_same_pose(q: list[float]) -> None:
    matrix, pose, ros = (ask(arm, "compute_fk", {"q": q, "format": f})["poses"]["tool0"] for f in ("matrix", "pose", "ros"))
    assert pose.keys() == {"xyz", "quaternion", "rpy"}
    assert list(ros["position"].values()) == pose["xyz"] == [matrix[3], matrix[7], matrix[11]]
    assert list(ros["position"]) == ["x", "y", "z"]
    assert list(ros["orientation"].values()) == pose["quaternion"]
    assert list(ros["orientation"]) == ["x", "y", "z", "w"]
    for form in (pose, {"xyz": pose["xyz"], "quaternion": pose["quaternion"]}, {"xyz": pose["xyz"], "rpy": pose["rpy"]}, ros):
        assert ask(slides, "compute_fk", {"q": [0, 0], "links": "bed", "tool": form})["poses"]["bed"] == pytest.approx(matrix, abs=1e-9)


def test_missing_joints_are_an_error_or_zero_as_the_caller_says() -> None:
    error = refused(gripper, "compute_fk", {"q": {"lift": 1}})
    assert (type(error), error.reason, error.data["path"]) == (InvalidParams, "joint-missing", "$.params.q")
    assert "knuckle" in error.message
    assert error.data["expected"] == ["lift", "knuckle"]
    assert error.data["got"] == ["lift"]
    assert close(ask(gripper, "compute_fk", {"q": {"lift": 1}, "missing": "zero"})["poses"]["left"], rz(0, 0, 0.0625, 1))
    assert refused(gripper, "compute_fk", {"q": [1], "missing": "zero"}).reason == "q-length"


def test_followers_may_be_given_if_they_agree() -> None:
    q = {"lift": 0, "knuckle": 0.25, "mirror": -0.25, "curl": 0.0}
    assert ask(gripper, "compute_fk", {"q": q}) == ask(gripper, "compute_fk", {"q": [0, 0.25]})
    assert refused(gripper, "compute_fk", {"q": {**q, "curl": 0.1}}).data["path"] == "$.params.q.curl"
    assert refused(gripper, "compute_fk", {"q": {"curl": 0.0}}).reason == "joint-missing"


def test_a_stamped_answer_says_which_model_answered() -> None:
    stamped = ask(arm, "compute_fk", {"q": [0] * 6, "stamp": True})
    assert stamped["poses"] == {"tool0": HOME}
    assert (stamped["digest"], stamped["generation"]) == (arm.robot.digest, 1)
    assert isinstance(stamped["elapsed_ns"], int)
    assert stamped["elapsed_ns"] > 0
    assert ask(arm, "compute_fk", {"q": [0] * 6, "stamp": False}).keys() == {"poses"}


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ([], "$.params"), ([0] * 5, "$.params"), ([0] * 7, "$.params"), ([[0] * 6], "$.params[0]"), ([True] + [0] * 5, "$.params[0]"),
        ([0, None, 0, 0, 0, 0], "$.params[1]"), ([0, 0, "1", 0, 0, 0], "$.params[2]"), ([0, 0, 0, {}, 0, 0], "$.params[3]"),
        (b"[1e999,0,0,0,0,0]", "$.params[0]"), (b"[" + b"7" * 5000 + b",0,0,0,0,0]", "$.params[0]"),
        (None, "$.params"), ("x", "$.params"), (7, "$.params"), (True, "$.params"), ({}, "$.params"),
        ({"q": None}, "$.params.q"), ({"q": "0 0 0"}, "$.params.q"), ({"q": 7}, "$.params.q"), ({"q": [0] * 5}, "$.params.q"),
        ({"q": [0, 0, 0, 0, 0, "x"]}, "$.params.q[5]"), ({"q": {}}, "$.params.q"), ({"q": [[0, 0, 0, 0, 0, 0]]}, "$.params.q[0]"),
        ({"q": [0] * 6, "links": []}, "$.params.links"), ({"q": [0] * 6, "links": 7}, "$.params.links"),
        ({"q": [0] * 6, "links": [7]}, "$.params.links[0]"), ({"q": [0] * 6, "links": {"a": 1}}, "$.params.links"),
        ({"q": [0] * 6, "format": "Matrix"}, "$.params.format"), ({"q": [0] * 6, "format": 4}, "$.params.format"),
        ({"q": [0] * 6, "missing": "one"}, "$.params.missing"), ({"q": [0] * 6, "degrees": 1}, "$.params.degrees"),
        ({"q": [0] * 6, "degrees": "yes"}, "$.params.degrees"), ({"q": [0] * 6, "stamp": None}, "$.params.stamp"),
        ({"q": [0] * 6, "base": 7}, "$.params.base"), ({"links": "all"}, "$.params"),
    ],
)  # fmt: skip
def test_wrong_shapes_are_refused_with_path_expected_and_got(params: Any, path: str) -> None:
    error = refused(arm, "compute_fk", params)
    assert (type(error), error.code) == (InvalidParams, -32602)
    assert error.data["path"] == path
    assert {"expected", "got"} <= error.data.keys(), error.data


@pytest.mark.parametrize("value", [True, None, "0.5", [0.5], {}])
def test_a_joints_value_of_the_wrong_type_names_the_joint(value: Any) -> None:
    error = refused(gripper, "compute_fk", {"q": {"lift": 0, "knuckle": value}})
    assert (type(error), error.data["path"]) == (InvalidParams, "$.params.q.knuckle")
    assert {"expected", "got"} <= error.data.keys()


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"9" * 400])
def test_a_number_beyond_a_double_names_the_joint(number: bytes) -> None:
    error = refused(gripper, "compute_fk", b'{"q":{"lift":0,"knuckle":' + number + b"}}")
    assert (type(error), error.data["path"]) == (InvalidParams, "$.params.q.knuckle")


@pytest.mark.parametrize("links", [["slide"], "all"])
def test_a_pose_beyond_a_double_is_an_error_and_never_null(links: Any) -> None:
    assert refused(slides, "compute_fk", [1e308, 1e308]).reason == "overflow"
    error = refused(slides, "compute_fk", {"q": {"s1": 1e308, "s2": 1e308}, "links": links})
    assert (type(error), error.reason) == (InvalidParams, "overflow")
    assert {"path", "expected", "got"} <= error.data.keys()
    assert ask(slides, "compute_fk", {"q": [1e15, 0]})["poses"]["slide"][3] == 1e15 + 0.125


@pytest.mark.parametrize(
    ("link", "reason", "meant"),
    [("tol0", "unknown-link", "tool0"), ("TOOL0", "unknown-link", "tool0"), ("", "unknown-link", None), ("zzz", "unknown-link", None),
     ("j3", "joint-not-link", "forearm"), ("mount", "joint-not-link", "tool0"), ("ALL", "unknown-link", None), ("x" * 10_000, "unknown-link", None)],
)  # fmt: skip
@pytest.mark.parametrize("where", ["links", "list", "base"])
def test_an_unknown_link_is_refused_with_the_nearest(where: str, link: str, reason: str, meant: str | None) -> None:
    params = {"base": {"base": link}, "links": {"links": link}, "list": {"links": ["base", link]}}[where]
    error = refused(arm, "compute_fk", {"q": [0] * 6, **params})
    assert (type(error), error.code, error.reason) == (ModelError, -32001, reason)
    assert error.data.get("did_you_mean") == meant
    assert error.data["path"].startswith("$.params.base" if where == "base" else "$.params.links")
    assert len(error.message) < 1000
    if meant:
        assert f"`{meant}`" in error.message


@pytest.mark.parametrize(
    ("joint", "reason", "meant"),
    [("knuckel", "unknown-joint", "knuckle"), ("Lift", "unknown-joint", "lift"), ("zzz", "unknown-joint", None), ("", "unknown-joint", None)],
)
def test_an_unknown_joint_is_refused_with_the_nearest(joint: str, reason: str, meant: str | None) -> None:
    error = refused(gripper, "compute_fk", {"q": {"lift": 0, "knuckle": 0, joint: 0}})
    assert (type(error), error.code, error.reason) == (ModelError, -32001, reason)
    assert (error.data["path"], error.data.get("did_you_mean")) == (f"$.params.q.{joint}", meant)


def test_a_fixed_joint_takes_no_value_and_a_link_is_no_joint() -> None:
    q = {f"j{k}": 0 for k in range(1, 7)}
    assert refused(arm, "compute_fk", {"q": {**q, "mount": 0}}).reason == "joint-fixed"
    assert "`j6`" in refused(arm, "compute_fk", {"q": {**q, "flange": 0}}).message


@pytest.mark.parametrize(
    ("method", "name", "meant"),
    [("compute_fk", "link", "links"), ("compute_fk", "Degrees", "degrees"), ("compute_fk", "zzz", None), ("decompose", "rpi", "rpy"),
     ("compute_fk", "x" * 10_000, None), ("compute_fk", "", None)],
)  # fmt: skip
def test_an_unknown_parameter_is_refused_with_the_nearest(method: str, name: str, meant: str | None) -> None:
    error = refused(arm, method, {"q": [0] * 6, name: 1})
    assert (type(error), error.reason) == (InvalidParams, "unknown-parameter")
    assert error.data.get("did_you_mean") == meant
    assert {"path", "expected", "got"} <= error.data.keys()
    assert len(error.message) < 1000


@pytest.mark.parametrize(("name", "meant"), [("compute_fkk", "compute_fk"), ("PING", "ping"), ("zzz", None), ("", None), ("x" * 100_000, None)])
def test_an_unknown_method_is_refused_with_the_nearest(name: str, meant: str | None) -> None:
    with pytest.raises(MethodNotFound) as e:
        run(arm, name, Raw())
    assert e.value.data.get("did_you_mean") == meant
    assert len(e.value.message) < 1000


@pytest.mark.parametrize("name", ["__init__", "call", "robot", "__class__", "rpc.x", "compute_fk ", "\0", "status.__doc__"])
def test_attributes_are_no_methods(name: str) -> None:
    with pytest.raises(MethodNotFound):
        run(arm, name, Raw())


# -- decompose ---------------------------------------------------------------------------------------------------------


@given(st.lists(angles, min_size=6, max_size=6))
def test_decompose_of_q_is_decompose_of_its_pose_in_every_form(q: list[float]) -> None:
    found = ask(arm, "decompose", q)
    matrix = ask(arm, "compute_fk", q)
    assert found["matrix"] == matrix
    assert ask(arm, "decompose", {"q": q}) == found
    nested = [matrix[k : k + 4] for k in (0, 4, 8, 12)]
    for form in ({"matrix": matrix}, {"matrix": nested}, {"pose": matrix}, {"pose": nested}, {"pose": {"matrix": nested}}):
        assert ask(arm, "decompose", form) == found
    for rotation in ("quaternion", "rpy", "rpy_alt"):
        parts = {"xyz": found["xyz"], rotation.removesuffix("_alt"): found[rotation]}
        for form in (parts, {"pose": parts}):
            assert ask(arm, "decompose", form)["matrix"] == pytest.approx(matrix, abs=1e-9)


def test_decompose_in_numbers() -> None:
    found = ask(arm, "decompose", {"matrix": rz(pi / 3, 1, 2, 3)})
    assert found.keys() == {"xyz", "rpy", "rpy_alt", "gimbal_lock", "quaternion", "axis_angle", "matrix"}
    assert found["xyz"] == [1, 2, 3]
    assert close(found["rpy"], [0, 0, pi / 3])
    assert close(found["quaternion"], [0, 0, sin(pi / 6), cos(pi / 6)])
    assert close(found["axis_angle"]["axis"], [0, 0, 1])
    assert close(found["axis_angle"]["angle"], pi / 3)
    assert found["gimbal_lock"] is False


def test_decompose_of_a_link_from_a_base_in_degrees() -> None:
    found = ask(gripper, "decompose", {"q": {"knuckle": 90}, "link": "right", "base": "palm", "degrees": True, "missing": "zero"})
    assert found["xyz"] == [0, -0.0625, 0]
    assert close(found["rpy"], [0, 0, -pi / 2])


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({}, "$.params"), ({"q": [0] * 6, "matrix": IDENTITY}, "$.params"), ({"pose": IDENTITY, "xyz": [0, 0, 0]}, "$.params"),
        ({"q": [0] * 6, "rpy": []}, "$.params"), ({"xyz": []}, "$.params.xyz"), ({"rpy": []}, "$.params.rpy"),
        ({"matrix": []}, "$.params.matrix"), ({"matrix": [1] * 16}, "$.params.matrix"), ({"matrix": {"q": 1}}, "$.params.matrix"),
        ({"quaternion": [0, 0, 0, 1], "rpy": [0, 0, 1e-3]}, "$.params"), ({"pose": {"xyz": [1]}}, "$.params.pose.xyz"),
        ({"q": [0] * 5}, "$.params.q"), ([0] * 5, "$.params"), ([[0] * 6], "$.params[0]"), (None, "$.params"), ({"link": "tool0"}, "$.params"),
    ],
)  # fmt: skip
def test_decompose_refuses_what_is_not_one_pose(params: Any, path: str) -> None:
    error = refused(arm, "decompose", params)
    assert (type(error), error.data["path"]) == (InvalidParams, path)
    assert {"expected", "got"} <= error.data.keys()


@pytest.mark.parametrize("extra", [{"link": "hand"}, {"base": "hand"}, {"degrees": True}, {"missing": "zero"}])
def test_decompose_of_a_pose_does_not_ignore_what_belongs_to_q(extra: dict[str, Any]) -> None:
    """A caller who writes `base` beside a matrix means something, and would get the wrong numbers."""
    assert refused(arm, "decompose", {"matrix": IDENTITY, **extra}).code == -32602


# -- the others --------------------------------------------------------------------------------------------------------


def test_model_says_what_robot_this_is() -> None:
    found = ask(gripper, "model")
    assert (found["name"], found["root"], found["base"], found["dof"]) == ("wire_gripper", "rail", "rail", 2)
    assert found["links"] == ["rail", "palm", "left", "right", "right_tip"]
    assert found["q"] == ["lift", "knuckle"]
    assert (found["digest"], found["generation"]) == (gripper.robot.digest, 1)
    joints = {j["name"]: j for j in found["joints"]}
    assert list(joints) == ["curl", "mirror", "lift", "knuckle"]
    assert joints["curl"]["mimic"] == {"joint": "mirror", "multiplier": 2, "offset": 0.5}
    assert [joints[name]["width"] for name in joints] == [0, 0, 1, 1]
    assert joints["lift"]["limits"] == {"lower": 0, "upper": 2}
    assert (joints["lift"]["type"], joints["lift"]["parent"], joints["lift"]["child"]) == ("prismatic", "rail", "palm")
    assert ask(arm, "model")["joints"][3]["limits"] is None  # continuous


def test_status_ping_and_check() -> None:
    status = ask(arm, "status")
    assert (status["robot"], status["digest"], status["tip"], status["trust"]) == ("wire_arm", arm.robot.digest, "tool0", "unbundled")
    assert status["state"] == "serving"
    assert status["uptime_s"] >= 0
    assert ask(arm, "ping") == "pong"
    assert isinstance(ask(arm, "check"), list)


@pytest.mark.parametrize("method", ["model", "check", "status", "ping"])
def test_methods_without_parameters_take_none(method: str) -> None:
    answers = [type(ask(arm, method, params)) for params in (None, [], {})]
    assert len(set(answers)) == 1
    for params in ([1], [[]], {"a": 1}, None, "x", 7, [[[]]] * 3):
        error = refused(arm, method, params)
        assert isinstance(error, InvalidParams)
        assert {"path", "expected", "got"} <= error.data.keys(), error.data


def test_a_robot_without_a_tip_answers_for_named_links(tmp_path: Path) -> None:
    fork = tmp_path / "fork.urdf"
    fork.write_text("""<robot name="fork"><link name="stem"/><link name="a"/><link name="b"/>
      <joint name="ja" type="continuous"><parent link="stem"/><child link="a"/></joint>
      <joint name="jb" type="continuous"><parent link="stem"/><child link="b"/></joint></robot>""")
    service = Session(serving(load(fork)))
    for method, params in (("compute_fk", [0, 0]), ("compute_fk", {"q": [0, 0]}), ("decompose", [0, 0]), ("decompose", {"q": [0, 0]})):
        error = refused(service, method, params)
        assert (error.code, error.reason, error.data["candidates"]) == (-32001, "no-tip", ["a", "b"])
    assert ask(service, "compute_fk", {"q": [0, 0], "links": ["a"]})["poses"]["a"] == IDENTITY


@given(st.sampled_from(sorted(METHODS)), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(["q", "links", "matrix", "pose", "tool", "xyz", "j1", "x"]), inner, max_size=3),
    max_leaves=12,
))  # fmt: skip
@settings(max_examples=60)
def test_any_params_get_a_result_or_a_clear_refusal(method: str, params: Any) -> None:
    try:
        outcome: Any = json.loads(run(arm, method, Raw(json.dumps(params).encode())), parse_constant=pytest.fail)
    except (InvalidParams, ModelError) as e:
        outcome = e
    except NotPermitted as e:  # there is no daemon that could reload
        assert method == "reload"
        outcome = e
    if isinstance(outcome, InvalidParams):
        assert outcome.data["path"].startswith("$.params")
