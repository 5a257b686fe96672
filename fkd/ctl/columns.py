"""What the columns of a table of configurations mean to one model."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from fkd.configuration import FOLLOWER_TOLERANCE
from fkd.ctl.tables import Array, Chunk, Reader
from fkd.ctl.text import value_names
from fkd.errors import FkdError


class Columns:
    """`names`: of q's values, in their order; `followers`: joints that a table may have too, and whom they follow."""

    def __init__(self, model: dict[str, Any], degrees: bool) -> None:
        self.digest: str = model["digest"]
        self._robot, self._tip = model["name"], model["tip"]
        joints = {j["name"]: j for j in model["joints"]}
        self.names = value_names(name for name in model["q"] for _ in range(joints[name]["width"]))
        if not self.names:
            raise FkdError(f"robot `{self._robot}` has no joints that move, so there are no rows to compute")
        self.followers = {name: affine(j, joints) for name, j in joints.items() if j["mimic"]}
        self._units = {}  # what a value in degrees is multiplied with to give rad|m
        for j in joints.values() if degrees else ():
            if j["width"] > 1:
                raise FkdError(f"--deg is not defined for the {j['type']} joint `{j['name']}`; give radians and metres")
            self._units[j["name"]] = pi / 180.0 if j["type"] in ("revolute", "continuous") else 1.0

    @property
    def tip(self) -> str:
        """The default link. Raises FkdError where the model has none."""
        if self._tip is None:
            raise FkdError(f"robot `{self._robot}` has no single tip; name the links with --link")
        tip: str = self._tip
        return tip

    def read(self, chunk: Chunk, reader: Reader) -> Array:
        """Rows of a table -> q, (n, dof) rad|m. Raises FkdError for a value that is not finite, or a follower's that is wrong."""
        units = np.array([self._units.get(name, 1.0) for name in reader.names])
        values = chunk.values * units
        for row, k in np.argwhere(~np.isfinite(values))[:1]:
            raise FkdError(f"{reader.place(chunk.first + int(row))}: column `{reader.names[k]}`: {chunk.values[row, k]} is not a finite number")
        dof = len(self.names)
        for k, name in enumerate(reader.names[dof:], dof):
            source, ratio, bias = self.followers[name]
            with np.errstate(over="ignore"):
                expected = ratio * values[:, self.names.index(source)] + bias
                wrong = ~(np.abs(values[:, k] - expected) <= FOLLOWER_TOLERANCE * np.maximum(1.0, np.abs(expected)))
            for row in np.flatnonzero(wrong)[:1]:
                raise FkdError(
                    f"{reader.place(chunk.first + int(row))}: column `{name}`: it follows `{source}` and should be "
                    f"{expected[row] / units[k]:.9g}, got {chunk.values[row, k]:.9g} (--skip '{name}' leaves the column out)"
                )
        q: Array = values[:, :dof]
        return q


def affine(joint: dict[str, Any], joints: dict[str, dict[str, Any]]) -> tuple[str, float, float]:
    """A follower -> the independent joint at the end of its chain, and value = ratio * source + bias."""
    ratio, bias = 1.0, 0.0
    while mimic := joint["mimic"]:
        bias += ratio * mimic["offset"]
        ratio *= mimic["multiplier"]
        joint = joints[mimic["joint"]]
    return joint["name"], ratio, bias
