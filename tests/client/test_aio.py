"""The client for event loops: calls that overlap, are cancelled, time out or lose their connection."""

from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import numpy as np
import pytest
from fkclient import (
    AsyncClient,
    BadReply,
    BadValue,
    ConnectionLost,
    FkError,
    ModelChanged,
    NoDaemon,
    RpcError,
    Timeout,
    address,
)

from .conftest import POSE, FakeDaemon, Peer, echo, error_line, fill_backlog, line

uvloop = pytest.importorskip("uvloop")

Serve = Callable[..., FakeDaemon]
Run = Callable[[Coroutine[Any, Any, Any]], Any]

PATIENCE = 30.0  # seconds; for calls that must be answered, however slow the machine
SHORT = 0.05  # seconds; for calls that cannot be answered


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs a coroutine in one loop a test; whatever that loop complains of fails the test."""
    complaints: list[dict[str, Any]] = []
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        yield runner.run
        gc.collect()  # futures and tasks with exceptions that nobody looked at complain when they go
        runner.run(asyncio.sleep(0))
    assert not complaints


def x_of(pose: list[float]) -> float:
    assert len(pose) == 16
    return pose[3]


class Gate:
    """An event that a daemon's thread opens and a coroutine awaits."""

    def __init__(self) -> None:
        self.event = threading.Event()

    async def wait(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.event.wait)


# -- answers --------------------------------------------------------------------------------------------------------


def test_every_verb_asks_its_method(serve: Serve, path: str, run: Run) -> None:
    serve(echo)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            assert x_of(await client.fk([0.5, 1.0])) == 0.5
            assert (await client.fk(np.array([0.5])))[0, 3] == 0.5
            assert await client.decompose([0.5]) == {"method": "decompose", "params": [0.5]}
            assert (await client.jacobian([0.5], frame="tip"))["params"] == {"q": [0.5], "frame": "tip"}
            assert (await client.ik(POSE, seed=[0.0]))["params"] == {"pose": POSE, "seed": [0.0]}
            assert (await client.dh(convention="standard"))["method"] == "dh"
            assert (await client.model())["method"] == "model"
            assert (await client.status())["method"] == "status"
            assert "ping" in await client.ping()
            assert (await client.call("stats"))["params"] is None
            with pytest.raises(BadValue, match=r"q\[0\] is nan"):
                await client.fk([float("nan")])
            with pytest.raises(BadReply):
                await client.fk_batch([[0.5]])

    run(main())


def test_many_calls_share_a_connection_out_of_order(serve: Serve, path: str, run: Run) -> None:
    count = 50

    def reverse(peer: Peer) -> None:
        requests = [peer.request() for _ in range(count)]
        for request in reversed(requests):
            assert request is not None
            peer.reply(request["id"], [*POSE[:3], request["params"][0], *POSE[4:]])

    daemon = serve(reverse)

    async def main() -> list[list[float]]:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            return await asyncio.gather(*(client.fk([float(n)]) for n in range(count)))

    assert [x_of(pose) for pose in run(main())] == [float(n) for n in range(count)]
    assert daemon.connections == 1


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_replies_split_and_joined(serve: Serve, path: str, run: Run, piece: int) -> None:
    count = 5

    def cut(peer: Peer) -> None:
        stream = b""
        for _ in range(count):
            request = peer.request()
            assert request is not None
            stream += line(request["id"] + 1000, "unknown") + line(request["id"], [*POSE[:3], request["params"][0], *POSE[4:]])
        for at in range(0, len(stream), piece):
            peer.send(stream[at : at + piece])
        peer.request()

    serve(cut)

    async def main() -> list[list[float]]:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            return await asyncio.gather(*(client.fk([float(n)]) for n in range(count)))

    assert [x_of(pose) for pose in run(main())] == [float(n) for n in range(count)]


