"""The expression language of `${...}`: a part of Python's, evaluated by a walker of our own.

Names are looked up in the scopes of the description, attributes only in YAML mappings and namespaces, methods only in
a table: no attribute of a Python object is ever read. Every step and every value is paid for from a budget. Knows
nothing of XML and files.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from fkd.load.xacro.budget import MAX_BITS, MAX_ITEMS, MAX_STRING, Budget, Fault, suggest
from fkd.load.xacro.functions import PYTHON
from fkd.load.xacro.methods import method, percent
from fkd.load.xacro.syntax import parse
from fkd.load.xacro.values import (
    MAPPINGS,
    SEQUENCES,
    Function,
    Namespace,
    Scope,
    Value,
    YamlDict,
    describe,
    keep,
    short,
    weigh,
)

CACHE = 10_000  # parsed expressions of one expansion


class Names(Protocol):
    """Where an expression finds its names."""

    def lookup(self, name: str) -> Value: ...  # raises KeyError
    def names(self) -> Iterable[str]: ...


class Local:
    """The variables of a comprehension or lambda, in front of the names around it."""

    __slots__ = ("outer", "values")

    def __init__(self, outer: Names, values: dict[str, Value] | None = None) -> None:
        self.outer, self.values = outer, {} if values is None else values

    def lookup(self, name: str) -> Value:
        return self.values[name] if name in self.values else self.outer.lookup(name)

    def names(self) -> Iterable[str]:
        return [*self.values, *self.outer.names()]


class Evaluator:
    """Evaluates expressions against a budget; `host` is what functions reach the description through."""

    def __init__(self, budget: Budget, host: Any = None) -> None:
        self.budget, self.host = budget, host
        self._parsed: dict[str, ast.expr] = {}

    def evaluate(self, text: str, names: Names) -> Value:
        """The value of an expression. Raises Fault, whatever the text."""
        tree = self._parsed.get(text)
        if tree is None:
            tree = parse(text)
            self.budget.step(20 + len(text))
            if len(self._parsed) < CACHE:
                self._parsed[text] = tree
        try:
            return self.walk(tree, names)
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError) as e:
            message = short(str(e.args[-1] if e.args else ""), 200) or type(e).__name__
        raise Fault("xacro-expression", f"`{short(text)}` cannot be evaluated: {message}") from None

    def walk(self, node: ast.expr, names: Names) -> Value:
        self.budget.step()
        handler = _WALK.get(type(node))
        if handler is None:  # a part that may not stand alone: `*a`, `1:2`
            raise TypeError(f"{type(node).__name__} cannot stand here")
        return handler(self, node, names)

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Call a function of the description: one of our table, or a lambda."""
        self.budget.step()
        if isinstance(function, Function):
            return keep(function.call(self, *arguments, **keywords), self.budget)
        raise TypeError(f"{describe(function)} cannot be called")

    def iterate(self, value: Value) -> Iterator[Value]:
        """The entries of a value, each a step."""
        if type(value) not in (*SEQUENCES, *MAPPINGS, str, range):
            raise TypeError(f"{describe(value)} has no entries to go through")
        for item in value:
            self.budget.step()
            yield item

    def binary(self, op: type[ast.operator], left: Value, right: Value) -> Value:
        """`left op right`, refused before it is computed if the result would be too big."""
        if op is ast.Mod and type(left) is str:
            return keep(percent(self, left, right), self.budget)
        limit_growth(op, left, right)
        if type(left) is str or type(right) is str:
            self.budget.step(1 + (len(left) >> 10 if type(left) is str else 0))
        return keep(_BINARY[op](left, right), self.budget)

    def _attribute(self, node: ast.Attribute, names: Names) -> Value:
        return self.member(self.walk(node.value, names), node.attr)

    def member(self, value: Value, name: str) -> Value:
        """`value.name`, for the values that have names behind a dot."""
        if isinstance(value, Namespace):
            if name in value.members:
                return value.members[name]
            hint = suggest(name, value.members)
            raise Fault("xacro-undefined-property", f"`{value.name}` has no `{name}`{hint}")
        if isinstance(value, YamlDict):
            if name in value:
                return value[name]
            hint = suggest(name, [k for k in value if isinstance(k, str)])
            raise Fault("xacro-expression", f"the YAML mapping has no key `{name}`{hint}")
        if isinstance(value, Scope):  # the name space of an include
            try:
                return value.lookup(name)
            except KeyError:
                what = f"no property `{name}` in the included name space{suggest(name, value.names())}"
                raise Fault("xacro-undefined-property", what) from None
        if isinstance(value, dict):
            raise TypeError(f"this dict is not from YAML: write ['{name}'] for its key, or use xacro.dotify")
        raise TypeError(f"{describe(value)} has no attribute `{name}`")

    def _name(self, node: ast.Name, names: Names) -> Value:
        try:
            return names.lookup(node.id)
        except KeyError:
            known = [*names.names(), *(f"python.{n}" for n in PYTHON)]
            hint = f"; did you mean `python.{node.id}`?" if node.id in PYTHON else suggest(node.id, known)
            raise Fault("xacro-undefined-property", f"no property or parameter `{node.id}`{hint}") from None

    def _unary(self, node: ast.UnaryOp, names: Names) -> Value:
        value = self.walk(node.operand, names)
        return keep(_UNARY[type(node.op)](value), self.budget)

    def _binary(self, node: ast.BinOp, names: Names) -> Value:
        return self.binary(type(node.op), self.walk(node.left, names), self.walk(node.right, names))

    def _boolean(self, node: ast.BoolOp, names: Names) -> Value:
        stop = isinstance(node.op, ast.Or)
        value: Value = None
        for part in node.values:
            value = self.walk(part, names)
            if bool(value) is stop:
                break
        return value

    def _compare(self, node: ast.Compare, names: Names) -> Value:
        left = self.walk(node.left, names)
        result: Value = True
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.walk(part, names)
            for side in (left, right):
                kind = type(side)
                if kind is str or kind is range:  # `in` may walk it
                    self.budget.step(len(side) >> 4)
                elif kind in SEQUENCES or kind in MAPPINGS:
                    weigh(side, self.budget)
            result = _COMPARE[type(op)](left, right)
            if not result:
                return result
            left = right
        return result

    def _choice(self, node: ast.IfExp, names: Names) -> Value:
        return self.walk(node.body if self.walk(node.test, names) else node.orelse, names)

    def _spread(self, nodes: list[ast.expr], names: Names) -> list[Value]:
        values: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values.extend(self.iterate(self.walk(node.value, names)))
            else:
                values.append(self.walk(node, names))
        return values

    def _list(self, node: ast.List, names: Names) -> Value:
        return keep(self._spread(node.elts, names), self.budget)

    def _tuple(self, node: ast.Tuple, names: Names) -> Value:
        return keep(tuple(self._spread(node.elts, names)), self.budget)

    def _dict(self, node: ast.Dict, names: Names) -> Value:
        result: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:  # {**other}
                result.update(dict(self.walk(value, names)))
            else:
                result[self.key(self.walk(key, names))] = self.walk(value, names)
        return keep(result, self.budget)

    def key(self, value: Value) -> Value:
        """A value about to be hashed."""
        if type(value) is tuple:
            weigh(value, self.budget)
        return value

    def _subscript(self, node: ast.Subscript, names: Names) -> Value:
        value = self.walk(node.value, names)
        if type(value) not in (*SEQUENCES, *MAPPINGS, str, range):
            raise TypeError(f"{describe(value)} has no entries: `[...]` cannot be used on it")
        if isinstance(node.slice, ast.Slice):
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            index = slice(*(None if end is None else self.walk(end, names) for end in ends))
            return keep(value[index], self.budget)
        index = self.key(self.walk(node.slice, names))
        if isinstance(value, dict) and index not in value:
            hint = suggest(index, [k for k in value if isinstance(k, str)]) if isinstance(index, str) else ""
            raise Fault("xacro-expression", f"there is no key {short(repr(index))}{hint}")
        return value[index]

    def _call(self, node: ast.Call, names: Names) -> Value:
        function: Value = None
        if isinstance(node.func, ast.Attribute):
            owner = self.walk(node.func.value, names)
            function = method(owner, node.func.attr)
            if function is None:
                function = self.member(owner, node.func.attr)
        else:
            function = self.walk(node.func, names)
        keywords: dict[str, Value] = {}
        for word in node.keywords:
            value = self.walk(word.value, names)
            keywords.update({word.arg: value} if word.arg else value)
        if any(type(word) is not str or word.startswith("__") for word in keywords):
            raise TypeError("keywords must be names")
        return self.call(function, self._spread(node.args, names), keywords)

    def _lambda(self, node: ast.Lambda, names: Names) -> Value:
        spec = node.args
        if spec.defaults or spec.vararg or spec.kwonlyargs or spec.kwarg or spec.posonlyargs:
            raise TypeError("a lambda takes plain parameters only")
        words = [a.arg for a in spec.args]
        self.budget.hold(700)

        def run(evaluator: Evaluator, *arguments: Value) -> Value:
            if len(arguments) != len(words):
                raise TypeError(f"the lambda takes {len(words)} arguments, not {len(arguments)}")
            return evaluator.walk(node.body, Local(names, dict(zip(words, arguments, strict=True))))

        return Function("lambda", run)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, names: Names) -> Value:
        result: list[Value] = []
        for inner in self._rounds(node.generators, names):
            result.append(self.walk(node.elt, inner))
            if len(result) > MAX_ITEMS:
                break  # `keep` says why
        return keep(result, self.budget)

    def _dict_comprehension(self, node: ast.DictComp, names: Names) -> Value:
        rounds = self._rounds(node.generators, names)
        return keep({self.key(self.walk(node.key, n)): self.walk(node.value, n) for n in rounds}, self.budget)

    def _rounds(self, generators: list[ast.comprehension], names: Names) -> Iterator[Names]:
        if not generators:
            yield names
            return
        first, rest = generators[0], generators[1:]
        for item in self.iterate(self.walk(first.iter, names)):
            inner = Local(names)
            self._bind(first.target, item, inner.values)
            if all(self.walk(test, inner) for test in first.ifs):
                yield from self._rounds(rest, inner)

    def _bind(self, target: ast.expr, value: Value, into: dict[str, Value]) -> None:
        if isinstance(target, ast.Name):
            into[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, list(self.iterate(value)), strict=True):
                self._bind(part, item, into)
        else:
            raise TypeError("the variable of a comprehension must be a name")


