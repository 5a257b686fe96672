"""compute_ik: every form of the pose, the shape of results and errors, what is refused, and turns for others meanwhile."""

from __future__ import annotations

import json
from dataclasses import fields
from math import degrees, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from fkd.aim import METHODS, SOLUTIONS, Aim
from fkd.dispatch import call, run, serving
from fkd.errors import FkdError, IkFailed, InvalidParams, ModelError
from fkd.robot import load
from fkd.service import Session
from fkd.wire import messages as m

ROBOTS = Path(__file__).parent.parent / "robots"
arm = Session(serving(load(ROBOTS / "wire_arm.urdf")))
gripper = Session(serving(load(ROBOTS / "wire_gripper.urdf")))
Q = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
POSE = arm.robot.pose(Q)
FAR = {"xyz": [9, 0, 0], "rpy": [0, 0, 0]}


def ask(session: Session, **params: Any) -> Any:
    return json.loads(run(session, "compute_ik", Raw(json.dumps(params).encode())), parse_constant=pytest.fail)


def refused(session: Session, params: Any) -> FkdError:
    with pytest.raises(FkdError) as e:
        run(session, "compute_ik", Raw(json.dumps(params).encode()))
    return e.value


def test_the_result_has_what_the_design_says() -> None:
    got = ask(arm, pose=POSE, seed=Q)
    assert set(got) == {"solutions", "method", "iterations", "restarts"}
    (s,) = got["solutions"]
    assert set(s) == {"q", "position_error", "orientation_error", "converged", "singular"}
    assert s["q"] == pytest.approx(Q)
    assert (s["converged"], s["singular"], got["method"]) == (True, False, "analytic")
    assert ask(arm, pose=POSE, seed=Q, method="numeric")["method"] == "numeric"
    assert ask(arm, pose=POSE, seed=Q, position_only=True)["solutions"][0]["orientation_error"] is None


def test_every_form_of_a_pose_is_the_same_pose() -> None:
    d = json.loads(run(arm, "decompose", Raw(json.dumps({"matrix": POSE}).encode())))
    x, y, z = d["xyz"]
    forms: list[Any] = [
        POSE, np.reshape(POSE, (4, 4)).tolist(), {"matrix": POSE}, {"xyz": d["xyz"], "rpy": d["rpy"]},
        {"xyz": d["xyz"], "quaternion": d["quaternion"]},
        {"position": {"x": x, "y": y, "z": z}, "orientation": dict(zip("xyzw", d["quaternion"], strict=True))},
    ]  # fmt: skip
    for pose in forms:
        assert ask(arm, pose=pose, seed=Q)["solutions"][0]["q"] == pytest.approx(Q)


def test_python_and_the_wire_answer_alike() -> None:
    for solutions in ("one", "nearest", "all"):
        found = arm.robot.ik(POSE, solutions=solutions)
        got = ask(arm, pose=POSE, solutions=solutions)
        assert [s.q for s in found.solutions] == [s["q"] for s in got["solutions"]]
        assert (found.method, found.iterations, found.restarts) == (got["method"], got["iterations"], got["restarts"])


def test_the_types_agree_with_what_they_are_decoded_for() -> None:
    """Of the names, defaults and choices, which the wire's types must not import."""
    theirs = dict(zip(m.ComputeIk.__struct_fields__[-12:], m.ComputeIk.__struct_defaults__, strict=True))
    ours = {f.name: f.default for f in fields(Aim) if f.name != "T_base_tool"}
    assert theirs == ours
    for name, choices in (("method", METHODS), ("solutions", SOLUTIONS)):
        assert refused(arm, {"pose": POSE, name: "?"}).data["expected"] == list(choices)


def test_degrees_both_ways() -> None:
    got = ask(arm, pose=POSE, seed=[degrees(x) for x in Q], degrees=True)
    assert got["solutions"][0]["q"] == pytest.approx([degrees(x) for x in Q])
    pose = {"xyz": [0, 0.0625, 1.5], "rpy": [0, 0, 0.5]}
    got = ask(gripper, pose=pose, link="left", seed={"knuckle": 20}, degrees=True)
    assert got["solutions"][0]["q"] == pytest.approx([1.5, degrees(0.5)])  # the lift stays in metres


