"""Why parameters do not fit: msgspec's words -> path, expected, got and the nearest name."""

from __future__ import annotations

import json
from typing import Literal

import msgspec
import pytest
from msgspec import Raw

from fkd.errors import InvalidParams
from fkd.wire.explain import explain


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    q: list[float]
    form: Literal["matrix", "pose"] = "matrix"
    deep: list[list[bool]] = []
    name: str | None = None


def why(params: bytes) -> InvalidParams:
    with pytest.raises((msgspec.DecodeError, RecursionError)) as failed:
        msgspec.json.decode(params, type=list[float] | Shape)
    error = explain(failed.value, Raw(params), "try", Shape)
    assert (error.code, type(error)) == (-32602, InvalidParams)
    assert {"expected", "got"} <= error.data.keys()
    return error


@pytest.mark.parametrize(
    ("params", "path", "reason"),
    [
        (b'{"q":[1,"x"]}', "$.params.q[1]", "wrong-type"), (b'{"q":7}', "$.params.q", "wrong-type"), (b'{"q":null}', "$.params.q", "wrong-type"),
        (b'{"q":[],"name":7}', "$.params.name", "wrong-type"), (b'{"q":[],"deep":[[true],[1]]}', "$.params.deep[1][0]", "wrong-type"),
        (b'[1,"x"]', "$.params[1]", "wrong-type"), (b"[true]", "$.params[0]", "wrong-type"), (b'{"q":[1e999]}', "$.params.q[0]", "invalid-params"),
        (b"[1e999]", "$.params[0]", "invalid-params"), (b"{}", "$.params", "missing-parameter"),
        (b'{"q":[],"z":1}', "$.params.z", "unknown-parameter"), (b'{"q":[],"":1}', "$.params.", "unknown-parameter"),
        (b'{"q":[],"a`b":1}', "$.params.a`b", "unknown-parameter"), (b'{"q":[],"a\\nb":1}', "$.params.a\nb", "unknown-parameter"),
        (b'{"q":[],"form":"mtx"}', "$.params.form", "unknown-choice"), (b'{"q":[],"form":7}', "$.params.form", "wrong-type"),
        (b"null", "$.params", "params-shape"), (b'"x"', "$.params", "params-shape"), (b"7", "$.params", "params-shape"),
        (b"[" * 100_000 + b"]" * 100_000, "$.params", "too-deep"),
    ],
)  # fmt: skip
def test_every_misfit_has_its_place_and_reason(params: bytes, path: str, reason: str) -> None:
    error = why(params)
    if reason == "too-deep" and error.reason == "wrong-type":
        return  # found at its first bracket, which is as good
    assert (error.data["path"], error.reason) == (path, reason)


@pytest.mark.parametrize(("params", "meant"), [(b'{"q":[],"Form":1}', "form"), (b'{"q":[],"form":"posse"}', "pose"), (b'{"q":[],"zzz":1}', None)])
def test_the_nearest_name_is_offered(params: bytes, meant: str | None) -> None:
    error = why(params)
    assert error.data.get("did_you_mean") == meant
    assert meant is None or f"`{meant}`" in error.message


@pytest.mark.parametrize("params", [b'{"q":[],"%b":1}', b'{"q":[],"form":"%b"}', b'{"q":"%b"}', b'"%b"'])
def test_long_words_do_not_come_back_at_length(params: bytes) -> None:
    error = why(params % (b"x" * 100_000))
    assert len(error.message) + len(json.dumps(error.data)) < 2000


def test_a_method_without_a_shape_is_explained_too() -> None:
    with pytest.raises(msgspec.ValidationError) as failed:
        msgspec.json.decode(b'{"q":[],"z":1}', type=Shape)
    error = explain(failed.value, Raw(b'{"q":[],"z":1}'), "ping", None)
    assert (error.reason, error.data["path"]) == ("unknown-parameter", "$.params.z")
