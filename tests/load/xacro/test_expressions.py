"""Expressions agree with Python where they are admitted, and whatever the text they end in a value or a Fault."""

from __future__ import annotations

import ast
import builtins
import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.load.xacro import expressions
from fkd.load.xacro.budget import MAX_BITS, Budget, Fault
from fkd.load.xacro.expressions import Evaluator, Local
from fkd.load.xacro.functions import CONSTANTS, MATH, PYTHON
from fkd.load.xacro.syntax import ALLOWED, MAX_EXPRESSION, parse
from fkd.load.xacro.values import Function, YamlDict, literal, show, truth


class Fixed:
    """The names of the language, and some more."""

    def __init__(self, **more: object) -> None:
        self.all = {**CONSTANTS, **more}

    def lookup(self, name: str) -> object:
        return self.all[name]

    def names(self) -> list[str]:
        return list(self.all)


def value(text: str, budget: Budget | None = None, **names: object) -> object:
    return Evaluator(budget or Budget()).evaluate(text, Fixed(**names))


def fault(text: str, budget: Budget | None = None, **names: object) -> Fault:
    with pytest.raises(Fault) as caught:
        value(text, budget, **names)
    return caught.value


def outcome(text: str, **names: object) -> object:
    """The value, or the Fault itself."""
    try:
        return value(text, **names)
    except Fault as refused:
        return refused


def same(a: object, b: object) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


# --- agreement with Python ---

numbers = st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6).map(lambda x: round(x, 6)))
leaf = numbers.map(lambda n: f"({n!r})") | st.sampled_from(["pi", "True", "None", "'ab'", "[1, 2]", "(3,)"])


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", "and", "or", "in", "&", "|", "^"])
    return st.one_of(
        st.tuples(inner, binary, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.integers(0, 6)).map(lambda t: f"({t[0]} ** {t[1]})"),
        st.tuples(st.sampled_from(["-", "+", "not ", "~"]), inner).map(lambda t: f"({t[0]}{t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"[{t[0]}, {t[1]}]"),
        st.tuples(inner, st.integers(-3, 3)).map(lambda t: f"{t[0]}[{t[1]}]"),
        st.tuples(st.sampled_from(["int", "float", "str", "bool", "len", "round", "list", "sin", "sqrt"]), inner).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
        st.tuples(inner, inner).map(lambda t: f"[i for i in {t[0]} if {t[1]}]"),
    )


safe = st.recursive(leaf, grow, max_leaves=12)


@given(safe)
@settings(max_examples=150, deadline=None)
def test_agrees_with_python(text: str) -> None:
    known = {n: getattr(builtins, n) for n in ("int", "float", "str", "bool", "len", "round", "list")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = {"__builtins__": known, "pi": math.pi, "sin": math.sin, "sqrt": math.sqrt}
            expected = eval(text, names)  # noqa: S307
    except Exception:
        expected = Fault
    if isinstance(expected, complex) or (isinstance(expected, int) and expected.bit_length() > MAX_BITS):
        expected = Fault
    found = outcome(text)
    if isinstance(found, Fault):
        # a limit of ours is the only other reason for not giving what Python gives
        assert expected is Fault or found.reason == "xacro-budget"
    else:
        assert expected is not Fault
        assert same(found, expected) or repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  1 + 1\t", 2),
        ("2**-1", 0.5),
        ("[a + b for a in 'xy' for b in 'z' if a != 'x']", ["yz"]),
        ("[(k, v) for k, v in dict(a=1).items()]", [("a", 1)]),
        ("list(map(lambda x: x + 1, [1, 2]))", [2, 3]),
        ("sorted(['bb', 'a'], key=len, reverse=True)", ["bb", "a"]),
        ("max([3, -5], key=python.abs)", -5),
        ("min([], default=4)", 4),
        ("python.sum([[1], [2]], [])", [1, 2]),
        ("python.list(python.zip([1, 2], 'ab'))", [(1, "a"), (2, "b")]),
        ("python.list(python.enumerate('ab', 1))", [(1, "a"), (2, "b")]),
        ("python.isinstance('a', (int, str))", True),
        ("'a,b;c'.replace(';', ',').split(',')", ["a", "b", "c"]),
        ("xacro.tokenize('a, b;c')", ["a", "b", "c"]),
        ("xacro.tokenize('a,,b', ',', False)", ["a", "", "b"]),
        ("'%05.1f %s' % (2.25, [1])", "002.2 [1]"),
        ("xacro.dotify(dict(a=dict(b=1))).a.b", 1),
        ("dict(a=1).get('b', 2)", 2),
        ("[*[1], 2][-1]", 2),
        ("max(*[1, 2])", 2),
        ("1 < 2 < 3", True),
        ("radians(180)", math.pi),
        ("math.floor(2.5)", 2),
        ("prod([2, 3.5])", 7.0),
        ("'x' 'y'", "xy"),
        ("{'a': 1, **{'b': 2}}", {"a": 1, "b": 2}),
    ],
)
def test_value(text: str, expected: object) -> None:
    assert value(text) == expected


