"""What inverse kinematics is asked for: every form of a pose, and everything that is refused, with its path."""

from __future__ import annotations

from math import inf, nan, pi
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.aim import Aim, read_pose
from fkd.errors import FkdError, InvalidParams

EYE = [1.0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
HALF_ROUND = [-1.0, 0, 0, 0.5, 0, -1, 0, 0, 0, 0, 1, 0.25, 0, 0, 0, 1]  # about z


@pytest.mark.parametrize(
    "pose",
    [
        HALF_ROUND, tuple(HALF_ROUND), np.array(HALF_ROUND), np.array(HALF_ROUND).reshape(4, 4),
        [HALF_ROUND[4 * i : 4 * i + 4] for i in range(4)], list(np.array(HALF_ROUND).reshape(4, 4)),
        {"matrix": HALF_ROUND}, {"xyz": [0.5, 0, 0.25], "rpy": [0, 0, pi]},
        {"xyz": (0.5, 0, 0.25), "quaternion": np.array([0, 0, 1, 0])}, {"xyz": np.float32([0.5, 0, 0.25]), "rpy": [0, 0, pi]},
    ],
)  # fmt: skip
def test_every_form_of_a_pose_is_read(pose: Any) -> None:
    assert read_pose(pose, "pose") == HALF_ROUND


@pytest.mark.parametrize(
    ("pose", "reason", "path"),
    [
        (None, "wrong-type", "p"), ("x" * 16, "wrong-type", "p"), (1.0, "wrong-type", "p"), ({1.0}, "wrong-type", "p"),
        ([1.0] * 15, "matrix-shape", "p"), (np.eye(3), "matrix-shape", "p"), (np.zeros((4, 4)), "matrix-last-row", "p"),
        ([*EYE[:15], "1"], "not-a-number", "p[15]"), ([*EYE[:15], True], "not-a-number", "p[15]"),
        ([*EYE[:15], nan], "not-a-number", "p[15]"), ([*EYE[:15], 10**400], "not-a-number", "p[15]"),
        ([*EYE[:3], inf, *EYE[4:]], "not-a-number", "p[3]"), ([[[1.0]]], "wrong-type", "p[0][0]"),
        (np.array([["a"]]), "not-a-number", "p[0][0]"), (np.array(1.0), "wrong-type", "p"),
        ([2.0, *EYE[1:]], "not-a-rotation", "p"), ({}, "pose-form", "p"), ({"matrix": EYE, "xyz": [0, 0, 0]}, "pose-form", "p"),
        ({"xyz": [0, 0, 0], "rpi": [0, 0, 0]}, "unknown-parameter", "p.rpi"), ({"xyz": [0, 0]}, "wrong-count", "p.xyz"),
        ({"xyz": [0, 0, 0], "quaternion": [0, 0, 0, 2]}, "quaternion-norm", "p.quaternion"), ({1: 2}, "unknown-parameter", "p.1"),
    ],
)  # fmt: skip
def test_what_is_no_pose_is_refused(pose: Any, reason: str, path: str) -> None:
    with pytest.raises(InvalidParams) as e:
        read_pose(pose, "p")
    assert (e.value.reason, e.value.data["path"]) == (reason, path)


junk: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=17) | st.dictionaries(st.sampled_from(["matrix", "xyz", "rpy", "quaternion", "x"]), inner),
    max_leaves=20,
)


@given(junk)
@settings(max_examples=200, deadline=None)
def test_whatever_is_given_as_a_pose_is_read_or_refused(value: Any) -> None:
    try:
        T = read_pose(value, "p")
    except FkdError:
        return
    assert len(T) == 16
    assert all(abs(x) < inf for x in T)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("position_tolerance", 0.9e-12, "out-of-range"), ("position_tolerance", -1, "out-of-range"),
        ("position_tolerance", nan, "not-a-number"), ("position_tolerance", inf, "not-a-number"),
        ("position_tolerance", 2e12, "out-of-range"), ("orientation_tolerance", 0, "out-of-range"),
        ("orientation_tolerance", "1", "not-a-number"), ("timeout_ms", 0.0, "out-of-range"),
        ("timeout_ms", 10_001, "out-of-range"), ("timeout_ms", None, "not-a-number"), ("timeout_ms", True, "not-a-number"),
        ("solutions", "first", "unknown-choice"), ("solutions", ["one"], "unknown-choice"), ("method", "analytical", "unknown-choice"),
        ("method", None, "unknown-choice"), ("solutions", np.zeros(2), "unknown-choice"), ("position_only", 1, "wrong-type"),
        ("best_effort", "no", "wrong-type"), ("degrees", None, "wrong-type"), ("position_only", np.zeros(2), "wrong-type"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused(name: str, value: Any, reason: str) -> None:
    with pytest.raises(InvalidParams) as e:
        Aim(EYE, **{name: value})
    assert (e.value.reason, e.value.data["path"]) == (reason, f"$.params.{name}")
    assert str(e.value).startswith(f"$.params.{name}: expected ")


def test_a_misspelt_choice_is_told_the_nearest() -> None:
    with pytest.raises(InvalidParams, match="did you mean `analytic`"):
        Aim(EYE, method="analytical")


@pytest.mark.parametrize("member", ["pose", "tool"])
def test_what_is_farther_than_any_robot_is_refused(member: str) -> None:
    far = [*EYE[:7], -1.1e12, *EYE[8:]]
    with pytest.raises(InvalidParams) as e:
        Aim(*((far,) if member == "pose" else (EYE, None, None, far)))
    assert (e.value.reason, e.value.data["path"]) == ("out-of-range", f"$.params.{member}")
    Aim([*EYE[:7], -1e12, *EYE[8:]])


def test_numbers_of_any_type_are_taken() -> None:
    aim = Aim(EYE, position_tolerance=np.float32(0.5), orientation_tolerance=1, timeout_ms=np.int64(20))
    assert (aim.position_tolerance, aim.orientation_tolerance, aim.timeout_ms) == (0.5, 1.0, 20.0)
    assert all(type(x) is float for x in (aim.position_tolerance, aim.orientation_tolerance, aim.timeout_ms))
