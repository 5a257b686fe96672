"""Tables of numbers in files: .csv, .npy and .parquet, read and written a chunk of rows at a time.

Memory does not grow with the number of rows. Each format has a file of its own, `table_*.py`, with a reader and a writer.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fkd.errors import FkdError, cut, did_you_mean

Array = NDArray[np.float64]

ROWS = 4096  # of a chunk
FORMATS = {".csv": "table_csv", ".npy": "table_npy", ".parquet": "table_parquet"}


class Wanted(NamedTuple):
    """The columns that a table must have, those that it may have, and those that the user leaves out."""

    needed: Sequence[str]
    allowed: Sequence[str] = ()
    skipped: Sequence[str] = ()


class Chunk(NamedTuple):
    """Rows that were read: the first one's number (from 0), the values (n, columns), the share of the file up to here."""

    first: int
    values: Array
    share: float


class Reader(Protocol):
    """A table that is read."""

    @property
    def names(self) -> Sequence[str]:
        """Of the columns of its chunks: all that are needed in their order, then what is allowed and there."""

    def chunks(self) -> Iterator[Chunk]:
        """All rows. Raises FkdError with the place of what is no number."""

    def place(self, row: int) -> str:
        """Where a row stands, for messages: a line of text from 1, a row of an array from 0."""


class Writer(Protocol):
    """A table that is written."""

    def write(self, values: Array) -> None:
        """Append rows, (n, columns)."""

    def close(self) -> None: ...


def kind(path: str) -> str:
    """A table's format, by the ending of its name. Raises FkdError."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise FkdError(f"{path}: tables end in {', '.join(FORMATS)}{did_you_mean(ending, FORMATS)}")
    return ending


def open_table(path: str, wanted: Wanted) -> Reader:
    """A table with the wanted columns, in any order where they have names. Raises FkdError."""
    ending = kind(path)
    if not os.path.isfile(path):
        raise FkdError(f"cannot read {path}: {'not a regular file' if os.path.exists(path) else 'there is no such file'}")
    reader: Reader = _module(ending).open_reader(path, wanted)
    return reader


def create_table(path: Path, groups: Sequence[str], parts: Sequence[str], shape: tuple[int, ...]) -> Writer:
    """A new table with the columns GROUP.PART; for an .npy file rows of `shape`, without its first 1 for one group alone.

    Raises FkdError, or OSError.
    """
    ending = kind(path.name)
    writer: Writer
    if ending == ".npy":
        writer = _module(ending).NpyWriter(path, shape if len(groups) == 1 else (len(groups), *shape))
    else:
        writer = _module(ending).open_writer(path, [f"{group}.{part}" for group in groups for part in parts])
    return writer


def _module(ending: str) -> Any:
    try:
        return import_module(f"fkd.ctl.{FORMATS[ending]}")
    except ImportError:  # of the one library that is not fkd's own
        raise FkdError(f"{ending} files need pyarrow: pip install 'fkd[table]'", reason="no-pyarrow") from None


def order(names: Sequence[str], wanted: Wanted, where: str) -> list[int]:
    """The places among `names` of what is needed, then of what is allowed and there.

    Raises FkdError for a column that is absent, twice there, or unknown.
    """
    known, skipped = {*wanted.needed, *wanted.allowed}, set(wanted.skipped)
    for name, times in Counter(names).items():
        if times > 1:
            raise FkdError(f"{where}: column `{cut(name)}` is there twice")
        if name not in known and name not in skipped:
            raise FkdError(f"{where}: no joint `{cut(name)}`{did_you_mean(name, known)} (--skip '{cut(name)}' leaves the column out)")
    places = {name: k for k, name in enumerate(names) if name not in skipped}
    absent = [f"`{name}`" for name in wanted.needed if name not in places]
    if absent:
        raise FkdError(f"{where}: no column for {', '.join(absent[:8])}{', ...' if len(absent) > 8 else ''}")
    for name in wanted.skipped:
        if name not in names:
            raise FkdError(f"{where}: no column `{name}` to skip{did_you_mean(name, names)}")
    return [places[name] for name in (*wanted.needed, *wanted.allowed) if name in places]