def test_a_failure_says_all_that_was_found_out() -> None:
    error = refused(arm, {"pose": FAR, "timeout_ms": 10_000})
    assert (error.code, error.reason) == (-32010, "unreachable")
    assert set(error.data) == {"nearest", "position_error", "orientation_error", "iterations", "restarts", "method"}
    nearest = error.data["nearest"]
    assert set(nearest) == {"q", "pose", "position_error", "orientation_error"}
    assert nearest["pose"] == arm.robot.pose(nearest["q"])
    assert f"{1e3 * error.data['position_error']:.3g} mm" in error.message
    got = ask(arm, pose=FAR, best_effort=True, timeout_ms=10_000)["solutions"]
    assert [(s["q"], s["converged"]) for s in got] == [(nearest["q"], False)]


@pytest.mark.parametrize(
    ("params", "reason", "path"),
    [
        ([], "wrong-type", "$.params"), (POSE, "wrong-type", "$.params"), ({}, "missing-parameter", "$.params"),
        ({"pose": POSE, "links": ["hand"]}, "unknown-parameter", "$.params.links"), ({"pose": None}, "wrong-type", "$.params.pose"),
        ({"pose": POSE[:15]}, "matrix-shape", "$.params.pose"), ({"pose": {"xyz": [0, 0, 0], "rpi": [0, 0, 0]}}, "unknown-parameter", "$.params.pose.rpi"),
        ({"pose": {"matrix": POSE, "xyz": [0, 0, 0]}}, "pose-form", "$.params.pose"), ({"pose": {"xyz": [2e12, 0, 0]}}, "out-of-range", "$.params.pose"),
        ({"pose": POSE, "tool": [1, 2]}, "matrix-shape", "$.params.tool"), ({"pose": POSE, "link": "hnd"}, "unknown-link", "$.params.link"),
        ({"pose": POSE, "base": "j1"}, "joint-not-link", "$.params.base"), ({"pose": POSE, "seed": Q[:5]}, "q-length", "$.params.seed"),
        ({"pose": POSE, "seed": {"j1": "x"}}, "not-a-number", "$.params.seed.j1"), ({"pose": POSE, "seed": [*Q[:5], "x"]}, "wrong-type", "$.params.seed[5]"),
        ({"pose": POSE, "solutions": "some"}, "unknown-choice", "$.params.solutions"), ({"pose": POSE, "timeout_ms": 0}, "out-of-range", "$.params.timeout_ms"),
        ({"pose": POSE, "position_tolerance": 1e-13}, "out-of-range", "$.params.position_tolerance"),
        ({"pose": POSE, "position_only": 1}, "wrong-type", "$.params.position_only"),
        ({"pose": POSE, "method": "analytic", "link": "hand"}, "no-analytic", "$.params.method"),
    ],
)  # fmt: skip
def test_wrong_params_are_named(params: Any, reason: str, path: str) -> None:
    error = refused(arm, params)
    assert (error.reason, error.data["path"]) == (reason, path)


@given(st.dictionaries(
    st.sampled_from(m.ComputeIk.__struct_fields__),
    st.none() | st.booleans() | st.integers(-2**70, 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
    | st.sampled_from(["tool0", "base", "all", "numeric", "analytic", [0] * 6, POSE, FAR, {"j1": 1}])
    | st.lists(st.floats(-9, 9), max_size=16),
))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_whatever_comes_is_answered_or_refused(params: dict[str, Any]) -> None:
    try:
        got = ask(arm, **{"pose": POSE, "timeout_ms": 20.0, **params})
    except (IkFailed, InvalidParams, ModelError):
        return
    assert got["solutions"]


def test_others_have_their_turn_meanwhile() -> None:
    fresh = Session(serving(load(ROBOTS / "wire_arm.urdf")))
    work = call(fresh, "compute_ik", Raw(json.dumps({"pose": FAR, "method": "numeric", "timeout_ms": 10_000}).encode()))
    assert not isinstance(work, bytes)
    for turns in range(100):
        assert next(work) is None, turns
        assert run(fresh, "ping", Raw(b"[]")) == b'"pong"'
    with pytest.raises(IkFailed):
        list(work)


def test_a_client_that_goes_leaves_nothing_behind() -> None:
    work = call(arm, "compute_ik", Raw(json.dumps({"pose": FAR, "method": "numeric"}).encode()))
    assert not isinstance(work, bytes)
    for _ in range(20):
        next(work)
    work.close()
    assert ask(arm, pose=POSE, seed=Q)["solutions"][0]["q"] == pytest.approx(Q)


def test_half_a_turn_and_more() -> None:
    """q is where its turn is inside the limits, nearest to the seed."""
    seed = [*Q[:3], Q[3] + 4 * pi, *Q[4:]]  # j4 is continuous
    assert ask(arm, pose=POSE, seed=seed)["solutions"][0]["q"] == pytest.approx(seed)
