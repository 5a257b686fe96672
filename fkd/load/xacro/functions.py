"""What expressions may call: the functions and constants of the language, each bounded.

The names are those that xacro exposes. Where Python would give an iterator (`map`, `zip`, ...) these give a list, so a
property that holds one can be read twice.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from fkd.load.xacro.budget import Fault
from fkd.load.xacro.values import SCALARS, SEQUENCES, Function, Namespace, Value, YamlDict, show, weigh

if TYPE_CHECKING:
    from fkd.load.xacro.expressions import Evaluator

MAX_DIGITS = 1000  # of a number in a text, or to round to
MAX_FACTORIAL = 500
_ABSENT = object()  # what no expression can give


def _int(ev: Evaluator, value: Value = 0, base: int | None = None) -> Value:
    return int(_short_text(value)) if base is None else int(_short_text(value), base)


def _short_text(value: Value) -> Value:
    if type(value) is str and len(value) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} characters")
    return value


def _str(ev: Evaluator, value: Value = "") -> Value:
    return show(value, ev.budget)


def _repr(ev: Evaluator, value: Value) -> Value:
    weigh(value, ev.budget)
    return repr(value)


def _list(ev: Evaluator, value: Value = ()) -> Value:
    return list(ev.iterate(value))


def _tuple(ev: Evaluator, value: Value = ()) -> Value:
    return tuple(ev.iterate(value))


def _dict(ev: Evaluator, value: Value = (), /, **more: Value) -> Value:
    if isinstance(value, dict):
        ev.budget.step(len(value))
        return {**value, **more}
    pairs = [tuple(ev.iterate(pair)) for pair in ev.iterate(value)]
    return {**{ev.key(key): item for key, item in pairs}, **more}


def _range(ev: Evaluator, *ends: int) -> Value:
    return range(*ends)


def _map(ev: Evaluator, function: Value, *lists: Value) -> Value:
    return [ev.call(function, list(items), {}) for items in _rows(ev, lists)]


def _rows(ev: Evaluator, lists: tuple[Value, ...]) -> list[tuple[Value, ...]]:
    columns = [list(ev.iterate(items)) for items in lists]
    ev.budget.hold(8 * sum(map(len, columns)))
    return list(zip(*columns, strict=False))


def _zip(ev: Evaluator, *lists: Value, strict: bool = False) -> Value:
    if strict and len({len(items) for items in lists}) > 1:
        raise ValueError("zip: lists of different lengths")
    return _rows(ev, lists)


def _enumerate(ev: Evaluator, items: Value, start: int = 0) -> Value:
    return list(enumerate(ev.iterate(items), start))


def _filter(ev: Evaluator, function: Value, items: Value) -> Value:
    return [i for i in ev.iterate(items) if (i if function is None else ev.call(function, [i], {}))]


def _reversed(ev: Evaluator, items: Value) -> Value:
    return list(ev.iterate(items))[::-1]


def _sorted(ev: Evaluator, items: Value, *, key: Value = None, reverse: bool = False) -> Value:
    entries = list(ev.iterate(items))
    keys = _keys(ev, entries, key)
    order = sorted(range(len(entries)), key=keys.__getitem__, reverse=bool(reverse))
    return [entries[i] for i in order]


def _keys(ev: Evaluator, entries: list[Value], key: Value) -> list[Value]:
    keys = entries if key is None else [ev.call(key, [e], {}) for e in entries]
    ev.budget.step(weigh(keys, ev.budget) >> 3)  # a comparison costs as much as the entries are long
    return keys


def _extreme(pick: Callable[..., int]) -> Callable[..., Value]:
    def run(ev: Evaluator, *items: Value, key: Value = None, default: Value = _ABSENT) -> Value:
        entries = list(ev.iterate(items[0])) if len(items) == 1 else list(items)
        if not entries and default is not _ABSENT:
            return default
        keys = _keys(ev, entries, key)
        return entries[pick(range(len(entries)), key=keys.__getitem__)]

    return run


def _sum(ev: Evaluator, items: Value, start: Value = 0) -> Value:
    for item in ev.iterate(items):
        start = ev.binary(ast.Add, start, item)
    return start


def _product(ev: Evaluator, items: Value, start: Value = 1) -> Value:
    for item in ev.iterate(items):
        if isinstance(item, SCALARS) and not isinstance(item, (int, float)):
            raise TypeError("prod: a number is wanted")
        start = ev.binary(ast.Mult, start, item)
    return start


def _round(ev: Evaluator, number: Value, ndigits: int | None = None) -> Value:
    if isinstance(ndigits, int) and abs(ndigits) > MAX_DIGITS:
        raise ValueError(f"round: more than {MAX_DIGITS} digits")
    return round(number, ndigits)


def _isinstance(ev: Evaluator, value: Value, kinds: Value) -> Value:
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not all(isinstance(k, Function) and k.types for k in kinds):
        raise TypeError("isinstance: the second argument must be a type")
    return any(isinstance(value, k.types) for k in kinds)


def _combinatoric(name: str) -> Callable[..., Value]:
    function = getattr(math, name)

    def run(ev: Evaluator, *numbers: int) -> Value:
        if any(not isinstance(n, int) or abs(n) > MAX_FACTORIAL for n in numbers):
            raise ValueError(f"{name}: an integer up to {MAX_FACTORIAL} is wanted")
        return function(*numbers)

    return run


def _plain(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function of numbers whose cost does not depend on them, or of lists of floats."""

    def run(ev: Evaluator, *arguments: Value, **keywords: Value) -> Value:
        ev.budget.step(len(arguments) * len(arguments) >> 8)  # lcm and gcd of many integers
        for value in arguments:
            if type(value) in SEQUENCES:
                weigh(value, ev.budget)
        return function(*arguments, **keywords)

    return run


