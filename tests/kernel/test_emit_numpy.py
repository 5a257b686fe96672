"""Batches: bit for bit the operations of the single function, over any number of rows, without allocating."""

from __future__ import annotations

import math
import operator
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.errors import InvalidParams
from fkd.kernel.emit_numpy import BatchKernel, compile_numpy
from fkd.kernel.emit_python import compile_python, source
from fkd.kernel.jacobian import pose_and_jacobian
from fkd.kernel.motion import forward
from fkd.kernel.pose import matrix
from fkd.kernel.program import Program, record
from fkd.kernel.scalar import Ref, cos, sin
from fkd.kernel.sincos import SinCos
from fkd.robot import Robot, load

WIDTH = 3
# Against libm's sines: 2.3e-16 for each, through a dozen joints and links of some metres.
CLOSE = 2e-14
RNG = np.random.default_rng(20)

Build = Callable[[Sequence[Ref]], Sequence[Sequence[Ref]]]


def scalar_sincos(x: float) -> tuple[float, float]:
    """The batch's own sine and cosine, for one number."""
    s, c = np.empty((1, 1)), np.empty((1, 1))
    with np.errstate(all="ignore"):
        SinCos(1)(np.array([[x]]), s, c)
    return float(s[0, 0]), float(c[0, 0])


def same_operations(program: Program) -> Callable[[Sequence[float]], Any]:
    """The function of emit_python over the batch's own sines: what the batch has to give bit for bit."""
    names: dict[str, Any] = {"sin": lambda x: scalar_sincos(x)[0], "cos": lambda x: scalar_sincos(x)[1]}
    exec(source(program), names)  # noqa: S102 (the emitter's own text)
    function: Callable[[Sequence[float]], Any] = names["kernel"]
    return function


def groups(program: Program, found: Any) -> list[list[float]]:
    """The result of a single function, always as a list of outputs."""
    return [found] if len(program.outputs) == 1 else list(found)


def built(build: Build, width: int = WIDTH) -> tuple[Program, BatchKernel]:
    program = record(width, build)
    return program, compile_numpy(program)


def run(build: Build, q: Sequence[Sequence[float]]) -> list[list[list[float]]]:
    """A computation over rows -> its outputs as lists."""
    array = np.array(q, dtype=float)
    return [out.tolist() for out in built(build, array.shape[1])[1].workspace(8)(array)]


# -- any program ---------------------------------------------------------------------------------------------------

UNARY: dict[str, Any] = {"neg": operator.neg, "sin": sin, "cos": cos}
BINARY: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
PROGRAMS = st.lists(
    st.tuples(st.sampled_from([*BINARY, *UNARY]), st.integers(0, 1000), st.integers(0, 1000)), min_size=0, max_size=40
)
NUMBERS = st.one_of(st.floats(-4, 4), st.sampled_from([0.0, 1.0, -1.5, 1e6, 1e200, -1e-200]))


def build(steps: Sequence[tuple[str, int, int]], picks: Sequence[Sequence[int]]) -> Build:
    """A computation in which every step reads any two of the earlier values, and outputs pick any values."""

    def computation(q: Sequence[Ref]) -> list[list[Ref]]:
        values: list[Ref] = [*q, 0.5, -2.0, 0.0]
        for op, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            if op == "/" and isinstance(y, float):
                y = y or 1.0
            if op in ("sin", "cos") and isinstance(x, float) and not math.isfinite(x):
                x = 1.0
            values.append(UNARY[op](x) if op in UNARY else BINARY[op](x, y))
        return [[values[-1 - k % len(values)] for k in group] for group in picks]

    return computation


@settings(max_examples=80)
@given(
    PROGRAMS, st.lists(st.lists(st.integers(0, 20), max_size=6), max_size=3),
    st.lists(st.lists(NUMBERS, min_size=WIDTH, max_size=WIDTH), max_size=10),
)  # fmt: skip
def test_every_program_gives_bit_for_bit_what_its_operations_give(
    steps: list[tuple[str, int, int]], picks: list[list[int]], rows: list[list[float]]
) -> None:
    program, kernel = built(build(steps, picks))
    outs = kernel.workspace(8)(np.array(rows, dtype=float).reshape(-1, WIDTH))
    single = same_operations(program)
    for k, row in enumerate(rows):
        try:
            expected = groups(program, single(row))
        except ZeroDivisionError:
            continue  # such a row has no single result; that it is not finite, or folded away, is tested below
        for out, values in zip(outs, expected, strict=True):
            assert np.array_equal(out[k], values, equal_nan=True)  # 0.0 == -0.0


