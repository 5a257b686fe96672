"""Connection: what one client sends -> what it gets back. Laws first, then one table of golden bytes."""

from __future__ import annotations

import json
import logging
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from fkd.errors import FkdError, InvalidParams, MethodNotFound
from fkd.wire.connection import MAX_BATCH, Connection
from fkd.wire.jsonrpc import encode, error_reply, reply

LIMIT = 400  # bytes of one message in these tests
MUCH = 1 << 30


def call(method: str, params: Raw) -> bytes:
    """A service of three methods: one answers with its params, one refuses, one is broken."""
    if method == "echo":
        return bytes(params) or b'"nothing"'
    if method == "refuse":
        raise InvalidParams("no", path="$.params", expected="less", got="more")
    if method == "break":
        raise RuntimeError("a fault of ours")
    raise MethodNotFound("no such method", name=method)


def connection(limit: int = LIMIT) -> Connection:
    return Connection(call, max_message=limit)


def answers(pieces: list[bytes], enough: int = MUCH, limit: int = LIMIT) -> bytes:
    """All that a client gets that sends these pieces and then closes its side."""
    c = connection(limit)
    out = b""
    for piece in (*pieces, None):
        c.finish() if piece is None else c.receive(piece)
        out += c.answer(enough)
        while c.more:
            out += c.answer(enough)
    return out


def ask(method: str, ident: str | None = "1", params: str | None = None) -> bytes:
    """A request as bytes, in the order that most clients write."""
    members = ['"jsonrpc":"2.0"', f'"method":"{method}"']
    members += [f'"params":{params}'] if params is not None else []
    members += [f'"id":{ident}'] if ident is not None else []
    return ("{" + ",".join(members) + "}").encode()


def result(value: str, ident: str = "1") -> bytes:
    return f'{{"jsonrpc":"2.0","result":{value},"id":{ident}}}\n'.encode()


def error(code: int, message: str, data: str, ident: str = "1") -> bytes:
    """`data` without its braces."""
    return f'{{"jsonrpc":"2.0","error":{{"code":{code},"message":{json.dumps(message)},"data":{{{data}}}}},"id":{ident}}}\n'.encode()


def array(*replies: bytes) -> bytes:
    return b"[" + b",".join(r.rstrip(b"\n") for r in replies) + b"]\n"


REFUSED = (-32602, "no", '"reason":"invalid-params","path":"$.params","expected":"less","got":"more"')
UNKNOWN = (-32601, "no such method", '"reason":"unknown-method","name":"nope"')
INTERNAL = (-32603, "internal error; the daemon's log has the details", '"reason":"internal"')
EXPECTED_ID = "a string of at most 512 bytes, a number of at most 64 digits, or null"


def bad_id(got: str) -> bytes:
    data = f'"reason":"id","path":"$.id","expected":"{EXPECTED_ID}","got":{json.dumps(got)}'
    return error(-32600, "the id cannot be used", data, "null")


def without_decoder(back: bytes) -> bytes:
    """A reply without the decoder's own words on what is wrong with the JSON, which are not ours to fix."""
    return re.sub(rb'"not JSON: (?:[^"\\]|\\.)*"', b'"not JSON: ..."', back)


NO_JSON = error(-32700, "not JSON: ...", '"reason":"parse-error","expected":"one JSON value a line"', "null")


def no_request(got: str) -> bytes:
    data = f'"reason":"invalid-request","path":"$","expected":"an object","got":{json.dumps(got)}'
    return error(-32600, "a request is a JSON object", data, "null")


TOO_DEEP = error(-32700, "nested deeper than 64 levels", '"reason":"too-deep","expected":"at most 64 levels"', "null")
EMPTY_BATCH = error(-32600, "an empty batch", '"reason":"batch-empty","expected":"at least one request"', "null")
NO_VERSION = ('"jsonrpc" must be "2.0"', '"reason":"invalid-request","path":"$.jsonrpc","expected":"\\"2.0\\"","got":')

