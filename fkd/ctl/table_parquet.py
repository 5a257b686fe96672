"""Parquet files, by pyarrow: the extra `fkd[table]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from fkd.ctl.tables import ROWS, Array, Chunk, Reader, Wanted, Writer, order
from fkd.errors import FkdError

GROUP = 1 << 21  # values of a row group, 16 MiB: each group and column costs a record at the file's end

BUFFER = 1 << 16  # bytes of a column that are read at once, where pyarrow would read a whole group's


def open_reader(path: str, wanted: Wanted) -> Reader:
    return ParquetReader(path, wanted)


def open_writer(path: Path, names: Sequence[str]) -> Writer:
    return ParquetWriter(path, names)


class ParquetReader:
    """Columns by name."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        self.path = path
        try:
            self._file = pyarrow.parquet.ParquetFile(path, buffer_size=BUFFER)
        except (OSError, pyarrow.ArrowException) as e:
            raise self._unreadable(e) from None
        names = list(self._file.schema_arrow.names)
        self.names = [names[k] for k in order(names, wanted, path)]

    def _unreadable(self, e: Exception) -> FkdError:
        return FkdError(f"cannot read {self.path} as Parquet: {' '.join(str(e).split())}")

    def place(self, row: int) -> str:
        return f"{self.path}: row {row}"

    def chunks(self) -> Iterator[Chunk]:
        first, count = 0, max(self._file.metadata.num_rows, 1)
        try:
            for batch in self._batches():
                values = np.empty((batch.num_rows, len(self.names)))
                for k, name in enumerate(self.names):
                    values[:, k] = self._numbers(batch.column(name), name, first)
                yield Chunk(first, values, (first + len(values)) / count)
                first += len(values)
        except (OSError, pyarrow.ArrowException) as e:
            raise self._unreadable(e) from None

    def _batches(self) -> Iterator[Any]:
        for group in range(self._file.num_row_groups):  # all asked for at once would all be kept
            yield from self._file.iter_batches(ROWS, row_groups=[group], columns=self.names)

    def _numbers(self, column: Any, name: str, first: int) -> Array:
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise FkdError(f"{self.place(first + row)}: column `{name}` has no value")
        found: Array = column.to_numpy(zero_copy_only=False)
        if found.dtype.kind not in "fiu":
            raise FkdError(f"{self.path}: column `{name}` holds {column.type}, not numbers")
        return found


class ParquetWriter:
    """Columns of doubles by name."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
        self._writer = pyarrow.parquet.ParquetWriter(str(path), self._schema, use_dictionary=False)
        self._group = np.empty((len(names), max(ROWS, GROUP // len(names))))
        self._rows = 0  # of the group, so far

    def write(self, values: Array) -> None:
        done = 0
        while done < len(values):
            part = values[done : done + self._group.shape[1] - self._rows]
            self._group[:, self._rows : self._rows + len(part)] = part.T
            self._rows += len(part)
            done += len(part)
            if self._rows == self._group.shape[1]:
                self._flush()

    def _flush(self) -> None:
        columns = [pyarrow.array(column[: self._rows]) for column in self._group]
        self._writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=self._schema))
        self._rows = 0

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()
