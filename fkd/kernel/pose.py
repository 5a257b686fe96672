"""Rotations and poses between their forms, over floats, exact where the forms are singular.

Rotations are 9 numbers, matrices 16, both row-major. Angles in rad. rpy is fixed-axis roll, pitch, yaw:
R = Rz(yaw) Ry(pitch) Rx(roll). Quaternions are (x, y, z, w), unit, w >= 0 (w = 0: first non-zero component > 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, hypot, isfinite, pi, sin

# sin and cos of multiples of 90 degrees miss 0 by up to 4e-16, because pi is rounded. Below this they are 0, so that
# right angles are exact; a sloppy 1.5708 is 4e-6 off and keeps its true value.
SNAP = 1e-15
# cos(pitch) below which roll and yaw cannot be told apart: putting roll to 0 then costs no more than this.
GIMBAL_LOCK = 5e-13
# How far R^T R may be from the identity for input to count as a rotation: nine digits of text, with room.
ROTATION_TOLERANCE = 1e-6

Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


def snap(x: float) -> float:
    """0 (never -0) for what is only the rounding of pi."""
    return 0.0 if abs(x) < SNAP else x


def rotation_from_rpy(rpy: Sequence[float]) -> tuple[float, ...]:
    """rpy (rad) -> R, 9 numbers, right angles exact. Source: URDF specification, <origin>."""
    (sr, cr), (sp, cp), (sy, cy) = ((snap(sin(a)), snap(cos(a))) for a in rpy)
    r = (
        cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr,
        sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr,
        -sp, cp * sr, cp * cr,
    )  # fmt: skip
    return tuple(x + 0.0 for x in r)  # no negative zeros


def rotation_from_quaternion(quaternion: Sequence[float]) -> tuple[float, ...]:
    """Quaternion (x, y, z, w) of any non-zero norm -> R, 9 numbers. Raises ValueError for a zero norm."""
    biggest = max(abs(c) for c in quaternion)
    if biggest == 0.0 or not all(map(isfinite, quaternion)):
        raise ValueError("a quaternion of zero norm has no rotation")
    x, y, z, w = (c / biggest for c in quaternion)  # neither overflows nor vanishes when squared
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return (
        1.0 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w),
        s * (x * y + z * w), 1.0 - s * (x * x + z * z), s * (y * z - x * w),
        s * (x * z - y * w), s * (y * z + x * w), 1.0 - s * (x * x + y * y),
    )  # fmt: skip


def rotation_error(r: Sequence[float]) -> float:
    """How far 9 numbers are from a rotation: max |R^T R - I|, and 2 at least for a reflection. Infinite for overflow."""
    worst = 0.0
    for i in range(3):
        for j in range(i, 3):
            dot = r[i] * r[j] + r[3 + i] * r[3 + j] + r[6 + i] * r[6 + j]
            worst = max(worst, abs(dot - (i == j)))
            if not isfinite(dot):
                return float("inf")
    det = r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) + r[2] * (r[3] * r[7] - r[4] * r[6])
    return worst if det > 0.0 else max(worst, 2.0)


def rpy_from_rotation(r: Sequence[float], lock: float = GIMBAL_LOCK) -> tuple[Triple, Triple, bool]:
    """R -> (rpy, the other rpy of the same rotation, gimbal lock).

    pitch of the first lies in [-pi/2, pi/2]. In lock (cos pitch < lock) only roll - yaw or roll + yaw is defined: roll is
    0 by convention and both answers agree; what is rebuilt from them may miss the rotation by that much. Near lock, yaw is taken from the matrix with the roll already
    undone, so that the errors of the two cancel and the rotation rebuilt from the angles is right.
    """
    cos_pitch = hypot(r[0], r[3])
    pitch = atan2(-r[6], cos_pitch)
    if cos_pitch < lock:
        rpy = (0.0, pitch, atan2(-r[1], r[4]) + 0.0)
        return rpy, rpy, True
    roll = atan2(r[7], r[8])
    s, c = sin(roll), cos(roll)
    yaw = atan2(s * r[2] - c * r[1], c * r[4] - s * r[5])
    other = (_turn(roll + pi), _turn(pi - pitch), _turn(yaw + pi))
    return (roll + 0.0, pitch + 0.0, yaw + 0.0), other, False


def _turn(angle: float) -> float:
    """Into (-pi, pi], by whole turns."""
    if angle > pi:
        return angle - 2.0 * pi
    return angle + 2.0 * pi if angle <= -pi else angle


def quaternion_from_rotation(r: Sequence[float]) -> Quaternion:
    """R -> unit quaternion (x, y, z, w), w >= 0. Source: Shepperd 1978: divide by the largest component."""
    trace = r[0] + r[4] + r[8]
    largest = max(trace, r[0], r[4], r[8])
    if largest == trace:
        q = [r[7] - r[5], r[2] - r[6], r[3] - r[1], 1.0 + trace]
    elif largest == r[0]:
        q = [1.0 + r[0] - r[4] - r[8], r[1] + r[3], r[2] + r[6], r[7] - r[5]]
    elif largest == r[4]:
        q = [r[1] + r[3], 1.0 - r[0] + r[4] - r[8], r[5] + r[7], r[2] - r[6]]
    else:
        q = [r[2] + r[6], r[5] + r[7], 1.0 - r[0] - r[4] + r[8], r[3] - r[1]]
    norm = hypot(*q)
    leading = next((c for c in (q[3], q[0], q[1], q[2]) if c != 0.0), 1.0)
    if leading < 0.0:
        norm = -norm
    x, y, z, w = (c / norm + 0.0 for c in q)
    return (x, y, z, w)


def axis_angle_from_quaternion(quaternion: Quaternion) -> tuple[Triple, float]:
    """Unit quaternion, w >= 0 -> (unit axis, angle in [0, pi]). No rotation: axis z, angle 0."""
    x, y, z, w = quaternion
    length = hypot(x, y, z)  # squares of what is next to nothing vanish
    if length == 0.0:
        return (0.0, 0.0, 1.0), 0.0
    return (x / length, y / length, z / length), 2.0 * atan2(length, w)


def angle_between(r: Sequence[float], s: Sequence[float]) -> float:
    """The angle (rad, 0 to pi) of the rotation that takes R (9 numbers) to S: that of R^T S."""
    turn = tuple(sum(r[3 * k + i] * s[3 * k + j] for k in range(3)) for i in range(3) for j in range(3))
    return axis_angle_from_quaternion(quaternion_from_rotation(turn))[1]


def frame(xyz: Sequence[float], rotation: Sequence[float]) -> tuple[float, ...]:
    """Translation (m) and R (9 numbers) -> 3x4 frame, 12 numbers row-major."""
    r, (x, y, z) = rotation, xyz
    return (r[0], r[1], r[2], x, r[3], r[4], r[5], y, r[6], r[7], r[8], z)


def matrix(frame: Sequence[float]) -> list[float]:
    """3x4 frame -> 16 numbers."""
    return [*frame, 0.0, 0.0, 0.0, 1.0]


def rotation_of(matrix: Sequence[float]) -> tuple[float, ...]:
    """16 or 12 numbers -> the 9 of the rotation."""
    m = matrix
    return (m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10])


def translation_of(matrix: Sequence[float]) -> Triple:
    """16 or 12 numbers -> x, y, z (m)."""
    return (matrix[3], matrix[7], matrix[11])
