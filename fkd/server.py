"""The asyncio shell round a Connection: one read -> one write, and what to do when a client does not read.

One call stack a request: data_received -> Connection -> framing -> message -> dispatch -> Robot -> kernel ->
reply -> write. No task, future, queue or closure a request.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import select
import struct
import termios
from collections import deque
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from fkd.dispatch import call
from fkd.metrics import OTHER
from fkd.service import Service, Session
from fkd.wire.connection import Connection
from fkd.wire.framing import MAX_MESSAGE

log = logging.getLogger("fkd")

TURN = 0.1e-3  # seconds that one client may hold the loop, but for a single step that takes longer


@dataclass(frozen=True)
class Limits:
    """What one daemon grants its clients."""

    message: int = MAX_MESSAGE  # bytes of one request
    connections: int = 1024  # the usual limit on open files
    # Bytes of replies (and 64 for each message) between two looks at the clock; TURN says when others get theirs.
    turn: int = 4 << 10
    unread: int = 256 << 10  # bytes of replies that may wait for a client before its requests are no longer read
    unread_in_all: int = 128 << 20  # bytes of replies that may wait for all clients before the slowest is dropped
    grace: float = 30.0  # seconds without any progress after which a client that does not read is dropped


class Client(asyncio.Protocol):
    """One connection's protocol."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._session = Session(server.service)
        self._connection = Connection(partial(call, self._session), max_message=server.limits.message, failed=server.failed)
        self._transport: asyncio.Transport
        self._blocked = False  # the client does not read; so neither do we
        self._eof = False  # the client has sent its last
        self._ending = False  # the daemon is going down
        self._pumping = False  # a further turn is scheduled, or something is waited for
        self._stalled: asyncio.TimerHandle | None = None
        self._unread = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._session.socket = transport.get_extra_info("socket")
        self._transport.set_write_buffer_limits(high=self._server.limits.unread)
        self._server.clients.add(self)
        if self._server.draining:
            self.drain()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stalled:
            self._stalled.cancel()
        self._connection.close()
        self._server.clients.discard(self)
        self._server.leave()

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        connection.receive(data)
        out = connection.answer(self._server.limits.turn)
        if out:
            self._transport.write(out)
        if connection.more:
            self._transport.pause_reading()
            self._pump_later()
        elif self._ending or connection.lost:
            self._answered()

    def eof_received(self) -> bool:
        """The client has sent its last. It still gets every reply: True keeps the write side open until then."""
        self._eof = True
        self._connection.finish()
        self._pump()
        return not self._transport.is_closing()

    def pause_writing(self) -> None:
        self._blocked = True
        self._transport.pause_reading()
        self._watch()
        self._server.heed_unread()

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

    def drop(self) -> None:
        """Let a client go that does not read what it has asked for."""
        self._server.service.metrics.dropped += 1
        self.abort()

    @property
    def unread(self) -> int:
        """Bytes of replies that wait for a client that does not read, else 0."""
        if not self._blocked or self._transport.is_closing():
            return 0
        return self._transport.get_write_buffer_size() + self._connection.unsent

    def _pump_later(self) -> None:
        if not self._pumping:
            self._pumping = True
            if self._connection.waiting is None:
                self._server.later(self)
            else:
                self._connection.waiting.add_done_callback(lambda _: self._server.later(self))

    def turn(self) -> None:
        """Answer what has been read already, one turn's worth."""
        self._pumping = False
        if self._connection.working and not self._transport.is_closing() and _hung_up(self._transport):
            self.abort()  # reading is paused while work is done, and so the end would not be seen
        self._pump()

    def _pump(self) -> None:
        if self._transport.is_closing() or self._blocked or self._pumping:
            return
        until = perf_counter() + TURN
        while True:
            out = self._connection.answer(self._server.limits.turn)
            if out:
                self._transport.write(out)
            if not self._connection.more or self._blocked or self._connection.waiting or perf_counter() >= until:
                break
        if self._connection.more:
            self._pump_later()
        else:
            self._answered()

    def _answered(self) -> None:
        """All that was read is answered: read on, or close if that was all."""
        if self._blocked:
            return
        if self._eof or self._connection.lost or (self._ending and not self._connection.partial and not _unread(self._transport)):
            self._transport.close()
        else:
            self._transport.resume_reading()

    def _watch(self) -> None:
        """Drop the client if what waits for it has not shrunk when the grace is over; else look again later."""
        unread = self._transport.get_write_buffer_size()
        if self._stalled and unread >= self._unread:
            log.warning("dropped a client that has not read for %g s (%d bytes wait)", self._server.limits.grace, unread)
            self.drop()
            return
        self._unread = unread
        self._stalled = self._server.loop.call_later(self._server.limits.grace, self._watch)


def _unread(transport: asyncio.Transport) -> int:
    """How many bytes the client has sent that have not been read yet."""
    found: bytes = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.FIONREAD, b"\0" * 4)
    return int(struct.unpack("i", found)[0])


def _hung_up(transport: asyncio.Transport) -> bool:
    """Whether the client has closed its end altogether: it may still read after a half-close, but not then."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), 0)  # POLLHUP comes unasked
    return any(event & select.POLLHUP for _, event in poll.poll(0))


class Server:
    """The clients of one daemon."""

    def __init__(self, service: Service, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self.service = service
        self.limits = limits
        self.loop = loop
        self.clients: set[Client] = set()
        self.draining = False
        self.failed = service.metrics.methods[OTHER].failed
        self._turns: deque[Client] = deque()  # who waits for a turn; one is given in each turn of the loop
        self._turning = False
        self._empty = asyncio.Event()
        self._empty.set()

    def protocol(self) -> Client:
        return Client(self)

    def enter(self) -> None:
        """Count a connection that is about to be opened."""
        self.service.connections += 1
        self.service.metrics.accepted += 1
        self._empty.clear()

    def leave(self) -> None:
        """Count a connection that is no more."""
        self.service.connections -= 1
        if not self.service.connections:
            self._empty.set()

    def later(self, client: Client) -> None:
        """Give the client a turn when all who wait longer have had theirs, and whoever asks meanwhile an answer."""
        self._turns.append(client)
        if not self._turning:
            self._turning = True
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        client = self._turns.popleft()
        try:
            client.turn()
        finally:
            self._turning = bool(self._turns)
            if self._turning:
                self.loop.call_soon(self._turn)

    def heed_unread(self) -> None:
        """Drop who has the most replies waiting, where those of all take too much memory."""
        while sum(c.unread for c in self.clients) > self.limits.unread_in_all:
            worst = max(self.clients, key=lambda c: c.unread)
            log.warning("dropped a client that reads too slowly: %d bytes wait, and too much for all", worst.unread)
            worst.drop()

    async def drain(self, seconds: float) -> None:
        """Let every client have its answers, then close; after `seconds` cut the rest off."""
        self.draining = True
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
