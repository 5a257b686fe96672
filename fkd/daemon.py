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
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import uvloop

from fkd.config import Config, ConfigError, parse_arguments
from fkd.dispatch import serving
from fkd.errors import BundleRefused, FkdError
from fkd.listen import BACKLOG, Listener, adopt, bind
from fkd.notify import Notifier
from fkd.robot import Robot, load
from fkd.server import Server

log = logging.getLogger("fkd")

OTHER_FILES = 32  # what the process has open beside its clients

KEEP_PATH: dict[str, Any] = {"cleanup_socket": False}  # uvloop takes it on every Python; its type stubs only from 3.13 on


def main(argv: Sequence[str] | None = None) -> int:
    """The command `fkd`. Exit status: 0 stopped as asked, 1 could not serve, 2 bad usage."""
    logging.basicConfig(level=logging.INFO, format="fkd: %(message)s", stream=sys.stderr)
    try:
        config = parse_arguments(sys.argv[1:] if argv is None else argv, os.environ)
    except ConfigError as e:
        print(f"fkd: {e}", file=sys.stderr)
        return 2
    notifier = Notifier(os.environ)
    try:
        robot = prepare(config)
        listener = adopt(os.environ) or bind(config.socket, config.mode, config.group)
    except FkdError as e:
        notifier.send(f"STATUS={str(e).splitlines()[0]}", "ERRNO=22")
        print(f"fkd: {e}", file=sys.stderr)
        return 1
    config = replace(config, max_connections=make_room(config.max_connections))
    settle()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(robot, listener, config, notifier))
    return 0


def prepare(config: Config) -> Robot:
    """Load and compile the robot, and make sure that it is the one that the operator expects."""
    robot = load(config.bundle, tip=config.tip, base=config.base, allow_unhashed=config.allow_unhashed)
    if config.expect_digest and robot.digest != config.expect_digest:
        raise BundleRefused(f"{config.bundle} has the digest {robot.digest}, expected {config.expect_digest}",
                            reason="digest-unexpected", member=config.bundle)
    if config.dof is not None and robot.dof != config.dof:
        raise BundleRefused(f"{config.bundle}: q has {robot.dof} values ({', '.join(robot.model.q_names)}), expected {config.dof}",
                            reason="dof-unexpected", member=config.bundle)
    warnings = sum(f.severity == "warning" for f in robot.findings)
    if warnings:
        log.warning("%d warnings about the description; `fkctl check %s` lists them", warnings, config.bundle)
    return robot


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


async def serve(robot: Robot, listener: Listener, config: Config, notifier: Notifier) -> None:
    """Answer until SIGTERM or SIGINT, then drain."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # Until there is a reload, a hang-up must at least not end a service that others rely on.
    loop.add_signal_handler(signal.SIGHUP, log.warning, "SIGHUP has no effect; restart fkd to serve another model")
    server = Server(serving(robot), config.limits, loop)
    # The path is the listener's business: only it knows whether the socket is ours to unlink, or systemd's.
    accepting = await loop.create_unix_server(server.protocol, sock=listener.socket, backlog=BACKLOG, **KEEP_PATH)
    log.info("serving %s (%s, digest %.12s) on %s", robot.name, robot.model.trust, robot.digest, listener.path)
    notifier.ready(f"serving {robot.name}, digest {robot.digest[:12]}")
    if notifier.watchdog:
        _stay_alive(loop, notifier, notifier.watchdog)
    await stop.wait()
    log.info("stopping")
    notifier.stopping()
    accepting.close()
    await server.drain(config.drain_seconds)
    listener.close()


def _stay_alive(loop: asyncio.AbstractEventLoop, notifier: Notifier, interval: float) -> None:
    """Signs of life from the loop itself, so that a loop that hangs is seen to hang."""
    notifier.alive()
    # A little before half the interval, so that a late turn of the loop is not a missed one.
    loop.call_later(0.9 * interval, _stay_alive, loop, notifier, interval)
