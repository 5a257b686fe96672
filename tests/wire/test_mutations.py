"""Mutated messages: whatever comes, every complete message gets its specified kind of answer, and the next its own.

What is right is judged by `verdict`, which reads each message with the standard library's parser: another reading of
RFC 8259 and of the JSON-RPC specification than the one under test.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fkd.dispatch import METHODS, call, serving
from fkd.robot import load
from fkd.service import Session
from fkd.wire.connection import Connection

ROBOT = Path(__file__).parent.parent / "robots" / "wire_slides.urdf"
DOF = 2
LIMIT = 1 << 16
EXAMPLES, MESSAGES = 400, 26  # in all: 10 400 messages, each mutated once
PING = b'{"jsonrpc":"2.0","method":"ping","id":"after"}\n'
PONG = {"jsonrpc": "2.0", "result": "pong", "id": "after"}

SEEDS = [
    b'{"jsonrpc":"2.0","method":"compute_fk","params":[0.25,-0.5],"id":1}',
    b'{"jsonrpc":"2.0","id":"abc","method":"compute_fk","params":{"q":[0.25,0.5],"links":["slide","carriage"],"format":"pose"}}',
    b'{"jsonrpc":"2.0","id":null,"method":"compute_fk","params":{"q":{"s1":1,"s2":2e-3},"links":"all","degrees":true,"stamp":true}}',
    b'{"jsonrpc":"2.0","method":"compute_fk","params":{"q":[0,0],"tool":{"xyz":[1,2,3],"rpy":[0,0,0]},"base":"carriage"},"id":7}',
    b'{"jsonrpc":"2.0","method":"decompose","params":{"matrix":[1,0,0,1,0,1,0,2,0,0,1,3,0,0,0,1]},"id":-3}',
    b'{"jsonrpc":"2.0","method":"decompose","params":{"quaternion":[0,0,0,1],"xyz":[1,2,3]},"id":1.5}',
    b'{"jsonrpc":"2.0","method":"ping","id":0}',
    b'{"jsonrpc":"2.0","method":"ping"}',
    b'{"jsonrpc":"2.0","method":"model","params":[],"id":"\\u00e9"}',
    b'{"jsonrpc":"2.0","method":"check","params":{},"id":"\xc3\xa9"}',
    b'[{"jsonrpc":"2.0","method":"ping","id":1},{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","method":"compute_fk","params":[1,2],"id":2}]',
]
STRANGE = [
    b"NaN", b"-Infinity", b"1e999", b"-0", b"true", b"null", b"[]", b"{}", b'""', b'"\\ud800"', b'"\\u0000"', b"7" * 5000,
    b"-" + b"1" * 400, b"0." + b"3" * 5000, b"1E+2", b"01", b"1.", b'"' + b"k" * 600 + b'"', b'{"a":1,"a":2}', b"[" * 5000,
    b"[" * 100 + b"]" * 100, b'{"":' * 70 + b"0" + b"}" * 70, b"\xff", b"\xed\xa0\x80", b"\x00", b"\xef\xbb\xbf", b"1e308", b"'x'",
    b"// no", b"0x10", b"1_000",
]  # fmt: skip
VALUE = re.compile(rb'-?\d[\d.e+-]*|"[^"\\]*"|true|false|null|\[[^\[\]{}]*\]|\{[^\[\]{}]*\}')


# -- mutations ---------------------------------------------------------------------------------------------------------


def mutant(number: int) -> bytes:
    """One of the seeds, changed in one way; newlines in it are possible, and make several messages of it.

    All choices come from one number, because drawing them one by one takes longer than answering.
    """
    number, way = divmod(number, 10)
    number, which = divmod(number, len(SEEDS))
    number, strange = divmod(number, len(STRANGE))
    seed = SEEDS[which]
    number, place = divmod(number, len(seed) + 1)
    match way:
        case 0:
            return seed[:place]
        case 1:
            return seed[place:]
        case 2:
            return seed + SEEDS[number % len(SEEDS)]
        case 3:
            return seed[:place] + b"\n" + seed[place:]
        case 4:
            return b"[" * (number % 90) + seed + b"]" * (number % 90)
        case 5 | 6:
            values = list(VALUE.finditer(seed))
            value = values[place % len(values)]
            return seed[: value.start()] + STRANGE[strange] + seed[value.end() :]
        case 7:
            return seed[:place] + STRANGE[strange] + seed[place:]
        case 8:
            return seed[:place] + bytes([number % 256]) + seed[place + 1 :]
        case _:
            return random.Random(number).randbytes(place)


mutated = st.integers(0, 1 << 40).map(mutant)
streams = st.lists(mutated, min_size=MESSAGES, max_size=MESSAGES).map(lambda m: b"\n".join([b"", *m, b""]))


# -- what is right -----------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """What may come back: "result" or codes of errors, under one of these ids (as the standard library reads them)."""

    outcomes: frozenset[str | int]
    ids: tuple[Any, ...]


class Twice(dict[str, Any]):
    """An object that names a member twice."""


def verdict(line: bytes) -> Verdict | list[Verdict] | None:
    """The answers that are right for one message; None for silence, a list for a batch."""
    if len(line) > LIMIT:
        return Verdict(frozenset({-32031}), (None,))
    line = line.strip(b" \t\r")
    if not line:
        return None
    no_json = Verdict(frozenset({-32700}), (None,))
    try:
        value = PARSER.decode(line.decode())
        json.dumps(value, ensure_ascii=False).encode()  # half surrogate pairs have no UTF-8
    except (ValueError, RecursionError):
        return no_json
    if not isinstance(value, list):
        return request_verdict(value)
    if not value:
        return Verdict(frozenset({-32600}), (None,))
    verdicts = [v for v in map(request_verdict, value) if v]
    return verdicts or None


def request_verdict(value: Any) -> Verdict | None:
    deep = {-32700} if depth(value) > 64 else set()
    if not isinstance(value, dict):
        return Verdict(frozenset({-32600} | deep), (None,))
    ident = value.get("id", ABSENT)
    sound = ident is ABSENT or ident is None or isinstance(ident, str | Number)
    if isinstance(value, Twice) or not sound or value.get("jsonrpc") != "2.0" or not is_text(value.get("method")):
        return Verdict(frozenset({-32600} | deep), (None, ident) if sound and ident is not ABSENT else (None,))
    if len(json.dumps(ident if is_text(ident) else "")) > 500 or (isinstance(ident, Number) and (len(ident) > 64 or huge(ident))):
        return Verdict(frozenset({-32600} | deep), (None,))
    if deep:
        return Verdict(frozenset({-32700, -32602, -32601}), (None, ident))
    if ident is ABSENT:
        return None
    method, params = value["method"], value.get("params", [])
    if has_twice(params):
        return Verdict(frozenset({-32602}), (ident,))
    if method not in METHODS:
        return Verdict(frozenset({-32601}), (ident,))
    if not isinstance(params, list | dict):
        return Verdict(frozenset({-32602}), (ident,))
    if method == "compute_fk" and isinstance(params, list):
        good = len(params) == DOF and all(isinstance(x, Number) and not huge(x) for x in params)
        return Verdict(frozenset({"result"} if good else {-32602}), (ident,))
    if method not in ("compute_fk", "decompose"):
        return Verdict(frozenset({-32602} if params else {"result"}), (ident,))
    return Verdict(frozenset({"result", -32602, -32001}), (ident,))


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


class Number(str):
    """A number as it was written: big ones keep all their digits."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and str.__eq__(self, other)

    __hash__ = str.__hash__


