"""The client for asyncio and uvloop: many calls at a time over one connection, told apart by their ids."""

from __future__ import annotations

import asyncio
import copy
import itertools
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack, cast

from fkclient import messages
from fkclient.address import FIRST_PAUSE, LONGEST_PAUSE, connect, log_ignored, socket_path, timeout_seconds
from fkclient.arguments import q_bytes
from fkclient.errors import ConnectionLost, FkError, Timeout
from fkclient.messages import FK, Call
from fkclient.options import DecomposeOptions, DhOptions, FkOptions, IkOptions, JacobianOptions
from fkclient.replies import MAX_REPLY, Lines, Reply, envelope

_clients: weakref.WeakSet[AsyncClient] = weakref.WeakSet()


def _in_forked_child() -> None:
    for client in list(_clients):
        client._enter(None)


os.register_at_fork(after_in_child=_in_forked_child)


class _Connection(asyncio.Protocol):
    """One connection. Its calls end by a reply, by their deadline, or by the connection's end, whatever comes first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: str, max_reply: int) -> None:
        self.loop = loop
        self.path = path
        self.ended: FkError | None = None  # why, once it is of no more use
        self.closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._lines = Lines(max_reply)
        self._pending: dict[int, tuple[Call, asyncio.Future[Reply[Any]], asyncio.TimerHandle]] = {}
        self._replies = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass of it

    def ask(
        self, call: Call, params: bytes, ident: int, deadline: float, timeout: float
    ) -> asyncio.Future[Reply[Any]]:
        """Send one call; the future gets its reply, or Timeout, or why the connection ended."""
        if self.ended is not None:
            raise copy.copy(self.ended)
        assert self._transport is not None
        future = self.loop.create_future()
        timer = self.loop.call_at(deadline, self._expire, ident, self._replies, timeout)
        self._pending[ident] = call, future, timer
        self._transport.write(call.request(ident, params))
        return future

    def _expire(self, ident: int, replies: int, timeout: float) -> None:
        # A call given up by its task stays pending until now, so that a stuck daemon is noticed all the same.
        _, future, _ = self._pending.pop(ident)
        if not future.done():
            future.set_exception(Timeout(f"no reply from the daemon at {self.path} within {timeout:g} s"))
        if self._replies == replies:
            self.end(ConnectionLost(f"the daemon at {self.path} answered nothing within {timeout:g} s"))

    def data_received(self, data: bytes) -> None:
        try:
            for line in self._lines.feed(data):
                self._deliver(line)
        except FkError as e:
            self.end(e)

    def _deliver(self, line: bytes) -> None:
        self._replies += 1
        found = envelope(line)
        if found.id is None:
            raise found.unaddressed()
        entry = self._pending.pop(found.id, None) if isinstance(found.id, int) else None
        if entry is None:
            log_ignored(self.path, found.id)
            return
        call, future, timer = entry
        timer.cancel()
        if future.done():  # its task was cancelled
            return
        try:
            future.set_result(call.decode(line))
        except FkError as e:
            future.set_exception(e)

    def eof_received(self) -> None:
        self.end(ConnectionLost(f"the daemon at {self.path} closed the connection before its reply was complete"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(ConnectionLost(f"the connection to {self.path} was lost: {exc or 'closed'}"))
        if not self.closed.done():
            self.closed.set_result(None)

    def end(self, why: FkError) -> None:
        """Close at once; every pending call fails with `why`."""
        if self.ended is not None:
            return
        self.ended = why
        if self._transport is not None:
            self._transport.abort()
        for _, future, timer in self._pending.values():
            timer.cancel()
            if not future.done():
                future.set_exception(copy.copy(why))  # one each, because each gets a traceback of its own


class AsyncClient:
    """Asks the daemon at `path`; any number of tasks of one event loop may share it, and their calls overlap.

    path, timeout, expect_digest, max_reply, the verbs and what they raise are those of `Client`.

    A call that times out or is cancelled leaves the connection to the others, unless the daemon answered nothing at
    all in the meantime; then the connection is given up. Calls that lose their connection are each sent once more. An
    error that the daemon addresses to nobody (id null) fails every call under way. A closed client may be used again,
    and so may one whose event loop has ended, or in a forked child: the next call opens a connection.
    """

    _connection: _Connection | None = None

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 1.0,
        expect_digest: str | None = None,
        max_reply: int = MAX_REPLY,
    ) -> None:
        self.path = socket_path(path)
        self.timeout = timeout_seconds(timeout)
        self._digest = expect_digest
        self._max_reply = max_reply
        self._ids = itertools.count(1)  # never used twice, so that an answer cannot be taken for another's
        self._enter(None)
        _clients.add(self)

    # -- the verbs, as in Client ------------------------------------------------------------------------------------

    async def fk(self, q: Any, **options: Unpack[FkOptions]) -> Any:
        """As `Client.fk`."""
        if type(q) is list and not options:
            return await self._ask(FK, q_bytes(q))
        return await self._ask(messages.fk(q, options))

    async def fk_batch(self, q: Any, **options: Unpack[FkOptions]) -> Any:
        """As `Client.fk_batch`."""
        return await self._ask(messages.fk(q, options, batch=True))

    async def decompose(self, q: Any = None, **options: Unpack[DecomposeOptions]) -> dict[str, Any]:
        """As `Client.decompose`."""
        return await self._dict(messages.decompose(q, options))

    async def jacobian(self, q: Any, **options: Unpack[JacobianOptions]) -> Any:
        """As `Client.jacobian`."""
        return await self._ask(messages.jacobian(q, options))

    async def ik(self, pose: Any, **options: Unpack[IkOptions]) -> dict[str, Any]:
        """As `Client.ik`."""
        return await self._dict(messages.ik(pose, options))

    async def dh(self, **options: Unpack[DhOptions]) -> dict[str, Any]:
        """As `Client.dh`."""
        return await self._dict(messages.dh(options))

    async def model(self) -> dict[str, Any]:
        """As `Client.model`."""
        return await self._dict(messages.plain("model"))

    async def status(self) -> dict[str, Any]:
        """As `Client.status`."""
        return await self._dict(messages.plain("status"))

    async def ping(self) -> str:
        """As `Client.ping`."""
        return str(await self._ask(messages.plain("ping")))

    async def call(self, method: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """As `Client.call`."""
        call = messages.call(method, params)
        if method == "pin":
            self._digest = messages.pinned_digest(params)
        return await self._ask(call)

    async def close(self) -> None:
        """Close the connection. Calls under way fail with FkError."""
        if self._loop is not asyncio.get_running_loop():
            self._enter(None)
            return
        opening, connection = self._opening, self._connection
        self._enter(None)
        if opening is not None:
            opening.cancel()
        if connection is not None:
            connection.end(FkError("the client was closed during the call"))
            await connection.closed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        connection = self._connection
        if connection is not None and not connection.loop.is_closed():  # else the loop would keep it for ever
            connection.loop.call_soon_threadsafe(connection.end, FkError("the client is gone"))

    # -- one call -------------------------------------------------------------------------------------------------

    async def _dict(self, call: Call) -> dict[str, Any]:
        result: dict[str, Any] = await self._ask(call)
        return result

    async def _ask(self, call: Call, params: bytes = b"") -> Any:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._enter(loop)
        deadline = loop.time() + self.timeout
        try:
            reply = await self._attempt(call, params, deadline)
        except ConnectionLost:
            reply = await self._attempt(call, params, deadline)
        return call.answer(reply)

    def _enter(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start afresh in `loop`. A connection of another loop, or of a parent process, is not this one's to touch."""
        self._loop = loop
        self._connection = None
        self._opening: asyncio.Task[_Connection] | None = None

    async def _attempt(self, call: Call, params: bytes, deadline: float) -> Reply[Any]:
        connection = self._connection
        if connection is None or connection.ended is not None:
            connection = await self._connected(deadline)
        return await connection.ask(call, params, next(self._ids), deadline, self.timeout)

    async def _connected(self, deadline: float) -> _Connection:
        """A connection, opened by one task for all calls that wait for it."""
        assert self._loop is not None
        while True:
            if self._opening is None or self._opening.done():
                self._opening = self._loop.create_task(self._open(self._loop))
                self._opening.add_done_callback(_retrieve)
            opening = self._opening
            await asyncio.wait((opening,), timeout=max(0.0, deadline - self._loop.time()))
            if not opening.done():
                raise Timeout(f"the daemon at {self.path} took no connection within {self.timeout:g} s; is it stuck?")
            if opening.cancelled():
                raise FkError("the client was closed during the call")
            error = opening.exception()
            if error is None:
                return opening.result()
            if not isinstance(error, Timeout) or self._loop.time() >= deadline:
                raise copy.copy(error)

    async def _open(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        deadline = loop.time() + self.timeout
        pause = FIRST_PAUSE
        while (sock := connect(self.path)) is None:
            if loop.time() >= deadline:
                raise Timeout(f"the daemon at {self.path} took no connection within {self.timeout:g} s; is it stuck?")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        connection = _Connection(loop, self.path, self._max_reply)
        try:
            await loop.create_unix_connection(lambda: connection, sock=sock)
            if self._digest is not None:
                pin = messages.pin(self._digest)
                pin.answer(await connection.ask(pin, b"", next(self._ids), deadline, self.timeout))
        except BaseException:
            connection.end(FkError("the connection was not completed"))
            raise
        self._connection = connection
        return connection


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Look at the exception, lest asyncio report it as never retrieved when no call waits for it any more."""
    if not task.cancelled():
        task.exception()
