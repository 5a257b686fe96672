"""The damped step against numpy's least squares, and what is measured against matrices."""

from __future__ import annotations

from math import cos, inf, radians, sin, tau
from random import Random

import numpy as np
import pytest

from fkd.kernel.ik_chain import Chain, Target
from fkd.kernel.ik_step import LARGE, damped_step, turn_left
from fkd.kernel.motion import Edge, Tree, compose, forward
from fkd.kernel.pose import quaternion_from_rotation, rotation_from_quaternion, rotation_from_rpy, rotation_of


def some_frame(rnd: Random) -> tuple[float, ...]:
    R = rotation_from_quaternion([rnd.gauss(0, 1) for _ in range(4)])
    return (*R[0:3], rnd.uniform(-1, 1), *R[3:6], rnd.uniform(-1, 1), *R[6:9], rnd.uniform(-1, 1))


def some_chain(kinds: str, rnd: Random) -> Chain:
    names = {"r": "revolute", "p": "prismatic", "l": "planar", "f": "fixed"}
    edges: list[Edge | None] = [None]
    width = 0
    for k in kinds:
        edges.append(Edge(names[k], len(edges) - 1, some_frame(rnd), (0.6, 0.0, 0.8), width, 1.0, 0.0))
        width += {"l": 3, "f": 0}.get(k, 1)
    return Chain(Tree(tuple(edges), width), len(kinds), 0, [-inf] * width, [inf] * width)


@pytest.mark.parametrize("n", [1, 3, 6, 7, 12])
@pytest.mark.parametrize("m", [3, 6])
def test_the_step_is_that_of_damped_least_squares(n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    J, e, damping = rng.normal(size=(m, n)), rng.normal(size=m), 0.01
    W = np.diag(rng.uniform(0.5, 2.0, n) * (rng.uniform(size=n) > 0.3))
    got = np.array(damped_step(J.tolist(), e.tolist(), damping, np.diag(W).tolist()))
    # the minimum of |J S z - e|^2 + damping |z|^2 with S^2 = W, moved back by S
    S = np.sqrt(W)
    rows = np.vstack([J @ S, np.sqrt(damping) * np.eye(n)])
    z = np.linalg.lstsq(rows, np.concatenate([e, np.zeros(n)]), rcond=None)[0]
    assert W @ got == pytest.approx(S @ z, abs=1e-9)
    # and of the others, the sign that says where they would lower what is left
    left = e - J @ W @ got
    assert damping * got == pytest.approx(J.T @ left, abs=1e-9)


def look(chain: Chain, x: list[float], target: Target, damping: float = 0.0) -> list[float]:
    return chain.step(target.position_only)([*x, *target.values, damping, *chain.free])


@pytest.mark.parametrize("kinds", ["rrrrrrf", "prrrrrr", "lrr"])
def test_what_is_measured(kinds: str) -> None:
    rnd = Random(kinds)
    chain = some_chain(kinds, rnd)
    tool, goal = some_frame(rnd), some_frame(rnd)
    q = [rnd.uniform(-2, 2) for _ in range(chain.tree.width)]
    T = compose(forward(chain.tree, q, [chain.link], 0)[0], tool)
    at = look(chain, chain.chosen(q), chain.target(goal, tool, False))
    position, angle = chain.errors(at)
    assert position * chain.length == pytest.approx(np.linalg.norm([goal[i] - T[i] for i in (3, 7, 11)]))
    R = np.reshape(rotation_of(goal), (3, 3)) @ np.reshape(rotation_of(T), (3, 3)).T
    x, y, z, w = quaternion_from_rotation(tuple(R.ravel()))
    assert angle == pytest.approx(2 * np.arctan2(np.linalg.norm([x, y, z]), w))
    assert at[0] == pytest.approx(position**2 + 4 * np.sin(angle / 2) ** 2)
    only = look(chain, chain.chosen(q), chain.target(goal, tool, True))
    assert chain.errors(only) == (pytest.approx(position), 0.0)


@pytest.mark.parametrize("kinds", ["rrrrrrf", "prrrrrr", "lrr"])
def test_a_step_without_damping_goes_to_the_target_to_second_order(kinds: str) -> None:
    rnd = Random(kinds)
    chain = some_chain(kinds, rnd)
    q = [rnd.uniform(-2, 2) for _ in range(chain.tree.width)]
    for size in (1e-2, 1e-3):
        there = [v + size * rnd.uniform(-1, 1) for v in q]
        target = chain.target(forward(chain.tree, there, [chain.link], 0)[0], None, len(q) < 6)
        x = chain.chosen(q)
        before = look(chain, x, target)
        moved = [a + b * w for a, b, w in zip(x, before[4:], chain.weights, strict=True)]
        assert look(chain, moved, target)[0] ** 0.5 < 50 * before[0] / chain.length


@pytest.mark.parametrize("degrees", [1e-8, 1e-3, 30, 90, 120, 179.9, 180])
def test_the_error_grows_with_the_angle_and_is_never_lost(degrees: float) -> None:
    turn = radians(degrees)
    R = rotation_from_rpy((0.0, 0.0, turn))
    sines, cosine = turn_left(R[:9], rotation_from_rpy((0.0, 0.0, 0.0)))
    assert sines == pytest.approx([0.0, 0.0, -sin(turn)], abs=1e-15)
    assert cosine == pytest.approx(cos(turn))
    edge = Edge("revolute", 0, tuple(float(v) for v in np.eye(4)[:3].ravel()), (0.0, 0.0, 1.0), 0, 1.0, 0.0)
    chain = Chain(Tree((None, edge), 1), 1, 0, [-tau], [tau])
    at = look(chain, [0.0], chain.target((*R[0:3], 0.0, *R[3:6], 0.0, *R[6:9], 0.0), None, False), 0.1)
    assert chain.errors(at) == (0.0, pytest.approx(turn))
    assert at[0] == pytest.approx(4 * sin(turn / 2) ** 2)
    assert at[4] == pytest.approx(sin(turn) / (1.0 + 0.1 * at[0] / (1.0 + at[0] / LARGE)), abs=1e-9)
