"""How far a Jacobian is from a singular one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np


def singular_values(rows: Sequence[Sequence[float]]) -> list[float]:
    """The singular values of a Jacobian, largest first: min(6, n) of them. Metre and radian are weighed alike."""
    if not rows[0]:
        return []
    found: list[float] = np.linalg.svd(np.array(rows), compute_uv=False).tolist()
    return found


def manipulability(values: Sequence[float]) -> float:
    """The product of the singular values: sqrt(det(J J^T)) of six joints or more; 0 where nothing moves.

    Source: Yoshikawa, Manipulability of Robotic Mechanisms, 1985, eq. 9.
    """
    return prod(values) if values else 0.0
