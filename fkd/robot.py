"""Robot: a Model with its compiled kernels. Names in, numbers out; what `fkd.load` returns and the daemon serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import isfinite
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from fkd.aim import TIMEOUT_MS, TOLERANCE, Aim, read_pose
from fkd.configuration import Configurations, JointValues
from fkd.errors import Finding, InvalidParams, cut
from fkd.kernel.jacobian import seen_from
from fkd.kernel.motion import compose
from fkd.kernel.pose import matrix
from fkd.kernel.steps import finished
from fkd.kernels import Kernels
from fkd.load import load_model
from fkd.model import Model

if TYPE_CHECKING:
    import numpy as np

    from fkd.inverse import Found, Inverse


class Robot:
    """A robot ready to compute. Immutable but for its cache of kernels; safe to share between threads.

    Lengths in metre, angles in radian, q in the order of `joints`; poses are `T_base_link`.
    """

    def __init__(self, model: Model, findings: Sequence[Finding] = (), *, tip_code: CodeType | None = None) -> None:
        self.model = model
        self.findings = tuple(findings)
        self.kernels = Kernels(model, tip_code)
        self.tip_kernel = self.kernels.tip  # one look-up less for each pose
        self._configurations = Configurations(model)
        self._quaternions = self._configurations.quaternions

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

    def fk_batch(
        self, q: np.ndarray | Sequence[Sequence[float]], links: str | Sequence[str] | None = None,
        base: str | None = None, out: np.ndarray | Mapping[str, np.ndarray] | None = None,
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Forward kinematics of many configurations.

        q: (n, dof) rad|m in the order of q -> {link: (n, 4, 4)}, T_base_link; for one link (a name, or the default
        tip) the array alone. out: arrays of these shapes to write into, in the same form as the result.
        Raises ModelError for unknown names, InvalidParams for a q or out that does not fit and for a row that has no
        finite pose; out is then filled, and such rows are not finite there.
        """
        from fkd import batch  # NumPy is not needed by the daemon's single-pose path

        alone = links if isinstance(links, str) else self.model.require_tip() if links is None else None
        names = tuple(dict.fromkeys(links or ())) if alone is None else (alone,)
        rows = batch.rows(q, self.dof)
        workspace = self.kernels.workspace(names, self.model.base if base is None else base)
        if out is None:
            flat = workspace(rows)
            results = {link: found.reshape(len(rows), 4, 4) for link, found in zip(names, flat, strict=True)}
        else:
            results = dict(out) if isinstance(out, Mapping) else {} if alone is None else {alone: out}
            flat = workspace(rows, [batch.flat(results.get(link), len(rows), link) for link in names])
        for found in flat:
            bad = batch.first_not_finite(found)
            if bad is not None:
                where = f"$.params.q[{bad}]"
                values = self.configuration(rows[bad].tolist(), path=where)
                self._configurations.check_quaternions(values, where)
                raise self._overflow(where)
        return {link: results[link] for link in names} if alone is None else results[alone]

    def jacobian(
        self, q: Sequence[float] | JointValues, link: str | None = None, base: str | None = None, *,
        tool: np.ndarray | Sequence[float] | None = None, frame: str = "base",
    ) -> np.ndarray:
        """The geometric Jacobian, (6, dof): rows linear then angular velocity per unit of each value of q.

        q: (dof,) rad|m in the order of q, or {joint: value}. Followers are folded into their source's column.
        link: default the tip; the reference point is its origin, or that of tool (T_link_tool, (4, 4) or 16 numbers).
        frame: whose axes it is expressed in, "base" or "tip" (the link's, or the tool's where there is one).
        Raises ModelError for unknown names, InvalidParams for a q, tool or frame that does not fit.
        """
        import numpy as np

        T_link_tool = None if tool is None else read_pose(tool, "tool")
        rows = self.jacobian_rows(self.configuration(q), link, base, T_link_tool, frame)
        return np.array(rows).reshape(6, self.dof)

    def ik(
        self, pose: np.ndarray | Sequence[float] | Mapping[str, Sequence[float]], link: str | None = None,
        base: str | None = None, *, tool: np.ndarray | Sequence[float] | None = None,
        seed: Sequence[float] | JointValues | None = None, solutions: str = "one", method: str = "auto",
        position_tolerance: float = TOLERANCE, orientation_tolerance: float = TOLERANCE, position_only: bool = False,
        timeout_ms: float = TIMEOUT_MS, best_effort: bool = False,
    ) -> Found:
        """Inverse kinematics: configurations within the limits that take link, or the tool on it, to a pose.

        pose: T_base_link, or T_base_tool where there is a tool (T_link_tool): (4, 4), 16 numbers, or a mapping of xyz with
        quaternion or rpy; m, rad. The other arguments as `fkd.aim.Aim` says. `found.q` is the first solution, and
        `found.solutions` has all, each with its errors in m and rad.
        Raises IkFailed with the nearest that was found and the reason; ModelError and InvalidParams for what does not fit.
        """
        aim = Aim(
            read_pose(pose, "$.params.pose"), link, base, None if tool is None else read_pose(tool, "$.params.tool"), seed,
            solutions, method, position_tolerance, orientation_tolerance, position_only, timeout_ms, best_effort,
        )  # fmt: skip
        return self.inverse.solve(aim)

    @cached_property
    def inverse(self) -> Inverse:
        """The solvers of inverse kinematics."""
        from fkd.inverse import Inverse  # they need NumPy, which poses do not

        return Inverse(self.model, self.kernels, self._configurations)

    def dh(self, convention: str = "standard", link: str | None = None, base: str | None = None) -> dict[str, Any]:
        """The Denavit-Hartenberg table of the chain from base (default the model's) to link (default the tip).

        convention: "standard" or "modified" -> {"convention", "rows", "base", "tool", "residual", ...}; a, d in m, alpha,
        theta in rad; T_base_link = base * rows * tool, each joint's value added to its theta or d. See `fkd.dh`.
        Raises ModelError for unknown names, InvalidParams for a planar or floating joint on the way.
        """
        from fkd.dh import table

        target = link if link is not None else self.model.require_tip()
        return finished(table(self.kernels, target, self.model.base if base is None else base, convention))

    # -- numbers in, plain lists out: what the daemon serves ---------------------------------------------------------

    def pose(self, q: Sequence[float]) -> list[float]:
        """The default tip's pose, fast: q (dof floats) -> T_base_tip, 16 numbers row-major.

        Raises InvalidParams for a wrong count or a pose beyond the range of a double; ModelError without a tip.
        """
        if self._quaternions:
            self._configurations.check_quaternions(q, "$.params")
        try:
            T: list[float] = self.tip_kernel(q)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise self._why(q, "$.params") from None
        if not isfinite(T[3] + T[7] + T[11]):
            self._finite(T)
        return T

    def poses(
        self, q: Sequence[float], links: Sequence[str], base: str | None = None, tool: Sequence[float] | None = None,
        path: str = "$.params.q",
    ) -> dict[str, list[float]]:
        """T_base_link (16 numbers) for each link; `tool` (12 or 16 numbers, T_link_tool) is appended to each."""
        if self._quaternions:
            self._configurations.check_quaternions(q, path)
        try:
            found = self.kernels.poses(tuple(links), self.model.base if base is None else base)(q)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise self._why(q, path) from None
        poses = {links[0]: found} if len(links) == 1 else dict(zip(links, found, strict=True))
        if tool is not None:
            poses = {link: matrix(compose(T[:12], tool[:12])) for link, T in poses.items()}  # type: ignore[arg-type]
        for T in poses.values():
            self._finite(T, path)
        return poses

    def jacobian_rows(
        self, q: Sequence[float], link: str | None = None, base: str | None = None, tool: Sequence[float] | None = None,
        frame: str = "base", path: str = "$.params.q",
    ) -> list[list[float]]:
        """The Jacobian as 6 lists of dof numbers; see `jacobian`."""
        if frame not in ("base", "tip"):
            raise InvalidParams(f"a Jacobian is expressed in `base` or `tip`, not in `{cut(str(frame))}`", reason="unknown-choice",
                                path="$.params.frame", expected=["base", "tip"], got=cut(str(frame)))
        target = link if link is not None else self.model.require_tip()
        if self._quaternions:
            self._configurations.check_quaternions(q, path)
        try:
            T, flat = self.kernels.jacobian(target, self.model.base if base is None else base)(q)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise self._why(q, path) from None
        rows = [flat[k * self.dof : (k + 1) * self.dof] for k in range(6)]
        if tool is not None or frame != "base":
            rows = seen_from(T, rows, tool, frame == "tip")
        for row in rows:
            self._finite(row, path)
        return rows

    def configuration(
        self, q: Sequence[float] | JointValues, *, degrees: bool = False, missing: str = "error", path: str = "$.params.q"
    ) -> list[float]:
        """Any form of q -> a flat list of dof floats in rad|m; see `Configurations.read`."""
        return self._configurations.read(q, degrees=degrees, missing=missing, path=path)

    def _why(self, q: Sequence[float], path: str) -> InvalidParams:
        """What was wrong with a q that a kernel could not take."""
        if len(q) != self.dof:
            return self._configurations.wrong_count(len(q), path)
        return self._overflow(path)

    def _finite(self, values: Sequence[float], path: str = "$.params") -> None:
        if not isfinite(sum(values)) and not all(map(isfinite, values)):
            raise self._overflow(path)

    @staticmethod
    def _overflow(path: str) -> InvalidParams:
        return InvalidParams("the pose at this q is beyond the range of a double", reason="overflow", path=path,
                             expected="values whose pose is finite", got="values too large")


def load(
    path: str | Path, *, tip: str | None = None, base: str | None = None, allow_unhashed: bool = False
) -> Robot:
    """Load a robot from a bundle, a URDF or a xacro file.

    tip, base: override what the bundle or the description's shape says.
    Raises BundleRefused with file and line where the description or the bundle must not be used.
    """
    model, findings = load_model(path, tip=tip, base=base, allow_unhashed=allow_unhashed)
    return Robot(model, findings)
