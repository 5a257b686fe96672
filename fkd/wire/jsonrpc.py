"""JSON-RPC 2.0: bytes of one message -> request; result or error -> bytes of the reply. Knows no methods.

Source: the JSON-RPC 2.0 specification, sections 4 to 6; RFC 8259 (no NaN) and RFC 7493 (no duplicate members).
"""

from __future__ import annotations

import json
import re
from typing import Literal

import msgspec
from msgspec import Raw

from fkd.errors import FkdError, InvalidParams, InvalidRequest, ParseError, cut

MAX_ID = 512  # bytes; an id is a handle, not a document
MAX_DIGITS = 64  # of a number used as an id: beyond what any client can hold exactly
MAX_DEPTH = 64  # levels of nesting
LONG = 4 << 10  # bytes from which on a quick look is worth while
NULL = b"null"
ABSENT = Raw()


class Request(msgspec.Struct, gc=False):
    """One request as it came. `params` and `id` keep their bytes; an empty one was absent."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Raw = ABSENT
    id: Raw = ABSENT


class _Loose(msgspec.Struct, gc=False):
    """The same members with nothing asked of them, to say what is wrong."""

    jsonrpc: Raw = ABSENT
    method: Raw = ABSENT
    params: Raw = ABSENT
    id: Raw = ABSENT


_request = msgspec.json.Decoder(Request)
_loose = msgspec.json.Decoder(_Loose)
_any = msgspec.json.Decoder()
_raw = msgspec.json.Decoder(Raw)
_batch = msgspec.json.Decoder(list[Raw])
encode = msgspec.json.Encoder().encode


def decode_request(line: bytes) -> tuple[Request, bytes]:
    """One JSON object -> request and its id's bytes (b"" for a notification).

    Raises ParseError or InvalidRequest; the error's `id` attribute is the id to answer with.
    """
    try:
        request = _request.decode(line)
        ident = bytes(request.id)
        if not line.isascii():
            line.decode()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise _diagnose(line, e) from None
    if ident and not (ident.isdigit() and len(ident) <= MAX_DIGITS):
        _check_id(ident)
    # Colons beyond those of the members just read: objects inside, or members that are not ours. The rest has none.
    if line.count(b":") > 2 + bool(request.params) + bool(ident):
        if too_deep(line):
            raise _with_id(_parse_error(RecursionError()), NULL)
        try:
            if len(line) < LONG or not _all_names_differ(line):
                _once.decode(line.decode())
        except _Twice:
            _refuse_duplicates(line, ident)
    return request, ident


def decode_batch(line: bytes) -> list[Raw]:
    """The members of a batch, each for `decode_request`. Raises ParseError or InvalidRequest (empty batch)."""
    try:
        line.decode()
        members = _batch.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise _with_id(_parse_error(e), NULL) from None
    if not members:
        raise _with_id(InvalidRequest("an empty batch", reason="batch-empty", expected="at least one request"), NULL)
    return members


def reply(result: bytes, ident: bytes) -> bytes:
    """The reply's line: `result` is JSON already, `ident` the id as it was sent."""
    return b'{"jsonrpc":"2.0","result":%b,"id":%b}\n' % (result, ident)


def long_reply(result: list[bytes], ident: bytes) -> list[bytes]:
    """The reply's line in pieces, for a result in pieces."""
    return [b'{"jsonrpc":"2.0","result":', *result, b',"id":%b}\n' % ident]


def error_reply(error: FkdError, ident: bytes) -> bytes:
    """The error reply's line."""
    body = {"code": error.code, "message": error.message, "data": {"reason": error.reason, **error.data}}
    try:
        text = encode(body)
    except (TypeError, ValueError, RecursionError):  # data from deep inside that JSON cannot say
        body["data"] = {"reason": error.reason}
        body["message"] = error.message.encode(errors="replace").decode()  # names of files may not be UTF-8
        text = encode(body)
    return b'{"jsonrpc":"2.0","error":%b,"id":%b}\n' % (text, ident)


def error_id(error: FkdError) -> bytes:
    """The id that a decoding error is to be answered with."""
    return getattr(error, "ident", NULL)


def _with_id(error: FkdError, ident: bytes) -> FkdError:
    error.ident = ident  # type: ignore[attr-defined]
    return error


def _parse_error(e: Exception) -> ParseError:
    if isinstance(e, RecursionError):
        return ParseError(f"nested deeper than {MAX_DEPTH} levels", reason="too-deep", expected=f"at most {MAX_DEPTH} levels")
    if isinstance(e, UnicodeDecodeError):
        return ParseError(f"not UTF-8: byte {e.start} is {e.object[e.start]:#04x}", reason="not-utf8", expected="UTF-8")
    return ParseError(f"not JSON: {e}", expected="one JSON value a line")


