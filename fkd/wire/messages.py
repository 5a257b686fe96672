"""The parameters of every method, as types. What they say is what the wire takes: no more members, no fewer.

Lengths in metre, angles in radian unless `degrees`. A pose comes in as 16 numbers or 4x4 (row-major), or as an
object: `matrix`, or `xyz` with `quaternion` [x, y, z, w] or `rpy`, or `position` with `orientation` (ROS).
"""

from __future__ import annotations

import re
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


class ComputeFkBatch(_Named):
    """As ComputeFk, for each row of `q`. The rows stay raw: they are decoded as they are computed, a slice at a time."""

    q: list[Raw]
    links: list[str] | str | None = None
    base: str | None = None
    tool: Pose | None = None
    degrees: bool = False
    format: Literal["matrix", "pose", "ros"] = "matrix"
    missing: Literal["error", "zero"] = "error"
    stamp: bool = False


class ComputeJacobian(_Named):
    """q -> the Jacobian of `link`, or of the point that `tool` (T_link_tool) names, in the axes of `frame`."""

    q: Q
    link: str | None = None
    base: str | None = None
    tool: Pose | None = None
    degrees: bool = False
    missing: Literal["error", "zero"] = "error"
    frame: Literal["base", "tip"] = "base"


class ComputeIk(_Named):
    """The pose of `link` (or of `tool` on it) -> q. The seed is where to start from, and what the solutions are near to."""

    pose: Pose
    link: str | None = None
    base: str | None = None
    tool: Pose | None = None
    seed: Q | None = None
    solutions: Literal["one", "nearest", "all"] = "one"
    method: Literal["auto", "numeric", "analytic"] = "auto"
    position_tolerance: float = 1e-6
    orientation_tolerance: float = 1e-6
    position_only: bool = False
    timeout_ms: float = 200.0
    best_effort: bool = False
    degrees: bool = False


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


class Dh(_Named):
    """The table of the chain from `base` to `link`."""

    convention: Literal["standard", "modified"] = "standard"
    link: str | None = None
    base: str | None = None


class Pin(_Named):
    """The digest of the only model that the caller takes answers from."""

    digest: str


class Reload(_Named):
    """`bundle`: another file to serve from now on; default the one that serves, read anew."""

    bundle: str | None = None


class Nothing(_Named):
    """For methods without parameters."""


compute_fk = msgspec.json.Decoder(list[float] | ComputeFk)
compute_fk_batch = msgspec.json.Decoder(ComputeFkBatch)
compute_jacobian = msgspec.json.Decoder(list[float] | ComputeJacobian)
compute_ik = msgspec.json.Decoder(ComputeIk)
decompose = msgspec.json.Decoder(list[float] | Decompose)
dh = msgspec.json.Decoder(list[Any] | Dh)
pin = msgspec.json.Decoder(list[str] | Pin)
reload = msgspec.json.Decoder(list[Any] | Reload)
nothing = msgspec.json.Decoder(list[Any] | Nothing)
_value = msgspec.json.Decoder(float | list[float])
_row = msgspec.json.Decoder(list[float] | dict[str, Raw])


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


def read_row(row: Raw, path: str) -> list[float] | dict[str, float | list[float]]:
    """One of a batch's rows, as `read_q`. Raises InvalidParams."""
    try:
        return read_q(_row.decode(row), path)
    except (msgspec.DecodeError, RecursionError) as e:
        where = path + str(e).partition(" - at `")[2].rstrip("`").removeprefix("$")
        value = row if where == path else msgspec.json.decode(row, type=list[Raw])[int(where[len(path) + 1 : -1])]
        expected = "a row: an array of numbers, or an object" if where == path else "a finite number"
        got = kind(bytes(value))
        raise InvalidParams(f"{where}: expected {expected}, got {got}", reason="wrong-type", path=where, expected=expected,
                            got=got) from None


def read_pin(params: Raw) -> str:
    """The digest to pin. Raises InvalidParams unless it is a SHA-256 in hex."""
    given = pin.decode(params)
    found = given.digest if isinstance(given, Pin) else given[0] if len(given) == 1 else None
    if found is None or not re.fullmatch(r"[0-9a-fA-F]{64}", found):
        got = f"`{cut(found)}`" if found is not None else f"an array of {len(given)}"  # type: ignore[arg-type]
        raise InvalidParams(f"pin takes a model's digest, 64 hex digits, got {got}", reason="digest", path="$.params",
                            expected="a SHA-256 of 64 hex digits", got=got)
    return found.lower()


def read_reload(params: Raw) -> str | None:
    """The bundle that a reload names, if any. Raises InvalidParams."""
    given = reload.decode(params)
    if isinstance(given, list):
        read_nothing(params, "reload by position")
        return None
    if given.bundle is not None and ("\0" in given.bundle or not given.bundle.startswith("/")):
        raise InvalidParams("the bundle to load is an absolute path, as the daemon has its own working folder",
                            reason="bundle-path", path="$.params.bundle", expected="an absolute path", got=cut(given.bundle))
    return given.bundle


def read_nothing(params: Raw, method: str) -> None:
    """For methods without parameters: raise InvalidParams if there are any."""
    given = nothing.decode(params)
    if isinstance(given, list) and given:
        raise InvalidParams(f"{method} takes no parameters", reason="no-parameters", path="$.params", expected="[]",
                            got=f"an array of {len(given)}")
