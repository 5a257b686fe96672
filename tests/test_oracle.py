"""Forward kinematics against Pinocchio, over every robot description that other people's packages carry.

Every link of every file, at zero and at random configurations, and ten robots through the real socket.
"""

from __future__ import annotations

import contextlib
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fkd.errors import BundleRefused
from fkd.robot import Robot, load

pin = pytest.importorskip("pinocchio")

Matrix = npt.NDArray[np.float64]
PACKAGES = ("example-robot-data", "airo-models", "rtb-data")
TOLERANCE = 1e-12  # times the robot's reach, where that is over a metre

# What these packages carry that is no robot, and what is wrong with it.
INVALID = {
    "alex_psyonic_hands.urdf": (
        "urdf-mimic-unknown",
        "index_q1",
    ),  # the fingers' joints were given a prefix, the rules were not
    "ur_description/urdf/ur3.urdf": ("urdf-no-links", "no links"),  # a xacro file under the wrong name
    "rtbdata/data/test.urdf": ("xml-malformed", "syntax error"),  # one line of plain text
}
SAMPLE = (  # through the socket: arms, a hand, walkers, followers
    "ur5_robot.urdf", "panda.urdf", "z1.urdf", "kinova.urdf", "xarm7.urdf", "allegro_left_hand.urdf", "solo12.urdf",
    "robotiq_2f_85.urdf", "puma560_robot.urdf", "tiago.urdf",
)  # fmt: skip


def descriptions() -> list[Path]:
    """All .urdf files of the packages that are installed, wherever they are."""
    found: list[Path] = []
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            package = distribution(name)
            found += [Path(str(package.locate_file(f))) for f in package.files or [] if f.suffix == ".urdf"]
    return sorted(p for p in found if p.is_file())


FILES = descriptions()


def fault(path: Path) -> tuple[str, str] | None:
    return next((why for end, why in INVALID.items() if path.as_posix().endswith(end)), None)


SOUND = [p for p in FILES if fault(p) is None]


def label(path: Path) -> str:
    return f"{path.parent.name}/{path.name}" if path.parent.name != "urdf" else path.name


# -- Pinocchio, and the traps around it --------------------------------------------------------------------------------


class Oracle:
    """A model of Pinocchio's for a file.

    Its own mimic rules are used where it takes them. Where it does not (it wants sources before followers in its own
    order), the followers are driven by hand, as the file's rules say, step by step.
    """

    def __init__(self, path: Path) -> None:
        text = path.read_bytes()
        complete = with_limits(text).decode()
        self.rules: dict[str, tuple[str, float, float]] = {}
        try:
            self.model = pin.buildModelFromXML(complete, mimic=True)
        except ValueError:
            self.model = pin.buildModelFromXML(complete)
            for joint in ET.fromstring(text).findall("joint"):
                if (rule := joint.find("mimic")) is not None:
                    scale, offset = float(rule.get("multiplier", "1")), float(rule.get("offset", "0"))
                    self.rules[joint.get("name", "")] = (rule.get("joint", ""), scale, offset)
        self.data = self.model.createData()
        self.frames = {f.name: k for k, f in enumerate(self.model.frames) if f.type == pin.FrameType.BODY}

    def value(self, name: str, given: dict[str, float]) -> float:
        if name not in self.rules:
            return given[name]
        source, scale, offset = self.rules[name]
        return scale * self.value(source, given) + offset

    def place(self, given: dict[str, float]) -> dict[str, Matrix]:
        """{joint: value} -> {link: T_root_link}."""
        q = pin.neutral(self.model)
        for k in range(1, self.model.njoints):
            name, joint = self.model.names[k], self.model.joints[k]
            if joint.nq == 0 or joint.shortname().startswith("JointModelMimic"):
                continue
            value = self.value(name, given)
            at = self.model.idx_qs[k]
            if joint.nq == 1:
                q[at] = value
            else:
                assert (joint.nq, joint.nv) == (2, 1), f"{name} is a {joint.shortname()}"
                q[at : at + 2] = np.cos(value), np.sin(value)  # continuous
        pin.framesForwardKinematics(self.model, self.data, q)
        return {link: self.data.oMf[k].homogeneous for link, k in self.frames.items()}


