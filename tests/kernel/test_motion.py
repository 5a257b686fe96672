"""The kinematics against matrices that numpy multiplies, and by the laws of rigid motion.

The oracle is written differently on purpose: rotations as exponential series, planar joints by turning the x-y plane
into place, quaternions by turning basis vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fkd.kernel.emit_python import compile_python
from fkd.kernel.motion import Edge, Tree, compose, forward, invert
from fkd.kernel.program import record

Matrix = npt.NDArray[np.float64]
KINDS = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
WIDTH = {"fixed": 0, "planar": 3, "floating": 7}
EYE = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)

# -- the oracle --------------------------------------------------------------------------------------------------------


def cross_matrix(v: Sequence[float]) -> Matrix:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=float)


def turn(axis: Sequence[float], angle: float) -> Matrix:
    """exp(angle * [axis]x) by its power series, for half the angle as often as it needs, then squared back up."""
    halvings = max(0, math.ceil(math.log2(max(abs(angle), 0.5)) + 1.0))
    A = cross_matrix(axis) * (angle / 2.0**halvings)
    R, term = np.eye(3), np.eye(3)
    for k in range(1, 18):
        term = term @ A / k
        R = R + term
    for _ in range(halvings):
        R = R @ R
    return R


def homogeneous(R: Matrix, p: Sequence[float] = (0.0, 0.0, 0.0)) -> Matrix:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def tilt(normal: Sequence[float]) -> Matrix:
    """The smallest rotation that takes +z to `normal`; half a turn about x for -z."""
    n = np.array(normal, dtype=float)
    axis = np.cross((0.0, 0.0, 1.0), n)
    sine = float(np.hypot(axis[0], axis[1]))
    if sine == 0.0:
        return np.eye(3) if n[2] > 0 else np.diag((1.0, -1.0, -1.0))
    return turn(axis / sine, math.atan2(sine, float(n[2])))


def by_quaternion(x: float, y: float, z: float, w: float) -> Matrix:
    """Columns: the basis vectors turned by v + 2 w (q x v) + 2 q x (q x v)."""
    q = np.array([x, y, z, w], dtype=float)
    q = q / np.abs(q).max()
    q = q / np.linalg.norm(q)
    Q = cross_matrix(q[:3])
    return np.eye(3) + 2.0 * q[3] * Q + 2.0 * Q @ Q


def moved(edge: Edge, q: Sequence[float]) -> Matrix:
    """What a joint adds at q."""
    if edge.kind == "fixed":
        return np.eye(4)
    if edge.kind == "planar":
        x, y, theta = q[edge.index : edge.index + 3]
        M = homogeneous(tilt(edge.axis))
        return M @ homogeneous(turn((0, 0, 1), theta), (x, y, 0.0)) @ M.T
    if edge.kind == "floating":
        return homogeneous(by_quaternion(*q[edge.index + 3 : edge.index + 7]), q[edge.index : edge.index + 3])
    value = edge.ratio * q[edge.index] + edge.bias
    if edge.kind == "prismatic":
        return homogeneous(np.eye(3), np.array(edge.axis) * value)
    return homogeneous(turn(edge.axis, value))


def square(T: Sequence[float]) -> Matrix:
    """12 numbers -> 4x4."""
    return np.vstack((np.array(T, dtype=float).reshape(3, 4), (0.0, 0.0, 0.0, 1.0)))


def expected(tree: Tree, q: Sequence[float], link: int, base: int = 0) -> Matrix:
    """T_base_link, one product of 4x4 matrices after the other from the root."""

    def from_root(place: int) -> Matrix:
        edge = tree.edges[place]
        return np.eye(4) if edge is None else from_root(edge.parent) @ square(edge.T_parent_joint) @ moved(edge, q)

    return np.linalg.solve(from_root(base), from_root(link))


def reach(tree: Tree, q: Sequence[float]) -> float:
    """A length that no coordinate in the tree exceeds by much; at least 1."""
    fixed = sum(
        max(map(abs, (e.T_parent_joint[3], e.T_parent_joint[7], e.T_parent_joint[11]))) for e in tree.edges if e
    )
    slides = sum(
        abs(e.ratio) * max(map(abs, q), default=0.0) + abs(e.bias)
        for e in tree.edges
        if e and e.kind not in ("fixed", "revolute")
    )
    return 1.0 + fixed + slides


# -- random robots -----------------------------------------------------------------------------------------------------
# Frames, axes and values are drawn from pools: what files hold (right angles, none at all, the rounding of whoever
# wrote them) and what is merely possible.


def unit(v: Sequence[float]) -> tuple[float, float, float]:
    biggest = max(map(abs, v))
    scaled = [x / biggest for x in v]
    length = math.hypot(*scaled)
    return (scaled[0] / length, scaled[1] / length, scaled[2] / length)


def origin(rpy: Sequence[float], p: Sequence[float]) -> tuple[float, ...]:
    """Fixed-axis roll, pitch, yaw and a position -> 12 numbers, right angles exact."""
    R = np.eye(3)
    for axis, angle in zip(np.eye(3), rpy, strict=True):
        s, c = (0.0 if abs(x) < 1e-15 else x for x in (math.sin(angle), math.cos(angle)))
        K = cross_matrix(axis)
        R = (np.outer(axis, axis) + s * K - c * K @ K) @ R
    return tuple(float(x) + 0.0 for x in np.hstack((R, np.array(p, dtype=float).reshape(3, 1))).ravel())


RNG = np.random.default_rng(7)
RIGHT = math.pi / 2
FRAMES = [EYE, origin((0, 0, 0), (0.1, 0, 0.3)), origin((0, 0, 0), (0, -0.4, 0))]
FRAMES += [
    origin(rpy, (0.2, 0, 0.1))
    for rpy in ((RIGHT, 0, 0), (0, RIGHT, 0), (0, 0, -RIGHT), (math.pi, 0, 0), (0, math.pi, 0))
]
FRAMES += [
    origin(rpy, (0.2, 0.3, 0))
    for rpy in ((RIGHT, 0, RIGHT), (-RIGHT, RIGHT, 0), (math.pi, 0, RIGHT), (RIGHT, -RIGHT, RIGHT))
]
FRAMES += [
    origin(rpy, (0, 0.1, 0)) for rpy in ((1.5708, 0, 0), (0, 0, 0.3), (0, -0.7, 0), (0.2, 0, 0), (3.1416, 0, -1.57))
]
FRAMES += [
    origin(rpy, (0, 0, 0.5))
    for rpy in ((1e-9, 0, 0), (0, 3e-9, 0), (0, 0, -1e-8), (1e-9, 0, RIGHT), (1e-5, 1e-6, 0), (0, 1e-12, 0))
]
FRAMES += [origin(RNG.uniform(-7, 7, 3), RNG.uniform(-2, 2, 3)) for _ in range(15)]
STRAIGHT = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)]
NOISY = [
    unit(v)
    for v in (
        (6.1e-17, 0, 1),
        (1e-17, 1, 0),
        (1, -1e-17, 1e-17),
        (-1e-17, -1, 0),
        (1e-9, 0, -1),
        (0, 2e-8, 1),
        (1, 1e-16, 0),
    )
]
OBLIQUE = [unit(v) for v in ((1, 1, 0), (1, -2, 3), (0, 0.6, -0.8), *RNG.normal(size=(12, 3)).tolist())]
VALUES = st.one_of(st.sampled_from([0.0, 1e-9, RIGHT, math.pi, -2.5]), st.floats(-10, 10))
SINGLE = ("revolute", "continuous", "prismatic")


@st.composite
def trees(draw: st.DrawFn, kinds: Sequence[str] = KINDS) -> tuple[Tree, list[float]]:
    """A tree of a few joints, link 0 its root, and a q for it. Now and then joints share a value, as followers do."""
    edges: list[Edge | None] = [None]
    q: list[float] = []
    singles: list[int] = []
    for place in range(1, draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(kinds))
        ratio, bias, index = 1.0, 0.0, len(q)
        if kind in SINGLE and singles and draw(st.integers(0, 4)) == 4:
            index, ratio, bias = (
                draw(st.sampled_from(singles)),
                draw(st.sampled_from([-1.0, 0.5, -2.0, 0.0])),
                draw(VALUES),
            )
        elif kind == "floating":
            q += [draw(VALUES) for _ in range(3)] + list(draw(st.sampled_from(QUATERNIONS)))
        else:
            singles += [index] * (kind in SINGLE)
            q += [draw(VALUES) for _ in range(WIDTH.get(kind, 1))]
        parent = draw(st.one_of(st.just(place - 1), st.integers(0, place - 1)))
        frame, axis = draw(st.sampled_from(FRAMES)), draw(st.sampled_from(STRAIGHT + NOISY + OBLIQUE))
        edges.append(Edge(kind, parent, frame, axis, index, ratio, bias))
    return Tree(tuple(edges), len(q)), q


QUATERNIONS = [
    (0.0, 0.0, 0.0, 1.0),
    (1.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, -3.0, 3.0),
    *map(tuple, RNG.normal(size=(8, 4)).tolist()),
]
FEW = settings(max_examples=30)


AXES = st.one_of(  # as the loader hands them over: what is below 1e-15 it takes for the rounding of a right angle
    st.sampled_from(STRAIGHT + NOISY + OBLIQUE),
    st.tuples(*[st.floats(-1, 1).map(lambda x: 0.0 if abs(x) < 1e-12 else x)] * 3)
    .filter(lambda v: max(map(abs, v)) > 1e-3)
    .map(unit),
)


def places(tree: Tree) -> range:
    return range(len(tree.edges))


def one(kind: str, axis: tuple[float, float, float] = (1.0, 0.0, 0.0)) -> Tree:
    """Two links and a joint between them."""
    return Tree((None, Edge(kind, 0, EYE, axis, 0, 1.0, 0.0)), WIDTH.get(kind, 1))


# -- laws --------------------------------------------------------------------------------------------------------------


@FEW
@given(trees())
def test_poses_are_what_numpy_multiplies_from_the_root(robot: tuple[Tree, list[float]]) -> None:
    tree, q = robot
    for link, T in zip(places(tree), forward(tree, q, places(tree), 0), strict=True):
        assert np.abs(square(T) - expected(tree, q, link)).max() <= 1e-13 * reach(tree, q)


@FEW
@given(trees(kinds=("revolute", "fixed", "continuous", "prismatic")), st.data())
def test_poses_between_any_two_links(robot: tuple[Tree, list[float]], data: st.DataObject) -> None:
    tree, q = robot
    base = data.draw(st.integers(0, len(tree.edges) - 1))
    for link, T in zip(places(tree), forward(tree, q, places(tree), base), strict=True):
        assert np.abs(square(T) - expected(tree, q, link, base)).max() <= 1e-13 * reach(tree, q)


@FEW
@given(trees())
def test_rotations_stay_rotations(robot: tuple[Tree, list[float]]) -> None:
    tree, q = robot
    for T in forward(tree, q, places(tree), 0):
        R = square(T)[:3, :3]
        assert np.abs(R.T @ R - np.eye(3)).max() <= 1e-13
        assert abs(np.linalg.det(R) - 1.0) <= 1e-13


@FEW
@given(trees(), st.data())
def test_poses_chain_over_any_link_and_reverse(robot: tuple[Tree, list[float]], data: st.DataObject) -> None:
    tree, q = robot
    a, b, c = (data.draw(st.integers(0, len(tree.edges) - 1)) for _ in range(3))

    def T(base: int, link: int) -> Matrix:
        return square(forward(tree, q, [link], base)[0])

    near = 1e-13 * reach(tree, q)
    assert np.abs(T(a, b) @ T(b, c) - T(a, c)).max() <= near
    assert np.abs(T(a, b) @ T(b, a) - np.eye(4)).max() <= near
    assert np.array_equal(T(a, a), np.eye(4))


@FEW
@given(trees(), st.data())
def test_a_pose_does_not_depend_on_what_else_is_asked_for(robot: tuple[Tree, list[float]], data: st.DataObject) -> None:
    """Asked for alone or with others the walk may start elsewhere, so the last bits may differ, but no more."""
    tree, q = robot
    base = data.draw(st.integers(0, len(tree.edges) - 1))
    links = data.draw(st.lists(st.sampled_from(places(tree)), min_size=1, max_size=6))
    for link, T in zip(links, forward(tree, q, links, base), strict=True):
        (alone,) = forward(tree, q, [link], base)
        assert np.abs(square(T) - square(alone)).max() <= 1e-13 * reach(tree, q)


@FEW
@given(trees(), st.data())
def test_a_kernel_gives_bit_for_bit_what_the_same_code_gives_over_floats(
    robot: tuple[Tree, list[float]], data: st.DataObject
) -> None:
    tree, q = robot
    base = data.draw(st.integers(0, len(tree.edges) - 1))
    links = data.draw(st.lists(st.sampled_from(places(tree)), min_size=1, max_size=4))
    kernel = compile_python(record(tree.width, lambda s: forward(tree, s, links, base)))
    got = kernel(q)
    assert list([got] if len(links) == 1 else got) == [list(T) for T in forward(tree, q, links, base)]


@FEW
@given(trees(kinds=("revolute", "continuous", "planar")))
def test_whole_turns_change_nothing(robot: tuple[Tree, list[float]]) -> None:
    tree, q = robot
    angles = [e.index + (2 if e.kind == "planar" else 0) for e in tree.edges if e is not None]
    angles = [k for k in angles if all(e is None or e.index != k or e.ratio in (1.0, -1.0, -2.0) for e in tree.edges)]
    turned = [v + 2 * math.pi * (k in angles) for k, v in enumerate(q)]
    for T, S in zip(forward(tree, q, places(tree), 0), forward(tree, turned, places(tree), 0), strict=True):
        assert np.abs(square(T) - square(S)).max() <= 1e-13 * reach(tree, q)


@given(st.sampled_from(FRAMES), st.sampled_from(FRAMES))
def test_compose_and_invert(A: tuple[float, ...], B: tuple[float, ...]) -> None:
    assert np.abs(square(compose(A, B)) - square(A) @ square(B)).max() <= 1e-14
    assert np.abs(square(A) @ square(invert(A)) - np.eye(4)).max() <= 1e-14
    assert np.abs(square(invert(A)) @ square(A) - np.eye(4)).max() <= 1e-14


# -- each kind of joint ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_motion_leaves_the_identity(kind: str) -> None:
    q = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0] if kind == "floating" else [0.0] * WIDTH.get(kind, 1)
    for axis in ((1.0, 0.0, 0.0), unit((1.0, 2.0, 3.0)), unit((-1.0, 2.0, -3.0))):
        (T,) = forward(one(kind, axis), q, [1], 0)
        assert np.abs(square(T) - np.eye(4)).max() <= 1e-16


@given(AXES, st.one_of(VALUES, st.floats(-1e-6, 1e-6), st.floats(-1e300, 1e300)))
@example((1e-17, 1.0, 0.0), 0.5)
@example((6.1e-17, 0.0, 1.0), 0.5)
@example((1.0, 6.1e-17, 0.0), 0.5)
def test_a_hinge_turns_about_its_axis(axis: tuple[float, float, float], angle: float) -> None:
    (T,) = forward(one("revolute", axis), [angle], [1], 0)
    R, n = square(T)[:3, :3], np.array(axis)
    s, c = math.sin(angle), math.cos(angle)
    K = cross_matrix(axis)
    assert np.abs(R - (c * np.eye(3) + s * K + (1 - c) * np.outer(n, n))).max() <= 1e-15
    if abs(angle) < 20:
        assert np.abs(R - turn(axis, angle)).max() <= 1e-13
    assert np.abs(R @ n - n).max() <= 1e-15
    assert (square(T)[:3, 3] == 0.0).all()


@given(AXES, st.floats(-1e6, 1e6))
def test_a_slider_moves_along_its_axis(axis: tuple[float, float, float], value: float) -> None:
    (T,) = forward(one("prismatic", axis), [value], [1], 0)
    assert np.array_equal(square(T)[:3, :3], np.eye(3))
    assert np.abs(square(T)[:3, 3] - np.array(axis) * value).max() <= 1e-15 * abs(value)


@given(AXES, st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-7, 7)))
@example((0.0, 0.0, -1.0), (1.0, 2.0, 0.5))
@example((0.0, 1.0, 0.0), (1.0, 2.0, 0.5))
@example(unit((1e-6, 0.0, -1.0)), (1.0, 2.0, 0.5))
@example(unit((1e-9, -1e-9, -1.0)), (1.0, 2.0, 0.5))
@example(unit((-1e-12, 3e-12, -1.0)), (1.0, 2.0, 0.5))
@example(unit((1e-100, 0.0, 1.0)), (1.0, 2.0, 0.5))
def test_a_planar_joint_moves_in_the_plane_normal_to_its_axis(
    axis: tuple[float, float, float], q: tuple[float, float, float]
) -> None:
    tree = one("planar", axis)
    T, n = square(forward(tree, q, [1], 0)[0]), np.array(axis)
    assert np.abs(T[:3, :3] @ n - n).max() <= 1e-14  # turns about the normal
    assert abs(T[:3, 3] @ n) <= 1e-14  # and never leaves the plane
    assert abs(np.linalg.norm(T[:3, 3]) - math.hypot(q[0], q[1])) <= 1e-14
    assume(
        min(abs(c) for c in axis[:2] if c) > 1e-14 if any(axis[:2]) else True
    )  # nearer to -z the frame is a matter of taste
    edge = tree.edges[1]
    assert edge is not None
    assert np.abs(T - moved(edge, q)).max() <= 1e-13


@pytest.mark.parametrize(
    ("axis", "u", "v"),
    [((0, 0, 1), (1, 0, 0), (0, 1, 0)), ((0, 0, -1), (1, 0, 0), (0, -1, 0)), ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
     ((0, 1, 0), (1, 0, 0), (0, 0, -1)), ((-1, 0, 0), (0, 0, 1), (0, 1, 0)), ((0, -1, 0), (1, 0, 0), (0, 0, 1))],
)  # fmt: skip
def test_the_directions_of_a_planar_joint(axis: tuple[float, ...], u: tuple[float, ...], v: tuple[float, ...]) -> None:
    tree = one("planar", (float(axis[0]), float(axis[1]), float(axis[2])))
    for q, p in (((1.0, 0.0, 0.0), u), ((0.0, 1.0, 0.0), v)):
        assert np.array_equal(square(forward(tree, q, [1], 0)[0])[:3, 3], p)


@given(
    st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda v: max(map(abs, v)) > 1e-3),
    st.tuples(VALUES, VALUES, VALUES),
    st.floats(-100, 100),
)
def test_a_floating_joint_takes_its_position_and_quaternion(
    quaternion: tuple[float, float, float, float], p: tuple[float, float, float], exponent: float
) -> None:
    scale = 10.0**exponent
    (T,) = forward(one("floating"), [*p, *(scale * c for c in quaternion)], [1], 0)
    assert np.abs(square(T) - homogeneous(by_quaternion(*quaternion), p)).max() <= 1e-14


def test_a_quaternion_of_zero_norm_divides_by_zero() -> None:
    tree = one("floating")
    with pytest.raises(ZeroDivisionError):
        forward(tree, [0.0] * 7, [1], 0)
    with pytest.raises(ZeroDivisionError):
        compile_python(record(7, lambda q: forward(tree, q, [1], 0)))([0.0] * 7)


def test_an_unknown_kind_has_no_motion() -> None:
    with pytest.raises(ValueError, match="screw"):
        forward(one("screw"), [0.0], [1], 0)


# -- chains whose turns may be joined ----------------------------------------------------------------------------------


@st.composite
def parallel_chains(draw: st.DrawFn) -> tuple[Tree, list[float]]:
    """Joints about one axis in a row, with origins that turn about it exactly, nearly, or not at all."""
    axis = draw(st.sampled_from([*STRAIGHT, *OBLIQUE[:2]]))
    lean_axis = unit(np.cross(axis, (0.3, 0.5, 0.8)).tolist())
    edges: list[Edge | None] = [None]
    q = []
    for place in range(1, draw(st.integers(3, 7))):
        spin, lean = draw(st.sampled_from([0.0, RIGHT, 0.3, 1e-9])), draw(st.sampled_from([0.0, 0.0, 1e-9, 3e-8, 1e-5]))
        R = (turn(axis, spin) if spin else np.eye(3)) @ (turn(lean_axis, lean) if lean else np.eye(3))
        frame = tuple(float(x) + 0.0 for x in np.hstack((R, [[0.1], [0.2], [-0.3]])).ravel())
        kind = draw(st.sampled_from(["revolute", "revolute", "continuous", "prismatic", "fixed"]))
        along = draw(st.sampled_from([axis, axis, STRAIGHT[2]]))
        edges.append(Edge(kind, place - 1, frame, along, len(q), draw(st.sampled_from([1.0, -1.0, 0.5])), 0.0))
        q += [draw(VALUES)] * (kind != "fixed")
    return Tree(tuple(edges), len(q)), q


@FEW
@given(parallel_chains())
def test_parallel_axes_in_a_row(robot: tuple[Tree, list[float]]) -> None:
    tree, q = robot
    for link, T in zip(places(tree), forward(tree, q, places(tree), 0), strict=True):
        assert np.abs(square(T) - expected(tree, q, link)).max() <= 1e-13 * reach(tree, q)


@pytest.mark.parametrize("lean", [1e-9, 5e-9, 1e-8])
@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
def test_a_slight_lean_of_an_origin_is_kept(axis: tuple[float, float, float], lean: float) -> None:
    """cos(1e-8) rounds to 1: that the middle of a matrix is 1 does not make it a turn about the axis."""
    other = (axis[1], axis[2], axis[0])
    R = turn(other, lean)
    frame = tuple(float(x) for x in np.hstack((R, np.zeros((3, 1)))).ravel())
    tree = Tree((None, Edge("revolute", 0, frame, axis, 0, 1.0, 0.0)), 1)
    (T,) = forward(tree, [0.5], [1], 0)
    assert np.abs(square(T)[:3, :3] - R @ turn(axis, 0.5)).max() <= 1e-15


def test_a_long_chain_keeps_its_digits() -> None:
    rng = np.random.default_rng(1)
    edges: list[Edge | None] = [None]
    for place in range(80):
        R = turn(unit(rng.normal(size=3).tolist()), float(rng.uniform(-3, 3)))
        frame = tuple(np.hstack((R, rng.uniform(-0.1, 0.1, (3, 1)))).ravel().tolist())
        edges.append(Edge("revolute", place, frame, unit(rng.normal(size=3).tolist()), place, 1.0, 0.0))
    tree, q = Tree(tuple(edges), 80), rng.uniform(-3, 3, 80).tolist()
    (T,) = forward(tree, q, [80], 0)
    assert np.abs(square(T) - expected(tree, q, 80)).max() <= 1e-12
    kernel = compile_python(record(80, lambda s: forward(tree, s, [80], 0)))
    assert kernel(q) == list(T)
