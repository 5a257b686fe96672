"""CSV: numbers to the last bit, any number of rows, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.ctl import table_csv
from fkd.ctl.table_csv import CsvReader, CsvWriter
from fkd.ctl.tables import Wanted
from fkd.errors import FkdError

ABC = Wanted(["a", "b", "c"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
# What a float may look like in C: json's numbers, and others that are read line by line.
SPELLINGS = st.one_of(
    NUMBERS.map(repr), st.integers(-(10**25), 10**25).map(str), st.sampled_from(["+1", ".5", "5.", "007", "1E5", " 2 ", "\t3", '"4"', "-0"])
)


def read(content: str | bytes, wanted: Wanted = ABC, name: str = "q.csv") -> np.ndarray:
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    chunks = list(CsvReader(name, wanted).chunks())
    return np.concatenate([np.zeros((0, len(wanted.needed))), *(c.values for c in chunks)])


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=20))
@settings(max_examples=60, deadline=None)
def test_what_is_written_reads_back_to_the_last_bit(rows: list[tuple[float, float, float]]) -> None:
    writer = CsvWriter(Path("out.csv"), ABC.needed)
    for k in range(0, len(rows), 7):
        writer.write(np.array(rows[k : k + 7]).reshape(-1, 3))
    writer.close()
    expected = np.array(rows).reshape(-1, 3)
    assert read(Path("out.csv").read_bytes()).tobytes() == expected.tobytes()
    lines = Path("out.csv").read_text().splitlines()
    assert [[float(x) for x in line.split(",")] for line in lines[1:]] == expected.tolist()


@given(st.lists(st.tuples(SPELLINGS, SPELLINGS, SPELLINGS), min_size=1, max_size=10), st.sampled_from(["\n", "\r\n"]), st.booleans())
@settings(max_examples=80, deadline=None)
def test_however_numbers_are_spelt_they_are_pythons(rows: list[tuple[str, ...]], end: str, last: bool) -> None:
    expected = [[float(x.strip('"')) for x in row] for row in rows]
    assert read(end.join(map(",".join, rows)) + end * last).tolist() == expected


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    text = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())
    for size in (1, 7, 64, 65, 1 << 18):
        monkeypatch.setattr(table_csv, "BLOCK", size)
        assert np.array_equal(read(text), rows)
        with pytest.raises(FkdError, match=r"q.csv:202: 2 values"):
            read(text + "1,2")
    monkeypatch.setattr(table_csv, "BLOCK", 256)
    chunks = list(CsvReader("q.csv", ABC).chunks()) if read(text).size else []
    assert max(len(c.values) for c in chunks) < 20
    assert [c.first for c in chunks] == np.cumsum([0, *(len(c.values) for c in chunks)])[:-1].tolist()
    shares = [c.share for c in chunks]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_header_may_come_in_any_order_quoted_and_spaced() -> None:
    for head in ("c,a,b", '"c","a","b"', " c, a ,b\r", "\ufeffc,a,b", '\ufeff"c",a,b'):
        assert read(f"{head}\n3,1,2\n").tolist() == [[1.0, 2.0, 3.0]]
    assert read("\ufeff1,2,3\n").tolist() == [[1.0, 2.0, 3.0]]
    assert read("").shape == read("a,b,c").shape == (0, 3)


def test_joints_whose_names_are_numbers_make_a_header() -> None:
    wanted = Wanted(["1", "2", "inf"])
    assert read("inf,1,2\n3,1,2\n", wanted).tolist() == [[1.0, 2.0, 3.0]]
    assert read("1,2,3\n", wanted).tolist() == [[1.0, 2.0, 3.0]]


def test_columns_that_are_skipped_may_hold_anything() -> None:
    wanted = Wanted(["a", "b"], skipped=["note", ""])
    assert read(',a,note,b\n0,1,"x, ""y""",2\n1,3,[],4\n', wanted).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert read(",a,note,b\n0,1,7,2\n", wanted).tolist() == [[1.0, 2.0]]
    with pytest.raises(FkdError, match=r"no column `nite` to skip; did you mean `note`"):
        read("a,b,note\n", Wanted(["a", "b"], skipped=["nite", "note"]))
    with pytest.raises(FkdError, match="has no header"):
        read("1,2,3\n", Wanted(["a", "b"], skipped=["note"]))