def test_sines_of_sines_and_of_constants() -> None:
    q = [[0.3, -0.2], [2.0, 1.0]]
    found = run(lambda q: [[sin(sin(cos(q[0]) + q[1])), cos(sin(cos(q[0]) + q[1])), sin(q[1])]], q)
    for row, (a, b) in zip(found[0], q, strict=True):
        inner = math.sin(math.cos(a) + b)
        assert row == pytest.approx([math.sin(inner), math.cos(inner), math.sin(b)], abs=1e-15)
    # constants are folded by the trace, but a program may hold them
    program = Program(0, (("const", 0, 0), ("sin", 0, 0)), {0: 0.5}, ((1,), (1, 0)))
    kernel = compile_numpy(program)
    first, second = kernel.workspace()(np.empty((3, 0)))
    assert first == pytest.approx(np.full((3, 1), math.sin(0.5)), abs=1e-15)
    assert second == pytest.approx(np.tile([math.sin(0.5), 0.5], (3, 1)), abs=1e-15)


def test_outputs_may_be_inputs_constants_angles_and_one_another() -> None:
    found = run(lambda q: [[q[1], 7.0, q[1], q[0]], [], [sin(q[0]), q[0], sin(q[0]), -0.0]], [[0.25, -3.0]])
    s = scalar_sincos(0.25)[0]
    assert found == [[[-3.0, 7.0, -3.0, 0.25]], [[]], [[s, 0.25, s, 0.0]]]


def test_constants_stay_from_chunk_to_chunk() -> None:
    kernel = built(lambda q: [[q[0], 1.0, sin(q[0])], [2.0]], 1)[1]
    workspace = kernel.workspace(8)
    for n in (20, 3, 8, 21):
        first, second = workspace(np.arange(float(n)).reshape(n, 1))
        assert (first[:, 1] == 1.0).all()
        assert (second == 2.0).all()
        assert first[:, 0].tolist() == list(range(n))


def test_scratch_does_not_grow_with_the_length_of_a_chain() -> None:
    def chain(q: Sequence[Ref]) -> list[list[Ref]]:
        x: Ref = q[0]
        for k in range(200):
            x = x * q[1] + 0.5 * k
        return [[x]]

    assert built(chain, 2)[1].slots <= 4  # the output, both inputs, one in between


# -- robots --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["emit_joints.urdf", "kin_mixed.urdf", "wire_arm.urdf", "wire_slides.urdf"])
def robot(request: pytest.FixtureRequest, robots: Path) -> Robot:
    return load(robots / request.param)


def configurations(robot: Robot, n: int) -> np.ndarray:
    """Random values of q, quaternions of any norm but zero."""
    return RNG.uniform(-3.0, 3.0, (n, robot.dof))


def poses(robot: Robot, links: Sequence[str], base: str) -> Program:
    places, start = [robot.kernels.places[link] for link in links], robot.kernels.places[base]
    return record(robot.dof, lambda q: [matrix(T) for T in forward(robot.kernels.tree, q, places, start)])  # type: ignore[arg-type]


def test_all_poses_of_a_robot(robot: Robot) -> None:
    q = configurations(robot, 50)
    outs = compile_numpy(poses(robot, robot.links, robot.model.base)).workspace(16)(q)
    for link, out in zip(robot.links, outs, strict=True):
        expected = [robot.poses(row.tolist(), [link])[link] for row in q]
        assert out == pytest.approx(np.array(expected), abs=CLOSE)
        assert (out[:, 12:] == [0.0, 0.0, 0.0, 1.0]).all()


