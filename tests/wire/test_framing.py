"""LineFraming: a byte stream -> messages, however it arrives."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fkd.errors import TooLarge
from fkd.wire.framing import LineFraming

LIMIT = 8
OVER = "too large"  # stands for a message that was refused

# Newlines often, and pieces round the limit.
streams = st.lists(st.one_of(st.just(b"\n"), st.binary(max_size=4), st.integers(6, 20).map(lambda n: b"x" * n))).map(b"".join)


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream in pieces, cut at these places."""
    places = sorted({c % (len(stream) + 1) for c in cuts} | {0, len(stream)})
    return [stream[a:b] for a, b in pairwise(places)]


def drain(framing: LineFraming) -> list[bytes | str]:
    """All whole messages that wait."""
    found: list[bytes | str] = []
    while True:
        try:
            message = framing.next()
        except TooLarge:
            found.append(OVER)
            continue
        if message is None:
            return found
        found.append(message)


def ended(framing: LineFraming) -> list[bytes | str]:
    """What is left once the stream has ended, but for a blank line."""
    framing.end()
    return [m for m in drain(framing) if m]


def messages(pieces: list[bytes], limit: int = LIMIT) -> list[bytes | str]:
    """What a stream in these pieces amounts to, the rest at its end included."""
    framing = LineFraming(limit)
    found: list[bytes | str] = []
    for piece in pieces:
        framing.feed(piece)
        found += drain(framing)
    return found + ended(framing)


def reference(stream: bytes, limit: int = LIMIT) -> list[bytes | str]:
    *whole, last = stream.split(b"\n")
    lines = [*whole, last] if last else whole
    return [OVER if len(line) > limit else line for line in lines]


@given(streams, st.lists(st.integers(0, 400), max_size=12))
@example(b"x" * (LIMIT + 1), [LIMIT + 1])
@example(b"x" * LIMIT + b"\n", [LIMIT])
@example(b"x" * (LIMIT + 1) + b"\n" + b"y\n", [LIMIT + 1, LIMIT + 2])
def test_any_cutting_gives_the_messages_of_the_stream(stream: bytes, cuts: list[int]) -> None:
    assert messages(cut(stream, cuts)) == reference(stream)


@given(streams)
def test_byte_by_byte_gives_the_messages_of_the_stream(stream: bytes) -> None:
    assert messages([stream[k : k + 1] for k in range(len(stream))]) == reference(stream)


@given(streams, st.lists(st.integers(0, 400), max_size=6))
def test_partial_says_whether_a_message_waits_for_its_rest(stream: bytes, cuts: list[int]) -> None:
    framing = LineFraming(LIMIT)
    seen = b""
    for piece in cut(stream, cuts):
        framing.feed(piece)
        drain(framing)
        seen += piece
        assert framing.partial == (not seen.endswith(b"\n") and seen != b"")


@given(st.lists(streams, max_size=5), st.booleans())
def test_messages_may_be_taken_late(pieces: list[bytes], take_some: bool) -> None:
    """Feeding on while messages wait loses none, mixes none up."""
    framing = LineFraming(LIMIT)
    found: list[bytes | str] = []
    for piece in pieces:
        framing.feed(piece)
        if take_some:
            try:
                message = framing.next()
            except TooLarge:
                message = OVER
            found += [] if message is None else [message]
    found += drain(framing)
    assert found + ended(framing) == reference(b"".join(pieces))


def test_the_limit_itself_is_taken_and_one_byte_more_is_not() -> None:
    assert messages([b"x" * LIMIT + b"\n"]) == [b"x" * LIMIT]
    assert messages([b"x" * (LIMIT + 1) + b"\n"]) == [OVER]


def test_a_message_that_is_too_long_is_refused_once_and_before_its_end() -> None:
    framing = LineFraming(LIMIT)
    framing.feed(b"x" * 20)
    with pytest.raises(TooLarge) as refused:
        framing.next()
    assert refused.value.data["limit"] == LIMIT
    for _ in range(100):
        framing.feed(b"x" * 1000)
        assert framing.next() is None
    framing.feed(b"x\nnext\n")
    assert drain(framing) == [b"next"]


def test_the_refusal_is_the_same_however_the_message_came() -> None:
    """Else a client's log, and a test of it, would depend on how the kernel cut the stream."""

    def refusal(pieces: list[bytes]) -> tuple[str, dict[str, object]]:
        framing = LineFraming(LIMIT)
        for piece in pieces:
            framing.feed(piece)
            try:
                framing.next()
            except TooLarge as e:
                return e.message, e.data
        raise AssertionError("not refused")

    long = b"x" * 30 + b"\n"
    assert refusal([long]) == refusal([long[:10], long[10:]]) == refusal([long[k : k + 1] for k in range(31)])


def test_rest_leaves_nothing_behind() -> None:
    framing = LineFraming(LIMIT)
    framing.feed(b"abc")
    assert framing.next() is None
    assert ended(framing) == [b"abc"]
    assert (ended(framing), framing.partial) == ([], False)
    framing.feed(b"d\n")
    assert drain(framing) == [b"d"]


def test_what_was_too_long_is_no_rest() -> None:
    framing = LineFraming(LIMIT)
    framing.feed(b"x" * 20)
    assert drain(framing) == [OVER]
    assert ended(framing) == []
