"""Aim: where the tool shall be and what will do, as callers of inverse kinematics say it, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from fkd.configuration import JointValues, kind, number
from fkd.errors import InvalidParams, cut, did_you_mean, nearest
from fkd.poses import Matrix, read_matrix, read_parts

FINEST = 1e-12  # m or rad; below a few of these, a double cannot say where a tool is
LARGEST = 1e12  # m or rad, of tolerances; m, of poses
TOLERANCE = 1e-6  # m or rad, unless the caller says another
TIMEOUT_MS = 200.0  # unless the caller says another; what is out of reach is known to be so after some 20
SHORTEST_MS, LONGEST_MS = 0.001, 10_000.0
SOLUTIONS = ("one", "nearest", "all")
METHODS = ("auto", "numeric", "analytic")
FORMS = ("matrix", "xyz", "quaternion", "rpy")


@dataclass(frozen=True, slots=True)
class Aim:
    """Where the tool shall be and what will do.

    T_base_tool: 16 numbers; tool: T_link_tool likewise, None for the link itself. link: default the tip; base: default
    the model's base.
    seed: q in any form, rad|m; joints that a mapping leaves out stand in the middle of their limits, as all do without
    a seed. A value outside its limits starts from the nearest inside. Values that do not move the link stay as given.
    solutions: "one", "nearest" (to the seed: a path keeps its branch) or "all".
    method: "auto" (analytic where the arm allows it), "numeric" or "analytic".
    Tolerances: m and rad. position_only: any orientation will do. timeout_ms: of the search.
    best_effort: the nearest configuration found, where there is no solution. degrees: the seed's and the solutions'
    revolute and continuous values are in degrees.
    Raises InvalidParams.
    """

    T_base_tool: Matrix
    link: str | None = None
    base: str | None = None
    tool: Matrix | None = None
    seed: Sequence[float] | JointValues | None = None
    solutions: str = "one"
    method: str = "auto"
    position_tolerance: float = TOLERANCE
    orientation_tolerance: float = TOLERANCE
    position_only: bool = False
    timeout_ms: float = TIMEOUT_MS
    best_effort: bool = False
    degrees: bool = False

    def __post_init__(self) -> None:
        for name, T in (("pose", self.T_base_tool), ("tool", self.tool)):
            if T is not None and max(abs(T[3]), abs(T[7]), abs(T[11])) > LARGEST:
                raise _outside(f"$.params.{name}", f"a position within {LARGEST:g} m", [T[3], T[7], T[11]])
        for name, choices in (("solutions", SOLUTIONS), ("method", METHODS)):
            _chosen(getattr(self, name), choices, f"$.params.{name}")
        for name, low, high, unit in (
            ("position_tolerance", FINEST, LARGEST, "m"), ("orientation_tolerance", FINEST, LARGEST, "rad"),
            ("timeout_ms", SHORTEST_MS, LONGEST_MS, "ms"),
        ):  # fmt: skip
            value = getattr(self, name)
            if type(value) is float and low <= value <= high:
                continue
            value = number(value, f"$.params.{name}")
            if not low <= value <= high:
                raise _outside(f"$.params.{name}", f"a number from {low:g} to {high:g} {unit}", value)
            object.__setattr__(self, name, value)
        for name in ("position_only", "best_effort", "degrees"):
            if not isinstance(getattr(self, name), bool):
                got = kind(getattr(self, name))
                raise InvalidParams(f"$.params.{name}: expected true or false, got {got}", reason="wrong-type",
                                    path=f"$.params.{name}", expected="true or false", got=got)


def read_pose(value: Any, path: str) -> Matrix:
    """A pose as Python callers give it -> 16 numbers: (4, 4) or 16 numbers, lists or arrays, or a mapping with `matrix`,
    or `xyz` with `quaternion` or `rpy`. Raises InvalidParams."""
    if not isinstance(value, Mapping):
        return read_matrix(_numbers(value, path), path)
    for name in value:
        if name not in FORMS:
            word = cut(str(name))
            raise InvalidParams(f"{path} has the unknown member `{word}`{did_you_mean(word, FORMS)}", reason="unknown-parameter",
                                path=f"{path}.{word}", expected=list(FORMS), got=word, did_you_mean=nearest(word, FORMS))
    parts = {name: _numbers(given, f"{path}.{name}") for name, given in value.items()}
    if "matrix" in parts and len(parts) == 1:
        return read_matrix(parts["matrix"], f"{path}.matrix")
    if not parts or "matrix" in parts:
        raise InvalidParams(f"{path}: give a pose in one form", reason="pose-form", path=path, got=list(parts),
                            expected="matrix; or xyz with quaternion or rpy")
    return read_parts(parts.get("xyz"), parts.get("quaternion"), parts.get("rpy"), path)


def _numbers(value: Any, path: str, depth: int = 0) -> list[Any]:
    """Numbers, or rows of them, in lists or arrays."""
    given = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes, bytearray)) or depth > 1:
        raise InvalidParams(f"{path}: expected an array of numbers, got {kind(value)}", reason="wrong-type", path=path,
                            expected="an array of numbers", got=kind(value))
    if set(map(type, given)) == {float} and all(map(isfinite, given)):  # most often; the rest is for the others and for errors
        return list(given)
    rows = [hasattr(v, "__len__") and not isinstance(v, (str, bytes)) for v in given]
    return [_numbers(v, f"{path}[{i}]", depth + 1) if row else number(v, f"{path}[{i}]")
            for i, (v, row) in enumerate(zip(given, rows, strict=True))]  # fmt: skip


def _chosen(value: object, choices: Sequence[str], path: str) -> None:
    if not isinstance(value, str) or value not in choices:
        word = cut(str(value))
        raise InvalidParams(f"{path}: expected one of {', '.join(choices)}, got `{word}`{did_you_mean(word, choices)}",
                            reason="unknown-choice", path=path, expected=list(choices), got=word,
                            did_you_mean=nearest(word, choices))


def _outside(path: str, expected: str, got: object) -> InvalidParams:
    return InvalidParams(f"{path}: expected {expected}, got {got}", reason="out-of-range", path=path, expected=expected, got=got)
