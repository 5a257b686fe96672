"""Taking connections: as many as the limits allow; whoever comes beyond them is told so and let go.

The loop's own servers do without the telling, and one that has no file descriptor left may turn in circles until there
is one again. Source: accept(2), and its advice on EMFILE.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress
from typing import Any

from fkd.errors import Overloaded
from fkd.server import Server
from fkd.wire.jsonrpc import error_reply

log = logging.getLogger("fkd")

PAUSE = 0.1  # seconds without accepting when there is nothing left to accept with
CALM = 0.9  # the share of connections at which a crowd is over: one that wavers at the limit is still the same


class Acceptor:
    """Accepts from a listening socket for a server, one caller in each turn of the loop, so that others have theirs."""

    def __init__(self, listening: socket.socket, server: Server) -> None:
        self._listening = listening
        self._server = server
        self._service = server.service
        self._loop = server.loop
        self._opening: set[asyncio.Task[Any]] = set()
        self._reserve: int | None = None  # a descriptor to give up for one who must be told that there are none
        self._crowded = False
        self._refused = 0  # in the last crowd
        self._calm = 0.0  # how many connections are no crowd any more
        self._pause: asyncio.TimerHandle | None = None
        self._resume()

    def close(self) -> None:
        """Accept no more. The listening socket stays open."""
        if self._pause:
            self._pause.cancel()
        self._loop.remove_reader(self._listening)
        self._give_up_reserve()

    def _resume(self) -> None:
        self._pause = None
        self._take_reserve()
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        try:
            caller, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as e:
            self._turn_away(e)
            return
        limit = self._server.limits.connections
        if self._service.connections >= limit:
            self._refuse(caller, Overloaded(f"{limit} connections are open, which is the limit; try again later", limit=limit))
        else:
            self._take(caller)

    def _take(self, caller: socket.socket) -> None:
        if self._crowded and self._service.connections <= self._calm:
            log.info("callers are taken again; %d were refused", self._refused)
            self._crowded = False
        self._server.enter()
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._server.protocol, caller))
        self._opening.add(task)
        task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[Any]) -> None:
        self._opening.discard(task)
        if not task.cancelled() and (fault := task.exception()):  # the kernel watches no more sockets for us
            log.warning("a connection could not be opened: %s", fault)
            self._server.leave()

    def _turn_away(self, lack: OSError) -> None:
        """There is no descriptor left for a caller: in place of the reserve the first in the queue is told so; else pause."""
        self._give_up_reserve()
        why = f"the daemon can open no further connection ({lack.strerror}); try again later"
        try:
            caller, _ = self._listening.accept()
        except OSError:
            self._crowd(why)
            self._loop.remove_reader(self._listening)
            self._pause = self._loop.call_later(PAUSE, self._resume)
        else:
            self._refuse(caller, Overloaded(why, reason="no-descriptors", limit=self._service.connections))
        self._take_reserve()

    def _refuse(self, caller: socket.socket, error: Overloaded) -> None:
        """Say why, as far as the caller's socket takes it at once, and hang up."""
        with caller, suppress(OSError):
            caller.send(error_reply(error, b"null"), socket.MSG_DONTWAIT)
        self._service.metrics.refused += 1
        self._crowd(error.message)
        self._refused += 1

    def _crowd(self, why: str) -> None:
        """Say once what goes on until further notice."""
        if not self._crowded:
            self._crowded, self._refused, self._calm = True, 0, CALM * self._service.connections
            log.warning("callers are refused: %s", why)

    def _take_reserve(self) -> None:
        if self._reserve is None:
            with suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _give_up_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
