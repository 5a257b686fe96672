"""Parquet: columns by name, numbers without gaps, groups that are filled."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fkd.ctl import table_parquet
from fkd.ctl.table_parquet import ParquetReader, ParquetWriter
from fkd.ctl.tables import ROWS, Wanted
from fkd.errors import FkdError

AB = Wanted(["a", "b"])


def read(columns: dict[str, Any], wanted: Wanted = AB) -> np.ndarray:
    pa.parquet.write_table(pa.table(columns), "q.parquet")
    chunks = list(ParquetReader("q.parquet", wanted).chunks())
    assert all(len(c.values) <= ROWS for c in chunks)
    return np.concatenate([np.zeros((0, len(wanted.needed))), *(c.values for c in chunks)])


def test_rows_come_in_chunks_and_columns_by_name() -> None:
    rows = np.random.default_rng(1).normal(size=(2 * ROWS + 7, 2))
    for kind in ("f8", "f4", "i4"):
        found = rows.astype(kind)
        assert np.array_equal(read({"b": found[:, 1], "a": found[:, 0]}), found.astype(float))
    pa.parquet.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), "q.parquet", row_group_size=3000)
    chunks = list(ParquetReader("q.parquet", AB).chunks())
    assert [(c.first, len(c.values)) for c in chunks] == [(0, 3000), (3000, 3000), (6000, 2199)]
    assert np.array_equal(np.concatenate([c.values for c in chunks]), rows)
    assert chunks[-1].share == 1.0
    assert read({"a": pa.array([], pa.float64()), "b": pa.array([], pa.float64())}).shape == (0, 2)
    assert read({"a": [1.0], "note": ["x"], "b": [2.0]}, Wanted(["a", "b"], skipped=["note"])).tolist() == [[1.0, 2.0]]
    assert read({"a.x": [1.0], "a": [2.0]}, Wanted(["a", "a.x"])).tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1.0, None], "q.parquet: row 1: column `b` has no value"),
        ([1, None], "q.parquet: row 1: column `b` has no value"),
        (["x", "y"], "column `b` holds string"),
        ([True, False], "column `b` holds bool"),
        ([[1.0], [2.0]], "column `b` holds list"),
        ([{"c": 1.0}, {"c": 2.0}], "column `b` holds struct"),
        ([decimal.Decimal("1.5")] * 2, "column `b` holds decimal"),
        ([datetime.date(2020, 1, 1)] * 2, "column `b` holds date"),
    ],
)
def test_columns_must_be_numbers_without_gaps(column: list[Any], words: str) -> None:
    with pytest.raises(FkdError) as told:
        read({"a": [1.0, 2.0], "b": column})
    assert words in str(told.value)


def test_names_must_fit() -> None:
    for columns, words in (({"a": [1.0]}, "no column for `b`"), ({"a": [1.0], "b": [1.0], "bb": [1.0]}, "no joint `bb`; did you mean `b`")):
        with pytest.raises(FkdError, match=words):
            read(columns)
    pa.parquet.write_table(pa.Table.from_arrays([pa.array([1.0])] * 3, ["a", "b", "b"]), "q.parquet")
    with pytest.raises(FkdError, match="column `b` is there twice"):
        ParquetReader("q.parquet", AB)


def test_damage_is_told_of_the_file_that_is_read() -> None:
    read({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    whole = Path("q.parquet").read_bytes()
    for data in (b"", b"PAR1", whole[: len(whole) // 2], *(whole[:k] + b"\xff" * 8 + whole[k + 8 :] for k in (10, 30, 60, 100))):
        Path("q.parquet").write_bytes(data)
        with pytest.raises(FkdError, match=r"cannot read q.parquet as Parquet: .") as told:
            list(ParquetReader("q.parquet", AB).chunks())
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("rows", [0, 1, 10_000, 20_001])
def test_groups_are_filled_and_read_back_to_the_bit(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(table_parquet, "GROUP", 15_000)  # 5000 rows
    values = np.random.default_rng(2).normal(size=(rows, 3))
    writer = ParquetWriter(Path("out.parquet"), ["a", "b", "c.x"])
    for k in range(0, rows, 4321):
        writer.write(values[k : k + 4321])
    writer.close()
    found = pa.parquet.ParquetFile("out.parquet")
    assert found.metadata.num_row_groups == -(-rows // 5000)
    table = found.read()
    assert table.column_names == ["a", "b", "c.x"]
    assert np.array_equal(np.array(table.columns).T.reshape(-1, 3), values)
