"""Closed forms: whatever the geometry, the configuration that a pose was made from is among the solutions, and every
solution makes the pose.

Arms are made from their axes at q = 0, with joint frames turned and shifted at random, so that nothing but the axes can
be recognised. Poses are computed by the kinematics run over floats, which other tests measure against an oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, pi, tau
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.kernel.ik import Ik
from fkd.kernel.ik_answer import Answer, Goal
from fkd.kernel.motion import Edge, Tree, compose, forward
from fkd.kernel.pose import matrix, rotation_from_quaternion

Line = tuple[np.ndarray, np.ndarray]  # direction and a point
X, Y, Z = np.eye(3)
TIP = 7
EVERYWHERE = ([-inf] * 6, [inf] * 6)


def at(x: float, y: float, z: float) -> np.ndarray:
    return np.array([x, y, z])


# Dimensions in m. The UR kind: axes 2, 3, 4 in parallel; the wrists: axes 4, 5, 6 through one point.
UR = [(Z, at(0, 0, 0)), (Y, at(0, 0.14, 0.09)), (Y, at(-0.425, 0, 0.09)), (Y, at(-0.817, 0, 0.09)),
      (-Z, at(-0.817, 0.11, 0)), (Y, at(-0.817, 0, -0.005))]  # fmt: skip
SHOULDER_OFFSET = [(Z, at(0, 0, 0)), (Y, at(0.15, 0, 0.45)), (Y, at(0.15, 0, 1.04)), (X, at(0, 0, 1.17)),
                   (Y, at(0.79, 0, 1.17)), (X, at(0, 0, 1.17))]  # fmt: skip
PUMA = [(Z, at(0, 0, 0)), (-Y, at(0, 0, 0)), (-Y, at(0.43, -0.15, 0)), (Z, at(0.45, -0.15, 0)), (-Y, at(0.45, 0, 0.43)),
        (Z, at(0.45, -0.15, 0))]  # fmt: skip
KINDS = {"UR": UR, "shoulder offset": SHOULDER_OFFSET, "PUMA": PUMA}


def some_unit(rnd: Random) -> np.ndarray:
    v = np.array([rnd.gauss(0, 1) for _ in range(3)])
    return v / np.linalg.norm(v)


def some_point(rnd: Random) -> np.ndarray:
    return np.array([rnd.uniform(-0.5, 0.5) for _ in range(3)])


def some_wrist(rnd: Random) -> list[Line]:
    """Axes 1 to 3 anyhow, 4 to 6 through one point, neither at right angles."""
    point = some_point(rnd) + 0.5
    return [(some_unit(rnd), some_point(rnd)) for _ in range(3)] + [(some_unit(rnd), point) for _ in range(3)]


def some_parallel(rnd: Random) -> list[Line]:
    """Axes 2 to 4 parallel, each up or down, the others anyhow."""
    k = some_unit(rnd)
    inner = [(k * rnd.choice((1, -1)), some_point(rnd)) for _ in range(3)]
    return [(some_unit(rnd), some_point(rnd)), *inner, *((some_unit(rnd), some_point(rnd)) for _ in range(2))]


def arm(lines: Sequence[Line], rnd: Random, noise: float = 0.0) -> Tree:
    """Six revolute joints about these lines, in frames as they come, and a tip; lines off by `noise` (rad and m)."""
    edges: list[Edge | None] = [None]
    T = np.eye(4)
    for i, (along, point) in enumerate([*lines, (Z, some_point(rnd))]):
        along, point = along + noise * some_unit(rnd), point + noise * some_unit(rnd)
        here = np.eye(4)
        here[:3, :3] = np.array(rotation_from_quaternion([rnd.gauss(0, 1) for _ in range(4)])).reshape(3, 3)
        here[:3, 3] = point + rnd.uniform(-0.3, 0.3) * along
        axis = here[:3, :3].T @ (along / np.linalg.norm(along))
        kind, index = ("revolute", i) if i < 6 else ("fixed", -1)
        step = (np.linalg.inv(T) @ here)[:3].ravel()
        edges.append(Edge(kind, i, tuple(step.tolist()), tuple(axis.tolist()), index, 1.0, 0.0))
        T = here
    return Tree(tuple(edges), 6)


def solver(tree: Tree, lower: Sequence[float] = EVERYWHERE[0], upper: Sequence[float] = EVERYWHERE[1]) -> Ik:
    return Ik(tree, TIP, 0, lower, upper, [0.0] * 6)


def pose(tree: Tree, q: Sequence[float]) -> list[float]:
    return matrix(forward(tree, q, [TIP], 0)[0])


def some_q(rnd: Random) -> list[float]:
    return [rnd.uniform(-3.1, 3.1) for _ in range(6)]


def apart(a: Sequence[float], b: Sequence[float]) -> float:
    return max(abs(x - y - tau * round((x - y) / tau)) for x, y in zip(a, b, strict=True))


def check(tree: Tree, q: Sequence[float], answer: Answer) -> None:
    """All true, all different, and q among them."""
    assert answer.method == "analytic"
    assert answer.reason == ""
    assert min(apart(s.q, q) for s in answer.solutions) < 1e-5
    T = pose(tree, q)
    for i, s in enumerate(answer.solutions):
        assert max(abs(a - b) for a, b in zip(pose(tree, s.q), T, strict=True)) < 2e-9
        assert s.converged
        assert all(apart(s.q, other.q) > 1e-6 for other in answer.solutions[:i])
    assert len(answer.solutions) <= 8


@pytest.mark.parametrize("backwards", [False, True], ids=["from base", "from tip"])
@pytest.mark.parametrize("make", [some_wrist, some_parallel])
@given(seed=st.integers(0, 10**9))
@settings(max_examples=6, deadline=None, derandomize=True)
def test_the_configuration_is_among_the_solutions(make, backwards: bool, seed: int) -> None:
    rnd = Random(seed)
    lines = make(rnd)
    tree = arm(lines[::-1] if backwards else lines, rnd)
    ik = solver(tree)
    assert ik.analytic is not None
    assert ik.analytic.exact
    for _ in range(8):
        q = some_q(rnd)
        check(tree, q, ik.solve(Goal(pose(tree, q), solutions="all"), "analytic"))


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-7])
@pytest.mark.parametrize("lines", KINDS.values(), ids=KINDS.keys())
def test_arms_as_they_are_built_and_as_files_round_them(lines: list[Line], noise: float) -> None:
    rnd = Random(f"{noise}")
    tree = arm(lines, rnd, noise)
    ik = solver(tree)
    assert ik.analytic is not None
    assert ik.analytic.exact
    assert ik.analytic.kind == ("three parallel axes" if lines is UR else "spherical wrist")
    counts = []
    for _ in range(30):
        q = some_q(rnd)
        answer = ik.solve(Goal(pose(tree, q), solutions="all"), "analytic")
        check(tree, q, answer)
        counts.append(len(answer.solutions))
    assert max(counts) == 8


@pytest.mark.parametrize("lines", KINDS.values(), ids=KINDS.keys())
def test_a_calibrated_arm_is_nearly_of_its_kind(lines: list[Line]) -> None:
    rnd = Random(2)
    tree = arm(lines, rnd, 5e-4)
    ik = solver(tree)
    assert ik.analytic is not None
    assert not ik.analytic.exact
    hits = 0
    for _ in range(30):
        q = some_q(rnd)
        answer = ik.solve(Goal(pose(tree, q), solutions="all"))
        for s in answer.solutions:
            assert max(abs(a - b) for a, b in zip(pose(tree, s.q), pose(tree, q), strict=True)) < 2e-6
        hits += min(apart(s.q, q) for s in answer.solutions) < 1e-4
    assert hits >= 28  # one may be lost near a singular pose


def test_what_is_no_such_arm_is_left_to_the_search() -> None:
    rnd = Random(3)
    tree = arm([(some_unit(rnd), some_point(rnd)) for _ in range(6)], rnd)
    ik = solver(tree)
    assert ik.analytic is None
    answer = ik.solve(Goal(pose(tree, some_q(rnd))))
    assert answer.method == "numeric"
    assert answer.solutions
    seven = Tree((*tree.edges, Edge("revolute", TIP, (*X, 0.0, *Y, 0.0, *Z, 0.1), (0.0, 0.0, 1.0), 6, 1.0, 0.0)), 7)
    assert Ik(seven, 8, 0, [-inf] * 7, [inf] * 7, [0.0] * 7).analytic is None
    slide = list(arm(PUMA, rnd).edges)
    slide[3] = Edge("prismatic", 2, slide[3].T_parent_joint, (0.0, 0.0, 1.0), 2, 1.0, 0.0)  # type: ignore[union-attr]
    assert solver(Tree(tuple(slide), 6)).analytic is None


@pytest.mark.parametrize("q5", [0.0, 1e-12, pi])
@pytest.mark.parametrize("name", ["shoulder offset", "PUMA", "UR"])
def test_of_a_singular_family_one_with_the_free_angle_at_the_seed(name: str, q5: float) -> None:
    tree = arm(KINDS[name], Random(4))
    ik = solver(tree)
    q = [0.3, -0.9, 0.8, 0.4, q5, -0.7]
    free = 5 if name == "UR" else 3  # an axis parallel to axes 2 to 4, or axes 4 and 6 in one
    seed = list(q)
    seed[free] -= 0.2
    answer = ik.solve(Goal(pose(tree, q), seed=seed, solutions="all"), "analytic")
    assert answer.method == "analytic"
    for s in answer.solutions:
        assert max(abs(a - b) for a, b in zip(pose(tree, s.q), pose(tree, q), strict=True)) < 2e-9
    of_family = [s for s in answer.solutions if s.singular]
    assert of_family
    assert all(s.q[free] == pytest.approx(seed[free], abs=1e-6) for s in of_family)


def test_a_free_angle_for_which_the_seed_is_no_good() -> None:
    # the arm is stretched nearly to the full: with q6 at the seed the wrist would have to be further out still
    tree = arm(UR, Random(4))
    q = [0.3, -0.9, 0.05, 0.4, 0.0, -0.7]
    for away in (0.5, 1.5, 3.0):
        answer = solver(tree).solve(Goal(pose(tree, q), seed=[*q[:5], q[5] + away], solutions="all"), "analytic")
        assert answer.method == "analytic"
        family = [s for s in answer.solutions if s.singular]
        assert family
        for s in family:
            assert max(abs(a - b) for a, b in zip(pose(tree, s.q), pose(tree, q), strict=True)) < 2e-9


@pytest.mark.parametrize("step", [1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("j", [2, 4])
@pytest.mark.parametrize("name", KINDS)
def test_next_to_a_singular_pose(name: str, j: int, step: float) -> None:
    tree = arm(KINDS[name], Random(5))
    q = [0.3, -0.9, 0.8, 0.4, 0.6, -0.7]
    q[j] = step
    answer = solver(tree).solve(Goal(pose(tree, q), solutions="all"), "analytic")
    assert answer.solutions
    for s in answer.solutions:
        assert max(abs(a - b) for a, b in zip(pose(tree, s.q), pose(tree, q), strict=True)) < 2e-9
    # an angle about nearly one axis is had the worse the nearer: rounding of the pose over the step
    assert min(apart(s.q, q) for s in answer.solutions) < max(1e-5, 1e-12 / step)


def test_only_what_is_inside_the_limits_and_each_where_it_is_nearest_to_the_seed() -> None:
    tree = arm(SHOULDER_OFFSET, Random(6))
    lower, upper = [-3.0, -1.7, -1.0, -tau, -2.0, -3 * tau], [3.0, 1.9, 1.2, tau, 2.0, 3 * tau]
    ik, everywhere = solver(tree, lower, upper), solver(tree)
    rnd = Random(7)
    for _ in range(20):
        q = [rnd.uniform(a, b) for a, b in zip(lower, upper, strict=True)]
        seed = [rnd.uniform(a, b) for a, b in zip(lower, upper, strict=True)]
        answer = ik.solve(Goal(pose(tree, q), seed=seed, solutions="all"), "analytic")
        check(tree, q, answer)
        assert len(answer.solutions) <= len(everywhere.solve(Goal(pose(tree, q), solutions="all")).solutions)
        ways = []
        for s in answer.solutions:
            for v, a, b, near in zip(s.q, lower, upper, seed, strict=True):
                assert a <= v <= b
                turns = [v + k * tau for k in range(-7, 8) if a <= v + k * tau <= b]
                assert abs(v - near) <= min(abs(t - near) for t in turns) + 1e-9
            ways.append(sum((v - near) ** 2 for v, near in zip(s.q, seed, strict=True)))
        assert ways == sorted(ways)


def test_solutions_that_the_limits_forbid_are_the_reason() -> None:
    tree = arm(PUMA, Random(8))
    q = [0.3, -0.9, 0.8, 0.4, 0.6, -0.7]
    free = solver(tree).solve(Goal(pose(tree, q), solutions="all"))
    least = max(s.q[0] for s in free.solutions) + 0.1
    ik = solver(tree, [least, *[-3.0] * 5], [least + 0.2, *[3.0] * 5])
    for method in ("auto", "analytic", "numeric"):
        answer = ik.solve(Goal(pose(tree, q)), method)
        assert answer.reason == "limits"
        assert answer.nearest is not None
        assert least <= answer.nearest.q[0] <= least + 0.2


def test_out_of_reach() -> None:
    tree = arm(UR, Random(9))
    T = pose(tree, [0.0] * 6)
    T[3] += 9.0
    answer = solver(tree).solve(Goal(T), "analytic")
    assert (answer.solutions, answer.reason) == ([], "unreachable")
    assert answer.nearest is not None
    assert answer.nearest.position_error > 7.0


def test_the_same_arm_seen_from_its_tip() -> None:
    tree = arm(UR, Random(10))
    ik = Ik(tree, 0, TIP, *EVERYWHERE, [0.0] * 6)
    assert ik.analytic is not None
    assert ik.analytic.backwards
    q = [0.3, -0.9, 0.8, 0.4, 0.6, -0.7]
    answer = ik.solve(Goal(matrix(forward(tree, q, [0], TIP)[0]), solutions="all"), "analytic")
    check(tree, q, answer)


def test_the_order_of_q_need_not_be_that_of_the_joints() -> None:
    tree = arm(PUMA, Random(11))
    order = [3, 0, 5, 1, 4, 2]
    moved = [e and Edge(e.kind, e.parent, e.T_parent_joint, e.axis, order[e.index], 1.0, 0.0) for e in tree.edges[1:7]]
    tree = Tree((None, *moved, tree.edges[7]), 6)
    q = [0.3, -0.9, 0.8, 0.4, 0.6, -0.7]
    check(tree, q, solver(tree).solve(Goal(pose(tree, q), solutions="all"), "analytic"))


def test_a_tool() -> None:
    tree = arm(UR, Random(12))
    q = [0.3, -0.9, 0.8, 0.4, 0.6, -0.7]
    tool = (0.0, -1.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.2, 0.0, 0.0, 1.0, 0.3)
    goal = matrix(compose(forward(tree, q, [TIP], 0)[0], tool))
    check(tree, q, solver(tree).solve(Goal(goal, tool, solutions="all"), "analytic"))


def test_one_is_the_nearest_to_the_seed_and_finer_tolerances_are_heeded() -> None:
    tree = arm(UR, Random(13))
    ik = solver(tree)
    q = [0.3, -0.9, 0.8, 0.4, 0.6, -0.7]
    every = ik.solve(Goal(pose(tree, q), seed=[0.1] * 6, solutions="all")).solutions
    for solutions in ("one", "nearest"):
        assert ik.solve(Goal(pose(tree, q), seed=[0.1] * 6, solutions=solutions)).solutions == every[:1]
    fine = ik.solve(Goal(pose(tree, q), position_tolerance=1e-12, orientation_tolerance=1e-12, solutions="all"))
    assert all(s.position_error <= 1e-12 for s in fine.solutions)


def test_a_rotation_of_seven_digits_will_do() -> None:
    for lines in KINDS.values():
        tree = arm(lines, Random(15))
        q = [0.3, -0.9, 0.8, 0.4, 0.6, -0.7]
        rounded = [round(v, 7) for v in pose(tree, q)]
        answer = solver(tree).solve(Goal(rounded, solutions="all"), "analytic")
        assert answer.method == "analytic"
        assert min(apart(s.q, q) for s in answer.solutions) < 1e-5


def test_position_alone_is_not_for_the_closed_form() -> None:
    tree = arm(UR, Random(14))
    answer = solver(tree).solve(Goal(pose(tree, [0.5] * 6), position_only=True))
    assert answer.method == "numeric"
    assert answer.solutions
