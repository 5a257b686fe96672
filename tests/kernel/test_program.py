"""Programs: straight lines that hold what the outputs need, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fkd.kernel.program import Program, operands, record
from fkd.kernel.scalar import Ref, sin


def sound(program: Program) -> None:
    """Every node reads nodes before it, has a reader, and constants are kept beside."""
    for place, (op, a, b) in enumerate(program.nodes):
        assert all(0 <= p < place for p in operands(op, a, b))
        assert (op == "const") == (place in program.constants)
        if op == "var":
            assert 0 <= a < program.width
    assert all(n > 0 for n in program.uses)
    assert len(set(program.nodes) - {("const", 0, 0)}) + len(program.constants) == len(program.nodes)
    assert len(set(program.constants.values())) == len(program.constants)


def test_what_no_output_needs_is_left_out() -> None:
    def computation(q: Sequence[Ref]) -> list[list[Ref]]:
        unused = sin(q[0]) * 3.0
        for _ in range(10):
            unused = unused + q[1]
        return [[q[2] + 1.0]]

    program = record(3, computation)
    sound(program)
    assert [op for op, _, _ in program.nodes] == ["var", "const", "add"]
    assert program.width == 3


def test_outputs_keep_their_groups_and_order() -> None:
    program = record(2, lambda q: [[q[1], 1.0], [], [q[0], q[1], q[1]]])
    sound(program)
    assert [len(g) for g in program.outputs] == [2, 0, 3]
    assert program.outputs[0][0] == program.outputs[2][1] == program.outputs[2][2]
    assert program.nodes[program.outputs[2][0]] == ("var", 0, 0)
    assert program.constants == {program.outputs[0][1]: 1.0}


def test_uses_count_reads_by_nodes_and_outputs() -> None:
    program = record(1, lambda q: [[q[0] * q[0], q[0]]])
    uses = dict(zip((op for op, _, _ in program.nodes), program.uses, strict=True))
    assert uses == {"var": 3, "mul": 1}


def test_nothing_gives_an_empty_program() -> None:
    assert record(0, lambda _: []) == Program(0, (), {}, ())
    assert record(2, lambda _: [[]]) == Program(2, (), {}, ((),))


@given(
    st.lists(st.tuples(st.sampled_from("+-*/sn"), st.integers(0, 30), st.integers(0, 30)), max_size=40),
    st.integers(1, 4),
)
def test_any_computation_gives_a_sound_program(steps: list[tuple[str, int, int]], width: int) -> None:
    def computation(q: Sequence[Ref]) -> list[list[Ref]]:
        terms = [*q, 0.5, -2.0]
        for op, i, k in steps:
            x, y = terms[i % len(terms)], terms[k % len(terms)]
            if op == "/":
                terms.append(x / y if not isinstance(y, float) or y else x)
            else:
                terms.append({"+": lambda x=x, y=y: x + y, "-": lambda x=x, y=y: x - y, "*": lambda x=x, y=y: x * y,
                              "s": lambda x=x: sin(x), "n": lambda x=x: -x}[op]())  # fmt: skip
        return [terms[-3:], terms[:2]]

    sound(record(width, computation))