# What is sent (without its newline) -> exactly what comes back.
GOLDEN: dict[str, tuple[bytes, bytes]] = {
    "request": (ask("echo", params="[1,2.50]"), result("[1,2.50]")),
    "without params": (ask("echo"), result('"nothing"')),
    "by name": (ask("echo", params='{"q": [1]}'), result('{"q": [1]}')),
    "members in another order": (b'{"id":1,"params":[],"method":"echo","jsonrpc":"2.0"}', result("[]")),
    "white space inside": (b'{ "jsonrpc" : "2.0" ,\t"method" : "echo" , "id" : 1 }', result('"nothing"')),
    "white space before": (b" \t " + ask("echo"), result('"nothing"')),
    "white space after": (ask("echo") + b" \t", result('"nothing"')),
    "CRLF": (ask("echo") + b"\r", result('"nothing"')),
    "a foreign member": (b'{"jsonrpc":"2.0","method":"echo","id":1,"trace":{"a":[]}}', result('"nothing"')),
    "escapes in names": (b'{"jsonrpc":"2.0","m\\u0065thod":"\\u0065cho","id":1}', result('"nothing"')),
    "a minus zero": (ask("echo", params="[-0]"), result("[-0]")),
    # no reply
    "a blank line": (b"", b""),
    "white space only": (b" \t \r", b""),
    "notification": (ask("echo", None), b""),
    "notification that is refused": (ask("refuse", None), b""),
    "notification of no method": (ask("nope", None), b""),
    "notification of a broken method": (ask("break", None), b""),
    "notification with a member twice in params": (ask("echo", None, '{"a":1,"a":1}'), b""),
    # ids
    "id 0": (ask("echo", "0"), result('"nothing"', "0")),
    "id empty": (ask("echo", '""'), result('"nothing"', '""')),
    "id null": (ask("echo", "null"), result('"nothing"', "null")),
    "id -1": (ask("echo", "-1"), result('"nothing"', "-1")),
    "id -0": (ask("echo", "-0"), result('"nothing"', "-0")),
    "id 1.5": (ask("echo", "1.5"), result('"nothing"', "1.5")),
    "id 1.50e+1": (ask("echo", "1.50e+1"), result('"nothing"', "1.50e+1")),
    "id 2^53+1": (ask("echo", "9007199254740993"), result('"nothing"', "9007199254740993")),
    "id 2^70": (ask("echo", "1180591620717411303424"), result('"nothing"', "1180591620717411303424")),
    "id with escapes": (ask("echo", '"\\u00e9\\n\\/"'), result('"nothing"', '"\\u00e9\\n\\/"')),
    "id in UTF-8": (ask("echo", '"é☃"'), result('"nothing"', '"é☃"')),
    "id on an error": (ask("nope", '"k"'), error(*UNKNOWN, '"k"')),
    "id of 300 digits": (ask("echo", "7" * 300), bad_id("a number of 300 digits")),
    "id true": (ask("echo", "true"), bad_id("true")),
    "id array": (ask("echo", "[]"), bad_id("an array")),
    "id object": (ask("echo", "{}"), bad_id("an object")),
    "id infinite": (ask("echo", "1e999"), bad_id("1e999")),
    # each error
    "refused": (ask("refuse"), error(*REFUSED)),
    "unknown method": (ask("nope"), error(*UNKNOWN)),
    "broken method": (ask("break"), error(*INTERNAL)),
    "params twice": (
        ask("echo", params='{"a":1,"a":2}'),
        error(-32602, "the member `a` is given twice", '"reason":"duplicate-member","path":"$.params..a","expected":"each member once","got":"twice"'),
    ),
    "version 1": (b'{"jsonrpc":"1.0","method":"echo","id":4}', error(-32600, NO_VERSION[0], NO_VERSION[1] + '"\\"1.0\\""', "4")),
    "no version, no id": (b'{"method":"echo"}', error(-32600, NO_VERSION[0], NO_VERSION[1] + '"nothing"', "null")),
    "method 7": (
        b'{"jsonrpc":"2.0","method":7,"id":"x"}',
        error(-32600, "the method's name must be a string",
              '"reason":"invalid-request","path":"$.method","expected":"a string","got":"7"', '"x"'),
    ),
    "no method": (
        b'{"jsonrpc":"2.0","id":1}',
        error(-32600, "the request names no method",
              '"reason":"invalid-request","path":"$.method","expected":"a string","got":"nothing"'),
    ),
    "a number": (b"7", no_request("7")),
    "a string": (b'"x"', no_request('"x"')),
    "true": (b"true", no_request("true")),
    "null": (b"null", no_request("null")),
    "no JSON": (b"hello", NO_JSON),
    "half a request": (ask("echo")[:-1], NO_JSON),
    "two requests on a line": (ask("echo") * 2, NO_JSON),
    "NaN": (ask("echo", params="[NaN]"), NO_JSON),
    "Infinity": (ask("echo", params="[Infinity]"), NO_JSON),
    "no UTF-8": (b"\xff\xfe", error(-32700, "not UTF-8: byte 0 is 0xff", '"reason":"not-utf8","expected":"UTF-8"', "null")),
    "deep arrays": (b"[" * 150 + b"]" * 150, array(TOO_DEEP)),
    "deep objects": (b'{"a":' * 65 + b"1" + b"}" * 65, TOO_DEEP),
    "deep but not too deep": (ask("echo", params="[" * 61 + '{"a":[]}' + "]" * 61)[:-1] + b',"a":1}', result("[" * 61 + '{"a":[]}' + "]" * 61)),
    "deep params": (ask("echo", params='{"a":' + "[" * 70 + "]" * 70 + "}"), TOO_DEEP),
    "too long": (
        b"x" * (LIMIT + 100),
        error(-32031, "a message of more than 400 bytes, which is the limit", '"reason":"too-large","limit":400', "null"),
    ),
    # batches
    "batch of one": (b"[" + ask("echo") + b"]", array(result('"nothing"'))),
    "batch": (b"[" + ask("echo") + b" , " + ask("nope", "2") + b"]", array(result('"nothing"'), error(*UNKNOWN, "2"))),
    "batch with white space": (b" \t[ " + ask("echo") + b" ]\r", array(result('"nothing"'))),
    "batch with notifications": (
        b"[" + ask("echo", None) + b"," + ask("echo", "3") + b"," + ask("nope", None) + b"]",
        array(result('"nothing"', "3")),
    ),
    "batch of notifications": (b"[" + ask("echo", None) + b"," + ask("break", None) + b"]", b""),
    "batch of nonsense": (b"[1,[],{}]", array(no_request("1"), no_request("an array"),
                                               error(-32600, NO_VERSION[0], NO_VERSION[1] + '"nothing"', "null"))),
    "batch in a batch": (b"[[" + ask("echo") + b"]]", array(no_request("an array"))),
    "empty batch": (b"[]", EMPTY_BATCH),
    "empty batch with space": (b"[ ]", EMPTY_BATCH),
    "broken batch": (b"[" + ask("echo") + b",nope]", NO_JSON),
}  # fmt: skip

