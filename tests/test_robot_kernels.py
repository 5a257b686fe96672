"""Robot: its kernels over all links and bases, at the edge of the range of a double, pickled, and between threads."""

from __future__ import annotations

import math
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fkd.kernels
from fkd.errors import FkdError, InvalidParams, ModelError
from fkd.kernel.pose import frame, matrix, rotation_from_rpy
from fkd.load.build import Choices, build_model
from fkd.load.check import check_description, refuse_errors
from fkd.load.urdf import read_urdf
from fkd.load.xml import parse_xml
from fkd.robot import Robot, load

MIXED = Path(__file__).parent / "robots" / "kin_mixed.urdf"
# lift, shoulder, elbow, wrist, finger_left_slide, drive (x, y, theta), flight (x, y, z, quaternion)
Q = [0.2, 0.5, -1.0, 0.7, 0.01, 0.3, -0.4, 0.9, 1.0, 2.0, 3.0, 0.1, -0.2, 0.3, 0.9]
CHOSEN = {link: load(MIXED, tip=link) for link in ("tool0", "camera", "drone", "cable", "cart")}


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load(MIXED)


def built(inner: str, **choices: Any) -> Robot:
    """A robot of these elements."""
    description = read_urdf(parse_xml(f'<robot name="r">{inner}</robot>'.encode(), "arm.urdf"))
    findings = check_description(description)
    refuse_errors(findings, "arm.urdf")
    return Robot(
        build_model(description, Choices(**choices), digest="", trust="unbundled", source="arm.urdf"), findings
    )


