"""Bytes from the daemon -> replies; without I/O."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from fkclient.errors import MODEL_CHANGED, BadReply, ModelChanged, RpcError

MAX_REPLY = 64 << 20  # bytes; all links of a 500-link model take some 150 KB, a batch of 100 000 poses some 35 MB

Result = TypeVar("Result")


class Fault(msgspec.Struct):
    """The `error` member of a reply."""

    code: int
    message: str
    data: Any = None

    def exception(self) -> RpcError:
        """What to raise for it."""
        kind = ModelChanged if self.code == MODEL_CHANGED else RpcError
        return kind(self.code, self.message, self.data)


class Reply(msgspec.Struct, Generic[Result], gc=False):
    """One reply. The id comes back as it was sent; null if the daemon could not tell which request it answers."""

    id: int | str | None = None
    result: Result | msgspec.UnsetType = msgspec.UNSET
    error: Fault | None = None

    def unaddressed(self) -> RpcError | BadReply:
        """What to raise for a reply with id null."""
        if self.error is not None:
            return self.error.exception()
        return BadReply("the daemon sent a result with id null, which belongs to no request")


_ENVELOPE = msgspec.json.Decoder(Reply[msgspec.Raw])


def envelope(line: bytes) -> Reply[msgspec.Raw]:
    """One line -> a reply whose result is left undecoded: how depends on the call, and that on the id.

    Raises BadReply if the line is not a reply.
    """
    try:
        return _ENVELOPE.decode(line)
    except (ValueError, RecursionError) as e:  # msgspec's own errors are ValueErrors too
        raise BadReply(f"the daemon sent what is not a JSON-RPC reply: {e}; it begins with {line[:80]!r}") from e


class Lines:
    """Bytes as they come -> whole lines. A stream keeps no boundaries: replies arrive split and joined."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []  # of the line that is not complete yet
        self.size = 0  # bytes of it

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes. Raises BadReply for one of more than `limit` bytes."""
        first, *others = data.split(b"\n")
        if self.size + len(first) > self._limit or max(map(len, others), default=0) > self._limit:
            raise BadReply(f"the reply has more than {self._limit} bytes; give the client a larger max_reply")
        self._parts.append(first)
        self.size += len(first)
        if not others:
            return []
        lines = [b"".join(self._parts), *others[:-1]]
        self._parts, self.size = [others[-1]], len(others[-1])
        return lines
