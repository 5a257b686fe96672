"""The results of every method, as types: for `rpc.discover` alone, which tells callers what is said of them here.

Results are encoded from what the kinematics give, not from these; the tests hold every method's answers against them.
Lengths in metre, angles in radian, but for `compute_ik` with degrees.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

Numbers = list[float]
Matrix = Annotated[Numbers, Meta(min_length=16, max_length=16, description="A pose as 4x4, row-major; the last row is 0 0 0 1.")]
XYZ = Annotated[Numbers, Meta(min_length=3, max_length=3, description="Position, m.")]
RPY = Annotated[Numbers, Meta(min_length=3, max_length=3, description="Roll, pitch, yaw about fixed axes, rad; R = Rz(yaw) Ry(pitch) Rx(roll).")]
Quaternion = Annotated[Numbers, Meta(min_length=4, max_length=4, description="x, y, z, w; unit, w >= 0 (w = 0: the first other than 0 is > 0).")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="The model's digest: SHA-256 of its bundle's MANIFEST.txt, or of an unbundled file.")]
Generation = Annotated[int, Meta(ge=1, description="1 for the model that the daemon started with, one more with each reload.")]
Names = list[str]


class _Result(msgspec.Struct, forbid_unknown_fields=True):
    """What a method answers, or a part of it."""


class PoseParts(_Result):
    """A pose, as `format` "pose" has it."""

    xyz: XYZ
    quaternion: Quaternion
    rpy: RPY


class RosPoint(_Result):
    """Position, m."""

    x: float
    y: float
    z: float


class RosQuaternion(_Result):
    """Orientation, a unit quaternion."""

    x: float
    y: float
    z: float
    w: float


class RosPose(_Result):
    """A pose, as `format` "ros" has it: geometry_msgs/Pose."""

    position: RosPoint
    orientation: RosQuaternion


def _one_of(*types: type[msgspec.Struct]) -> list[dict[str, str]]:
    return [{"$ref": f"#/components/schemas/{t.__name__}"} for t in types]


# Which of several structs it is cannot be told from a value; so msgspec has no type for it.
Pose = Annotated[
    Raw,
    Meta(extra_json_schema={"anyOf": [{"type": "array", "items": {"type": "number"}, "minItems": 16, "maxItems": 16},
                                      *_one_of(PoseParts, RosPose)]},
         description="A pose in the format that was asked for."),
]  # fmt: skip


class Stamped(_Result):
    """What `stamp` adds."""

    digest: Digest | UnsetType = UNSET
    generation: Generation | UnsetType = UNSET
    elapsed_ns: Annotated[int, Meta(description="How long the computation took, ns.")] | UnsetType = UNSET


class Poses(Stamped, kw_only=True):
    """T_base_link (or T_base_tool) of each link that was asked for, in that order."""

    poses: dict[str, Pose]


class PoseRows(Stamped, kw_only=True):
    """T_base_link (or T_base_tool) of each link that was asked for, for each row of q."""

    poses: dict[str, list[Pose]]


class AxisAngle(_Result):
    """A turn about an axis."""

    axis: Annotated[Numbers, Meta(min_length=3, max_length=3, description="A unit vector; 0 0 1 where nothing turns.")]
    angle: Annotated[float, Meta(description="rad, from 0 to pi.")]


class Decomposed(_Result):
    """One pose in all its forms."""

    xyz: XYZ
    rpy: Annotated[RPY, Meta(description="The answer whose pitch is from -pi/2 to pi/2; in gimbal lock the roll is 0 by convention.")]
    rpy_alt: Annotated[RPY, Meta(description="The other answer, of the same rotation.")]
    gimbal_lock: Annotated[bool, Meta(description="Whether cos(pitch) < 5e-13: only roll and yaw together are defined.")]
    quaternion: Quaternion
    axis_angle: AxisAngle
    matrix: Matrix


Rows6 = Annotated[
    list[Numbers],
    Meta(min_length=6, max_length=6, description="6 rows, linear then angular velocity, by one column a value of q (m or 1 for linear, "
         "1 or 0 rad for angular); followers are folded into their source's column."),
]  # fmt: skip


class Jacobian(_Result):
    """The geometric Jacobian, its reference point at the link's (or tool's) origin."""

    jacobian: Rows6
    joints: Annotated[Names, Meta(description="Which joint each column is of.")]
    manipulability: Annotated[float, Meta(description="The product of the singular values (Yoshikawa, 1985).")]
    singular_values: Annotated[Numbers, Meta(description="Largest first; metre and radian are weighed alike.")]


class Solution(_Result):
    """One configuration, and what was measured at it by compute_fk's own kernel."""

    q: Annotated[Numbers, Meta(description="In the order of `model`'s `q`; rad or m, or degrees where these were asked for.")]
    position_error: Annotated[float, Meta(description="m.")]
    orientation_error: Annotated[float | None, Meta(description="rad; null where only the position was asked for.")]
    converged: Annotated[bool, Meta(description="Whether it is within tolerances and limits; false only for best_effort.")]
    singular: Annotated[bool, Meta(description="Whether it is one of infinitely many.")]


class Found(_Result):
    """What inverse kinematics found."""

    solutions: Annotated[list[Solution], Meta(description="Nearest to the seed first.", min_length=1)]
    method: Literal["analytic", "numeric"]
    iterations: Annotated[int, Meta(description="Steps of the numeric search, of all starts.")]
    restarts: Annotated[int, Meta(description="Starts of the numeric search beside the first.")]