def pair(kind: str, parts: str = "") -> Robot:
    """Two links, one joint."""
    return built(
        f'<link name="a"/><link name="b"/><joint name="j" type="{kind}"><parent link="a"/><child link="b"/>{parts}</joint>'
    )


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives: its result or an FkdError; any other exception fails the test."""
    try:
        return call()
    except FkdError as error:
        return error


# -- links and bases ---------------------------------------------------------------------------------------------------


def test_the_defaults_are_tip_and_base(robot: Robot) -> None:
    assert (robot.model.tip, robot.model.base) == (
        "finger_left",
        "base_link",
    )  # five independent joints, one more than tool0
    assert robot.fk(Q).ravel().tolist() == robot.pose(Q) == robot.poses(Q, ["finger_left"], "base_link")["finger_left"]


def test_kernels_give_bit_for_bit_what_the_reference_gives(robot: Robot) -> None:
    rng = np.random.default_rng(3)
    for base in robot.links:
        q = rng.uniform(-3, 3, robot.dof).tolist()
        assert robot.poses(q, robot.links, base) == robot.kernels.reference(q, robot.links, base)
        for link in robot.links:
            assert robot.poses(q, [link], base) == robot.kernels.reference(q, [link], base)


def test_poses_chain_over_bases(robot: Robot) -> None:
    for a in robot.links:
        for b in ("base_link", "tool0", "camera"):
            assert np.abs(robot.fk(Q, a, b) @ robot.fk(Q, b, a) - np.eye(4)).max() < 1e-14
            assert np.abs(robot.fk(Q, b, a) @ robot.fk(Q, "cart", b) - robot.fk(Q, "cart", a)).max() < 1e-14


def test_links_may_be_named_twice_or_not_at_all(robot: Robot) -> None:
    assert robot.poses(Q, []) == {}
    assert robot.poses(Q, ["tool0", "tool0", "base_link"]) == robot.poses(Q, ["tool0", "base_link"])


def test_a_tool_is_appended_to_each_link(robot: Robot) -> None:
    tool = matrix(frame((0.1, -0.2, 0.3), rotation_from_rpy((0.4, 0.5, 0.6))))
    bare = robot.poses(Q, ["tool0", "camera"], "cart")
    for given_tool in (tool, tool[:12]):
        for link, T in robot.poses(Q, ["tool0", "camera"], "cart", given_tool).items():
            expected = np.array(bare[link]).reshape(4, 4) @ np.array(tool).reshape(4, 4)
            assert np.abs(np.array(T).reshape(4, 4) - expected).max() < 1e-15


@pytest.mark.parametrize(
    ("name", "reason", "near"),
    [("tool", "unknown-link", "tool0"), ("Forearm", "unknown-link", "forearm"), ("elbow", "joint-not-link", "forearm"),
     ("", "unknown-link", None), ("xyzzy", "unknown-link", None)],
)  # fmt: skip
def test_what_is_no_link_is_refused_as_tip_and_as_base(robot: Robot, name: str, reason: str, near: str | None) -> None:
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: robot.fk(Q, name), "$.params.links"), (lambda: robot.fk(Q, "tool0", name), "$.params.base"),
        (lambda: robot.poses(Q, ["tool0", name]), "$.params.links"), (lambda: robot.poses(Q, ["tool0"], name), "$.params.base"),
    ]  # fmt: skip
    for call, path in calls:
        with pytest.raises(ModelError) as caught:
            call()
        assert (caught.value.reason, caught.value.data["path"], caught.value.data["name"]) == (reason, path, name)
        assert caught.value.data.get("did_you_mean") == near


def test_a_link_called_like_a_joint_is_the_link(robot: Robot) -> None:
    assert np.array_equal(robot.fk(Q, "wrist", "wrist"), np.eye(4))  # here joint `wrist` carries link `wrist`


def test_without_a_tip_links_must_be_named() -> None:
    fork = built(
        '<link name="a"/><link name="left"/><link name="right"/>'
        '<joint name="l" type="revolute"><parent link="a"/><child link="left"/></joint>'
        '<joint name="r" type="revolute"><parent link="a"/><child link="right"/></joint>'
    )
    for call in (lambda: fork.fk([0.1, 0.2]), lambda: fork.pose([0.1, 0.2]), lambda: fork.pose([])):
        with pytest.raises(ModelError) as caught:
            call()
        assert caught.value.reason == "no-tip"
        assert caught.value.data["candidates"] == ["left", "right"]
    assert fork.fk([0.1, 0.2], "left").shape == (4, 4)


def test_tip_and_base_may_be_chosen_at_load() -> None:
    chosen = load(MIXED, tip="camera", base="cart")
    assert chosen.pose(Q) == load(MIXED).poses(Q, ["camera"], "cart")["camera"]


def test_a_robot_of_one_link_has_a_pose() -> None:
    rock = built('<link name="rock"/>')
    assert rock.pose([]) == np.eye(4).ravel().tolist()
    with pytest.raises(InvalidParams):
        rock.pose([0.0])


def test_origins_beyond_the_range_of_a_double_are_told() -> None:
    far = '<origin xyz="1.7e308 0 0"/>'
    ladder = built(
        '<link name="a"/><link name="b"/><link name="c"/><link name="d"/>'
        f'<joint name="f" type="fixed"><parent link="a"/><child link="b"/>{far}</joint>'
        f'<joint name="g" type="fixed"><parent link="b"/><child link="c"/>{far}</joint>'
        '<joint name="j" type="revolute"><parent link="c"/><child link="d"/></joint>'
    )
    for call in (lambda: ladder.pose([0.5]), lambda: ladder.fk([0.5])):
        with pytest.raises(InvalidParams) as caught:
            call()
        assert caught.value.reason == "overflow"
    assert ladder.fk([0.5], "d", "c")[2, 1] == math.sin(0.5)


# -- never NaN, never infinity -----------------------------------------------------------------------------------------

HUGE = st.one_of(
    st.sampled_from([0.0, 1e-200, -1e-161, 1e-158, 1e150, 1e200, -1e308, 1.7e308, 5e-324]),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.lists(HUGE, min_size=15, max_size=15), st.sampled_from(["tool0", "camera", "drone", "cable", "cart"]))
@settings(max_examples=200)
def test_any_finite_q_gives_finite_rigid_poses_or_an_error(q: list[float], link: str) -> None:
    robot = CHOSEN[link]
    for call in (
        lambda: robot.pose(q),
        lambda: robot.poses(q, [link])[link],
        lambda: robot.poses(q, ["base_link"], link)["base_link"],
    ):
        found = outcome(call)
        if isinstance(found, FkdError):
            assert found.reason in ("overflow", "quaternion-norm")
            continue
        T = np.array(found).reshape(4, 4)
        assert np.isfinite(T).all()
        assert np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)).max() < 1e-13


@given(st.floats(-320, 308))
@example(200.0)
@example(-161.0)
@example(-158.0)
@example(-160.5)
@example(155.0)
def test_a_quaternion_of_any_size_is_normalised_or_refused(exponent: float) -> None:
    drone, quaternion = pair("floating"), (0.1, -0.5, 0.7, 0.5)
    size = 10.0**exponent
    q = [0.0, 0.0, 0.0, *(size * c for c in quaternion)]
    expected = drone.fk([0.0, 0.0, 0.0, *quaternion])
    for call in (lambda: drone.pose(q), lambda: drone.poses(q, ["b"])["b"]):
        found = outcome(call)
        if isinstance(found, FkdError):
            assert found.reason == "quaternion-norm"
            assert found.data["path"] in ("$.params[3]", "$.params.q[3]")
            assert abs(exponent) > 100
        else:
            assert np.abs(np.array(found).reshape(4, 4) - expected).max() < 1e-14


def test_a_zero_quaternion_is_refused() -> None:
    for q in ([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0], {"j": [1.0, 2.0, 3.0, 0.0, -0.0, 0.0, 0.0]}):
        with pytest.raises(InvalidParams) as caught:
            pair("floating").fk(q)
        assert (caught.value.reason, caught.value.data["path"]) == ("quaternion-norm", "$.params.q[3]")


@pytest.mark.parametrize("axis", ["1e-17 0 -1", "1e-200 0 -1", "-6e-17 1e-16 -1", "0 -1e-160 -3", "5e-324 0 -1"])
def test_noise_in_a_planar_axis_does_not_choose_its_directions(axis: str) -> None:
    q = [1.0, 2.0, 0.5]
    assert np.array_equal(pair("planar", f'<axis xyz="{axis}"/>').fk(q), pair("planar", '<axis xyz="0 0 -1"/>').fk(q))


@pytest.mark.parametrize(
    ("axis", "place"), [("6.1e-17 0 1", (1, 0)), ("1e-17 1 0", (0, 2)), ("1 -1e-16 0", (2, 1)), ("0 6e-17 -1", (0, 1))]
)
def test_noise_in_an_axis_does_not_choose_another(axis: str, place: tuple[int, int]) -> None:
    assert pair("revolute", f'<axis xyz="{axis}"/>').fk([0.5])[place] == pytest.approx(math.sin(0.5), abs=1e-15)


# -- pickling, threads, memory -----------------------------------------------------------------------------------------


def test_a_robot_pickles_with_its_model_and_findings(robot: Robot) -> None:
    robot.fk(Q, "camera", "cable")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(robot, protocol))
        assert copy.model == robot.model
        assert copy.findings == robot.findings
        assert copy.pose(Q) == robot.pose(Q)
        assert copy.poses(Q, ["camera"], "cable") == robot.poses(Q, ["camera"], "cable")


def test_kernels_are_kept_within_a_bound() -> None:
    robot = load(MIXED)
    for base in robot.links:
        for link in robot.links:
            robot.fk(Q, link, base)
    assert len(robot.kernels._compiled) <= fkd.kernels.KEPT_KERNELS < len(robot.links) ** 2
    first = robot.kernels.poses(("tool0",), "camera")
    assert robot.kernels.poses(("tool0",), "camera") is first


def test_the_tip_kernel_survives_any_number_of_others(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fkd.kernels, "KEPT_KERNELS", 1)
    kernel = robot.tip_kernel
    for link in robot.links:
        robot.fk(Q, link)
    assert robot.tip_kernel is kernel


def test_a_kernel_that_another_thread_drops_meanwhile_is_used_all_the_same() -> None:
    class Dropping(OrderedDict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            found = super().get(key, default)
            self.clear()  # as if others had asked for many kernels just now
            return found

    robot = load(MIXED)
    robot.kernels._compiled = Dropping(robot.kernels._compiled)
    for _ in range(3):
        assert robot.fk(Q).ravel().tolist() == robot.pose(Q)


def test_threads_may_share_a_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fkd.kernels, "KEPT_KERNELS", 2)
    robot = load(MIXED)
    links = ["tool0", "camera", "cable", "drone"]
    expected = {link: robot.kernels.reference(Q, [link])[link] for link in links}

    def work(shift: int) -> list[str]:
        order = [links[(k + shift) % len(links)] for k in range(60)]
        return [link for link in order if robot.poses(Q, [link])[link] != expected[link]]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(4))) == [[]] * 4
    finally:
        sys.setswitchinterval(interval)
    assert len(robot.kernels._compiled) <= 2 + 4