def test_what_is_allowed_comes_behind_what_is_needed() -> None:
    Path("q.csv").write_text("d,b,c,a\n4,2,3,1\n")
    reader = CsvReader("q.csv", Wanted(["a", "b"], ["c", "d", "e"]))
    assert reader.names == ["a", "b", "c", "d"]
    assert next(reader.chunks()).values.tolist() == [[1.0, 2.0, 3.0, 4.0]]


FAULTS = {
    "1,2\n": "q.csv:1: 2 values where 3 are expected",
    "1,2,3\n1\n": "q.csv:2: 1 value where 3",
    "1,2,3,\n": "q.csv:1: 4 values where 3",
    "1,2,3\n\n": "q.csv:2: an empty line",
    "1,2,3\n\n1,2,3\n": "q.csv:2: an empty line",
    "1,2,x\n": "q.csv:1: column `c`: `x` is not a number",
    "b,c,a\n1,2,3\n1,1_0,3\n": "q.csv:3: column `c`: `1_0` is not",
    "1,2,0x1\n": "q.csv:1: column `c`: `0x1`",
    "1,2,\n": "q.csv:1: column `c`: ``",
    "1,2,\u0665\n": "q.csv:1: column `c`",
    "1,2,3]\n": "q.csv:1: column `c`: `3]`",
    "1,2,3],[4,5,6\n": "q.csv:1: 6 values",
    "1,2,3]]\n": "q.csv:1: column `c`: `3]]`",
    '1,2,{"a":1}\n': "q.csv:1: ",
    "1,2,true\n": "q.csv:1: column `c`: `true`",
    "1,2,null\n": "q.csv:1: column `c`: `null`",
    "1;2;3\n": "q.csv:1: expected values parted by commas, with decimal points, got `1;2;3`",
    "a;b;c\n": "q.csv:1: expected values parted by commas",
    "a\tb\tc\n": "q.csv:1: expected values parted by commas",
    "1,5;2,5;3,5\n": "q.csv:1: 4 values where 3 are expected; are they parted by commas, with decimal points?",
    "1,5,2,5,3,5\n": "q.csv:1: 6 values where 3 are expected; are they parted by commas, with decimal points?",
    "1 2 3\n": "q.csv:1: expected values parted by commas",
    "1,2,3\n1 2 3\n": "q.csv:2: 1 value where 3 are expected; are they parted by commas",
    'a,b,c\n"1,5","2,5","3,5"\n': "q.csv:2: column `a`: `1,5` is not a number",
    "a,b,cc\n": "q.csv:1: no joint `cc`; did you mean `c`? (--skip 'cc' leaves the column out)",
    "a,b,b\n": "q.csv:1: column `b` is there twice",
    "a,b\n": "q.csv:1: no column for `c`",
    "time,a,b,c\n": "q.csv:1: no joint `time`",
    "# a,b,c\n": "q.csv:1: no joint `# a`",
    'a,b,c\n1,2,"3\n': "q.csv:2: no line of CSV",
    '"a\n': "q.csv:1: no line of CSV",
    "a,b,c\r1,2,3\r": "q.csv:1: no line of CSV",
    "\0\0\0": "q.csv:1: expected values parted by commas",
    "a,b,\0c\n": "q.csv:1: no joint",
}


@pytest.mark.parametrize("content", FAULTS, ids=range(len(FAULTS)))
def test_faults_are_told_with_their_line(content: str) -> None:
    with pytest.raises(FkdError) as told:
        read(content)
    assert str(told.value).startswith(FAULTS[content])


def test_other_encodings_and_endless_lines_are_refused() -> None:
    for content, words in (
        ("a,b,c\n1,2,\xe4\n".encode("latin-1"), "q.csv:2: not UTF-8"),
        ("a,b,c\n1,2,3\n".encode("utf-16"), "q.csv:1: not UTF-8"),
        (b"1" * (1 << 20) + b"1,2,3\n", "a line of more than 1 MiB"),
        (b"1,2,3\n" + b"1" * (3 << 20), "a line of more than 1 MiB"),
        (b'a,b,"' + b"c" * 200_000 + b'"\n', "q.csv:1: no line of CSV"),
    ):
        with pytest.raises(FkdError, match=words):
            read(content)


def test_ten_thousand_unknown_columns_are_told_at_once() -> None:
    with pytest.raises(FkdError, match="no joint `c0`"):
        read(",".join(f"c{k}" for k in range(100_000)) + "\n")


def test_names_with_commas_are_quoted() -> None:
    writer = CsvWriter(Path("out.csv"), ["a,b.x", '"c".x'])
    writer.close()
    assert Path("out.csv").read_text() == '"a,b.x","""c"".x"\n'
