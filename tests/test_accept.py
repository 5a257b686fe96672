"""Callers by the hundred and thousand, and none too few file descriptors to say no with."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from fkd.accept import PAUSE, Acceptor
from fkd.dispatch import serving
from fkd.robot import load
from fkd.server import Limits, Server

HOME = [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1]  # wire_arm at q = 0
ZEROS = [0] * 6


def connections(talk: Any) -> dict[str, int]:
    found: dict[str, int] = talk.ask("stats")["result"]["connections"]
    return found


def files(daemon: Any) -> int:
    """How many files the daemon has open."""
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def warm(daemon: Any) -> Any:
    """A connection to the daemon, once that has loaded all that it puts off until it serves."""
    talk = daemon.connect()
    assert "result" in talk.ask("compute_ik", {"pose": HOME, "best_effort": True})
    assert talk.ask("compute_fk", ZEROS)["result"] == HOME
    return talk


def until(true: Callable[[], bool]) -> None:
    """Look again and again (each look asks the daemon something) until it has come so far."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end


# -- the limit on connections ------------------------------------------------------------------------------------------


def test_a_crowd_is_told_one_by_one_counted_and_logged_once(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf", FKD_MAX_CONNECTIONS="20")
    stays, *others = [daemon.connect() for _ in range(20)]
    for crowd in (1, 2):
        assert [c.ask("ping")["result"] for c in (stays, *others)] == ["pong"] * 20
        before = connections(stays)["refused"]
        told = [daemon.connect().ask("ping")["error"] for _ in range(30)]
        assert {(e["code"], e["data"]["reason"], e["data"]["limit"]) for e in told} == {(-32030, "overloaded", 20)}
        assert connections(stays)["refused"] == before + 30
        others[0].close()
        until(lambda: connections(stays)["open"] == 19)
        others[0] = daemon.connect()  # one goes, one comes: the same crowd
        assert others[0].ask("ping")["result"] == "pong"
        assert daemon.connect().ask("ping")["error"]["code"] == -32030
        assert daemon.stderr.count("callers are refused: 20 connections are open") == crowd
        for client in others:
            client.close()
        until(lambda: connections(stays)["open"] == 1)
        others = [daemon.connect() for _ in range(19)]
    assert others[0].ask("ping")["result"] == "pong"
    assert daemon.stderr.count("callers are taken again; 31 were refused") == 2
    until(lambda: connections(stays) == {"open": 20, "accepted": 20 + 2 * 20, "refused": 62, "dropped": 0})


# -- many callers ------------------------------------------------------------------------------------------------------


def test_five_thousand_callers_who_leave_at_once(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf")
    neighbour = warm(daemon)
    daemon.memory()
    before, open_files = daemon.memory(), files(daemon)
    for k in range(5000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.connect(daemon.path)
        if k % 100 == 0:
            assert neighbour.ask("compute_fk", ZEROS)["result"] == HOME
    until(lambda: connections(neighbour)["open"] == 1)
    assert connections(neighbour) == {"open": 1, "accepted": 5001, "refused": 0, "dropped": 0}
    assert files(daemon) <= open_files + 1  # of the loop's own
    assert daemon.memory() - before < 16 << 20


def test_idle_callers_cost_little_and_half_closed_ones_nothing(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf")
    neighbour = warm(daemon)
    daemon.memory()
    before = daemon.memory()
    idle = [daemon.connect() for _ in range(500)]
    until(lambda: connections(neighbour)["open"] == 501)
    assert neighbour.ask("compute_fk", ZEROS)["result"] == HOME
    assert daemon.memory() - before < 500 * (32 << 10)
    for k, client in enumerate(idle):
        if k % 2:
            client.send(b'{"jsonrpc":"2.0","method":"ping","id":1}')  # without its newline
        client.socket.shutdown(socket.SHUT_WR)
    for k, client in enumerate(idle):
        assert client.rest() == (b'{"jsonrpc":"2.0","result":"pong","id":1}\n' if k % 2 else b"")
    until(lambda: connections(neighbour)["open"] == 1)
    assert daemon.stderr.count("\n") == 1  # that it serves


# -- no file descriptors left ------------------------------------------------------------------------------------------


def test_without_descriptors_the_daemon_serves_on_tells_callers_and_recovers(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf")
    stays = warm(daemon)
    limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)

    def allow(more: int) -> None:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (files(daemon) + more, limits[1]))

    allow(5)
    clients = [daemon.connect() for _ in range(40)]
    replies = [c.ask("ping") for c in clients]
    taken = [r for r in replies if "result" in r]
    assert 0 < len(taken) <= 5
    told = [r["error"] for r in replies if "error" in r]
    assert {(e["code"], e["data"]["reason"]) for e in told} == {(-32030, "no-descriptors")}
    assert connections(stays)["refused"] == len(told)
    assert daemon.stderr.count("callers are refused") == 1
    assert stays.ask("compute_fk", ZEROS)["result"] == HOME
    assert stays.ask("status")["result"]["state"] == "serving"
    assert stays.ask("pink")["error"]["data"]["did_you_mean"] == "pin"
    assert stays.ask("reload")["error"]["code"] == -32040
    for client in clients:
        client.close()
    until(lambda: connections(stays)["open"] == 1)
    assert daemon.ask("ping")["result"] == "pong"  # as soon as there are some again

    allow(-3)  # perhaps not even one to say no with: who comes now is told or waits
    clients = [daemon.connect() for _ in range(10)]
    for _ in range(100):
        assert stays.ask("compute_fk", ZEROS)["result"] == HOME
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, limits)
    replies = [c.ask("ping") for c in clients]
    assert all(r["error"]["data"]["reason"] == "no-descriptors" for r in replies if "error" in r)
    assert daemon.ask("ping")["result"] == "pong"
    assert stays.ask("reload")["result"]["generation"] == 2
    assert daemon.stop() == 0


class Counting(socket.socket):
    """A socket that counts how often it was asked for a caller."""

    tries = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.tries += 1
        return super().accept()


@pytest.fixture
def listening(short_folder: Path) -> Iterator[Counting]:
    with Counting(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(short_folder / "s"))
        sock.listen()
        sock.setblocking(False)
        yield sock


def test_it_does_not_spin_when_nothing_can_be_accepted(listening: Counting, robots: Path) -> None:
    """Callers wait, and so does the loop; then they are taken."""
    service = serving(load(robots / "wire_arm.urdf"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def crowd() -> None:
        loop = asyncio.get_running_loop()
        server = Server(service, Limits(), loop)
        acceptor = Acceptor(listening, server)
        acceptor._give_up_reserve()  # as when the whole machine has run out of files
        with contextlib.ExitStack() as callers:
            for _ in range(10):
                caller = callers.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                caller.setblocking(False)
                caller.connect(listening.getsockname())
            lowest = os.dup(caller.fileno())  # all below are in use
            os.close(lowest)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
            started = loop.time()
            try:
                await asyncio.sleep(4 * PAUSE)
                tries, took = listening.tries, loop.time() - started
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert 0 < tries <= 2 * (took / PAUSE + 1)
            assert service.connections == 0
            while service.connections < 10:
                await asyncio.sleep(0)
            caller.send(b'{"jsonrpc":"2.0","method":"ping","id":1}\n')
            assert b"pong" in await loop.sock_recv(caller, 100)
        acceptor.close()
        await server.drain(1.0)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(crowd(), 30))
    assert service.connections == 0


def test_a_server_that_drains_sends_home_whom_it_has_just_taken(listening: Counting, robots: Path) -> None:
    service = serving(load(robots / "wire_arm.urdf"))

    async def late() -> None:
        loop = asyncio.get_running_loop()
        server = Server(service, Limits(), loop)
        acceptor = Acceptor(listening, server)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.setblocking(False)
            caller.connect(listening.getsockname())
            acceptor._accept()
            assert service.connections == 1
            assert not server.clients
            acceptor.close()
            await server.drain(10.0)
            assert await loop.sock_recv(caller, 100) == b""
        assert service.connections == 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(late(), 30))
