"""Reloads, one at a time: build the new model beside the old one, swap one reference, tell whoever should know."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fkd.errors import BundleRefused, FkdError, Overloaded, cut
from fkd.notify import Notifier
from fkd.rebuild import Wanted, rebuild
from fkd.robot import Robot
from fkd.service import Service

log = logging.getLogger("fkd")

MAX_WAITING = 8  # reloads that may wait for the one under way
Outcome = tuple[str, int]  # the digest and the generation that serve
LONGEST = 1000  # characters of a name or message in the history


class Reloader:
    """What SIGHUP and the method `reload` do."""

    def __init__(
        self, service: Service, wanted: Wanted, notifier: Notifier, build: Callable[[Wanted], Awaitable[Robot]] = rebuild
    ) -> None:
        self._service = service
        self._wanted = wanted
        self._notifier = notifier
        self._build = build
        self._one_at_a_time = asyncio.Lock()
        self._waiting: set[asyncio.Task[Outcome]] = set()

    def __call__(self, bundle: str | None = None) -> asyncio.Task[Outcome]:
        """Start a reload; a task that ends when the new robot serves, or with the reason why the old one still does.

        bundle: another file, which further reloads then read too. Raises Overloaded.
        """
        if len(self._waiting) > MAX_WAITING:
            raise Overloaded(f"{MAX_WAITING} reloads wait already", limit=MAX_WAITING)
        task = asyncio.get_running_loop().create_task(self._reload(bundle))
        self._waiting.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        self._waiting.discard(task)
        if not task.cancelled():
            task.exception()  # has been logged; nobody need have waited for it

    async def _reload(self, bundle: str | None) -> Outcome:
        async with self._one_at_a_time:
            wanted = self._wanted if bundle is None else self._wanted._replace(bundle=bundle)
            self._notifier.reloading()
            started = time.monotonic()
            entry: dict[str, Any] = {"unix_time": round(time.time(), 3), "bundle": cut(wanted.bundle, LONGEST)}
            try:
                robot = await self._built(wanted)
            except FkdError as e:
                entry |= {"outcome": "refused", "reason": e.reason, "message": cut(e.message, LONGEST)}
                log.error("reload refused: %s; still serving %s", e, self._serving)
                self._notifier.ready(f"serving {self._serving}; the last reload was refused: {e}")
                raise
            else:
                self._wanted = wanted
                self._service.replace(robot)
                # The old robot goes with its last reference. What is new lives as long as it: out of the collector's sight.
                gc.collect()
                gc.freeze()
                entry |= {"outcome": "serving", "digest": robot.digest}
                log.info("reloaded in %.2f s: serving %s", time.monotonic() - started, self._serving)
                self._notifier.ready(f"serving {self._serving}")
                return robot.digest, self._service.generation
            finally:
                entry |= {"seconds": round(time.monotonic() - started, 4), "generation": self._service.generation}
                self._service.metrics.reloads.append(entry)

    async def _built(self, wanted: Wanted) -> Robot:
        """What is built; whatever goes wrong, a refusal says so. Raises FkdError."""
        try:
            return await self._build(wanted)
        except FkdError:
            raise
        except Exception as e:  # no thread, no memory, a fault of ours: the old robot serves on
            log.exception("the reload failed")
            raise BundleRefused(f"cannot read {wanted.bundle}: {type(e).__name__}: {e}", reason="reload-failed") from e

    @property
    def _serving(self) -> str:
        return self._service.describe()
