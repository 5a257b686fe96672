"""Symbols: the rules that a trace uses change no bit of a result, and do fold and share what they can."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.kernel.program import record
from fkd.kernel.scalar import Ref, Sym, Trace, cos, sin


def nodes(width: int, computation: Callable[[Any], Any]) -> list[str]:
    """The operations that remain of a computation of one result; inputs and constants are not counted."""
    program = record(width, lambda q: [[computation(q)]])
    return [op for op, _, _ in program.nodes if op not in ("var", "const")]


def folded(computation: Callable[[Any], Any]) -> Any:
    """What a computation over two symbols gives: a number if it folds, else its symbol."""
    return computation(Trace(2).inputs)


@given(st.floats(-1e6, 1e6))
def test_floats_pass_through(x: float) -> None:
    assert (sin(x), cos(x)) == (math.sin(x), math.cos(x))
    assert isinstance(sin(x), float)


@pytest.mark.parametrize(
    ("computation", "value"),
    [
        (lambda q: q[0] * 0.0, 0.0),
        (lambda q: 0.0 * q[0], 0.0),
        (lambda q: -0.0 * q[0], 0.0),
        (lambda q: 0.0 / q[0], 0.0),
        (lambda q: (q[0] * 0.0) + 2.0 * 3.0, 6.0),
        (lambda q: sin(q[0] * 0.0), 0.0),
        (lambda q: cos(q[0] * 0.0 + 0.5), math.cos(0.5)),
    ],
)
def test_constants_fold(computation: Callable[[Any], Any], value: float) -> None:
    assert folded(computation) == value


@pytest.mark.parametrize(
    "computation",
    [
        lambda q: q[0] + 0.0,
        lambda q: 0.0 + q[0],
        lambda q: q[0] - 0.0,
        lambda q: q[0] * 1.0,
        lambda q: 1.0 * q[0],
        lambda q: q[0] / 1.0,
        lambda q: -(0.0 - q[0]),
        lambda q: 0.0 - (0.0 - q[0]),
        lambda q: -1.0 * (-1.0 * q[0]),
    ],
)
def test_neutral_operations_leave_nothing(computation: Callable[[Any], Any]) -> None:
    assert nodes(1, computation) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda a, b: a + b, lambda a, b: b + a),
        (lambda a, b: a * b, lambda a, b: b * a),
        (lambda a, b: a + -b, lambda a, b: a - b),
        (lambda a, b: -a + b, lambda a, b: b - a),
        (lambda a, b: -(a - b), lambda a, b: b - a),
        (lambda a, b: a - -b, lambda a, b: a + b),
        (lambda a, b: -a * -b, lambda a, b: a * b),
        (lambda a, b: -a * b, lambda a, b: -(a * b)),
        (lambda a, b: -a - b, lambda a, b: -(a + b)),
        (lambda a, b: sin(-a) * b, lambda a, b: -(sin(a) * b)),
        (lambda a, b: cos(-a) * b, lambda a, b: cos(a) * b),
        (lambda a, b: a * -2.0 + b, lambda a, b: b - 2.0 * a),
        (lambda a, b: 0.0 - a * b, lambda a, b: -(a * b)),
    ],
)
def test_terms_that_are_bitwise_equal_are_shared(
    one: Callable[[Any, Any], Any], other: Callable[[Any, Any], Any]
) -> None:
    a, b = Trace(2).inputs
    assert one(a, b).place == other(a, b).place


def test_terms_that_may_differ_by_rounding_are_not_shared() -> None:
    a, b = Trace(2).inputs
    c: Ref = 0.1

    def place(x: Ref) -> int:
        assert isinstance(x, Sym)
        return x.place

    assert place((a + b) + c) != place(a + (b + c))
    assert place((a * b) * c) != place(a * (b * c))
    assert place(a * (b + c)) != place(a * b + a * c)
    assert place(a / b) != place(b / a)
    assert place(a - b) != place(b - a)
    assert place(a / 3.0) != place(a * (1.0 / 3.0))
    assert place((a + b) - b) != place(a)


def test_equal_terms_are_computed_once() -> None:
    assert nodes(2, lambda q: sin(q[0]) * q[1] + sin(q[0]) * q[1]).count("sin") == 1
    assert sorted(nodes(2, lambda q: (q[0] + q[1]) * (q[1] + q[0]))) == ["add", "mul"]


def test_symbols_mix_with_numbers_on_either_side() -> None:
    program = record(1, lambda q: [[2.0 - q[0], 2.0 / q[0], 2.0 + q[0], 2 * q[0], q[0] - 2, q[0] / 2]])
    assert len(program.outputs[0]) == 6


def test_division_of_numbers_by_zero_is_told_while_tracing() -> None:
    with pytest.raises(ZeroDivisionError):
        record(1, lambda q: [[q[0] * (1.0 / 0.0)]])
