"""Poses between the forms of the wire: what is written reads back, and what is no pose is refused with its place."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.errors import InvalidParams
from fkd.kernel.pose import frame, matrix, rotation_from_rpy
from fkd.poses import decomposed, read_matrix, read_parts, written

ANGLE = st.one_of(st.floats(-7, 7), st.integers(-4, 4).map(lambda k: k * math.pi / 2))
POSES = st.tuples(st.tuples(*[st.floats(-1e3, 1e3)] * 3), st.tuples(ANGLE, ANGLE, ANGLE)).map(
    lambda t: matrix(frame(t[0], rotation_from_rpy(t[1])))
)
EYE = [float(i == k) for i in range(4) for k in range(4)]


def near(a: Any, b: Any, tolerance: float = 1e-12) -> bool:
    return bool(np.abs(np.array(a) - np.array(b)).max() <= tolerance)


def refusal(call: Any, *arguments: Any) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        call(*arguments, "$.params.pose")
    error = caught.value
    assert error.data["path"].startswith("$.params.pose")
    assert error.data["path"] in error.message
    json.dumps(error.data, allow_nan=False)
    return error


# -- there and back ----------------------------------------------------------------------------------------------------


@given(POSES)
def test_every_form_reads_back_as_the_same_pose(T: list[float]) -> None:
    assert read_matrix(written(T, "matrix"), "$") == T
    assert read_matrix([T[:4], T[4:8], T[8:12], T[12:]], "$") == T
    pose = written(T, "pose")
    assert set(pose) == {"xyz", "quaternion", "rpy"}
    assert near(read_parts(pose["xyz"], pose["quaternion"], None, "$"), T)
    assert near(read_parts(pose["xyz"], None, pose["rpy"], "$"), T)
    ros = written(T, "ros")
    p, o = ros["position"], ros["orientation"]
    assert near(read_parts((p["x"], p["y"], p["z"]), (o["x"], o["y"], o["z"], o["w"]), None, "$"), T)


@given(POSES)
def test_all_forms_of_a_pose_are_of_one_pose(T: list[float]) -> None:
    found = decomposed(T)
    assert set(found) == {"xyz", "rpy", "rpy_alt", "gimbal_lock", "quaternion", "axis_angle", "matrix"}
    assert found["matrix"] == T
    assert found["xyz"] == (T[3], T[7], T[11])
    assert near(read_parts(found["xyz"], None, found["rpy"], "$"), T)
    assert near(read_parts(found["xyz"], None, found["rpy_alt"], "$"), T)
    assert near(read_parts(found["xyz"], found["quaternion"], None, "$"), T)
    n, angle = found["axis_angle"]["axis"], found["axis_angle"]["angle"]
    half = [math.sin(angle / 2) * c for c in n]
    assert near(read_parts(found["xyz"], (*half, math.cos(angle / 2)), None, "$"), T)
    assert found["quaternion"][3] >= 0.0
    json.dumps(found, allow_nan=False)


def test_the_order_of_a_quaternion_is_x_y_z_w() -> None:
    T = matrix(frame((0, 0, 0), rotation_from_rpy((0.4, -0.7, 1.1))))
    x, y, z, w = decomposed(T)["quaternion"]
    # by half angles: qz(1.1) qy(-0.7) qx(0.4)
    (sr, cr), (sp, cp), (sy, cy) = ((math.sin(a / 2), math.cos(a / 2)) for a in (0.4, -0.7, 1.1))
    assert (x, y, z, w) == pytest.approx(
        (
            cy * cp * sr - sy * sp * cr,
            cy * sp * cr + sy * cp * sr,
            sy * cp * cr - cy * sp * sr,
            cy * cp * cr + sy * sp * sr,
        ),
        abs=1e-15,
    )
    assert written(T, "ros")["orientation"] == {"x": x, "y": y, "z": z, "w": w}


def test_parts_default_to_no_motion() -> None:
    assert read_parts(None, None, None, "$") == EYE
    assert read_parts((1.0, 2.0, 3.0), None, None, "$") == [1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 3, 0, 0, 0, 1]
    assert read_parts(None, (0.0, 0.0, 0.0, -1.0), None, "$") == EYE


def test_gimbal_lock_is_said() -> None:
    locked = decomposed(matrix(frame((0, 0, 0), rotation_from_rpy((0.2, math.pi / 2, 0.5)))))
    assert locked["gimbal_lock"] is True
    assert locked["rpy"] == locked["rpy_alt"]
    assert locked["rpy"] == pytest.approx((0.0, math.pi / 2, 0.3), abs=1e-15)
    assert decomposed(EYE)["gimbal_lock"] is False


# -- what is no pose ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [[], EYE[:15], [*EYE, 0.0], EYE[:12], [EYE[:4]] * 3, [EYE[:3]] * 4, [EYE[:4], EYE[4:8], EYE[8:12], EYE[12:15]], [EYE],
     [*EYE[:15], [1.0]], [[1.0] * 4, [1.0] * 4, [1.0] * 4, 1.0], [[]] * 4],
)  # fmt: skip
def test_a_matrix_is_16_numbers_or_4_rows_of_4(value: Any) -> None:
    assert refusal(read_matrix, value).reason == "matrix-shape"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 3, 12, 15])
def test_a_matrix_is_finite(value: float, place: int) -> None:
    assert refusal(read_matrix, [*EYE[:place], value, *EYE[place + 1 :]]).reason == "not-a-number"


def test_a_column_major_matrix_is_told_by_its_last_row() -> None:
    T = np.array(matrix(frame((0.1, 0.2, 0.3), rotation_from_rpy((0.4, 0.5, 0.6))))).reshape(4, 4)
    error = refusal(read_matrix, T.T.ravel().tolist())
    assert error.reason == "matrix-last-row"
    assert "column-major" in error.message


@pytest.mark.parametrize("size", [1e-5, 1e-2, 1.0, 1e3, 1e200])
def test_a_matrix_that_is_no_rotation_is_refused_with_how_far_off_it_is(size: float) -> None:
    error = refusal(read_matrix, [1.0 + size, *EYE[1:]])
    assert error.reason == "not-a-rotation"
    assert error.data["got"] == (pytest.approx(2 * size + size * size) if size < 1e100 else "overflow")


def test_a_mirror_is_no_rotation() -> None:
    assert refusal(read_matrix, [-1.0, *EYE[1:]]).reason == "not-a-rotation"
    assert (
        refusal(read_matrix, [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]).reason == "not-a-rotation"
    )  # two axes swapped


def test_a_matrix_that_went_through_text_is_a_rotation() -> None:
    T = matrix(frame((0.1, 0.2, 0.3), rotation_from_rpy((0.4, 0.5, 0.6))))
    assert read_matrix([round(x, 8) for x in T], "$") == [round(x, 8) for x in T]


@pytest.mark.parametrize(
    "quaternion",
    [
        (0.0,) * 4,
        (2.0, 0.0, 0.0, 0.0),
        (0.7, 0.0, 0.0, 0.7),
        (0.0, 0.0, 0.0, 1.1),
        (1e200, 0.0, 0.0, 0.0),
        (math.nan, 0.0, 0.0, 1.0),
        (0.0, 0.0, math.inf, 0.0),
    ],
)
def test_a_quaternion_is_unit(quaternion: tuple[float, ...]) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_parts(None, quaternion, None, "$.params.pose")
    assert (caught.value.reason, caught.value.data["path"]) == ("quaternion-norm", "$.params.pose.quaternion")


def test_a_rounded_quaternion_is_normalised() -> None:
    T = read_parts(None, (0.7071, 0.0, 0.0, 0.7071), None, "$")
    assert near(T, matrix(frame((0, 0, 0), rotation_from_rpy((math.pi / 2, 0, 0)))), 1e-15)


@pytest.mark.parametrize(
    ("xyz", "quaternion", "rpy", "reason", "end"),
    [
        ((1.0, 2.0), None, None, "wrong-count", ".xyz"),
        ((1.0,) * 4, None, None, "wrong-count", ".xyz"),
        ((), None, None, "wrong-count", ".xyz"),
        (None, (0.0, 0.0, 1.0), None, "wrong-count", ".quaternion"),
        (None, (), None, "wrong-count", ".quaternion"),
        (None, None, (0.0, 0.0), "wrong-count", ".rpy"),
        (None, None, (), "wrong-count", ".rpy"),
        (None, (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1e-3), "pose-form", ""),
    ],
)
def test_parts_have_their_counts(xyz: Any, quaternion: Any, rpy: Any, reason: str, end: str) -> None:
    error = refusal(read_parts, xyz, quaternion, rpy)
    assert (error.reason, error.data["path"]) == (reason, f"$.params.pose{end}")
