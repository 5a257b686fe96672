"""fkctl top: what an interval's differences are, line by line into a pipe, and drawn on a real terminal (a pty)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.ctl import top as module
from fkd.ctl.latencies import histogram
from fkd.ctl.main import main
from fkd.ctl.screen import END_OF_LINE, END_OF_SCREEN, ENTER, HOME, LEAVE
from fkd.ctl.top import Look, frame, interval
from fkd.metrics import Meter

ZEROS = [0] * 6
PATIENCE = 30.0


# -- differences -------------------------------------------------------------------------------------------------------


def look(uptime: float, started: float = 1.0, **meters: Meter) -> Look:
    methods = {name: meter.report() for name, meter in meters.items()}
    stats = {"started_unix_time": started, "uptime_s": uptime, "generation": 1, "digest": "d" * 64, "methods": methods, "requests": 0,
             "connections": {"open": 1, "accepted": 1, "refused": 0, "dropped": 0}, "reloads": []}  # fmt: skip
    return Look(b"", stats, {name: histogram(m) for name, m in methods.items()})


def metered(sample: list[int], errors: int = 0) -> Meter:
    meter = Meter()
    for ns in sample:
        meter.took(ns)
    for _ in range(errors):
        meter.failed(-32602)
    return meter


samples = st.lists(st.integers(512, 10**10), min_size=1, max_size=30)


@settings(max_examples=50)
@given(samples, samples)
def test_an_interval_is_what_came_in_it(before: list[int], more: list[int]) -> None:
    took, whole, (rate, *others) = interval(look(6.0, fk=metered(before + more, 3)), look(4.0, fk=metered(before, 1)))
    assert (took, whole, others) == (2.0, False, [])
    assert (rate.requests, rate.errors) == (len(more) / 2, 1.0)
    alone = interval(look(2.0, fk=metered(more)), None).rates[0].latency
    assert all(a <= b <= 1.125 * a for a, b in zip(alone, rate.latency, strict=True))  # the last is not above the slowest of all
    assert alone == sorted(alone)
    assert alone[-1] == max(more)


def test_what_did_nothing_is_not_shown_and_the_busiest_comes_first() -> None:
    now = look(2.0, a=metered([10]), b=metered([10] * 3), c=metered([10] * 9))
    assert [r.name for r in interval(now, look(1.0, a=metered([10]), c=metered([10]))).rates] == ["c", "b"]


def test_what_is_no_method_has_a_rate_and_no_times() -> None:
    now = look(2.0, **{"(none)": metered([], 4)})
    assert interval(now, look(1.0)).rates[0][1:] == (4.0, 4.0, [])
    assert frame(now, None)[-1].split() == ["(none)", "2.0", "2.0", *"----"]


def test_another_daemon_is_seen_from_its_own_start() -> None:
    """Also if it has already done more than the one before."""
    now, before = look(4.0, started=2.0, fk=metered([10] * 8)), look(3.0, started=1.0, fk=metered([10] * 6))
    took, whole, (rate,) = interval(now, before)
    assert (took, whole, rate.requests) == (4.0, True, 2.0)
    assert "2.0 requests/s since the start" in frame(now, before)
    assert "1.0 requests/s in 2.00 s" in frame(look(5.0, fk=metered([10] * 8)), before)


# -- into a pipe -------------------------------------------------------------------------------------------------------


@pytest.fixture
def load(shared_daemon: Any) -> Iterator[None]:
    """Requests, some of them wrong, one after the other."""
    done = threading.Event()
    talk = shared_daemon.connect()

    def ask() -> None:
        while not done.is_set():
            talk.ask("compute_fk", ZEROS)
            talk.ask("compute_fk", [0])
            talk.ask("pink")

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    done.set()
    thread.join(PATIENCE)
    talk.close()


def test_lines_for_each_method_and_interval(fkctl, shared_daemon, load):
    header, *lines = fkctl("--socket", shared_daemon.path, "top", "--interval", "0.2", "--count", "3").out.splitlines()
    names = header.split()
    assert names == ["time", "method", "requests/s", "errors/s", "p50_us", "p90_us", "p99_us", "max_us", "connections", "generation"]
    rows = [dict(zip(names, line.split(), strict=True)) for line in lines]
    fk = [row for row in rows if row["method"] == "compute_fk"]
    assert len(fk) == 3
    for row in fk:
        assert re.fullmatch(r"\d\d:\d\d:\d\d", row["time"])
        assert 0 < float(row["errors/s"]) < float(row["requests/s"])
        assert 0 < float(row["p50_us"]) <= float(row["p90_us"]) <= float(row["p99_us"]) <= float(row["max_us"])
        assert int(row["connections"]) >= 2
        assert row["generation"] == "1"
    assert [row["p50_us"] for row in rows if row["method"] == "(none)"] == ["-"] * 3


def test_json_is_the_wires_result_a_line_for_each_interval_on_one_connection(fkctl, shared_daemon):
    lines = fkctl("--socket", shared_daemon.path, "top", "--interval", "0.01", "--count", "4", "--json").out.splitlines()
    looks = [json.loads(line) for line in lines]
    assert len(looks) == 4
    assert list(looks[0]) == list(shared_daemon.ask("stats")["result"])
    assert {found["connections"]["accepted"] for found in looks} == {looks[0]["connections"]["accepted"]}
    first = looks[0]["methods"]["stats"]["count"]
    assert [found["methods"]["stats"]["count"] for found in looks] == list(range(first, first + 4))


def test_a_daemon_that_is_gone_at_the_end_of_the_count(daemons, capsys, monkeypatch):
    daemon = daemons("wire_arm.urdf")

    def stop(self: Any, due: float) -> bool:
        if daemon.process.poll() is None:
            daemon.stop()
        return False

    monkeypatch.setattr(module.Printed, "ended", stop)
    assert main(["--socket", daemon.path, "top", "--count", "3"]) == 3
    out, err = capsys.readouterr()
    _, *lines = out.splitlines()
    assert len(lines) == 3
    assert all(f"no daemon at {daemon.path}" in line for line in lines)
    assert all(line.endswith("trying again") for line in lines)
    assert err.startswith(f"fkctl: no daemon at {daemon.path}")
    assert err.count("\n") == 1


def test_a_daemon_that_is_started_anew_between_two_looks(daemons, capsys, monkeypatch):
    first = daemons("wire_arm.urdf")
    pause = iter([first.stop, lambda: daemons("wire_arm.urdf"), lambda: None])

    def ended(self: Any, due: float) -> bool:
        next(pause)()
        return False

    monkeypatch.setattr(module.Printed, "ended", ended)
    assert main(["--socket", first.path, "top", "--count", "3"]) == 0
    out, err = capsys.readouterr()
    _, gone, anew, *after = out.splitlines()
    assert "no daemon at" in gone
    assert anew.endswith("the daemon has started anew")
    assert [line.split()[1] for line in after] == ["stats"]  # the first look of all counts on nobody
    assert err == ""


def test_a_daemon_that_was_restarted_unseen(daemons, capsys, monkeypatch):
    """The kept connection is dead, and a new daemon is there already: nothing was missed."""
    daemon = daemons("wire_arm.urdf")

    def restart(self: Any, due: float) -> bool:
        daemon.stop()
        daemons("wire_arm.urdf")
        return False

    monkeypatch.setattr(module.Printed, "ended", restart)
    assert main(["--socket", daemon.path, "top", "--count", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("the daemon has started anew")


def test_ctrl_c_ends_it_in_order(shared_daemon):
    command = [sys.executable, "-m", "fkd.ctl", "--socket", shared_daemon.path, "top", "--interval", "0.05"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")


def test_a_reader_that_has_enough(shared_daemon):
    command = [sys.executable, "-m", "fkd.ctl", "--socket", shared_daemon.path, "top", "--interval", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == 1
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--model", "arm.urdf", "top"], "top is for a daemon"),
        (["top", "--count", "0"], "expected a whole number above 0"),
        (["top", "--count", "-1"], "expected a whole number above 0"),
        (["top", "--count", "1e3"], "expected a whole number above 0"),
        (["top", "--interval", "0"], "expected seconds, above 0"),
        (["top", "--interval", "x"], "expected seconds, above 0"),
    ],
)
def test_usage(fkctl, words, says):
    ran = fkctl(*words)
    assert ran.status == 2
    assert says in ran.err


def test_no_daemon_at_the_start(fkctl, short_folder):
    assert fkctl("--socket", short_folder / "none", "top").status == 3


def test_an_answer_of_another_shape(fkctl, impostor):
    ran = fkctl("--socket", impostor(b'{"jsonrpc":"2.0","result":{"methods":{"m":7}},"id":1}\n'), "top")
    assert ran.status == 1
    assert "cannot make sense of the result of stats" in ran.err


# -- on a terminal -----------------------------------------------------------------------------------------------------


class Terminal:
    """fkctl top on a pty of its own."""

    def __init__(self, path: str, *words: str, columns: int = 100, rows: int = 30) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fkd.ctl", "--socket", path, "top", "--interval", "0.05", *words],
            stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip

    def until(self, true: Callable[[str], object]) -> str:
        """Read on until this is true of a whole frame; the frame."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            drawn, whole, rest = self.seen.partition(END_OF_SCREEN)
            if whole:
                self.seen = rest
                if true(drawn):
                    return drawn.rpartition(HOME)[2]
            else:
                assert select.select([self.ours], [], [], PATIENCE)[0], self.seen
                self.seen += os.read(self.ours, 1 << 16).decode()
        raise AssertionError(self.seen)

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def ended(self) -> int:
        """The exit status; what it left on the terminal is in `seen`."""
        while self.process.poll() is None:
            if select.select([self.ours], [], [], 0.05)[0]:
                self.seen += os.read(self.ours, 1 << 16).decode()
        while select.select([self.ours], [], [], 0)[0]:
            self.seen += os.read(self.ours, 1 << 16).decode()
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for fd in (self.ours, self.theirs):
            with contextlib.suppress(OSError):
                os.close(fd)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*words: Any, **size: int) -> Terminal:
        opened.append(Terminal(*words, **size))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def text(drawn: str) -> list[str]:
    """A frame's lines."""
    return [line.removesuffix(END_OF_LINE) for line in re.split(r"\r+\n", drawn)]  # the terminal adds a return of its own


