"""A daemon as a service manager keeps it: its socket held for it, started anew whenever it ends, its signs of life heard.

The listening socket belongs to the supervisor and is passed to each daemon as descriptor 3, so that no connect is ever
refused, be the daemon dead or alive. Every end of a daemon is remembered, with what was asked of it before.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

RESTART = 0.1  # seconds, as in systemd/fkd.service
PATIENCE = 60.0  # seconds within which a daemon must have started or stopped, however slow the machine
BACKLOG = 1024
OURS = ("FKD_", "LISTEN_", "NOTIFY_", "WATCHDOG_", "RUNTIME_DIRECTORY")  # what the daemon must not get from our surroundings
FATAL = {signal.SIGKILL: "kill -9", signal.SIGTERM: "SIGTERM"}

# The daemon's own main, as a service manager would start it, but with limits that a minute can reach.
LAUNCH = """
import os, sys
from fkd.config import Config, Limits
from fkd.daemon import main
passed = int(sys.argv[1])
os.dup2(passed, 3)
if passed != 3:
    os.close(passed)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
Config.limits = Limits({limits})
sys.exit(main(sys.argv[2:]))
"""


@dataclass
class Life:
    """One daemon from its start to its end. Times are of the monotonic clock."""

    process: subprocess.Popen[bytes]
    readies: int = 0  # how often it said that it is ready: once, and after each reload
    reloads: int = 0  # how often it said that it reloads
    status: str = ""
    fatal: list[tuple[float, str]] = field(default_factory=list)  # when it was asked to end, and how
    ended: float = math.inf

    @property
    def runs(self) -> bool:
        return self.ended == math.inf

    @property
    def serves(self) -> bool:
        """Whether it is ready, and nobody has asked it to end."""
        return self.readies > 0 and self.runs and not self.fatal

    def asked(self, until: float) -> str | None:
        """How it was last asked to end before then."""
        return next((how for when, how in reversed(self.fatal) if when <= until), None)


class Supervisor:
    """Keeps a daemon running that serves `bundle` on `path`; `with` it, and it ends with the block.

    limits: in place of the daemon's own, e.g. "connections=64, grace=2.0".
    """

    def __init__(self, folder: Path, bundle: Path, limits: str = "") -> None:
        self.path = str(folder / "fkd.sock")
        self.log = folder / "log"
        self.lives: list[Life] = []
        self.faults: list[str] = []  # ends that nobody asked for
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(str(folder / "notify"))
        self._notices.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # which daemon it is that speaks
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(self.path)
        self._listening.listen(BACKLOG)
        passed = str(self._listening.fileno())
        self._command = [sys.executable, "-c", LAUNCH.format(limits=limits), passed, str(bundle)]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        self._environ = {**kept, "NOTIFY_SOCKET": str(folder / "notify")}
        self._changed = threading.Condition(threading.RLock())
        self._stopping = False
        self._threads = [threading.Thread(target=self._keep), threading.Thread(target=self._hear)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        try:
            self.wait(lambda life: life.serves)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def life(self) -> Life:
        """The daemon that runs now, or ran last."""
        return self.lives[-1]

    def life_of(self, pid: int) -> Life | None:
        return next((life for life in reversed(self.lives) if life.process.pid == pid), None)

    def asked(self, since: float, until: float) -> list[str]:
        """How daemons were asked to end that did not get over it before `since`; the last first."""
        found = [life.asked(until) for life in reversed(self.lives) if life.ended >= since]
        return [how for how in found if how]

    def send(self, number: signal.Signals) -> Life:
        """Send a signal to the daemon that runs, if one does; the daemon that it was meant for."""
        with self._changed:
            life = self.life
            if life.runs:
                if number in FATAL:
                    life.fatal.append((time.monotonic(), FATAL[number]))
                life.process.send_signal(number)
            return life

    def wait(self, done: Callable[[Life], bool]) -> Life:
        """The running daemon's life, once this is true of it."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self.lives) and done(self.life), PATIENCE):
                raise TimeoutError(f"the daemon did not come so far; it says: {self.log.read_text()[-2000:]}")
            return self.life

    def ready(self) -> Life:
        """Wait until a daemon serves."""
        return self.wait(lambda life: life.serves)

    def stop(self) -> None:
        """End the daemon and keep it ended."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            if self.lives:
                self.send(signal.SIGCONT)
                self.send(signal.SIGTERM)
        self._threads[0].join(10.0)
        if self._threads[0].is_alive():
            self.faults.append("the daemon did not end within 10 s of SIGTERM")
            self.send(signal.SIGKILL)
            self._threads[0].join()
        self._notices.shutdown(socket.SHUT_RD)
        self._threads[1].join()
        self._notices.close()
        self._listening.close()

    def _keep(self) -> None:
        """Start the daemon, wait for its end, and so on."""
        while True:
            with self._changed:
                if self._stopping:
                    return
                with self.log.open("ab") as log:
                    process = subprocess.Popen(
                        self._command, env=self._environ, stderr=log, stdin=subprocess.DEVNULL,
                        pass_fds=[self._listening.fileno()], start_new_session=True,  # a Ctrl-C is for us alone
                    )  # fmt: skip
                life = Life(process)
                self.lives.append(life)
            status = process.wait()
            with self._changed:
                life.ended = time.monotonic()
                if not self._expected(life, status):
                    self.faults.append(f"a daemon ended with status {status}, asked for: {life.fatal or 'nothing'}")
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._stopping, RESTART)

    @staticmethod
    def _expected(life: Life, status: int) -> bool:
        asked = {how for _, how in life.fatal}
        young = not life.readies  # it dies of a SIGTERM that comes before it can know what one is
        return (status == -signal.SIGKILL and "kill -9" in asked) or (
            "SIGTERM" in asked and (status == 0 or (young and status == -signal.SIGTERM)))  # fmt: skip

    def _hear(self) -> None:
        """Take note of what the daemon tells its service manager."""
        while True:
            data, passed, *_ = self._notices.recvmsg(1 << 16, socket.CMSG_SPACE(12))
            if not data:
                return
            told = dict(line.partition("=")[::2] for line in data.decode().split("\n"))
            with self._changed:
                life = self.life_of(struct.unpack("iii", passed[0][2])[0])
                if life:
                    life.status = told.get("STATUS", life.status)
                    life.readies += told.get("READY") == "1"
                    life.reloads += told.get("RELOADING") == "1"
                    self._changed.notify_all()
