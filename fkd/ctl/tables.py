"""Tables of numbers in files, read and written a chunk of rows at a time: .csv, .npy and .parquet.

Memory does not grow with the number of rows. Numbers are written in the shortest form that reads back to the last bit.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fkd.errors import FkdError, did_you_mean

Array = NDArray[np.float64]

ROWS = 4096  # of a chunk that is read
NPY_HEADER = 192  # bytes of a .npy file before its numbers: room for any number of rows, a multiple of 64 (NEP 1)


class Chunk(NamedTuple):
    """Rows that were read: the first one's number (from 0), the values (n, columns), the share of the file up to here."""

    first: int
    values: Array
    share: float


class Reader(Protocol):
    """A table that is read."""

    def chunks(self) -> Iterator[Chunk]: ...
    def place(self, row: int) -> str:
        """Where a row stands, for messages."""
        ...


class Writer(Protocol):
    """A table that is written."""

    def write(self, values: Array) -> None: ...
    def close(self) -> None: ...


class CsvReader:
    """Comma-separated numbers, with or without a header that names the columns."""

    def __init__(self, path: str, columns: Sequence[str], skip: Sequence[str]) -> None:
        self.path = path
        self._columns = columns
        self._size = max(os.path.getsize(path), 1)
        with self._open() as file:
            first = file.readline()
        names = next(csv.reader([first]), [])
        if "," not in first and (";" in first or "\t" in first):
            raise FkdError(f"{path}:1: expected values parted by commas, with decimal points, got `{first.strip():.40}`")
        self._header = bool(names) and not any(map(_is_number, names))
        if self._header:
            self._order = order([n.strip().removeprefix("\ufeff") for n in names], columns, skip, f"{path}:1")
        else:
            if skip:
                raise FkdError(f"{path} has no header, so there are no columns that --skip could name")
            self._order = list(range(len(columns)))
        self._count = len(names) if self._header else len(columns)

    def _open(self) -> Any:
        try:
            return open(self.path, encoding="utf-8", newline="")
        except OSError as e:
            raise FkdError(f"cannot read {self.path}: {e.strerror}") from None

    def place(self, row: int) -> str:
        return f"{self.path}:{row + 1 + self._header}"

    def chunks(self) -> Iterator[Chunk]:
        rows: list[list[float]] = []
        first = done = 0
        with self._open() as file:
            try:
                if self._header:
                    done = len(file.readline())
                for line in file:
                    done += len(line)
                    rows.append(self._row(line, first + len(rows)))
                    if len(rows) == ROWS:
                        yield Chunk(first, self._array(rows), min(done / self._size, 1.0))
                        first, rows = first + ROWS, []
            except UnicodeDecodeError as e:
                raise FkdError(f"{self.place(first + len(rows))}: not UTF-8 ({e.reason})") from None
        if rows:
            yield Chunk(first, self._array(rows), 1.0)

    def _array(self, rows: list[list[float]]) -> Array:
        return np.array(rows, dtype=np.float64).reshape(len(rows), -1)[:, self._order]

    def _row(self, line: str, row: int) -> list[float]:
        words = next(csv.reader([line]), []) if '"' in line else line.split(",")
        if len(words) != self._count:
            hint = "; are its numbers parted by commas, with decimal points?" if ";" in line or "\t" in line else ""
            raise FkdError(f"{self.place(row)}: {len(words)} values where {self._count} are expected{hint}")
        if line.isascii() and "_" not in line:
            try:
                return [float(w) for w in words]
            except ValueError:
                pass
        kept = [(k, w) for k, w in enumerate(words) if not self._header or k in self._order]
        for k, word in kept:
            if not _is_number(word):
                raise FkdError(f"{self.place(row)}: column {k + 1}: `{word.strip():.40}` is not a number")
        found = dict(kept)  # what is skipped need not be a number
        return [float(found.get(k, "0")) for k in range(len(words))]


class NpyReader:
    """An (n, columns) array of numbers, mapped into memory."""

    def __init__(self, path: str, columns: Sequence[str], skip: Sequence[str]) -> None:
        if skip:
            raise FkdError(f"{path} names no columns, so there are none that --skip could name")
        self.path = path
        try:
            self._array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as e:
            raise FkdError(f"cannot read {path} as .npy: {e}") from None
        found = self._array
        if found.ndim != 2 or found.shape[1] != len(columns) or found.dtype.kind not in "fiu":
            raise FkdError(f"{path} is {found.dtype} of shape {found.shape}; expected numbers of shape (n, {len(columns)}): {', '.join(columns)}")

    def place(self, row: int) -> str:
        return f"{self.path}: row {row}"

    def chunks(self) -> Iterator[Chunk]:
        count = len(self._array)
        for first in range(0, count, ROWS):
            values = np.array(self._array[first : first + ROWS], dtype=np.float64)
            yield Chunk(first, values, (first + len(values)) / count)


