"""Texts with `${...}` and `$(...)` in them, and what they stand for. Knows nothing of elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from fkd.load.xacro.budget import MAX_STRING, Budget, Fault, suggest
from fkd.load.xacro.expressions import CACHE, Evaluator, Names
from fkd.load.xacro.functions import MATH, PYTHON
from fkd.load.xacro.values import Function, Value, keep, short, show

MAX_PARTS = 20_000
COMMANDS = ("arg", "find", "dirname", "eval", "optenv")
# What XML 1.0 (section 2.2) forbids; Python's escapes could bring it in.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_FILE_URL = re.compile("file:///?package://")


@dataclass(frozen=True, slots=True)
class Piece:
    """One `${...}` or `$(...)`: its inside, whether it is an expression, and the lines before it in its text."""

    inside: str
    expression: bool
    line: int


def split(text: str) -> tuple[str | Piece, ...]:
    """Cut a text into plain parts and pieces to evaluate; `$${` and `$$(` stand for `${` and `$(`.

    A piece ends at the first closing brace or parenthesis, whatever it holds. Raises Fault (`xacro-expression`).
    """
    parts: list[str | Piece] = []
    at = line = counted = 0
    while (dollar := text.find("$", at)) >= 0:
        line += text.count("\n", counted, dollar)
        counted = dollar
        if dollar > at:
            parts.append(text[at:dollar])
        end = dollar + 1
        while text[end : end + 1] == "$":
            end += 1
        following = text[end : end + 1]
        opens = following in ("{", "(")
        if end - dollar > 1 and not opens:
            raise Fault("xacro-expression", f"`{short(text)}`: `$$` stands only before a brace or parenthesis")
        if len(parts) > MAX_PARTS:
            raise Fault("xacro-budget", f"a text of more than {MAX_PARTS} parts")
        if not opens:
            parts.append("$")
            at = end
        elif end - dollar > 1:
            at = end + 1
            parts.append(text[dollar + 1 : at])
        else:
            close = text.find("}" if following == "{" else ")", end)
            if close < 0:
                what = "`${` without its `}`" if following == "{" else "`$(` without its `)`"
                raise Fault("xacro-expression", f"`{short(text[dollar:])}`: {what}")
            parts.append(Piece(text[end + 1 : close], following == "{", line))
            at = close + 1
    if at < len(text):
        parts.append(text[at:])
    return tuple(parts)


class Texts:
    """Evaluates texts; `host` gives arguments and packages, and is told the line a piece is on."""

    def __init__(self, budget: Budget, host: Any) -> None:
        self.budget, self.host = budget, host
        self.evaluator = Evaluator(budget, host)
        self._split: dict[str, tuple[str | Piece, ...]] = {}

    def evaluate(self, text: str, names: Names) -> Value:
        """The value of a text: that of its one piece as it is, or the text with every piece put in. Raises Fault."""
        if "$" not in text:
            return text
        parts = self._split.get(text)
        if parts is None:
            self.budget.step(10 + (len(text) >> 4))
            parts = split(text)
            if len(self._split) < CACHE:
                self._split[text] = parts
        if len(parts) == 1:
            part = parts[0]
            if isinstance(part, Piece) and part.expression and "$" not in part.inside:  # most are; one frame less
                self.host.offset = part.line
                return self.evaluator.evaluate(part.inside, names)
            return self._value(part, names)
        shown = [show(self._value(p, names), self.budget) for p in parts]
        if sum(map(len, shown)) > MAX_STRING:
            raise Fault("xacro-budget", f"a text of more than {MAX_STRING} characters")
        return keep("".join(shown), self.budget)

    def string(self, text: str, names: Names) -> str:
        """The same as it stands in the document. Raises Fault if XML cannot hold it."""
        if "$" not in text:
            return text
        result = show(self.evaluate(text, names), self.budget)
        self.budget.step(1 + (len(result) >> 8))
        if _FORBIDDEN.search(result):
            raise Fault("xacro-expression", f"`{short(text)}` gives a character that XML cannot hold")
        # The folder of a package is itself a URL here; where a file system's path was meant to follow, it stands alone.
        return _FILE_URL.sub("package://", result) if "package://" in result else result

    def _value(self, part: str | Piece, names: Names) -> Value:
        if isinstance(part, str):
            return part
        self.host.offset = part.line
        inside = part.inside
        if "$" in inside:
            inside = show(self.evaluate(inside, names), self.budget)
        self.budget.step()
        return self.evaluator.evaluate(inside, names) if part.expression else self._substitute(inside)

    def _substitute(self, inside: str) -> str:
        """What `$(inside)` stands for."""
        if inside.startswith("eval "):
            return show(self.evaluator.evaluate(inside[5:], ArgumentNames(self.host)), self.budget)
        words = inside.split()
        if not words:
            return f"$({inside})"
        command, rest = words[0], words[1:]
        if command in ("arg", "find") and len(rest) != 1:
            raise Fault("xacro-expression", f"`$({short(inside)})`: {command} takes one name")
        if command == "arg":
            return self.host.argument(rest[0])  # type: ignore[no-any-return]
        if command == "find":
            return self.host.package(rest[0])  # type: ignore[no-any-return]
        if command == "dirname" and not rest:
            return self.host.folder()  # type: ignore[no-any-return]
        if command == "optenv" and rest:
            return " ".join(rest[1:])
        self._refuse(inside, command)

    def _refuse(self, inside: str, command: str) -> NoReturn:
        if command in ("env", "anon", "cwd"):
            raise Fault(
                "xacro-environment",
                f"`$({short(inside)})`: a model must not depend on the machine that reads it; use `$(arg ...)`, "
                "`$(find ...)` or `$(dirname)`",
            )
        known = f"; there are {', '.join(COMMANDS)}"
        hint = f"; did you mean `$(arg {command})`?" if command in self.host.arguments else suggest(command, COMMANDS)
        raise Fault("xacro-expression", f"`$({short(inside)})`: no such substitution{hint or known}")


class ArgumentNames:
    """The names of `$(eval ...)`: the arguments of the document as numbers and booleans, `arg(...)`, and math."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def lookup(self, name: str) -> Value:
        if name in _EVAL:
            return _EVAL[name]
        if name in self.host.arguments:
            return _converted(self.host.argument(name))
        return PYTHON[name]

    def names(self) -> Iterable[str]:
        return [*self.host.arguments, *_EVAL]


def _converted(text: str) -> Value:
    """An argument's text as a number or boolean, if it is one."""
    try:
        if len(text) <= 1000:
            return float(text) if "." in text else int(text)
    except ValueError:
        pass
    if len(text) <= 5:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


_EVAL: Mapping[str, Value] = {
    **MATH, "true": True, "false": False, "True": True, "False": False,
    "arg": Function("arg", lambda ev, name: _converted(ev.host.argument(name))),
    "find": Function("find", lambda ev, name: ev.host.package(name)),
    "dirname": Function("dirname", lambda ev: ev.host.folder()),
    "optenv": Function("optenv", lambda ev, name, default="": default),
}
