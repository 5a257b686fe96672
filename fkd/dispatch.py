"""Method -> Robot call: the only place where the wire meets the kinematics."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from fkd.errors import InvalidParams, MethodNotFound, cut, did_you_mean, nearest
from fkd.model import Joint
from fkd.poses import Matrix, decomposed, read_matrix, read_parts, written
from fkd.robot import Robot
from fkd.wire import messages as m
from fkd.wire.explain import explain
from fkd.wire.jsonrpc import encode

NO_PARAMS = Raw(b"[]")

Method = Callable[["Service", Raw], bytes]


class Service:
    """What every connection of a daemon talks to: one robot, and what the daemon knows of itself."""

    def __init__(self, robot: Robot, *, generation: int = 1) -> None:
        self.robot = robot
        self.generation = generation
        self.started = time.monotonic()
        self.connections = 0
        self.requests = 0  # those of connections that have ended; the open ones count their own
        self.open: set[Any] = set()

    def call(self, method: str, params: Raw) -> bytes:
        """Run one method: its name and the bytes of its parameters -> the bytes of its result.

        Raises FkdError, whatever the parameters are.
        """
        run = METHODS.get(method)
        if run is None:
            raise MethodNotFound(f"no method `{cut(method)}`{did_you_mean(method, METHODS)}", name=cut(method),
                                 did_you_mean=nearest(method, METHODS))
        try:
            return run(self, params or NO_PARAMS)
        except (msgspec.DecodeError, RecursionError) as e:
            raise explain(e, params, method, PARAMETERS.get(method)) from None


# -- the methods -------------------------------------------------------------------------------------------------------


def compute_fk(service: Service, params: Raw) -> bytes:
    """By position: the default tip's 16 numbers. By name: {"poses": {link: pose}}."""
    given = m.compute_fk.decode(params)
    if isinstance(given, list):
        return encode(service.robot.pose(given))
    start = time.perf_counter_ns()
    robot = service.robot
    q = robot.configuration(m.read_q(given.q), degrees=given.degrees, missing=given.missing)
    tool = None if given.tool is None else pose_in(given.tool, "$.params.tool")
    poses = robot.poses(q, _links(robot, given.links), given.base, tool)
    result: dict[str, Any] = {"poses": {link: written(T, given.format) for link, T in poses.items()}}
    if given.stamp:
        result |= {"digest": robot.digest, "generation": service.generation, "elapsed_ns": time.perf_counter_ns() - start}
    return encode(result)


def decompose(service: Service, params: Raw) -> bytes:
    """All forms of the pose of a link at q, or of a pose that is given."""
    given = m.decompose.decode(params)
    robot = service.robot
    if isinstance(given, list):
        return encode(decomposed(robot.pose(given)))
    forms = {
        "q": given.q, "matrix": given.matrix, "pose": given.pose,
        "xyz with quaternion or rpy": next((v for v in (given.xyz, given.quaternion, given.rpy) if v is not None), None),
    }  # fmt: skip
    chosen = [name for name, value in forms.items() if value is not None]
    if len(chosen) != 1:
        raise InvalidParams(f"decompose takes one of {', '.join(forms)}", reason="pose-form", path="$.params",
                            expected="one pose", got=" and ".join(chosen) or "none")
    if given.q is not None:
        q = robot.configuration(m.read_q(given.q), degrees=given.degrees, missing=given.missing)
        link = given.link if given.link is not None else robot.model.require_tip()
        return encode(decomposed(robot.poses(q, (link,), given.base)[link]))
    if given.link is not None or given.base is not None or given.degrees or given.missing != "error":
        raise InvalidParams("link, base, degrees and missing go with q, not with a pose that is given", reason="pose-form",
                            path="$.params", expected="the pose alone", got=chosen[0])
    if given.matrix is not None:
        return encode(decomposed(read_matrix(given.matrix, "$.params.matrix")))
    if given.pose is not None:
        return encode(decomposed(pose_in(given.pose, "$.params.pose")))
    return encode(decomposed(read_parts(given.xyz, given.quaternion, given.rpy, "$.params")))


