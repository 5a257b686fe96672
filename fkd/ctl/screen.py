"""A terminal that is drawn anew again and again, and listened to for a key; as it was before, afterwards."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterable, Iterator

# Source: ECMA-48 (cursor, erase); xterm control sequences (alternate screen, cursor on and off).
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, END_OF_LINE, END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Screen:
    """stdout as a terminal, and stdin for keys if it is one too."""

    def __init__(self) -> None:
        self._keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """While it is entered, the terminal is ours: nothing typed is echoed, and what was on it comes back."""
        before = None if self._keys is None else termios.tcgetattr(self._keys)
        try:
            if self._keys is not None:
                tty.setcbreak(self._keys)
            self._write(ENTER)
            yield
        finally:
            with contextlib.suppress(OSError):  # the terminal may have gone
                self._write(LEAVE)
            if before is not None and self._keys is not None:
                with contextlib.suppress(termios.error):
                    termios.tcsetattr(self._keys, termios.TCSADRAIN, before)

    def draw(self, lines: Iterable[str]) -> None:
        """Show as much of these lines as there is room for."""
        size = os.get_terminal_size(sys.stdout.fileno())
        width, height = size.columns or 80, size.lines or 24  # a terminal may not know its size
        shown = ["".join(c if c.isprintable() else "?" for c in line)[:width] for line in list(lines)[:height]]
        self._write(HOME + f"{END_OF_LINE}\r\n".join(shown) + END_OF_LINE + END_OF_SCREEN)

    def pressed(self, keys: str, until: float) -> bool:
        """Wait for one of these keys, or until that time (monotonic); whether there was one, or the keyboard has gone."""
        while (left := until - time.monotonic()) > 0.0:
            if select.select([] if self._keys is None else [self._keys], [], [], left)[0] and self._keys is not None:
                typed = os.read(self._keys, 100).decode(errors="replace")
                if not typed or any(key in typed for key in keys):
                    return True
        return False

    @staticmethod
    def _write(sequence: str) -> None:
        sys.stdout.write(sequence)
        sys.stdout.flush()
