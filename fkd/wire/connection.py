"""Connection: what one client sends -> what it gets back. Sans-I/O: bytes in, bytes out, no sockets, no clock.

`receive` takes what was read, `answer` gives replies until there are none or enough, `finish` is for the end of the
stream. Replies keep the order of the requests. Nothing that a client sends raises out of here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec import Raw

from fkd.errors import FkdError, InternalError, TooLarge
from fkd.wire.framing import MAX_MESSAGE, LineFraming
from fkd.wire.jsonrpc import decode_batch, decode_request, error_id, error_reply, reply

Call = Callable[[str, Raw], bytes]  # method, params -> the result's JSON; raises FkdError

MAX_BATCH = 1000  # requests in one array: more are better sent as lines, which can be answered one by one
MESSAGE_COST = 64  # bytes of reply that a message is worth beside its reply
MAX_BATCH_REPLY = 4 << 20  # bytes of one batch's replies, which can only be sent together

log = logging.getLogger("fkd")


class Connection:
    """One client's stream."""

    def __init__(self, call: Call, *, max_message: int = MAX_MESSAGE) -> None:
        self._call = call
        self._framing = LineFraming(max_message)
        self.receive = self._framing.feed  # take what was read
        self.requests = 0  # messages answered or taken, batches as one
        self.more = False  # after `answer`: whether messages may still wait

    def answer(self, enough: int) -> bytes:
        """Replies to whole messages, until none are left or they are worth `enough` bytes.

        A message without reply counts as some bytes too, so that a flood of notifications takes its turns like any
        other. `more` then tells whether to come again.
        """
        replies = []
        while enough > 0:
            try:
                line = self._framing.next()
            except TooLarge as e:
                out = error_reply(e, b"null")
            else:
                if line is None:
                    self.more = False
                    break
                self.requests += 1
                out = self._one(line) if line[:1] == b"{" else self._other(line)
            replies.append(out)
            enough -= len(out) + MESSAGE_COST
        else:
            self.more = True
        return replies[0] if len(replies) == 1 else b"".join(replies)

    def finish(self) -> bytes:
        """The stream's end: a last message without its newline is answered too."""
        rest = self._framing.rest()
        return self._other(rest) if rest else b""

    @property
    def partial(self) -> bool:
        """Whether the client is in the middle of a message."""
        return self._framing.partial

    def _other(self, line: bytes) -> bytes:
        """The reply to a message that does not start as a request does: a batch, a blank line, or white space first."""
        line = line.strip(b" \t\r")
        if not line:
            return b""
        return self._batch(line) if line[:1] == b"[" else self._one(line)

    def _one(self, line: bytes) -> bytes:
        """One request's reply; b"" for a notification, whatever became of it."""
        try:
            request, ident = decode_request(line)
        except FkdError as e:
            ident = error_id(e)
            return error_reply(e, ident) if ident else b""
        try:
            result = self._call(request.method, request.params)
        except FkdError as e:
            return error_reply(e, ident) if ident else b""
        except Exception:  # a fault of ours must not cost the client its connection, nor us the daemon
            log.exception("internal error on %.200r", line)
            return error_reply(InternalError("internal error; the daemon's log has the details"), ident) if ident else b""
        return reply(result, ident) if ident else b""

    def _batch(self, line: bytes) -> bytes:
        """An array's replies as an array, b"" if all were notifications."""
        try:
            members = decode_batch(line)
            if len(members) > MAX_BATCH:
                raise TooLarge(f"a batch of {len(members)} requests; at most {MAX_BATCH} are taken", limit=MAX_BATCH, got=len(members))
        except FkdError as e:
            return error_reply(e, b"null")
        replies = []
        size = 0
        for member in members:
            out = self._one(bytes(member)) if size < MAX_BATCH_REPLY else self._spilt(bytes(member))
            if out:
                replies.append(out[:-1])  # without its newline
                size += len(out)
        return b"[" + b",".join(replies) + b"]\n" if replies else b""

    def _spilt(self, line: bytes) -> bytes:
        """For a batch's members once its replies are too large: each is refused, none is left out."""
        try:
            _, ident = decode_request(line)
        except FkdError as e:
            ident = error_id(e)
        error = TooLarge(f"the replies of this batch exceed {MAX_BATCH_REPLY} bytes; send fewer requests at once", limit=MAX_BATCH_REPLY)
        return error_reply(error, ident) if ident else b""
