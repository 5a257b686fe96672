"""The reference of the wire as an OpenRPC document, made of what the code says: methods, parameters, results, errors.

Source: the OpenRPC specification 1.3.2, whose schemas are JSON Schema, draft 7.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Mapping
from typing import Any

import msgspec

from fkd import errors
from fkd.wire.answers import ANSWERS, Answer
from fkd.wire.examples import BY_POSITION, EXAMPLES
from fkd.wire.results import PoseParts, RosPose

VERSION = "1.3.2"
REF = "#/components/schemas/{name}"
# What the members of an error's data mean, whatever the error.
DATA = {
    "reason": "why, as a stable word for programs",
    "path": "where in the request, as `$.params.q[3]`",
    "expected": "what would be right there",
    "got": "what was there",
    "name": "the name that is not known",
    "did_you_mean": "the nearest name that is, if one is near",
    "candidates": "the names that there are",
    "nearest": "the best configuration that was found: `q`, its `pose`, `position_error` (m), `orientation_error` (rad)",
    "position_error": "the nearest's, m",
    "orientation_error": "the nearest's, rad",
    "iterations": "steps of the search",
    "restarts": "starts beside the first",
    "method": "analytic or numeric",
    "limit": "the limit that was passed",
    "member": "of the bundle",
    "members": "of the bundle",
    "file": "of the description",
    "line": "in that file",
    "findings": "all that `check` would say",
}
DESCRIPTION = """\
JSON-RPC 2.0 over a Unix socket (SOCK_STREAM), UTF-8. A message a line; or, on a connection whose first byte is a C, behind
`Content-Length` headers as language servers have them. Replies keep the order of the requests of a connection. An id is a
string, a number or null, and comes back byte for byte. Batches and notifications are as the specification says.

Lengths are in metre, angles in radian. `T_base_tip` takes tip coordinates into base; matrices are row-major. The
configuration q is all independent joints (not fixed, no followers) in the order that `model` says. NaN and infinity appear
in neither direction.

Parameters by name are the full form. Where a method also takes them by position, `x-by-position` says how: `params` is the
schema of the whole array, `result` that of its answer. A parameter that is not known is an error, and so is a member given
twice.

Before any method, a message can be refused as no JSON (-32700), no request (-32600), of no known method (-32601), or too
large (-32031); and a connection, as one too many (-32030)."""


def document(
    methods: Mapping[str, Callable[..., Any]], parameters: Mapping[str, type[msgspec.Struct]], version: str
) -> Generator[None, None, dict[str, Any]]:
    """The document on these methods, their parameters by name, in steps of some 0.5 ms.

    version: of fkd.
    """
    components: dict[str, Any] = {}

    def schema(type_: Any) -> Any:
        (found,), more = msgspec.json.schema_components([type_], ref_template=REF)
        components.update(more)
        return found

    for part in (PoseParts, RosPose):  # which no other type names
        schema(part)
    shapes = {}
    for name, shape in parameters.items():
        schema(shape)
        shapes[name] = components.pop(shape.__name__)
        yield
    answers = {}
    for name, answer in ANSWERS.items():
        answers[name] = _answered(name, answer, *map(schema, (answer.result, *(answer.by_position or ()))))
        yield
    entries = []
    for name, function in methods.items():
        entries.append(_method(name, function, shapes.get(name, {})) | answers.get(name, {}))
        yield
    reference: dict[str, Any] = _draft7({
        "openrpc": VERSION,
        "info": {"title": "fkd", "version": version, "description": DESCRIPTION, "license": {"name": "BSD-3-Clause"}},
        "servers": [{"name": "socket", "url": "unix:/run/fkd/fkd.sock", "summary": "where it is, unless the operator says otherwise"}],
        "methods": entries,
        "components": {"schemas": components, "errors": _errors()},
    })  # fmt: skip
    return reference


def _method(name: str, function: Callable[..., Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of any method: its name, what its docstring says, its parameters."""
    summary, _, description = (inspect.getdoc(function) or "").partition("\n\n")
    said = [" ".join(text.split()) for text in (description, shape.get("description", "")) if text]
    params = []
    for member, schema in shape.get("properties", {}).items():
        about = [s["description"] for s in (schema, *schema.get("anyOf", ())) if "description" in s]
        params.append({"name": member, "description": " ".join(about[:1]), "required": member in shape.get("required", ()), "schema": schema})
    return {"name": name, "summary": " ".join(summary.split()), "description": "\n\n".join(said),
            "paramStructure": "by-name" if params else "either", "params": params}


def _answered(name: str, answer: Answer, result: Any, *by_position: Any) -> dict[str, Any]:
    """What answers.py and examples.py say of a method."""
    kinds: list[type[errors.FkdError]] = [errors.InvalidParams, *answer.errors, errors.InternalError]
    entry: dict[str, Any] = {
        "result": {"name": "result", "schema": result},
        "errors": [{"$ref": f"#/components/errors/{kind.__name__}"} for kind in kinds],
        "examples": [
            {"name": title, "params": [{"name": k, "value": v} for k, v in params.items()], "result": {"name": "result", "value": value}}
            for title, params, value in EXAMPLES.get(name, ())
        ],
    }  # fmt: skip
    if answer.either:
        entry["paramStructure"] = "either"
    if by_position:
        entry["x-by-position"] = {"params": by_position[0], "result": by_position[1]}
        if name in BY_POSITION:
            entry["x-by-position"]["example"] = dict(zip(("params", "result"), BY_POSITION[name], strict=True))
    return entry


def _errors() -> dict[str, Any]:
    """The table at the head of errors.py."""
    found = {}
    for name, code, when, data in re.findall(r"^\| `(\w+)` +\| (-\d+) \| (.*?) *\| (.*?) *\|$", errors.__doc__ or "", re.MULTILINE):
        members = ["reason", *re.findall(r"`(\w+)`", data)]
        found[name] = {"code": int(code), "message": when, "data": {member: DATA.get(member, "") for member in members}}
    return found


def _draft7(value: Any) -> Any:
    """The same without anything beside a `$ref`, where draft 7 would not heed it."""
    if isinstance(value, list):
        return [_draft7(v) for v in value]
    if not isinstance(value, dict):
        return value
    made = {k: _draft7(v) for k, v in value.items()}
    if isinstance(made.get("$ref"), str) and len(made) > 1:
        return {"allOf": [{"$ref": made.pop("$ref")}], **made}
    return made
