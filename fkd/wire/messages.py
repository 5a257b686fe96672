"""The parameters of every method, as types. What they say is what the wire takes: no more members, no fewer.

Lengths in metre, angles in radian unless `degrees`. What is said of each member here, `rpc.discover` tells callers.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from fkd.errors import InvalidParams, cut
from fkd.wire.jsonrpc import kind

_NUMBERS = {"type": "array", "items": {"type": "number"}}
_VALUE = {"anyOf": [{"type": "number"}, _NUMBERS]}
_ROW = {"anyOf": [_NUMBERS, {"type": "object", "additionalProperties": _VALUE}]}
_THREE, _FOUR, _SIXTEEN = ({**_NUMBERS, "minItems": n, "maxItems": n} for n in (3, 4, 16))


def _of(schema: dict[str, Any], description: str | None = None) -> Meta:
    """What the schema of a member says beside its type, where decoding leaves the look to others."""
    return Meta(description=description, extra_json_schema=schema)


# The values raw, so that an error can name the joint.
Q = Annotated[
    list[float] | dict[str, Annotated[Raw, _of(_VALUE)]],
    Meta(description="Joint values, rad or m: all independent joints' in the order of `model`'s `q`, or by joint name. A planar "
         "joint has 3 values (x, y, theta), a floating one 7 (x, y, z, and a quaternion x, y, z, w): flat in the array, a list "
         "by name. A mimic joint may be named too, if its value agrees to 1e-6."),
]  # fmt: skip
Matrix = Annotated[
    list[float | list[float]],
    _of({"anyOf": [_SIXTEEN, {"type": "array", "items": _FOUR, "minItems": 4, "maxItems": 4}]},
        "A pose as a matrix, row-major, 16 numbers or 4 rows of 4; the last row is 0 0 0 1."),
]  # fmt: skip
XYZ = Annotated[list[float], _of(_THREE, "Position, m; by default 0 0 0.")]
Quaternion = Annotated[list[float], _of(_FOUR, "Orientation: a unit quaternion x, y, z, w.")]
RPY = Annotated[list[float], _of(_THREE, "Orientation: roll, pitch, yaw about fixed axes, rad; R = Rz(yaw) Ry(pitch) Rx(roll).")]


class _Named(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """By-name parameters."""


class Point(_Named):
    """A position, m."""

    x: float
    y: float
    z: float


class Orientation(_Named):
    """A unit quaternion."""

    x: float
    y: float
    z: float
    w: float


class PoseObject(_Named):
    """A pose in one of three forms: `matrix`; `xyz` with `quaternion` or `rpy` (or both, if they agree); or `position` with
    `orientation`, as ROS has it."""

    matrix: Matrix | None = None
    xyz: XYZ | None = None
    quaternion: Quaternion | None = None
    rpy: RPY | None = None
    position: Point | None = None
    orientation: Orientation | None = None


Pose = Matrix | PoseObject
Link = Annotated[str | None, Meta(description="The link that is meant; by default the model's tip.")]
Links = Annotated[
    list[str] | str | None,
    Meta(description='The links that are meant: names, one name, or "all"; by default the model\'s tip.'),
]  # fmt: skip
Base = Annotated[str | None, Meta(description="The link whose frame the answer is in; by default the model's base.")]
Tool = Annotated[Pose | None, Meta(description="T_link_tool, a pose in the link's frame: the answer is for the tool in place of the link.")]
Degrees = Annotated[
    bool,
    Meta(description="Whether the values of revolute and continuous joints are in degrees. Those of prismatic joints are in m all "
         "the same; with planar and floating joints it is refused."),
]  # fmt: skip
Missing = Annotated[
    Literal["error", "zero"],
    Meta(description="What becomes of joints that q, given by name, leaves out: an error, or 0 (a floating joint's identity)."),
]
Format = Annotated[
    Literal["matrix", "pose", "ros"],
    Meta(description="How poses are answered: 16 numbers; xyz, quaternion and rpy; or geometry_msgs/Pose of ROS."),
]
Stamp = Annotated[bool, Meta(description="Whether the answer also says which model it is from, and how long it took.")]


class _Posed(_Named, kw_only=True):
    """What is asked of poses, beside q."""

    links: Links = None
    base: Base = None
    tool: Tool = None
    degrees: Degrees = False
    format: Format = "matrix"
    missing: Missing = "error"
    stamp: Stamp = False


class ComputeFk(_Posed):
    """The pose of each link at q: T_base_link, or T_base_tool if there is a tool."""

    q: Q


class ComputeFkBatch(_Posed):
    """As compute_fk, for each row of q; the same to the last bit."""

    # Raw: rows are decoded as they are computed, a slice at a time.
    q: Annotated[list[Annotated[Raw, _of(_ROW)]], Meta(description="Rows, each a q as compute_fk takes it.")]


class ComputeJacobian(_Named):
    """The reference point is the origin of the link, or of the tool."""

    q: Q
    link: Link = None
    base: Base = None
    tool: Annotated[Pose | None, Meta(description="T_link_tool: its origin, not the link's, is the point whose velocity is meant.")] = None
    degrees: Degrees = False
    missing: Missing = "error"
    frame: Annotated[Literal["base", "tip"], Meta(description="Whose axes the rows are in: those of `base`, or of the link (or tool).")] = "base"


class ComputeIk(_Named):
    """Configurations within the joint limits that take the link, or the tool on it, to the pose."""

    pose: Annotated[Pose, Meta(description="T_base_link, or T_base_tool if there is a tool: where it shall be.")]
    link: Link = None
    base: Annotated[str | None, Meta(description="The link in whose frame the pose is given; by default the model's base.")] = None
    tool: Annotated[Pose | None, Meta(description="T_link_tool: the pose is meant for the tool in place of the link.")] = None
    seed: Annotated[
        Q | None,
        Meta(description="Where the search starts, in any form of q, and what solutions are near to; joints that are left out by "
             "name, and all without a seed, start in the middle of their limits. Values that do not move the link stay as they "
             "are here."),
    ] = None  # fmt: skip
    solutions: Annotated[
        Literal["one", "nearest", "all"],
        Meta(description="One solution; the nearest to the seed, so that a path keeps its branch; or all: up to 8 of the analytic "
             "method, up to 16 of the numeric one, as far as it finds them in time."),
    ] = "one"  # fmt: skip
    method: Annotated[
        Literal["auto", "numeric", "analytic"],
        Meta(description="auto: analytic for arms of six turning joints with a spherical wrist or three parallel axes, else numeric."),
    ] = "auto"
    position_tolerance: Annotated[float, Meta(description="m; 1e-12 to 1e12.")] = 1e-6
    orientation_tolerance: Annotated[float, Meta(description="rad; 1e-12 to 1e12.")] = 1e-6
    position_only: Annotated[bool, Meta(description="Whether any orientation will do.")] = False
    timeout_ms: Annotated[float, Meta(description="How long the search may take, ms; 0.001 to 10000.")] = 200.0
    best_effort: Annotated[
        bool,
        Meta(description="Whether the nearest configuration is an answer too (`converged` is then false), in place of an error."),
    ] = False
    degrees: Annotated[bool, Meta(description="Whether the seed's and the solutions' turning joints are in degrees.")] = False


class Decompose(_Named):
    """That of the link at q, or one that is given: as `matrix`, as `pose`, or as `xyz` with `quaternion` or `rpy`. One of
    these, and link, base, degrees and missing only with q."""

    q: Q | None = None
    link: Link = None
    base: Base = None
    degrees: Degrees = False
    missing: Missing = "error"
    matrix: Matrix | None = None
    pose: Annotated[Pose | None, Meta(description="A pose in any form.")] = None
    xyz: XYZ | None = None
    quaternion: Quaternion | None = None
    rpy: RPY | None = None


class Dh(_Named):
    """The chain runs from base to link, up the tree and down as need be."""

    convention: Annotated[
        Literal["standard", "modified"],
        Meta(description="standard: Rz(theta) Tz(d) Tx(a) Rx(alpha); modified (Craig): Rx(alpha) Tx(a) Rz(theta) Tz(d)."),
    ] = "standard"
    link: Link = None
    base: Annotated[str | None, Meta(description="The link that the chain starts from; by default the model's base.")] = None


class Pin(_Named):
    """The only model that the caller takes answers from."""

    digest: Annotated[str, _of({"pattern": "^[0-9a-fA-F]{64}$"}, "The model's digest, 64 hex digits, as `model` says it.")]


class Reload(_Named):
    """What to serve from now on."""

    bundle: Annotated[
        str | None,
        Meta(description="The absolute path of another bundle or description, as the daemon sees it; by default the one that "
             "serves, read anew."),
    ] = None  # fmt: skip


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
