"""What systemd hears: one datagram a message, never blocking, never raising."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.notify import Notifier, watchdog_interval


def receiver(address: str) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    found.bind(address)
    found.settimeout(10)
    return found


@pytest.fixture
def manager(short_folder: Path) -> Iterator[tuple[str, socket.socket]]:
    """A stand-in for systemd: the value of NOTIFY_SOCKET, and the socket behind it."""
    with receiver(str(short_folder / "notify")) as found:
        yield str(short_folder / "notify"), found


def test_one_datagram_a_message(manager: tuple[str, socket.socket]) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager[0]})
    notifier.ready("serving arm")
    notifier.alive()
    notifier.stopping()
    received = [manager[1].recv(4096) for _ in range(3)]
    assert received == [b"READY=1\nSTATUS=serving arm", b"WATCHDOG=1", b"STOPPING=1\nSTATUS=stopping"]


def test_reloading_tells_the_time_as_systemd_measures_it(manager: tuple[str, socket.socket]) -> None:
    Notifier({"NOTIFY_SOCKET": manager[0]}).reloading()
    lines = manager[1].recv(4096).decode().split("\n")
    assert lines[0] == "RELOADING=1"
    assert lines[1].partition("=")[0] == "MONOTONIC_USEC"
    assert int(lines[1].partition("=")[2]) > 0


def test_an_abstract_address_starts_with_an_at_sign_in_the_environment() -> None:
    with receiver(f"\0fkd-test-{os.getpid()}/notify") as found:
        Notifier({"NOTIFY_SOCKET": f"@fkd-test-{os.getpid()}/notify"}).ready("x")
        assert found.recv(4096) == b"READY=1\nSTATUS=x"


@pytest.mark.parametrize(
    "address",
    ["", "not/absolute", "vsock:2:1234", "/nowhere/at/all", "@", "@nobody-listens-here", "/" + "x" * 200, "@" + "x" * 107, "/\udcff", " /x"],
)
def test_addresses_that_lead_nowhere_are_survived(address: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})
    notifier.ready("x")
    notifier.alive()
    notifier.stopping()


def test_an_address_of_an_unknown_kind_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    Notifier({"NOTIFY_SOCKET": "vsock:2:1234"})
    assert "vsock:2:1234" in caplog.text
    caplog.clear()
    Notifier({})
    assert caplog.text == ""


def test_a_full_queue_does_not_block(manager: tuple[str, socket.socket]) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager[0]})
    for _ in range(10_000):
        notifier.alive()
    assert manager[1].recv(4096) == b"WATCHDOG=1"


@pytest.mark.parametrize("status", ["plain", "é", "\udcff\ud800", "x" * 1_000_000])
def test_any_status_can_be_sent(manager: tuple[str, socket.socket], status: str) -> None:
    """Names of files need not be UTF-8, and errors may be long; READY=1 must still come."""
    Notifier({"NOTIFY_SOCKET": manager[0]}).ready(status)
    assert manager[1].recv(4096).startswith(b"READY=1\n")


@pytest.mark.parametrize("status", ["two\nlines", "READY=1\nMAINPID=1", "a\rb"])
def test_a_status_stays_one_line(manager: tuple[str, socket.socket], status: str) -> None:
    """Else words from a robot's description could speak to systemd."""
    Notifier({"NOTIFY_SOCKET": manager[0]}).ready(status)
    lines = manager[1].recv(4096).split(b"\n")
    assert len(lines) == 2
    assert lines[1].startswith(b"STATUS=")


@given(st.integers(1, 10**15))
def test_the_sign_of_life_comes_at_half_the_interval(microseconds: int) -> None:
    found = watchdog_interval({"WATCHDOG_USEC": str(microseconds)})
    assert found == pytest.approx(microseconds / 2e6)


@pytest.mark.parametrize("text", ["", "0", "abc", "-5", "1.5", "1e6", "²", " 5", "0x10", "9" * 30, "9" * 5000])
def test_an_interval_that_is_none_means_no_watchdog(text: str) -> None:
    assert watchdog_interval({"WATCHDOG_USEC": text}) is None


def test_the_watchdog_of_another_process_is_not_ours() -> None:
    assert watchdog_interval({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}) is None
    assert watchdog_interval({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "abc"}) is None
    assert watchdog_interval({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid())}) == 0.5


def test_without_a_socket_there_is_no_watchdog() -> None:
    assert Notifier({"WATCHDOG_USEC": "1000000"}).watchdog is None
