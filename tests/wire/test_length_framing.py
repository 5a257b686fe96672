"""Content-Length frames: the same messages and replies as lines, however the bytes arrive; and headers that make no sense."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from fkd.errors import InvalidParams, TooLarge
from fkd.wire.connection import Connection
from fkd.wire.framing import MAX_HEADER_LINES, MAX_HEADERS, LengthFraming, OutOfStep

LIMIT = 200
MUCH = 1 << 30


def call(method: str, params: Raw) -> bytes:
    if method == "refuse":
        raise InvalidParams("no", path="$.params")
    return bytes(params) or b'"nothing"'


def frame(body: bytes, headers: bytes = b"Content-Length: %d\r\n") -> bytes:
    return (headers % len(body) if b"%d" in headers else headers) + b"\r\n" + body


def ask(ident: object, method: str = "echo", params: object = None) -> bytes:
    members = {"jsonrpc": "2.0", "method": method, "params": [1] if params is None else params}
    return json.dumps(members if ident is None else {**members, "id": ident}).encode()


def answers(stream: bytes, cuts: list[int] | None = None) -> tuple[bytes, bool]:
    """All that comes back for a stream that arrives in pieces, and whether it was lost."""
    places = sorted({0, len(stream), *(c % (len(stream) + 1) for c in cuts or [])})
    c = Connection(call, max_message=LIMIT)
    out = b""
    for a, b in pairwise(places):
        c.receive(stream[a:b])
        out += c.answer(MUCH)
        while c.more:
            out += c.answer(MUCH)
    c.finish()
    return out + c.answer(MUCH), c.lost


def bodies(out: bytes) -> list[object]:
    """Replies as a client reads them."""
    found = []
    while out:
        head, _, rest = out.partition(b"\r\n\r\n")
        assert head.startswith(b"Content-Length: ")
        size = int(head[16:])
        found.append(json.loads(rest[:size]))
        out = rest[size:]
    return found


STREAM = b"".join([
    frame(ask(1)), frame(ask(None)), frame(ask("two", "refuse")), frame(b"nonsense"), frame(b"[" + ask(3) + b"," + ask(4) + b"]"),
    frame(ask(5), b"content-length:%d  \r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n"),
    frame(b"x" * (LIMIT + 50)), frame(b"\n" + ask(6) + b"\n"), frame("ü".encode() * 20), frame(ask(7)),
])  # fmt: skip


def summary(replies: list[object]) -> list[object]:
    return [[x["id"] for x in r] if isinstance(r, list) else (r["id"], r.get("error", {}).get("code")) for r in replies]  # type: ignore[index,union-attr]


@given(st.lists(st.integers(0, 1 << 16), max_size=30))
@settings(max_examples=60)
def test_any_way_to_cut_the_stream_gives_the_same_replies(cuts: list[int]) -> None:
    out, lost = answers(STREAM, cuts)
    assert summary(bodies(out)) == [
        (1, None), ("two", -32602), (None, -32700), [3, 4], (5, None), (None, -32031), (6, None), (None, -32700), (7, None),
    ]  # fmt: skip
    assert not lost


def test_byte_by_byte() -> None:
    assert answers(STREAM, list(range(len(STREAM))))[0] == answers(STREAM)[0]


def test_golden_bytes() -> None:
    body = b'{"jsonrpc":"2.0","method":"echo","params":[1.5],"id":"a"}'
    out, _ = answers(b"Content-Length: 57\r\n\r\n" + body)
    assert out == b'Content-Length: 42\r\n\r\n{"jsonrpc":"2.0","result":[1.5],"id":"a"}\n'


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Type: x\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length: 1e3\r\n\r\n", b"Content-Length:\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", b"Content-Length: 5\n\n", b"Content-Length: 5\nX: y\r\n\r\n", b"Content\r\n\r\n",
        b"Content-Length: 9999999999999999\r\n\r\n", b"C" * (MAX_HEADERS + 1), b"Content-Length: 0x5\r\n\r\n", b"Content-Length: \xd9\xa5\r\n\r\n",
        b"Content-Length: 5\r\nContent-Type: text/json; charset=latin-1\r\n\r\n",
        b"Content-Length: 5\r\n" + b"X: y\r\n" * MAX_HEADER_LINES + b"\r\n",
    ],
)  # fmt: skip
def test_headers_without_sense_are_answered_once_and_end_the_connection(headers: bytes) -> None:
    out, lost = answers(headers + frame(ask(1)))
    assert [r["error"]["code"] for r in bodies(out)] == [-32700]  # type: ignore[index]
    assert bodies(out)[0]["error"]["data"]["reason"] == "framing"  # type: ignore[index]
    assert lost
    before, lost = answers(frame(ask(1)) + headers + frame(ask(2)))
    assert summary(bodies(before)) == [(1, None), (None, -32700)]
    assert lost


@pytest.mark.parametrize("body", [b"", b" ", b"\r\n", b"\n\n"])
def test_a_body_without_anything_in_it_is_no_json(body: bytes) -> None:
    """A blank line may come from a person who types; nobody types a frame, and who sent one waits for an answer."""
    replies, lost = answers(frame(body) + frame(ask(1)))
    assert summary(bodies(replies)) == [(None, -32700), (1, None)]
    assert not lost


def test_a_body_may_be_written_over_many_lines() -> None:
    batch = b"\r\n[\n  " + ask(1) + b",\n  " + ask(2) + b"\n]\n"
    assert summary(bodies(answers(frame(batch) + frame(b"\n\t" + ask(3) + b"\r\n"))[0])) == [[1, 2], (3, None)]


def test_half_a_message_is_none() -> None:
    for end in (10, 22, 30):
        assert answers(frame(ask(1)) + frame(ask(2))[:end])[0] == answers(frame(ask(1)))[0]


@given(st.lists(st.tuples(st.binary(max_size=300), st.booleans()), max_size=12), st.integers(1, 50))
@settings(max_examples=60)
def test_bodies_come_whole_or_are_too_large(parts: list[tuple[bytes, bool]], step: int) -> None:
    framing = LengthFraming(LIMIT)
    stream = b"".join(frame(body, b"Content-Length: %d\r\nX: y\r\n" if more else b"Content-Length: %d\r\n") for body, more in parts)
    found: list[bytes | None] = []
    for k in range(0, len(stream), step):
        framing.feed(stream[k : k + step])
        while True:
            try:
                body = framing.next()
            except TooLarge:
                found.append(None)
                continue
            if body is None:
                break
            found.append(body)
    assert found == [body if len(body) <= LIMIT else None for body, _ in parts]
    assert not framing.partial


def test_nothing_is_kept_of_what_comes_after() -> None:
    framing = LengthFraming(LIMIT)
    framing.feed(b"nonsense\r\n\r\n")
    with pytest.raises(OutOfStep):
        framing.next()
    for _ in range(100):
        framing.feed(b"x" * 1000)
    assert framing.next() is None
    assert not framing.partial
