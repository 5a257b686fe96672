"""JSON-RPC 2.0: one message's bytes -> request, result or error -> the reply's bytes."""

from __future__ import annotations

import inspect
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fkd import errors
from fkd.errors import FkdError, InvalidParams, InvalidRequest, ParseError
from fkd.wire import jsonrpc
from fkd.wire.jsonrpc import MAX_DIGITS, MAX_ID, Request, decode_batch, encode, error_id, error_reply, kind, reply
from fkd.wire.nesting import MAX_DEPTH, too_deep

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
id_tokens = st.one_of(
    texts.map(lambda s: json.dumps(s).encode()),
    texts.map(lambda s: json.dumps(s, ensure_ascii=False).encode()),
    st.integers(-(10**63) + 1, 10**MAX_DIGITS - 1).map(lambda n: str(n).encode()),
    st.floats(-1e300, 1e300).map(lambda x: repr(x).encode()),
    st.sampled_from([b"null", b"0", b"-0", b'""', b"1e5", b"1E+2", b"0.10", b'"\\u0041\\/"', b'"\\ud83d\\ude00"']),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
blanks = st.text(" \t\r", max_size=3).map(str.encode)


def decode_request(line: bytes) -> tuple[Request, bytes]:
    """The same, with all the steps taken that a long message is looked through in."""
    request, ident, unseen = jsonrpc.decode_request(line)
    for _ in unseen or ():
        pass
    return request, ident


def message(ident: bytes | None = b"1", method: bytes = b'"m"', params: bytes | None = None, blank: bytes = b"") -> bytes:
    members = [b'"jsonrpc":"2.0"', b'"method":' + blank + method]
    members += [] if params is None else [b'"params"' + blank + b":" + params]
    members += [] if ident is None else [b'"id":' + blank + ident + blank]
    return b"{" + (b"," + blank).join(members) + b"}"


def refusal(line: bytes) -> FkdError:
    with pytest.raises(FkdError) as refused:
        decode_request(line)
    return refused.value


@given(id_tokens, blanks)
def test_an_id_comes_back_byte_for_byte(token: bytes, blank: bytes) -> None:
    _, ident = decode_request(message(token, blank=blank))
    assert ident == token
    assert reply(b"1", ident).rstrip(b"\n") == b'{"jsonrpc":"2.0","result":1,"id":' + token + b"}"


@given(values, id_tokens, st.permutations(range(4)))
@settings(max_examples=50)
def test_params_come_through_and_the_order_of_members_does_not_matter(value: object, token: bytes, order: list[int]) -> None:
    members = [b'"jsonrpc": "2.0"', b'"method": "compute"', b'"params": ' + json.dumps(value).encode(), b'"id": ' + token]
    request, ident = decode_request(b"{" + b", ".join(members[k] for k in order) + b"}")
    assert request.method == "compute"
    assert json.loads(bytes(request.params)) == value
    assert ident == token


@given(texts)
def test_method_names_are_any_text(name: str) -> None:
    for ascii_only in (True, False):
        request, _ = decode_request(message(method=json.dumps(name, ensure_ascii=ascii_only).encode()))
        assert request.method == name


@given(st.binary(max_size=60))
@example(b'{"jsonrpc":"2.0"')
@example(b"\xff")
def test_any_bytes_are_a_request_or_a_clear_refusal(line: bytes) -> None:
    try:
        decode_request(line)
    except (ParseError, InvalidRequest, InvalidParams) as e:
        json.loads(error_reply(e, error_id(e)))


@given(st.integers(1, 200), st.sampled_from(["[]", "{}", "mixed"]), texts)
@settings(max_examples=50)
def test_too_deep_counts_levels_and_not_brackets_in_strings(depth: int, shape: str, text: str) -> None:
    text += "]}[{\"\\" * 40
    nested: object = text
    for level in range(depth):
        nested = {text: nested} if shape == "{}" or (shape == "mixed" and level % 2) else [nested, text]
    for ascii_only in (True, False):
        assert too_deep(json.dumps(nested, ensure_ascii=ascii_only).encode()) == (depth > MAX_DEPTH)


@given(st.lists(values, min_size=1, max_size=5))
@settings(max_examples=50)
def test_a_batch_is_its_members(members: list[object]) -> None:
    found = decode_batch(json.dumps(members).encode())
    assert [json.loads(bytes(m)) for m in found] == members


def test_an_absent_id_is_a_notification_and_a_null_one_is_not() -> None:
    assert decode_request(message(None))[1] == b""
    assert decode_request(message(b"null"))[1] == b"null"


@pytest.mark.parametrize("params", [b"null", b'"x"', b"7", b"true", b"[]", b"{}"])
def test_present_params_are_told_from_absent_ones(params: bytes) -> None:
    assert bytes(decode_request(message(params=params))[0].params) == params
    assert not decode_request(message())[0].params


@pytest.mark.parametrize(
    "token",
    [b"true", b"false", b"[]", b"[1]", b"{}", b'{"a":1}', b"9" * (MAX_DIGITS + 1), b"-" + b"9" * 5000, b"1e400",
     b'"' + b"x" * (MAX_ID - 1) + b'"'],
)  # fmt: skip
def test_an_id_that_cannot_be_echoed_is_refused_with_null(token: bytes) -> None:
    error = refusal(message(token))
    assert (type(error), error.reason, error.data["path"], error_id(error)) == (InvalidRequest, "id", "$.id", b"null")
    assert {"expected", "got"} <= error.data.keys()


def test_the_longest_ids_are_taken() -> None:
    for token in (b"9" * MAX_DIGITS, b'"' + b"x" * (MAX_ID - 2) + b'"'):
        assert decode_request(message(token))[1] == token


@pytest.mark.parametrize("twice", [b'"id":2', b'"method":"n"', b'"jsonrpc":"2.0"', b'"params":[]', b'"\\u0069d":3'])
def test_a_member_given_twice_is_refused(twice: bytes) -> None:
    error = refusal(message(params=b"[]")[:-1] + b"," + twice + b"}")
    assert (type(error), error.reason, error_id(error)) == (InvalidRequest, "duplicate-member", b"null")
    assert {"path", "expected", "got"} <= error.data.keys()


def test_a_foreign_member_given_twice_is_refused_too() -> None:
    error = refusal(message()[:-1] + b',"x":1,"x":1}')
    assert (type(error), error.reason) == (InvalidRequest, "duplicate-member")


@pytest.mark.parametrize(
    "params",
    [b'{"q":1,"q":2}', b'{"a":{"b":{"q":1,"q":1}}}', b'[{"q":1,"q":1}]', b'{"q" :1, "q"\t: 1}', b'{"q":1,"\\u0071":1}',
     b'{"\xc3\xa9":1,"\\u00e9":1}', b'{"":1,"":1}', b'{"\\"":1,"\\u0022":1}'],
)  # fmt: skip
def test_a_member_of_params_given_twice_is_refused(params: bytes) -> None:
    error = refusal(message(b'"k"', params=params))
    assert (type(error), error.reason, error_id(error)) == (InvalidParams, "duplicate-member", b'"k"')
    assert {"path", "expected", "got"} <= error.data.keys()


@pytest.mark.parametrize("where", ["outside", "in params"])
def test_a_long_name_given_twice_does_not_come_back_at_length(where: str) -> None:
    twice = b'"%b":1,"%b":2' % (b"x" * 5000, b"x" * 5000)
    line = message()[:-1] + b"," + twice + b"}" if where == "outside" else message(params=b"{" + twice + b"}")
    assert len(error_reply(refusal(line), b"1")) < 1000


@pytest.mark.parametrize(
    "params", [b'[{"q":1},{"q":1}]', b'{"q":{"q":{"q":1}}}', b'{"q":1,"r":{"q":1},"s":{"q":1}}', b'{"q":"q","r":"q:"}', b'{"a":[":",":"]}']
)
def test_the_same_name_in_different_objects_is_no_duplicate(params: bytes) -> None:
    assert bytes(decode_request(message(params=params))[0].params) == params


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"{}", "$.jsonrpc"), (b'{"method":"m"}', "$.jsonrpc"), (b'{"jsonrpc":"1.0","method":"m"}', "$.jsonrpc"),
        (b'{"jsonrpc":2.0,"method":"m"}', "$.jsonrpc"), (b'{"jsonrpc":null,"method":"m"}', "$.jsonrpc"),
        (b'{"jsonrpc":"2.0"}', "$.method"), (b'{"jsonrpc":"2.0","method":7}', "$.method"),
        (b'{"jsonrpc":"2.0","method":null}', "$.method"), (b'{"jsonrpc":"2.0","method":["m"]}', "$.method"),
        (b"5", "$"), (b'"m"', "$"), (b"true", "$"), (b"null", "$"), (b"[[]]", "$"),
    ],
)  # fmt: skip
def test_json_that_is_no_request_is_refused_with_the_place(line: bytes, path: str) -> None:
    error = refusal(line)
    assert (type(error), error.data["path"], error_id(error)) == (InvalidRequest, path, b"null")
    assert {"expected", "got"} <= error.data.keys()


