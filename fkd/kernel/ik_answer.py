"""The question that inverse kinematics answers, and its answer. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """Where the tool shall be and what will do.

    T_base_tool: 12 or 16 numbers, row-major, not further than 1e12 m; tool: T_link_tool likewise, or None for the link
    itself.
    seed: (width,) all of q. The values that do not move the tip stay at the seed; the others start from it. Without a
    seed they start where the target is near, and `rest` of the solver stands for the others.
    solutions: "one" (the first found; from the seed, if it is near the target), "nearest" (to the seed: its own branch
    first), or "all" (up to 16, as far as the budget of starts finds them, where the search is numeric).
    Tolerances in m and rad; with position_only the orientation is free.
    """

    T_base_tool: Sequence[float]
    tool: Sequence[float] | None = None
    seed: Sequence[float] | None = None
    solutions: str = "one"
    position_tolerance: float = 1e-6
    orientation_tolerance: float = 1e-6
    position_only: bool = False


@dataclass(frozen=True, slots=True)
class Solution:
    """One configuration and what was measured at it. q: (width,); errors in m and rad, at the tool.

    orientation_error is None where position alone was asked. `singular`: one of infinitely many, with the free angle
    left near the seed.
    """

    q: list[float]
    position_error: float
    orientation_error: float | None
    converged: bool
    singular: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Solutions, nearest to the seed first; or none, with the reason and the nearest configuration that was found.

    reason: "" or why there is none: "unreachable" (no start leads there), "limits" (it is reached once limits are
    ignored), "singular" (the error was still falling towards zero, ever slower, at a singular pose), "deadline".
    """

    solutions: list[Solution]
    nearest: Solution | None
    reason: str
    method: str
    iterations: int
    restarts: int