class DhRow(_Result):
    """One joint: its value is added to theta, or to d where it slides."""

    joint: str
    type: Literal["revolute", "continuous", "prismatic"]
    a: Annotated[float, Meta(description="m.")]
    alpha: Annotated[float, Meta(description="rad.")]
    d: Annotated[float, Meta(description="m.")]
    theta: Annotated[float, Meta(description="rad.")]
    lower: Annotated[float, Meta(description="The joint's lower limit, rad or m, if it has one.")] | UnsetType = UNSET
    upper: Annotated[float, Meta(description="Its upper limit.")] | UnsetType = UNSET


class Driven(_Result):
    """What a follower's value is: multiplier * the value of `joint` + offset."""

    joint: str
    multiplier: float
    offset: float


class DhTable(_Result):
    """T_base_link = base, times each row's transform, times tool."""

    convention: Literal["standard", "modified"]
    rows: list[DhRow]
    base: Annotated[Matrix, Meta(description="T_base_0, row-major.")]
    tool: Annotated[Matrix, Meta(description="T_n_link, row-major.")]
    residual: Annotated[float, Meta(description="The largest difference between an entry of the table's pose and of the robot's, over sampled q.")]
    cases: Annotated[Names, Meta(description="How each axis lies to the one before: skew, intersecting, parallel or collinear.")]
    mimic: Annotated[dict[str, Driven], Meta(description="The rows' joints that follow others.")] | UnsetType = UNSET
    warnings: Annotated[Names, Meta(description="What a user of the table should know.")] | UnsetType = UNSET


class Limits(_Result):
    """rad or m."""

    lower: float
    upper: float


class Joint(_Result):
    """A joint of the model."""

    name: str
    type: Literal["revolute", "continuous", "prismatic", "fixed", "planar", "floating"]
    parent: Annotated[str, Meta(description="A link.")]
    child: Annotated[str, Meta(description="A link.")]
    axis: Annotated[Numbers, Meta(min_length=3, max_length=3, description="A unit vector in the joint's frame.")]
    limits: Annotated[Limits | None, Meta(description="Published, not enforced by compute_fk; null where there are none.")]
    mimic: Annotated[Driven | None, Meta(description="What drives it; null for a joint that is driven by itself.")]
    width: Annotated[int, Meta(description="How many values it takes: 0 fixed or follower, 1, 3 planar, 7 floating.")]
    index: Annotated[int | None, Meta(description="Where its values start in q; null if it takes none.")]


class Model(_Result):
    """The robot that is served."""

    name: str
    digest: Digest
    generation: Generation
    root: Annotated[str, Meta(description="The link that has no parent.")]
    base: Annotated[str, Meta(description="The link that poses are given in by default.")]
    tip: Annotated[str | None, Meta(description="The link that is meant by default; null if there is none.")]
    dof: Annotated[int, Meta(description="The length of q.")]
    links: Names
    joints: list[Joint]
    q: Annotated[Names, Meta(description="The independent joints, in the order of q; wide ones take several values there.")]


class Finding(_Result):
    """One thing that is to be said about the description."""

    code: Annotated[str, Meta(description="Stable, as `urdf-axis-zero`.")]
    severity: Literal["error", "warning", "info"]
    file: str
    line: Annotated[int, Meta(description="0: the file as a whole.")]
    message: str
    hint: Annotated[str, Meta(description="How to mend it, or empty.")]


class Status(_Result):
    """The daemon's health."""

    state: Literal["serving"]
    version: Annotated[str, Meta(description="Of fkd.")]
    robot: str
    source: Annotated[str, Meta(description="The description's name.")]
    trust: Annotated[
        Literal["hashed", "unhashed", "unbundled"],
        Meta(description="hashed: every byte was checked against the bundle's manifest; unhashed: a bundle without one; unbundled: a plain file."),
    ]
    digest: Digest
    generation: Generation
    base: str
    tip: str | None
    calibrated: Annotated[Names, Meta(description="The joints whose nominal origin a measured one has replaced.")]
    uptime_s: float
    connections: Annotated[int, Meta(description="Open now.")]
    requests: Annotated[int, Meta(description="Answered since the start.")]
    pid: int


class Latency(_Result):
    """Time to answer, us: each is not exceeded by that share of the answers, to an eighth."""

    p50: float
    p90: float
    p99: float
    p999: float = msgspec.field(name="p99.9")
    max: float
    sum: Annotated[float, Meta(description="Of all answers.")]


class MethodStats(_Result):
    """What was asked of one method."""

    count: Annotated[int, Meta(description="Answers, right or with an error.")]
    errors: Annotated[dict[str, int], Meta(description="By JSON-RPC code.")]
    latency_us: Latency
    histogram_us: Annotated[list[Numbers], Meta(description="[longest time, how many], a bucket each, by time.")]


class Connections(_Result):
    """Since the start, but for `open`."""

    open: int
    accepted: int
    refused: Annotated[int, Meta(description="Because there were too many.")]
    dropped: Annotated[int, Meta(description="Because they did not read, or too slowly.")]


class Reloaded(_Result):
    """How a reload ended."""

    unix_time: float
    bundle: str
    outcome: Literal["serving", "refused"]
    seconds: float
    generation: Generation
    digest: Digest | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Stats(_Result):
    """What the daemon has counted."""

    started_unix_time: float
    uptime_s: float
    generation: Generation
    digest: Digest
    connections: Connections
    requests: int
    methods: Annotated[dict[str, MethodStats], Meta(description='Those that were asked; "(none)" is what was no request of any.')]
    reloads: Annotated[list[Reloaded], Meta(description="The last 16.")]


class Serving(_Result):
    """Which model it is."""

    digest: Digest
    generation: Generation
