"""Arrays of NumPy's own format. Source: NumPy, NEP 1."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib.format import open_memmap, write_array_header_1_0

from fkd.ctl.tables import ROWS, Array, Chunk, Reader, Wanted
from fkd.errors import FkdError


def open_reader(path: str, wanted: Wanted) -> Reader:
    return NpyReader(path, wanted)


class NpyReader:
    """An (n, columns) array of numbers, mapped into memory."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        if wanted.skipped:
            raise FkdError(f"{path} names no columns, so there are none that --skip could name")
        self.path = path
        self.names = list(wanted.needed)
        try:
            found = open_memmap(path, mode="r")
        except Exception as e:  # the head is an expression of Python's, and fails in all of its ways
            raise FkdError(f"cannot read {path} as .npy: {' '.join(str(e).split()) or type(e).__name__}") from None
        if found.ndim != 2 or found.shape[1] != len(self.names) or found.dtype.kind not in "fiu":
            raise FkdError(f"{path} is {found.dtype} of shape {found.shape}; expected numbers of shape "
                           f"(n, {len(self.names)}): {', '.join(self.names)}")  # fmt: skip
        self._array = found

    def place(self, row: int) -> str:
        return f"{self.path}: row {row}"

    def chunks(self) -> Iterator[Chunk]:
        count = len(self._array)
        memory = self._array.base
        for first in range(0, count, ROWS):
            with np.errstate(over="ignore"):  # what is beyond a double becomes infinite, and is refused as such
                values = np.array(self._array[first : first + ROWS], dtype=np.float64)
            if isinstance(memory, mmap.mmap):
                memory.madvise(mmap.MADV_DONTNEED)  # else all that was read counts as ours
            yield Chunk(first, values, (first + len(values)) / count)


class NpyWriter:
    """An array of rows of `shape`. How many there are is written into its head at the end, which NumPy leaves room for."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._rows = 0
        self._file: BinaryIO = path.open("wb")
        self._head()

    def _head(self) -> None:
        write_array_header_1_0(self._file, {"descr": "<f8", "fortran_order": False, "shape": (self._rows, *self._shape)})

    def write(self, values: Array) -> None:
        self._rows += len(values)
        self._file.write(np.ascontiguousarray(values, dtype="<f8").data)

    def close(self) -> None:
        self._file.seek(0)
        self._head()
        self._file.close()
