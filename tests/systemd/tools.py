"""What inside.py works with: systemctl, a caller of the daemon, a load beside it, a stopwatch. Only the standard library."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOCKET = "/run/fkd/fkd.sock"
HOME = [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1]  # wire_arm at q = 0
PATIENCE = 20.0  # seconds after which a thing that was waited for has not held


def run(*command: str, status: int | None = 0, **popen: Any) -> str:
    """A command's output. `status`: what it must end with; None: anything but 0."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, **popen)
    said = f"{' '.join(command)} ended with {done.returncode}: {done.stdout}"
    assert done.returncode == status if status is not None else done.returncode, said
    return done.stdout


def systemctl(*words: str, status: int | None = 0) -> str:
    return run("systemctl", *words, status=status)


def show(unit: str, name: str) -> str:
    """A unit's property."""
    return systemctl("show", "--value", "--property", name, unit).strip()


def pid(unit: str = "fkd.service") -> int:
    return int(show(unit, "MainPID"))


def pack(robot: str, bundle: str) -> None:
    run("/usr/local/bin/fkctl", "pack", str(HERE / robot), "-o", bundle)


class Caller:
    """One connection."""

    def __init__(self, path: str = SOCKET) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(path)
        self._file = self._socket.makefile("rb")

    def send(self, method: str, params: Any) -> None:
        self._socket.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")

    def reply(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            raise EOFError
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, method: str, params: Any = ()) -> Any:
        """A result."""
        self.send(method, params)
        reply = self.reply()
        assert "result" in reply, reply
        return reply["result"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def ask(method: str, params: Any = (), path: str = SOCKET) -> Any:
    """A result, by a connection of its own, sent once more if that is cut, as every client does."""
    for last in (False, True):
        with contextlib.closing(Caller(path)) as caller:
            try:
                return caller.ask(method, params)
            except (EOFError, ConnectionResetError, BrokenPipeError):
                if last:
                    raise
    return None


def serves(path: str = SOCKET) -> None:
    assert ask("compute_fk", [0] * 6, path) == HOME


def until(what: Callable[[], bool]) -> None:
    """Wait for something that nobody tells."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, f"{what} has not come about"
        time.sleep(0.02)


@contextlib.contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Milliseconds since the start."""
    start = time.monotonic()
    yield lambda: (time.monotonic() - start) * 1e3


class Load:
    """Asks again and again in the meantime: `worst` is the longest that it waited for an answer, in milliseconds.

    cpu: the one on which it does so at a real-time priority, so that what is seen is the daemon's delay, not its own.
    """

    def __init__(self, cpu: int | None = None) -> None:
        self._caller = Caller()
        self._cpu = cpu
        self._end = False
        self._thread = threading.Thread(target=self._run)
        self.worst = 0.0
        self.count = 0
        self.wrong = 0

    def _run(self) -> None:
        if self._cpu is not None:
            os.sched_setaffinity(0, {self._cpu})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
        while not self._end:
            with stopwatch() as took:
                result = self._caller.ask("compute_fk", [0] * 6)
                self.worst = max(self.worst, took())
            self.count += 1
            self.wrong += result != HOME
            time.sleep(0.0005)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end = True
        self._thread.join()
        self._caller.close()
        assert self.count
        assert not self.wrong
