"""The methods of texts, lists, mappings and numbers that expressions may call, each bounded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fkd.load.xacro.budget import MAX_ITEMS, MAX_STRING, Fault
from fkd.load.xacro.values import MAPPINGS, Function, Value, weigh

if TYPE_CHECKING:
    from fkd.load.xacro.expressions import Evaluator

MAX_WIDTH = 1000  # of a padded or formatted field


def _join(ev: Evaluator, text: str, items: Value) -> Value:
    parts = list(ev.iterate(items))
    if sum(len(p) for p in parts if type(p) is str) + len(text) * len(parts) > MAX_STRING:
        raise Fault("xacro-budget", f"a text of more than {MAX_STRING} characters")
    return text.join(parts)


def _replace(ev: Evaluator, text: str, old: str, new: str, count: int = -1) -> Value:
    found = text.count(old)
    if len(text) + found * len(new) > MAX_STRING:
        raise Fault("xacro-budget", f"a text of more than {MAX_STRING} characters")
    return text.replace(old, new, count)


def _padded(name: str) -> Callable[..., Value]:
    def run(ev: Evaluator, text: str, width: int, *fill: str) -> Value:
        if not isinstance(width, int) or width > MAX_WIDTH:
            raise ValueError(f"{name}: a width of more than {MAX_WIDTH}")
        return getattr(str, name)(text, width, *fill)

    return run


def _of_text(name: str) -> Callable[..., Value]:
    function = getattr(str, name)

    def run(ev: Evaluator, text: str, *arguments: Value, **keywords: Value) -> Value:
        ev.budget.step(1 + (len(text) >> 6))
        result = function(text, *arguments, **keywords)
        if type(result) is list:
            if len(result) > MAX_ITEMS:
                raise Fault("xacro-budget", f"a list of more than {MAX_ITEMS} entries")
            ev.budget.hold(64 * len(result) + sys.getsizeof(text))  # its parts; `keep` counts the list alone
        return result

    return run


def _search(name: str) -> Callable[..., Value]:
    def run(ev: Evaluator, items: Value, *arguments: Value) -> Value:
        weigh(items, ev.budget)
        weigh(arguments, ev.budget)
        return getattr(items, name)(*arguments)  # `name` is ours: index or count

    return run


_PLAIN = (
    "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal",
    "isdigit", "isidentifier", "islower", "isnumeric", "isspace", "istitle", "isupper", "lower", "lstrip",
    "partition", "removeprefix", "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split",
    "splitlines", "startswith", "strip", "swapcase", "title", "upper",
)
_TEXT: Mapping[str, Callable[..., Value]] = {
    **{name: _of_text(name) for name in _PLAIN},
    **{name: _padded(name) for name in ("center", "ljust", "rjust", "zfill")},
    "join": _join, "replace": _replace,
}
_LIST: Mapping[str, Callable[..., Value]] = {
    "count": _search("count"), "index": _search("index"), "copy": lambda ev, items: items,
}
_DICT: Mapping[str, Callable[..., Value]] = {
    "get": lambda ev, items, key, default=None: items.get(ev.key(key), default),
    "items": lambda ev, items: [(key, items[key]) for key in ev.iterate(items)],
    "keys": lambda ev, items: list(ev.iterate(items)),
    "values": lambda ev, items: [items[key] for key in ev.iterate(items)],
    "copy": lambda ev, items: items,
}
_METHODS: Mapping[type, Mapping[str, Callable[..., Value]]] = {
    str: _TEXT, list: _LIST, tuple: _LIST, **dict.fromkeys(MAPPINGS, _DICT),
    float: {"is_integer": lambda ev, number: number.is_integer()},
}


def method(owner: Value, name: str) -> Function | None:
    """`owner.name` where it is a method of the language, ready to be called; else None."""
    table = _METHODS.get(type(owner))
    if table is None or name not in table:
        return None
    call = table[name]
    return Function(name, lambda ev, *arguments, **keywords: call(ev, owner, *arguments, **keywords))


_CONVERSION = re.compile(r"%(?:\([^()]*+\))?[-#0 +]*+(\*|\d++)?(?:\.(\*|\d++))?")


def percent(ev: Evaluator, text: str, values: Value) -> Value:
    """`text % values`, with the widths of its fields bounded."""
    weight = weigh(values, ev.budget)
    size = len(text)
    ev.budget.step(1 + (size >> 6))
    for found in _CONVERSION.finditer(text):
        for number in found.groups():
            if number == "*" or len(number or "") > 3:
                raise ValueError(f"a field wider than {MAX_WIDTH - 1} characters")
            size += int(number or 0)
        size += weight
    if size > MAX_STRING:
        raise Fault("xacro-budget", f"a text of more than {MAX_STRING} characters")
    return text % values
