"""The parameters of every method, as types. What they say is what the wire takes: no more members, no fewer.

Lengths in metre, angles in radian unless `degrees`. A pose comes in as 16 numbers or 4x4 (row-major), or as an
object: `matrix`, or `xyz` with `quaternion` [x, y, z, w] or `rpy`, or `position` with `orientation` (ROS).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from fkd.errors import InvalidParams, cut
from fkd.wire.jsonrpc import kind

Q = list[float] | dict[str, Raw]  # the values raw, so that an error can name the joint
Matrix = list[float | list[float]]


class _Named(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """By-name parameters."""


class Point(_Named):
    x: float
    y: float
    z: float


class Orientation(_Named):
    x: float
    y: float
    z: float
    w: float


class PoseObject(_Named):
    """A pose as an object, in one of the forms above."""

    matrix: Matrix | None = None
    xyz: list[float] | None = None
    quaternion: list[float] | None = None
    rpy: list[float] | None = None
    position: Point | None = None
    orientation: Orientation | None = None


Pose = Matrix | PoseObject


class ComputeFk(_Named):
    """q -> T_base_link for each of `links`; `tool` is T_link_tool, appended to each."""

    q: Q
    links: list[str] | str | None = None
    base: str | None = None
    tool: Pose | None = None
    degrees: bool = False
    format: Literal["matrix", "pose", "ros"] = "matrix"
    missing: Literal["error", "zero"] = "error"
    stamp: bool = False


class Decompose(_Named):
    """A pose in all its forms: that of `link` at q, or one that is given."""

    q: Q | None = None
    link: str | None = None
    base: str | None = None
    degrees: bool = False
    missing: Literal["error", "zero"] = "error"
    matrix: Matrix | None = None
    pose: Pose | None = None
    xyz: list[float] | None = None
    quaternion: list[float] | None = None
    rpy: list[float] | None = None


class Nothing(_Named):
    """For methods without parameters."""


compute_fk = msgspec.json.Decoder(list[float] | ComputeFk)
decompose = msgspec.json.Decoder(list[float] | Decompose)
nothing = msgspec.json.Decoder(list[Any] | Nothing)
_value = msgspec.json.Decoder(float | list[float])


def read_q(q: Q, path: str = "$.params.q") -> list[float] | dict[str, float | list[float]]:
    """q with the joints' values as numbers, or lists of numbers for wide joints. Raises InvalidParams."""
    if isinstance(q, list):
        return q
    values = {}
    for joint, raw in q.items():
        try:
            values[joint] = _value.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            expected, got = "a finite number, or a list of them for a planar or floating joint", kind(bytes(raw))
            where = f"{path}.{cut(joint)}"
            raise InvalidParams(f"{where}: expected {expected}, got {got}", reason="not-a-number", path=where,
                                expected=expected, got=got) from None
    return values


def read_nothing(params: Raw, method: str) -> None:
    """For methods without parameters: raise InvalidParams if there are any."""
    given = nothing.decode(params)
    if isinstance(given, list) and given:
        raise InvalidParams(f"{method} takes no parameters", reason="no-parameters", path="$.params", expected="[]",
                            got=f"an array of {len(given)}")
