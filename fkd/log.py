"""What the daemon says of itself, on stderr: one line an event, with its level where the journal reads it.

Source: sd-daemon(3) (the <N> prefixes), systemd.exec(5) (JOURNAL_STREAM). Saying it never hurts the service: what a
full disk, a reader that is gone or one that is stuck would not take at once is lost, and counted.
"""

from __future__ import annotations

import faulthandler
import logging
import math
import os
import select
import sys
import time
from collections.abc import Mapping

LONGEST = 4000  # bytes of a line; what a pipe or socket that is ready takes without waiting is 4096 (PIPE_BUF)
CONTROLS = {c: f"\\x{c:02x}" for c in (*range(32), *range(127, 160)) if c != ord("\t")}
SEVERITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
BURST, SECONDS = 20, 10.0  # how often one place in the code may warn: what clients provoke must not flood the journal


def start_logging(environ: Mapping[str, str]) -> None:
    """Send what is logged, from INFO up, to stderr; and where every thread was, should the watchdog or a fault end us."""
    if sys.stderr is None:
        return  # closed by whoever started us: descriptor 2 may be anything by now
    if not faulthandler.is_enabled():
        faulthandler.enable(2)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    if not any(isinstance(handler, StderrHandler) for handler in root.handlers):
        handler = StderrHandler(2, journal=is_journal(environ, 2))
        handler.addFilter(Moderation())
        root.addHandler(handler)


def is_journal(environ: Mapping[str, str], fd: int) -> bool:
    """Whether the descriptor leads to the journal: JOURNAL_STREAM names its device and inode."""
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


class StderrHandler(logging.Handler):
    """Writes at once or not at all; never waits, never raises."""

    def __init__(self, fd: int, *, journal: bool) -> None:
        super().__init__()
        self._fd = fd
        self._journal = journal
        self._ready = select.poll()
        self._ready.register(fd, select.POLLOUT)
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        if self._lost and self._write(logging.WARNING, f"{self._lost} messages could not be written here"):
            self._lost = 0
        self._lost += not self._write(record.levelno, self.format(record))

    def _write(self, level: int, text: str) -> bool:
        return all(self._write_line(level, line, i) for i, line in enumerate(text.split("\n")))

    def _write_line(self, level: int, line: str, number: int) -> bool:
        # A traceback's further lines are entries of their own to the journal; on a terminal they stand below the first.
        start = f"<{severity(level)}>" if self._journal else "" if number else "fkd: "
        data = f"{start}{line.translate(CONTROLS)}".encode(errors="backslashreplace")[:LONGEST] + b"\n"
        try:
            return bool(self._ready.poll(0)) and os.write(self._fd, data) == len(data)
        except OSError:
            return False


def severity(level: int) -> int:
    """A level of `logging` as syslog(3) counts them."""
    return next((number for least, number in SEVERITIES if level >= least), 7)


class Moderation(logging.Filter):
    """Lets each place in the code warn BURST times in SECONDS; the next one after that tells how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True  # what an operator does, not what clients provoke
        place, now = (record.pathname, record.lineno), time.monotonic()
        since, count = self._said.get(place, (-math.inf, 0))
        if now - since > SECONDS:
            if count > BURST:
                record.msg, record.args = f"{record.getMessage()} (and {count - BURST} more like it before)", ()
            since, count = now, 0
        self._said[place] = since, count + 1
        return count < BURST