def _tokenize(ev: Evaluator, text: str, sep: str = ",; ", skip_empty: bool = True) -> Value:
    ev.budget.step(1 + len(text) // 4)
    if len(sep) > 64:
        raise ValueError("tokenize: too many separators")
    parts, last = [], 0
    for i, character in enumerate(text):
        if character in sep:
            parts.append(text[last:i])
            last = i + 1
    parts.append(text[last:])
    return [p for p in parts if p] if skip_empty else parts


def _dotify(ev: Evaluator, value: Value = (), /, **more: Value) -> Value:
    return _dotted(ev, _dict(ev, value, **more))


def _dotted(ev: Evaluator, value: Value) -> Value:
    weigh(value, ev.budget)
    if isinstance(value, dict):
        return YamlDict((k, _dotted(ev, v)) for k, v in value.items())
    return [_dotted(ev, v) for v in value] if type(value) is list else value


def _say(severity: str) -> Callable[..., Value]:
    def run(ev: Evaluator, *parts: Value, **_options: Value) -> Value:
        ev.host.say("xacro-message", severity, " ".join(show(p, ev.budget) for p in parts))
        return ""

    return run


def _fatal(ev: Evaluator, *parts: Value) -> Value:
    raise Fault("xacro-fatal", "the description gives up: " + " ".join(show(p, ev.budget) for p in parts))


def _functions(**calls: Callable[..., Value]) -> dict[str, Value]:
    types: dict[str, tuple[type, ...]] = {
        "int": (int,), "float": (float,), "str": (str,), "bool": (bool,), "list": (list,), "tuple": (tuple,),
        "dict": (dict,),
    }
    return {name: Function(name, call, types.get(name, ())) for name, call in calls.items()}


_OF_NUMBERS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh",
    "degrees", "dist", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmod", "frexp", "fsum",
    "gamma", "gcd", "hypot", "isclose", "isfinite", "isinf", "isnan", "isqrt", "lcm", "ldexp", "lgamma", "log",
    "log10", "log1p", "log2", "modf", "nextafter", "pow", "radians", "remainder", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc", "ulp",
)
MATH: Mapping[str, Value] = MappingProxyType(
    {name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")}
    | {
        name: Function(name, _plain(getattr(math, name)))
        for name in _OF_NUMBERS
        if hasattr(math, name)
    }
    | {name: Function(name, _combinatoric(name)) for name in ("comb", "factorial", "perm")}
    | _functions(prod=_product)
)
_DIRECT = _functions(
    list=_list, dict=_dict, map=_map, len=lambda ev, v: len(v), str=_str,
    float=lambda ev, v=0.0: float(v), int=_int, bool=lambda ev, v=False: bool(v),
    min=_extreme(min), max=_extreme(max), round=_round,
) | {"True": True, "False": False}
_DEPRECATED = _functions(sorted=_sorted, range=_range)
PYTHON: Mapping[str, Value] = MappingProxyType(
    _DIRECT | _DEPRECATED
    | _functions(
        abs=lambda ev, v: abs(v), all=lambda ev, v: all(ev.iterate(v)), any=lambda ev, v: any(ev.iterate(v)),
        divmod=lambda ev, a, b: divmod(a, b), enumerate=_enumerate, filter=_filter, isinstance=_isinstance,
        ord=lambda ev, v: ord(v), repr=_repr, reversed=_reversed, sum=_sum, tuple=_tuple, zip=_zip,
    )
)
_FILES = _functions(
    load_yaml=lambda ev, filename: ev.host.load_yaml(filename),
    abs_filename=lambda ev, filename: ev.host.absolute(filename),
    dotify=_dotify,
)
XACRO: Mapping[str, Value] = MappingProxyType(
    _FILES
    | _functions(
        arg=lambda ev, name: ev.host.argument(name), tokenize=_tokenize, fatal=_fatal, message=_say("info"),
        warning=_say("warning"), error=_say("warning"), print_location=lambda ev: "",
    )
)
CONSTANTS: Mapping[str, Value] = MappingProxyType(
    {**MATH, **_DIRECT, **_DEPRECATED, **_FILES}
    | {"math": Namespace("math", MATH), "python": Namespace("python", PYTHON), "xacro": Namespace("xacro", XACRO)}
)
