"""Sine and cosine of arrays, both at once, by a table and a short series.

Why not NumPy's own: its float64 sin and cos are libm's, one element after the other, and would take two thirds of a
batch's time; this takes a third of theirs. Beyond libm, which makes the table, it uses only operations that IEEE 754
rounds correctly: the bits do not depend on the vector unit, nor on where in an array an element stands.
Source: Tang, Table-lookup algorithms for elementary functions, ARITH 1991 (reduce, look up, short series, add).
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
from numpy import add, bitwise_and, multiply, subtract, take

Array = np.ndarray[Any, np.dtype[np.float64]]

STEPS = 1024  # a turn is cut in so many; then |r| < 0.0031 and the series below end before r**7/7! and r**6/6!
# One step in two parts: k * COARSE is exact while |k| < 2**26, and k * FINE is wrong by less than 2**-63.
COARSE = float.fromhex("0x1.921fb54p-8")
FINE = float.fromhex("0x1.10b4611a62633p-38")
# Beyond this (65 536 turns) libm answers, which reduces by pi to any length.
LARGEST = COARSE * 2**26


def _table() -> list[Array]:
    """Sines and cosines of all steps, each as a double and what it lacks: halved from a quarter turn, then added up."""
    with decimal.localcontext() as context:
        context.prec = 60
        one = decimal.Decimal(1)
        cosine, sine = decimal.Decimal(0), one
        for _ in range(STEPS.bit_length() - 3):  # from a quarter of a turn to one step
            cosine, sine = ((one + cosine) / 2).sqrt(), ((one - cosine) / 2).sqrt()
        c, s = one, decimal.Decimal(0)
        rows = []
        for _ in range(STEPS):
            rows.append((float(s), float(s - decimal.Decimal(float(s))), float(c), float(c - decimal.Decimal(float(c)))))
            c, s = c * cosine - s * sine, s * cosine + c * sine
    return [np.array(column) for column in zip(*rows, strict=True)]


_SINES, _SINES_REST, _COSINES, _COSINES_REST = _table()

# Arrays without dimensions: a Python float would be converted at every call.
_PER_RADIAN, _COARSE, _FINE = np.array(STEPS / (2.0 * math.pi)), np.array(COARSE), np.array(FINE)
_S3, _S5, _C2, _C4 = np.array(-1.0 / 6.0), np.array(1.0 / 120.0), np.array(-0.5), np.array(1.0 / 24.0)
_MASK = np.array(STEPS - 1)
# Adding this rounds to a whole number and leaves it in the low bits: rint and a cast to integers in one.
_ROUNDER = np.array(1.5 * 2.0**52)

PASSES = 31  # calls that a piece takes
PIECE = 8000  # elements taken at once: six arrays of them and the table stay in a core's second cache


def aligned(lines: int, rows: int) -> Array:
    """An uninitialised (lines, rows) array that starts at a multiple of 64 bytes; so do its lines if rows % 8 == 0.

    NumPy aligns to 16, and then every access of a vector unit of 64 bytes touches two cache lines: a quarter slower.
    """
    memory = np.empty(lines * rows + 7)
    start = -memory.ctypes.data % 64 // 8
    return memory[start : start + lines * rows].reshape(lines, rows)


class SinCos:
    """Scratch for blocks of up to `rows` columns, and the computation over it. One thread at a time."""

    def __init__(self, rows: int) -> None:
        self._height = max(1, PIECE // max(rows, 1))
        self._scratch = aligned(4 * self._height, rows).reshape(4, self._height, -1)
        self._index = np.empty((self._height, rows), np.int64)

    def __call__(self, x: Array, s: Array, c: Array) -> None:
        """x: (m, k) rad -> sine into s, cosine into c, of the same shape; both within 1.2e-16 of libm's, most of them the same.

        What is not finite gives nan.
        """
        flat = x.reshape(-1)  # NumPy 1 would copy what has two dimensions in order to find its maximum
        if x.size and not (np.max(flat) <= LARGEST and np.min(flat) >= -LARGEST):  # so written that nan comes here
            far = ~(np.abs(x) <= LARGEST)
            values = x[far]
            x[far] = 0.0
            self(x, s, c)
            x[far], s[far], c[far] = values, np.sin(values), np.cos(values)
            return
        for top in range(0, len(x), self._height):
            part = slice(top, top + self._height)
            self._piece(x[part], s[part], c[part])

    def _piece(self, x: Array, s: Array, c: Array) -> None:
        m, n = x.shape
        k, r, z, w = self._scratch[:, :m, :n]
        index = self._index[:m, :n]
        multiply(x, _PER_RADIAN, k)
        add(k, _ROUNDER, k)
        bitwise_and(k.view(np.int64), _MASK, index)
        subtract(k, _ROUNDER, k)
        multiply(k, _COARSE, w)
        subtract(x, w, r)
        multiply(k, _FINE, w)
        subtract(r, w, r)  # x = k steps + r
        take(_SINES, index, None, s, "clip")  # "clip": the only other mode that does not buffer; nothing is clipped
        take(_COSINES, index, None, c, "clip")
        multiply(r, r, z)
        multiply(z, _S5, w)
        add(w, _S3, w)
        multiply(w, z, w)
        multiply(w, r, w)
        add(w, r, w)  # w = sin r
        multiply(z, _C4, k)
        add(k, _C2, k)
        multiply(k, z, k)  # k = cos r - 1
        multiply(s, k, z)
        multiply(c, w, r)
        add(z, r, z)
        multiply(c, k, k)
        multiply(s, w, w)
        subtract(k, w, k)
        take(_SINES_REST, index, None, r, "clip")
        take(_COSINES_REST, index, None, w, "clip")
        add(z, r, z)
        add(k, w, k)
        add(s, z, s)  # s + (s (cos r - 1) + c sin r + what s lacks)
        add(c, k, c)
