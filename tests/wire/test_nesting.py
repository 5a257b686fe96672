"""Depth and members given twice, judged against the standard library's parser; and in steps, as all at once."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fkd.errors import FkdError, InvalidParams, InvalidRequest, ParseError
from fkd.wire.nesting import MAX_DEPTH, STEP, examine, tokens, tokens_in_turn, too_deep

NAMES = ["a", "b", "", '"', "\\", "\\\\", "é", "{", "}]", ":", "a:", '":', "[1,2]", "\n"]
VALUES = ["0", "-1.5e+3", "true", "null", "[1,2.5, 3]", "[]", "{}", " [ ] "]
FINE = "fine"


class Writer:
    """Writes a random object: names twice at times, in any escape, blanks anywhere."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def blank(self) -> str:
        return self.random.choice(["", "", "", " ", "\t\n "])

    def string(self) -> str:
        text = self.random.choice(NAMES)
        if self.random.random() < 0.2:
            return '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"'
        return json.dumps(text, ensure_ascii=self.random.random() < 0.5)

    def value(self, depth: int) -> str:
        what = self.random.random()
        if depth == 0 or what < 0.3:
            return self.random.choice([*VALUES, self.string()])
        if what < 0.5:
            return "[" + ",".join(self.around(self.value(depth - 1)) for _ in range(self.random.randrange(4))) + "]"
        return self.object(depth - 1)

    def object(self, depth: int) -> str:
        members = [self.around(self.string()) + ":" + self.around(self.value(depth)) for _ in range(self.random.randrange(4))]
        return "{" + ",".join(members) + self.blank() + "}"

    def around(self, text: str) -> str:
        return self.blank() + text + self.blank()

    def wrapped(self, text: str, levels: int) -> str:
        for _ in range(levels):
            text = self.random.choice(["[%s]", "[0,%s]", '{"x":%s}', '[%s,"]"]', '{"y":"{","x":%s}']).replace("%s", text)
        return text


class Object(list[Any]):
    """The values of all members, those of one name too."""


def verdicts(text: str) -> set[object]:
    """What is wrong with an object, by another reading of it."""
    twice = []

    def pairs(members: list[tuple[str, Any]]) -> Object:
        found = Object(value for _, value in members)
        if len({name for name, _ in members}) < len(members):
            twice.append(found)
        return found

    read = json.JSONDecoder(object_pairs_hook=pairs).decode(text)
    wrong: set[object] = {InvalidRequest if found is read else InvalidParams for found in twice}
    if depth(read) > MAX_DEPTH:
        wrong.add(ParseError)
    return wrong or {FINE}


def depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level := [v for v in level if isinstance(v, list)]:
        deepest += 1
        level = [c for v in level for c in v]
    return deepest


def seen(text: str) -> object:
    try:
        for _ in examine(tokens(text.encode())):
            pass
    except FkdError as e:
        return type(e)
    return FINE


@given(st.integers(0, 1 << 40), st.sampled_from([0, 0, 0, 1, 56, 58, 59, 60, 61, 62, 63, 64, 65]))
@settings(max_examples=300, deadline=None)
@example(0, 64)
def test_what_is_wrong_is_seen_and_nothing_else(seed: int, levels: int) -> None:
    writer = Writer(seed)
    text = '{"x":' + writer.wrapped(writer.object(4), levels - 1) + "}" if levels else writer.object(4)
    assert seen(text) in verdicts(text)
    assert list(tokens_in_turn(text.encode())) == tokens(text.encode())


@given(st.integers(0, 1 << 40), st.integers(1, 70))
@settings(max_examples=100, deadline=None)
def test_too_deep_counts_levels_whatever_else_is_wrong_further_in(seed: int, levels: int) -> None:
    text = Writer(seed).wrapped('"]}"', levels)
    assert too_deep(b" " + text.encode() + b"\r\n") == (levels > MAX_DEPTH)


@pytest.mark.parametrize("text", [b"", b'"}"', b'"[[{"', b"]"[:0], b"7", b"null", b'"a":'])
def test_what_is_no_array_or_object_has_no_depth(text: bytes) -> None:
    assert not too_deep(text)


@pytest.mark.parametrize("leaf", [b"[]", b"{}", b"[1,2]", b'["a"]', b'{"a":1}', b'{"a":"b"}', b'{"a":1,"b":2}', b'[["x"]]'])
def test_leaves_count_as_a_level(leaf: bytes) -> None:
    inside = 1 + leaf.startswith(b"[[")
    for levels in (MAX_DEPTH - inside, MAX_DEPTH - inside + 1):
        assert too_deep(b"[" * levels + leaf + b"]" * levels) == (levels + inside > MAX_DEPTH)


def test_a_step_is_so_many_tokens() -> None:
    text = b'{"q":[' + b",".join([b'{"a":1,"b":[[]]}'] * 500) + b"]}"
    found = tokens(text)
    assert len(list(examine(found))) == len(found) // STEP > 5


def test_a_row_of_numbers_is_one_token_however_long() -> None:
    assert len(tokens(b'{"q":[[' + b"0.25, -1e5, " * 9999 + b'1]],"links":["a","b","c"]}')) == 9


def test_ends_in_no_more_time_than_it_takes_to_read() -> None:
    """Each of these would take hours if the way through it were sought more than once."""
    n = 300_000
    for text in (b'{"a":"' + b"\\\\" * n + b'"}', b"[" + b'"a" ,' * n + b"0]", b'{"a"' + b" " * n + b":" + b"\t" * n + b"[]}",
                 b"[" + b'{"a":' * 60 + b'"' + b"[" * n + b'"' + b"}" * 60 + b"]", b"[" + b"{ " * 1 + b'"' + b"a" * n + b'":1}]'):  # fmt: skip
        json.loads(text)
        assert not any(examine(tokens_in_turn(text)))
        assert not too_deep(text)
