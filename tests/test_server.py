"""Flow: many requests at once, slow readers, neighbours, limits. The daemon as a process, and a Server in a loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import resource
import shutil
import socket
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from fkd.accept import Acceptor
from fkd.dispatch import serving
from fkd.robot import load
from fkd.server import Limits, Server
from fkd.service import Service

HOME = [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1]  # wire_arm at q = 0
ZEROS = [0] * 6


def fk(ident: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"compute_fk","params":[0,0,0,0,0,0],"id":%d}\n' % ident


ALL_LINKS = b'{"jsonrpc":"2.0","method":"compute_fk","params":{"q":[0,0,0,0,0,0],"links":"all"},"id":1}\n'


def fill(client: Any, data: bytes) -> int:
    """Send until the daemon takes no more; how many bytes it took."""
    client.socket.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += client.socket.send(data[sent % len(data) :])
    client.socket.settimeout(30)
    return sent


# -- the daemon as a process -------------------------------------------------------------------------------------------


def test_twenty_thousand_requests_read_late_get_twenty_thousand_whole_replies_in_order(shared_daemon: Any) -> None:
    """One thread sends without reading, as long as the daemon takes it; then all is read."""
    client, count = shared_daemon.connect(), 20_000
    stream = b"".join(fk(k) for k in range(count))
    client.socket.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while sent < len(stream):
            sent += client.socket.send(stream[sent : sent + (1 << 16)])
    assert sent < len(stream)  # it does not swallow what it cannot answer
    client.socket.settimeout(30)
    # The rest goes out while replies come in.
    replies = b""
    while replies.count(b"\n") < count:
        replies += client.socket.recv(1 << 20)
        client.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while sent < len(stream):
                sent += client.socket.send(stream[sent : sent + (1 << 16)])
        client.socket.settimeout(30)
    found = [json.loads(line) for line in replies.splitlines()]
    assert [reply["id"] for reply in found] == list(range(count))
    assert all(reply["result"] == HOME for reply in found[::100])


def test_a_client_that_never_reads_costs_little_memory_and_no_neighbour(shared_daemon: Any) -> None:
    neighbour = shared_daemon.connect()
    assert neighbour.ask("compute_fk", ZEROS)["result"] == HOME
    shared_daemon.memory()
    before = shared_daemon.memory()
    deaf = [shared_daemon.connect() for _ in range(4)]
    for _ in range(20):
        for client in deaf:
            fill(client, ALL_LINKS * 500)
        assert neighbour.ask("compute_fk", ZEROS)["result"] == HOME
    assert shared_daemon.memory() - before < 32 << 20
    deaf[0].socket.settimeout(30)
    assert json.loads(deaf[0].line())["id"] == 1  # what was taken is answered, once someone reads


@pytest.mark.parametrize(
    "noise",
    [b"x" * 60_000, b'{"jsonrpc":"2.0","method":"ping"}\n' * 1000, b"\n" * 20_000, b"[" * 60_000 + b"\n", b"{}\n" * 500,
     b'{"a":"' + b'\\"' * 30_000 + b'"}\n', b"[" + b"1," * 30_000 + b"1]\n"],
    ids=["endless message", "notifications", "blank lines", "brackets", "no requests", "escapes", "large batch"],
)  # fmt: skip
def test_megabytes_of_noise_cost_little_memory_and_no_neighbour(shared_daemon: Any, noise: bytes) -> None:
    neighbour, noisy = shared_daemon.connect(), shared_daemon.connect()
    assert neighbour.ask("ping")["result"] == "pong"
    shared_daemon.memory()
    before = shared_daemon.memory()
    sent = 0
    while sent < 20 * len(noise):
        noisy.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            sent += noisy.socket.send(noise[sent % len(noise) :])
        with contextlib.suppress(BlockingIOError):
            while True:
                noisy.socket.recv(1 << 20)
        assert neighbour.ask("compute_fk", ZEROS)["result"] == HOME
    assert shared_daemon.memory() - before < 32 << 20


def test_the_largest_message_costs_little_memory(shared_daemon: Any) -> None:
    """A string of a megabyte beside a second object: what looks for duplicates must not need a hundred bytes a letter."""
    client = shared_daemon.connect()
    assert client.ask("ping")["result"] == "pong"
    shared_daemon.memory()
    before = shared_daemon.memory()
    client.send(b'{"jsonrpc":"2.0","id":1,"method":"compute_fk","params":{"q":{"j1":0},"base":"' + b"x" * 1_000_000 + b'"}}\n')
    assert client.reply()["error"]["code"] == -32602
    assert shared_daemon.memory() - before < 32 << 20


def test_a_client_that_closes_its_side_gets_every_reply_even_to_its_last_line(shared_daemon: Any) -> None:
    client = shared_daemon.connect()
    client.send(b"".join(fk(k) for k in range(1000)) + fk(1000)[:-1])
    client.socket.shutdown(socket.SHUT_WR)
    assert [json.loads(line)["id"] for line in client.rest().splitlines()] == list(range(1001))


def test_a_client_that_closes_its_side_in_the_middle_of_a_message_is_told(shared_daemon: Any) -> None:
    client = shared_daemon.connect()
    client.send(b'{"jsonrpc":')
    client.socket.shutdown(socket.SHUT_WR)
    assert json.loads(client.rest())["error"]["code"] == -32700


@pytest.mark.skipif(shutil.which("socat") is None, reason="socat is not installed")
def test_socat_is_a_client(shared_daemon: Any) -> None:
    told = subprocess.run(["socat", "-t", "30", "-", f"UNIX-CONNECT:{shared_daemon.path}"], input=fk(7), capture_output=True, check=True)
    assert json.loads(told.stdout) == {"jsonrpc": "2.0", "result": HOME, "id": 7}


@pytest.mark.parametrize("size", [1, 7, 700])
def test_the_stream_may_come_in_any_pieces(shared_daemon: Any, size: int) -> None:
    client, count = shared_daemon.connect(), 30 if size == 1 else 200
    stream = b"".join(fk(k) for k in range(count))
    for k in range(0, len(stream), size):
        client.send(stream[k : k + size])
    assert [json.loads(line)["id"] for line in client.lines(count)] == list(range(count))


def test_a_message_over_the_limit_is_refused_and_the_connection_lives(shared_daemon: Any) -> None:
    client = shared_daemon.connect()
    taken = b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * 180_000 + b'"}\n'  # far over a pipe's 64 KiB
    client.send(taken)
    assert client.reply()["result"] == "pong"
    client.send(b"[" * (1 << 20) + b"[" * 1000)
    refused = client.reply()
    assert (refused["error"]["code"], refused["error"]["data"]["limit"], refused["id"]) == (-32031, 1 << 20, None)
    client.send(b"[" * 1000 + b"\n")
    assert client.ask("ping")["result"] == "pong"


def test_a_client_that_leaves_in_the_middle_harms_nobody(shared_daemon: Any) -> None:
    for _ in range(20):
        leaving = shared_daemon.connect()
        leaving.send(b"".join(fk(k) for k in range(500)))
        leaving.close()
        half = shared_daemon.connect()
        half.send(fk(1)[:20])
        half.close()
    assert shared_daemon.ask("compute_fk", ZEROS)["result"] == HOME
    assert "Traceback" not in shared_daemon.stderr


def test_limits_are_settings(daemons: Any) -> None:
    """Three connections and messages of a thousand bytes; the fourth is told so and closed, and may come again."""
    daemon = daemons("wire_arm.urdf", FKD_MAX_CONNECTIONS="3", FKD_MAX_MESSAGE="1000")
    clients = [daemon.connect() for _ in range(3)]
    assert [c.ask("ping")["result"] for c in clients] == ["pong"] * 3
    refused = daemon.connect()
    reply, *rest = refused.rest().split(b"\n")
    assert rest == [b""]
    error = json.loads(reply)
    assert (error["error"]["code"], error["error"]["data"], error["id"]) == (-32030, {"reason": "overloaded", "limit": 3}, None)
    assert clients[0].ask("status")["result"]["connections"] == 3
    clients[0].send(b" " * 1001 + b"\n")
    assert clients[0].reply()["error"]["code"] == -32031
    clients.pop().close()
    while True:  # until the daemon has seen that
        again = daemon.connect()
        with contextlib.suppress(EOFError, ConnectionError):
            if "result" in again.ask("ping"):
                break
    assert [c.ask("ping")["result"] for c in clients] == ["pong"] * 2
    assert daemon.stop() == 0


def test_status_counts_requests_and_connections(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf")
    gone, stays = daemon.connect(), daemon.connect()
    gone.send(fk(1) * 10 + b"nonsense\n" + b'{"jsonrpc":"2.0","method":"ping"}\n')
    gone.lines(11)
    assert gone.ask("status")["result"]["requests"] == 12  # as many were answered before
    gone.close()
    while (status := stays.ask("status")["result"])["connections"] > 1:
        pass
    asked = status["requests"]
    assert asked > 12
    assert stays.ask("status")["result"]["requests"] == asked + 1
    assert status["pid"] == daemon.process.pid


def test_more_connections_than_the_soft_limit_on_open_files(daemons: Any) -> None:
    """The soft limit is 1024 almost everywhere, which is less than 1024 connections and a few files need."""

    def low(soft: int, hard: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    daemon = daemons("wire_arm.urdf", FKD_MAX_CONNECTIONS="100", popen={"preexec_fn": low(64, 4096)})
    clients = [daemon.connect() for _ in range(100)]
    assert [c.ask("ping")["result"] for c in clients] == ["pong"] * 100
    assert json.loads(daemon.connect().rest())["error"]["code"] == -32030
    assert daemon.stop() == 0
    tight = daemons("wire_arm.urdf", FKD_MAX_CONNECTIONS="100", popen={"preexec_fn": low(64, 64)})
    clients = [tight.connect() for _ in range(20)]
    assert [c.ask("ping")["result"] for c in clients] == ["pong"] * 20
    limit = 0
    while not limit:
        reply = tight.connect().ask("ping")
        limit = reply["error"]["data"]["limit"] if "error" in reply else 0
    assert 20 <= limit < 64
    assert "RLIMIT_NOFILE" in tight.stderr


# -- a Server in a loop ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(robots: Path) -> Service:
    return serving(load(robots / "wire_arm.urdf"))


def run(service: Service, path: str, limits: Limits, client: Callable[[Server], Coroutine[Any, Any, None]]) -> None:
    """Run a server on `path`, and `client` in the same loop."""

    async def both() -> None:
        loop = asyncio.get_running_loop()
        server = Server(service, limits, loop)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(path)
            listening.listen()
            listening.setblocking(False)
            acceptor = Acceptor(listening, server)
            await client(server)
            acceptor.close()
            await server.drain(1.0)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(both(), 30))


def test_a_client_that_does_not_read_is_dropped_when_its_grace_is_over(service: Service, short_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, dropped = str(short_folder / "s"), service.metrics.dropped

    async def client(server: Server) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
            deaf.setblocking(False)
            await loop.sock_connect(deaf, path)
            with pytest.raises(ConnectionError):
                await loop.sock_sendall(deaf, ALL_LINKS * 10_000)
        assert not server.clients
        assert service.metrics.dropped == dropped + 1
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(fk(1))
        assert json.loads(await reader.readline())["id"] == 1
        writer.close()

    run(service, path, Limits(unread=1 << 16, grace=0.05), client)
    assert "has not read" in caplog.text


def test_a_slow_reader_is_not_dropped_as_long_as_it_reads(service: Service, short_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its grace starts anew with every byte it takes; here it takes some in each of many spans of grace."""
    path = str(short_folder / "s")
    count, grace = 3000, 0.2

    async def client(_: Server) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            await loop.sock_connect(sock, path)
            sending = asyncio.create_task(loop.sock_sendall(sock, ALL_LINKS * count))
            found, step = 0, 0
            while found < count:
                found += (await loop.sock_recv(sock, 1 << 16)).count(b"\n")
                if step < 8:
                    await asyncio.sleep(grace / 4)
                step += 1
            await sending

    run(service, path, Limits(unread=1 << 16, grace=grace), client)
    assert "has not read" not in caplog.text


