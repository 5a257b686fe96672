"""Quaternions of many rotations at once."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def quaternions_from_matrices(T: Array) -> Array:
    """(n, 16) matrices, row-major -> (n, 4) unit quaternions x y z w, w >= 0 (w = 0: first non-zero component > 0).

    As `quaternion_from_rotation` gives them, to within 2 ulp: the norm is a square root here, and its hypot there.
    Source: Shepperd 1978: divide by the largest component.
    """
    r0, r1, r2, r3, r4, r5, r6, r7, r8 = T[:, (0, 1, 2, 4, 5, 6, 8, 9, 10)].T
    trace = r0 + r4 + r8
    forms = np.array((
        (r7 - r5, r2 - r6, r3 - r1, 1.0 + trace),
        (1.0 + r0 - r4 - r8, r1 + r3, r2 + r6, r7 - r5),
        (r1 + r3, 1.0 - r0 + r4 - r8, r5 + r7, r2 - r6),
        (r2 + r6, r5 + r7, 1.0 - r0 - r4 + r8, r3 - r1),
    ))  # fmt: skip
    x, y, z, w = q = np.choose(np.argmax((trace, r0, r4, r8), axis=0), forms)  # the first of equals, as there
    leading = np.select((w != 0.0, x != 0.0, y != 0.0), (w, x, y), z)
    unit: Array = q / np.copysign(np.sqrt(x * x + y * y + z * z + w * w), leading) + 0.0  # no negative zeros
    return unit.T
