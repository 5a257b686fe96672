"""The asyncio shell round a Connection: one read -> one write, and what to do when a client does not read.

One call stack a request: data_received -> Connection -> framing -> message -> dispatch -> Robot -> kernel ->
reply -> write. No task, future, queue or closure a request.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import struct
import termios
from dataclasses import dataclass
from time import perf_counter

from fkd.dispatch import Service
from fkd.errors import Overloaded
from fkd.wire.connection import Connection
from fkd.wire.framing import MAX_MESSAGE
from fkd.wire.jsonrpc import error_reply

log = logging.getLogger("fkd")

TURN = 1e-3  # seconds that one client may hold the loop, but for a single message that takes longer


@dataclass(frozen=True)
class Limits:
    """What one daemon grants its clients."""

    message: int = MAX_MESSAGE  # bytes of one request
    connections: int = 1024  # the usual limit on open files
    # Bytes of replies (and 64 for each message) between two looks at the clock; TURN says when others get theirs.
    turn: int = 4 << 10
    unread: int = 256 << 10  # bytes of replies that may wait for a client before its requests are no longer read
    grace: float = 30.0  # seconds without any progress after which a client that does not read is dropped


class Client(asyncio.Protocol):
    """One connection's protocol."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = Connection(server.service.call, max_message=server.limits.message)
        self._transport: asyncio.Transport
        self._blocked = False  # the client does not read; so neither do we
        self._eof = False  # the client has sent its last
        self._ending = False  # the daemon is going down
        self._pumping = False  # a further turn is scheduled
        self._stalled: asyncio.TimerHandle | None = None
        self._unread = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        if not self._server.admit(self):
            limit = self._server.limits.connections
            error = Overloaded(f"{limit} connections are open, which is the limit; try again later", limit=limit)
            self._transport.write(error_reply(error, b"null"))
            self._transport.close()
            return
        self._transport.set_write_buffer_limits(high=self._server.limits.unread)
        self._server.service.open.add(self._connection)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stalled:
            self._stalled.cancel()
        self._server.leave(self, self._connection)

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        connection.receive(data)
        out = connection.answer(self._server.limits.turn)
        if out:
            self._transport.write(out)
        if connection.more:
            self._transport.pause_reading()
            self._pump_later()
        elif self._ending:
            self._answered()

    def eof_received(self) -> bool:
        """The client has sent its last. It still gets every reply: True keeps the write side open until then."""
        self._eof = True
        self._pump()
        return not self._transport.is_closing()

    def pause_writing(self) -> None:
        self._blocked = True
        self._transport.pause_reading()
        self._watch()

    def resume_writing(self) -> None:
        self._blocked = False
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None
        self._pump_later()

    def drain(self) -> None:
        """The daemon is going down: close once all that the client has sent is answered."""
        self._ending = True
        if not self._pumping and not self._transport.is_closing():
            self._answered()

    def abort(self) -> None:
        self._transport.abort()

    def _pump_later(self) -> None:
        if not self._pumping:
            self._pumping = True
            self._server.loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._pumping = False
        self._pump()

    def _pump(self) -> None:
        """Answer what has been read already, one turn's worth."""
        if self._transport.is_closing() or self._blocked:
            return
        until = perf_counter() + TURN
        while True:
            out = self._connection.answer(self._server.limits.turn)
            if out:
                self._transport.write(out)
            if not self._connection.more or self._blocked or perf_counter() >= until:
                break
        if self._connection.more:
            self._pump_later()
        else:
            self._answered()

    def _answered(self) -> None:
        """All that was read is answered: read on, or close if that was all."""
        if self._blocked:
            return
        if self._eof:
            self._transport.write(self._connection.finish())
            self._transport.close()
        elif self._ending and not self._connection.partial and not _unread(self._transport):
            self._transport.close()
        else:
            self._transport.resume_reading()

    def _watch(self) -> None:
        """Drop the client if what waits for it has not shrunk when the grace is over; else look again later."""
        unread = self._transport.get_write_buffer_size()
        if self._stalled and unread >= self._unread:
            log.warning("dropped a client that has not read for %g s (%d bytes wait)", self._server.limits.grace, unread)
            self.abort()
            return
        self._unread = unread
        self._stalled = self._server.loop.call_later(self._server.limits.grace, self._watch)


def _unread(transport: asyncio.Transport) -> int:
    """How many bytes the client has sent that have not been read yet."""
    found: bytes = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.FIONREAD, b"\0" * 4)
    return int(struct.unpack("i", found)[0])


class Server:
    """The clients of one daemon."""

    def __init__(self, service: Service, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self.service = service
        self.limits = limits
        self.loop = loop
        self.clients: set[Client] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    def protocol(self) -> Client:
        return Client(self)

    def admit(self, client: Client) -> bool:
        """Count a new client in; False if there are too many."""
        if len(self.clients) >= self.limits.connections:
            return False
        self.clients.add(client)
        self.service.connections = len(self.clients)
        self._empty.clear()
        return True

    def leave(self, client: Client, connection: Connection) -> None:
        self.service.requests += connection.requests
        self.service.open.discard(connection)
        self.clients.discard(client)
        self.service.connections = len(self.clients)
        if not self.clients:
            self._empty.set()

    async def drain(self, seconds: float) -> None:
        """Let every client have its answers, then close; after `seconds` cut the rest off."""
        for _ in range(3):  # a few turns, so that requests already in the sockets are read and answered
            await asyncio.sleep(0)
        for client in list(self.clients):
            client.drain()
        try:
            await asyncio.wait_for(self._empty.wait(), seconds)
        except TimeoutError:
            log.warning("%d clients had to be cut off", len(self.clients))
            for client in list(self.clients):
                client.abort()
            await asyncio.sleep(0)