def test_a_neighbour_is_answered_between_the_turns_of_a_pipelining_client(service: Service, short_folder: Path) -> None:
    path = str(short_folder / "s")

    async def client(_: Server) -> None:
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 24)
        other_reader, other_writer = await asyncio.open_unix_connection(path)
        writer.write(b"".join(fk(k) for k in range(2000)))
        await asyncio.sleep(0)
        other_writer.write(fk(7))
        assert json.loads(await other_reader.readline())["id"] == 7
        assert len(reader._buffer) < 2000 * 130  # type: ignore[attr-defined]  # not all of the many came first
        for k in range(2000):
            assert json.loads(await reader.readline())["id"] == k
        writer.close()
        other_writer.close()

    run(service, path, Limits(), client)


def test_neighbours_are_answered_while_heavy_calls_run(service: Service, short_folder: Path) -> None:
    """Three clients have batches under way; a fourth gets all its single answers before any of them is done."""
    path = str(short_folder / "s")
    batch = json.dumps({"jsonrpc": "2.0", "method": "compute_fk_batch", "params": {"q": [[0] * 6] * 5000, "format": "pose"}, "id": "b"}) + "\n"

    async def client(_: Server) -> None:
        heavy = [await asyncio.open_unix_connection(path, limit=1 << 24) for _ in range(3)]
        reader, writer = await asyncio.open_unix_connection(path)
        for _, w in heavy:
            w.write(batch.encode() + fk(9))  # what comes behind waits for the batch
        for k in range(20):
            writer.write(fk(k))
            assert json.loads(await reader.readline())["id"] == k
        assert [len(r._buffer) for r, _ in heavy] == [0, 0, 0]  # type: ignore[attr-defined]
        for r, w in heavy:
            reply = json.loads(await r.readline())
            assert len(reply["result"]["poses"]["tool0"]) == 5000
            assert json.loads(await r.readline())["id"] == 9
            w.close()
        writer.close()

    run(service, path, Limits(), client)


