"""Symbols: scalars that, instead of computing, leave a trace of the computation. Knows nothing of robots.

A `Sym` is a number or a node of a `Trace`. Arithmetic on symbols folds constants and shares equal terms, and
every rule used here is exact in IEEE arithmetic (but for the sign of a zero), so that the traced program gives
bit for bit what the same code gives over floats.
"""

from __future__ import annotations

import math
from typing import Union

Node = tuple[str, int, int]  # operation and its operands: places in the trace; ("var", i, 0) reads q[i]
Ref = Union["Sym", float]


def sin(x: Ref) -> Ref:
    """sin over floats (rad) or symbols."""
    return x.trace.unary("sin", x) if isinstance(x, Sym) else math.sin(x)


def cos(x: Ref) -> Ref:
    """cos over floats (rad) or symbols."""
    return x.trace.unary("cos", x) if isinstance(x, Sym) else math.cos(x)


class Trace:
    """The growing list of nodes that symbols write themselves into. Constants are kept beside, by value."""

    def __init__(self, inputs: int) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[int, float] = {}  # node -> its value
        self._places: dict[Node, Sym] = {}
        self._constant_places: dict[float, Sym] = {}
        self.inputs: list[Ref] = [self._node("var", i, 0) for i in range(inputs)]

    def _node(self, op: str, a: int, b: int) -> Sym:
        key = (op, a, b)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = Sym(self, len(self.nodes))
            self.nodes.append(key)
        return found

    def constant(self, value: float) -> Sym:
        """The node of a constant; -0.0 becomes 0.0."""
        value += 0.0
        found = self._constant_places.get(value)
        if found is None:
            found = self._constant_places[value] = Sym(self, len(self.nodes))
            self.constants[found.place] = value
            self.nodes.append(("const", 0, 0))
        return found

    def place(self, x: Ref) -> int:
        return x.place if isinstance(x, Sym) else self.constant(x).place

    def operation(self, x: Sym) -> Node:
        return self.nodes[x.place]

    def at(self, place: int) -> Ref:
        """The symbol at a place, or its value if it is a constant."""
        if place in self.constants:
            return self.constants[place]
        return self._places[self.nodes[place]]

    def unary(self, op: str, x: Sym) -> Ref:
        if inner := self.negated(x):  # sin(-x) = -sin x, cos(-x) = cos x: exact in any libm worth its name
            return -self.unary(op, inner) if op == "sin" else self.unary(op, inner)
        return self._node(op, x.place, 0)

    def negated(self, x: Ref) -> Sym | None:
        """What x is the negative of, if x is a negation."""
        if isinstance(x, Sym):
            op, a, _ = self.nodes[x.place]
            if op == "neg":
                inner = self.at(a)
                assert isinstance(inner, Sym)
                return inner
        return None

    def add(self, x: Ref, y: Ref) -> Ref:
        if not isinstance(x, Sym):
            x, y = y, x
        if not isinstance(x, Sym):
            return x + y
        if not isinstance(y, Sym) and y == 0.0:
            return x
        if (m := self.negated(y)) is not None:
            return self.sub(x, m)
        if (m := self.negated(x)) is not None:
            return self.sub(y, m)
        a, b = sorted((x.place, self.place(y)))
        return self._node("add", a, b)

    def sub(self, x: Ref, y: Ref) -> Ref:
        if not isinstance(x, Sym) and not isinstance(y, Sym):
            return x - y
        if not isinstance(y, Sym) and y == 0.0:
            return x
        if not isinstance(x, Sym) and x == 0.0:
            return self.neg(y)
        if (m := self.negated(y)) is not None:
            return self.add(x, m)
        if (m := self.negated(x)) is not None:
            return self.neg(self.add(m, y))
        return self._node("sub", self.place(x), self.place(y))

    def neg(self, x: Ref) -> Ref:
        if not isinstance(x, Sym):
            return -x
        op, a, b = self.nodes[x.place]
        if op == "neg":
            return self.at(a)
        if op == "sub":
            return self._node("sub", b, a)
        return self._node("neg", x.place, 0)

    def mul(self, x: Ref, y: Ref) -> Ref:
        if not isinstance(x, Sym):
            x, y = y, x
        if not isinstance(x, Sym):
            return x * y
        if not isinstance(y, Sym):
            if y == 0.0:
                return 0.0
            if y == 1.0:
                return x
            if y < 0.0:  # one sign for constants, so that c*x and -c*x share
                return self.neg(self.mul(x, -y))
        if (m := self.negated(x)) is not None:
            return self.neg(self.mul(m, y))
        if (m := self.negated(y)) is not None:
            return self.neg(self.mul(x, m))
        a, b = sorted((x.place, self.place(y)))
        return self._node("mul", a, b)

    def div(self, x: Ref, y: Ref) -> Ref:
        if not isinstance(x, Sym) and not isinstance(y, Sym):
            return x / y
        if not isinstance(x, Sym) and x == 0.0:
            return 0.0
        if not isinstance(y, Sym) and y == 1.0:
            return x
        return self._node("div", self.place(x), self.place(y))


class Sym:
    """A scalar that is not known yet: a place in a trace. Behaves like a float in + - * / and negation."""

    __slots__ = ("place", "trace")

    def __init__(self, trace: Trace, place: int) -> None:
        self.trace = trace
        self.place = place

    def __add__(self, other: Ref) -> Ref:
        return self.trace.add(self, other)

    def __radd__(self, other: Ref) -> Ref:
        return self.trace.add(other, self)

    def __sub__(self, other: Ref) -> Ref:
        return self.trace.sub(self, other)

    def __rsub__(self, other: Ref) -> Ref:
        return self.trace.sub(other, self)

    def __mul__(self, other: Ref) -> Ref:
        return self.trace.mul(self, other)

    def __rmul__(self, other: Ref) -> Ref:
        return self.trace.mul(other, self)

    def __truediv__(self, other: Ref) -> Ref:
        return self.trace.div(self, other)

    def __rtruediv__(self, other: Ref) -> Ref:
        return self.trace.div(other, self)

    def __neg__(self) -> Ref:
        return self.trace.neg(self)
