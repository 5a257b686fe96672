"""What a call can raise: one tree, so that `except FkError` catches all of it."""

from __future__ import annotations

from typing import Any

MODEL_CHANGED = -32012


class FkError(Exception):
    """The root of all errors of this package."""


class BadValue(FkError, ValueError):
    """An argument that must not be sent, such as a NaN among the joint values. The message names its place."""


class NoDaemon(FkError, ConnectionError):
    """Nobody can be reached at the socket's path."""


class Timeout(FkError, TimeoutError):
    """The call's deadline passed. The connection is given up, so a late reply is never taken for another's."""


class ConnectionLost(FkError, ConnectionError):
    """The connection ended before the reply was complete, and so did the one retry."""


class BadReply(FkError):
    """What came back is not a reply of the daemon's: malformed, of another shape, or over the size limit."""


class RpcError(FkError):
    """The daemon answered with an error.

    code: the JSON-RPC code. message: one sentence for people. data: what the daemon adds, usually a dict.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)  # all three, so that the error pickles
        self.code = code
        self.message = message
        self.data = data

    @property
    def reason(self) -> str:
        """A stable slug for programs, such as `unknown-name`; empty if the daemon gave none."""
        reason = self.data.get("reason") if isinstance(self.data, dict) else None
        return reason if isinstance(reason, str) else ""

    def __str__(self) -> str:
        return f"{self.message} [{self.reason or 'error'}, {self.code}]"


class ModelChanged(RpcError):
    """The daemon serves another model than the one this client is bound to; the call was not answered."""