class ParquetReader:
    """Columns by name."""

    def __init__(self, path: str, columns: Sequence[str], skip: Sequence[str]) -> None:
        self.path = path
        pyarrow = parquet()
        try:
            self._file = pyarrow.ParquetFile(path)
        except (OSError, ValueError) as e:  # pyarrow's own errors are both
            raise FkdError(f"cannot read {path} as Parquet: {' '.join(str(e).split())}") from None
        names = list(self._file.schema_arrow.names)
        self._names = [names[k] for k in order(names, columns, skip, path)]

    def place(self, row: int) -> str:
        return f"{self.path}: row {row}"

    def chunks(self) -> Iterator[Chunk]:
        first, count = 0, max(self._file.metadata.num_rows, 1)
        for batch in self._file.iter_batches(ROWS, columns=self._names):
            values = np.empty((batch.num_rows, len(self._names)))
            for k, name in enumerate(self._names):
                column = batch.column(batch.schema.get_field_index(name))
                found = column.to_numpy(zero_copy_only=False)  # gaps come as nan, which is refused later
                if found.dtype.kind not in "fiu":
                    raise FkdError(f"{self.path}: column `{name}` holds {column.type}, not numbers")
                values[:, k] = found
            first, start = first + len(values), first
            yield Chunk(start, values, first / count)


class CsvWriter:
    """A header, then numbers."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        csv.writer(self._file, lineterminator="\n").writerow(columns)

    def write(self, values: Array) -> None:
        self._file.writelines(",".join(map(repr, row)) + "\n" for row in values.tolist())

    def close(self) -> None:
        self._file.close()


class NpyWriter:
    """An array of rows of `shape`; how many is written into the header at the end. Source: NumPy, NEP 1."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self._file: BinaryIO = path.open("wb")
        self._shape = shape
        self._rows = 0
        self._file.write(bytes(NPY_HEADER))

    def write(self, values: Array) -> None:
        self._rows += len(values)
        self._file.write(np.ascontiguousarray(values, dtype="<f8").data)

    def close(self) -> None:
        text = str({"descr": "<f8", "fortran_order": False, "shape": (self._rows, *self._shape)})
        magic = b"\x93NUMPY\x01\x00" + (NPY_HEADER - 10).to_bytes(2, "little")
        self._file.seek(0)
        self._file.write(magic + text.encode().ljust(NPY_HEADER - 11) + b"\n")
        self._file.close()


class ParquetWriter:
    """Columns of doubles by name."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        import pyarrow

        self._new = pyarrow.RecordBatch.from_arrays
        self._schema = pyarrow.schema([(c, pyarrow.float64()) for c in columns])
        self._writer = parquet().ParquetWriter(str(path), self._schema)

    def write(self, values: Array) -> None:
        self._writer.write_batch(self._new([np.ascontiguousarray(c) for c in values.T], schema=self._schema))

    def close(self) -> None:
        self._writer.close()


READERS: dict[str, Callable[[str, Sequence[str], Sequence[str]], Reader]] = {".csv": CsvReader, ".npy": NpyReader, ".parquet": ParquetReader}


def kind(path: str) -> str:
    """A table's format, by the ending of its name. Raises FkdError."""
    ending = Path(path).suffix.lower()
    if ending not in READERS:
        raise FkdError(f"{path}: tables end in {', '.join(READERS)}{did_you_mean(ending, READERS)}")
    return ending


def read_table(path: str, columns: Sequence[str], skip: Sequence[str] = ()) -> Reader:
    """Open a table that has these columns, in any order where they are named. Raises FkdError."""
    ending = kind(path)
    if not os.path.isfile(path):
        raise FkdError(f"cannot read {path}: {'not a regular file' if os.path.exists(path) else 'there is no such file'}")
    return READERS[ending](path, columns, skip)


def parquet() -> Any:
    """pyarrow's Parquet module. Raises FkdError that says how to get it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise FkdError("Parquet files need pyarrow: pip install 'fkd[table]'", reason="no-pyarrow") from None
    return pyarrow.parquet


def order(names: Sequence[str], columns: Sequence[str], skip: Sequence[str], where: str) -> list[int]:
    """For each of `columns`, its place among `names`. Raises FkdError for one that is absent, twice, or unknown."""
    for name in names:
        if names.count(name) > 1:
            raise FkdError(f"{where}: column `{name}` is there twice")
        if name not in columns and name not in skip:
            raise FkdError(f"{where}: no joint `{name}`{did_you_mean(name, columns)} (--skip '{name}' leaves the column out)")
    absent = [c for c in columns if c not in names or c in skip]
    if absent:
        raise FkdError(f"{where}: no column for {', '.join(f'`{c}`' for c in absent[:8])}")
    unknown = [s for s in skip if s not in names]
    if unknown:
        raise FkdError(f"{where}: no column `{unknown[0]}` to skip{did_you_mean(unknown[0], names)}")
    return [names.index(c) for c in columns]


def _is_number(word: str) -> bool:
    """Whether this is a number in C's decimal spelling, finite or not."""
    try:
        float(word)
    except ValueError:
        return False
    return word.isascii() and "_" not in word