@pytest.mark.parametrize("wrong", [b'"jsonrpc":"1.0","method":"m"', b'"method":"m"', b'"jsonrpc":"2.0","method":7'])
def test_a_request_of_the_wrong_shape_is_answered_under_its_id_if_that_is_sound(wrong: bytes) -> None:
    assert error_id(refusal(b"{" + wrong + b',"id":"k"}')) == b'"k"'
    assert error_id(refusal(b"{" + wrong + b',"id":[1]}')) == b"null"


@pytest.mark.parametrize(
    "line",
    [b"hello", b"nul", b"tru", b"{", b"}", b'{"a":1,}', b"{'a':1}", b"{} {}", b"NaN", b'{"jsonrpc":"2.0","method":"m"} x', b'"abc',
     b"5 garbage", b'"a" "b"', b"123abc", b"null null", b"[1] [2]", b"true,"],
)  # fmt: skip
def test_what_is_no_json_is_a_parse_error(line: bytes) -> None:
    error = refusal(line)
    assert (type(error), error.reason, error_id(error)) == (ParseError, "parse-error", b"null")


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"nan", b"1.", b".5", b"01", b"-", b"+1", b"1_0", b"0x1", b"1,5e"])
def test_numbers_that_json_does_not_have_are_parse_errors(number: bytes) -> None:
    assert type(refusal(message(params=b"[" + number + b"]"))) is ParseError
    assert type(refusal(message(number))) is ParseError


