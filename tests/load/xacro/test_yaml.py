"""YAML means what PyYAML says it means, or is refused with its line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.load.xacro.budget import Budget, Fault
from fkd.load.xacro.values import YamlDict
from fkd.load.xacro.yaml import parse_yaml


def read(text: str) -> object:
    return parse_yaml(text.encode(), "f.yaml", Budget(), float)


def outcome(text: str) -> object:
    """The value, or the Fault itself."""
    try:
        return read(text)
    except Fault as refused:
        return refused


def same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(same(x, y) for x, y in zip([*a, *a.values()], [*b, *b.values()], strict=True))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("010", 8),
        ("0o7", "0o7"),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("+1", 1),
        ("-1", -1),
        ("1:30", 90),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", "-.5"),
        ("1e3", "1e3"),
        ("1e-3", "1e-3"),
        ("1.0e3", "1.0e3"),
        ("1.0e-3", 0.001),
        ("1.5E+10", 1.5e10),
        ("1:30.5", 90.5),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        (".nan", math.nan),
        ("0_1", 1),
        ("yes", True),
        ("No", False),
        ("ON", True),
        ("off", False),
        ("true", True),
        ("tRue", "tRue"),
        ("y", "y"),
        ("n", "n"),
        ("null", None),
        ("~", None),
        ("", None),
        ("a b", "a b"),
        ("a#b", "a#b"),
        ("a #b", "a"),
        ("a:b", "a:b"),
        ("http://x", "http://x"),
        ("1.2.3", "1.2.3"),
        ("0 0 0", "0 0 0"),
        ("'it''s'", "it's"),
        ('"\\n\\x41\\u00e9"', "\nA\xe9"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("!radians 2", 2.0),
        ("!degrees 180", math.pi),
        ("2001-01-01", "2001-01-01"),
    ],
)
def test_scalars(text: str, expected: object) -> None:
    assert same(read(f"k: {text}"), {"k": expected})
    if text:
        assert same(read(f"[{text}, 1]" if " #" not in text else f"[{text}\n, 1]"), [expected, 1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: 1\nb:\n  c: 2\n  d:\n    - x\n    - y: 1\n      z: 2\ne: 3\n",
            {"a": 1, "b": {"c": 2, "d": ["x", {"y": 1, "z": 2}]}, "e": 3},
        ),
        ("a:\n- 1\n- 2\nb: 3", {"a": [1, 2], "b": 3}),
        ("- - 1\n  - 2\n-\n  - 3\n- \n", [[1, 2], [3], None]),
        ("# c\n---\n# d\na: 1 # e\n\n# f\n...\n", {"a": 1}),
        ("a: [1, [2,\n  3], {b: 4,\n 'c': 5, d}] # x", {"a": [1, [2, 3], {"b": 4, "c": 5, "d": None}]}),
        ('{"a":1, b: , c: [],}', {"a": 1, "b": None, "c": []}),
        (
            "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\nf:\n  <<: [*x, {b: 9, g: 3}]\n",
            {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}, "f": {"b": 1, "g": 3}},
        ),
        ("a: |\n  x\n   y\n\n  z\nb: >-\n  one\n  two\n\n  three\n", {"a": "x\n y\n\nz\n", "b": "one two\nthree"}),
        ("a: one\n  two\n\n  three\nb: 'x\n  y'\n", {"a": "one two\nthree", "b": "x y"}),
        ("inertia:\ninertia:\n  xx: 1\n", {"inertia": {"xx": 1}}),
        ("2: a\nyes: b\n~: c", {2: "a", True: "b", None: "c"}),
        ("a:\r\n  b: 1\r\n", {"a": {"b": 1}}),
        ("\ufeffa: 1", {"a": 1}),
        ("", None),
        ("just text", "just text"),
    ],
)
def test_structure(text: str, expected: object) -> None:
    assert same(read(text), expected)


def test_mappings_are_dotted() -> None:
    value = read("a: [{b: 1}]")
    assert isinstance(value, YamlDict)
    assert isinstance(value["a"][0], YamlDict)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1", 2),
        ("a: 1\n b: 2", 2),
        ("a: 1\nb", 2),
        ("a: b: c", 1),
        ("\n- a\nb: 1", 3),
        ("a: {b: 1", 1),
        ("a: 'b", 1),
        ("a: *x", 1),
        ("&a [*a]", 1),
        ("%YAML 1.2\n---\na: 1", 1),
        ("a: 1\n---\nb: 2", 2),
        ("? a\n: b", 1),
        ("a:\n\tb: 1", 2),
        ("a: !!python/object/apply:os.system [ls]", 1),
        ("a: !degrees [1]", 1),
        ("a: !degrees x", 1),
        ("a: !foo 1", 1),
        ("a: @x", 1),
        ("a: `x`", 1),
        ("a: \x01", 1),
        ("a: 2001-01-01 10:00:00", 1),
        ('a: "\\q"', 1),
        ("a: - b", 1),
        ("[a, b: 1]", 1),
        ("{[a]: 1}", 1),
        ("a: 0b", None),
        ("a: ]", 1),
        (": 1", 1),
        ("a: 'b' c", 1),
        ("a: |x\n y", 1),
    ],
)
def test_refusals_say_the_line(text: str, line: int | None) -> None:
    if line is None:
        assert read(text) == {"a": "0b"}
        return
    with pytest.raises(Fault) as caught:
        parse_yaml(text.encode(), "f.yaml", Budget(), lambda t: float(t) if t != "x" else _fail())
    assert (caught.value.reason, caught.value.file, caught.value.line) == ("xacro-yaml", "f.yaml", line)


def _fail() -> float:
    raise Fault("xacro-expression", "no number")


@pytest.mark.parametrize(
    "text",
    ["[" * 99, "- " * 99, "\n".join(" " * i + "a:" for i in range(99)), "x" * (1 << 19), "\xff".encode("utf-16")],
)
def test_limits(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(Fault, match=r"deeper|more than|UTF-8"):
        parse_yaml(data, "f.yaml", Budget(), float)


def test_aliases_share() -> None:
    """A thousand characters that would be 9^20 entries if they were copied."""
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 21)]
    value = read("\n".join(lines))
    assert isinstance(value, YamlDict)
    assert value["a20"][0] is value["a20"][8]


keys = st.text(st.sampled_from("abcxyz_ 019.-"), max_size=8)
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]) | st.sampled_from("\n\t"), max_size=12
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(allow_nan=False), keys, texts)
trees = st.recursive(scalars, lambda t: st.lists(t, max_size=4) | st.dictionaries(keys, t, max_size=4), max_leaves=15)


@given(trees, st.sampled_from([True, False, None]))
@settings(max_examples=100, deadline=None)
def test_reads_what_pyyaml_writes(value: object, flow: bool | None) -> None:
    yaml = pytest.importorskip("yaml")
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    expected = yaml.safe_load(text)
    found = outcome(text)
    if isinstance(found, Fault):
        assert any(
            mark in text for mark in ("? ", "\\\n", "|", ">", "!!")
        )  # complex keys, escaped breaks, indented folds
    else:
        assert same(found, expected)


@given(st.text(st.sampled_from("ab1 .:-#,[]{}&*!|>'\"\n\\?~"), max_size=24))
@settings(max_examples=200, deadline=None)
def test_soup_is_read_as_pyyaml_does_or_refused(text: str) -> None:
    yaml = pytest.importorskip("yaml")
    found = outcome(text)
    if isinstance(found, Fault):
        assert found.reason == "xacro-yaml"
        return
    try:
        expected = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError):
        return  # stricter than we are: tested above where it matters
    assert same(found, expected)