def test_it_is_drawn_again_and_again_until_q(shared_daemon, terminal, load):
    screen = terminal(shared_daemon.path)
    first = text(screen.until(lambda drawn: drawn.startswith(ENTER + HOME) and "since the start" in drawn))
    assert first[0].startswith("fkctl top")
    later = text(screen.until(lambda drawn: re.search(r"requests/s in 0\.\d\d s", drawn) and "compute_fk" in drawn))
    assert later[1].startswith("up ")
    assert re.match(r"connections: \d+ open, \d+ accepted", later[2])
    assert later[5].split() == ["method", "requests/s", "errors/s", "p50", "p90", "p99", "max"]
    assert {"compute_fk", "(none)", "stats"} <= {line.split()[0] for line in later[6:]}
    screen.type("xyz")  # means nothing
    screen.type("q")
    assert screen.ended() == 0
    assert screen.seen.endswith(LEAVE)
    assert termios.tcgetattr(screen.theirs) == screen.before


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_the_terminal_is_as_it_was_however_it_ends(shared_daemon, terminal, how):
    screen = terminal(shared_daemon.path)
    screen.until(lambda drawn: "requests/s in" in drawn)
    if how == "Ctrl-C":
        screen.type("\x03")
    else:
        screen.process.terminate()
    assert screen.ended() == 0
    assert screen.seen.endswith(LEAVE)
    assert termios.tcgetattr(screen.theirs) == screen.before