@pytest.mark.parametrize("text", [b"\xff\xfe", b'{"a":"\xc3"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\xaf"}', b"\xff[1]"])
def test_what_is_no_utf8_is_refused(text: bytes) -> None:
    for line in (text, message(params=b'["' + text + b'"]')):
        error = refusal(line)
        assert (type(error), error.reason, error_id(error)) == (ParseError, "not-utf8", b"null")
    with pytest.raises(ParseError):
        decode_batch(b'["' + text + b'"]')


@pytest.mark.parametrize("deep", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000])
def test_deep_nesting_is_refused_and_does_not_hurt(deep: bytes) -> None:
    for line in (deep, message(params=deep)):
        error = refusal(line)
        assert (error.code, error.reason, error_id(error)) == (-32700, "too-deep", b"null")
    with pytest.raises(ParseError):
        decode_batch(b"[" + deep + b"]")


def test_every_class_of_error_has_its_code_and_reason() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, FkdError) and c is not FkdError]
    assert len({c.code for c in classes}) == len(classes)
    for c in classes:
        found = json.loads(error_reply(c("said", limit=3, absent=None), b'"i"'))
        assert found == {
            "jsonrpc": "2.0", "id": "i",
            "error": {"code": c.code, "message": "said", "data": {"reason": c.default_reason, "limit": 3}},
        }  # fmt: skip


@pytest.mark.parametrize("unsayable", [object(), {1, 2}, "\ud800", 2**70, [object()]])
def test_data_that_json_cannot_say_is_left_out(unsayable: object) -> None:
    found = json.loads(error_reply(InvalidParams("said", got=unsayable), b"1"))
    assert (found["error"]["code"], found["error"]["data"]["reason"]) == (-32602, "invalid-params")


@given(st.text(st.characters(categories=["Cs", "L", "Cc"]), max_size=20))
@example("\udcff")
def test_an_error_can_always_be_said(text: str) -> None:
    """Even with half a surrogate pair in it, as names of files that are not UTF-8 bring in."""
    assert json.loads(error_reply(InvalidParams(text), b"1"))["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("value", "words"),
    [(b"{}", "an object"), (b" [1,2]", "an array"), (b'"x"', '"x"'), (b"null", "null"), (b"1.5", "1.5"),
     (b'"' + b"x" * 50 + b'"', "a string of 52 bytes"), (b"7" * 50, "a number of 50 digits")],
)  # fmt: skip
def test_kinds_in_words(value: bytes, words: str) -> None:
    assert kind(value) == words


def test_reply_and_encode_make_compact_json() -> None:
    assert reply(encode({"a": [1.5, None]}), b'"x"').rstrip(b"\n") == b'{"jsonrpc":"2.0","result":{"a":[1.5,null]},"id":"x"}'


# -- long messages, which take a quicker way ---------------------------------------------------------------------------

ROWS = b"[" + b",".join([b"[0.25,-1.5,3]"] * 400) + b"]"


@pytest.mark.parametrize(
    "params",
    [
        b'{"q":%b,"q":[]}' % ROWS,
        b'{"q":%b,"\\u0071":[]}' % ROWS,
        b'{"q":%b,"tool":{"xyz":[1],"xyz":[2]}}' % ROWS,
        b'{"q":%b,"tool":{"xyz":[1],"\\u0078yz":[2]}}' % ROWS,
        b'{"text":"a \\" : b","q":%b,"q" : 1}' % ROWS,
    ],
)
def test_a_member_given_twice_in_a_long_message_is_refused(params: bytes) -> None:
    assert refusal(message(params=params)).reason == "duplicate-member"


@pytest.mark.parametrize(
    "params",
    [
        b'{"q":%b,"links":["q","q"],"base":"q"}' % ROWS,
        b'{"q":%b,"tool":{"q":1},"base":{"q":2}}' % ROWS,
        b'{"text":"\\"q\\":1,\\"q\\":2","q":%b}' % ROWS,
        b'{"q":%b,"\\\\q":1,"\\u0041":2,"B":3}' % ROWS,
    ],
)
def test_a_long_message_without_a_member_given_twice_is_taken(params: bytes) -> None:
    assert bytes(decode_request(message(params=params))[0].params) == params


@pytest.mark.parametrize("inside", [b"", b'"[[["', b'"\\"[["', b'"\\\\"'])
def test_depth_is_seen_behind_many_rows_and_odd_strings(inside: bytes) -> None:
    def deep(levels: int) -> bytes:
        return b'{"q":%b,"x":%b%b%b}' % (ROWS, b"[" * levels, inside, b"]" * levels)

    assert not too_deep(deep(MAX_DEPTH - 1))
    assert too_deep(deep(MAX_DEPTH))
