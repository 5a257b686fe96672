"""What the tests share: a daemon that runs as a user's would, and small ways to talk to it.

Nothing here sleeps: a daemon is up when its readiness datagram has come, and gone when its process has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# No test is timed. What lands is judged by the change and not by luck: CI tries the same examples each time.
hypothesis.settings.register_profile("fkd", deadline=None, derandomize="CI" in os.environ, print_blob=True)
hypothesis.settings.load_profile("fkd")

PATIENCE = 30.0  # seconds after which a test that waits for something fails, however slow the machine
OURS = ("FKD_", "LISTEN_", "NOTIFY_", "WATCHDOG_", "RUNTIME_DIRECTORY")  # what a test's surroundings must not bring in


class Talk:
    """A connection that sends and reads by the line."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def line(self) -> bytes:
        """The next reply without its newline, or what is left when the daemon has closed (b"" for nothing)."""
        while b"\n" not in self._buffer:
            with contextlib.suppress(ConnectionResetError):
                if data := self.socket.recv(1 << 16):
                    self._buffer += data
                    continue
            rest, self._buffer = self._buffer, b""
            return rest
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def lines(self, count: int) -> list[bytes]:
        """The next `count` replies, read in large pieces."""
        pieces, found = [self._buffer], self._buffer.count(b"\n")
        while found < count:
            data = self.socket.recv(1 << 18)
            if not data:
                raise EOFError(f"{found} of {count} replies, then the end")
            pieces.append(data)
            found += data.count(b"\n")
        *lines, self._buffer = b"".join(pieces).split(b"\n", count)
        return lines

    def reply(self) -> dict[str, Any]:
        line = self.line()
        if not line:
            raise EOFError("the daemon closed the connection")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, method: str, params: Any = None, ident: Any = 1) -> dict[str, Any]:
        """One request -> the whole reply, also if the daemon has said no and closed before it was asked."""
        with contextlib.suppress(BrokenPipeError):
            self.send(request(method, params, ident))
        return self.reply()

    def rest(self) -> bytes:
        """Everything until the daemon closes."""
        pieces = [self._buffer]
        with contextlib.suppress(ConnectionResetError):
            while data := self.socket.recv(1 << 18):
                pieces.append(data)
        self._buffer = b""
        return b"".join(pieces)

    def close(self) -> None:
        self.socket.close()


def request(method: str, params: Any = None, ident: Any = 1) -> bytes:
    """One request as a line of bytes; without params if they are None."""
    members = {"jsonrpc": "2.0", "id": ident, "method": method}
    return json.dumps(members if params is None else {**members, "params": params}).encode() + b"\n"


class Daemon:
    """One `fkd` process, its socket, what it tells systemd and what it says on stderr."""

    def __init__(self, folder: Path, number: int) -> None:
        self.path = str(folder / "fkd.sock")
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.settimeout(PATIENCE)
        self.notify_path = str(folder / f"notify{number}")
        self.notices.bind(self.notify_path)
        self._errors = folder / f"stderr{number}"
        self.process: subprocess.Popen[bytes]
        self._talks: list[Talk] = []

    def start(self, command: Sequence[str], environ: dict[str, str], **popen: Any) -> None:
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(command, env=environ, stderr=errors, **popen)

    @property
    def stderr(self) -> str:
        return self._errors.read_text(errors="surrogateescape")

    def notice(self) -> list[str]:
        """The lines of the next message for systemd."""
        try:
            return self.notices.recv(1 << 16).decode().split("\n")
        except TimeoutError:
            raise AssertionError(f"no message for systemd; the daemon says: {self.stderr}") from None

    def notices_left(self) -> list[str]:
        """All lines that have come and were not read yet."""
        lines = []
        self.notices.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                lines += self.notices.recv(1 << 16).decode().split("\n")
        self.notices.settimeout(PATIENCE)
        return lines

    def wait_ready(self) -> None:
        lines = self.notice()
        assert lines[0] == "READY=1", (lines, self.stderr)

    def connect(self) -> Talk:
        talk = Talk(self.path)
        self._talks.append(talk)
        return talk

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """One request on a connection of its own."""
        talk = self.connect()
        reply = talk.ask(method, params)
        talk.close()
        return reply

    def ended(self, seconds: float = PATIENCE) -> int:
        """The exit status, once the process has ended."""
        return self.process.wait(seconds)

    def stop(self, seconds: float = 5.0) -> int:
        """SIGTERM, then the exit status; it has to come within the bound that the design states."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def memory(self) -> int:
        """The most memory that was resident since the last call (or the start), in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # starts the peak anew (proc(5))
        return peak * 1024

    def close(self) -> None:
        for talk in self._talks:
            talk.close()
        self.notices.close()
        if hasattr(self, "process"):
            self.process.kill()
            self.process.wait()


class Daemons:
    """Starts daemons for one test: `daemons(robot, "--mode", "0600", WATCHDOG_USEC="200000")`."""

    def __init__(self, folder: Path, robots: Path) -> None:
        self.folder = folder
        self._robots = robots
        self._all: list[Daemon] = []

    def environ(self, **more: str) -> dict[str, str]:
        """This process's environment without anything that fkd listens to, and `more`."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        return {**kept, **more}

    def new(self) -> Daemon:
        """A daemon that is not started."""
        daemon = Daemon(self.folder, len(self._all))
        self._all.append(daemon)
        return daemon

    def __call__(
        self, robot: str | None = "wire_arm.urdf", *arguments: str, ready: bool = True, socket: str | None = None,
        popen: dict[str, Any] | None = None, **environ: str,
    ) -> Daemon:  # fmt: skip
        """Start one; return when it is ready, or at once if `ready` is false.

        robot: a file in tests/robots or an absolute path; socket: default fkd.sock in the test's folder.
        """
        daemon = self.new()
        if socket is not None:
            daemon.path = socket
        command = [sys.executable, "-m", "fkd", "--socket", daemon.path, *arguments]
        command += [str(self._robots / robot)] if robot else []
        daemon.start(command, self.environ(**{"NOTIFY_SOCKET": daemon.notify_path, **environ}), **(popen or {}))
        if ready:
            daemon.wait_ready()
        return daemon

    def close(self) -> None:
        for daemon in self._all:
            daemon.close()


@pytest.fixture(scope="session")
def robots() -> Path:
    """The folder of the tests' own robots."""
    return Path(__file__).parent / "robots"


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose name is short enough for sockets in it (107 bytes), which tmp_path's may not be."""
    with tempfile.TemporaryDirectory(prefix="fkd-") as name:
        yield Path(name)


@pytest.fixture
def daemons(short_folder: Path, robots: Path) -> Iterator[Daemons]:
    """A starter of daemons in one short folder; whatever it started is ended with the test."""
    started = Daemons(short_folder, robots)
    yield started
    started.close()


@pytest.fixture(scope="module")
def shared_daemon(robots: Path) -> Iterator[Daemon]:
    """One running daemon (wire_arm) for a module's tests that leave it as it was."""
    with tempfile.TemporaryDirectory(prefix="fkd-") as name:
        started = Daemons(Path(name), robots)
        yield started("wire_arm.urdf")
        started.close()
