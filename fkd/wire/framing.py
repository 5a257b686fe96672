"""A byte stream -> messages, and back: newline-delimited, or under Content-Length headers.

Knows nothing of JSON, sockets or time. Source of the headers: Language Server Protocol 3.17, Base Protocol.
"""

from __future__ import annotations

from fkd.errors import ParseError, TooLarge

MAX_MESSAGE = 1 << 20  # bytes: some 50 000 numbers, far above any single question
MAX_HEADERS = 4 << 10  # bytes: two short lines are all that is meant
MAX_HEADER_LINES = 16  # which would be read one by one


class OutOfStep(ParseError):
    """Where the next message begins cannot be told: the stream has to end."""

    default_reason = "framing"


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

    @staticmethod
    def head(_size: int) -> bytes:
        """What is sent before a reply of so many bytes, of which the last is a newline: nothing."""
        return b""

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a message of more than {self.limit} bytes, which is the limit", limit=self.limit)


class LengthFraming:
    """Splits a stream of `Content-Length: N`, CRLF, other headers, CRLF, and N bytes; the same verbs as LineFraming.

    A message longer than `limit` raises TooLarge once and is skipped. Headers that make no sense raise OutOfStep once;
    there are no messages after that.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._length: int | None = None  # of the body whose headers have been read
        self._skip = 0  # bytes of a body that is too long, still to come
        self._lost = self._ended = False

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        if self._lost:
            return
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._buffer += data[skipped:]

    def next(self) -> bytes | None:
        """The next whole message, or None. Raises TooLarge or OutOfStep."""
        if self._length is None and not self._headers():
            return None
        length = self._length
        if length is None or len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._length = None
        return body

    def end(self) -> None:
        """The stream has ended: half a message is none, whole ones are still given."""
        self._ended = True

    @property
    def partial(self) -> bool:
        """Whether part of a message waits for its rest."""
        return not self._ended and bool(self._buffer or self._length or self._skip)

    @staticmethod
    def head(size: int) -> bytes:
        """What is sent before a reply of so many bytes, of which the last is a newline, which JSON takes for a blank."""
        return b"Content-Length: %d\r\n\r\n" % size

    def _headers(self) -> bool:
        """Read the headers of the next message, if all of them are there."""
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEADERS)
        if end < 0:
            lines = self._buffer[:MAX_HEADERS]
            if len(self._buffer) > MAX_HEADERS:
                raise self._out_of_step(f"headers of more than {MAX_HEADERS} bytes")
            if lines.count(b"\n") > lines.count(b"\r\n"):
                raise self._out_of_step("a header line that does not end in CRLF")
            return False
        length = self._read(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        if length > self.limit:
            self._skip = max(length - len(self._buffer), 0)
            del self._buffer[:length]
            raise TooLarge(f"a message of {length} bytes; {self.limit} are the limit", limit=self.limit, got=length)
        self._length = length
        return True

    def _read(self, headers: bytes) -> int:
        """The length that the headers say."""
        length = None
        lines = headers.split(b"\r\n")
        if len(lines) > MAX_HEADER_LINES:
            raise self._out_of_step(f"{len(lines)} header lines, more than {MAX_HEADER_LINES}")
        for line in lines:
            name, colon, value = line.partition(b":")
            name, value = name.strip().lower(), value.strip()
            if not colon or b"\n" in line:
                raise self._out_of_step("a header line without a colon, or that does not end in CRLF")
            if name == b"content-length":
                if length is not None or not value.isdigit() or len(value) > 15:
                    raise self._out_of_step("a Content-Length that is not one whole number")
                length = int(value)
            elif name == b"content-type" and b"charset" in value.lower() and b"utf" not in value.lower():
                raise self._out_of_step("a charset that is not UTF-8")
        if length is None:
            raise self._out_of_step("headers without Content-Length")
        return length

    def _out_of_step(self, what: str) -> OutOfStep:
        self._buffer.clear()
        self._length, self._skip = None, 0
        self._lost = True
        return OutOfStep(f"{what}; the connection is closed, because where the next message begins cannot be told",
                         expected="Content-Length: N, CRLF, CRLF, N bytes")
