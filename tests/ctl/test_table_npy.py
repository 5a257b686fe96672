"""Arrays of NumPy's: every kind of number, any order, and heads that lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fkd.ctl.table_npy import NpyReader, NpyWriter
from fkd.ctl.tables import ROWS, Wanted
from fkd.errors import FkdError

AB = Wanted(["a", "b"])
ROW = b"\x93NUMPY\x01\x00"


def read(array: np.ndarray) -> np.ndarray:
    np.save("q.npy", array)
    chunks = list(NpyReader("q.npy", AB).chunks())
    assert all(len(c.values) <= ROWS for c in chunks)
    assert not chunks or chunks[-1].share == 1.0
    return np.concatenate([np.zeros((0, 2)), *(c.values for c in chunks)])


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "<f2", "<i2", ">i8", "u1"])
@pytest.mark.parametrize("rows", [0, 1, 2 * ROWS + 7])
def test_all_numbers_in_any_order_of_bytes_and_axes(kind: str, rows: int) -> None:
    array = np.random.default_rng(1).integers(0, 100, (rows, 2)).astype(kind)
    assert np.array_equal(read(array), array.astype(float))
    assert np.array_equal(read(np.asfortranarray(array)), array.astype(float))


def test_what_is_beyond_a_double_is_infinite_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    if np.finfo(np.longdouble).max == np.finfo(float).max:
        pytest.skip("a long double is a double here")
    assert read(np.full((1, 2), np.longdouble("1e400"))).tolist() == [[np.inf, np.inf]]
    assert not recwarn


@pytest.mark.parametrize(
    "array",
    [np.zeros(2), np.zeros((2, 3)), np.zeros((2, 2, 1)), np.float64(1), *(np.zeros((2, 2), kind) for kind in ("?", "c16", "U3", "M8[s]", "V8"))],
)
def test_other_shapes_and_kinds_are_refused(array: np.ndarray) -> None:
    with pytest.raises(FkdError, match=r"expected numbers of shape \(n, 2\): a, b"):
        read(array)


def head(text: str) -> bytes:
    return ROW + len(text).to_bytes(2, "little") + text.encode() + bytes(64)


LIES = {
    "empty": b"",
    "text": b"1,2\n",
    "zip": b"PK\x03\x04" + bytes(60),
    "pickle": b"\x80\x04N.",
    "short": ROW + b"\xff\xff",
    "far too long": head("{'descr':'<f8','fortran_order':False,'shape':(99999999,2)}"),
    "beyond an integer": head("{'descr':'<f8','fortran_order':False,'shape':(1" + "0" * 30 + ",2)}"),
    "negative": head("{'descr':'<f8','fortran_order':False,'shape':(-2,2)}"),
    "true": head("{'descr':'<f8','fortran_order':False,'shape':(True,2)}"),
    "a sum": head("{'descr':'<f8','fortran_order':False,'shape':(1+1,2)}"),
    "objects": head("{'descr':'|O','fortran_order':False,'shape':(2,2)}"),
    "nested": head("(" * 5000),
    "signs": head("-" * 9000 + "1"),
}


@pytest.mark.parametrize("name", LIES)
def test_what_is_no_array_is_refused(name: str) -> None:
    Path("q.npy").write_bytes(LIES[name])
    with pytest.raises(FkdError, match=r"cannot read q.npy as .npy: .") as told:
        NpyReader("q.npy", AB)
    assert "\n" not in str(told.value)


def test_arrays_have_no_columns_to_skip() -> None:
    np.save("q.npy", np.zeros((1, 2)))
    with pytest.raises(FkdError, match="names no columns"):
        NpyReader("q.npy", Wanted(["a", "b"], skipped=["c"]))


@pytest.mark.parametrize("shape", [(7,), (4, 4), (12, 4, 4)])
@pytest.mark.parametrize("rows", [0, 1, 10_001])
def test_the_head_is_right_whatever_the_number_of_rows(shape: tuple[int, ...], rows: int) -> None:
    array = np.random.default_rng(2).normal(size=(rows, *shape)) if rows < 2 or len(shape) < 3 else np.zeros((rows, *shape))
    writer = NpyWriter(Path("out.npy"), shape)
    for k in range(0, rows, 4000):
        writer.write(array[k : k + 4000].reshape(-1, int(np.prod(shape))))
    writer.close()
    found = np.load("out.npy", allow_pickle=False)
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()