def test_large_messages_both_ways_and_the_limit(serve: Serve, path: str, run: Run) -> None:
    serve(echo)
    text = "x" * 3_000_000

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            assert (await client.call("echo", [text]))["params"] == [text]
        async with AsyncClient(path, timeout=PATIENCE, max_reply=1000) as client:
            with pytest.raises(BadReply, match="more than 1000 bytes"):
                await client.call("echo", [text])
            assert x_of(await client.fk([0.5])) == 0.5

    run(main())


def test_errors_of_the_daemon_fail_their_call_alone(serve: Serve, path: str, run: Run) -> None:
    def refuse_odd(peer: Peer) -> None:
        while (request := peer.request()) is not None:
            if request["params"][0] % 2:
                peer.send(error_line(request["id"], -32001, "odd", {"reason": "odd"}))
            else:
                peer.reply(request["id"], POSE if request["params"][0] else POSE[:15])

    daemon = serve(refuse_odd)

    async def main() -> list[Any]:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            return await asyncio.gather(*(client.fk([n]) for n in range(4)), return_exceptions=True)

    answers = run(main())
    assert isinstance(answers[0], BadReply)
    assert answers[2] == POSE
    assert [answers[n].reason for n in (1, 3)] == ["odd", "odd"]
    assert daemon.connections == 1


# -- ids and ends of connections ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kind"),
    [(error_line(None, -32700, "not JSON"), RpcError), (b"nonsense\n", BadReply), (line(None, POSE), BadReply)],
)
def test_what_is_addressed_to_nobody_fails_all(serve: Serve, path: str, run: Run, said: bytes, kind: type) -> None:
    def complain(peer: Peer) -> None:
        for _ in range(3):
            peer.request()
        peer.send(said)
        peer.request()

    daemon = serve(complain, echo)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            errors = await asyncio.gather(*(client.fk([0.5]) for _ in range(3)), return_exceptions=True)
            assert [type(e) for e in errors] == [kind] * 3
            assert len({id(e) for e in errors}) == 3
            assert x_of(await client.fk([0.5])) == 0.5

    run(main())
    assert daemon.connections == 2


def test_each_call_is_retried_once_after_a_loss(serve: Serve, path: str, run: Run) -> None:
    def read_then_close(peer: Peer) -> None:
        for _ in range(5):
            peer.request()

    daemon = serve(read_then_close, echo)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            poses = await asyncio.gather(*(client.fk([float(n)]) for n in range(5)))
            assert [x_of(pose) for pose in poses] == [0.0, 1.0, 2.0, 3.0, 4.0]

    run(main())
    assert daemon.connections == 2


