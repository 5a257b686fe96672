"""What a method is given: the service that all callers share, and the session of the one who asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Protocol

from fkd.errors import ModelChanged
from fkd.metrics import Metrics
from fkd.peer import Credentials, Socket, credentials
from fkd.robot import Robot
from fkd.wire.connection import Result


class Pending(Protocol):
    """A result that others prepare: an asyncio or a concurrent future."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...
    def done(self) -> bool: ...
    def result(self) -> Any: ...


# A method that takes long: each step to the next `yield` is some 0.2 ms of work, after which other clients have their
# turn. What it yields is None to go on as soon as may be, or what must be done first.
Work = Generator[Pending | None, None, Result]


class Service:
    """The robot that serves now, and what the daemon knows of itself."""

    def __init__(self, robot: Robot, metrics: Metrics, *, generation: int = 1) -> None:
        self.robot = robot
        self.generation = generation
        self.started = time.monotonic()
        self.started_unix_time = round(time.time(), 3)
        self.connections = 0
        self.metrics = metrics
        self.reload: Callable[[str | None], Pending] | None = None  # the daemon's, where there is one
        self.may_reload: Callable[[Credentials], bool] = lambda _: False

    def describe(self) -> str:
        """What serves, in a few words for logs and the service manager."""
        return f"{self.robot.name} ({self.robot.model.trust}, digest {self.robot.digest[:12]}, generation {self.generation})"

    def replace(self, robot: Robot) -> None:
        """Serve another robot from the next request on."""
        self.robot = robot
        self.generation += 1


class Session:
    """One caller's view of the service."""

    __slots__ = ("pinned", "service", "socket")

    def __init__(self, service: Service) -> None:
        self.service = service
        self.socket: Socket | None = None  # the caller's end, where there is one
        self.pinned: str | None = None  # the digest of the only model that this caller takes answers from

    @property
    def robot(self) -> Robot:
        return self.service.robot

    def credentials(self) -> Credentials | None:
        """Who the caller is; None where that cannot be said, or no longer."""
        try:
            return None if self.socket is None else credentials(self.socket)
        except OSError:
            return None

    def check_pin(self) -> None:
        """Raise ModelChanged if the model that serves is not the one that this caller is bound to."""
        robot = self.service.robot
        if self.pinned is not None and self.pinned != robot.digest:
            raise ModelChanged(
                f"this connection is pinned to the model {self.pinned:.12}, and the daemon now serves {robot.digest:.12} "
                f"(`{robot.name}`); check that it is right, then `pin` it",
                expected=self.pinned, got=robot.digest,
            )  # fmt: skip