golden = pytest.mark.parametrize(("sent", "back"), GOLDEN.values(), ids=GOLDEN.keys())


# -- laws --------------------------------------------------------------------------------------------------------------

messages = st.lists(st.sampled_from([sent for sent, _ in GOLDEN.values()]), max_size=8)


@given(messages, st.lists(st.integers(0, 4000), max_size=20), st.booleans())
def test_a_stream_cut_into_any_pieces_gives_the_same_replies(lines: list[bytes], cuts: list[int], last_newline: bool) -> None:
    stream = b"\n".join(lines) + (b"\n" if last_newline else b"")
    places = sorted({c % (len(stream) + 1) for c in cuts} | {0, len(stream)})
    pieces = [stream[a:b] for a, b in pairwise(places)]
    assert answers(pieces) == answers([stream])


@given(messages)
def test_byte_by_byte_gives_the_same_replies(lines: list[bytes]) -> None:
    stream = b"\n".join(lines)
    assert answers([stream[k : k + 1] for k in range(len(stream))]) == answers([stream])


@given(messages)
def test_the_replies_to_many_messages_are_the_replies_to_each_in_order(lines: list[bytes]) -> None:
    whole = answers([b"".join(line + b"\n" for line in lines)])
    assert whole == b"".join(answers([line + b"\n"]) for line in lines)


@given(messages, st.integers(1, 2000))
def test_answering_in_turns_gives_the_same_replies(lines: list[bytes], enough: int) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    assert answers([stream], enough) == answers([stream])


