"""One line on a terminal that tells how far a long command is, and how long it will take."""

from __future__ import annotations

import sys
import time
from types import TracebackType

WIDTH = 24
PERIOD = 0.1  # seconds between two looks of it


class Progress:
    """Drawn on stderr while it is entered, and removed at the end."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._shown:
            self._write("")

    def show(self, rows: int, share: float) -> None:
        """rows: done so far; share: of the whole, 0 to 1."""
        now = time.monotonic()
        if not self._shown or (now - self._last < PERIOD and share < 1.0):
            return
        self._last = now
        took = max(now - self._start, 1e-9)
        left = took / share - took if share else 0.0
        bar = "#" * round(WIDTH * share)
        self._write(f"[{bar:<{WIDTH}}] {share:4.0%}  {rows:,} rows  {rows / took:,.0f} rows/s  {left:.0f} s left")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r{line}\x1b[K")
        sys.stderr.flush()