def test_it_ends_with_its_count(shared_daemon, terminal):
    screen = terminal(shared_daemon.path, "--count", "2")
    assert screen.ended() == 0
    assert screen.seen.count(HOME) == 3  # since the start, and two intervals


def test_it_keeps_within_a_small_terminal(shared_daemon, terminal, load):
    screen = terminal(shared_daemon.path, columns=30, rows=4)
    lines = text(screen.until(lambda drawn: "requests/s in" in drawn))
    assert len(lines) == 4
    assert max(map(len, lines)) == 30
    screen.type("q")
    assert screen.ended() == 0


def test_a_daemon_goes_and_comes_back(daemons, terminal):
    daemon = daemons("wire_arm.urdf")
    screen = terminal(daemon.path)
    screen.until(lambda drawn: "requests/s in" in drawn)
    daemon.stop()
    assert "trying again" in screen.until(lambda drawn: "no daemon at" in drawn)
    daemons("wire_arm.urdf")
    assert "the daemon has started anew at" in screen.until(lambda drawn: "requests/s in" in drawn)
    screen.type("q")
    assert screen.ended() == 0


def test_a_terminal_that_goes_ends_it(shared_daemon, terminal):
    screen = terminal(shared_daemon.path)
    screen.until(lambda drawn: "requests/s in" in drawn)
    os.close(screen.theirs)
    os.close(screen.ours)
    screen.theirs = screen.ours = -1
    screen.process.wait(PATIENCE)


def test_without_a_keyboard_it_draws_all_the_same(shared_daemon):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "fkd.ctl", "--socket", shared_daemon.path, "top", "--interval", "0.02", "--count", "2"]
    process = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    seen = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, process.stderr) == (0, b"")
    assert seen.count(HOME) == 3