def with_limits(text: bytes) -> bytes:
    """The text with a limit where a hinge or slider lacks one: Pinocchio refuses those, and limits move nothing."""

    def mend(found: re.Match[bytes]) -> bytes:
        head, body = found[1], found[2]
        if b"<limit" in body or not re.search(rb'type\s*=\s*"(revolute|prismatic)"', head):
            return found[0]
        return head + b'<limit lower="-9" upper="9" effort="9" velocity="9"/>' + body

    return re.sub(rb"(<joint\s[^>]*[^/]>)(.*?</joint>)", mend, text, flags=re.DOTALL)


@cache
def both(path: Path) -> tuple[Robot, Oracle]:
    return load(path), Oracle(path)


def configurations(robot: Robot) -> Iterator[list[float]]:
    """Zero and eight random q, the same in every run."""
    rng = np.random.default_rng(20)
    yield [0.0] * robot.dof
    for _ in range(8):
        yield rng.uniform(-np.pi, np.pi, robot.dof).tolist()


def apart(robot: Robot, oracle: Oracle, q: list[float], poses: dict[str, list[float]]) -> float:
    """The largest difference over all links, in units of the reach (at least 1 m)."""
    given = dict(zip(robot.joints, q, strict=True))
    expected = oracle.place(given)
    reach = max(1.0, *(float(np.abs(T[:3, 3]).max()) for T in expected.values()))
    return (
        max(float(np.abs(np.array(poses[link]).reshape(4, 4) - expected[link]).max()) for link in robot.links) / reach
    )


# -- the tests ---------------------------------------------------------------------------------------------------------


def test_the_packages_carry_robots() -> None:
    """That a package moved its files must not pass for success."""
    assert len(SOUND) >= 20, [len(FILES), PACKAGES]


@pytest.mark.parametrize("path", SOUND, ids=label)
def test_every_link_is_where_pinocchio_puts_it(path: Path) -> None:
    robot, oracle = both(path)
    assert set(robot.links) == set(oracle.frames) - {"universe"}
    for q in configurations(robot):
        assert apart(robot, oracle, q, robot.poses(q, robot.links, robot.model.root)) <= TOLERANCE


@pytest.mark.parametrize("path", SOUND, ids=label)
def test_between_any_two_links_the_pose_is_the_quotient(path: Path) -> None:
    """One random base a robot, away from the root: joints that base and link share drop out of the kernel."""
    robot, oracle = both(path)
    rng = np.random.default_rng(len(path.name))
    base = robot.links[int(rng.integers(len(robot.links)))]
    q = rng.uniform(-np.pi, np.pi, robot.dof).tolist()
    expected = oracle.place(dict(zip(robot.joints, q, strict=True)))
    reach = max(1.0, *(float(np.abs(T[:3, 3]).max()) for T in expected.values()))
    for link, T in robot.poses(q, robot.links, base).items():
        assert (
            np.abs(np.linalg.solve(expected[base], expected[link]) - np.array(T).reshape(4, 4)).max()
            <= 2 * TOLERANCE * reach
        )


@pytest.mark.parametrize("path", [p for p in FILES if fault(p)], ids=label)
def test_what_is_no_robot_is_refused_for_its_reason(path: Path) -> None:
    reason, named = fault(path) or ("", "")
    with pytest.raises(BundleRefused) as caught:
        load(path)
    assert caught.value.reason == reason
    assert named in caught.value.message
    assert caught.value.data["line"] >= 1


def test_every_invalid_file_of_the_table_is_there_while_its_package_is() -> None:
    for end in INVALID:
        assert not FILES or sum(p.as_posix().endswith(end) for p in FILES) == 1, end


@pytest.mark.parametrize("name", SAMPLE)
def test_through_the_socket(name: str, daemons: Any) -> None:
    path = next(p for p in SOUND if p.name == name)
    robot, oracle = both(path)
    daemon = daemons(os.fspath(path))
    talk = daemon.connect()
    for q in configurations(robot):
        reply = talk.ask("compute_fk", {"q": q, "links": "all", "base": robot.model.root})
        assert apart(robot, oracle, q, reply["result"]["poses"]) <= TOLERANCE
        if robot.model.tip is not None:
            tip = talk.ask("compute_fk", q)["result"]
            assert tip == reply["result"]["poses"][robot.model.tip]
