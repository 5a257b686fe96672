"""Quaternions of many rotations against those of one, which have an oracle of their own."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.kernel.pose import quaternion_from_rotation, rotation_from_quaternion, rotation_from_rpy
from fkd.kernel.quaternions import quaternions_from_matrices

QUARTERS = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, -np.pi, 1e-9, np.pi - 1e-9])
ANGLES = st.one_of(QUARTERS, st.floats(-4.0, 4.0))


def matrices(rotations: list[tuple[float, ...]]) -> np.ndarray:
    T = np.tile(np.eye(4), (len(rotations), 1, 1))
    T[:, :3, :3] = np.array(rotations).reshape(-1, 3, 3)
    return T.reshape(-1, 16)


def agree(rotations: list[tuple[float, ...]]) -> None:
    found = quaternions_from_matrices(matrices(rotations))
    expected = np.array([quaternion_from_rotation(r) for r in rotations]).reshape(-1, 4)
    assert np.all(np.abs(found - expected) <= 2 * np.spacing(np.abs(expected)))
    assert not np.signbit(found[found == 0.0]).any()


@given(st.lists(st.tuples(ANGLES, ANGLES, ANGLES), max_size=6))
@settings(max_examples=100, deadline=None)
def test_they_are_those_of_one_rotation(angles: list[tuple[float, float, float]]) -> None:
    agree([rotation_from_rpy(rpy) for rpy in angles])


def test_half_turns_about_any_axis() -> None:
    """w = 0: the sign is that of the first component that is not zero."""
    axes = [(x, y, z, 0.0) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z]
    agree([rotation_from_quaternion(axis) for axis in axes])


def test_they_turn_back_into_their_rotations() -> None:
    rng = np.random.default_rng(5)
    rotations = [rotation_from_quaternion(q) for q in rng.normal(size=(500, 4)).tolist()]
    for quaternion, r in zip(quaternions_from_matrices(matrices(rotations)).tolist(), rotations, strict=True):
        assert np.abs(np.array(rotation_from_quaternion(quaternion)) - r).max() < 1e-15
