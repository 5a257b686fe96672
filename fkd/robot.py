"""Robot: a Model with its compiled kernels. Names in, numbers out; what `fkd.load` returns and the daemon serves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from math import isfinite, pi
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fkd.errors import Finding, InvalidParams, ModelError, cut, did_you_mean, nearest
from fkd.kernel.emit_python import compile_python
from fkd.kernel.motion import Edge, Tree, compose, forward
from fkd.kernel.pose import matrix
from fkd.kernel.program import record
from fkd.load import load_model
from fkd.model import WIDTH, Joint, Model

if TYPE_CHECKING:
    import numpy as np

Kernel = Callable[[Sequence[float]], Any]
JointValues = Mapping[str, float | Sequence[float]]

KEPT_KERNELS = 64  # compiled (base, links) pairs; each takes some 50 kB for a six-axis arm
# How far a follower's given value may be from what its source says (rad or m): a joint state that went through text.
FOLLOWER_TOLERANCE = 1e-6
SQUARES = (1e-290, 1e300)  # of a quaternion's norm: beyond, squares lose their digits, and a kernel would give NaN or worse
NEUTRAL = {1: (0.0,), 3: (0.0, 0.0, 0.0), 7: (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)}


class Robot:
    """A robot ready to compute. Immutable but for its cache of kernels; safe to share between threads.

    Lengths in metre, angles in radian, q in the order of `joints`; poses are `T_base_link`.
    """

    def __init__(self, model: Model, findings: Sequence[Finding] = ()) -> None:
        self.model = model
        self.findings = tuple(findings)
        self._place = {link: k for k, link in enumerate(model.links)}
        self._tree = _tree(model, self._place)
        self._quaternions = tuple(j.index + 3 for j in model.independent if j.type == "floating")
        self._kernels: OrderedDict[tuple[str, tuple[str, ...]], Kernel] = OrderedDict()
        # The default tip's kernel: q -> 16 numbers. Compiled here, so that the first caller does not wait for it.
        self.tip_kernel: Kernel = self._no_tip if model.tip is None else self.kernel((model.tip,), model.base)

    def __reduce__(self) -> tuple[Any, ...]:
        return Robot, (self.model, self.findings)  # kernels are compiled anew where it is unpickled

    def __repr__(self) -> str:
        m = self.model
        return f"<fkd.Robot {m.name!r}: {len(m.links)} links, {m.dof} values in q, {m.base} -> {m.tip}>"

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def joints(self) -> tuple[str, ...]:
        """The independent joints, in the order of q."""
        return tuple(j.name for j in self.model.independent)

    @property
    def links(self) -> tuple[str, ...]:
        """All links, in document order."""
        return self.model.links

    @property
    def dof(self) -> int:
        """The number of values in q."""
        return self.model.dof

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the bundle's manifest, or of the file where there is no bundle."""
        return self.model.digest

    # -- numbers in, numpy out ---------------------------------------------------------------------------------------

    def fk(self, q: Sequence[float] | JointValues, link: str | None = None, base: str | None = None) -> np.ndarray:
        """Forward kinematics of one configuration.

        q: (dof,) rad|m in the order of q, or {joint: value} -> T_base_link, (4, 4).
        link: default the tip; base: default the model's base.
        Raises ModelError for unknown names, InvalidParams for a q that does not fit.
        """
        import numpy as np  # numpy is not needed by the daemon's single-pose path

        target = link if link is not None else self.model.require_tip()
        return np.array(self.poses(self.configuration(q), (target,), base)[target]).reshape(4, 4)

    # -- numbers in, plain lists out: what the daemon serves ---------------------------------------------------------

    def pose(self, q: Sequence[float]) -> list[float]:
        """The default tip's pose, fast: q (dof floats) -> T_base_tip, 16 numbers row-major.

        Raises InvalidParams for a wrong count or a pose beyond the range of a double; ModelError without a tip.
        """
        if self._quaternions:
            self._check_quaternions(q, "$.params")
        try:
            T: list[float] = self.tip_kernel(q)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise self._why(q, "$.params") from None
        if not isfinite(T[3] + T[7] + T[11]):
            self._finite(T)
        return T

    def poses(
        self, q: Sequence[float], links: Sequence[str], base: str | None = None, tool: Sequence[float] | None = None
    ) -> dict[str, list[float]]:
        """T_base_link (16 numbers) for each link; `tool` (12 or 16 numbers, T_link_tool) is appended to each."""
        if self._quaternions:
            self._check_quaternions(q, "$.params.q")
        try:
            found = self.kernel(tuple(links), self.model.base if base is None else base)(q)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise self._why(q, "$.params.q") from None
        poses = dict(zip(links, (found,) if len(links) == 1 else found, strict=True))
        if tool is not None:
            poses = {link: matrix(compose(T[:12], tool[:12])) for link, T in poses.items()}  # type: ignore[arg-type]
        for T in poses.values():
            self._finite(T)
        return poses

    def kernel(self, links: tuple[str, ...], base: str) -> Kernel:
        """The compiled function q -> poses for these links, from the cache or made now."""
        key = (base, links)
        kernel = self._kernels.get(key)
        if kernel is None:
            places = [self._place[self.model.require_link(link)] for link in links]
            start = self._place[self.model.require_link(base, "$.params.base")]
            tree = self._tree
            program = record(tree.width, lambda q: [matrix(T) for T in forward(tree, q, places, start)])  # type: ignore[arg-type]
            kernel = self._kernels[key] = compile_python(program, f"{self.model.name}: {base} -> {', '.join(links[:3])}")
            while len(self._kernels) > KEPT_KERNELS:
                self._kernels.popitem(last=False)
        else:
            with suppress(KeyError):  # another thread's kernels may have pushed it out meanwhile
                self._kernels.move_to_end(key)
        return kernel

    def reference(self, q: Sequence[float], links: Sequence[str], base: str | None = None) -> dict[str, list[float]]:
        """The same poses by the kinematics run over floats: slow and obvious, the measure of every kernel."""
        places = [self._place[self.model.require_link(link)] for link in links]
        frames = forward(self._tree, q, places, self._place[self.model.base if base is None else base])
        return {link: matrix(T) for link, T in zip(links, frames, strict=True)}  # type: ignore[arg-type]

    def configuration(
        self, q: Sequence[float] | JointValues, *, degrees: bool = False, missing: str = "error", path: str = "$.params.q"
    ) -> list[float]:
        """Any form of q -> a flat list of dof floats in rad|m.

        q: dof numbers in the order of q, or {joint: value} with a list of 3 (planar: x, y, theta) or 7 (floating:
        x, y, z, qx, qy, qz, qw) for wide joints. degrees: revolute and continuous values are in degrees.
        missing: "error", or "zero" for joints that a mapping leaves out.
        Raises InvalidParams or ModelError, with the path of the offending value.
        """
        if isinstance(q, Mapping):
            values = self._named(q, degrees, missing, path)
        else:
            try:
                given = None if isinstance(q, (str, bytes, bytearray, Set)) else list(q)
            except TypeError:
                given = None
            if given is None:
                raise InvalidParams(f"{path}: expected {self.dof} numbers or {{joint: value}}, got {_kind(q)}", reason="q-type",
                                    path=path, expected=f"{self.dof} numbers, or an object", got=_kind(q))
            values = [self._number(v, f"{path}[{i}]") for i, v in enumerate(given)]
            if len(values) != self.dof:
                raise self._count(len(values), path)
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
                raise InvalidParams(f"joint `{name}` is fixed and takes no value", reason="joint-fixed", path=where, expected="no value", got=_kind(given))
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
                got=[n for n in self.joints if n not in {j.name for j in absent}],
            )
        for j in absent:
            values[j.index : j.index + j.width] = NEUTRAL[j.width]

    def _values(self, joint: Joint, given: Any, where: str) -> list[float]:
        width = WIDTH[joint.type]
        if width == 1:
            return [self._number(given, where)]
        if isinstance(given, (str, bytes, bytearray, Set, Mapping)) or not hasattr(given, "__len__") or len(given) != width:
            meaning = "x, y, theta" if width == 3 else "x, y, z, qx, qy, qz, qw"
            raise InvalidParams(
                f"joint `{joint.name}` is {joint.type} and takes a list of {width} numbers ({meaning})",
                reason="joint-width", path=where, expected=f"{width} numbers", got=_kind(given),
            )
        return [self._number(v, f"{where}[{i}]") for i, v in enumerate(given)]

    @staticmethod
    def _number(value: Any, where: str) -> float:
        if isinstance(value, Real) and not isinstance(value, bool):  # numpy's bool is no Real
            try:
                number = float(value)
            except OverflowError:
                number = float("inf")
            if isfinite(number):
                return number
        raise InvalidParams(f"{where}: expected a finite number, got {_kind(value)}", reason="not-a-number", path=where,
                            expected="a finite number", got=_kind(value))

    @staticmethod
    def _unit(joint: Joint, degrees: bool, where: str) -> float:
        """What a caller's value of this joint is multiplied with to give rad|m."""
        if not degrees:
            return 1.0
        if joint.type in ("planar", "floating"):
            raise InvalidParams(
                f"`degrees` is not defined for the {joint.type} joint `{joint.name}`; give radians and metres",
                reason="degrees-undefined", path=where,
            )
        return pi / 180.0 if joint.type in ("revolute", "continuous") else 1.0

    def _unknown_joint(self, name: str, where: str) -> ModelError:
        hint = did_you_mean(name, self.model.by_name)
        if name in self.model.link_set and name in self.model.by_child:
            hint = f"; it is a link, carried by joint `{self.model.by_child[name].name}`"
        return ModelError(f"no joint `{cut(name)}` in robot `{self.name}`{hint}", reason="unknown-joint", path=where, name=cut(name),
                          did_you_mean=nearest(name, self.model.by_name))

    def _count(self, got: int, path: str) -> InvalidParams:
        names = ", ".join(self.model.q_names[:12]) + (", ..." if self.dof > 12 else "")
        return InvalidParams(
            f"q has {got} number{'' if got == 1 else 's'}; robot `{self.name}` takes {self.dof} ({names})",
            reason="q-length", path=path, expected=f"{self.dof} numbers", got=got,
        )

    def _why(self, q: Sequence[float], path: str) -> InvalidParams:
        """What was wrong with a q that a kernel could not take."""
        if len(q) != self.dof:
            return self._count(len(q), path)
        return self._overflow(path)

    def _check_quaternions(self, q: Sequence[float], path: str) -> None:
        for place in self._quaternions:
            x = q[place : place + 4]
            if len(x) == 4 and not SQUARES[0] < sum(v * v for v in x) < SQUARES[1]:
                raise InvalidParams(
                    f"the quaternion of floating joint `{self.model.q_names[place]}` has no usable norm", reason="quaternion-norm",
                    path=f"{path}[{place}]", expected="a quaternion qx, qy, qz, qw of non-zero norm", got=list(x),
                )

    def _finite(self, T: Sequence[float]) -> None:
        if not all(map(isfinite, T)):
            raise self._overflow("$.params")

    @staticmethod
    def _overflow(path: str) -> InvalidParams:
        return InvalidParams("the pose at this q is beyond the range of a double", reason="overflow", path=path,
                             expected="values whose pose is finite", got="values too large")

    def _no_tip(self, _q: Sequence[float]) -> list[float]:
        self.model.require_tip()
        raise AssertionError("a robot with a tip has a tip kernel")


def _kind(value: Any) -> str:
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


def _tree(model: Model, place: Mapping[str, int]) -> Tree:
    edges: list[Edge | None] = [None] * len(model.links)
    for j in model.joints:
        edges[place[j.child]] = Edge(j.type, place[j.parent], j.T_parent_joint, j.axis, j.index, j.ratio, j.bias)
    return Tree(tuple(edges), model.dof)


def load(
    path: str | Path, *, tip: str | None = None, base: str | None = None, allow_unhashed: bool = False
) -> Robot:
    """Load a robot from a bundle, a URDF or a xacro file.

    tip, base: override what the bundle or the description's shape says.
    Raises BundleRefused with file and line where the description or the bundle must not be used.
    """
    model, findings = load_model(path, tip=tip, base=base, allow_unhashed=allow_unhashed)
    return Robot(model, findings)
