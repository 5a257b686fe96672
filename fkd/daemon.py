"""The daemon's life: configure, load, listen, ready, serve, drain. Reads top to bottom."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial

import uvloop

from fkd.accept import Acceptor
from fkd.config import Config, ConfigError, parse_arguments
from fkd.dispatch import serving
from fkd.errors import FkdError, nearest
from fkd.listen import Listener, adopt, bind, group_id
from fkd.log import start_logging
from fkd.methods.daemon import fkd_version
from fkd.notify import Notifier
from fkd.peer import Credentials
from fkd.rebuild import prepare
from fkd.reload import Reloader
from fkd.robot import Robot
from fkd.server import Server

log = logging.getLogger("fkd")

OTHER_FILES = 32  # what the process has open beside its clients


def main(argv: Sequence[str] | None = None) -> int:
    """The command `fkd`. Exit status: 0 stopped as asked, 1 could not serve, 2 bad usage."""
    start_logging(os.environ)
    try:
        config = parse_arguments(sys.argv[1:] if argv is None else argv, os.environ)
    except ConfigError as e:
        log.error("%s", e)
        return 2
    notifier = Notifier(os.environ)
    try:
        robot = prepare(config.wanted)
        warn(robot, config.bundle)
        admins = frozenset() if config.admin_group is None else frozenset({group_id(config.admin_group)})
        listener = adopt(os.environ) or bind(config.socket, config.mode, config.group)
    except FkdError as e:
        notifier.send(f"STATUS={str(e).splitlines()[0]}", "ERRNO=22")
        log.error("%s", e)
        return 1
    config = replace(config, max_connections=make_room(config.max_connections))
    settle()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(robot, listener, config, notifier, admins))
    return 0


def warn(robot: Robot, bundle: str) -> None:
    """Say that the description has warnings, if it has."""
    warnings = sum(f.severity == "warning" for f in robot.findings)
    if warnings:
        log.warning("%d warnings about the description; `fkctl check %s` lists them", warnings, bundle)


def make_room(connections: int) -> int:
    """Raise the limit on open files where it is too low; how many connections it then allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < connections + OTHER_FILES:
        wanted = connections + OTHER_FILES if hard == resource.RLIM_INFINITY else min(connections + OTHER_FILES, hard)
        with contextlib.suppress(OSError, ValueError):  # a service manager's filter may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        if soft < connections + OTHER_FILES:
            log.warning("at most %d files may be open (RLIMIT_NOFILE), so fewer connections than %d are taken", soft, connections)
            return max(soft - OTHER_FILES, 1)
    return connections


def settle() -> None:
    """Put all that lives as long as the daemon out of the garbage collector's sight, so that it never walks it."""
    gc.collect()
    gc.freeze()
    # Threads are for what has time: none of them keeps the loop from its processor for longer than this.
    sys.setswitchinterval(0.25e-3)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's matrices are of 6 rows here


async def serve(robot: Robot, listener: Listener, config: Config, notifier: Notifier, admins: Set[int]) -> None:
    """Answer until SIGTERM or SIGINT, then drain."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    service = serving(robot)
    service.reload = reload = Reloader(service, config.wanted, notifier)
    service.may_reload = partial(may_reload, admins=admins)
    loop.add_signal_handler(signal.SIGHUP, hang_up, reload)
    server = Server(service, config.limits, loop)
    acceptor = Acceptor(listener.socket, server)
    log.info("serving %s on %s", service.describe(), listener.path)
    notifier.ready(f"serving {service.describe()}")
    threading.Thread(target=warm_up, args=(robot,), name="warm-up").start()
    if notifier.watchdog:
        _stay_alive(loop, notifier, notifier.watchdog)
    await stop.wait()
    log.info("stopping")
    notifier.stopping()
    acceptor.close()
    await server.drain(config.drain_seconds)
    listener.close()


def may_reload(caller: Credentials, admins: Set[int]) -> bool:
    """Whether the caller is root, this daemon's own user, or in a group of admins."""
    return caller.uid in (0, os.geteuid()) or not admins.isdisjoint(caller.groups)


def hang_up(reload: Reloader) -> None:
    """SIGHUP: reload. How it ended is logged."""
    try:
        reload()
    except FkdError as e:
        log.warning("SIGHUP ignored: %s", e)


def warm_up(robot: Robot) -> None:
    """In a thread, once the daemon serves: what takes longer to load than the robot, and is not needed to answer for it.

    It would otherwise keep the first who asks, and all others, waiting; or fail them when no more files can be opened.
    """
    fkd_version()
    nearest("a", "b")
    with contextlib.suppress(FkdError):  # no tip, or no inverse kinematics to it
        robot.inverse.prepare()
    gc.freeze()


def _stay_alive(loop: asyncio.AbstractEventLoop, notifier: Notifier, interval: float) -> None:
    """Signs of life from the loop itself, so that a loop that hangs is seen to hang."""
    notifier.alive()
    # A little before half the interval, so that a late turn of the loop is not a missed one.
    loop.call_later(0.9 * interval, _stay_alive, loop, notifier, interval)
