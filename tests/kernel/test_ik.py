"""Laws of inverse kinematics on small robots made by hand: answers are true, inside the limits, and the same again.

Poses are computed by the kinematics run over floats, which other tests measure against an oracle; expected angles by
the law of cosines.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import acos, cos, dist, hypot, inf, isfinite, pi, sin, tau
from random import Random

import pytest

from fkd.kernel.ik import Ik
from fkd.kernel.ik_answer import Answer, Goal, Solution
from fkd.kernel.motion import Edge, Tree, compose, forward
from fkd.kernel.pose import matrix, rotation_from_quaternion, rotation_from_rpy

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
EYE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


def frame(x: float = 0.0, y: float = 0.0, z: float = 0.0, R: Sequence[float] = EYE) -> tuple[float, ...]:
    return (*R[0:3], x, *R[3:6], y, *R[6:9], z)


def joint(
    kind: str, parent: int, T: tuple[float, ...], axis: tuple[float, float, float] = Z, index: int = -1,
    ratio: float = 1.0, bias: float = 0.0,
) -> Edge:  # fmt: skip
    return Edge(kind, parent, T, axis, index, ratio, bias)


def planar(*lengths: float) -> Tree:
    """An arm in the plane z = 0.1: as many joints about z as links."""
    shifts = (0.0, *lengths)
    edges = [joint("revolute", i, frame(shifts[i], 0.0, 0.1 if i == 0 else 0.0), Z, i) for i in range(len(lengths))]
    return Tree((None, *edges, joint("fixed", len(lengths), frame(lengths[-1]))), len(lengths))


def solver(tree: Tree, lower: Sequence[float], upper: Sequence[float], link: int | None = None, base: int = 0) -> Ik:
    rest = [0.5 * (a + b) if isfinite(a) and isfinite(b) else 0.0 for a, b in zip(lower, upper, strict=True)]
    return Ik(tree, len(tree.edges) - 1 if link is None else link, base, lower, upper, rest)


def at(x: float, y: float, z: float = 0.1, R: Sequence[float] = EYE) -> list[float]:
    return matrix(frame(x, y, z, R))


def the(answer: Answer) -> Solution:
    assert answer.reason == ""
    assert answer.nearest is None
    return answer.solutions[0]


TWO = planar(0.5, 0.3)  # reach 0.8
ELBOW = acos((0.6**2 - 0.5**2 - 0.3**2) / (2 * 0.5 * 0.3))  # of TWO for a tip at distance 0.6


@pytest.fixture(scope="module")
def two() -> Ik:
    return solver(TWO, [-3.0, -3.0], [3.0, 3.0])


# -- any chain ---------------------------------------------------------------------------------------------------------

CHAINS = {
    "1R": "r", "2R": "rr", "1P": "p", "3P": "ppp", "PRRR": "prrr", "planar": "l", "planar base": "lrrr", "5R": "rrrrr",
    "6R": "rrrrrr", "6C": "cccccc", "RPRRCR": "rprrcr", "gantry": "pppccc", "7R": "rrrrrrr", "12R": "rrrrrrrrrrrr",
}  # fmt: skip
KINDS = {"r": "revolute", "p": "prismatic", "l": "planar", "c": "continuous"}


def some_chain(letters: str, rnd: Random) -> tuple[Tree, list[float], list[float]]:
    """Joints in any direction, 0.1 to 0.4 m apart; limits; the tip on a fixed link."""
    edges: list[Edge | None] = [None]
    lower: list[float] = []
    upper: list[float] = []
    for letter in [*letters, ""]:
        R = rotation_from_quaternion([rnd.gauss(0, 1) for _ in range(4)])
        T = frame(*(rnd.uniform(0.1, 0.4) for _ in range(3)), R)
        axis = [rnd.gauss(0, 1) for _ in range(3)]
        a, b, c = (v / hypot(*axis) for v in axis)
        edges.append(joint(KINDS.get(letter, "fixed"), len(edges) - 1, T, (a, b, c), len(lower) if letter else -1))
        low = rnd.uniform(-3.0, -0.5)
        high = low + rnd.uniform(1.5, 6.0)
        ends = {"r": [(low, high)], "p": [(-0.2, 0.4)], "c": [(-inf, inf)], "l": [(-inf, inf)] * 3}
        for a, b in ends.get(letter, []):
            lower.append(a)
            upper.append(b)
    return Tree(tuple(edges), len(lower)), lower, upper


def some_q(rnd: Random, lower: Sequence[float], upper: Sequence[float]) -> list[float]:
    return [rnd.uniform(max(a, -2.5), min(b, 2.5)) for a, b in zip(lower, upper, strict=True)]


@pytest.mark.parametrize("letters", CHAINS.values(), ids=CHAINS.keys())
@pytest.mark.parametrize("position_only", [False, True], ids=["pose", "position"])
def test_what_is_reachable_is_reached_within_limits(letters: str, position_only: bool) -> None:
    rnd = Random(letters)
    tree, lower, upper = some_chain(letters, rnd)
    ik, tip = solver(tree, lower, upper), len(tree.edges) - 1
    tool = frame(0.05, -0.1, 0.2, rotation_from_rpy((0.3, -0.5, 0.7)))
    for k in range(6):
        goal = compose(forward(tree, some_q(rnd, lower, upper), [tip], 0)[0], tool)
        seed = None if k % 2 else some_q(rnd, lower, upper)
        answer = ik.solve(Goal(matrix(goal), tool, seed, position_only=position_only), "numeric")
        found = the(answer)
        got = compose(forward(tree, found.q, [tip], 0)[0], tool)
        off = dist([got[i] for i in (3, 7, 11)], [goal[i] for i in (3, 7, 11)])
        assert off <= 1e-6
        assert found.position_error == pytest.approx(off, abs=1e-12)
        assert found.converged
        if position_only:
            assert found.orientation_error is None
        else:
            assert found.orientation_error is not None
            assert found.orientation_error <= 1e-6
            assert max(abs(a - b) for a, b in zip(got, goal, strict=True)) <= 2e-6
        assert all(a <= v <= b for a, v, b in zip(lower, found.q, upper, strict=True))


@pytest.mark.parametrize("seed", [None, [0.3, -0.4, 0.5, -0.6, 0.7, -0.8]])
@pytest.mark.parametrize("solutions", ["one", "nearest", "all"])
@pytest.mark.parametrize("method", ["auto", "numeric"])
def test_the_same_question_has_the_same_answer(method: str, solutions: str, seed: list[float] | None) -> None:
    tree, lower, upper = some_chain("rrrrrr", Random(3))
    goal = Goal(matrix(forward(tree, some_q(Random(4), lower, upper), [7], 0)[0]), seed=seed, solutions=solutions)
    first, *others = [solver(tree, lower, upper).solve(goal, method) for _ in range(2)]
    ik = solver(tree, lower, upper)
    others += [ik.solve(goal, method) for _ in range(5)]
    assert first.solutions
    assert all(a == first for a in others)


# -- what there is no solution to --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, [0.1, 0.2], [2.0, -2.0]])
def test_out_of_reach_is_a_failure_with_the_nearest_pose(two: Ik, seed: list[float] | None) -> None:
    answer = two.solve(Goal(at(1.0, 0.0), seed=seed, position_only=True))
    assert answer.solutions == []
    assert answer.reason == "unreachable"
    assert answer.nearest is not None
    assert not answer.nearest.converged
    assert answer.nearest.position_error == pytest.approx(0.2, abs=1e-9)  # 0.5 + 0.3 stretched towards 1.0
    assert answer.nearest.q == pytest.approx([0.0, 0.0], abs=1e-4)


def test_a_tilt_that_a_planar_arm_cannot_do_is_a_failure(two: Ik) -> None:
    answer = two.solve(Goal(at(0.6, 0.0, R=rotation_from_rpy((0.3, 0.0, 0.0)))))
    assert answer.reason == "unreachable"
    assert answer.nearest is not None
    assert answer.nearest.orientation_error is not None
    assert answer.nearest.orientation_error >= 0.3 - 1e-9


def test_the_nearest_pose_cannot_be_bettered_nearby() -> None:
    tree, lower, upper = some_chain("rrrrrr", Random(8))
    ik = solver(tree, lower, upper)
    far = matrix(frame(3.0, -2.0, 1.0, rotation_from_rpy((0.3, 1.0, -2.0))))
    answer = ik.solve(Goal(far), "numeric")
    assert answer.reason == "unreachable"
    assert answer.nearest is not None
    chain, target = ik.chain, ik.chain.target(far, None, False)

    def error(q: list[float]) -> float:
        return chain.step(False)([*chain.chosen(q), *target.values, 0.0, *chain.free])[0]

    best = error(answer.nearest.q)
    rnd = Random(1)
    for _ in range(500):
        q = [min(max(v + rnd.gauss(0, 0.05), a), b) for v, a, b in zip(answer.nearest.q, lower, upper, strict=True)]
        assert error(q) >= best - 1e-9


@pytest.mark.parametrize("method", ["auto", "numeric"])
def test_what_only_the_limits_forbid_says_so(method: str) -> None:
    ik = solver(planar(0.4), [0.39], [6.28])
    answer = ik.solve(Goal(at(0.4 * cos(0.1), 0.4 * sin(0.1)), seed=[0.5], position_only=True), method)
    assert answer.reason == "limits"
    assert answer.nearest is not None
    assert answer.nearest.q == [6.28]  # 0.1032 away, 0.39 is 0.29 away
    slide = Tree((None, joint("prismatic", 0, frame(), X, 0)), 1)
    answer = solver(slide, [0.0], [0.5]).solve(Goal(at(0.75, 0.0, 0.0)), method)
    assert answer.reason == "limits"
    assert answer.nearest is not None
    assert answer.nearest.q == [0.5]
    assert answer.nearest.position_error == pytest.approx(0.25)


def test_slowing_down_for_ever_at_a_singular_pose_says_so() -> None:
    # x = 4 cos q - cos 2q = 3 - q^4 / 2 + ..., y = 0: links at the angles q, -q, pi + 2q, pi - 2q
    turns = [(1.0, 0.0, 0.0), (-2.0, 0.0, 2.0), (3.0, pi, 2.0), (-4.0, 0.0, 0.5)]
    edges = [joint("revolute", i, frame(x), Z, 0, ratio, bias) for i, (ratio, bias, x) in enumerate(turns)]
    ik = solver(Tree((None, *edges, joint("fixed", 4, frame(0.5))), 1), [-3.0], [3.0])
    answer = ik.solve(Goal(at(3.0, 0.0, 0.0), seed=[0.5], position_tolerance=1e-14, position_only=True))
    assert answer.reason == "singular"
    assert answer.nearest is not None
    assert answer.nearest.position_error < 1e-6


def test_a_stretched_arm_is_reached_all_the_same(two: Ik) -> None:
    found = the(two.solve(Goal(at(0.8 * cos(1.0), 0.8 * sin(1.0)), seed=[0.3, 0.9], position_only=True)))
    assert found.q == pytest.approx([1.0, 0.0], abs=5e-3)


@pytest.mark.parametrize("x", [1e6, 1e12])
def test_a_target_beyond_all_measure_is_unreachable_with_finite_errors(two: Ik, x: float) -> None:
    answer = two.solve(Goal(at(x, 0.0)))
    assert answer.reason == "unreachable"
    assert answer.nearest is not None
    assert isfinite(answer.nearest.position_error)


def test_nothing_that_moves() -> None:
    tree = Tree((None, joint("fixed", 0, frame(0.5)), joint("revolute", 0, frame(), Z, 0)), 1)
    ik = solver(tree, [-1.0], [1.0], link=1)
    assert the(ik.solve(Goal(at(0.5, 0.0, 0.0), seed=[0.7]))).q == [0.7]
    assert ik.solve(Goal(at(0.6, 0.0, 0.0))).reason == "unreachable"


def test_a_locked_joint_does_not_take_the_others_steps() -> None:
    tree = planar(0.5, 0.4, 0.3)
    ik = solver(tree, [-3.0, 0.4, -3.0], [3.0, 0.4, 3.0])
    goal = forward(tree, [0.3, 0.4, 0.9], [4], 0)[0]
    for solutions in ("one", "nearest", "all"):
        found = the(ik.solve(Goal(matrix(goal), seed=[-0.5, 0.0, 0.1], solutions=solutions)))
        assert found.q == pytest.approx([0.3, 0.4, 0.9], abs=1e-8)


def test_prepare_changes_no_answer(two: Ik) -> None:
    ready = solver(TWO, [-3.0, -3.0], [3.0, 3.0])
    for position_only in (False, True):
        list(ready.prepare(position_only))
    assert ready.solve(Goal(at(0.6, 0.0), position_only=True)) == two.solve(Goal(at(0.6, 0.0), position_only=True))


def test_a_floating_joint_on_the_way_is_refused() -> None:
    tree = Tree((None, joint("floating", 0, frame(), Z, 0)), 7)
    with pytest.raises(ValueError, match="floating"):
        solver(tree, [-inf] * 7, [inf] * 7)


# -- angles that come round, branches, seeds ---------------------------------------------------------------------------


@pytest.mark.parametrize("solutions", ["one", "nearest", "all"])
@pytest.mark.parametrize("seed", [None, [0.5], [6.0]])
def test_an_angle_outside_the_limits_is_taken_a_turn_on(solutions: str, seed: list[float] | None) -> None:
    ik = solver(planar(0.4), [0.39], [6.28])
    goal = Goal(at(0.4 * cos(-2.0), 0.4 * sin(-2.0)), seed=seed, solutions=solutions, position_only=True)
    assert the(ik.solve(goal)).q == pytest.approx([tau - 2.0], abs=1e-9)


def test_of_several_turns_the_one_nearest_to_the_seed() -> None:
    ik = solver(planar(0.4), [-4 * pi], [4 * pi])
    for turns in (-2, -1, 0, 1):
        found = the(ik.solve(Goal(at(0.4 * cos(1.0), 0.4 * sin(1.0)), seed=[1.2 + turns * tau], position_only=True)))
        assert found.q == pytest.approx([1.0 + turns * tau], abs=1e-9)


@pytest.mark.parametrize("solutions", ["one", "nearest"])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_seed_says_which_branch(two: Ik, solutions: str, side: float) -> None:
    goal = Goal(at(0.6, 0.0), seed=[-0.4 * side, 1.3 * side], solutions=solutions, position_only=True)
    found = [the(two.solve(goal)) for _ in range(50)]
    assert found[0].q[1] == pytest.approx(side * ELBOW, abs=1e-8)
    assert all(f == found[0] for f in found)


def test_all_of_them_nearest_to_the_seed_first(two: Ik) -> None:
    for side in (1.0, -1.0):
        answer = two.solve(Goal(at(0.6, 0.0), seed=[0.0, side], solutions="all", position_only=True))
        assert [s.q[1] for s in answer.solutions] == pytest.approx([side * ELBOW, -side * ELBOW], abs=1e-8)


@pytest.mark.parametrize("solutions", ["one", "nearest"])
@pytest.mark.parametrize("letters", ["rrrrrr", "rrrrrrr", "prrrrr"])
def test_a_path_keeps_its_branch(letters: str, solutions: str) -> None:
    rnd = Random(11)
    tree, lower, upper = some_chain(letters, rnd)
    ik, tip = solver(tree, lower, upper), len(tree.edges) - 1
    start = some_q(rnd, [a + 0.3 for a in lower], [b - 0.3 for b in upper])
    q = list(start)
    for k in range(1, 21):
        on_path = [v + 0.01 * k * (-1) ** i for i, v in enumerate(start)]
        goal = Goal(matrix(forward(tree, on_path, [tip], 0)[0]), seed=q, solutions=solutions)
        before, q = q, the(ik.solve(goal)).q
        assert max(abs(a - b) for a, b in zip(before, q, strict=True)) < 0.1


def test_a_path_of_two_links_keeps_its_branch(two: Ik) -> None:
    for side in (1.0, -1.0):
        q = [-0.4 * side, 1.3 * side]
        for k in range(20):
            before, q = q, the(two.solve(Goal(at(0.6 + 0.005 * k, 0.0), seed=q, position_only=True))).q
            assert k == 0 or max(abs(a - b) for a, b in zip(before, q, strict=True)) < 0.2
            assert q[1] * side > 0.0


def test_a_seed_outside_the_limits_is_brought_inside(two: Ik) -> None:
    assert the(two.solve(Goal(at(0.6, 0.0), seed=[9.0, -40.0], position_only=True))).converged


# -- other frames ------------------------------------------------------------------------------------------------------


def test_the_tool_is_what_goes_to_the_target(two: Ik) -> None:
    tool = frame(0.2, 0.1, 0.0, rotation_from_rpy((0.0, 0.0, 0.5)))
    q = [0.4, 0.9]
    goal = compose(forward(TWO, q, [3], 0)[0], tool)
    for target in (Goal(matrix(goal), tool), Goal(matrix(goal), matrix(tool))):
        assert the(two.solve(target)).q == pytest.approx(q, abs=1e-8)
    only = the(two.solve(Goal(matrix(goal), tool, position_only=True)))
    got = compose(forward(TWO, only.q, [3], 0)[0], tool)
    assert dist([got[3], got[7]], [goal[3], goal[7]]) < 1e-6


def test_values_that_do_not_move_the_tip_stay_as_they_are() -> None:
    # two arms on one base: q = (left 1, right 1, left 2, right 2)
    edges = [
        None,
        joint("revolute", 0, frame(), Z, 0),
        joint("revolute", 1, frame(0.5), Z, 2),
        joint("fixed", 2, frame(0.3)),
        joint("revolute", 0, frame(0.1), Z, 1),
        joint("revolute", 4, frame(0.4), Z, 3),
        joint("fixed", 5, frame(0.2)),
    ]
    tree = Tree(tuple(edges), 4)
    seed = [0.1, 0.123456789, 0.2, -7.0]
    q = the(solver(tree, [-3.0] * 4, [3.0] * 4, link=3).solve(Goal(at(0.6, 0.0, 0.0), seed=seed, position_only=True))).q
    assert [q[1], q[3]] == [seed[1], seed[3]]
    # the right hand seen from the left: all four move it
    both = solver(tree, [-3.0] * 4, [3.0] * 4, link=6, base=3)
    goal = forward(tree, [0.5, -0.4, 0.3, 0.9], [6], 3)[0]
    got = forward(tree, the(both.solve(Goal(matrix(goal)))).q, [6], 3)[0]
    assert got == pytest.approx(goal, abs=2e-6)


def test_followers_move_with_their_source() -> None:
    # the second joint turns -2 times as far as the first, and 0.3 more
    follower = joint("revolute", 1, frame(0.5), Z, 0, -2.0, 0.3)
    tree = Tree((None, joint("revolute", 0, frame(), Z, 0), follower, joint("fixed", 2, frame(0.3))), 1)
    ik = solver(tree, [-1.5], [1.5])
    goal = forward(tree, [0.7], [3], 0)[0]
    assert the(ik.solve(Goal(matrix(goal)))).q == pytest.approx([0.7], abs=1e-9)


def test_a_rotation_of_seven_digits_will_do(two: Ik) -> None:
    T = [round(v, 7) for v in matrix(forward(TWO, [0.4, 0.9], [3], 0)[0])]
    assert the(two.solve(Goal(T))).q == pytest.approx([0.4, 0.9], abs=1e-5)


# -- time --------------------------------------------------------------------------------------------------------------


def test_the_deadline_ends_the_search_with_the_nearest_so_far() -> None:
    tree, lower, upper = some_chain("rrrrrrr", Random(5))
    for seconds in (0, 1, 5, 40):
        ticks = itertools.count()  # a clock that goes on by 1 whenever it is looked at
        goal = Goal(at(9.0, 0.0), seed=[0.1] * 7)
        answer = solver(tree, lower, upper).solve(goal, "numeric", seconds, lambda t=ticks: float(next(t)))
        assert answer.reason == "deadline"
        assert answer.nearest is not None
        assert isfinite(answer.nearest.position_error)
        assert answer.iterations <= seconds + 1


def test_without_time_running_out_the_answer_does_not_depend_on_the_clock(two: Ik) -> None:
    goal = Goal(at(0.6, 0.0), seed=[0.2, 0.4], position_only=True)
    assert two.solve(goal, deadline=1.0, clock=lambda: 0.0) == two.solve(goal)


def test_searches_take_turns_and_do_not_disturb_each_other() -> None:
    tree, lower, upper = some_chain("rrrrrr", Random(6))
    rnd = Random(7)
    goals = [Goal(matrix(forward(tree, some_q(rnd, lower, upper), [7], 0)[0])) for _ in range(4)]
    alone = [solver(tree, lower, upper).solve(g, "numeric") for g in goals]
    ik = solver(tree, lower, upper)
    searches = {k: ik.search(g, "numeric") for k, g in enumerate(goals)}
    answers: dict[int, Answer] = {}
    rests = 0
    while searches:
        for k, search in list(searches.items()):
            try:
                next(search)
                rests += 1
            except StopIteration as end:
                answers[k] = end.value
                del searches[k]
    assert [answers[k] for k in range(4)] == alone
    assert rests > sum(a.iterations for a in alone)


@pytest.mark.parametrize("x", [0.5, 1.0, 9.0])
@pytest.mark.parametrize("solutions", ["one", "nearest", "all"])
def test_a_search_rests_after_a_few_evaluations(x: float, solutions: str) -> None:
    tree, lower, upper = some_chain("rrrrrrr", Random(8))
    ik = solver(tree, lower, upper)
    list(ik.prepare())
    step, count, most = ik.chain.step(False), 0, 0

    def counted(values: list[float]) -> list[float]:
        nonlocal count
        count += 1
        return step(values)

    ik.chain._steps[False] = counted
    for _ in ik.search(Goal(at(x, 0.0), seed=[0.1] * 7, solutions=solutions)):
        most, count = max(most, count), 0
    assert max(most, count) <= 6
