"""What the daemon says of its model and of itself, and what it may be told: model, check, status, stats, pin, reload."""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any

from msgspec import Raw

from fkd.errors import NotPermitted
from fkd.model import Joint
from fkd.service import Session, Work
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode


def model(session: Session, params: Raw) -> bytes:
    """What robot this is: names, joints, limits, the order of q."""
    m.read_nothing(params, "model")
    robot = session.robot.model
    return encode({
        "name": robot.name, "digest": robot.digest, "generation": session.service.generation, "root": robot.root,
        "base": robot.base, "tip": robot.tip, "dof": robot.dof, "links": robot.links,
        "joints": [_joint(j) for j in robot.joints],
        "q": [j.name for j in robot.independent],
    })  # fmt: skip


def check(session: Session, params: Raw) -> bytes:
    """The findings about the loaded model."""
    m.read_nothing(params, "check")
    return encode([f._asdict() for f in session.robot.findings])


def status(session: Session, params: Raw) -> bytes:
    """Health, and which model serves."""
    m.read_nothing(params, "status")
    robot = session.robot.model
    return encode({
        "state": "serving", "version": fkd_version(), "robot": robot.name, "source": robot.source, "trust": robot.trust,
        "digest": robot.digest, "generation": session.service.generation, "base": robot.base, "tip": robot.tip,
        "calibrated": robot.calibrated, "uptime_s": time.monotonic() - session.service.started,
        "connections": session.service.connections,
        "requests": session.service.metrics.requests, "pid": os.getpid(),
    })  # fmt: skip


def stats(session: Session, params: Raw) -> Work:
    """What was asked: for each method how often, how long, which errors; connections; the last reloads."""
    m.read_nothing(params, "stats")
    service = session.service
    metrics = service.metrics
    methods = {}
    for name, meter in metrics.methods.items():
        if meter.count:
            methods[name] = meter.report()
            yield None
    return encode({
        "started_unix_time": service.started_unix_time, "uptime_s": time.monotonic() - service.started,
        "generation": service.generation, "digest": service.robot.digest,
        "connections": {"open": service.connections, "accepted": metrics.accepted, "refused": metrics.refused,
                        "dropped": metrics.dropped},
        "requests": metrics.requests, "methods": methods, "reloads": list(metrics.reloads),
    })  # fmt: skip


def ping(_session: Session, params: Raw) -> bytes:
    """Whether anybody is there: "pong"."""
    m.read_nothing(params, "ping")
    return b'"pong"'


def pin(session: Session, params: Raw) -> bytes:
    """Bind this connection to a digest: while another model serves, its calls about the model fail.

    If another serves already, so does this call (-32012), and the connection is bound to the digest all the same.
    """
    given = m.read_pin(params)
    session.pinned = given
    session.check_pin()
    return encode({"digest": given, "generation": session.service.generation})


def reload(session: Session, params: Raw) -> Work:
    """Serve the bundle as it now is, or another; where that fails, the old model serves on.

    For root, the daemon's own user and its admin group. By position, `[]`: the bundle as it now is.
    """
    bundle = m.read_reload(params)
    service = session.service
    if service.reload is None:
        raise NotPermitted("there is no daemon here that could reload", reason="no-daemon")
    caller = session.credentials()
    if caller is None or not service.may_reload(caller):
        raise NotPermitted("only root, the daemon's own user and its admin group may reload", reason="not-admin",
                           expected="an admin", got="unknown" if caller is None else f"uid {caller.uid}")
    pending = service.reload(bundle)
    yield pending
    digest, generation = pending.result()
    return encode({"digest": digest, "generation": generation})


def _joint(j: Joint) -> dict[str, Any]:
    limits = None
    if j.limits and j.limits.lower is not None:
        limits = {"lower": j.limits.lower, "upper": j.limits.upper}
    mimic = {"joint": j.mimic.source, "multiplier": j.mimic.multiplier, "offset": j.mimic.offset} if j.mimic else None
    return {"name": j.name, "type": j.type, "parent": j.parent, "child": j.child, "axis": j.axis, "limits": limits,
            "mimic": mimic, "width": j.width, "index": j.index if j.width else None}


@cache
def fkd_version() -> str:
    """The installed version, or "unknown" where fkd runs from a bare tree."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer to import than the robot to load

    try:
        return version("fkd")
    except PackageNotFoundError:
        return "unknown"
