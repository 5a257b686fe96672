"""A raw connection to the daemon that sends and reads at once, and says how it ended."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import Any

PATIENCE = 30.0  # seconds without any progress after which the daemon counts as stuck
CHUNK = 1 << 18


class Ended(Exception):
    """The daemon closed the connection. `lines` came before that, and `rest`, which is no whole line."""

    def __init__(self, lines: list[bytes], rest: bytes) -> None:
        super().__init__(f"the end after {len(lines)} lines and {len(rest)} bytes")
        self.lines, self.rest = lines, rest


class Stuck(Exception):
    """The daemon neither answered nor closed."""


class Stream:
    """One connection. Raises ConnectionRefusedError or FileNotFoundError if nobody listens."""

    def __init__(self, path: str) -> None:
        self.opened = time.monotonic()
        self.patience = PATIENCE
        self.status: dict[str, Any] = {}  # what the daemon that serves it said of itself
        self.socket = connect(path)
        self._poll = select.poll()
        self._rest = b""

    def exchange(self, data: bytes, count: int, pace: float = 0.0) -> list[bytes]:
        """Send `data`, read `count` lines meanwhile. pace: seconds of rest before each read of at most 64 KiB.

        Raises Ended, Stuck (nothing came or went for `patience` seconds).
        """
        view = memoryview(data)
        pieces, found = [self._rest], self._rest.count(b"\n")
        self._rest = b""
        view = self._send(view)
        while view or found < count:
            self._wait(select.POLLIN | (select.POLLOUT if view else 0))
            view = self._send(view)
            if pace:
                time.sleep(pace)
            piece = self._receive(1 << 16 if pace else CHUNK)
            if piece == b"":
                raise ended(b"".join(pieces))
            if piece:
                pieces.append(piece)
                found += piece.count(b"\n")
        *lines, self._rest = b"".join(pieces).split(b"\n", count)
        return lines

    def send(self, data: bytes) -> None:
        """Send all of it, unless the daemon has closed: reading will tell. Raises Stuck."""
        view = self._send(memoryview(data))
        while view:
            self._wait(select.POLLOUT)
            view = self._send(view)

    def push(self, data: bytes) -> int:
        """Send what is taken at once; how much that was."""
        return len(data) - len(self._send(memoryview(data)))

    def finish(self) -> None:
        """Send no more."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def rest(self) -> Ended:
        """Read until the daemon closes. Raises Stuck."""
        pieces = [self._rest]
        self._rest = b""
        while True:
            self._wait(select.POLLIN)
            piece = self._receive(CHUNK)
            if piece == b"":
                return ended(b"".join(pieces))
            pieces.append(piece or b"")

    def closed_within(self, seconds: float) -> bool:
        """Whether the daemon closes in that time. Reads nothing."""
        self._poll.register(self.socket, select.POLLRDHUP)
        return bool(self._poll.poll(seconds * 1000))

    @property
    def pid(self) -> int:
        """Of the daemon that serves it; 0 if that is not known."""
        return int(self.status.get("pid", 0))

    @property
    def surplus(self) -> bytes:
        """What came that was not asked for."""
        return self._rest + (self._receive(CHUNK) or b"")

    def close(self) -> None:
        self.socket.close()

    def _send(self, view: memoryview) -> memoryview:
        try:
            return view[self.socket.send(view, socket.MSG_NOSIGNAL) :] if view else view
        except BlockingIOError:
            return view
        except OSError:  # the daemon has closed, maybe after saying why
            return view[:0]

    def _receive(self, size: int) -> bytes | None:
        """What has come; None for nothing yet, b"" for the end."""
        try:
            return self.socket.recv(size)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _wait(self, events: int) -> None:
        self._poll.register(self.socket, events)
        if not self._poll.poll(self.patience * 1000):
            raise Stuck(f"no sign of the daemon for {self.patience:g} s")


def connect(path: str) -> socket.socket:
    """A connected socket. While the backlog is full there is nothing to wait for but time."""
    until = time.monotonic() + PATIENCE
    while True:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            sock.connect(path)
        except BlockingIOError:
            sock.close()
            if time.monotonic() > until:
                raise Stuck(f"the backlog was full for {PATIENCE:g} s") from None
            time.sleep(0.005)
        except BaseException:
            sock.close()
            raise
        else:
            return sock


def ended(data: bytes) -> Ended:
    """The end of a connection on which this came and was not used."""
    *lines, rest = data.split(b"\n")
    return Ended(lines, rest)
