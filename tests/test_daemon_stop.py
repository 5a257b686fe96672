"""The daemon's end: every way to stop it ends with status 0, in time, with every request answered."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

BOUND = 5.0  # seconds: the design's bound on a shutdown


def ping(ident: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"ping","id":%d}\n' % ident


def ids(replies: bytes) -> list[int]:
    return [json.loads(line)["id"] for line in replies.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_without_clients(daemons: Any, number: int) -> None:
    daemon = daemons("wire_slides.urdf")
    daemon.process.send_signal(number)
    assert daemon.ended(BOUND) == 0
    assert not os.path.exists(daemon.path)
    assert not os.path.exists(daemon.path + ".lock")
    assert "STOPPING=1" in daemon.notices_left()
    assert "Traceback" not in daemon.stderr


def test_stop_with_idle_and_waiting_clients_answers_what_was_asked(daemons: Any) -> None:
    """Three clients who say nothing, one who has just asked, one in the middle of a message that comes to its end."""
    daemon = daemons()
    idle = [daemon.connect() for _ in range(3)]
    assert idle[0].ask("ping")["result"] == "pong"
    half = daemon.connect()
    half.send(ping(0) + ping(7)[:-10])
    assert json.loads(half.line())["id"] == 0  # so the half message has been read too
    asked = daemon.connect()
    assert asked.ask("ping")["result"] == "pong"
    asked.send(ping(8))
    daemon.process.send_signal(signal.SIGTERM)
    assert ids(asked.rest()) == [8]
    assert daemon.notice()[0] == "STOPPING=1"
    half.send(ping(7)[-10:])
    assert ids(half.rest()) == [7]
    assert [c.rest() for c in idle] == [b""] * 3
    assert daemon.ended(BOUND) == 0
    assert not os.path.exists(daemon.path)
    assert "cut off" not in daemon.stderr


def test_stop_answers_all_that_a_pipelining_client_has_sent(daemons: Any) -> None:
    daemon = daemons()
    client = daemon.connect()
    assert client.ask("ping")["result"] == "pong"
    count = 1500  # some 60 kB: more than one turn of the loop, less than the sockets hold
    client.send(b"".join(ping(k) for k in range(count)))
    daemon.process.send_signal(signal.SIGTERM)
    assert ids(client.rest()) == list(range(count))
    assert daemon.ended(BOUND) == 0


def test_stop_with_a_half_message_that_never_ends_and_a_client_that_never_reads(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf", FKD_DRAIN_SECONDS="0.3")
    half = daemon.connect()
    half.send(ping(1) + b'{"jsonrpc')
    assert json.loads(half.line())["id"] == 1
    deaf = daemon.connect()
    deaf.socket.setblocking(False)
    question = b'{"jsonrpc":"2.0","method":"model","id":1}\n' * 1000
    with contextlib.suppress(BlockingIOError):
        while True:
            deaf.socket.send(question)
    assert daemon.stop(BOUND) == 0
    assert "STOPPING=1" in daemon.notices_left()
    assert not os.path.exists(daemon.path)
    assert "Traceback" not in daemon.stderr


def test_stop_while_clients_keep_asking(daemons: Any) -> None:
    daemon = daemons()
    busy = daemon.connect()
    batch = b"".join(b'{"jsonrpc":"2.0","method":"compute_fk","params":[0,0,0,0,0,0],"id":%d}\n' % k for k in range(100))
    for _ in range(3):
        busy.send(batch)
        busy.lines(100)
    busy.send(batch)
    daemon.process.send_signal(signal.SIGTERM)
    assert ids(busy.rest())[:100] == list(range(100))
    assert daemon.ended(BOUND) == 0


def test_a_second_signal_while_stopping_does_no_harm(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf", FKD_DRAIN_SECONDS="0.5")
    half = daemon.connect()
    half.send(ping(1) + b"{")
    half.line()
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.notice()[0] == "STOPPING=1"
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.ended(BOUND) == 0


def test_a_path_that_was_replaced_is_left_to_its_new_owner(daemons: Any) -> None:
    daemon = daemons("wire_slides.urdf")
    os.unlink(daemon.path)
    Path(daemon.path).write_text("someone else's")
    assert daemon.stop() == 0
    assert Path(daemon.path).read_text() == "someone else's"
