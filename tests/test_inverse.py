"""Laws of inverse kinematics through a robot: what it answers is true, inside the limits, and the same again.

Poses are put back through the robot's own kernel, and for two robots of other people's through Pinocchio.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Generator
from importlib.metadata import PackageNotFoundError, distribution
from itertools import count
from math import acos, cos, degrees, dist, inf, nan, pi, sin
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.aim import Aim
from fkd.errors import FkdError, IkFailed, InvalidParams, ModelError
from fkd.inverse import KEPT_SOLVERS, Found
from fkd.kernel.ik_answer import Answer, Solution
from fkd.limits import limits
from fkd.robot import Robot, load

ROBOTS = Path(__file__).parent / "robots"
HERE = pytest.approx


@pytest.fixture(scope="module")
def arm() -> Robot:
    """Six axes with a spherical wrist."""
    return load(ROBOTS / "wire_arm.urdf")


@pytest.fixture(scope="module")
def mixed() -> Robot:
    """Every type of joint."""
    return load(ROBOTS / "kin_mixed.urdf")


Make = Callable[[str], Robot]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A chain of links l0, l1, .. by its joints, given as `type axis x y z lower upper`."""

    def make(text: str) -> Robot:
        parts = ['<robot name="made"><link name="l0"/>']
        for k, line in enumerate(text.strip().splitlines(), 1):
            kind, axis, x, y, z, lower, upper = line.split()
            parts.append(
                f'<link name="l{k}"/><joint name="j{k}" type="{kind}"><parent link="l{k - 1}"/><child link="l{k}"/>'
                f'<origin xyz="{x} {y} {z}"/><axis xyz="{" ".join(str(int(axis == a)) for a in "xyz")}"/>'
                f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/></joint>'
            )
        file = tmp_path_factory.mktemp("made") / "made.urdf"
        file.write_text("".join(parts) + "</robot>")
        return load(file)

    return make


@pytest.fixture(scope="module")
def two(made: Make) -> Robot:
    """A planar arm of 0.5 m and 0.3 m, 0.1 m over its base."""
    return made("revolute z 0 0 .1 -3 3 \n revolute z .5 0 0 -3 3 \n fixed z .3 0 0 0 0")


ELBOW = acos((0.6**2 - 0.5**2 - 0.3**2) / (2 * 0.5 * 0.3))  # of `two` for a tip at distance 0.6: the law of cosines


def true(robot: Robot, found: Found, pose: Any, link: str | None = None, base: str | None = None, tolerance: float = 1e-6) -> None:
    """What holds of every answer."""
    lower, upper = limits(robot.model)
    assert found.solutions
    for s in found.solutions:
        T = robot.fk(s.q, link, base)
        assert dist(T[:3, 3], np.reshape(pose, (4, 4))[:3, 3]) <= tolerance
        assert s.position_error <= tolerance
        if s.orientation_error is not None:
            assert np.abs(T[:3, :3] - np.reshape(pose, (4, 4))[:3, :3]).max() <= tolerance
            assert s.orientation_error <= tolerance
        assert s.converged
        assert len(s.q) == robot.dof
        assert all(low <= x <= high for low, x, high in zip(lower, s.q, upper, strict=True))
    assert found.q == found.solutions[0].q


def some_q(robot: Robot, rnd: Random) -> list[float]:
    lower, upper = limits(robot.model)
    return [rnd.uniform(max(low, -pi), min(high, pi)) for low, high in zip(lower, upper, strict=True)]


def failed(robot: Robot, pose: Any, *arguments: Any, **options: Any) -> IkFailed:
    with pytest.raises(IkFailed) as e:
        robot.ik(pose, *arguments, **{"timeout_ms": 10_000, **options})
    return e.value


def refused(robot: Robot, pose: Any, *arguments: Any, **options: Any) -> FkdError:
    with pytest.raises((InvalidParams, ModelError)) as e:
        robot.ik(pose, *arguments, **options)
    return e.value


