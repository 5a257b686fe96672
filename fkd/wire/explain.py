"""Why parameters do not fit their type: msgspec's words -> InvalidParams with path, expected, got and the nearest name."""

from __future__ import annotations

import re
from typing import get_args, get_type_hints

import msgspec
from msgspec import Raw

from fkd.errors import InvalidParams, cut, did_you_mean, nearest
from fkd.wire.jsonrpc import kind
from fkd.wire.messages import Orientation, PoseObject

ROOT = "$.params"
WORDS = {"float": "a finite number", "int": "a number", "str": "a string", "bool": "true or false",
         "object": "an object", "array": "an array"}  # fmt: skip


def explain(e: Exception, params: Raw, method: str, shape: type[msgspec.Struct] | None) -> InvalidParams:
    """What was wrong with the params of `method`, whose by-name form is `shape`."""
    if isinstance(e, RecursionError):
        return InvalidParams("params are nested too deep", reason="too-deep", path=ROOT, expected="less nesting", got="more")
    text = bytes(params).strip()
    if text and text[:1] not in (b"[", b"{"):
        return InvalidParams("params must be an array or an object", reason="params-shape", path=ROOT,
                             expected="an array or an object", got=kind(text))
    message, _, where = str(e).partition(" - at `")
    path = ROOT + where.rstrip("`").removeprefix("$")
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL):
        return _unknown(found[1], path, method, shape)
    if found := re.fullmatch(r"Invalid enum value '(.*)'", message, re.DOTALL):
        return _choice(found[1], path, shape)
    if found := re.fullmatch(r"Expected `(.+)`, got `(.+)`", message):
        expected, got = _words(found[1]), _words(found[2])
        return InvalidParams(f"{path}: expected {expected}, got {got}", reason="wrong-type", path=path, expected=expected, got=got)
    if found := re.fullmatch(r"Object missing required field `(.+)`", message):
        return InvalidParams(f"{path} has no `{found[1]}`", reason="missing-parameter", path=path,
                             expected=f"the member `{found[1]}`", got=kind(text))
    too_large = "out of range" in message
    expected, got = ("a number within the range of a double", "a larger one") if too_large else ("what the method takes", kind(text))
    return InvalidParams(f"{path}: {message[:1].lower()}{message[1:]}", path=path, expected=expected, got=got)


def _unknown(name: str, path: str, method: str, shape: type[msgspec.Struct] | None) -> InvalidParams:
    """A member that is none of those that its object has."""
    if path != ROOT:  # the only objects inside are poses and their halves
        shape = Orientation if path.endswith(("position", "orientation")) else PoseObject
    known = shape.__struct_fields__ if shape else ()
    owner = method if path == ROOT else path
    return InvalidParams(
        f"{owner} takes no parameter `{cut(name)}`{did_you_mean(name, known)}", reason="unknown-parameter",
        path=f"{path}.{cut(name)}", expected=list(known), got=cut(name), did_you_mean=nearest(name, known),
    )


def _choice(word: str, path: str, shape: type[msgspec.Struct] | None) -> InvalidParams:
    """A word that is none of those that its member takes."""
    choices = [str(c) for c in get_args(get_type_hints(shape).get(path.rpartition(".")[2]))] if shape else []
    return InvalidParams(
        f"{path}: expected one of {', '.join(choices)}, got `{cut(word)}`{did_you_mean(word, choices)}",
        reason="unknown-choice", path=path, expected=choices, got=cut(word), did_you_mean=nearest(word, choices),
    )


def _words(kinds: str) -> str:
    """msgspec's name of a type, in JSON's words."""
    return " or ".join(dict.fromkeys(WORDS.get(k, k) for k in kinds.split(" | ")))
