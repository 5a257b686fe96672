"""The scalars of YAML 1.1: how plain ones become numbers, booleans and texts, and how lines are folded.

Source: YAML 1.1 type repository (int, float, bool, null), restricted as PyYAML's SafeLoader restricts it: an exponent
needs a point before it and a sign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NoReturn

from fkd.load.xacro.values import Value

Refuse = Callable[[str], NoReturn]

_INT = re.compile(
    r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*(?P<sixty>(?::[0-5]?[0-9])+)?)"
)
_FLOAT = re.compile(
    r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?P<sixty>(?::[0-5]?[0-9])+)\.[0-9_]*"
    r"|[-+]?\.(?P<inf>inf|Inf|INF)|\.(?P<nan>nan|NaN|NAN)"
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9:.Zz \t+-]*")
_WORDS: dict[str, Value] = {
    **{w: None for n in ("null",) for w in (n, n.title(), n.upper())},
    **{w: True for n in ("yes", "true", "on") for w in (n, n.title(), n.upper())},
    **{w: False for n in ("no", "false", "off") for w in (n, n.title(), n.upper())},
    "~": None, "": None,
}
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "\\": "\\", "/": "/", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}
_WIDTHS = {"x": 2, "u": 4, "U": 8}
MAX_NUMBER = 400  # characters


def resolve(text: str, refuse: Refuse) -> Value:
    """The value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text in ("=", "<<") or _TIME.fullmatch(text):
        refuse(f"`{text}` is a time or an operator in YAML; quote it")
    if text[:1] in "+-.0123456789" and len(text) <= MAX_NUMBER and not _DAY.fullmatch(text):
        if found := _INT.fullmatch(text):
            return _int(text, found, refuse)
        if found := _FLOAT.fullmatch(text):
            return _float(text, found)
    return text


def tagged(tag: str, text: str, refuse: Refuse) -> Value:
    """The value of a scalar with a tag of YAML's own."""
    if tag == "!!str":
        return text
    value = resolve(text, refuse)
    if (tag == "!!float" and type(value) in (int, float)) or (tag == "!!int" and type(value) is int):
        return float(value) if tag == "!!float" else value
    refuse(f"the tag {tag} is not supported")


def _int(text: str, found: re.Match[str], refuse: Refuse) -> int:
    digits = text.replace("_", "").lstrip("+-")
    sign = -1 if text[0] == "-" else 1
    if found["sixty"]:
        return sign * round(_sexagesimal(digits, int))
    for prefix, base in (("0b", 2), ("0x", 16), ("0", 8)):
        if digits.startswith(prefix) and digits != "0":
            if digits == prefix:
                refuse(f"`{text}` is not a number")
            return sign * int(digits[len(prefix) :], base)
    return sign * int(digits)


def _float(text: str, found: re.Match[str]) -> float:
    sign = -1.0 if text[0] == "-" else 1.0
    digits = text.replace("_", "").lstrip("+-")
    if found["inf"] or found["nan"]:
        return sign * math.inf if found["inf"] else math.nan
    return sign * (_sexagesimal(digits, float) if found["sixty"] else float(digits))


def _sexagesimal(digits: str, kind: Callable[[str], float]) -> float:
    total: float = 0
    for part in digits.split(":"):
        total = total * 60 + kind(part)
    return total


def fold(lines: list[str], quoted: bool = False) -> str:
    """Join lines: one break is a blank, each further one a newline. The outer blanks of a quoted text are its own."""
    parts: list[str] = []
    last = len(lines) - 1
    breaks = 0
    for i, line in enumerate(lines):
        if quoted and last:
            line = line.rstrip(" \t") if i == 0 else line.lstrip(" \t") if i == last else line.strip(" \t")
        if i and not line and i < last:
            breaks += 1
            continue
        if i:
            parts.append("\n" * breaks if breaks else " ")
        parts.append(line)
        breaks = 0
    return "".join(parts)


def escape(inside: str, refuse: Refuse) -> str:
    """The text between double quotes, its lines folded and its escapes resolved."""
    lines = inside.split("\n")
    if any(line.endswith("\\") for line in lines[:-1]):
        refuse("an escaped line break is not supported")
    inside = fold(lines, quoted=True)
    parts: list[str] = []
    at = 0
    while (slash := inside.find("\\", at)) >= 0:
        parts.append(inside[at:slash])
        code = inside[slash + 1 : slash + 2]
        at = slash + 2
        if code in _WIDTHS:
            digits = inside[at : at + _WIDTHS[code]]
            at += _WIDTHS[code]
            if len(digits) != _WIDTHS[code] or not re.fullmatch("[0-9a-fA-F]+", digits) or int(digits, 16) > 0x10FFFF:
                refuse(f"`\\{code}{digits}` is not a character")
            parts.append(chr(int(digits, 16)))
        elif code in _ESCAPES:
            parts.append(_ESCAPES[code])
        else:
            refuse(f"`\\{code}` is no escape of YAML")
    return "".join(parts) + inside[at:]