# -- answers are true --------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.sampled_from(["one", "nearest", "all"]), st.sampled_from(["auto", "numeric"]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_pose_within_reach_is_reached(arm: Robot, seed: int, solutions: str, method: str, position_only: bool) -> None:
    rnd = Random(seed)
    pose = arm.fk(some_q(arm, rnd))
    start = rnd.choice([None, some_q(arm, rnd)])
    found = arm.ik(pose, seed=start, solutions=solutions, method=method, position_only=position_only, timeout_ms=10_000)
    true(arm, found, pose)
    assert found.method == ("analytic" if method == "auto" and not position_only else "numeric")


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_all_solutions_hold_the_one_that_the_pose_was_made_from(arm: Robot, seed: int) -> None:
    q = some_q(arm, Random(seed))
    found = arm.ik(arm.fk(q), seed=q, solutions="all")
    true(arm, found, arm.fk(q))
    assert min(max(map(abs, np.subtract(s.q, q))) for s in found.solutions) < 1e-6


@given(st.integers(0, 2**32), st.sampled_from(["tool0", "hand", "forearm"]), st.sampled_from(["base", "shoulder", "tool0"]))
@settings(max_examples=20, deadline=None)
def test_any_link_in_any_other(arm: Robot, seed: int, link: str, base: str) -> None:
    pose = arm.fk(some_q(arm, Random(seed)), link, base)
    true(arm, arm.ik(pose, link, base, timeout_ms=10_000), pose, link, base)


def test_the_tool_is_what_is_brought_there(arm: Robot) -> None:
    tool = np.array([[0, 0, 1, 0.1], [0, 1, 0, -0.2], [-1, 0, 0, 0.3], [0, 0, 0, 1]])
    q = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    for method in ("analytic", "numeric"):
        found = arm.ik(arm.fk(q) @ tool, tool=tool, seed=q, method=method)
        assert found.q == HERE(q, abs=1e-6)
        true(arm, found, arm.fk(q))
    error = failed(arm, {"xyz": [9, 0, 0], "rpy": [0, 0, 0]}, tool={"xyz": [0.1, -0.2, 0.3], "rpy": [0, pi / 2, 0]})
    T = arm.fk(error.data["nearest"]["q"]) @ tool
    assert np.abs(T - np.reshape(error.data["nearest"]["pose"], (4, 4))).max() < 1e-12