def test_a_robot_bit_for_bit_over_the_same_sines(robot: Robot) -> None:
    program = poses(robot, robot.links[-2:], robot.links[len(robot.links) // 2])
    q = configurations(robot, 20)
    outs = compile_numpy(program).workspace()(q)
    single = same_operations(program)
    for k, row in enumerate(q):
        for out, values in zip(outs, groups(program, single(row.tolist())), strict=True):
            assert out[k].tolist() == values


def test_jacobians(robot: Robot) -> None:
    tree, link, base = robot.kernels.tree, robot.kernels.places[robot.links[-1]], robot.kernels.places[robot.model.base]

    def computation(q: Sequence[Ref]) -> list[list[Ref]]:
        T, J = pose_and_jacobian(tree, q, link, base)
        return [list(T), [x for row in J for x in row]]

    program, kernel = built(computation, robot.dof)
    single = compile_python(program)
    q = configurations(robot, 30)
    frames, jacobians = kernel.workspace(8)(q)
    assert jacobians.shape == (30, 6 * robot.dof)
    for k, row in enumerate(q):
        T, J = single(row.tolist())
        assert frames[k] == pytest.approx(np.array(T), abs=CLOSE)
        assert jacobians[k] == pytest.approx(np.array(J), abs=100 * CLOSE)  # 1 / |q|**2 of floating joints


def test_a_robot_without_joints(robots: Path) -> None:
    robot = load(robots / "emit_static.urdf")
    (out,) = compile_numpy(poses(robot, ["tip"], "base")).workspace()(np.empty((5, 0)))
    assert out.tolist() == [robot.poses([], ["tip"])["tip"]] * 5


# -- rows and arrays -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm(robots: Path) -> BatchKernel:
    robot = load(robots / "kin_mixed.urdf")
    return compile_numpy(poses(robot, robot.links[-1:], robot.model.base))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 15, 16, 17, 32, 35])
def test_a_row_has_the_same_bits_wherever_it_stands(arm: BatchKernel, n: int) -> None:
    q = RNG.uniform(-3, 3, (n, arm.width))
    (together,) = arm.workspace(16)(q)
    one = arm.workspace(1)
    alone = [one(row.reshape(1, -1))[0][0] for row in q]
    assert together.shape == (n, 16)
    assert np.array_equal(together, np.array(alone).reshape(n, 16))


def test_rows_without_a_result_come_out_not_finite_and_disturb_no_other() -> None:
    def computation(q: Sequence[Ref]) -> list[list[Ref]]:
        return [[1.0 / q[0], q[1] * sin(q[2]) - q[0]]]

    kernel = built(computation)[1]
    q = RNG.uniform(1, 3, (40, 3))
    (good,) = kernel.workspace(16)(q)
    bad = q.copy()
    bad[3, 0], bad[5, 2], bad[17, 1], bad[39, 0], bad[20, 2] = 0.0, math.inf, math.nan, math.nan, -math.inf
    (found,) = kernel.workspace(16)(bad)
    rows = [3, 5, 17, 39, 20]
    assert not np.isfinite(found[rows]).all(axis=1).any()
    assert np.array_equal(np.delete(found, rows, 0), np.delete(good, rows, 0))


@pytest.mark.parametrize(
    "view",
    [
        lambda q: q[::-1], lambda q: q[::3], lambda q: np.asfortranarray(q), lambda q: np.repeat(q, 2, 1)[:, ::2],
        lambda q: np.broadcast_to(q[:1], q.shape), lambda q: q.astype(np.float32), lambda q: q.astype(np.int8),
        lambda q: q.astype(">f8"),
    ],
)  # fmt: skip
def test_q_in_any_layout_and_kind_of_number(arm: BatchKernel, view: Callable[[np.ndarray], np.ndarray]) -> None:
    q = view(RNG.uniform(-3, 3, (50, arm.width)))
    workspace = arm.workspace(16)
    (found,) = workspace(q)
    expected = workspace(np.ascontiguousarray(q, dtype=np.float64))[0]
    assert np.array_equal(found, expected, equal_nan=True)  # of whole numbers a quaternion may be zero