def test_who_has_the_most_unread_replies_goes_when_they_are_too_many_for_all(service: Service, short_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, dropped = str(short_folder / "s"), service.metrics.dropped

    async def client(server: Server) -> None:
        lazy, lazier = [await asyncio.open_unix_connection(path, limit=1 << 12) for _ in range(2)]
        for k, (_, w) in ((4000, lazy), (4000, lazier)):
            w.write(b"".join(fk(i) for i in range(k)))
        while len(server.clients) > 1 or service.metrics.dropped == dropped:
            await asyncio.sleep(0)
        for _, w in (lazy, lazier):
            w.close()

    with caplog.at_level(logging.WARNING, logger="fkd"):
        run(service, path, Limits(unread=1 << 16, unread_in_all=100 << 10), client)
    assert "reads too slowly" in caplog.text


def test_draining_cuts_off_who_does_not_end(service: Service, short_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(short_folder / "s")

    async def client(server: Server) -> None:
        _, half = await asyncio.open_unix_connection(path)
        half.write(b'{"half')
        idle_reader, idle = await asyncio.open_unix_connection(path)
        idle.write(fk(3))
        assert json.loads(await idle_reader.readline())["id"] == 3
        await server.drain(0.05)
        assert await idle_reader.read() == b""
        assert not server.clients
        assert service.connections == 0
        half.close()
        idle.close()

    run(service, path, Limits(), client)
    assert "1 clients had to be cut off" in caplog.text
