"""A straight-line program: what a trace leaves once only the outputs' terms are kept. Input to every emitter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fkd.kernel.scalar import Node, Ref, Trace


@dataclass(frozen=True, slots=True)
class Program:
    """`nodes[k]` = (operation, a, b) with a, b < k; `constants` by node; `outputs` are groups of nodes.

    Operations: var (reads q[a]), const, add, sub, mul, div, neg, sin, cos.
    """

    width: int
    nodes: tuple[Node, ...]
    constants: dict[int, float]
    outputs: tuple[tuple[int, ...], ...]

    @property
    def uses(self) -> list[int]:
        """How often each node is read, by other nodes and by the outputs."""
        count = [0] * len(self.nodes)
        for op, a, b in self.nodes:
            for place in operands(op, a, b):
                count[place] += 1
        for group in self.outputs:
            for place in group:
                count[place] += 1
        return count


def operands(op: str, a: int, b: int) -> tuple[int, ...]:
    """The places that an operation reads."""
    if op in ("var", "const"):
        return ()
    return (a,) if op in ("neg", "sin", "cos") else (a, b)


def record(width: int, computation: Callable[[Sequence[Ref]], Sequence[Sequence[Ref]]]) -> Program:
    """Run `computation` over symbols and keep what its results need.

    computation: q of `width` scalars -> groups of scalars, one group an output.
    """
    trace = Trace(width)
    groups = [[trace.place(x) for x in group] for group in computation(trace.inputs)]
    wanted = [False] * len(trace.nodes)
    for group in groups:
        for place in group:
            wanted[place] = True
    for place in range(len(trace.nodes) - 1, -1, -1):
        if wanted[place]:
            for operand in operands(*trace.nodes[place]):
                wanted[operand] = True
    new: dict[int, int] = {}
    nodes: list[Node] = []
    for place, (op, a, b) in enumerate(trace.nodes):
        if wanted[place]:
            new[place] = len(nodes)
            needs = [new[p] for p in operands(op, a, b)]
            nodes.append((op, needs[0], needs[-1] if len(needs) > 1 else 0) if needs else (op, a, b))
    constants = {new[p]: v for p, v in trace.constants.items() if wanted[p]}
    return Program(width, tuple(nodes), constants, tuple(tuple(new[p] for p in g) for g in groups))

