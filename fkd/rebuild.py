"""A robot for the daemon: loaded, compiled and checked against what the operator expects; at a reload in another process.

A reload must not hold up the loop, nor may a bundle that eats time or memory take the daemon with it. So a child process
reads it, and hands back what is left to be done in no time: the model, and the compiled code of its tip's kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import marshal
import os
import pickle
import subprocess
import sys
from typing import Any, NamedTuple

from fkd.errors import BundleRefused, FkdError
from fkd.robot import Robot, load

log = logging.getLogger("fkd")

LONGEST = 60.0  # seconds that a reload may take
CHILD = "import sys; sys.path[:] = {path!r}; from fkd.rebuild import child; child()"


class Wanted(NamedTuple):
    """Which robot, and what it must be."""

    bundle: str
    tip: str | None = None
    base: str | None = None
    allow_unhashed: bool = False
    expect_digest: str | None = None
    dof: int | None = None


def prepare(wanted: Wanted) -> Robot:
    """Load and compile the robot, and make sure that it is the one that the operator expects. Raises BundleRefused."""
    robot = load(wanted.bundle, tip=wanted.tip, base=wanted.base, allow_unhashed=wanted.allow_unhashed)
    if wanted.expect_digest and robot.digest != wanted.expect_digest:
        raise BundleRefused(f"{wanted.bundle} has the digest {robot.digest}, expected {wanted.expect_digest}",
                            reason="digest-unexpected", member=wanted.bundle)
    if wanted.dof is not None and robot.dof != wanted.dof:
        raise BundleRefused(f"{wanted.bundle}: q has {robot.dof} values ({', '.join(robot.model.q_names)}), expected {wanted.dof}",
                            reason="dof-unexpected", member=wanted.bundle)
    return robot


async def rebuild(wanted: Wanted) -> Robot:
    """`prepare` in a child process, while this one goes on serving. Raises BundleRefused."""
    # -I: nothing but this path decides what is run. subprocess, not the loop's own: it uses vfork, which holds this
    # process up for some 0.6 ms, whatever its size.
    command = [sys.executable, "-I", "-c", CHILD.format(path=sys.path)]
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as e:
        raise BundleRefused(f"cannot start a process to read {wanted.bundle}: {e.strerror or e}", reason="reload-process") from None
    try:
        out, _ = await asyncio.to_thread(process.communicate, json.dumps(wanted).encode(), LONGEST)
    except subprocess.TimeoutExpired:
        raise BundleRefused(f"reading {wanted.bundle} took over {LONGEST:g} s; given up", reason="reload-timeout") from None
    finally:
        process.kill()  # does nothing to a process that has ended
    if process.returncode:
        raise BundleRefused(f"the process that read {wanted.bundle} ended with status {process.returncode}", reason="reload-process")
    found = pickle.loads(out)
    if "message" in found:
        raise BundleRefused(found["message"], reason=found["reason"], **found["data"])
    return Robot(found["model"], found["findings"], tip_code=found["tip_code"] and marshal.loads(found["tip_code"]))


def child() -> None:
    """In the child: what to read comes in by stdin, the robot or the refusal goes out by stdout."""
    _give_way()
    wanted = sys.stdin.read()
    if not wanted:
        return  # the daemon has been killed
    found: dict[str, Any]
    try:
        robot = prepare(Wanted(*json.loads(wanted)))
        code = robot.kernels.tip_code and marshal.dumps(robot.kernels.tip_code)
        found = {"model": robot.model, "findings": robot.findings, "tip_code": code}
    except FkdError as e:
        found = {"message": e.message, "reason": e.reason, "data": e.data}
    with contextlib.suppress(BrokenPipeError), open(1, "wb", buffering=0, closefd=False) as out:
        out.write(pickle.dumps(found))


def _give_way() -> None:
    """Off the daemon's processor and real-time priority, behind whoever serves, as far as a filter lets us."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with contextlib.suppress(OSError):
        os.nice(19)