def _diagnose(line: bytes, e: Exception) -> FkdError:
    """Why `line` is no request: not JSON at all, or JSON of the wrong shape (then with its id, if that is sound)."""
    try:
        line.decode()
        if not isinstance(e, msgspec.ValidationError):
            return _with_id(_parse_error(e), NULL)
        _raw.decode(line)  # the first error may have hidden a worse one behind it
        if too_deep(line):
            return _with_id(_parse_error(RecursionError()), NULL)
        loose = _loose.decode(line)
    except msgspec.ValidationError:  # not an object
        return _with_id(InvalidRequest("a request is a JSON object", path="$", expected="an object", got=kind(line)), NULL)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as worse:
        return _with_id(_parse_error(worse), NULL)
    ident = bytes(loose.id)
    try:
        if ident:
            _check_id(ident)
    except InvalidRequest as bad_id:
        return bad_id
    if bytes(loose.jsonrpc) != b'"2.0"':
        got = kind(bytes(loose.jsonrpc)) if loose.jsonrpc else "nothing"
        error = InvalidRequest('"jsonrpc" must be "2.0"', path="$.jsonrpc", expected='"2.0"', got=got)
    elif not loose.method:
        error = InvalidRequest("the request names no method", path="$.method", expected="a string", got="nothing")
    else:
        got = kind(bytes(loose.method))
        error = InvalidRequest("the method's name must be a string", path="$.method", expected="a string", got=got)
    # Without a readable request there is no telling a notification from a mistake, so even those are answered.
    return _with_id(error, ident or NULL)


def _check_id(ident: bytes) -> None:
    """Ids are strings, numbers or null, and come back byte for byte."""
    first = ident[:1]
    number = first in b"-0123456789" and len(ident) <= MAX_DIGITS and abs(float(ident)) < 1e308
    string = first == b'"' and len(ident) <= MAX_ID
    if not (number or string or ident == NULL):
        expected = f"a string of at most {MAX_ID} bytes, a number of at most {MAX_DIGITS} digits, or null"
        raise _with_id(InvalidRequest("the id cannot be used", reason="id", path="$.id", expected=expected, got=kind(ident)), NULL)


def kind(value: bytes) -> str:
    """What sort of JSON value these bytes are, in words; short ones are quoted."""
    value = value.strip()
    first = value[:1]
    if first == b"{":
        return "an object"
    if first == b"[":
        return "an array"
    if len(value) > 40:
        return "a string of " + str(len(value)) + " bytes" if first == b'"' else f"a number of {len(value)} digits"
    return value.decode(errors="replace")


_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NO_BRACKETS_OR_QUOTES = bytes(set(range(256)) - set(b'[]{}"'))
_PLAIN_STRINGS = re.compile(rb'"[^"]*+"')
# Possessive (*+): no way back is kept, which for a string of a megabyte would take a hundred.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRINGS = re.compile(_STRING)
_TOKEN = re.compile(rb"[{}]|" + _STRING + rb"(\s*+:)?")
_NAMES = re.compile(rb"(" + _STRING + rb")\s*+(:?)")


def too_deep(text: bytes) -> bool:
    """Whether `text`, which is JSON, is nested deeper than MAX_DEPTH. No loop over its letters: it may be a megabyte."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    if b"\\" in text:
        brackets = _STRINGS.sub(b"", text).translate(_BRACKETS, _NO_BRACKETS)
    else:  # the same three times as fast, where all quotes are those of strings
        brackets = _PLAIN_STRINGS.sub(b"", text.translate(_BRACKETS, _NO_BRACKETS_OR_QUOTES))
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")  # takes the innermost level away
        if not brackets:
            return False
    return True


def _all_names_differ(line: bytes) -> bool:
    """Whether no two members have one name, not even of different objects: then none is given twice.

    For a megabyte of numbers with a few names a tenth of what reading them takes.
    """
    names = [name for name, colon in _NAMES.findall(line) if colon]
    return len(set(names)) == len(names) and not any(b"\\" in name for name in names)


class _Twice(Exception):
    """An object has a member twice."""


def _unique(pairs: list[tuple[str, object]]) -> int:
    if len(dict(pairs)) != len(pairs):
        raise _Twice
    return 0


# The fastest there is that sees every pair; numbers are not worth converting. What it finds, the walk below names.
_once = json.JSONDecoder(object_pairs_hook=_unique, parse_int=len, parse_float=len)


def _refuse_duplicates(line: bytes, ident: bytes) -> None:
    """Raise where an object of the message names a member twice."""
    open_objects: list[set[str]] = []
    for token in _TOKEN.finditer(line):
        text = token.group()
        if text == b"{":
            open_objects.append(set())
        elif text == b"}":
            if open_objects:
                open_objects.pop()
        elif token.group(1) is not None and open_objects:
            name = _any.decode(text[: -len(token.group(1))])
            if name in open_objects[-1]:
                outer = len(open_objects) == 1
                name = cut(name)
                message = f"the member `{name}` is given twice"
                error: FkdError = (
                    InvalidRequest(message, reason="duplicate-member", path=f"$.{name}", expected="each member once", got="twice")
                    if outer
                    else InvalidParams(message, reason="duplicate-member", path=f"$.params..{name}", expected="each member once", got="twice")
                )
                raise _with_id(error, NULL if outer else ident)
            open_objects[-1].add(name)
