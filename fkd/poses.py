"""A pose between the forms that callers use and the 16 numbers that kernels use.

Forms: "matrix" (16 numbers or 4x4, row-major), "pose" ({xyz, quaternion, rpy}), "ros" (geometry_msgs/Pose as JSON).
Lengths in m, angles in rad, quaternions [x, y, z, w].
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from fkd.errors import InvalidParams
from fkd.kernel import pose as k

Matrix = list[float]
QUATERNION_TOLERANCE = 1e-3  # how far from 1 a given quaternion's norm may be: beyond, it is most likely no quaternion


def written(T: Sequence[float], form: str) -> Any:
    """A pose (16 numbers) in the form asked for."""
    if form == "matrix":
        return T
    r, (x, y, z) = k.rotation_of(T), k.translation_of(T)
    quaternion = k.quaternion_from_rotation(r)
    if form == "ros":
        return {"position": {"x": x, "y": y, "z": z}, "orientation": dict(zip("xyzw", quaternion, strict=True))}
    return {"xyz": (x, y, z), "quaternion": quaternion, "rpy": k.rpy_from_rotation(r)[0]}


def read_matrix(value: Sequence[Any], path: str) -> Matrix:
    """16 numbers or 4x4 -> 16 numbers, checked to be a pose. Raises InvalidParams saying how far off it is."""
    rows = [row if isinstance(row, Sequence) else None for row in value[:17]]  # no longer than tells that it is too long
    if len(rows) == 4 and all(row is not None and len(row) == 4 for row in rows):
        flat = [x for row in rows for x in row]  # type: ignore[union-attr]
    elif len(rows) == 16 and not any(row is not None for row in rows):
        flat = list(value)
    else:
        raise InvalidParams(f"{path}: expected 16 numbers or 4 rows of 4", reason="matrix-shape", path=path,
                            expected="16 numbers, or 4x4", got=f"{len(value)} entries")
    T = [float(x) for x in flat]
    if not all(isfinite(x) for x in T):
        raise InvalidParams(f"{path}: a matrix entry is not finite", reason="not-a-number", path=path, expected="finite numbers",
                            got=str(next(x for x in T if not isfinite(x))))
    if max(abs(a - b) for a, b in zip(T[12:], (0.0, 0.0, 0.0, 1.0), strict=True)) > 1e-9:
        raise InvalidParams(f"{path}: the last row is {T[12:]}, not 0 0 0 1; is the matrix column-major?", reason="matrix-last-row",
                            path=path, expected=[0, 0, 0, 1], got=T[12:])
    off = k.rotation_error(k.rotation_of(T))
    if off > k.ROTATION_TOLERANCE:
        raise InvalidParams(
            f"{path}: the upper left 3x4 is not a rotation: R^T R (or the sign of det R) is off by {off:.3g}; "
            f"at most {k.ROTATION_TOLERANCE:g} is taken",
            reason="not-a-rotation", path=path, expected=f"orthonormal to {k.ROTATION_TOLERANCE:g}",
            got=off if isfinite(off) else "overflow",
        )
    return T


def read_parts(xyz: Sequence[float] | None, quaternion: Sequence[float] | None, rpy: Sequence[float] | None, path: str) -> Matrix:
    """xyz (default 0) with quaternion or rpy (default: no rotation), or both if they agree -> 16 numbers."""
    position = _count(xyz if xyz is not None else (0.0, 0.0, 0.0), 3, f"{path}.xyz")
    if quaternion is not None:
        q = _count(quaternion, 4, f"{path}.quaternion")
        norm = sum(c * c for c in q) ** 0.5
        if not abs(norm - 1.0) <= QUATERNION_TOLERANCE:
            raise InvalidParams(f"{path}.quaternion has the norm {norm:.6g}; expected a unit quaternion [x, y, z, w]",
                                reason="quaternion-norm", path=f"{path}.quaternion", expected="norm 1", got=list(q))
        rotation = k.rotation_from_quaternion(q)
        if rpy is not None:  # as fkd itself writes poses; the two must then agree
            other = k.rotation_from_rpy(_count(rpy, 3, f"{path}.rpy"))
            off = max(abs(a - b) for a, b in zip(rotation, other, strict=True))
            if not off <= k.ROTATION_TOLERANCE:
                raise InvalidParams(f"{path}: quaternion and rpy are different rotations, {off:.3g} apart; give one of them",
                                    reason="pose-form", path=path, expected="quaternion or rpy, or both alike", got=off)
    else:
        rotation = k.rotation_from_rpy(_count(rpy if rpy is not None else (0.0, 0.0, 0.0), 3, f"{path}.rpy"))
    return k.matrix(k.frame(position, rotation))


def _count(values: Sequence[float], count: int, path: str) -> Sequence[float]:
    if len(values) != count:
        raise InvalidParams(f"{path}: expected {count} numbers, got {len(values)}", reason="wrong-count", path=path,
                            expected=f"{count} numbers", got=len(values))
    return values


def decomposed(T: Sequence[float]) -> dict[str, Any]:
    """A pose (16 numbers) in all its forms, as the method `decompose` answers it."""
    r = k.rotation_of(T)
    rpy, other, lock = k.rpy_from_rotation(r)
    quaternion = k.quaternion_from_rotation(r)
    axis, angle = k.axis_angle_from_quaternion(quaternion)
    return {
        "xyz": k.translation_of(T), "rpy": rpy, "rpy_alt": other, "gimbal_lock": lock, "quaternion": quaternion,
        "axis_angle": {"axis": axis, "angle": angle}, "matrix": T,
    }  # fmt: skip
