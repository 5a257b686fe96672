"""Generated functions: bit for bit what the same code gives over floats, of any size and shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fkd.kernel.emit_python import compile_python, source
from fkd.kernel.program import record
from fkd.kernel.scalar import Ref, cos, sin

WIDTH = 3
Expression = Any  # ("+", left, right), ("sin", inner), ("q", index) or a number

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.1, 1e-300, 1e300, math.pi]),
    st.floats(-10, 10),
    st.floats(allow_nan=False, allow_infinity=False),
)
LEAVES = st.one_of(NUMBERS, st.tuples(st.just("q"), st.integers(0, WIDTH - 1)))
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*/"), inner, inner),
        st.tuples(st.sampled_from(["neg", "sin", "cos"]), inner),
        inner.map(lambda x: ("*", x, x)),
    ),
    max_leaves=30,
)
Q = st.lists(NUMBERS, min_size=WIDTH, max_size=WIDTH)


def evaluate(e: Expression, q: Sequence[Ref], seen: Callable[[Ref], Ref] = lambda x: x) -> Ref:
    """An expression over scalars of any kind; every intermediate value passes through `seen`."""
    if isinstance(e, float):
        return e
    if e[0] == "q":
        return q[e[1]]
    x = evaluate(e[1], q, seen)
    if len(e) == 2:
        return seen({"neg": lambda: -x, "sin": lambda: sin(x), "cos": lambda: cos(x)}[e[0]]())
    y = evaluate(e[2], q, seen)
    return seen({"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[e[0]]())


def finite(x: Ref) -> Ref:
    """Outside the range of a double the rules of the trace (0 * x = 0) do not hold, nor need they."""
    assume(math.isfinite(x))  # type: ignore[arg-type]
    return x


def compiled(
    width: int, computation: Callable[[Sequence[Ref]], Sequence[Sequence[Ref]]]
) -> Callable[[Sequence[float]], Any]:
    return compile_python(record(width, computation))


@given(st.lists(EXPRESSIONS, min_size=1, max_size=3), Q)
def test_a_kernel_gives_bit_for_bit_what_floats_give(expressions: list[Expression], q: list[float]) -> None:
    try:
        expected = [evaluate(e, q, finite) for e in expressions]
    except ZeroDivisionError:
        assume(False)
    kernel = compiled(WIDTH, lambda s: [[evaluate(e, s) for e in expressions]])
    assert kernel(q) == expected  # 0.0 == -0.0


@given(EXPRESSIONS, Q)
def test_a_kernel_fails_where_floats_fail_or_gives_a_number(expression: Expression, q: list[float]) -> None:
    """Where floats divide by zero or leave their range, a kernel does the same or has folded the fault away."""
    try:
        kernel = compiled(WIDTH, lambda s: [[evaluate(expression, s)]])
        (value,) = kernel(q)
    except (ZeroDivisionError, ValueError):  # ValueError: the sine of infinity
        with pytest.raises((ZeroDivisionError, ValueError)):
            evaluate(expression, q)
        return
    assert isinstance(value, float)


@pytest.mark.parametrize("groups", [0, 1, 2, 5])
@pytest.mark.parametrize("width", [0, 1, 2, 3, 300])
def test_any_number_of_inputs_and_output_groups(width: int, groups: int) -> None:
    kernel = compiled(width, lambda q: [[x * 2.0 for x in q] + [float(g)] for g in range(groups)])
    values = [0.25 * k for k in range(width)]
    expected = [[2.0 * v for v in values] + [float(g)] for g in range(groups)]
    got = kernel(values)
    assert got == (expected[0] if groups == 1 else tuple(expected))
    assert kernel(tuple(values)) == got


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("width", [0, 1, 2, 7, 300])
def test_a_wrong_count_is_a_value_error(width: int, used: bool) -> None:
    kernel = compiled(width, lambda q: [[sin(x) for x in q] if used else [1.0]])
    kernel([0.5] * width)
    for count in {0, 1, width - 1, width + 1, 2 * width} - {width, -1}:
        with pytest.raises(ValueError):  # noqa: PT011 (its text is Python's)
            kernel([0.5] * count)


def test_a_group_may_be_empty() -> None:
    assert compiled(1, lambda q: [[], [q[0]]])([2.0]) == ([], [2.0])
    assert compiled(1, lambda _: [[]])([2.0]) == []


def test_results_are_new_lists() -> None:
    kernel = compiled(1, lambda q: [[q[0], 1.0]])
    first = kernel([2.0])
    first[0] = 9.0
    assert kernel([2.0]) == [2.0, 1.0]


def left(depth: int, q: Sequence[Ref]) -> Ref:
    x = q[0]
    for k in range(depth):
        x = x * 0.5 + q[k % len(q)]
    return x


def right(depth: int, q: Sequence[Ref]) -> Ref:
    x = q[0]
    for k in range(depth):
        x = q[k % len(q)] - (1.0 - x * 0.5)
    return x


def nested(depth: int, q: Sequence[Ref]) -> Ref:
    x = q[0]
    for _ in range(depth):
        x = sin(cos(x) + 0.1)
    return x


def balanced(depth: int, q: Sequence[Ref]) -> Ref:
    terms = [sin(q[k % len(q)] * float(k + 1)) for k in range(depth)]
    while len(terms) > 1:
        terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


@pytest.mark.parametrize("shape", [left, right, nested, balanced])
@pytest.mark.parametrize("depth", [30, 120, 3000])
def test_deep_expressions_compile(shape: Callable[[int, Sequence[Ref]], Ref], depth: int) -> None:
    q = [0.3, -0.7]
    assert compiled(2, lambda s: [[shape(depth, s)]])(q) == [shape(depth, q)]


def test_constants_beyond_the_range_of_a_double_stay_what_they_are() -> None:
    kernel = compiled(1, lambda q: [[q[0] + 1e308 * 10.0, q[0] - 1e308 * 10.0, q[0] + (1e308 * 10.0 - 1e308 * 10.0)]])
    got = kernel([1.0])
    assert got[:2] == [math.inf, -math.inf]
    assert math.isnan(got[2])


@pytest.mark.parametrize("label", ["", "ur5e", "a\nb", "'); import os; ('", "Bras_à", "{}%s", "\\", "<x>" * 1000])
def test_any_label_will_do(label: str) -> None:
    program = record(1, lambda q: [[q[0]]])
    assert compile_python(program, label)([3.0]) == [3.0]
    assert label not in source(program) or label == ""
