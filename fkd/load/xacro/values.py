"""The values of expressions and properties, and how they become text, numbers and truth.

A value is None, bool, int, float, str, list, tuple, dict, range or one of the classes below. Nothing changes a list
or dict once it is made, so values are shared freely and none can hold itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fkd.load.xacro.budget import MAX_BITS, MAX_ITEMS, MAX_NESTING, MAX_STRING, Budget, Fault

Value = Any  # one of the kinds above; the evaluator, not the type checker, keeps it so


class YamlDict(dict[Value, Value]):
    """A mapping read from YAML (or made by `xacro.dotify`): its keys can also be written with a dot."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that expressions may call: `call(evaluator, *arguments, **keywords)`.

    `types` is what it stands for as the second argument of `isinstance`.
    """

    name: str
    call: Callable[..., Value]
    types: tuple[type, ...] = ()


@dataclass(frozen=True, slots=True)
class Namespace:
    """A fixed set of names behind a dot: `math`, `python`, `xacro`."""

    name: str
    members: Mapping[str, Value]


class Scope:
    """The properties and macros of one level: the document, a macro call, or an include with a name space.

    Names that are not here are looked up in `parent` (for macros in `macro_parent`), last in the fixed names of the
    language. `values` also holds blocks, under `*name` and `**name`, and the Scopes of name spaces.
    """

    __slots__ = ("host", "macro_parent", "macros", "named", "parent", "values")

    def __init__(self, host: Resolver, parent: Scope | None, macro_parent: Scope | None, named: bool = False) -> None:
        self.host, self.parent, self.macro_parent, self.named = host, parent, macro_parent, named
        self.values: dict[str, Value] = {}
        self.macros: dict[str, Any] = {}

    def lookup(self, name: str) -> Value:
        """The value of a name, computed now if it was not yet. Raises KeyError."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                value = scope.values[name]
                return scope.host.resolve(name, value, scope) if type(value) is Lazy else value
            scope = scope.parent
        return self.host.constants[name]

    def names(self) -> list[str]:
        """Every name that `lookup` would find."""
        return [n for level in self.levels() for n in level.values if n[0] != "*"] + list(self.host.constants)

    def levels(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def block(self, name: str) -> Any:
        """The block `*name` or `**name`; None if there is none."""
        return next((level.values[name] for level in self.levels() if name in level.values), None)

    def block_names(self) -> list[str]:
        """Every name that `block` would find, without its stars."""
        return [n.lstrip("*") for level in self.levels() for n in level.values if n[0] == "*"]

    def macro(self, name: str) -> Any:
        """The macro, or the Scope of a name space, that a name without dots means; None if there is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.macros:
                return scope.macros[name]
            scope = scope.macro_parent
        return None

    def macro_names(self) -> list[str]:
        """Every macro that `macro` would find."""
        names: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            names += scope.macros
            scope = scope.macro_parent
        return names


@dataclass(slots=True)
class Lazy:
    """The text of a property that nobody has asked for yet, and where it is defined."""

    text: str
    file: str
    line: int
    busy: bool = False


class Resolver(Protocol):
    """What a Scope needs of the expander: the fixed names, and a way to compute a property."""

    constants: Mapping[str, Value]

    def resolve(self, name: str, lazy: Lazy, scope: Scope) -> Value: ...


SCALARS = (str, int, float, bool, type(None), range)
SEQUENCES = (list, tuple)
MAPPINGS = (dict, YamlDict)


def weigh(value: Value, budget: Budget) -> int:
    """The number of entries and characters in a value, each shared part counted as often as it is reached.

    Called before anything that walks a whole value in C (comparing, hashing, printing): lists that share their parts
    can have 2^50 entries in 50 cells. Raises Fault if it is too big, too deep, or holds what is not data.
    """
    total = 0
    stack: list[tuple[Value, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        budget.step()
        kind = type(item)
        total += len(item) + 2 if kind is str else 8
        if kind in SEQUENCES or kind in MAPPINGS:
            if depth >= MAX_NESTING:
                raise Fault("xacro-budget", f"a value nested deeper than {MAX_NESTING}")
            budget.step(len(item))  # before the stack grows by as much
            stack.extend((part, depth + 1) for part in item)
            if kind in MAPPINGS:
                stack.extend((part, depth + 1) for part in item.values())
        elif kind not in SCALARS:
            raise Fault("xacro-expression", f"{describe(item)} is used where a value is expected")
        if total > MAX_STRING:
            raise Fault("xacro-budget", f"a value of more than {MAX_STRING} characters")
    return total


def keep(value: Value, budget: Budget) -> Value:
    """The value itself, once its own size is within limits and paid for. Raises Fault."""
    kind = type(value)
    if kind is float or kind is bool or value is None:
        return value
    if kind is int:
        bits = value.bit_length()
        if bits > MAX_BITS:
            raise Fault("xacro-budget", f"an integer of more than {MAX_BITS} bits")
        budget.hold(bits >> 3)
    elif kind is str:
        if len(value) > MAX_STRING:
            raise Fault("xacro-budget", f"a text of more than {MAX_STRING} characters")
        budget.hold(sys.getsizeof(value))
    elif kind in SEQUENCES or kind in MAPPINGS or kind is range:
        if len(value) > MAX_ITEMS:
            raise Fault("xacro-budget", f"a list of more than {MAX_ITEMS} entries")
        budget.hold(sys.getsizeof(value))
    elif kind is complex:
        raise Fault("xacro-expression", "the result is a complex number")
    return value


def show(value: Value, budget: Budget) -> str:
    """The text that a value leaves in the document. Raises Fault for what has none (a function)."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is float or kind is bool or value is None:
        return str(value)
    if kind is int:
        return str(keep(value, budget))
    weigh(value, budget)
    return str(keep(str(value), budget))


def short(text: str, limit: int = 120) -> str:
    """The text on one line, cut to `limit` characters, for messages."""
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def describe(value: Value) -> str:
    """A value's kind, for messages."""
    if isinstance(value, Function):
        return f"the function `{value.name}`"
    if isinstance(value, Namespace):
        return f"the namespace `{value.name}`"
    kinds = {Scope: "an included name space", YamlDict: "a dict", str: "a text", type(None): "None", int: "an int"}
    return kinds.get(type(value), f"a {type(value).__name__.lower()}")


def literal(value: Value) -> Value:
    """What a property's or parameter's text stands for: a number, a boolean, a quoted text, or itself.

    `1_0` stays a text, as do lists and dicts: those need `${}`.
    """
    if type(value) is not str:
        return value
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if "_" in value or len(value) > 1000:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return {"true": True, "True": True, "false": False, "False": False}.get(value, value)


def truth(value: Value) -> bool | None:
    """Whether a condition holds; None if the value is not a condition.

    Texts: true, True, false, False and integers alone; `0.0`, `yes` and the empty text are none. Other values: as in
    Python.
    """
    if type(value) is str:
        if value in ("true", "True"):
            return True
        if value in ("false", "False"):
            return False
        try:
            return bool(int(value)) if len(value) <= 100 else None
        except ValueError:
            return None
    if isinstance(value, SCALARS + SEQUENCES + MAPPINGS):
        return bool(value)
    return None
