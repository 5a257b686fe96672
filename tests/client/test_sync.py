"""The blocking client against daemons that answer well, badly, late or never."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fkclient import (
    BadReply,
    BadValue,
    Client,
    ConnectionLost,
    FkError,
    ModelChanged,
    NoDaemon,
    RpcError,
    Timeout,
)

from .conftest import POSE, FakeDaemon, Peer, echo, error_line, fill_backlog, line

Serve = Callable[..., FakeDaemon]

PATIENCE = 30.0  # seconds; for calls that must be answered, however slow the machine
SHORT = 0.05  # seconds; for calls that cannot be answered


@pytest.fixture
def client(path: str) -> Any:
    with Client(path, timeout=PATIENCE) as client:
        yield client


def shows_x(pose: list[float]) -> float:
    assert len(pose) == 16
    return pose[3]


# -- answers --------------------------------------------------------------------------------------------------------


def test_every_verb_asks_its_method(serve: Serve, client: Client) -> None:
    serve(echo)
    assert shows_x(client.fk([0.5, 1.0])) == 0.5
    assert client.fk(np.array([0.5]))[0, 3] == 0.5
    assert client.decompose([0.5]) == {"method": "decompose", "params": [0.5]}
    assert client.jacobian([0.5], frame="tip")["params"] == {"q": [0.5], "frame": "tip"}
    assert client.ik(POSE, seed=[0.0]) == {"method": "compute_ik", "params": {"pose": POSE, "seed": [0.0]}}
    assert client.dh(convention="standard")["method"] == "dh"
    assert client.model()["method"] == "model"
    assert client.status()["method"] == "status"
    assert "ping" in client.ping()
    assert client.call("stats", {"a": None}) == {"method": "stats", "params": {"a": None}}
    assert client.call("stats")["params"] is None


def test_poses_by_name(serve: Serve, client: Client) -> None:
    def poses(peer: Peer) -> None:
        while (request := peer.request()) is not None:
            many = request["method"] == "compute_fk_batch"
            peer.reply(request["id"], {"poses": {"tool0": [POSE] * 2 if many else POSE}, "asked": request["params"]})

    serve(poses)
    assert client.fk({"elbow": 0.5}, links="tool0") == POSE
    assert client.fk([0.5], stamp=True)["asked"] == {"q": [0.5], "stamp": True}
    assert client.fk_batch([[0.5], [0.25]]) == {"tool0": [POSE, POSE]}
    assert client.fk_batch(np.zeros((2, 1)))["tool0"].shape == (2, 4, 4)


def test_replies_byte_by_byte_and_joined(serve: Serve, client: Client) -> None:
    def cut(peer: Peer) -> None:
        first = peer.request()
        assert first is not None
        for byte in line(first["id"], POSE):
            peer.send(bytes([byte]))
        second = peer.request()
        assert second is not None
        # the answer of a call before, the one awaited, and half of a third, in one piece
        peer.send(line(first["id"], "old") + line(second["id"], POSE[::-1]) + b'{"jsonrpc":"2.0","id":77,')
        third = peer.request()
        assert third is not None
        peer.send(b'"result":1}\n' + line("other", 5) + line(third["id"], POSE))

    daemon = serve(cut)
    assert client.fk([0.0]) == POSE
    assert client.fk([0.0]) == POSE[::-1]
    assert client.fk([0.0]) == POSE
    assert daemon.connections == 1


def test_half_a_reply_too_many_is_not_skipped(serve: Serve, client: Client) -> None:
    def half_more(peer: Peer) -> None:
        first = peer.request()
        assert first is not None
        peer.send(line(first["id"], POSE) + b'{"jsonrpc":"2.0","id":')
        second = peer.request()
        assert second is not None
        peer.send(line(second["id"], POSE[::-1]))

    serve(half_more)
    assert client.fk([0.0]) == POSE
    with pytest.raises(BadReply):  # the rest of that line looks like the answer, but is none
        client.fk([0.0])


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1, 3_000_000])
def test_large_messages_both_ways(serve: Serve, client: Client, size: int) -> None:
    serve(echo)
    text = "x" * size
    assert client.call("echo", [text])["params"] == [text]
    assert shows_x(client.fk([0.5])) == 0.5


def test_the_reply_limit(serve: Serve, path: str) -> None:
    daemon = serve(echo)
    with Client(path, timeout=PATIENCE, max_reply=1000) as client:
        with pytest.raises(BadReply, match="more than 1000 bytes"):
            client.call("echo", ["x" * 100_000])
        assert shows_x(client.fk([0.5])) == 0.5
    assert daemon.connections == 2


def test_errors_of_the_daemon_keep_the_connection(serve: Serve, client: Client) -> None:
    data = {"reason": "unknown-name", "did_you_mean": "elbow"}

    def refuse(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        peer.send(error_line(request["id"], -32001, "no joint `elbo`", data))
        echo(peer)

    daemon = serve(refuse)
    with pytest.raises(RpcError) as caught:
        client.fk({"elbo": 0.5})
    assert (caught.value.code, caught.value.reason, caught.value.data) == (-32001, "unknown-name", data)
    assert shows_x(client.fk([0.5])) == 0.5
    assert daemon.connections == 1


def test_what_must_not_be_sent_is_not(serve: Serve, client: Client) -> None:
    daemon = serve(echo)
    for bad in ([float("nan")], [True], ["0"], {"a": float("inf")}):
        with pytest.raises(BadValue):
            client.fk(bad)
    assert daemon.connections == 0


# -- ids --------------------------------------------------------------------------------------------------------------


def test_ids_are_never_used_twice(serve: Serve, client: Client) -> None:
    seen = []

    def note(peer: Peer) -> None:
        for _ in range(3):
            request = peer.request()
            assert request is not None
            seen.append(request["id"])
            peer.reply(request["id"], None)

    serve(note)
    for _ in range(9):
        client.call("x")
    assert len(seen) == len(set(seen)) == 9


def test_foreign_ids_are_ignored(serve: Serve, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def babble(peer: Peer) -> None:
        while (request := peer.request()) is not None:
            for ident in (request["id"] - 1, request["id"] + 1, str(request["id"]), "", 0):
                peer.reply(ident, ["not", "this"])
                peer.send(error_line(ident, -32603, "nor this"))
            peer.reply(request["id"], POSE)

    daemon = serve(babble)
    assert client.fk([0.0]) == POSE
    assert "id '1'" in caplog.text
    client.close()
    assert client.fk([0.0]) == POSE
    assert daemon.connections == 2


def test_an_error_for_nobody_fails_the_call_and_the_connection(serve: Serve, client: Client) -> None:
    def complain(peer: Peer) -> None:
        peer.request()
        peer.send(error_line(None, -32700, "not JSON", {"reason": "parse-error"}))
        peer.request()

    daemon = serve(complain, echo)
    with pytest.raises(RpcError, match="not JSON") as caught:
        client.fk([0.5])
    assert caught.value.code == -32700
    assert shows_x(client.fk([0.5])) == 0.5
    assert daemon.connections == 2


def test_an_error_said_before_the_request_was_read(serve: Serve, client: Client) -> None:
    def full(peer: Peer) -> None:
        peer.send(error_line(None, -32030, "too many connections", {"reason": "overloaded"}))

    serve(full)
    with pytest.raises(RpcError, match="too many connections"):
        client.call("echo", ["x" * 3_000_000])  # long enough that the end comes while it is sent


@pytest.mark.parametrize(
    "bad", [b"nonsense\n", b"[]\n", b"\n", b"\xff\n", line(None, POSE), b'{"jsonrpc":"2.0","id":1}\n', line(1, POSE[:15])]
)
def test_bad_replies(serve: Serve, client: Client, bad: bytes) -> None:
    def babble(peer: Peer) -> None:
        peer.request()
        peer.send(bad)
        echo(peer)

    serve(babble, echo)
    with pytest.raises(BadReply):
        client.fk([0.5])
    assert shows_x(client.fk([0.5])) == 0.5


# -- deadlines --------------------------------------------------------------------------------------------------------


def test_a_late_reply_is_not_taken_for_the_next(serve: Serve, client: Client) -> None:
    given_up, sent = threading.Event(), threading.Event()

    def late(peer: Peer) -> None:
        request = peer.request()
        given_up.wait()
        try:
            if request:  # none if the machine is slower than the deadline
                peer.reply(request["id"], POSE)
        finally:
            sent.set()

    daemon = serve(late, echo)
    client.timeout = SHORT
    with pytest.raises(Timeout, match="no reply") as caught:
        client.fk([1.0])
    assert isinstance(caught.value, TimeoutError)
    given_up.set()
    sent.wait()
    client.timeout = PATIENCE
    assert shows_x(client.fk([2.0])) == 2.0
    assert daemon.connections == 2


def test_dribbled_bytes_do_not_extend_the_deadline(serve: Serve, client: Client) -> None:
    gone = threading.Event()

    def dribble(peer: Peer) -> None:
        request = peer.request()
        for byte in line(request["id"], POSE) if request else b"":  # none if the machine is slower than the deadline
            gone.wait(SHORT / 5)  # the whole takes several times the deadline, no gap a quarter of it
            peer.send(bytes([byte]))

    serve(dribble)
    client.timeout = SHORT
    with pytest.raises(Timeout):
        client.fk([1.0])
    gone.set()


def test_a_daemon_that_never_accepts(path: str) -> None:
    daemon = FakeDaemon(path, backlog=1)
    said = []
    for _ in range(4):  # the first ones wait in the backlog, where they stay when they have given up; then it is full
        with pytest.raises(Timeout) as caught:
            Client(path, timeout=SHORT).ping()
        said.append("took no connection" in str(caught.value))
    assert said == sorted(said)
    assert {*said} == {False, True}
    daemon.stop()


def test_a_full_backlog_that_empties_in_time(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = FakeDaemon(path, backlog=1)
    fillers = fill_backlog(path)
    paused: list[float] = []

    def pause(seconds: float) -> None:
        if not paused:
            daemon.follow(echo)
        paused.append(seconds)

    monkeypatch.setattr("fkclient.sync.sleep", pause)
    with Client(path, timeout=PATIENCE) as client:
        assert shows_x(client.fk([0.5])) == 0.5
    assert paused[0] > 0
    assert daemon.connections == len(fillers) + 1
    for filler in fillers:
        filler.close()
    daemon.stop()


def test_a_daemon_that_never_reads(serve: Serve, client: Client) -> None:
    done = threading.Event()
    serve(lambda peer: bool(done.wait()))
    client.timeout = SHORT
    with pytest.raises(Timeout, match="did not read the request"):
        client.call("echo", ["x" * 5_000_000])
    done.set()


def test_signals_neither_break_a_call_nor_extend_it(serve: Serve, client: Client) -> None:
    rings = []
    done = threading.Event()

    def slow(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        while len(rings) < 3:
            done.wait(SHORT / 10)
        peer.reply(request["id"], POSE)
        peer.request()
        done.wait()

    serve(slow)
    before = signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, SHORT / 10, SHORT / 10)
        assert client.fk([0.0]) == POSE
        client.timeout = SHORT
        with pytest.raises(Timeout):
            client.fk([0.0])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        done.set()


def test_an_interrupted_call_drops_its_connection(serve: Serve, client: Client) -> None:
    class Interrupt(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupt

    def signal_then_answer(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        peer.request()  # waits for the end of the connection
        peer.reply(request["id"], POSE)

    daemon = serve(signal_then_answer, echo)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(Interrupt):
            client.fk([1.0])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert shows_x(client.fk([2.0])) == 2.0
    assert daemon.connections == 2


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), None, True, "1", 1e9])
def test_timeouts_that_are_none(path: str, timeout: Any) -> None:
    with pytest.raises(BadValue, match="timeout is"):
        Client(path, timeout=timeout)


# -- losses -----------------------------------------------------------------------------------------------------------


def read_then_close(peer: Peer) -> None:
    peer.request()


def answer_half(peer: Peer) -> None:
    request = peer.request()
    assert request is not None
    peer.send(line(request["id"], POSE)[:50])


def close_unread(peer: Peer) -> None:
    """With the request unread, the client gets ECONNRESET; with it unsent, EPIPE."""


@pytest.mark.parametrize("loss", [read_then_close, answer_half, close_unread])
def test_one_retry_after_a_loss(serve: Serve, client: Client, loss: Callable[[Peer], None]) -> None:
    daemon = serve(loss, echo)
    assert shows_x(client.fk([0.5])) == 0.5
    assert daemon.connections == 2


@pytest.mark.parametrize("loss", [read_then_close, answer_half, close_unread])
def test_no_second_retry(serve: Serve, client: Client, loss: Callable[[Peer], None]) -> None:
    daemon = serve(loss, loss, echo)
    with pytest.raises(ConnectionLost) as caught:
        client.fk([0.5])
    assert isinstance(caught.value, ConnectionError)
    assert daemon.connections == 2
    assert shows_x(client.fk([0.5])) == 0.5


def test_the_retry_keeps_the_deadline(serve: Serve, client: Client) -> None:
    closed, asked, done = threading.Event(), threading.Event(), threading.Event()

    def answer_then_close(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        peer.reply(request["id"], POSE)
        peer.end()
        closed.set()

    def hold(peer: Peer) -> None:
        peer.request()
        asked.set()
        done.wait()

    serve(answer_then_close, hold)
    assert client.fk([0.5]) == POSE
    closed.wait()
    client.timeout = 10 * SHORT  # time enough to connect and ask
    with pytest.raises(Timeout):
        client.fk([0.5])
    assert asked.wait(PATIENCE)
    done.set()


def test_the_end_of_a_long_request_is_a_loss_too(serve: Serve, client: Client) -> None:
    daemon = serve(close_unread, echo)
    text = "x" * 3_000_000
    assert client.call("echo", [text])["params"] == [text]
    assert daemon.connections == 2


def test_a_daemon_restarted_between_calls(serve: Serve, client: Client) -> None:
    first = serve(echo)
    assert shows_x(client.fk([0.5])) == 0.5
    first.stop()
    second = serve(echo)
    assert shows_x(client.fk([0.25])) == 0.25
    assert (first.connections, second.connections) == (1, 1)
    second.stop()
    with pytest.raises(NoDaemon):
        client.fk([0.5])


def test_no_daemon(client: Client, path: str) -> None:
    with pytest.raises(NoDaemon, match="no such socket") as caught:
        client.ping()
    assert path in str(caught.value)
    assert isinstance(caught.value, FkError)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(path)
    with pytest.raises(NoDaemon, match="no daemon listens there"):
        client.ping()
    os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(path)
        with pytest.raises(NoDaemon, match="another type"):
            client.ping()
    with pytest.raises(NoDaemon, match="too long"):
        Client("/tmp/" + "x" * 200).ping()


# -- the pinned model -------------------------------------------------------------------------------------------------

DIGEST = "ab" * 32


def serving(digest: str, answers: int = 1 << 30) -> Callable[[Peer], None]:
    """Serves a model with this digest; fails the test at a call on a connection that was not pinned to it."""

    def script(peer: Peer) -> None:
        pinned = None
        for _ in range(answers):
            request = peer.request()
            if request is None:
                return
            if request["method"] == "pin":
                pinned = request["params"][0]
                if pinned != digest:
                    peer.send(error_line(request["id"], -32012, "another model", {"reason": "model-changed"}))
                    continue
                peer.reply(request["id"], {"digest": digest})
            else:
                assert pinned == digest, request
                peer.reply(request["id"], POSE)

    return script


def test_every_connection_is_pinned_first(serve: Serve, path: str) -> None:
    daemon = serve(serving(DIGEST, answers=2), serving(DIGEST))
    with Client(path, timeout=PATIENCE, expect_digest=DIGEST) as client:
        for _ in range(3):
            assert client.fk([0.0]) == POSE
    assert daemon.connections == 2


def test_a_reconnect_to_another_model_is_not_silent(serve: Serve, path: str) -> None:
    daemon = serve(serving(DIGEST, answers=2), serving("cd" * 32), serving(DIGEST))
    with Client(path, timeout=PATIENCE, expect_digest=DIGEST) as client:
        assert client.fk([0.0]) == POSE
        with pytest.raises(ModelChanged) as caught:
            client.fk([0.0])
        assert caught.value.code == -32012
        assert client.fk([0.0]) == POSE
    assert daemon.connections == 3


def test_a_loss_during_the_pin_is_retried_once(serve: Serve, path: str) -> None:
    with Client(path, timeout=PATIENCE, expect_digest=DIGEST) as client:
        first = serve(read_then_close, serving(DIGEST))
        assert client.fk([0.0]) == POSE
        first.stop()
        serve(read_then_close, read_then_close, serving(DIGEST))
        client.close()
        with pytest.raises(ConnectionLost):
            client.fk([0.0])


def test_a_pin_by_hand_outlives_its_connection(serve: Serve, client: Client) -> None:
    serve(serving(DIGEST, answers=3), serving("cd" * 32))
    assert client.call("pin", [DIGEST]) == {"digest": DIGEST}
    assert client.fk([0.0]) == POSE
    with pytest.raises(ModelChanged):
        client.fk([0.0])
    # The daemon serves another model for good: pin that one. The last digest named is the one that counts.
    assert client.call("pin", ["cd" * 32]) == {"digest": "cd" * 32}
    assert client.fk([0.0]) == POSE


# -- threads, forks, ends -----------------------------------------------------------------------------------------------


def test_threads_share_a_client(serve: Serve, client: Client) -> None:
    daemon = serve(echo)
    wrong: list[float] = []

    def ask(me: int) -> None:
        for i in range(100):
            x = me * 1000.0 + i
            if client.fk([x])[3] != x:
                wrong.append(x)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert daemon.connections == 1


def test_waiting_for_another_thread_counts(serve: Serve, path: str) -> None:
    asked, done = threading.Event(), threading.Event()

    def hold(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        asked.set()
        done.wait()
        peer.reply(request["id"], POSE)

    serve(hold)
    client = Client(path, timeout=PATIENCE)
    answers: list[Any] = []
    other = threading.Thread(target=lambda: answers.append(client.fk([0.0])))
    other.start()
    asked.wait()
    client.timeout = SHORT
    with pytest.raises(Timeout, match="another call"):
        client.fk([0.0])
    with pytest.raises(Timeout, match="another call"):
        client.close()
    done.set()
    other.join()
    assert answers == [POSE]
    client.timeout = PATIENCE
    client.close()


FORK = """
import os, sys, threading
from fkclient import Client

