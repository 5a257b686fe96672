"""Comma-separated numbers, with or without a header that names the columns.

Written in the fewest digits that read back to the last bit, with a point and never a comma, whatever the locale. Read and
written by msgspec: a block of JSON's numbers under commas is an array of arrays but for its brackets, and what JSON does
not know (+1, .5, quotes, text in columns that are skipped) is then read line by line.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from fkd.ctl.tables import Array, Chunk, Reader, Wanted, Writer, order
from fkd.errors import FkdError

BLOCK = 1 << 18  # bytes that are read at once
LONGEST = 1 << 20  # bytes of a line: beyond, it is not a table
BOM = b"\xef\xbb\xbf"  # which spreadsheets put at the head


def open_reader(path: str, wanted: Wanted) -> Reader:
    return CsvReader(path, wanted)


def open_writer(path: Path, names: Sequence[str]) -> Writer:
    return CsvWriter(path, names)


class CsvReader:
    """Rows in the order of the header, or of what is wanted where there is none."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        self.path = path
        self._header = False
        with self._open() as file:
            self._size = max(os.fstat(file.fileno()).st_size, 1)
            first = file.readline(LONGEST + 1)
        if len(first) > LONGEST:
            raise self._too_long()
        line = first.removeprefix(BOM)
        self._start = len(first) - len(line)  # of the rows
        words = self._words(line, 0)
        if line.strip() and b"," not in line and (len(wanted.needed) > 1 or b";" in line or b"\t" in line):
            raise FkdError(f"{path}:1: expected values parted by commas, with decimal points, got `{words[0].strip():.40}`")
        names = [w.strip() for w in words]
        self._header = set(wanted.needed) <= set(names) or (bool(line.strip()) and not any(map(is_number, names)))
        if self._header:
            self._start = len(first)
            self._order = order(names, wanted, f"{path}:1")
        else:
            if wanted.skipped:
                raise FkdError(f"{path} has no header, so there are no columns that --skip could name")
            names = list(wanted.needed)
            self._order = list(range(len(names)))
        self.names = [names[k] for k in self._order]
        self._columns = names
        self._used = frozenset(self._order)
        self._decode = msgspec.json.Decoder(list[tuple[(float,) * len(names)]]).decode  # type: ignore[misc]  # made as it is run

    def _open(self) -> BinaryIO:
        try:
            return open(self.path, "rb")
        except OSError as e:
            raise FkdError(f"cannot read {self.path}: {e.strerror}") from None

    def place(self, row: int) -> str:
        return f"{self.path}:{row + 1 + self._header}"

    def chunks(self) -> Iterator[Chunk]:
        first, done = 0, self._start
        for block in self._blocks():
            values = self._values(block, first)
            done += len(block)
            yield Chunk(first, values[:, self._order], min(done / self._size, 1.0))
            first += len(values)

    def _blocks(self) -> Iterator[bytes]:
        """Whole lines, some BLOCK bytes at once."""
        rest = b""
        with self._open() as file:
            file.seek(self._start)
            while data := self._read(file):
                cut = data.rfind(b"\n") + 1
                if cut:
                    yield rest + data[:cut]
                    rest = b""
                rest += data[cut:]
                if len(rest) > LONGEST:
                    raise self._too_long()
        if rest:
            yield rest

    def _read(self, file: BinaryIO) -> bytes:
        try:
            return file.read(BLOCK)
        except OSError as e:
            raise FkdError(f"cannot read {self.path}: {e.strerror}") from None

    def _too_long(self) -> FkdError:
        return FkdError(f"{self.path} has a line of more than {LONGEST >> 20} MiB; is it CSV?")

    def _values(self, block: bytes, first: int) -> Array:
        """A block of lines -> (n, columns of the file), 0 for text that is skipped."""
        lines = block.removesuffix(b"\n")
        try:
            if b"[" not in lines:  # else a line might pass for several
                return np.array(self._decode(b"[[%b]]" % lines.replace(b"\n", b"],[")))
        except msgspec.MsgspecError:
            pass  # whose messages know no lines
        return np.array([self._row(line, first + k) for k, line in enumerate(lines.split(b"\n"))])

    def _row(self, line: bytes, row: int) -> list[float]:
        words = self._words(line, row)
        if len(words) != len(self._columns):
            raise FkdError(f"{self.place(row)}: {self._count(line, words)}")
        for k in self._used:
            if not is_number(words[k]):
                raise FkdError(f"{self.place(row)}: column `{self._columns[k]}`: `{words[k].strip():.40}` is not a number")
        return [float(w) if k in self._used else 0.0 for k, w in enumerate(words)]

    def _words(self, line: bytes, row: int) -> list[str]:
        try:
            text = line.decode()
            return next(csv.reader([text], strict=True), [""]) if '"' in text or "\r" in text else text.rstrip("\n").split(",")
        except UnicodeDecodeError as e:
            raise FkdError(f"{self.place(row)}: not UTF-8 ({e.reason})") from None
        except csv.Error as e:
            raise FkdError(f"{self.place(row)}: no line of CSV ({e})") from None

    def _count(self, line: bytes, words: Sequence[str]) -> str:
        """What is wrong with the number of words."""
        if not line.strip():
            return "an empty line"
        expected = len(self._columns)
        signs = b";" in line or b"\t" in line or len(line.split()) == expected or len(words) == 2 * expected
        hint = "; are they parted by commas, with decimal points?" if signs else ""
        return f"{len(words)} value{'' if len(words) == 1 else 's'} where {expected} are expected{hint}"


class CsvWriter:
    """A header, then numbers."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        head = StringIO()
        csv.writer(head, lineterminator="\n").writerow(names)
        self._file = path.open("wb")
        self._file.write(head.getvalue().encode())

    def write(self, values: Array) -> None:
        if len(values):
            self._file.write(msgspec.json.encode(values.tolist())[2:-2].replace(b"],[", b"\n") + b"\n")

    def close(self) -> None:
        self._file.close()


def is_number(word: str) -> bool:
    """Whether this is a number in C's decimal spelling, finite or not."""
    try:
        float(word)
    except ValueError:
        return False
    return word.isascii() and "_" not in word