@given(messages)
def test_a_batch_gives_the_replies_of_its_members(lines: list[bytes]) -> None:
    members = [line for line in lines if line.startswith(b"{") and _is_json(line)]
    back = answers([b"[" + b",".join(members) + b"]\n"], limit=MUCH)
    if members:
        replies = [r for r in answers([line + b"\n" for line in members]).split(b"\n") if r]
        assert back == (b"[" + b",".join(replies) + b"]\n" if replies else b"")


@given(st.binary(max_size=200))
@example(b"[[[[")
@example(b'{"id":\xff}')
def test_any_bytes_get_valid_lines_back_and_the_next_request_its_reply(noise: bytes) -> None:
    back = answers([b"\n" + noise, b"\n", ask("echo", '"after"') + b"\n"])
    for line in back.split(b"\n")[:-1]:
        json.loads(line, parse_constant=pytest.fail)
    assert back.endswith(result('"nothing"', '"after"'))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return b"NaN" not in line and b"Infinity" not in line


# -- the table ---------------------------------------------------------------------------------------------------------


@golden
def test_golden_bytes(sent: bytes, back: bytes) -> None:
    assert without_decoder(answers([sent + b"\n"])) == back


@golden
def test_golden_bytes_of_a_last_message_without_newline(sent: bytes, back: bytes) -> None:
    assert without_decoder(answers([sent])) == back


@golden
def test_golden_replies_read_back_and_written_again_are_the_same(sent: bytes, back: bytes) -> None:
    """The other direction: a reply is what its parts say, and nothing else."""
    for read in _members(back):
        assert read.keys() == {"jsonrpc", "id", "result" if "result" in read else "error"}
        ident = b'"id":'.join(back.split(b'"id":')[1:]).rstrip(b"}\n") if not back.startswith(b"[") else encode(read["id"])
        if "result" in read:
            again = reply(_result_bytes(sent), ident)
        else:
            code, message, data = (read["error"][k] for k in ("code", "message", "data"))
            kind = next(c for c in _kinds() if c.code == code)
            again = error_reply(kind(message, **data), ident)
        assert again.strip() in back


def _members(back: bytes) -> list[dict[str, object]]:
    if not back:
        return []
    read = json.loads(back)
    return read if isinstance(read, list) else [read]


def _result_bytes(sent: bytes) -> bytes:
    """What `echo` answers: its params as they were sent."""
    start = sent.find(b'"params":') + len(b'"params":')
    if start < len(b'"params":'):
        return b'"nothing"'
    _, end = json.JSONDecoder().raw_decode(sent[start:].decode())
    return sent[start : start + end]


def _kinds() -> list[type[FkdError]]:
    return FkdError.__subclasses__()


# -- flow --------------------------------------------------------------------------------------------------------------


def test_a_batch_may_be_large_but_not_too_large() -> None:
    many = b",".join(ask("echo", str(k)) for k in range(MAX_BATCH))
    back = json.loads(answers([b"[" + many + b"]\n"], limit=MUCH))
    assert [r["id"] for r in back] == list(range(MAX_BATCH))
    refused = json.loads(answers([b"[" + many + b"," + ask("echo") + b"]\n"], limit=MUCH))
    assert (refused["error"]["code"], refused["id"]) == (-32031, None)
    assert refused["error"]["data"] == {"reason": "too-large", "limit": MAX_BATCH, "got": MAX_BATCH + 1}


def test_a_batch_whose_replies_grow_too_large_is_cut_short_with_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fkd.wire.connection.MAX_BATCH_REPLY", 100)
    members = [ask("echo", str(k), '"' + "x" * 40 + '"') for k in range(3)] + [ask("echo", None), b"7", ask("echo", '"z"')]
    back = json.loads(answers([b"[" + b",".join(members) + b"]\n"], limit=MUCH))
    assert [r["id"] for r in back] == [0, 1, 2, None, "z"]
    assert ["result" in r for r in back] == [True, True, False, False, False]
    assert all(r["error"]["code"] == -32031 for r in back[2:])


def test_after_a_message_that_is_too_long_the_stream_goes_on() -> None:
    back = answers([b"[" * 1000, b"[" * 1000, b"\n" + ask("echo", "5") + b"\n"]).split(b"\n")
    assert json.loads(back[0])["error"]["code"] == -32031
    assert back[1:] == [result('"nothing"', "5")[:-1], b""]


