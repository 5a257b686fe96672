"""C text: bit for bit the operations of the Python function, and safe whatever the names are."""

from __future__ import annotations

import ctypes
import itertools
import math
import operator
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fkd.kernel.emit_c import CFunction, CTable, _number, emit_c, identifier
from fkd.kernel.emit_python import compile_python
from fkd.kernel.program import Program, record
from fkd.kernel.scalar import Ref, cos, sin

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wdouble-promotion", "-Wshadow")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compile C with")
WIDTH = 3

Builder = Callable[..., ctypes.CDLL]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """Compiles a header and a source, with every warning an error, into a library."""
    folder, number = tmp_path_factory.mktemp("c"), itertools.count()

    def compiled(prefix: str, texts: tuple[str, str], *flags: str) -> ctypes.CDLL:
        place = folder / str(next(number))
        place.mkdir()
        for ending, text in zip("hc", texts, strict=True):
            (place / f"{prefix}_fk.{ending}").write_bytes(text.encode("ascii"))  # no other bytes in any C
        done = subprocess.run(
            ["gcc", *STRICT, "-O0", *flags, "-shared", "-fPIC", "-o", place / "lib.so", place / f"{prefix}_fk.c", "-lm"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(place / "lib.so"))

    yield compiled
    shutil.rmtree(folder, ignore_errors=True)


def call(
    library: ctypes.CDLL, name: str, q: Sequence[float], sizes: Sequence[int], real: type = ctypes.c_double
) -> list[list[float]]:
    """A function of the library -> its outputs."""
    outs = [(real * max(size, 1))() for size in sizes]
    getattr(library, name)((real * max(len(q), 1))(*q), *outs)
    return [list(out)[:size] for out, size in zip(outs, sizes, strict=True)]


def texts(program: Program, real: str = "double") -> tuple[str, str]:
    outputs = tuple(f"out{k}" for k in range(len(program.outputs)))
    return emit_c("p", [CFunction("run", program, outputs, ["What the test wants."])], [], [], ["A program."], real)


# -- arithmetic ----------------------------------------------------------------------------------------------------

UNARY: dict[str, Any] = {"neg": operator.neg, "sin": sin, "cos": cos}
BINARY: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
STEPS = st.lists(
    st.tuples(st.sampled_from([*BINARY, *UNARY]), st.integers(0, 99), st.integers(0, 99)),
    min_size=30, max_size=80,
)  # fmt: skip


def computation(q: Sequence[Ref], steps: Sequence[tuple[str, int, int]]) -> list[list[Ref]]:
    """Every step reads two of the earlier values and is an output."""
    values: list[Ref] = [*q, 0.1, -2.5, 1e-300, 3.0]
    start = len(values)
    for op, i, j in steps:
        x, y = values[i % len(values)], values[j % len(values)]
        values.append(UNARY[op](x) if op in UNARY else BINARY[op](x, y))
    return [values[start:], values[:3]]


@needs_gcc
@settings(max_examples=8, deadline=None)
@given(STEPS, st.lists(st.lists(st.floats(-4, 4), min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=20))
def test_every_program_gives_bit_for_bit_what_python_gives(
    build: Builder, steps: list[tuple[str, int, int]], rows: list[list[float]]
) -> None:
    try:
        program = record(WIDTH, lambda q: computation(q, steps))
        assume(all(map(math.isfinite, program.constants.values())))
    except (ZeroDivisionError, ValueError):  # constants that fold to 1/0 or sin(inf)
        assume(False)
    single = compile_python(program)
    library = build("p", texts(program), "-ffp-contract=off")
    for q in rows:
        try:
            expected = single(q)
        except (ZeroDivisionError, ValueError):
            continue
        for found, wanted in zip(call(library, "p_run", q, [len(g) for g in program.outputs]), expected, strict=True):
            assert all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(found, wanted, strict=True))


@needs_gcc
def test_nan_in_gives_nan_out_and_a_zero_divisor_infinity(build: Builder) -> None:
    program = record(3, lambda q: [[sin(q[0]) + 1.0, cos(q[1]) * q[0], 2.0 / q[2], 4.0]])
    library = build("p", texts(program), "-O2")
    assert list(map(math.isnan, call(library, "p_run", [math.nan, 1.0, 1.0], [4])[0])) == [True, True, False, False]
    assert list(map(math.isnan, call(library, "p_run", [math.inf, 1.0, 1.0], [4])[0])) == [True, False, False, False]
    assert call(library, "p_run", [0.0, 0.0, 0.0], [4])[0] == [1.0, 0.0, math.inf, 4.0]


@needs_gcc
def test_outputs_may_lie_over_q(build: Builder) -> None:
    program = record(2, lambda q: [[q[0] + q[1], q[0] - q[1]]])
    library = build("p", texts(program), "-O3")
    memory = (ctypes.c_double * 2)(5.0, 3.0)
    library.p_run(memory, memory)
    assert list(memory) == [8.0, 2.0]


@needs_gcc
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("flags", [(), ("-ffreestanding", "-O2")])
def test_both_types_compile_without_a_warning(build: Builder, real: str, flags: tuple[str, ...]) -> None:
    program = record(3, lambda q: [[-(q[0] * -0.1) + 1e-12, sin(q[1] / 3.0), cos(-q[2]) - -7.0], [1.0, q[2], 1e-320]])
    kind = ctypes.c_double if real == "double" else ctypes.c_float
    found = call(build("p", texts(program, real), *flags), "p_run", [0.5, -1.0, 2.0], [3, 3], kind)
    expected = [[0.05 + 1e-12, math.sin(-1 / 3), math.cos(2.0) + 7.0], [1.0, 2.0, 0.0]]
    for row, wanted in zip(found, expected, strict=True):
        assert row == pytest.approx(wanted, abs=1e-15 if real == "double" else 1e-6)


@needs_gcc
def test_nothing_is_read_or_written_where_there_is_nothing(build: Builder) -> None:
    program = record(0, lambda q: [[1.5, -2.0], []])
    assert call(build("p", texts(program)), "p_run", [], [2, 0]) == [[1.5, -2.0], []]


# -- numbers -------------------------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_written_as_they_are(x: float) -> None:
    assert float(_number(x, "double")) == x
    assert re.search(r"[.e]", _number(x, "double"))  # else an int


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_are_written_as_they_are(x: float) -> None:
    text = _number(x, "float")
    assert text.endswith("f")
    assert re.search(r"[.e]", text)
    assert struct.pack("f", float(text[:-1])) == struct.pack("f", x)


@pytest.mark.parametrize(("x", "real"), [(math.inf, "double"), (math.nan, "double"), (1e39, "float"), (-3.5e38, "float")])
def test_constants_out_of_range_are_refused(x: float, real: str) -> None:
    with pytest.raises(ValueError, match="range of a"):
        _number(x, real)


# -- names ---------------------------------------------------------------------------------------------------------


@given(st.text(max_size=60))
def test_any_text_gives_the_start_of_an_identifier(text: str) -> None:
    assert re.fullmatch(r"[a-z](_?[a-z0-9])*", identifier(text))
    assert len(identifier(text)) <= 40
    assert identifier(identifier(text)) == identifier(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("UR5e", "ur5e"), ('2-arm "x"', "robot_2_arm_x"), ("__Größe__", "gro_e"), ("", "robot"), ("関節", "robot"),
     ("a" * 100, "a" * 40), ("int", "int"), ("ärm", "arm")],
)  # fmt: skip
def test_identifiers(text: str, expected: str) -> None:
    assert identifier(text) == expected


