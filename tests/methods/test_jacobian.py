"""compute_jacobian: against differences of poses, in both frames, at tools; what it says of singular configurations."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from fkd.dispatch import run, serving
from fkd.errors import FkdError, InvalidParams
from fkd.poses import read_parts
from fkd.robot import Robot, load
from fkd.service import Session

ROBOTS = Path(__file__).parent.parent / "robots"
arm = Session(serving(load(ROBOTS / "wire_arm.urdf")))
mixed = Session(serving(load(ROBOTS / "kin_mixed.urdf")))
gripper = Session(serving(load(ROBOTS / "wire_gripper.urdf")))
STEP = 1e-6
six = st.lists(st.floats(-3, 3), min_size=6, max_size=6)
TOOL = {"xyz": [0.1, -0.2, 0.3], "rpy": [0.3, -0.4, 0.5]}


def ask(session: Session, params: Any) -> Any:
    return json.loads(run(session, "compute_jacobian", Raw(json.dumps(params).encode())), parse_constant=pytest.fail)


def refused(session: Session, params: Any) -> FkdError:
    with pytest.raises(FkdError) as e:
        ask(session, params)
    return e.value


def differences(robot: Robot, q: list[float], link: str, base: str, tool: np.ndarray, frame: str) -> np.ndarray:
    """The Jacobian by central differences of the pose: linear velocity of the tool's origin, then angular."""

    def pose(values: list[float]) -> np.ndarray:
        return robot.fk(values, link, base) @ tool

    T = pose(q)
    columns = []
    for k in range(len(q)):
        ahead, behind = (pose([*q[:k], q[k] + s * STEP, *q[k + 1 :]]) for s in (1, -1))
        W = (ahead - behind)[:3, :3] / (2 * STEP) @ T[:3, :3].T
        columns.append([*((ahead - behind)[:3, 3] / (2 * STEP)), W[2, 1], W[0, 2], W[1, 0]])
    J = np.array(columns).T
    if frame == "tip":
        J = np.concatenate([T[:3, :3].T @ J[:3], T[:3, :3].T @ J[3:]])
    return J


@given(six, st.sampled_from(["tool0", "forearm", "base"]), st.sampled_from(["base", "hand"]), st.sampled_from(["base", "tip"]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_velocities_are_those_of_the_pose(q: list[float], link: str, base: str, frame: str, tooled: bool) -> None:
    params = {"q": q, "link": link, "base": base, "frame": frame, **({"tool": TOOL} if tooled else {})}
    tool = np.reshape(read_parts(TOOL["xyz"], None, TOOL["rpy"], "tool"), (4, 4)) if tooled else np.eye(4)
    got = np.array(ask(arm, params)["jacobian"])
    assert np.abs(got - differences(arm.robot, q, link, base, tool, frame)).max() < 1e-8
    direct = arm.robot.jacobian(q, link, base, tool=tool if tooled else None, frame=frame)
    assert np.array_equal(direct, got)


def test_every_kind_of_joint_has_its_column() -> None:
    """Planar, floating, prismatic and followers; in a floating joint's quaternion the pose is taken off the unit sphere too."""
    robot = mixed.robot
    q = [0.3 + 0.01 * k for k in range(robot.dof)]
    for link in robot.links[1:]:
        got = np.array(ask(mixed, {"q": q, "link": link})["jacobian"])
        assert np.abs(got - differences(robot, q, link, robot.model.base, np.eye(4), "base")).max() < 1e-8, link


def test_columns_are_named_by_the_joints_of_q() -> None:
    assert ask(arm, {"q": [0] * 6})["joints"] == ["j1", "j2", "j3", "j4", "j5", "j6"]
    assert ask(gripper, {"q": {"lift": 0, "knuckle": 0}, "link": "right_tip"})["joints"] == [j.name for j in gripper.robot.model.independent]


@given(six)
@settings(max_examples=20, deadline=None)
def test_by_position_the_rows_alone_in_degrees_the_same_per_radian(q: list[float]) -> None:
    rows = ask(arm, q)
    assert rows == ask(arm, {"q": q})["jacobian"]
    in_degrees = ask(arm, {"q": [x * 180 / np.pi for x in q], "degrees": True})["jacobian"]
    assert np.abs(np.array(in_degrees) - rows).max() < 1e-12


@given(six)
@settings(max_examples=20, deadline=None)
def test_manipulability_is_the_root_of_the_determinant(q: list[float]) -> None:
    got = ask(arm, {"q": q})
    J = np.array(got["jacobian"])
    assert got["manipulability"] == pytest.approx(sqrt(max(np.linalg.det(J @ J.T), 0.0)), abs=1e-7)
    assert got["singular_values"] == sorted(got["singular_values"], reverse=True)
    assert got["singular_values"][0] ** 2 == pytest.approx(np.linalg.eigvalsh(J @ J.T)[-1])


def test_a_stretched_arm_is_singular() -> None:
    got = ask(arm, {"q": [0] * 6})
    assert got["manipulability"] < 1e-12
    assert got["singular_values"][-1] < 1e-12


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ([0] * 5, "$.params"),
        ({"q": [0] * 7}, "$.params.q"),
        ({"q": [0] * 6, "frame": "tool"}, "$.params.frame"),
        ({"q": [0] * 6, "tool": [1, 2]}, "$.params.tool"),
        ({"q": [0] * 6, "links": ["hand"]}, "$.params.links"),
        ([0, 0, 0, 0, 0, "x"], "$.params[5]"),
    ],
)
def test_wrong_params_are_named(params: Any, path: str) -> None:
    error = refused(arm, params)
    assert isinstance(error, InvalidParams)
    assert error.data["path"] == path


def test_a_robot_that_does_not_move_has_no_columns(tmp_path: Path) -> None:
    still = tmp_path / "still.urdf"
    still.write_text('<robot name="still"><link name="a"/></robot>')
    got = ask(Session(serving(load(still))), {"q": [], "link": "a"})
    assert got == {"jacobian": [[]] * 6, "joints": [], "manipulability": 0.0, "singular_values": []}