def test_answer_stops_when_it_has_enough_and_goes_on_when_asked() -> None:
    c = connection()
    c.receive(b"".join(ask("echo", str(k)) + b"\n" for k in range(100)))
    first = c.answer(200)
    assert 0 < first.count(b"\n") < 100
    assert c.more
    rest = c.answer(MUCH)
    assert not c.more
    assert [json.loads(line)["id"] for line in (first + rest).splitlines()] == list(range(100))


@pytest.mark.parametrize("silent", [b"\n", ask("echo", None) + b"\n"], ids=["blank lines", "notifications"])
def test_messages_without_reply_fill_a_turn_too(silent: bytes) -> None:
    """Else a flood of them would hold the loop, and every other client, for as long as it likes."""
    c = connection()
    c.receive(silent * 10_000)
    assert c.answer(6400) == b""
    assert c.more


def test_partial_until_the_newline_has_come() -> None:
    c = connection()
    assert not c.partial
    c.receive(ask("echo"))
    assert c.answer(MUCH) == b""
    assert c.partial
    c.receive(b"\n")
    c.answer(MUCH)
    assert not c.partial


def test_the_code_is_told_of_every_error_that_no_call_has_raised() -> None:
    """Whoever runs the calls counts theirs."""
    codes: list[int] = []
    c = Connection(call, max_message=4000, failed=codes.append)
    twice = ask("echo", "1", '{"a":1,"b":[' + "0," * 1000 + '0],"a":2}')
    c.receive(ask("none") + b"\n" + ask("break") + b"\nnonsense\n{}\n[" + ask("refuse") + b",7]\n[]\n" + twice + b"\n" + b"x" * 4001 + b"\n")
    while c.more or not codes:
        c.answer(MUCH)
    assert codes == [-32700, -32600, -32600, -32600, -32602, -32031]


def test_a_fault_of_ours_is_logged_and_costs_the_client_one_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, logger="fkd"):
        back = answers([ask("break") + b"\n" + ask("echo", "2") + b"\n"])
    assert back == error(*INTERNAL) + result('"nothing"', "2")
    assert "a fault of ours" in caplog.text


# -- work that takes long ----------------------------------------------------------------------------------------------


class Later:
    """A result that is not there yet."""

    def __init__(self) -> None:
        self.there = False

    def done(self) -> bool:
        return self.there


def test_work_is_done_a_step_at_a_time_and_keeps_the_order() -> None:
    steps = []

    def slow(method: str, params: Raw) -> Any:
        if method == "echo":
            return bytes(params)

        def work() -> Any:
            for k in range(3):
                steps.append(k)
                yield None
            if method == "fails":
                raise InvalidParams("no", path="$.params")
            if method == "breaks":
                raise RuntimeError("a fault of ours")
            return b'"done"'

        return work()

    c = Connection(slow)
    c.receive(b"\n".join([ask("slow", "1"), ask("echo", "2", "[2]"), ask("fails", "3"), ask("breaks", "4"), ask("slow", None), ask("echo", "5", "[5]"), b""]))
    for k in range(3):
        assert (c.answer(MUCH), c.more, len(steps)) == (b"", True, k + 1)
    out = b""
    while c.more:
        out += c.answer(MUCH)
    replies = [json.loads(line) for line in out.splitlines()]
    assert [r["id"] for r in replies] == [1, 2, 3, 4, 5]
    assert [r.get("result", r.get("error", {}).get("code")) for r in replies] == ["done", [2], -32602, -32603, [5]]
    assert len(steps) == 12


def test_what_waits_for_others_is_not_stepped_before_they_are_done() -> None:
    later = Later()

    def call(method: str, params: Raw) -> Any:
        def work() -> Any:
            yield later
            assert later.there
            return b"1"

        return work()

    c = Connection(call)
    c.receive(ask("wait") + b"\n")
    assert (c.answer(MUCH), c.waiting, c.more) == (b"", later, True)
    c.receive(ask("wait", "2") + b"\n")
    assert (c.answer(MUCH), c.waiting) == (b"", later)
    later.there = True
    assert [json.loads(line)["id"] for line in c.answer(MUCH).splitlines()] == [1]