def test_a_matrix_of_seven_digits_is_a_pose(arm: Robot) -> None:
    pose = np.round(arm.fk([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), 7)
    for method in ("analytic", "numeric"):
        true(arm, arm.ik(pose, method=method), pose, tolerance=2e-6)


PACKAGE = "example-robot-data"


def carried(name: str) -> Path:
    """A description that the package carries."""
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed")
    return next(Path(str(package.locate_file(f))) for f in package.files or [] if f.name == name)


@pytest.mark.parametrize(
    ("name", "link", "method"),
    [("ur5_robot.urdf", "tool0", "auto"), ("ur5_robot.urdf", "tool0", "numeric"), ("panda.urdf", "panda_hand_tcp", "auto")],
)
def test_pinocchio_finds_the_tool_there(name: str, link: str, method: str) -> None:
    pin = pytest.importorskip("pinocchio")
    path = carried(name)
    robot, model = load(path), pin.buildModelFromUrdf(str(path))
    data, frame = model.createData(), model.getFrameId(link)

    def pose(q: list[float]) -> np.ndarray:
        values = pin.neutral(model)
        for joint in robot.model.independent:
            values[model.joints[model.getJointId(joint.name)].idx_q] = q[joint.index]
        pin.framesForwardKinematics(model, data, values)
        return np.array(data.oMf[frame].homogeneous)

    rnd = Random(5)
    for solutions in ("one", "nearest", "all"):
        for _ in range(8):
            T = pose(some_q(robot, rnd))
            found = robot.ik(T, link, solutions=solutions, method=method, timeout_ms=10_000)
            true(robot, found, T, link)
            for s in found.solutions:
                assert np.abs(pose(s.q) - T).max() <= 2e-6
                assert s.position_error == HERE(dist(pose(s.q)[:3, 3], T[:3, 3]), abs=1e-12)


def test_only_what_the_robots_own_kernel_confirms_is_returned(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    pose, q = arm.fk([0.1] * 6), [0.1, 0.1, 0.1, 0.1, 0.1, 0.10001]
    lie = Solution(q, 0.0, 0.0, True)
    truth = Solution([0.1] * 6, 0.5, 0.5, True)
    outside = Solution([0.1 + 2 * pi, *[0.1] * 5], 0.0, 0.0, True)

    def search(said: list[Solution]) -> Callable[..., Generator[None, None, Answer]]:
        def run(*_: object) -> Generator[None, None, Answer]:
            yield
            return Answer(said, None, "", "numeric", 1, 0)

        return run

    monkeypatch.setattr("fkd.kernel.ik.Ik.search", search([lie, outside, truth]))
    found = arm.ik(pose)
    assert [s.q for s in found.solutions] == [truth.q]
    assert found.solutions[0].position_error < 1e-15
    monkeypatch.setattr("fkd.kernel.ik.Ik.search", search([lie, outside]))
    error = failed(arm, pose)
    assert error.reason == "unreachable"
    assert error.data["nearest"]["q"] == q
    assert error.data["orientation_error"] == HERE(1e-5)


# -- failures are honest -----------------------------------------------------------------------------------------------


@given(st.floats(0.81, 50), st.floats(-pi, pi))
@settings(max_examples=20, deadline=None)
def test_what_is_out_of_reach_is_never_a_success(two: Robot, distance: float, angle: float) -> None:
    error = failed(two, {"xyz": [distance * cos(angle), distance * sin(angle), 0.1]}, position_only=True)
    assert error.code == -32010
    nearest = error.data["nearest"]
    assert error.data["position_error"] == nearest["position_error"] >= distance - 0.8 - 1e-9
    assert np.allclose(np.reshape(nearest["pose"], (4, 4)), two.fk(nearest["q"]))
    if abs(angle) < 3:
        assert error.reason == "unreachable"
        assert nearest["position_error"] == HERE(distance - 0.8, abs=1e-3)


def test_an_orientation_out_of_reach_says_so_in_both_residuals(two: Robot) -> None:
    error = failed(two, {"xyz": [0.6, 0, 0.1], "rpy": [0.3, 0, 0]})
    assert error.data["orientation_error"] > 0.29
    assert error.data["position_error"] == error.data["nearest"]["position_error"]
    assert "2 joint values" in error.message
    assert "position_only" in error.message


def test_the_message_says_how_far_off_in_millimetres_and_degrees(made: Make) -> None:
    slide = made("prismatic x 0 0 0 -1 1 \n revolute z 0 0 0 -.5 .5")
    error = failed(slide, {"xyz": [1, 0, 0.25], "rpy": [0, 0, 0]})
    assert "at best it is 250 mm and 0 deg off" in error.message
    assert (error.reason, error.data["method"]) == ("unreachable", "numeric")
    assert error.data["restarts"] >= 1 <= error.data["iterations"]


def test_what_only_limits_forbid_says_so(two: Robot) -> None:
    error = failed(two, {"xyz": [-0.8, 0, 0.1]}, position_only=True)  # the first joint would have to be at pi
    assert error.reason == "limits"
    assert "joint limits" in error.message
    elbow = [0.5 * cos(3), 0.5 * sin(3)]  # as far round as it goes
    assert error.data["position_error"] == HERE(dist(elbow, [-0.8, 0]) - 0.3, abs=1e-6)


def test_a_clock_that_runs_out_is_told_from_a_pose_out_of_reach(arm: Robot) -> None:
    ticks = count(0.0, 0.2)
    aim = Aim(arm.fk([0.3] * 6).ravel().tolist(), method="numeric", timeout_ms=500.0)
    with pytest.raises(IkFailed) as e:
        arm.inverse.solve(aim, lambda: next(ticks))
    assert e.value.reason == "deadline"
    assert "timeout_ms 500" in e.value.message
    assert len(e.value.data["nearest"]["q"]) == 6


def test_the_time_that_others_are_given_is_not_the_searchs(arm: Robot) -> None:
    """Between its steps hours pass, while its own clock stands still."""
    hours = 0.0
    search = arm.inverse.search(Aim(arm.fk([0.3] * 6).ravel().tolist(), method="numeric", timeout_ms=1.0), lambda: hours)
    found = None
    while found is None:
        try:
            next(search)
            hours += 1.0
        except StopIteration as end:
            found = end.value
    assert found.solutions[0].converged


@pytest.mark.parametrize("seed", [[0.0, 0.0], [0.3, 2.0], [0.7, -3.0]])
def test_a_seed_never_makes_a_reachable_pose_unreachable(tmp_path: Path, seed: list[float]) -> None:
    """Where there are few joints, all starts near the seed may lie in one hollow without a solution."""
    path = tmp_path / "slide.urdf"
    path.write_text(
        "<robot name='r'><link name='a'/><link name='b'/><link name='c'/><link name='d'/>"
        "<joint name='s' type='prismatic'><parent link='a'/><child link='b'/><axis xyz='1 0 0'/><limit lower='0' upper='1' effort='1' velocity='1'/></joint>"
        "<joint name='t' type='revolute'><parent link='b'/><child link='c'/><axis xyz='0 0 1'/><limit lower='-3.1' upper='3.1' effort='1' velocity='1'/></joint>"
        "<joint name='f' type='fixed'><parent link='c'/><child link='d'/><origin xyz='0.5 0 0'/></joint></robot>"
    )
    robot = load(path)
    rng = Random(1)
    for _ in range(60):
        q = [rng.uniform(0, 1), rng.uniform(-3.1, 3.1)]
        T = robot.fk(q)
        found = robot.ik({"xyz": T[:3, 3].tolist()}, position_only=True, seed=seed)
        assert np.abs(robot.fk(found.q)[:3, 3] - T[:3, 3]).max() < 2e-6


def test_best_effort_gives_the_nearest_and_says_that_it_is_no_solution(two: Robot) -> None:
    pose = {"xyz": [1, 0, 0.1]}
    found = two.ik(pose, position_only=True, best_effort=True, timeout_ms=10_000)
    error = failed(two, pose, position_only=True)
    (s,) = found.solutions
    assert (s.q, s.position_error, s.orientation_error, s.converged) == (error.data["nearest"]["q"], HERE(0.2), None, False)
    assert (found.method, found.iterations, found.restarts) == tuple(error.data[k] for k in ("method", "iterations", "restarts"))
    assert two.ik({"xyz": [0.6, 0, 0.1]}, position_only=True, best_effort=True).solutions[0].converged


def test_a_link_that_nothing_moves(arm: Robot) -> None:
    found = arm.ik(np.eye(4), "base")
    true(arm, found, np.eye(4), "base")
    assert failed(arm, {"xyz": [0, 0, 0.5], "rpy": [0, 0, 0]}, "base").data["position_error"] == HERE(0.5)


@pytest.mark.filterwarnings("ignore:overflow")
def test_numbers_at_the_end_of_doubles_are_refused_or_failed(made: Make) -> None:
    endless = made("prismatic x 1e200 0 0 -1e308 1e308 \n revolute z 1e300 0 0 -1 1")
    assert failed(endless, np.eye(4)).data["position_error"] > 1e200
    endless = made("prismatic x 0 0 0 1.7e308 1.7e308 \n prismatic x 0 0 0 1.7e308 1.7e308")
    error = failed(endless, np.eye(4))
    assert "infinitely far off" in error.message
    assert "nearest" not in error.data
    endless = made("revolute z .1 0 0 1.7e308 1.7e308 \n revolute z .1 0 0 -1 1")
    assert refused(endless, np.eye(4), timeout_ms=10_000).reason == "overflow"


def test_a_chain_that_only_turns_but_for_rounding(made: Make) -> None:
    pan_tilt = made("revolute z 0 0 1e-17 -3 3 \n revolute y 1e-16 0 0 -3 3")
    pose = pan_tilt.fk([1.0, 0.5])
    pose[:3, 3] = 0.0
    assert pan_tilt.ik(pose).q == HERE([1.0, 0.5], abs=1e-5)


# -- limits, turns, seeds and branches ---------------------------------------------------------------------------------


def test_an_angle_is_taken_where_its_turn_is_inside_the_limits(made: Make) -> None:
    robot = made("revolute z 0 0 0 .39 6.28 \n fixed z .4 0 0 0 0")
    found = robot.ik({"xyz": [0.4 * cos(-2), 0.4 * sin(-2), 0]}, position_only=True, seed={"j1": 0.5})
    assert found.q == HERE([2 * pi - 2], abs=1e-6)


def test_limits_in_reverse_or_both_zero_do_not_lock_a_joint(made: Make) -> None:
    robot = made("revolute z 0 0 .1 3 -3 \n revolute z .5 0 0 0 0 \n fixed z .3 0 0 0 0")
    assert abs(robot.ik({"xyz": [0.6, 0, 0.1]}, position_only=True).q[1]) == HERE(ELBOW, abs=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_seed_chooses_the_branch_and_a_path_keeps_it(two: Robot, sign: int) -> None:
    seed: Any = {"j1": -0.4 * sign, "j2": 1.3 * sign}
    for solutions in ("one", "nearest"):
        q = two.ik({"xyz": [0.6, 0, 0.1]}, seed=seed, solutions=solutions, position_only=True).q
        assert q[1] == HERE(sign * ELBOW, abs=1e-5)
        for x in np.linspace(0.6, 0.7, 20):
            after = two.ik({"xyz": [x, 0, 0.1]}, seed=q, solutions=solutions, position_only=True).q
            assert max(map(abs, np.subtract(after, q))) < 0.2
            q = after


@pytest.mark.parametrize("method", ["analytic", "numeric"])
def test_a_path_of_six_axes_keeps_its_branch(arm: Robot, method: str) -> None:
    q = before = [0.3, 0.4, 0.9, -0.5, 0.8, 1.0]
    for step in range(1, 40):
        there = [x + 0.01 * step * s for x, s in zip(before, (1, -1, 1, 1, -1, 2), strict=True)]
        q = arm.ik(arm.fk(there), seed=q, solutions="nearest", method=method).q
        assert q == HERE(there, abs=1e-5)


def test_every_form_of_a_seed(two: Robot) -> None:
    pose, options = {"xyz": [0.6, 0, 0.1]}, {"position_only": True}
    expected = two.ik(pose, seed=[0.0, 1.3], **options)
    for seed in ((0.0, 1.3), np.array([0.0, 1.3]), {"j1": 0, "j2": 1.3}, {"j2": 1.3}):  # 0 is the middle of j1's limits
        assert two.ik(pose, seed=seed, **options) == expected


def test_a_seed_outside_the_limits_starts_from_the_nearest_inside(two: Robot) -> None:
    pose = two.fk([2.9, -1.0])
    assert two.ik(pose, seed=[3.4, -1.2]).q == HERE([2.9, -1.0], abs=1e-5)
    true(two, two.ik(pose, seed=[900.0, -900.0], timeout_ms=10_000), pose)


def test_what_does_not_move_the_link_stays_where_it_is(mixed: Robot) -> None:
    seed = some_q(mixed, Random(3))
    for joint in mixed.model.independent:
        if joint.type == "floating":
            seed[joint.index + 3 : joint.index + 7] = [0.5, 0.5, 0.5, 0.5]
    link = "wrist"
    others = set(range(mixed.dof)) - {j.index for j in mixed.model.chain(link)}
    assert len(others) > 10
    pose = mixed.fk(some_q(mixed, Random(4)), link)
    found = mixed.ik(pose, link, seed=seed)
    assert [found.q[k] for k in sorted(others)] == [seed[k] for k in sorted(others)]
    without = mixed.ik(pose, link)
    mixed.fk_batch([found.q, without.q], mixed.links)  # such a q is a q for every link, floating joints too


@pytest.mark.parametrize(
    ("seed", "reason", "path"),
    [
        ([0.0], "q-length", "$.params.seed"), ([0.0, nan], "not-a-number", "$.params.seed[1]"), ("00", "q-type", "$.params.seed"),
        ({"j3": 1.0}, "joint-fixed", "$.params.seed.j3"), ({"j9": 1.0}, "unknown-joint", "$.params.seed.j9"),
        ({"j1": inf}, "not-a-number", "$.params.seed.j1"), ([0.0, 1e7], "out-of-range", "$.params.seed"), (7, "q-type", "$.params.seed"),
    ],
)  # fmt: skip
def test_a_seed_that_is_no_q_is_refused(two: Robot, seed: Any, reason: str, path: str) -> None:
    error = refused(two, {"xyz": [0.6, 0, 0.1]}, seed=seed, position_only=True)
    assert (error.reason, error.data["path"]) == (reason, path)


def test_followers_go_with_their_source() -> None:
    gripper = load(ROBOTS / "wire_gripper.urdf")
    q = {"lift": 0.75, "knuckle": -0.3}
    for link in ("left", "right_tip"):
        pose = gripper.fk(q, link)
        true(gripper, gripper.ik(pose, link), pose, link)
    found = gripper.ik(pose, link, seed={"mirror": 0.3, "knuckle": -0.3})
    assert found.q == HERE([q[j] for j in gripper.joints], abs=1e-5)
    assert refused(gripper, pose, link, seed={"mirror": 0.3, "knuckle": 0.3}).reason == "follower-inconsistent"


def test_planar_joints_are_driven_like_any_other(mixed: Robot) -> None:
    drive = next(j for j in mixed.model.joints if j.type == "planar")
    q = [0.0] * mixed.dof
    q[drive.index : drive.index + 3] = [0.7, -0.4, 2.0]
    flight = next(j for j in mixed.model.joints if j.type == "floating")
    q[flight.index + 6] = 1.0
    found = mixed.ik(mixed.fk(q, drive.child), drive.child)
    assert found.q[drive.index : drive.index + 3] == HERE([0.7, -0.4, 2.0], abs=1e-5)


def test_a_floating_joint_on_the_way_is_refused_by_name(mixed: Robot) -> None:
    flight = next(j for j in mixed.model.joints if j.type == "floating")
    error = refused(mixed, np.eye(4), flight.child)
    assert (error.reason, error.data["got"], error.data["did_you_mean"]) == ("floating-joint", flight.name, flight.child)
    assert f"`{flight.name}`" in error.message
    assert mixed.ik(np.eye(4), flight.child, flight.child).solutions[0].converged


# -- the same question, the same answer --------------------------------------------------------------------------------


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    used, fresh = load(ROBOTS / "wire_arm.urdf"), load(ROBOTS / "wire_arm.urdf")
    rnd = Random(1)
    poses = [used.fk(some_q(used, rnd)) for _ in range(6)]
    options: list[dict[str, Any]] = [
        {"solutions": s, "method": m, "position_only": p, "timeout_ms": 10_000}
        for s in ("one", "nearest", "all") for m in ("auto", "numeric") for p in (False, True)
    ]  # fmt: skip
    first = [used.ik(pose, **o) for o in options for pose in poses]
    assert first == [used.ik(pose, **o) for o in options for pose in poses]
    assert [fresh.ik(poses[-1], **o) for o in reversed(options)] == first[len(poses) - 1 :: len(poses)][::-1]
    assert pickle.loads(pickle.dumps(used)).ik(poses[0]) == used.ik(poses[0])


def test_threads_share_a_robot() -> None:
    robot = load(ROBOTS / "wire_arm.urdf")
    pose = robot.fk([0.3] * 6)
    expected = load(ROBOTS / "wire_arm.urdf").ik(pose, method="numeric", timeout_ms=10_000)
    found: list[Found] = []
    threads = [
        threading.Thread(target=lambda: found.append(robot.ik(pose, method="numeric", timeout_ms=10_000))) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [expected] * 4


def test_prepared_or_not_the_answer_is_the_same(arm: Robot) -> None:
    ready = load(ROBOTS / "wire_arm.urdf")
    ready.inverse.prepare()
    assert ready.ik(arm.fk([0.3] * 6)) == arm.ik(arm.fk([0.3] * 6))


def test_the_solvers_that_are_kept_are_few(made: Make) -> None:
    robot = made("\n".join(["revolute z .1 0 0 -1 1"] * (KEPT_SOLVERS + 3)))
    kept = [robot.inverse.solver(link, "l0") for link in robot.links]
    assert robot.inverse.solver(robot.links[-1], "l0") is kept[-1]
    assert robot.inverse.solver(robot.links[0], "l0") is not kept[0]
    assert len(robot.inverse._solvers) == KEPT_SOLVERS


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_an_analytic_answer_is_refused_where_there_is_none(arm: Robot, two: Robot) -> None:
    error = refused(two, np.eye(4), method="analytic")
    assert (error.reason, error.data["path"]) == ("no-analytic", "$.params.method")
    assert "2" in error.message
    error = refused(arm, np.eye(4), method="analytic", position_only=True)
    assert (error.reason, "position_only" in error.message) == ("no-analytic", True)


def test_unknown_links_are_named_with_the_nearest(arm: Robot) -> None:
    for options, path in (({"link": "tool"}, "$.params.link"), ({"base": "bas"}, "$.params.base"), ({"link": 3}, "$.params.link")):
        error = refused(arm, np.eye(4), **options)
        assert isinstance(error, ModelError)
        assert error.data["path"] == path
    assert refused(arm, np.eye(4), "tool").data["did_you_mean"] == "tool0"


anything: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.lists(st.floats(), max_size=16)
    | st.dictionaries(st.sampled_from(["j1", "j2", "xyz", "rpy", "matrix", "quaternion"]), st.floats() | st.lists(st.floats(-9, 9), max_size=4))
)  # fmt: skip
OPTIONS = (
    "link", "base", "tool", "seed", "solutions", "method", "position_tolerance", "orientation_tolerance", "position_only",
    "timeout_ms", "best_effort",
)  # fmt: skip


@given(
    anything | st.builds(lambda xyz: {"xyz": xyz}, st.lists(st.floats(-2e12, 2e12), min_size=3, max_size=3)),
    st.dictionaries(st.sampled_from(OPTIONS), anything, max_size=2), st.sampled_from([{}, {"position_only": True}]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_whatever_is_asked_is_answered_or_refused(two: Robot, pose: Any, options: dict[str, Any], more: dict[str, Any]) -> None:
    try:
        found = two.ik(pose, **{"timeout_ms": 10.0, **more, **options})
    except FkdError:
        return
    for s in found.solutions:
        assert s.converged or options.get("best_effort") is True
        assert two.fk(s.q).shape == (4, 4)


tolerance = st.floats(1e-12, 1e12)


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6), tolerance, tolerance, st.sampled_from(["one", "nearest", "all"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_tolerance_is_kept(arm: Robot, q: list[float], position: float, orientation: float, solutions: str, only: bool) -> None:
    pose = arm.fk(q)
    try:
        found = arm.ik(pose, position_tolerance=position, orientation_tolerance=orientation, solutions=solutions, method="numeric",
                       position_only=only, timeout_ms=100)  # fmt: skip
    except IkFailed:
        return  # outside the limits, or finer than doubles are
    for s in found.solutions:
        T = arm.fk(s.q)
        assert dist(T[:3, 3], pose[:3, 3]) <= position * (1 + 1e-12) + 1e-15
        assert s.position_error <= position
        assert only or s.orientation_error is not None
        assert s.orientation_error is None or s.orientation_error <= orientation


def test_degrees_are_for_what_turns_only(made: Make, mixed: Robot) -> None:
    robot = made("prismatic x 0 0 0 0 2 \n revolute z 0 0 0 -3 3 \n fixed z .3 0 0 0 0")
    pose = robot.fk([1.5, 1.0]).ravel().tolist()
    for seed in (None, [1.4, 50.0], {"j2": 50.0}):
        s = robot.inverse.solve(Aim(pose, seed=seed, degrees=True)).solutions[0]
        assert s.q == HERE([1.5, degrees(1.0)], abs=1e-4)
    far = [*pose[:3], 9.0, *pose[4:]]
    with pytest.raises(IkFailed) as e:
        robot.inverse.solve(Aim(far, degrees=True, timeout_ms=10_000.0))
    assert e.value.data["nearest"]["q"][0] == HERE(2.0)
    assert e.value.data["nearest"]["q"][1] > 4.0  # degrees: more than the joint's 3 rad
    with pytest.raises(InvalidParams) as refusal:
        mixed.inverse.solve(Aim(pose, mixed.model.root, degrees=True))
    assert (refusal.value.reason, refusal.value.data["path"]) == ("degrees-undefined", "$.params.degrees")