def test_lists_can_be_read_twice() -> None:
    """Where Python gives an iterator, a property that holds it would be empty the second time."""
    names = {"m": value("map(float, ['1'])")}
    assert value("list(m) + list(m)", **names) == [1.0, 1.0]


def test_dots_reach_yaml_keys_alone() -> None:
    tree = YamlDict(a=YamlDict(items=3))
    assert value("t.a.items", t=tree) == 3
    assert value("t.a.items()", t=tree) == [("items", 3)]
    assert "did you mean `shoulder`" in fault("t.sholder", t=YamlDict(shoulder=1)).message
    assert "did you mean `shoulder`" in fault("t['sholder']", t={"shoulder": 1}).message
    assert "dotify" in fault("dict(a=1).a").message


def test_undefined_names_suggest() -> None:
    assert fault("lenght", length=1).reason == "xacro-undefined-property"
    assert "did you mean `length`" in fault("lenght", length=1).message
    assert "python.abs" in fault("abs(-1)").message


# --- numbers, texts and truth ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        (" 42 ", 42),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("1_0", "1_0"),
        ("'1'", "1"),
        ("", ""),
        ("yes", "yes"),
        ("0x10", "0x10"),
        ("[1]", "[1]"),
        (".5", 0.5),
        ("inf", math.inf),
    ],
)
def test_literal(text: str, expected: object) -> None:
    assert same(literal(text), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("true", True),
        ("True", True),
        ("0", False),
        ("-1", True),
        (" 1 ", True),
        ("0.0", None),
        ("yes", None),
        ("", None),
        (0.0, False),
        ([], False),
        ({"a": 1}, True),
        (None, False),
        (Function("f", len), None),
    ],
)
def test_truth(given: object, expected: bool | None) -> None:
    assert truth(given) is expected


@pytest.mark.parametrize(
    "given", [1.0, 0.1 + 0.2, True, None, 10**30, "a", [1, "b", None], (1,), {"a": [2.5]}, range(3)]
)
def test_show_is_str(given: object) -> None:
    assert show(given, Budget()) == str(given)


def test_functions_leave_no_text() -> None:
    for text in ("sin", "math", "lambda: 1", "[len]"):
        with pytest.raises(Fault, match="value is expected"):
            show(value(text), Budget())


# --- refusals ---


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "().__class__",
        "''.__class__.__mro__",
        "xacro.load_yaml.__globals__",
        "x.__dict__",
        "f(__x=1)",
        "lambda __x: 1",
        "[__a for __a in []]",
        "open('/etc/passwd')",
        "getattr(1, 'real')",
        "globals()",
        "(1).real",
        "'a'.format",
        "'a'.encode()",
        "python.vars()",
        "python.type(1)",
        "int.from_bytes",
        "str.join",
    ],
)
def test_no_way_out_of_the_language(text: str) -> None:
    fault(text)


@pytest.mark.parametrize(
    "text",
    [
        "'a'*10**9",
        "[0]*10**9",
        "(1,)*10**8",
        "10**10**10",
        "2**100000",
        "1<<10**9",
        "2**4095*2",
        "'%999999999d' % 1",
        "'%.999999999f' % 1",
        "'%*d' % (10**9, 1)",
        "len([i for i in range(10**9)])",
        "range(10**9)",
        "[i for i in range(99999) for j in range(99999)]",
        "[[0]*1000 for i in range(99999)]",
        "factorial(10**6)",
        "comb(10**6, 10**5)",
        "round(1, -10**9)",
        "'a'.ljust(10**9)",
        "'a'.join(['b'*1000]*99999)",
        "('a'*10**6).replace('a', 'b'*10**6)",
        "str([[0]*1000]*1000)",
        "[[[0]*999]*999]*999 == [[[0]*999]*999]*999",
        "['a'*10**6 for i in range(1000)]",
        "lcm(*range(1, 90000))",
        "prod(range(1, 99999))",
        "int('9'*10**6)",
        "('x'*10**6).split('x')",
        "prod([2**4000]*2)",
        "[1.5 in range(99999) for i in range(9999)]",
        "sorted([[1]]*90000)",
        "list('a'*10**6)",
    ],
)
def test_bombs_end_at_a_limit(text: str) -> None:
    fault(text, Budget(steps=50_000, memory=8 << 20))  # without limits: minutes, or all of the memory


