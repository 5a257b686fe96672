"""A robot's own table: it multiplies out to the robot's poses, says what it lost, and refuses what no table holds."""

from __future__ import annotations

import contextlib
import json
from importlib.metadata import PackageNotFoundError, distribution
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

import fkd
from fkd.dispatch import run, serving
from fkd.errors import InvalidParams, ModelError
from fkd.robot import Robot
from fkd.service import Session

ROBOTS = Path(__file__).parent / "robots"
CONVENTIONS = ("standard", "modified")
KINDS = {"fixed", "revolute", "continuous", "prismatic"}


def multiplied(found: dict[str, Any], values: dict[str, float]) -> np.ndarray:
    """T_base_link from a table as a user would: in doubles, row by row."""
    T = np.reshape(found["base"], (4, 4))
    for row in found["rows"]:
        rule = found.get("mimic", {}).get(row["joint"])
        value = rule["multiplier"] * values[rule["joint"]] + rule["offset"] if rule else values[row["joint"]]
        theta, d = row["theta"], row["d"]
        theta, d = (theta, d + value) if row["type"] == "prismatic" else (theta + value, d)
        ct, st_, ca, sa = cos(theta), sin(theta), cos(row["alpha"]), sin(row["alpha"])
        Z = np.array([[ct, -st_, 0, 0], [st_, ct, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])
        X = np.array([[1, 0, 0, row["a"]], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
        T = T @ (Z @ X if found["convention"] == "standard" else X @ Z)
    return T @ np.reshape(found["tool"], (4, 4))


def urdf(joints: list[tuple[str, list[float], list[float], list[float]]], folder: Path) -> Path:
    """A chain of (type, xyz, rpy, axis) as a file."""
    text = ["<robot name='chain'><link name='l0'/>"]
    for k, (kind, xyz, rpy, axis) in enumerate(joints):
        say = [" ".join(map(repr, v)) for v in (xyz, rpy, axis)]
        text.append(
            f"<link name='l{k + 1}'/><joint name='j{k + 1}' type='{kind}'><parent link='l{k}'/><child link='l{k + 1}'/>"
            f"<origin xyz='{say[0]}' rpy='{say[1]}'/><axis xyz='{say[2]}'/><limit lower='-1' upper='1' effort='1' velocity='1'/></joint>"
        )
    path = folder / "chain.urdf"
    path.write_text("".join(text) + "</robot>")
    return path


def check(robot: Robot, found: dict[str, Any], link: str, base: str, bound: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(6):
        q = rng.uniform(-1, 1, robot.dof)
        values = dict(zip(robot.model.q_names, q, strict=True))
        assert np.abs(multiplied(found, values) - robot.fk(q, link, base)).max() < bound


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", ["wire_arm.urdf", "wire_slides.urdf", "wire_gripper.urdf"])
def test_every_link_of_the_tests_own_robots(name: str, convention: str) -> None:
    """Among them followers, whose rows say whom they follow."""
    robot = fkd.load(ROBOTS / name)
    for link in robot.links:
        found = robot.dh(convention, link)
        assert found["residual"] < 1e-14
        assert "warnings" not in found
        check(robot, found, link, robot.model.base, 1e-14)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_base_that_is_no_ancestor(convention: str) -> None:
    """From one finger to the other: up against the joints, then down."""
    robot = fkd.load(ROBOTS / "wire_gripper.urdf")
    for base in robot.links:
        for link in robot.links:
            check(robot, robot.dh(convention, link, base), link, base, 1e-14)


REAL = ("ur5_robot.urdf", "panda.urdf", "kinova.urdf", "xarm7.urdf", "z1.urdf", "allegro_left_hand.urdf", "puma560_robot.urdf",
        "solo12.urdf", "romeo.urdf", "al5d_robot.urdf")  # fmt: skip


def real(name: str) -> Path:
    """A robot from the packages that carry some."""
    for package in ("example-robot-data", "airo-models", "rtb-data"):
        with contextlib.suppress(PackageNotFoundError):
            files = distribution(package).files or []
            if found := [f for f in files if f.name == name]:
                return Path(str(found[0].locate()))
    pytest.skip(f"no installed package carries {name}")


@pytest.mark.parametrize("name", REAL)
def test_real_robots_to_every_leaf(name: str) -> None:
    """Romeo's fingers are 4e-8 rad from parallel with its wrist, the al5d's links 6e-10."""
    robot = fkd.load(real(name))
    leaves = set(robot.links) - {j.parent for j in robot.model.joints}
    chains = [c for link in sorted(leaves) if len(c := robot.model.chain(link)) and {j.type for j in c} <= KINDS]
    assert chains
    rng = np.random.default_rng(5)
    for chain in chains[:12]:
        for convention in CONVENTIONS:
            found = robot.dh(convention, chain[-1].child, robot.model.root)
            assert len(found["rows"]) == sum(j.type != "fixed" for j in chain)
            assert found["residual"] < (1e-9 if name in ("romeo.urdf", "al5d_robot.urdf") else 1e-12)
            q = rng.uniform(-1, 1, robot.dof)
            values = dict(zip(robot.model.q_names, q, strict=True))
            T = robot.fk(q, chain[-1].child, robot.model.root)
            assert np.abs(multiplied(found, values) - T).max() < 4 * found["residual"] + 1e-14


joint = st.tuples(
    st.sampled_from(["revolute", "continuous", "prismatic", "fixed"]), st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.lists(st.sampled_from([0.0, pi / 2, -pi / 2, pi, 1.5708, 0.3, 1e-3, 1e-5]), min_size=3, max_size=3),
    st.sampled_from([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [0.6, 0.0, 0.8]]),
)  # fmt: skip


@given(st.lists(joint, max_size=7), st.sampled_from(CONVENTIONS))
@settings(max_examples=40, deadline=None)
def test_any_chain(tmp_path_factory: pytest.TempPathFactory, joints: list, convention: str) -> None:
    robot = fkd.load(urdf(joints, tmp_path_factory.mktemp("dh")))
    link = robot.links[-1]
    found = robot.dh(convention, link, "l0")
    assert [r["joint"] for r in found["rows"]] == [f"j{k + 1}" for k, j in enumerate(joints) if j[0] != "fixed"]
    # The stated residual holds at other configurations too, but for the luck of the draw.
    check(robot, found, link, "l0", 4 * found["residual"] + 1e-13)
    # Axes that a file turns by no less than 1e-5 rad leave a foot at most 1e5 m away.
    assert found["residual"] < 1e-9


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("tilt", [1e-4, 1e-6, 1e-8, 1e-10])
def test_nearly_parallel_axes_are_taken_as_loses_least_and_said(tmp_path: Path, tilt: float, convention: str) -> None:
    robot = fkd.load(urdf([
        ("revolute", [0.0, 0.0, 0.1], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]), ("revolute", [0.4, 0.0, 0.0], [0.0, tilt, 0.0], [0.0, 0.0, 1.0]),
        ("revolute", [0.3, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]),
    ], tmp_path))  # fmt: skip
    found = robot.dh(convention, "l3", "l0")
    # Parallel loses the tilt, skew the last digits of a foot that is 0.4 / tilt away: 1e-8 is as bad as it gets.
    assert found["residual"] < max(1e-13, 4 * min(tilt, 1.2e-16 / tilt))
    said = " ".join(found["warnings"])
    assert "`j1` and `j2`" in said
    if tilt != 1e-8:
        assert ("not taken as parallel" in said) is (tilt > 1e-8)
    assert ("keep every digit" in said) is (max(abs(r["d"]) for r in found["rows"]) > 100)


def test_each_pair_of_axes_has_its_own_choice(tmp_path: Path) -> None:
    """Two pairs equally near to parallel: one is tilted about its distance, whose foot is near, one across it."""
    robot = fkd.load(urdf([
        ("revolute", [0.0, 0.0, 0.1], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]), ("revolute", [0.4, 0.0, 0.0], [3e-9, 0.0, 0.0], [0.0, 0.0, 1.0]),
        ("revolute", [0.3, 0.0, 0.0], [0.0, 3e-9, 0.0], [0.0, 0.0, 1.0]),
    ], tmp_path))  # fmt: skip
    found = robot.dh("standard", "l3", "l0")
    assert [" not taken" in w for w in found["warnings"] if "from parallel" in w] == [True, False]
    assert found["residual"] < 8e-9  # and not twice that


def test_what_a_double_cannot_hold_is_refused(tmp_path: Path) -> None:
    """No NaN in a row, none in the residual, and no warning of NumPy's."""
    far = fkd.load(urdf([("revolute", [1e308, 1e308, 1e308], [0.1, 0.2, 0.3], [0.0, 0.0, 1.0])] * 2, tmp_path))
    path = tmp_path / "fast.urdf"
    path.write_text(
        "<robot name='fast'><link name='l0'/><link name='l1'/><link name='l2'/>"
        "<joint name='j1' type='continuous'><parent link='l0'/><child link='l1'/></joint>"
        "<joint name='j2' type='continuous'><parent link='l1'/><child link='l2'/><mimic joint='j1' multiplier='1e308'/></joint></robot>"
    )
    for robot in (far, fkd.load(path)):
        with pytest.raises(InvalidParams) as e:
            robot.dh()
        assert e.value.reason == "overflow"


def test_a_robot_that_does_not_move_has_no_rows() -> None:
    robot = fkd.load(ROBOTS / "wire_arm.urdf")
    found = robot.dh("standard", "base", "base")
    assert (found["rows"], found["residual"]) == ([], 0.0)
    assert np.array_equal(multiplied(found, {}), np.eye(4))


def test_planar_and_floating_joints_are_refused_by_name() -> None:
    robot = fkd.load(ROBOTS / "kin_mixed.urdf")
    reasons = set()
    for link in robot.links:
        kinds = {j.type for j in robot.model.chain(link)} & {"planar", "floating"}
        if not kinds:
            assert robot.dh("standard", link)["residual"] < 1e-14
            continue
        with pytest.raises(InvalidParams) as e:
            robot.dh("standard", link)
        reasons.add(e.value.reason)
        assert e.value.data["got"] in kinds
    assert reasons <= {"planar-joint", "floating-joint"}
    assert reasons


@pytest.mark.parametrize(("arguments", "error"), [
    (("classic",), InvalidParams), (("standard", "nowhere"), ModelError), (("standard", None, "nowhere"), ModelError),
])  # fmt: skip
def test_what_does_not_fit_is_refused(arguments: tuple, error: type[Exception]) -> None:
    with pytest.raises(error):
        fkd.load(ROBOTS / "wire_arm.urdf").dh(*arguments)


def test_over_the_wire_the_same() -> None:
    robot = fkd.load(ROBOTS / "wire_arm.urdf")
    session = Session(serving(robot))
    for params in ([], {}, {"convention": "modified", "link": "hand", "base": "forearm"}):
        got = json.loads(run(session, "dh", Raw(json.dumps(params).encode())), parse_constant=pytest.fail)
        assert got == json.loads(json.dumps(robot.dh(**(params or {}))))
    for params in ([1], {"convention": "classic"}, {"links": "hand"}, {"link": 5}):
        with pytest.raises(InvalidParams):
            run(session, "dh", Raw(json.dumps(params).encode()))
