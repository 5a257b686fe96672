"""Logs: one line an event with the journal's levels where it reads, and never at the service's expense."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fkd.log import BURST, SECONDS, Moderation, StderrHandler, is_journal, severity

HOME = [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1]  # wire_arm at q = 0


class Pipe:
    """A log that ends in a pipe."""

    def __init__(self, *, journal: bool) -> None:
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)
        self.log = logging.Logger("fkd")
        self.log.addHandler(StderrHandler(self.sink, journal=journal))

    def read(self) -> str:
        try:
            return os.read(self.source, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        os.close(self.source)
        os.close(self.sink)


@pytest.fixture
def plain() -> Iterator[Pipe]:
    pipe = Pipe(journal=False)
    yield pipe
    pipe.close()


@pytest.fixture
def journal() -> Iterator[Pipe]:
    pipe = Pipe(journal=True)
    yield pipe
    pipe.close()


def test_an_event_is_one_line_and_says_who_speaks(plain: Pipe) -> None:
    plain.log.info("serving %s", "ur5")
    assert plain.read() == "fkd: serving ur5\n"


def test_the_journal_is_told_the_level_of_every_line(journal: Pipe) -> None:
    journal.log.info("serving")
    journal.log.error("two\nlines")
    assert journal.read() == "<6>serving\n<3>two\n<3>lines\n"


@pytest.mark.parametrize(("level", "expected"), [("DEBUG", 7), ("INFO", 6), ("WARNING", 4), ("ERROR", 3), ("CRITICAL", 2)])
def test_severities_are_those_of_syslog(level: str, expected: int) -> None:
    assert severity(getattr(logging, level)) == expected


def test_a_traceback_is_logged_line_by_line(journal: Pipe) -> None:
    try:
        raise RuntimeError("out of\norder")
    except RuntimeError:
        journal.log.exception("internal error")
    lines = journal.read().splitlines()
    assert all(line.startswith("<3>") for line in lines)
    assert lines[0] == "<3>internal error"
    assert lines[-2:] == ["<3>RuntimeError: out of", "<3>order"]


def test_control_characters_and_what_is_no_text_are_written_out(plain: Pipe) -> None:
    plain.log.info("a\rb\x1b[31m\x00\x9b\ud800\tc")
    assert plain.read() == "fkd: a\\x0db\\x1b[31m\\x00\\x9b\\ud800\tc\n"


def test_a_very_long_line_is_cut(plain: Pipe) -> None:
    plain.log.info("x" * 100_000)
    text = plain.read()
    assert len(text) <= 4096
    assert text.endswith("x\n")


def test_a_reader_that_is_stuck_is_not_waited_for_and_is_told_what_it_missed(plain: Pipe) -> None:
    fcntl.fcntl(plain.sink, fcntl.F_SETPIPE_SZ, 4 * 4096)
    for i in range(1000):
        plain.log.info("%d %s", i, "x" * 1000)  # would block for ever
    kept = plain.read().splitlines()
    assert 1 <= len(kept) < 1000
    plain.log.info("here again")
    assert plain.read() == f"fkd: {1000 - len(kept)} messages could not be written here\nfkd: here again\n"
    plain.log.info("and well")
    assert plain.read() == "fkd: and well\n"


@pytest.mark.parametrize("end", ["no reader", "closed", "full"])
def test_no_failure_to_write_is_an_error(end: str) -> None:
    if end == "full":
        fd = os.open("/dev/full", os.O_WRONLY)
    else:
        source, fd = os.pipe()
        os.close(source)
    handler = StderrHandler(fd, journal=False)
    if end == "closed":
        os.close(fd)
    log = logging.Logger("fkd")
    log.addHandler(handler)
    log.error("nobody hears this")
    if end != "closed":
        os.close(fd)


def test_the_journal_is_recognised_by_device_and_inode(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        found = os.fstat(file.fileno())
        assert is_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}, file.fileno())
        assert not is_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino + 1}"}, file.fileno())
        assert not is_journal({}, file.fileno())
        fd = file.fileno()
    assert not is_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}, fd)


def test_what_clients_provoke_is_moderated_and_counted(plain: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1e6
    monkeypatch.setattr("fkd.log.time.monotonic", lambda: now)
    plain.log.handlers[0].addFilter(Moderation())

    def provoke() -> None:
        plain.log.warning("dropped %s", "a client")

    for _ in range(BURST + 7):
        provoke()
    plain.log.warning("another place speaks for itself")
    lines = plain.read().splitlines()
    assert lines == ["fkd: dropped a client"] * BURST + ["fkd: another place speaks for itself"]
    now += SECONDS + 1
    provoke()
    provoke()
    assert plain.read().splitlines() == ["fkd: dropped a client (and 7 more like it before)", "fkd: dropped a client"]


def test_what_an_operator_does_is_logged_every_time(plain: Pipe) -> None:
    plain.log.handlers[0].addFilter(Moderation())
    for _ in range(BURST * 3):
        plain.log.info("reloaded")
    assert len(plain.read().splitlines()) == BURST * 3


# The daemon itself, as a process


def start(daemons: Any, stderr: Any, *words: str, **environ: str) -> Any:
    """A daemon whose stderr is `stderr`."""
    daemon = daemons.new()
    command = [sys.executable, "-m", "fkd", "--socket", daemon.path, *words]
    daemon.process = subprocess.Popen(command, env=daemons.environ(NOTIFY_SOCKET=daemon.notify_path, **environ), stderr=stderr)
    return daemon


def test_levels_reach_the_journal(daemons: Any, robots: Path) -> None:
    source, sink = os.pipe()
    found = os.fstat(sink)
    daemon = start(daemons, sink, str(robots / "wire_arm.urdf"), JOURNAL_STREAM=f"{found.st_dev}:{found.st_ino}")
    os.close(sink)
    daemon.wait_ready()
    for _ in range(10):
        daemon.ask("compute_fk", [0] * 6)
        daemon.ask("compute_fk", "no such q")
    assert daemon.stop() == 0
    with open(source) as log:
        said = log.read().splitlines()
    assert [line.split()[0] for line in said] == ["<6>serving", "<6>stopping"]  # and nothing for a request


@pytest.mark.parametrize("stderr", ["full", "no reader", "closed"])
def test_a_log_that_cannot_be_written_hurts_nobody(daemons: Any, robots: Path, stderr: str) -> None:
    words = [str(robots / "wire_arm.urdf")]
    if stderr == "full":
        with open("/dev/full", "w") as full:
            daemon = start(daemons, full, *words)
    elif stderr == "no reader":
        source, sink = os.pipe()
        os.close(source)
        daemon = start(daemons, sink, *words)
        os.close(sink)
    else:
        daemon = daemons.new()
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "fkd", "--socket", daemon.path, *words]
        daemon.start(command, daemons.environ(NOTIFY_SOCKET=daemon.notify_path))
    daemon.wait_ready()
    assert daemon.ask("compute_fk", [0] * 6)["result"] == HOME
    for _ in range(2):
        assert "result" in daemon.ask("reload")  # logs from another task than the requests'
    assert daemon.ask("compute_fk", [0] * 6)["result"] == HOME
    assert daemon.stop() == 0


def test_a_refusal_that_cannot_be_written_has_its_exit_status(daemons: Any) -> None:
    with open("/dev/full", "w") as full:
        for words, status in ((["/nowhere/arm.zip"], 1), (["--dof", "x", "arm.zip"], 2), (["--no-such"], 2)):
            assert start(daemons, full, *words).ended() == status, words


def test_a_daemon_that_the_watchdog_ends_says_where_it_was(daemons: Any) -> None:
    daemon = daemons("wire_arm.urdf")
    daemon.process.send_signal(signal.SIGABRT)
    assert daemon.ended() == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in daemon.stderr
    assert "in serve" in daemon.stderr or "in main" in daemon.stderr


def test_a_disk_is_really_full_on_dev_full() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)), open("/dev/full", "wb", buffering=0) as full:
        full.write(b"x")