def test_outputs_in_any_layout(arm: BatchKernel) -> None:
    q = RNG.uniform(-3, 3, (50, arm.width))
    workspace = arm.workspace(16)
    (expected,) = workspace(q)
    wide = np.zeros((100, 20))
    for out in (wide[::2, 2:18], wide[50:, 4:][::-1], np.empty((16, 50)).T):
        assert workspace(q, [out])[0] is out
        assert np.array_equal(out, expected)
    assert not wide[:, :2].any()


def read_only(shape: tuple[int, int]) -> np.ndarray:
    out = np.empty(shape)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    "q",
    [np.zeros((4, 2)), np.zeros(3), np.zeros((4, 3, 1)), np.zeros((4, 3), complex), np.zeros((4, 3), bool),
     np.zeros((4, 3), object), np.zeros((4, 3), "U1"), [[0.0, 0.0, 0.0]], None],
)  # fmt: skip
def test_a_q_that_does_not_fit_is_refused(q: Any) -> None:
    workspace = built(lambda q: [[q[0], q[2]]])[1].workspace()
    with pytest.raises(InvalidParams, match=r"shape \(n, 3\), got") as refused:
        workspace(q)
    assert refused.value.reason == "q-shape"


@pytest.mark.parametrize(
    ("outs", "reason"),
    [
        ([], "out-shape"), ([np.empty((4, 2))] * 2, "out-shape"), ([np.empty((4, 3))], "out-shape"),
        ([np.empty((3, 2))], "out-shape"), ([np.empty((4, 2), np.float32)], "out-shape"),
        ([[[0.0] * 2] * 4], "out-shape"),
        ([read_only((4, 2))], "out-memory"),
    ],
)  # fmt: skip
def test_outputs_that_do_not_fit_are_refused_before_the_first_chunk(outs: list[Any], reason: str) -> None:
    workspace = built(lambda q: [[q[0], q[2]]])[1].workspace()
    with pytest.raises(InvalidParams) as refused:
        workspace.chunks(np.zeros((4, 3)), outs)
    assert refused.value.reason == reason


def test_an_output_over_q_is_refused() -> None:
    memory = np.zeros((4, 5))
    workspace = built(lambda q: [[q[0], q[2]]])[1].workspace()
    with pytest.raises(InvalidParams, match="share no memory"):
        workspace(memory[:, :3], [memory[:, 3:]])


# -- scratch -------------------------------------------------------------------------------------------------------


def test_chunks_allocate_nothing(arm: BatchKernel) -> None:
    """From the second chunk on, nothing as large as one column of a chunk is ever allocated."""
    workspace = arm.workspace(2000)
    q, out = RNG.uniform(-3, 3, (10_000, arm.width)), np.empty((10_000, 16))
    steps = workspace.chunks(q, [out])
    next(steps)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        assert list(steps) == [4000, 6000, 8000, 10_000]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - before < 2000 * 8 / 2


def test_one_workspace_serves_several_batches_chunk_by_chunk(arm: BatchKernel) -> None:
    workspace = arm.workspace(8)
    qs = [RNG.uniform(-3, 3, (n, arm.width)) for n in (30, 21)]
    outs = [np.empty((len(q), 16)) for q in qs]
    pending = [workspace.chunks(q, [out]) for q, out in zip(qs, outs, strict=True)]
    while pending:
        pending = [steps for steps in pending if next(steps, None) is not None]
    for q, out in zip(qs, outs, strict=True):
        assert np.array_equal(out, arm.workspace()(q)[0])


def test_threads_share_a_kernel_each_with_its_workspace(arm: BatchKernel) -> None:
    qs = [RNG.uniform(-3, 3, (5000, arm.width)) for _ in range(3)]
    found: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda k=k, q=q: found.update({k: arm.workspace(600)(q)[0]})) for k, q in enumerate(qs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, q in enumerate(qs):
        assert np.array_equal(found[k], arm.workspace()(q)[0])


def test_large_programs_take_shorter_chunks() -> None:
    small = built(lambda q: [[q[0] + q[1]]])[1]
    large = built(lambda q: [[q[0] * float(k) + q[1] for k in range(2, 2000)]])[1]
    assert 1000 <= large.rows < small.rows <= 4000
    assert small.workspace(13).rows == 16  # whole cache lines