MEAN = st.text(st.sampled_from("*/?\\\n\r\"'%(<=!->ab \té関\u202e"), max_size=30)  # what ends comments and strings


@needs_gcc
@settings(max_examples=8, deadline=None)
@given(st.lists(MEAN, min_size=10, max_size=40), MEAN)
def test_names_reach_the_program_as_they_are_and_nothing_else_does(
    build: Builder, names: list[str], comment: str
) -> None:
    function = CFunction("run", record(1, lambda q: [[q[0]]]), ("T",), [comment, *names])
    table = CTable("names", names, comment)
    texts = emit_c("p", [function], [table], [("DIGEST", comment)], [*names, comment])
    library = build("p", texts, "-Wcomment", "-Wtrigraphs")
    held = (ctypes.c_char_p * len(names)).in_dll(library, "p_names")
    assert [h.decode() for h in held] == names
    assert call(library, "p_run", [3.0], [1]) == [[3.0]]


def test_a_string_longer_than_c_allows_is_refused() -> None:
    with pytest.raises(ValueError, match="4096 bytes"):
        emit_c("p", [], [CTable("names", ["é" * 2048], "")], [], [""])


@needs_gcc
def test_tables_of_numbers(build: Builder) -> None:
    tables = [CTable("bounds", [-math.inf, -1.5, 0.1, 1e300, math.inf], "Some."), CTable("none", [], "Left out.")]
    header, source = emit_c("p", [], tables, [("COUNT", 5)], ["Numbers."])
    assert "none" not in header + source
    assert "#define P_COUNT 5" in header
    library = build("p", (header, source))
    assert list((ctypes.c_double * 5).in_dll(library, "p_bounds")) == [-math.inf, -1.5, 0.1, 1e300, math.inf]
    library = build("p", emit_c("p", [], tables, [], ["Numbers."], "float"))
    found = list((ctypes.c_float * 5).in_dll(library, "p_bounds"))
    assert found == [-math.inf, -1.5, pytest.approx(0.1), math.inf, math.inf]


def test_the_same_input_gives_the_same_text() -> None:
    program = record(2, lambda q: [[q[0] * 0.3 + q[1]]])
    assert texts(program) == texts(program)