def huge(number: Number) -> bool:
    """Beyond a double, or so near that the sum of two may be."""
    return abs(float(number)) > 0.8e308


def no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def an_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else Twice(members)


PARSER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=no_constant, object_pairs_hook=an_object)
ABSENT = object()


def children(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        deepest += 1
        level = [c for v in level for c in children(v)]
    return deepest


def has_twice(value: Any) -> bool:
    return isinstance(value, Twice) or any(has_twice(c) for c in children(value))


def check_reply(reply: Any, right: Verdict, line: bytes) -> None:
    assert reply["jsonrpc"] == "2.0", line
    assert reply["id"] in right.ids, (line, reply)
    if "result" in reply:
        assert reply.keys() == {"jsonrpc", "id", "result"}
        assert "result" in right.outcomes, (line, reply)
        return
    assert reply.keys() == {"jsonrpc", "id", "error"}
    error = reply["error"]
    assert int(error["code"]) in right.outcomes, (line, reply)
    assert error["message"], line
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", error["data"]["reason"]), (line, reply)
    if int(error["code"]) == -32602:
        assert error["data"]["path"].startswith("$.params"), (line, reply)


def check_stream(stream: bytes, back: Iterator[bytes]) -> None:
    """Every message of `stream` has its right answer in `back`, in order, and nothing else is there."""
    for line in stream.split(b"\n"):
        right = verdict(line)
        if right is None:
            continue
        reply = PARSER.decode(next(back).decode())
        if isinstance(right, Verdict):
            check_reply(reply, right, line)
        else:
            assert len(reply) == len(right), (line, reply)
            for one, expected in zip(reply, right, strict=True):
                check_reply(one, expected, line)
    assert json.loads(next(back)) == PONG


# -- the tests ---------------------------------------------------------------------------------------------------------

session = Session(serving(load(ROBOT)))


@given(streams, st.sampled_from([1 << 20, 1000, 97, 13]))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_mutated_message_gets_its_kind_of_answer(stream: bytes, step: int) -> None:
    """`step`: the stream comes in pieces of so many bytes."""
    connection = Connection(partial(call, session), max_message=LIMIT)
    stream += PING
    back = []
    for k in range(0, len(stream), step):
        connection.receive(stream[k : k + step])
        back.append(connection.answer(1000))
        while connection.more:
            back.append(connection.answer(1000))
    lines = b"".join(back).split(b"\n")
    assert lines.pop() == b""
    replies = iter(lines)
    check_stream(stream[: -len(PING)], replies)
    assert next(replies, None) is None


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_every_truncation_of_every_seed(seed: bytes) -> None:
    """Each piece on a line of its own, and the two pieces of each cut."""
    connection = Connection(partial(call, session), max_message=LIMIT)
    for k in range(len(seed) + 1):
        stream = seed[:k] + b"\n" + seed[k:] + b"\n" + PING
        connection.receive(stream)
        replies = iter(connection.answer(1 << 30).splitlines())
        check_stream(stream[: -len(PING)], replies)
        assert next(replies, None) is None


def test_mutations_over_a_socket_do_not_touch_the_neighbour(shared_daemon: Any) -> None:
    """The same over a real socket: one connection for all the noise, one beside it that asks and is answered."""
    noisy, neighbour = shared_daemon.connect(), shared_daemon.connect()

    @given(st.lists(mutated, min_size=MESSAGES, max_size=MESSAGES))
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    def one(messages: list[bytes]) -> None:
        noisy.send(b"\n".join([b"", *messages, b""]) + PING)
        while (line := noisy.line()) and json.loads(line) != PONG:
            json.loads(line, parse_constant=no_constant)
        assert line, "the daemon closed the connection"
        assert neighbour.ask("compute_fk", [0, 0, 0, 0, 0, 0])["result"][3] == 1.0625

    one()