def limit_growth(op: type[ast.operator], left: Value, right: Value) -> None:
    """Refuse an operation whose result alone would fill the memory. Raises Fault (`xacro-budget`)."""
    size = 0
    if op is ast.Mult:
        for one, other in ((left, right), (right, left)):
            if type(one) in (str, *SEQUENCES) and isinstance(other, int):
                size = len(one) * other
    elif op is ast.Add and type(left) is type(right) and type(left) in (str, *SEQUENCES):
        size = len(left) + len(right)
    elif isinstance(left, int) and isinstance(right, int):
        if op is ast.LShift and right > MAX_BITS:
            raise Fault("xacro-budget", f"an integer of more than {MAX_BITS} bits")
        if op is ast.Pow and right > 0 and (abs(left).bit_length() - 1) * right > MAX_BITS:
            raise Fault("xacro-budget", f"a power of more than {MAX_BITS} bits")
    if size > (MAX_ITEMS if type(left) in SEQUENCES or type(right) in SEQUENCES else MAX_STRING):
        raise Fault("xacro-budget", f"a value of {size} entries")


_BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, box: item in box, ast.NotIn: lambda item, box: item not in box,
}
_WALK: dict[type, Callable[[Evaluator, Any, Names], Value]] = {
    ast.Constant: lambda _evaluator, node, _names: node.value,
    ast.Name: Evaluator._name, ast.Attribute: Evaluator._attribute, ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary, ast.BoolOp: Evaluator._boolean, ast.Compare: Evaluator._compare,
    ast.IfExp: Evaluator._choice, ast.List: Evaluator._list, ast.Tuple: Evaluator._tuple, ast.Dict: Evaluator._dict,
    ast.Subscript: Evaluator._subscript, ast.Call: Evaluator._call, ast.Lambda: Evaluator._lambda,
    ast.ListComp: Evaluator._comprehension, ast.GeneratorExp: Evaluator._comprehension,
    ast.DictComp: Evaluator._dict_comprehension,
}
