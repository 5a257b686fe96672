"""The table of methods, and how one is run: the only place where the wire meets the kinematics."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns

import msgspec
from msgspec import Raw

from fkd.errors import FkdError, InternalError, MethodNotFound, cut, did_you_mean, nearest
from fkd.kernel.steps import finished
from fkd.methods import daemon, dh, discover, ik, jacobian, poses
from fkd.metrics import OTHER, Metrics
from fkd.robot import Robot
from fkd.service import Service, Session, Work
from fkd.wire import messages as m
from fkd.wire.explain import explain

NO_PARAMS = Raw(b"[]")

METHODS: dict[str, Callable[[Session, Raw], bytes | Work]] = {
    "compute_fk": poses.compute_fk,
    "compute_fk_batch": poses.compute_fk_batch,
    "decompose": poses.decompose,
    "compute_jacobian": jacobian.compute_jacobian,
    "compute_ik": ik.compute_ik,
    "dh": dh.dh,
    "model": daemon.model,
    "check": daemon.check,
    "status": daemon.status,
    "stats": daemon.stats,
    "ping": daemon.ping,
    "pin": daemon.pin,
    "reload": daemon.reload,
}
PARAMETERS: dict[str, type[msgspec.Struct]] = {
    "compute_fk": m.ComputeFk, "compute_fk_batch": m.ComputeFkBatch, "decompose": m.Decompose,
    "compute_jacobian": m.ComputeJacobian, "compute_ik": m.ComputeIk, "dh": m.Dh, "pin": m.Pin, "reload": m.Reload,
}  # fmt: skip
METHODS["rpc.discover"] = discover.reference(METHODS, PARAMETERS)
# What a caller may ask whose model has gone: all that does not depend on the model, or says which it is.
UNPINNED = frozenset({"model", "status", "stats", "ping", "pin", "reload", "rpc.discover"})


def serving(robot: Robot) -> Service:
    """A service of this robot that counts every method."""
    return Service(robot, Metrics(METHODS))


def call(session: Session, method: str, params: Raw) -> bytes | Work:
    """Run one method: its name and the bytes of its parameters -> the bytes of its result, or the work that gives them.

    Raises FkdError, whatever the parameters are; so does the work.
    """
    started = perf_counter_ns()
    function = METHODS.get(method)
    if function is None:
        session.service.metrics.methods[OTHER].failed(MethodNotFound.code)
        raise MethodNotFound(f"no method `{cut(method)}`{did_you_mean(method, METHODS)}", name=cut(method),
                             did_you_mean=nearest(method, METHODS))
    try:
        if session.pinned is not None and method not in UNPINNED:
            session.check_pin()
        result = function(session, params or NO_PARAMS)
    except (msgspec.DecodeError, RecursionError) as e:
        raise _failed(session, method, started, explain(e, params, method, PARAMETERS.get(method))) from None
    except Exception as e:
        _failed(session, method, started, e)
        raise
    if not isinstance(result, bytes):
        return _measured(session, method, params, result, started)
    session.service.metrics.methods[method].took(perf_counter_ns() - started)
    return result


def _measured(session: Session, method: str, params: Raw, work: Work, started: int) -> Work:
    """The same work, its errors explained and its time taken as those of any method."""
    try:
        result = yield from work
    except (msgspec.DecodeError, RecursionError) as e:
        raise _failed(session, method, started, explain(e, params, method, PARAMETERS.get(method))) from None
    except Exception as e:
        _failed(session, method, started, e)
        raise
    session.service.metrics.methods[method].took(perf_counter_ns() - started)
    return result


def _failed(session: Session, method: str, started: int, e: Exception) -> Exception:
    """Count a method's error, which took its time too."""
    meter = session.service.metrics.methods[method]
    meter.took(perf_counter_ns() - started)
    meter.failed(e.code if isinstance(e, FkdError) else InternalError.code)
    return e


def run(session: Session, method: str, params: Raw) -> bytes:
    """`call` to its end, for callers who have nothing else to do meanwhile."""
    result = call(session, method, params)
    if isinstance(result, bytes):
        return result
    worked = finished(result)
    return worked if isinstance(worked, bytes) else b"".join(worked)
