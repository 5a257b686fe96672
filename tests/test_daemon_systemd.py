"""The daemon under systemd: sockets that are passed in, readiness, signs of life."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ZEROS = [0] * 6
HOME = [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1]  # wire_arm at q = 0
BOUND = 5.0  # seconds: the design's bound on a shutdown

# Runs fkd with a descriptor at 3 and LISTEN_PID set to the process's own id, as systemd does between fork and exec.
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES="fkd.socket")
os.execv(sys.executable, [sys.executable, "-m", "fkd", *sys.argv[2:]])
"""


def serves(daemon: Any) -> bool:
    return bool(daemon.ask("compute_fk", [0] * 6)["result"] == [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1])


def ping(ident: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"ping","id":%d}\n' % ident


def activated(daemons: Any, listening: socket.socket, **environ: str) -> Any:
    """A daemon that is handed `listening`."""
    daemon = daemons.new()
    arm = Path(__file__).parent / "robots" / "wire_arm.urdf"
    command = [sys.executable, "-c", ACTIVATE, str(listening.fileno()), "--socket", "/nowhere/fkd.sock", str(arm)]
    daemon.start(command, daemons.environ(NOTIFY_SOCKET=daemon.notify_path, **environ), pass_fds=(listening.fileno(),))
    daemon.wait_ready()
    return daemon


def test_an_inherited_socket_is_served_never_unlinked_and_serves_again(daemons: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(daemons.folder / "fkd.sock"))
        listening.listen()
        inode = os.stat(daemons.folder / "fkd.sock").st_ino
        for _ in range(2):
            daemon = activated(daemons, listening)
            assert serves(daemon)
            assert daemon.stop() == 0
            assert os.stat(daemon.path).st_ino == inode
        waiting = daemon.connect()  # between two runs, callers wait in the backlog
        waiting.send(ping(9))
        daemon = activated(daemons, listening)
        assert waiting.reply()["id"] == 9
        daemon.process.kill()
        daemon.ended()
        assert serves(activated(daemons, listening))


def test_an_inherited_abstract_socket_is_served(daemons: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(f"\0{daemons.folder}/fkd.sock")
        listening.listen()
        daemon = activated(daemons, listening)
        daemon.path = f"\0{daemons.folder}/fkd.sock"
        assert serves(daemon)
        assert f"on @{daemons.folder}/fkd.sock" in daemon.stderr
        assert daemon.stop() == 0


def test_a_socket_meant_for_another_process_is_ignored(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf", LISTEN_FDS="1", LISTEN_PID="1")
    assert serves(daemon)


def test_a_passed_descriptor_that_is_no_socket_is_a_clear_error(daemons: Any) -> None:
    daemon = daemons.new()
    arm = Path(__file__).parent / "robots" / "wire_arm.urdf"
    with open(os.devnull) as null:
        command = [sys.executable, "-c", ACTIVATE, str(null.fileno()), str(arm)]
        daemon.start(command, daemons.environ(NOTIFY_SOCKET=daemon.notify_path), pass_fds=(null.fileno(),))
    assert daemon.ended() == 1
    assert "file descriptor 3 from systemd" in daemon.stderr


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="systemd-socket-activate is not installed")
def test_systemd_itself_can_activate_it(daemons: Any) -> None:
    daemon = daemons.new()
    arm = Path(__file__).parent / "robots" / "wire_arm.urdf"
    # It listens, waits for a connection, then becomes fkd; only what is named is passed on.
    environ = daemons.environ(NOTIFY_SOCKET=daemon.notify_path, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    command = ["systemd-socket-activate", "-l", daemon.path, "-E", "NOTIFY_SOCKET", "-E", "PYTHONPATH", sys.executable, "-m", "fkd", str(arm)]
    daemon.start(command, environ)
    deadline = time.monotonic() + 10
    while not os.path.exists(daemon.path):  # it has no other way to say that it listens
        assert daemon.process.poll() is None, daemon.stderr
        assert time.monotonic() < deadline
    client = None
    while client is None:
        with contextlib.suppress(ConnectionRefusedError):  # bound, but not yet listening
            client = daemon.connect()
    assert client.ask("compute_fk", ZEROS)["result"] == HOME
    daemon.wait_ready()
    assert daemon.stop() == 0
    assert os.path.exists(daemon.path)


def test_ready_reaches_an_abstract_address(daemons: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"fkd-test-{os.getpid()}/notify"
        manager.bind(f"\0{name}")
        manager.settimeout(30)
        daemon = daemons("wire_slides.urdf", ready=False, NOTIFY_SOCKET=f"@{name}")
        assert manager.recv(4096).startswith(b"READY=1\n")
        assert daemon.stop() == 0
        assert manager.recv(4096).startswith(b"STOPPING=1\n")


def test_an_address_that_leads_nowhere_does_not_keep_it_from_serving(daemons: Any) -> None:
    """Ready is then seen as any client would see it: the connection is taken."""
    daemon = daemons("wire_arm.urdf", ready=False, NOTIFY_SOCKET="vsock:2:1234", WATCHDOG_USEC="1000000")
    deadline = time.monotonic() + 30
    while True:
        assert daemon.process.poll() is None, daemon.stderr
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            assert serves(daemon)
            break
        assert time.monotonic() < deadline
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.stderr


def test_the_watchdog_is_told_in_time_even_while_stopping(daemons: Any) -> None:
    """200 ms: a sign of life within 100 ms; seen over ten of them."""
    daemon = daemons("wire_arm.urdf", WATCHDOG_USEC="200000", FKD_DRAIN_SECONDS="0.5")
    times = []
    while len(times) < 10:
        if "WATCHDOG=1" in daemon.notice():
            times.append(time.monotonic())
    gaps = sorted(b - a for a, b in pairwise(times))
    assert gaps[len(gaps) // 4] < 0.1, gaps  # not the slowest: the machine may be busy with other things
    half = daemon.connect()
    half.send(ping(1) + b"{")
    half.line()
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.ended(BOUND) == 0
    told = daemon.notices_left()
    assert told.count("WATCHDOG=1") - told[: told.index("STOPPING=1")].count("WATCHDOG=1") >= 2
    assert "READY=1" not in told


@pytest.mark.parametrize("environ", [{"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "abc"}])
def test_no_watchdog_where_none_is_asked_of_this_process(daemons: Any, environ: dict[str, str]) -> None:
    daemon = daemons("wire_arm.urdf", FKD_DRAIN_SECONDS="0.2", **environ)
    half = daemon.connect()  # keeps the daemon for 200 ms, the time of two signs of life
    half.send(ping(1) + b"{")
    half.line()
    assert daemon.stop() == 0
    assert "WATCHDOG=1" not in daemon.notices_left()


def test_the_longest_watchdog_interval_is_survived(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf", WATCHDOG_USEC=str(10**18))
    assert daemon.notice() == ["WATCHDOG=1"]
    assert serves(daemon)
    assert daemon.stop() == 0