client = Client(sys.argv[1], timeout=30)
assert client.fk([1.0])[3] == 1.0
if sys.argv[2] == "held":  # another thread of the parent is in a call, and holds the lock, when it forks
    asking = threading.Thread(target=client.call, args=("hold",))
    asking.start()
    while not client._lock.locked():
        pass
child = os.fork()
if child == 0:
    assert client.fk([2.0])[3] == 2.0
    client.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
if sys.argv[2] == "held":
    assert Client(sys.argv[1], timeout=30).call("release")["method"] == "release"
    asking.join()
assert client.fk([3.0])[3] == 3.0
"""


@pytest.mark.parametrize("lock", ["free", "held"])
def test_a_forked_child_has_a_connection_of_its_own(serve: Serve, path: str, lock: str) -> None:
    released = threading.Event()
    asked: list[list[str]] = []

    def script(peer: Peer) -> None:
        mine: list[str] = []
        asked.append(mine)
        while (request := peer.request()) is not None:
            mine.append(request["method"])
            if request["method"] == "hold":
                released.wait()
            if request["method"] == "release":
                released.set()
            x = request["params"][0] if request["method"] == "compute_fk" else 0.0
            peer.reply(request["id"], [*POSE[:3], x, *POSE[4:]] if "params" in request else {"method": request["method"]})

    serve(script)
    command = [sys.executable, "-W", "ignore", "-c", FORK, path, lock]
    subprocess.run(command, check=True, timeout=PATIENCE, env={"PYTHONPATH": ":".join(sys.path)})
    parent = ["compute_fk", "hold", "compute_fk"] if lock == "held" else ["compute_fk", "compute_fk"]
    assert asked[:2] == [parent, ["compute_fk"]]


@pytest.mark.filterwarnings("error")
def test_closing_twice_using_again_and_forgetting(serve: Serve, path: str) -> None:
    daemon = serve(echo)
    client = Client(path, timeout=PATIENCE)
    client.close()
    assert shows_x(client.fk([0.5])) == 0.5
    client.close()
    client.close()
    assert shows_x(client.fk([0.5])) == 0.5
    assert daemon.connections == 2
    del client
    gc.collect()
    with pytest.raises(BadValue):
        Client(path, timeout=-1)
    gc.collect()
