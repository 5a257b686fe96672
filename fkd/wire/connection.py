"""Connection: what one client sends -> what it gets back. Sans-I/O: bytes in, bytes out, no sockets, no clock.

`receive` takes what was read, `answer` gives replies until there are none or enough, `finish` is for the end of the
stream. Replies keep the order of the requests. Nothing that a client sends raises out of here.

A call that takes long is a generator (Work): `answer` does one step of it and comes back, so that the server can give
others their turn; nothing else of this client is answered before its result.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from msgspec import Raw

from fkd.errors import FkdError, InternalError, TooLarge
from fkd.wire.framing import MAX_MESSAGE, LengthFraming, LineFraming, OutOfStep
from fkd.wire.jsonrpc import Request, decode_batch, decode_request, error_id, error_reply, long_reply, reply

# The result's JSON, or where it is long the pieces of it, which are sent one by one.
Result = bytes | list[bytes]
Work = Generator[Any, None, Result]
Call = Callable[[str, Raw], bytes | Work]  # method, params -> the result, or the work that gives it; raises FkdError

MAX_BATCH = 1000  # requests in one array: more are better sent as lines, which can be answered one by one
MESSAGE_COST = 64  # bytes of reply that a message is worth beside its reply
STEP_COST = 4 << 10  # bytes of a batch's replies between two looks at other clients
MAX_BATCH_REPLY = 4 << 20  # bytes of one batch's replies, which can only be sent together

log = logging.getLogger("fkd")


def _count_nothing(_code: int) -> None:
    """For connections that nobody counts errors of."""


class Connection:
    """One client's stream.

    failed: told the code of every error that no call has raised: of messages that do not come so far.
    """

    def __init__(self, call: Call, *, max_message: int = MAX_MESSAGE, failed: Callable[[int], None] = _count_nothing) -> None:
        self._call = call
        self._failed = failed
        self._framing: LineFraming | LengthFraming = LineFraming(max_message)
        self.receive = self._first  # take what was read
        self._headed = False  # whether replies go under headers
        self.lost = False  # after `answer`: whether nothing more can be understood, and the connection is to be closed
        self.more = False  # after `answer`: whether messages may still wait
        self.waiting: Any = None  # after `answer`: what must be done (a future) before there is any use in coming again
        self._work: Work | None = None  # the reply that is being worked out
        self._pieces: deque[bytes] = deque()  # what is left to send of a long reply

    def answer(self, enough: int) -> bytes:
        """Replies to whole messages, until none are left, they are worth `enough` bytes, or one takes long.

        A message without reply counts as some bytes too, so that a flood of notifications takes its turns like any
        other. `more` then tells whether to come again.
        """
        replies = []
        self.more = True
        while enough > 0:
            if self._pieces:
                out: bytes | None = self._pieces.popleft()
            else:
                out = self._next() if self._work is None else self._step(self._work)
            if out is None:
                break
            replies.append(out)
            enough -= len(out) + MESSAGE_COST
        return replies[0] if len(replies) == 1 else b"".join(replies)

    def _first(self, data: bytes) -> None:
        """The first bytes: no JSON begins with a C, so they tell how messages are parted."""
        if data[:1] == b"C":
            self._framing = LengthFraming(self._framing.limit)
            self._headed = True
        self.receive = self._framing.feed
        self.receive(data)

    def finish(self) -> None:
        """The stream has ended: a last message without its newline counts too."""
        self._framing.end()

    def close(self) -> None:
        """The client has gone: drop what is being worked out for it, and the ring that `_first` makes."""
        self.receive = self._framing.feed
        if self._work is not None:
            self._work.close()
            self._work = None

    @property
    def working(self) -> bool:
        """Whether a reply is being worked out."""
        return self._work is not None

    @property
    def unsent(self) -> int:
        """Bytes of a long reply that are still to be sent."""
        return sum(map(len, self._pieces))

    @property
    def partial(self) -> bool:
        """Whether the client is in the middle of a message."""
        return self._framing.partial

    def _next(self) -> bytes | None:
        """The next message's reply, or None if there is none, or none yet."""
        try:
            line = self._framing.next()
        except TooLarge as e:
            return self._sent(self._error(e, b"null"))
        except OutOfStep as e:
            self.lost = True
            return self._sent(self._error(e, b"null"))
        if line is None:
            self.more = False
            return None
        out = self._one(line) if line[:1] == b"{" else self._other(line)
        if isinstance(out, bytes):
            return self._sent(out) if self._headed else out
        self._work = out
        return self._step(out)

    def _step(self, work: Work) -> bytes | None:
        """One step of the work: the reply if that was the last, else None."""
        if self.waiting is not None and not self.waiting.done():
            return None
        try:
            self.waiting = next(work)
        except StopIteration as end:
            self._work = self.waiting = None
            return self._sent(end.value)
        return None

    def _sent(self, out: Result) -> bytes:
        """A reply as it is sent, or the first piece of it."""
        if isinstance(out, list):
            self._pieces.extend((self._framing.head(sum(map(len, out))) + out[0], *out[1:]))
            return self._pieces.popleft()
        return self._framing.head(len(out)) + out if out and self._headed else out

    def _other(self, line: bytes) -> bytes | Work:
        """The reply to a message that does not start as a request does: a batch, a blank line, or white space first."""
        line = line.strip(b" \t\r\n")
        if not (line or self._headed):
            return b""
        return self._batch(line) if line[:1] == b"[" else self._one(line)

    def _one(self, line: bytes) -> bytes | Work:
        """One request's reply; b"" for a notification, whatever became of it."""
        try:
            request, ident, unseen = decode_request(line)
        except FkdError as e:
            return self._error(e, error_id(e))
        if unseen is not None:
            return self._worked(self._when_seen(unseen, request), line, ident)
        try:
            result = self._call(request.method, request.params)
        except FkdError as e:
            return _told(e, ident)
        except Exception:  # a fault of ours must not cost the client its connection, nor us the daemon
            return self._fault(line, ident)
        if not isinstance(result, bytes):
            return self._worked(result, line, ident)
        return reply(result, ident) if ident else b""

    def _when_seen(self, unseen: Generator[None, None, None], request: Request) -> Work:
        """The work for a long request: to look through it, then what it asks for."""
        try:
            yield from unseen
        except FkdError as e:
            self._failed(e.code)
            raise
        result = self._call(request.method, request.params)
        return result if isinstance(result, bytes) else (yield from result)

    def _worked(self, work: Work, line: bytes, ident: bytes) -> Work:
        """The work for a request -> that for its reply."""
        try:
            result = yield from work
        except FkdError as e:
            return _told(e, error_id(e, ident))
        except Exception:
            return self._fault(line, ident)
        if isinstance(result, list) and ident:
            return long_reply(result, ident)
        return reply(result, ident) if ident else b""  # type: ignore[arg-type]  # a list has been seen to

    def _batch(self, line: bytes) -> Work:
        """An array's replies as an array, b"" if all were notifications."""
        try:
            members = decode_batch(line)
            if len(members) > MAX_BATCH:
                raise TooLarge(f"a batch of {len(members)} requests; at most {MAX_BATCH} are taken", limit=MAX_BATCH, got=len(members))
        except FkdError as e:
            return self._error(e, b"null")
        replies = []
        size = cost = 0
        for member in members:
            out = self._one(bytes(member)) if size < MAX_BATCH_REPLY else self._spilt(bytes(member))
            if not isinstance(out, bytes):
                worked = yield from out
                out = b"".join(worked) if isinstance(worked, list) else worked
            if out:
                replies.append(out[:-1])  # without its newline
                size += len(out)
            cost += len(out) + MESSAGE_COST
            if cost > STEP_COST:
                cost = 0
                yield
        return b"[" + b",".join(replies) + b"]\n" if replies else b""

    def _spilt(self, line: bytes) -> bytes:
        """For a batch's members once its replies are too large: each is refused, none is left out."""
        try:
            _, ident, _ = decode_request(line)
        except FkdError as e:
            ident = error_id(e)
        error = TooLarge(f"the replies of this batch exceed {MAX_BATCH_REPLY} bytes; send fewer requests at once", limit=MAX_BATCH_REPLY)
        return self._error(error, ident)

    def _error(self, error: FkdError, ident: bytes) -> bytes:
        """The reply to what never came to be a call."""
        self._failed(error.code)
        return _told(error, ident)

    def _fault(self, line: bytes, ident: bytes) -> bytes:
        """The reply to a request on which fkd itself went wrong."""
        log.exception("internal error on %.200r", line)
        return _told(InternalError("internal error; the daemon's log has the details"), ident)


def _told(error: FkdError, ident: bytes) -> bytes:
    """The reply that says what went wrong; b"" for a notification."""
    return error_reply(error, ident) if ident else b""