def test_shared_parts_are_counted() -> None:
    shared: object = (1,)
    for _ in range(40):
        shared = (shared, shared)  # 2^40 entries in 40 cells
    for text in ("x == x", "[x][0] < x", "str(x)", "1 in [x]", "dict([(x, 1)])", "max([x, x])", "'%s' % (x,)"):
        assert fault(text, Budget(steps=50_000), x=shared).reason == "xacro-budget"


@pytest.mark.parametrize(
    "text",
    [
        "1/0",
        "1 % 0",
        "[1][5]",
        "'a'+1",
        "1 < 'a'",
        "int('x')",
        "sqrt(-1)",
        "(-8)**0.5",
        "10.0**400",
        "degrees(10**400)",
        "inf.x",
        "len(1)",
        "1()",
        "nan[0]",
        "'a'.index('b')",
        "'%d' % 'a'",
        "range(1, 2, 0)",
        "[a for 1 in [2]]",
        "*[1]",
        "[1][0:1, 2]",
        "dict(**1)",
        "xacro.fatal('no')",
        "(lambda x: x)()",
    ],
)
def test_errors_of_python_are_faults(text: str) -> None:
    assert fault(text).reason in ("xacro-expression", "xacro-fatal")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "1;2",
        "x = 1",
        "{1",
        "f'{1}'",
        "b'a'",
        "1j",
        "...",
        "{1, 2}",
        "(x := 1)",
        "yield",
        "await x",
        "[i async for i in x]",
        "print 1",
        "\x00",
        "\ud800",
        "1__0",
    ],
)
def test_not_in_the_language(text: str) -> None:
    assert fault(text).reason == "xacro-expression"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4000,
        "-" * 8000 + "1",
        "not " * 2000 + "1",
        "[" * 100 + "]" * 100,
        "9" * 8000,
        "1+" * 4000 + "1",
        "1 if 1 else " * 600 + "1",
        "a." * 4000 + "a",
        "lambda: " * 900 + "1",
        "f(" * 2000,
        "1" * (MAX_EXPRESSION + 1),
    ],
)
def test_deep_texts_are_refused(text: str) -> None:
    with pytest.raises((Fault, RecursionError)):  # the expander makes a refusal of the latter
        value(text)


printable = st.text(st.characters(codec="utf-8"), max_size=40)
pieces = st.lists(
    st.sampled_from(
        [
            *"()[]{}.,:=+-*/%<>'\"\\ 0123456789",
            "**",
            "//",
            "if",
            "else",
            "for",
            "in",
            "x",
            "lambda",
            "not",
            "and",
            "len",
            "xacro",
            ".",
            "__class__",
            "'a'",
            "range",
            "1e9",
            "map",
            "sorted",
            "format",
            "%s",
            "dict",
        ]
    ),
    max_size=30,
).map("".join)


@given(st.one_of(printable, pieces))
@settings(max_examples=200, deadline=None)
def test_garbage_ends_in_a_value_or_a_fault(text: str) -> None:
    found = outcome(text, x=[1, "a"])
    if isinstance(found, Fault):
        assert found.reason.startswith("xacro-")
        assert len(found.message) <= 600


def test_time_runs_out() -> None:
    budget = Budget(steps=10**9, memory=1 << 40, seconds=0.05)
    budget.start()
    with pytest.raises(Fault, match=r"0\.05 s"):
        Evaluator(budget).evaluate("[[i for i in range(99999)] for j in range(99999)]", Fixed())


def test_every_admitted_expression_has_a_walker() -> None:
    parts = {ast.Slice, ast.Starred}  # evaluated by the node that holds them
    nodes = {n for n in ALLOWED if issubclass(n, ast.expr)}
    assert nodes - parts == set(expressions._WALK)


def test_names_in_tables_are_documented_functions() -> None:
    assert all(isinstance(v, (Function, float)) for v in MATH.values())
    assert all(isinstance(v, (Function, bool)) for v in PYTHON.values())


def test_locals_hide_and_end() -> None:
    outer = Fixed(x=1)
    inner = Local(outer, {"x": 2})
    assert (inner.lookup("x"), outer.lookup("x")) == (2, 1)
    assert value("[x for x in [5]] + [x]", x=1) == [5, 1]


def test_parse_is_pure() -> None:
    assert ast.dump(parse("1+a")) == ast.dump(ast.parse("1+a", mode="eval").body)
