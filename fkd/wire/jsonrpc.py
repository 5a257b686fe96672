"""JSON-RPC 2.0: bytes of one message -> request; result or error -> bytes of the reply. Knows no methods.

Source: the JSON-RPC 2.0 specification, sections 4 to 6; RFC 8259 (no NaN) and RFC 7493 (no duplicate members).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Literal

import msgspec
from msgspec import Raw

from fkd.errors import FkdError, InvalidParams, InvalidRequest, ParseError
from fkd.wire.nesting import MAX_DEPTH, examine, plainly_fine, tokens, tokens_in_turn, too_deep

MAX_ID = 512  # bytes; an id is a handle, not a document
MAX_DIGITS = 64  # of a number used as an id: beyond what any client can hold exactly
LONG = 1 << 10  # bytes of a message that are looked through at once; more may take longer than others should wait
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
_raw = msgspec.json.Decoder(Raw)
_batch = msgspec.json.Decoder(list[Raw])
encode = msgspec.json.Encoder().encode


def decode_request(line: bytes) -> tuple[Request, bytes, Generator[None, None, None] | None]:
    """One JSON object -> request, its id's bytes (b"" for a notification), and what is left to look at in steps, if any.

    Raises ParseError, InvalidRequest or InvalidParams (a member given twice), as do the steps; the error's `id` attribute
    is the id to answer with.
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
        if len(line) > LONG:
            return request, ident, _examined(tokens_in_turn(line), ident)
        if not plainly_fine(line):
            return request, ident, _examined(tokens(line), ident)
    return request, ident, None


def _examined(found: Iterable[bytes], ident: bytes) -> Generator[None, None, None]:
    """The steps of looking through these tokens; errors with the id to answer with."""
    try:
        yield from examine(found)
    except FkdError as e:
        raise _with_id(e, ident if isinstance(e, InvalidParams) else NULL) from None


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


def error_id(error: FkdError, otherwise: bytes = NULL) -> bytes:
    """The id that a decoding error is to be answered with; `otherwise` for other errors."""
    return getattr(error, "ident", otherwise)


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
        if len(line) <= LONG and too_deep(line):
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