def test_no_second_retry(serve: Serve, path: str, run: Run) -> None:
    def half(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        peer.send(line(request["id"], POSE)[:50])

    daemon = serve(half, half, echo)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            with pytest.raises(ConnectionLost):
                await client.fk([0.5])
            assert daemon.connections == 2
            assert x_of(await client.fk([0.5])) == 0.5

    run(main())


def test_a_connection_that_ends_as_it_begins(
    serve: Serve, path: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Gate] = []

    def end(peer: Peer) -> None:
        peer.end()
        ended[0].event.set()

    def connect_and_wait(path: str) -> Any:
        ended.append(Gate())
        sock = address.connect(path)
        if len(ended) == 1:
            ended[0].event.wait(PATIENCE)
        return sock

    monkeypatch.setattr("fkclient.aio.connect", connect_and_wait)
    daemon = serve(end, echo)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            poses = await asyncio.gather(*(client.fk([float(n)]) for n in range(3)))
            assert [x_of(pose) for pose in poses] == [0.0, 1.0, 2.0]

    run(main())
    assert daemon.connections == 2


def test_a_daemon_that_ends_its_side_and_reads_no_more(serve: Serve, path: str, run: Run) -> None:
    done = threading.Event()

    def end_one_side(peer: Peer) -> None:
        peer.socket.shutdown(socket.SHUT_WR)
        done.wait()

    serve(end_one_side, echo)
    text = "x" * 3_000_000

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            assert (await client.call("echo", [text]))["params"] == [text]
        done.set()

    run(main())


def test_a_daemon_restarted_between_calls(serve: Serve, path: str, run: Run) -> None:
    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            with pytest.raises(NoDaemon, match="no such socket"):
                await client.fk([0.5])
            first = serve(echo)
            assert x_of(await client.fk([0.5])) == 0.5
            first.stop()
            second = serve(echo)
            poses = await asyncio.gather(*(client.fk([float(n)]) for n in range(3)))
            assert [x_of(pose) for pose in poses] == [0.0, 1.0, 2.0]
            assert second.connections == 1
            second.stop()
            errors = await asyncio.gather(*(client.fk([0.5]) for _ in range(3)), return_exceptions=True)
            assert [type(e) for e in errors] == [NoDaemon] * 3

    run(main())


def test_a_failure_to_connect_that_nobody_waits_for(path: str, run: Run) -> None:
    async def main() -> None:
        task = asyncio.create_task(AsyncClient(path).fk([0.5]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


# -- deadlines and cancelling -----------------------------------------------------------------------------------------


def test_a_late_reply_is_dropped_and_the_connection_stays(serve: Serve, path: str, run: Run) -> None:
    given_up = threading.Event()

    def late(peer: Peer) -> None:
        held = []
        while (request := peer.request()) is not None:
            if request["params"] == [1.0]:
                held.append(request)
                continue
            peer.reply(request["id"], POSE)  # something is delivered, so the daemon is not stuck
            given_up.wait()
            for request in held:
                peer.reply(request["id"], POSE[::-1])
            echo(peer)

    daemon = serve(late)

    async def connections(timeout: float) -> int:
        """How many it took: one, if the daemon's thread answered the quick call within the slow one's timeout."""
        before = daemon.connections
        given_up.clear()
        async with AsyncClient(path, timeout=timeout) as client:
            slow = asyncio.create_task(client.fk([1.0]))
            await asyncio.sleep(0)
            client.timeout = PATIENCE
            assert await client.fk([2.0]) == POSE
            with pytest.raises(Timeout):
                await slow
            given_up.set()
            assert x_of(await client.fk([3.0])) == 3.0
        return daemon.connections - before

    assert 1 in (run(connections(timeout)) for timeout in (SHORT, 10 * SHORT, 100 * SHORT))


def answer_one_then_hold(asked: Gate, done: threading.Event) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        peer.reply(request["id"], "pong")
        peer.request()
        asked.event.set()
        done.wait()

    return script


def test_a_stuck_connection_is_given_up(serve: Serve, path: str, run: Run) -> None:
    done = threading.Event()
    daemon = serve(answer_one_then_hold(Gate(), done), echo)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            assert await client.ping() == "pong"
            client.timeout = SHORT
            first = asyncio.create_task(client.fk([1.0]))
            await asyncio.sleep(0)
            client.timeout = PATIENCE
            assert x_of(await client.fk([2.0])) == 2.0  # it lost its connection to the first one's timeout, and retried
            with pytest.raises(Timeout):
                await first
        done.set()

    run(main())
    assert daemon.connections == 2


def test_a_cancelled_call_leaves_the_connection_usable(serve: Serve, path: str, run: Run) -> None:
    asked, cancelled = Gate(), threading.Event()

    def slow(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        asked.event.set()
        cancelled.wait()
        peer.reply(request["id"], POSE[::-1])
        echo(peer)

    daemon = serve(slow)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            task = asyncio.create_task(client.fk([1.0]))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            cancelled.set()
            assert x_of(await client.fk([2.0])) == 2.0

    run(main())
    assert daemon.connections == 1


def test_cancelled_calls_notice_a_stuck_daemon_too(serve: Serve, path: str, run: Run) -> None:
    asked, done = Gate(), threading.Event()
    daemon = serve(answer_one_then_hold(asked, done), echo)

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE) as client:
            assert await client.ping() == "pong"
            client.timeout = SHORT
            task = asyncio.create_task(client.fk([1.0]))
            await asked.wait()
            task.cancel()
            with pytest.raises((asyncio.CancelledError, Timeout)):  # Timeout if the machine is slow
                await task
            client.timeout = PATIENCE
            assert x_of(await client.fk([2.0])) == 2.0
        done.set()

    run(main())
    assert daemon.connections == 2


def test_a_daemon_that_never_accepts(path: str, run: Run) -> None:
    daemon = FakeDaemon(path, backlog=1)
    fillers = fill_backlog(path)

    async def main() -> None:
        async with AsyncClient(path, timeout=SHORT) as client:
            errors = await asyncio.gather(*(client.ping() for _ in range(3)), return_exceptions=True)
            assert [type(e) for e in errors] == [Timeout] * 3
            assert all("took no connection" in str(e) for e in errors)
            waiting = asyncio.create_task(client.ping())
            await asyncio.sleep(0)
            client.timeout = PATIENCE
            asking = asyncio.create_task(client.fk([0.5]))  # has more time than the one whose attempt it joins
            with pytest.raises(Timeout):
                await waiting
            daemon.follow(echo)
            assert x_of(await asking) == 0.5

    run(main())
    for filler in fillers:
        filler.close()
    daemon.stop()


def test_dribbled_bytes_do_not_extend_the_deadline(serve: Serve, path: str, run: Run) -> None:
    gone = threading.Event()

    def dribble(peer: Peer) -> None:
        request = peer.request()
        for byte in line(request["id"], POSE) if request else b"":  # none if the machine is slower than the deadline
            gone.wait(SHORT / 5)
            peer.send(bytes([byte]))

    serve(dribble)

    async def main() -> None:
        async with AsyncClient(path, timeout=SHORT) as client:
            with pytest.raises(Timeout):
                await client.fk([1.0])
        gone.set()

    run(main())


# -- the pinned model, loops, forks, ends -----------------------------------------------------------------------------


def test_every_connection_is_pinned_first(serve: Serve, path: str, run: Run) -> None:
    methods: list[str] = []

    def serving(digest: str, answers: int) -> Callable[[Peer], None]:
        def script(peer: Peer) -> None:
            for _ in range(answers):
                request = peer.request()
                if request is None:
                    return
                methods.append(request["method"])
                if request["method"] == "pin" and request["params"] != [digest]:
                    peer.send(error_line(request["id"], -32012, "another model"))
                else:
                    peer.reply(request["id"], POSE)

        return script

    daemon = serve(serving("a", 3), serving("b", 2), serving("a", 3))

    async def main() -> None:
        async with AsyncClient(path, timeout=PATIENCE, expect_digest="a") as client:
            assert await asyncio.gather(client.fk([0.0]), client.fk([0.0])) == [POSE, POSE]
            errors = await asyncio.gather(client.fk([0.0]), client.fk([0.0]), return_exceptions=True)
            assert [type(e) for e in errors] == [ModelChanged] * 2
            assert await client.fk([0.0]) == POSE
            assert await client.call("pin", ["a"]) == POSE

    run(main())
    assert methods == ["pin", "compute_fk", "compute_fk", "pin", "pin", "compute_fk", "pin"]
    assert daemon.connections == 3


def test_a_refused_pin_ends_its_connection(serve: Serve, path: str, run: Run) -> None:
    ended = Gate()

    def refuse(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        peer.send(error_line(request["id"], -32012, "another model"))
        assert peer.request() is None
        ended.event.set()

    serve(refuse)

    async def main() -> None:
        client = AsyncClient(path, timeout=PATIENCE, expect_digest="a")
        with pytest.raises(ModelChanged):
            await client.fk([0.0])
        await ended.wait()

    run(main())


def test_closing_ends_calls_and_the_client_can_be_used_again(serve: Serve, path: str, run: Run) -> None:
    asked, done = Gate(), threading.Event()

    def hold(peer: Peer) -> None:
        peer.request()
        asked.event.set()
        done.wait()

    daemon = serve(hold, echo)

    async def main() -> None:
        client = AsyncClient(path, timeout=PATIENCE)
        await client.close()
        task = asyncio.create_task(client.fk([1.0]))
        await asked.wait()
        await client.close()
        await client.close()
        with pytest.raises(FkError, match="the client was closed"):
            await task
        done.set()
        assert x_of(await client.fk([2.0])) == 2.0
        task = asyncio.create_task(client.fk([3.0]))
        await client.close()
        assert x_of(await task) == 3.0  # it had not begun
        await client.close()

    run(main())
    assert daemon.connections == 3


def test_closing_while_a_connection_is_opened(path: str, run: Run) -> None:
    daemon = FakeDaemon(path, backlog=1)
    fillers = fill_backlog(path)

    async def main() -> None:
        client = AsyncClient(path, timeout=PATIENCE)
        task = asyncio.create_task(client.ping())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(FkError, match="the client was closed"):
            await task

    run(main())
    for filler in fillers:
        filler.close()
    daemon.stop()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the loops that ended with a connection open
def test_one_client_in_several_loops(serve: Serve, path: str) -> None:
    daemon = serve(echo)
    client = AsyncClient(path, timeout=PATIENCE)
    for factory in (asyncio.new_event_loop, uvloop.new_event_loop, asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            for x in (1.0, 2.0):
                assert x_of(runner.run(client.fk([x]))) == x
    assert daemon.connections == 3
    asyncio.run(client.close())
    gc.collect()


@pytest.mark.filterwarnings("error")
def test_a_closed_client_leaves_nothing_behind(serve: Serve, path: str) -> None:
    serve(echo)
    client = AsyncClient(path, timeout=PATIENCE)
    loop = asyncio.new_event_loop()
    assert x_of(loop.run_until_complete(client.fk([1.0]))) == 1.0
    loop.run_until_complete(client.close())
    loop.close()
    gc.collect()


def test_a_forgotten_client_closes_its_connection(serve: Serve, path: str, run: Run) -> None:
    ended = Gate()

    def note_the_end(peer: Peer) -> None:
        echo(peer)
        ended.event.set()

    serve(note_the_end)

    async def main() -> None:
        client = AsyncClient(path, timeout=PATIENCE)
        await client.fk([1.0])
        del client
        gc.collect()
        await ended.wait()

    run(main())


FORK = """
import asyncio, os, sys
from fkclient import AsyncClient

client = AsyncClient(sys.argv[1], timeout=30)
loop = asyncio.new_event_loop()
assert loop.run_until_complete(client.fk([1.0]))[3] == 1.0
child = os.fork()
if child == 0:
    if sys.argv[2] == "new":
        loop = asyncio.new_event_loop()
    assert loop.run_until_complete(client.fk([2.0]))[3] == 2.0
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert loop.run_until_complete(client.fk([3.0]))[3] == 3.0
loop.run_until_complete(client.close())
"""


@pytest.mark.parametrize("loop", ["new", "inherited"])
def test_a_forked_child_has_a_connection_of_its_own(serve: Serve, path: str, loop: str) -> None:
    asked: list[list[float]] = []

    def script(peer: Peer) -> None:
        mine: list[float] = []
        asked.append(mine)
        while (request := peer.request()) is not None:
            mine.append(request["params"][0])
            peer.reply(request["id"], [*POSE[:3], mine[-1], *POSE[4:]])

    serve(script)
    command = [sys.executable, "-W", "ignore", "-c", FORK, path, loop]
    subprocess.run(command, check=True, timeout=PATIENCE, env={"PYTHONPATH": ":".join(sys.path)})
    assert asked == [[1.0, 3.0], [2.0]]
