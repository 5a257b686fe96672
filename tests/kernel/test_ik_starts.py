"""Starts: samples inside the limits, evenly spread, always the same, and the nearest first."""

from __future__ import annotations

from itertools import islice
from math import inf, pi

import numpy as np
import pytest

from fkd.kernel.ik_chain import Chain
from fkd.kernel.ik_starts import PER_COLUMN, Starts
from fkd.kernel.motion import IDENTITY, Edge, Tree, forward

OUT = (*IDENTITY[:3], 0.5, *IDENTITY[4:])
SEED = [0.3, 0.1]


def turn(parent: int, index: int, axis: tuple[float, float, float]) -> Edge:
    return Edge("revolute", parent, OUT, axis, index, 1.0, 0.0)  # type: ignore[arg-type]


TIP = Edge("fixed", 2, OUT, (1.0, 0.0, 0.0), -1, 1.0, 0.0)  # type: ignore[arg-type]
TREE = Tree((None, turn(0, 0, (0.0, 0.0, 1.0)), turn(1, 1, (0.0, 1.0, 0.0)), TIP), 2)


@pytest.fixture(scope="module")
def starts() -> Starts:
    starts = Starts(Chain(TREE, 3, 0, [-1.0, -inf], [2.0, inf]))
    assert sum(1 for _ in starts.prepare()) > 10  # it rests
    return starts


def pose(x: list[float]) -> np.ndarray:
    return np.array(forward(TREE, x, [3], 0)[0], dtype=float).reshape(3, 4)


def target(starts: Starts, x: list[float], position_only: bool = False):
    return starts.chain.target(pose(x).ravel().tolist(), None, position_only)


def test_samples_are_inside_the_limits_and_spread(starts: Starts) -> None:
    x = np.array(list(starts.nearest(target(starts, [0.5, 0.5]), SEED, 0.0)))
    assert x.shape == (PER_COLUMN**2, 2)
    assert len({tuple(v) for v in x.tolist()}) == len(x)
    for values, low, high in ((x[:, 0], -1.0, 2.0), (x[:, 1], -pi, pi)):
        assert low <= values.min()
        assert values.max() <= high
        counts, _ = np.histogram(values, 16, (low, high))
        assert counts.min() >= 0.9 * len(x) / 16


@pytest.mark.parametrize("pull", [0.0, 0.3])
@pytest.mark.parametrize("position_only", [False, True])
def test_the_nearest_come_first(starts: Starts, position_only: bool, pull: float) -> None:
    goal = pose([0.9, -2.0])
    order = list(starts.nearest(target(starts, [0.9, -2.0], position_only), SEED, pull))

    def far(x: list[float]) -> float:
        T = pose(x)
        p = ((T[:, 3] - goal[:, 3]) / starts.chain.length) @ ((T[:, 3] - goal[:, 3]) / starts.chain.length)
        turned = 0.0 if position_only else ((T[:, :3] - goal[:, :3]) ** 2).sum() / 2
        return float(p + turned + pull * ((np.array(x) - SEED) ** 2).sum())

    distances = np.array([far(x) for x in order])
    assert (np.diff(distances) > -1e-4).all()  # they are compared in single precision


def test_they_are_the_same_in_another_process_and_made_twice(starts: Starts) -> None:
    other = Starts(Chain(TREE, 3, 0, [-1.0, -inf], [2.0, inf]))
    first, second = other.prepare(), other.prepare()
    for _ in first:
        next(second, None)  # two clients at once
    list(second)
    list(other.prepare())
    goal = target(starts, [0.9, -2.0])
    assert list(islice(other.nearest(goal, SEED, 0.1), 50)) == list(islice(starts.nearest(goal, SEED, 0.1), 50))
