"""What a caller gives -> JSON, checked on the way: JSON has no NaN, and the encoder would silently write `null`.

NumPy is never imported here: if the caller came with an array, it is in sys.modules.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NoReturn

import msgspec

from fkclient.errors import BadValue

_DEEPEST = 8  # levels of nested numbers; more is a list that holds itself
_UNSENDABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


def _plain(value: Any) -> Any:
    """What the encoder does not know: arrays and scalars of NumPy's as lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be sent as JSON")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def q_bytes(q: Any) -> bytes:
    """Joint values as JSON: a list, rows of them, or {joint: value}.

    Raises BadValue for a NaN, an infinity, a boolean, a string or anything else that is no number, with its place.
    """
    if type(q) is list:
        try:
            data: bytes = _encode(q)
        except _UNSENDABLE:
            return number_bytes(q, "q")
        # The only letter in a number is e: a `u` or `a` is of null (for NaN), true or false; a quote, of a string.
        if not (b"u" in data or b"a" in data or b'"' in data) and (b"[[" not in data or _rows_are_lists(q)):
            return data
    return number_bytes(q, "q")


def _rows_are_lists(q: list[Any]) -> bool:
    """A row that is a set would be written as a list, in no certain order."""
    return set(map(type, q)) <= {list, tuple}


def number_bytes(value: Any, path: str) -> bytes:
    """Numbers in lists or dicts as JSON. Raises BadValue with the place of what is no finite number."""
    data: bytes = _encode(_numbers(value, path, 0))
    return data


def _numbers(value: Any, path: str, depth: int) -> Any:
    """A copy in dicts, lists, ints and floats; the slow and exact way, which finds what is wrong."""
    if depth > _DEEPEST:
        raise BadValue(f"{path} is nested too deeply; expected a list of numbers")
    if isinstance(value, Mapping):
        return {_name(k, path): _numbers(v, f'{path}["{k}"]', depth + 1) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return [_numbers(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
    if hasattr(value, "tolist"):  # an array or scalar of NumPy's, an array.array, a tensor
        return _numbers(value.tolist(), path, depth + 1)
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        _refuse(value, path)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        _refuse(value, path)
    if not isfinite(number):
        _refuse(value, path)
    return value if type(value) is int else number


def _name(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise BadValue(f"{path} has the key {key!r}; expected a name")
    return key


def _refuse(value: Any, path: str) -> NoReturn:
    try:
        text = repr(value)
    except ValueError:  # an int of thousands of digits
        text = "too long to print"
    if len(text) > 60:
        text = text[:57] + "..."
    raise BadValue(f"{path} is {text} ({type(value).__name__}); expected a finite number")


def json_bytes(value: Any, path: str) -> bytes:
    """Any value as JSON. Raises BadValue for what JSON cannot hold: NaN, infinity, objects, broken Unicode."""
    try:
        data: bytes = _encode(value)
        if b"null" in data:  # None, or a number that is not finite, which must not become None
            _refuse_non_finite(msgspec.to_builtins(value, enc_hook=_plain), path)
    except BadValue:
        raise
    except _UNSENDABLE as e:
        raise BadValue(f"{path} cannot be sent as JSON: {e}") from e
    return data


def _refuse_non_finite(value: Any, path: str) -> None:
    if isinstance(value, float) and not isfinite(value):
        _refuse(value, path)
    if isinstance(value, dict):
        for k, v in value.items():
            _refuse_non_finite(v, f'{path}["{k}"]')
    elif isinstance(value, (list, tuple, set, frozenset)):
        for i, v in enumerate(value):
            _refuse_non_finite(v, f"{path}[{i}]")


def numpy_of(*values: Any) -> Any:
    """The numpy module if one of the values is an array of it, else None."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(isinstance(value, numpy.ndarray) for value in values):
        return numpy
    return None


def array_to_list(array: Any, dimensions: int) -> Any:
    """q from an array of that many dimensions. Raises BadValue for another shape."""
    if array.ndim != dimensions:
        expected = "(dof,)" if dimensions == 1 else "(n, dof)"
        raise BadValue(f"q is an array of shape {array.shape}; expected {expected}")
    return array.tolist()


def flat_pose(pose: Any) -> Any:
    """A 4x4 matrix as the wire's 16 numbers, row-major; any other form of a pose as it is."""
    if numpy_of(pose) is not None:
        pose = pose.tolist()
    if isinstance(pose, (list, tuple)) and len(pose) == 4:
        rows = [row for row in pose if isinstance(row, (list, tuple)) and len(row) == 4]
        if len(rows) == 4:
            return [x for row in rows for x in row]
    return pose