def test_a_large_array_comes_in_steps_and_as_one_reply() -> None:
    c = connection(1 << 20)
    c.receive(b"[" + b",".join(ask("echo", str(k), "[1,2,3]") for k in range(MAX_BATCH)) + b"]\n")
    steps, out = 0, b""
    while c.more or not steps:
        steps += 1
        out += c.answer(MUCH)
    assert steps > 10
    assert [r["id"] for r in json.loads(out)] == list(range(MAX_BATCH))


@pytest.mark.parametrize("first", [b"", b"Content-Length: 44\r\n\r\n"])
def test_a_long_result_is_sent_in_its_pieces_and_is_one_reply(first: bytes) -> None:
    """By itself a piece at a time, in an array as one; as a line and under a header."""
    pieces = [b"[1", b",2" * 3000, b",3" * 3000, b"]"]

    def call(method: str, params: Raw) -> Any:
        def work() -> Any:
            yield None
            return pieces

        return work()

    c = Connection(call)
    request = ask("long", "1")
    array = b"[" + request + b"," + ask("long", "2") + b"]"
    for message in (request, array, ask("long", None), ask("long", "3")):
        c.receive(b"Content-Length: %d\r\n\r\n%b" % (len(message), message) if first else message + b"\n")
    out, largest = b"", 0
    while c.more or not out:
        part = c.answer(1)
        if out == b"":
            largest = max(largest, len(part))
        out += part
    assert 0 <= largest < 12000
    replies = []
    while out:
        if first:
            head, _, out = out.partition(b"\r\n\r\n")
            size = int(head.removeprefix(b"Content-Length: "))
        else:
            size = out.index(b"\n") + 1
        replies.append(json.loads(out[:size]))
        out = out[size:]
    one = {"jsonrpc": "2.0", "result": json.loads(b"".join(pieces))}
    assert replies == [{**one, "id": 1}, [{**one, "id": 1}, {**one, "id": 2}], {**one, "id": 3}]


def test_work_for_a_client_that_has_gone_is_dropped() -> None:
    closed = []

    def call(method: str, params: Raw) -> Any:
        def work() -> Any:
            try:
                while True:
                    yield None
            finally:
                closed.append(method)

        return work()

    c = Connection(call)
    c.receive(ask("endless") + b"\n")
    c.answer(MUCH)
    c.close()
    assert closed == ["endless"]


# -- long messages -----------------------------------------------------------------------------------------------------

ROWS = "[" + ",".join(['{"a":1,"b":[0.5,-2]}'] * 400) + "]"


def test_a_long_message_is_looked_through_in_steps_and_keeps_the_order() -> None:
    c = connection(MUCH)
    c.receive(ask("echo", "1", ROWS) + b"\n" + ask("echo", "2") + b"\n")
    steps, out = 0, b""
    while c.more or not steps:
        steps += 1
        out += c.answer(MUCH)
    assert steps > 5
    assert out == result(ROWS, "1") + result('"nothing"', "2")


@pytest.mark.parametrize(
    ("line", "code", "ident"),
    [
        (ask("echo", '"k"', ROWS[:-1] + ',{"a":1,"a":2}]'), -32602, '"k"'),
        (ask("echo", '"k"', ROWS)[:-1] + b',"id":2}', -32600, "null"),
        (ask("echo", '"k"', ROWS[:-1] + "," + "[" * 70 + "]" * 70 + "]"), -32700, "null"),
        (ask("refuse", '"k"', ROWS), -32602, '"k"'),
        (ask("break", '"k"', ROWS), -32603, '"k"'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_long_message_is_answered_as_with_a_short_one(line: bytes, code: int, ident: str) -> None:
    back = answers([line + b"\n" + ask("echo", "2") + b"\n"], limit=MUCH).splitlines(keepends=True)
    assert json.loads(back[0])["error"]["code"] == code
    assert back[0].endswith(f'"id":{ident}}}\n'.encode())
    assert back[1:] == [result('"nothing"', "2")]
    in_a_batch = answers([b"[" + line + b"," + ask("echo", "2") + b"]\n"], limit=MUCH)
    assert in_a_batch == array(*back)


def test_long_notifications_are_not_answered() -> None:
    for params in (ROWS, ROWS[:-1] + ',{"a":1,"a":2}]'):
        assert answers([ask("echo", None, params) + b"\n"], limit=MUCH) == b""
