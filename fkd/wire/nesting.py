"""What objects and arrays a message may hold: nested to a depth, and no member given twice.

A message of a megabyte may hold a million of them, which takes longer to look through than others can wait: so the look
is in steps.

Source: RFC 8259, section 9 (a limit on depth), and RFC 7493, section 2.3 (no duplicate members).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from operator import itemgetter

import msgspec

from fkd.errors import FkdError, InvalidParams, InvalidRequest, ParseError, cut

MAX_DEPTH = 64  # levels
STEP = 64  # tokens between two looks at other clients: some 50 us

# Possessive (*+): no way back is kept, which for a string of a megabyte would take a hundred.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PLAIN = rb'[^"{}\[\]]*+'  # numbers, literals, commas, colons, blanks
# What is not worth a look, up to a member's name, a bracket, or a leaf: an array of plain values, an object of one.
# There is always one further on: the text ends in a bracket. Else each letter behind it would be a new start.
_TOKENS = re.compile(
    _PLAIN + rb"(?:" + _STRING + rb"(?!\s*+:)" + _PLAIN + rb")*+"
    rb"(" + _STRING + rb"(?=\s*+:)|[}\]]|[{\[](?:" + _PLAIN + rb"(?:" + _STRING + _PLAIN + rb")?+[}\]])?+)"
)  # fmt: skip
_NAME, _OBJECT = b'"{'
_STRINGS = re.compile(_STRING)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def plainly_fine(text: bytes) -> bool:
    """Whether a quick look at a short text is enough: few brackets, and no string in it twice."""
    strings = text.split(b'"')[1::2]
    return len(set(strings)) == len(strings) and text.count(b"[") + text.count(b"{") <= MAX_DEPTH and b"\\" not in text


def tokens(text: bytes) -> list[bytes]:
    """What matters of a JSON array or object."""
    return _TOKENS.findall(text.rstrip())


def tokens_in_turn(text: bytes) -> Iterable[bytes]:
    """The same, each looked for when it is asked for."""
    return map(itemgetter(1), _TOKENS.finditer(text.rstrip()))


def examine(found: Iterable[bytes]) -> Generator[None, None, None]:
    """Look through the tokens of a request, a step at a time.

    Raises ParseError where it is nested deeper than MAX_DEPTH, InvalidRequest where it gives a member twice, and
    InvalidParams where an object inside it does.
    """
    nameless: set[bytes] = set()
    inside: list[set[bytes]] = []  # for each object or array that is open, the names so far
    for count, token in enumerate(found, 1):
        first = token[0]
        if first == _NAME:
            name = token if b"\\" not in token else _encode(_decode(token))
            if name in inside[-1]:
                raise _twice(cut(_decode(name)), len(inside) == 1)
            inside[-1].add(name)
        elif first in b"{[":
            if len(inside) == MAX_DEPTH:
                raise ParseError(f"nested deeper than {MAX_DEPTH} levels", reason="too-deep", expected=f"at most {MAX_DEPTH} levels")
            if len(token) == 1:
                inside.append(set() if first == _OBJECT else nameless)
        else:
            inside.pop()
        if count % STEP == 0:
            yield


def too_deep(text: bytes) -> bool:
    """Whether `text`, which is JSON of any kind and not long, is nested deeper than MAX_DEPTH."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRINGS.sub(b"", text).translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")  # takes the innermost level away
    return bool(brackets)


def _twice(name: str, outer: bool) -> FkdError:
    kind, path = (InvalidRequest, f"$.{name}") if outer else (InvalidParams, f"$.params..{name}")
    return kind(f"the member `{name}` is given twice", reason="duplicate-member", path=path, expected="each member once", got="twice")
