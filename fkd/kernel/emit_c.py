"""Programs -> one C99 header and one source: self-contained but for <math.h>, without malloc, state or locks.

Whoever calls it may have any names: what becomes an identifier, a string literal or a comment is made safe here.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from fkd.kernel.program import Program

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
LONGEST = 40  # characters of an identifier that come from one name
LONGEST_STRING = 4095  # bytes of a literal that every C99 compiler must take


@dataclass(frozen=True, slots=True)
class CFunction:
    """`void PREFIX_name(const real *q, real *output ...)`: one pointer for each output of the program."""

    name: str
    program: Program
    outputs: tuple[str, ...]
    doc: Sequence[str]


@dataclass(frozen=True, slots=True)
class CTable:
    """A constant array PREFIX_name of strings or of numbers, which may be infinite."""

    name: str
    values: Sequence[str] | Sequence[float]
    doc: str


def emit_c(
    prefix: str, functions: Sequence[CFunction], tables: Sequence[CTable], macros: Sequence[tuple[str, int | str]],
    comment: Sequence[str], real: str = "double",
) -> tuple[str, str]:  # fmt: skip
    """The header and the source, PREFIX_fk.h and PREFIX_fk.c.

    prefix: an identifier, as `identifier` gives it; macros: PREFIX_NAME and its value; comment: the lines at the head
    of both; real: "double" or "float".
    Raises ValueError for a constant beyond the range of a float, or a string longer than C99 allows.
    """
    tables = [t for t in tables if t.values]  # C has no arrays of length 0
    kind = f"{prefix}_real"
    guard = f"{prefix.upper()}_FK_H"
    shorter, longer = [*_comment(comment), ""], [*_comment(comment), ""]
    shorter += [f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    shorter += [f"typedef {real} {kind};", ""]
    for name, value in macros:
        shorter.append(f"#define {prefix.upper()}_{name} {_string(value) if isinstance(value, str) else value}")
    longer += ["#include <math.h>", "", f'#include "{prefix}_fk.h"', ""]
    for table in tables:
        strings = isinstance(table.values[0], str)
        left = f"const {'char *const' if strings else kind} {prefix}_{table.name}[{len(table.values)}]"
        shorter += ["", *_comment([table.doc]), f"extern {left};"]
        texts = [_string(v) if isinstance(v, str) else _bound(v, real) for v in table.values]
        longer += [f"{left} = {{", *(f"    {text}," for text in texts), "};", ""]
    for function in functions:
        parameters = ", ".join(f"{kind} *{name}" for name in function.outputs)
        head = f"void {prefix}_{function.name}(const {kind} *q, {parameters})"
        shorter += ["", *_comment(function.doc), f"{head};"]
        longer += [head, "{", *_body(function, kind, real), "}", ""]
    shorter += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(shorter), "\n".join(longer)


def _body(function: CFunction, kind: str, real: str) -> list[str]:
    """One statement an operation. All of q is read before anything is written, so the two may overlap."""
    program, suffix = function.program, "f" if real == "float" else ""
    text: list[str] = []  # what stands for each node
    lines: list[str] = []
    for place, (op, a, b) in enumerate(program.nodes):
        if op == "const":
            number = _number(program.constants[place], real)
            text.append(f"({number})" if number.startswith("-") else number)
            continue
        if op == "var":
            expression = f"q[{a}]"
        elif op == "neg":
            expression = f"-{text[a]}"
        elif op in ("sin", "cos"):
            expression = f"{op}{suffix}({text[a]})"
        else:
            expression = f"{text[a]} {SIGNS[op]} {text[b]}"
        text.append(f"t{place}")
        lines.append(f"    const {kind} t{place} = {expression};")
    if not any(op == "var" for op, _, _ in program.nodes):
        lines.append("    (void)q;")
    for name, group in zip(function.outputs, program.outputs, strict=True):
        lines += [f"    {name}[{i}] = {text[place]};" for i, place in enumerate(group)] or [f"    (void){name};"]
    return lines


def identifier(text: str, otherwise: str = "robot") -> str:
    """Any text -> lower-case letters, digits and single underscores, a letter first: a start for C identifiers.

    Keywords may come out: nothing is ever called by the prefix alone. `otherwise`: what stands for, or before, a text
    that begins with no letter.
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    plain = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")
    if not plain[:1].isalpha():
        plain = f"{otherwise}_{plain}"
    return plain[:LONGEST].rstrip("_")


def _number(value: float, real: str) -> str:
    """A literal of the type `real` with the digits that it needs."""
    if not isfinite(value):
        raise ValueError("a constant is beyond the range of a double")
    if real == "double":
        return repr(value)
    single = _single(value)
    if not isfinite(single):
        raise ValueError(f"the constant {value!r} is beyond the range of a float")
    shortest = next(x for x in (float(f"{single:.{n}g}") for n in range(1, 10)) if _single(x) == single)
    return f"{shortest!r}f"


def _bound(value: float, real: str) -> str:
    """A number of a table; one beyond the range of `real` bounds nothing there."""
    try:
        return _number(value, real)
    except ValueError:
        return ("-" if value < 0.0 else "") + ("HUGE_VALF" if real == "float" else "HUGE_VAL")


def _single(value: float) -> float:
    """The nearest float of 32 bits."""
    try:
        single: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return inf if value > 0.0 else -inf
    return single


def _string(text: str) -> str:
    """A string literal in UTF-8: ASCII alone in the source, no trigraphs."""
    data = text.encode()
    if len(data) > LONGEST_STRING:
        raise ValueError(f"the name `{text[:40]} ...` has {len(data)} bytes; C99 promises {LONGEST_STRING} in a string")
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data) + '"'


def _comment(lines: Sequence[str]) -> list[str]:
    """A block comment. Nothing in it can end it, open another, or act as a trigraph or a continued line."""
    plain = []
    for line in lines:
        line = "".join(c if " " <= c <= "~" and c != "\\" else f"<U+{ord(c):04X}>" for c in line)
        line = re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", line)
        plain.append(line.rstrip())
    if len(plain) == 1:
        return [f"/* {plain[0]} */"]
    return ["/*", *(f" * {line}".rstrip() for line in plain), " */"]