def model(service: Service, params: Raw) -> bytes:
    """What robot this is: names, order of q, limits."""
    m.read_nothing(params, "model")
    robot = service.robot.model
    return encode({
        "name": robot.name, "digest": robot.digest, "generation": service.generation, "root": robot.root,
        "base": robot.base, "tip": robot.tip, "dof": robot.dof, "links": robot.links,
        "joints": [_joint(j) for j in robot.joints],
        "q": [j.name for j in robot.independent],
    })  # fmt: skip


def check(service: Service, params: Raw) -> bytes:
    """The findings about the loaded model."""
    m.read_nothing(params, "check")
    return encode([f._asdict() for f in service.robot.findings])


def status(service: Service, params: Raw) -> bytes:
    """Health, and which model serves."""
    m.read_nothing(params, "status")
    robot = service.robot.model
    return encode({
        "state": "serving", "version": fkd_version(), "robot": robot.name, "source": robot.source, "trust": robot.trust,
        "digest": robot.digest, "generation": service.generation, "base": robot.base, "tip": robot.tip,
        "calibrated": robot.calibrated, "uptime_s": time.monotonic() - service.started,
        "connections": service.connections,
        "requests": service.requests + sum(c.requests for c in service.open), "pid": os.getpid(),
    })  # fmt: skip


def ping(_service: Service, params: Raw) -> bytes:
    """ "pong"."""
    m.read_nothing(params, "ping")
    return b'"pong"'


METHODS: dict[str, Method] = {
    "compute_fk": compute_fk, "decompose": decompose, "model": model, "check": check, "status": status, "ping": ping,
}  # fmt: skip
PARAMETERS: dict[str, type[msgspec.Struct]] = {"compute_fk": m.ComputeFk, "decompose": m.Decompose}


# -- from the wire's words to the robot's ------------------------------------------------------------------------------


def _links(robot: Robot, links: list[str] | str | None) -> tuple[str, ...]:
    """`links` as a caller says it -> names: default the tip, "all" for every link, a name alone for itself."""
    if links is None:
        return (robot.model.require_tip(),)
    if isinstance(links, str):
        return robot.links if links == "all" else (links,)
    if not links:
        raise InvalidParams("`links` is empty; name at least one, or leave it out for the tip", reason="links-empty",
                            path="$.params.links", expected='names, or "all"', got="[]")
    return tuple(dict.fromkeys(links))


def pose_in(pose: m.Pose, path: str) -> Matrix:
    """A pose as it comes over the wire -> 16 numbers. Raises InvalidParams."""
    if isinstance(pose, list):
        return read_matrix(pose, path)
    given = [name for name in pose.__struct_fields__ if getattr(pose, name) is not None]
    if pose.matrix is not None and given == ["matrix"]:
        return read_matrix(pose.matrix, f"{path}.matrix")
    if pose.position is not None and pose.orientation is not None and given == ["position", "orientation"]:
        p, o = pose.position, pose.orientation
        return read_parts((p.x, p.y, p.z), (o.x, o.y, o.z, o.w), None, path)
    if given and not set(given) & {"matrix", "position", "orientation"}:
        return read_parts(pose.xyz, pose.quaternion, pose.rpy, path)
    raise InvalidParams(f"{path}: give a pose in one form", reason="pose-form", path=path, got=given,
                        expected="matrix; xyz with quaternion or rpy; or position with orientation")


def _joint(j: Joint) -> dict[str, Any]:
    limits = None
    if j.limits and j.limits.lower is not None:
        limits = {"lower": j.limits.lower, "upper": j.limits.upper}
    mimic = {"joint": j.mimic.source, "multiplier": j.mimic.multiplier, "offset": j.mimic.offset} if j.mimic else None
    return {"name": j.name, "type": j.type, "parent": j.parent, "child": j.child, "axis": j.axis, "limits": limits,
            "mimic": mimic, "width": j.width, "index": j.index if j.width else None}


def fkd_version() -> str:
    """The installed version, or "unknown" where fkd runs from a bare tree."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer to import than the robot to load

    try:
        return version("fkd")
    except PackageNotFoundError:
        return "unknown"
