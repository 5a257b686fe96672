"""A byte stream -> messages. Newline-delimited; knows nothing of JSON, sockets or time."""

from __future__ import annotations

from fkd.errors import TooLarge

MAX_MESSAGE = 1 << 20  # bytes: some 50 000 numbers, far above any single question


class LineFraming:
    """Splits a stream at newlines, however the bytes arrive.

    `feed` takes what was read; `next` gives whole messages one by one, without their newline, until it gives None.
    A message longer than `limit` raises TooLarge once and is skipped up to its newline; the stream goes on.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._buffer: bytes | bytearray = b""  # a bytearray only while a message comes in pieces
        self._start = 0  # of the next message in the buffer
        self._searched = 0  # up to here there is no newline
        self._skipping = False  # inside a message that is too long

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        if self._start == len(self._buffer):
            self._buffer = data
            self._start = self._searched = 0
            return
        if not isinstance(self._buffer, bytearray):
            self._buffer = bytearray(self._buffer)
        if self._start:
            del self._buffer[: self._start]
            self._searched -= self._start
            self._start = 0
        self._buffer += data  # amortised: a client that sends byte by byte must not cost a copy of all for each

    def next(self) -> bytes | None:
        """The next whole message, or None. Raises TooLarge."""
        buffer = self._buffer
        end = buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(buffer)
            if self._skipping:
                self._start = len(buffer)  # nothing of it is kept
            elif len(buffer) - self._start > self.limit:
                self._skipping = True
                self._start = len(buffer)
                raise self._too_large()
            return None
        start = self._start
        self._start = self._searched = end + 1
        if self._skipping:
            self._skipping = False
            return self.next()
        if end - start > self.limit:
            raise self._too_large()
        line = buffer[start:end]
        return line if isinstance(line, bytes) else bytes(line)

    def end(self) -> None:
        """The stream has ended: what came without a newline counts as a message."""
        self.feed(b"\n")

    @property
    def partial(self) -> bool:
        """Whether part of a message waits for its rest."""
        return self._skipping or self._start < len(self._buffer)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a message of more than {self.limit} bytes, which is the limit", limit=self.limit)
