"""The options of the verbs, named and meant as on the wire. None means the daemon's default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict


class FkOptions(TypedDict, total=False):
    """Options of `fk` and `fk_batch`."""

    links: str | Sequence[str] | None  # a name, several, or "all"; default: the model's tip
    base: str | None  # the link whose frame the poses are in; default: the root
    tool: Any  # a pose appended to each link
    degrees: bool  # revolute and continuous values are in degrees
    format: Literal["matrix", "pose", "ros"]  # default "matrix": 16 numbers, row-major, base <- link
    missing: Literal["error", "zero"]  # what becomes of joints that a dict leaves out; default "error"
    stamp: bool  # give the wire's whole result, with digest, generation and elapsed_ns


class DecomposeOptions(TypedDict, total=False):
    """Options of `decompose`. matrix and pose stand in place of q."""

    link: str | None
    base: str | None
    matrix: Any  # 16 numbers or 4x4
    pose: Any  # {"xyz", "quaternion" or "rpy"}
    degrees: bool


class JacobianOptions(TypedDict, total=False):
    """Options of `jacobian`."""

    link: str | None
    base: str | None
    tool: Any  # moves the reference point
    degrees: bool
    frame: Literal["base", "tip"]


class IkOptions(TypedDict, total=False):
    """Options of `ik`."""

    link: str | None
    base: str | None
    tool: Any
    seed: Sequence[float] | Mapping[str, float] | Any
    solutions: Literal["one", "nearest", "all"]
    method: Literal["auto", "numeric", "analytic"]
    position_tolerance: float  # metres
    orientation_tolerance: float  # radians
    position_only: bool
    timeout_ms: float  # the solver's; the client's own timeout should be longer
    best_effort: bool
    degrees: bool


class DhOptions(TypedDict, total=False):
    """Options of `dh`."""

    convention: Literal["standard", "modified"]
    link: str | None
    base: str | None
