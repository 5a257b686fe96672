"""q in any form that a caller may give it -> a flat list of numbers in rad and m, or an error that names the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from math import isfinite, pi
from numbers import Real
from typing import Any

from fkd.errors import InvalidParams, ModelError, cut, did_you_mean, nearest
from fkd.model import WIDTH, Joint, Model

JointValues = Mapping[str, float | Sequence[float]]

# How far a follower's given value may be from what its source says (rad or m): a joint state that went through text.
FOLLOWER_TOLERANCE = 1e-6
SQUARES = (1e-290, 1e300)  # of a quaternion's norm: beyond, squares lose their digits, and a kernel would give NaN or worse
FLOATS = {float}
NEUTRAL = {1: (0.0,), 3: (0.0, 0.0, 0.0), 7: (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)}


class Configurations:
    """Reads the configurations of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.dof = model.dof
        self.quaternions = tuple(j.index + 3 for j in model.independent if j.type == "floating")

    def read(
        self, q: Sequence[float] | JointValues, *, degrees: bool = False, missing: str = "error", path: str = "$.params.q"
    ) -> list[float]:
        """Any form of q -> a flat list of dof floats in rad|m.

        q: dof numbers in the order of q, or {joint: value} with a list of 3 (planar: x, y, theta) or 7 (floating:
        x, y, z, qx, qy, qz, qw) for wide joints. degrees: revolute and continuous values are in degrees.
        missing: "error", or "zero" for joints that a mapping leaves out.
        Raises InvalidParams or ModelError, with the path of the offending value.
        """
        if type(q) is list and len(q) == self.dof and not degrees and set(map(type, q)) == FLOATS and isfinite(sum(q)):
            return q  # as it comes by the thousand from the wire
        if isinstance(q, Mapping):
            values = self._named(q, degrees, missing, path)
        else:
            try:
                given = None if isinstance(q, (str, bytes, bytearray, Set)) else list(q)
            except TypeError:
                given = None
            if given is None:
                raise InvalidParams(f"{path}: expected {self.dof} numbers or {{joint: value}}, got {kind(q)}", reason="q-type",
                                    path=path, expected=f"{self.dof} numbers, or an object", got=kind(q))
            values = [number(v, f"{path}[{i}]") for i, v in enumerate(given)]
            if len(values) != self.dof:
                raise self.wrong_count(len(values), path)
            if degrees:
                for j in self.model.independent:
                    if j.width == 1:
                        values[j.index] *= self._unit(j, degrees, path)
                    else:
                        self._unit(j, degrees, path)
        return values

    def _named(self, q: JointValues, degrees: bool, missing: str, path: str) -> list[float]:
        by_name = self.model.by_name
        values: list[float | None] = [None] * self.dof
        followers: list[tuple[Joint, float]] = []
        for name, given in q.items():
            where = f"{path}.{cut(str(name))}"
            joint = by_name.get(name)
            if joint is None:
                raise self._unknown_joint(str(name), where)
            if WIDTH[joint.type] == 0:
                raise InvalidParams(f"joint `{name}` is fixed and takes no value", reason="joint-fixed", path=where, expected="no value", got=kind(given))
            taken = self._values(joint, given, where)
            k = self._unit(joint, degrees, where)
            if joint.mimic:
                followers.append((joint, taken[0] * k))
            else:
                values[joint.index : joint.index + joint.width] = [v * k for v in taken]
        self._fill(values, missing, path)
        whole = [0.0 if v is None else v for v in values]
        for joint, given_value in followers:
            value = joint.ratio * whole[joint.index] + joint.bias
            if abs(value - given_value) > FOLLOWER_TOLERANCE * max(1.0, abs(value)):
                raise InvalidParams(
                    f"joint `{joint.name}` follows `{self.model.q_names[joint.index]}` and should be {value:.9g}, "
                    f"but {given_value:.9g} was given; leave it out, or give the two consistently",
                    reason="follower-inconsistent", path=f"{path}.{joint.name}", expected=value, got=given_value,
                )
        return whole

    def _fill(self, values: list[float | None], missing: str, path: str) -> None:
        absent = [j for j in self.model.independent if values[j.index] is None]
        if absent and missing != "zero":
            names = ", ".join(f"`{j.name}`" for j in absent[:8]) + (", ..." if len(absent) > 8 else "")
            raise InvalidParams(
                f"no value for joint{'s' if len(absent) > 1 else ''} {names}; give every independent joint, "
                'or say missing: "zero"',
                reason="joint-missing", path=path, expected=[j.name for j in self.model.independent],
                got=[j.name for j in self.model.independent if j not in absent],
            )
        for j in absent:
            values[j.index : j.index + j.width] = NEUTRAL[j.width]

    def _values(self, joint: Joint, given: Any, where: str) -> list[float]:
        width = WIDTH[joint.type]
        if width == 1:
            return [number(given, where)]
        if isinstance(given, (str, bytes, bytearray, Set, Mapping)) or not hasattr(given, "__len__") or len(given) != width:
            meaning = "x, y, theta" if width == 3 else "x, y, z, qx, qy, qz, qw"
            raise InvalidParams(
                f"joint `{joint.name}` is {joint.type} and takes a list of {width} numbers ({meaning})",
                reason="joint-width", path=where, expected=f"{width} numbers", got=kind(given),
            )
        return [number(v, f"{where}[{i}]") for i, v in enumerate(given)]

    @staticmethod
    def _unit(joint: Joint, degrees: bool, where: str) -> float:
        """What a caller's value of this joint is multiplied with to give rad|m."""
        if not degrees:
            return 1.0
        if joint.type in ("planar", "floating"):
            raise InvalidParams(
                f"`degrees` is not defined for the {joint.type} joint `{joint.name}`; give radians and metres",
                reason="degrees-undefined", path=where, expected="degrees: false", got="degrees: true",
            )
        return pi / 180.0 if joint.type in ("revolute", "continuous") else 1.0

    def _unknown_joint(self, name: str, where: str) -> ModelError:
        hint = did_you_mean(name, self.model.by_name)
        if name in self.model.link_set and name in self.model.by_child:
            hint = f"; it is a link, carried by joint `{self.model.by_child[name].name}`"
        return ModelError(f"no joint `{cut(name)}` in robot `{self.model.name}`{hint}", reason="unknown-joint", path=where, name=cut(name),
                          did_you_mean=nearest(name, self.model.by_name))

    def wrong_count(self, got: int, path: str) -> InvalidParams:
        names = ", ".join(self.model.q_names[:12]) + (", ..." if self.dof > 12 else "")
        return InvalidParams(
            f"q has {got} number{'' if got == 1 else 's'}; robot `{self.model.name}` takes {self.dof} ({names})",
            reason="q-length", path=path, expected=f"{self.dof} numbers", got=got,
        )

    def check_quaternions(self, q: Sequence[float], path: str) -> None:
        for place in self.quaternions:
            x = q[place : place + 4]
            if len(x) == 4 and not SQUARES[0] < sum(v * v for v in x) < SQUARES[1]:
                raise InvalidParams(
                    f"the quaternion of floating joint `{self.model.q_names[place]}` has no usable norm", reason="quaternion-norm",
                    path=f"{path}[{place}]", expected="a quaternion qx, qy, qz, qw of non-zero norm", got=list(x),
                )


def number(value: Any, where: str) -> float:
    """A finite number, of whatever type. Raises InvalidParams."""
    if isinstance(value, Real) and not isinstance(value, bool):  # numpy's bool is no Real
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if isfinite(number):
            return number
    raise InvalidParams(f"{where}: expected a finite number, got {kind(value)}", reason="not-a-number", path=where,
                        expected="a finite number", got=kind(value))


def kind(value: Any) -> str:
    """A value as an error message names it, JSON's words first."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return f"`{value}`" if abs(value) < 1e18 else "an integer beyond the range of a double"
    with suppress(TypeError):
        return f"an array of {len(value)}"
    return f"`{str(value)[:40]}`"
