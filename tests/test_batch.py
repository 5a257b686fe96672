"""Robot.fk_batch and Robot.jacobian: against the single kernel, central differences, and Pinocchio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fkd.errors import InvalidParams, ModelError
from fkd.robot import Robot, load

ROBOTS = Path(__file__).parent / "robots"
NAMES = ["wire_arm", "wire_gripper", "wire_slides", "kin_mixed", "emit_joints"]


def configurations(robot: Robot, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, (n, robot.dof))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_its_rows(name: str) -> None:
    robot = load(ROBOTS / f"{name}.urdf")
    q = configurations(robot, 9000)  # more than two chunks
    found = robot.fk_batch(q, robot.links)
    assert list(found) == list(robot.links)
    for k in (0, 1, 3999, 4000, 8999):
        for link, T in robot.poses(q[k].tolist(), robot.links).items():
            assert np.abs(found[link][k].ravel() - T).max() <= 1e-14 * max(1.0, np.abs(T).max())


def test_one_link_gives_the_array_alone_and_out_is_written_into() -> None:
    robot = load(ROBOTS / "wire_arm.urdf")
    q = configurations(robot, 10)
    alone = robot.fk_batch(q)
    assert alone.shape == (10, 4, 4)
    assert (robot.fk_batch(q.tolist(), "tool0") == alone).all()
    out = np.empty((10, 4, 4))
    assert robot.fk_batch(q, out=out) is out
    assert (out == alone).all()
    outs = {"tool0": np.empty((10, 4, 4))}
    assert robot.fk_batch(q, ["tool0"], out=outs)["tool0"] is outs["tool0"]
    assert robot.fk_batch(np.empty((0, 6))).shape == (0, 4, 4)
    assert robot.fk_batch([]).shape == (0, 4, 4)


@pytest.mark.parametrize("q", [[0] * 6, [[0] * 5], [["a"] * 6], [[True] * 6], None, "x", [[0j] * 6], np.zeros((2, 2, 6)), [[0] * 6, [0]]])
def test_what_is_no_batch_is_refused(q: Any) -> None:
    with pytest.raises(InvalidParams) as e:
        load(ROBOTS / "wire_arm.urdf").fk_batch(q)
    assert e.value.reason == "q-shape"


@pytest.mark.parametrize("out", [np.empty((3, 16)), np.empty((2, 4, 4)), np.empty((3, 4, 4), dtype=np.float32), [], np.empty((3, 4, 4)).transpose(0, 2, 1)])
def test_an_out_that_does_not_fit_is_refused(out: Any) -> None:
    with pytest.raises(InvalidParams) as e:
        load(ROBOTS / "wire_arm.urdf").fk_batch(np.zeros((3, 6)), out=out)
    assert e.value.reason == "out-shape"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_without_a_pose_is_named(bad: float) -> None:
    robot = load(ROBOTS / "wire_arm.urdf")
    q = configurations(robot, 5000)
    q[4321, 2] = bad
    with pytest.raises(InvalidParams) as e:
        robot.fk_batch(q)
    assert e.value.data["path"] == "$.params.q[4321][2]"


@pytest.mark.parametrize("size", [0.0, 1e-160, 0.9e154, 1e160])
def test_a_row_with_a_quaternion_of_no_usable_norm_is_named(size: float) -> None:
    """Four times 0.9e154: no square overflows and no sum of two, but the norm does; such a row must not come out as the identity."""
    robot = load(ROBOTS / "kin_mixed.urdf")
    q = configurations(robot, 10)
    place = next(j.index for j in robot.model.independent if j.type == "floating") + 3
    q[7, place : place + 4] = size
    with pytest.raises(InvalidParams) as e:
        robot.fk_batch(q, robot.links)
    assert e.value.reason == "quaternion-norm"
    assert e.value.data["path"] == f"$.params.q[7][{place}]"


def test_names_that_are_not_there() -> None:
    robot = load(ROBOTS / "wire_arm.urdf")
    for call in (lambda: robot.fk_batch(np.zeros((1, 6)), "tol0"), lambda: robot.jacobian([0] * 6, "tol0"), lambda: robot.jacobian([0] * 6, base="tol0")):
        with pytest.raises(ModelError) as e:
            call()
        assert e.value.data["did_you_mean"] == "tool0"


def by_differences(robot: Robot, q: np.ndarray, link: str, base: str) -> np.ndarray:
    """The Jacobian from poses a little before and after: translation's rate, and the rotation's skew part."""
    h, columns = 1e-6, []
    pose = lambda v: np.reshape(robot.poses(v.tolist(), (link,), base)[link], (4, 4))  # noqa: E731
    for k in range(robot.dof):
        step = np.zeros(robot.dof)
        step[k] = h
        A, B, C = pose(q + step), pose(q - step), pose(q)
        W = (A[:3, :3] - B[:3, :3]) / (2 * h) @ C[:3, :3].T
        columns.append(np.r_[(A[:3, 3] - B[:3, 3]) / (2 * h), W[2, 1], W[0, 2], W[1, 0]])
    return np.array(columns).T.reshape(6, robot.dof)


@pytest.mark.parametrize("name", NAMES)
def test_the_jacobian_is_the_rate_of_the_pose(name: str) -> None:
    robot = load(ROBOTS / f"{name}.urdf")
    for seed, (link, base) in enumerate([(robot.links[-1], robot.model.base), (robot.links[-1], robot.links[len(robot.links) // 2]), (robot.links[1], robot.links[-1])]):
        q = configurations(robot, 1, seed)[0]
        assert np.abs(robot.jacobian(q, link, base) - by_differences(robot, q, link, base)).max() < 2e-8


def test_the_jacobian_is_pinocchios() -> None:
    pin = pytest.importorskip("pinocchio")
    path = ROBOTS / "wire_arm.urdf"
    robot, model = load(path), pin.buildModelFromUrdf(str(path))
    data, frame = model.createData(), model.getFrameId("tool0", pin.FrameType.BODY)
    for q in configurations(robot, 20):
        full = pin.neutral(model)
        for name, value in zip(robot.joints, q, strict=True):
            joint = model.joints[model.getJointId(name)]
            full[joint.idx_q : joint.idx_q + joint.nq] = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        J = pin.computeFrameJacobian(model, data, full, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        columns = [model.joints[model.getJointId(name)].idx_v for name in robot.joints]
        assert np.abs(robot.jacobian(q, "tool0") - J[:, columns]).max() < 1e-14
