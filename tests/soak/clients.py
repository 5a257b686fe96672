"""Clients that behave well: whatever the daemon goes through, each answer that they get is right, and each end has a reason."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bank import request
from fkclient import BadReply, Client, ConnectionLost, FkError, ModelChanged, NoDaemon, RpcError
from stream import PATIENCE, Stream
from world import World


def pipelined(world: World, rng: random.Random) -> None:
    """Many questions at once, on connections that last a while."""

    def act(stream: Stream) -> None:
        for _ in range(rng.choice((5, 50, 500))):
            if world.stop.is_set():
                return
            world.ask("pipelined", stream, world.bank.block(rng, rng.choice((1, 10, 100))))

    while not world.stop.is_set():
        world.connection("pipelined", act)


def headed(world: World, rng: random.Random) -> None:
    """The same under Content-Length headers."""

    def act(stream: Stream) -> None:
        for _ in range(rng.choice((5, 50))):
            if world.stop.is_set():
                return
            world.ask("headed", stream, world.bank.block(rng, rng.choice((1, 10, 50)), headed=True))

    while not world.stop.is_set():
        world.connection("headed", act, headed=True)


def pinned(world: World, rng: random.Random) -> None:
    """Many questions for one robot's answers alone, or -32012."""
    line = request("pin", [world.home]) + b"\n"

    def act(stream: Stream) -> None:
        stream.exchange(line, 1)
        for _ in range(50):
            if world.stop.is_set():
                return
            world.ask("pinned", stream, world.bank.block(rng, rng.choice((1, 10, 50)), world.home))

    while not world.stop.is_set():
        world.connection("pinned", act)


def verbs(world: World, rng: random.Random) -> None:
    """One call at a time by the client library, which tries a second time by itself."""
    robots = world.bank.robots
    first = robots[world.home]
    since = time.monotonic()
    with Client(world.supervisor.path, timeout=PATIENCE) as client:
        while not world.stop.is_set():
            q = [rng.uniform(-2, 2) for _ in range(first.dof)]
            link = rng.choice(first.links)
            calls: list[tuple[Callable[[], Any], list[Any]]] = [
                (partial(client.fk, q), [r.pose(q) for r in robots.values()]),
                (partial(client.fk, q, links=link), [r.poses(q, (link,))[link] for r in robots.values()]),
                (partial(client.fk_batch, [q, q]), [{r.model.tip: [r.pose(q)] * 2} for r in robots.values()]),
                (partial(client.jacobian, q), [r.jacobian_rows(q) for r in robots.values()]),
                (lambda: stamped(client.fk(q, stamp=True)), [(d, {r.model.tip: r.pose(q)}) for d, r in robots.items()]),  # noqa: B023
            ]
            since = _call(world, since, "fkclient", *rng.choice(calls))


def pinned_verbs(world: World, rng: random.Random) -> None:
    """The same, bound to one robot: its answer, or ModelChanged."""
    robot = world.bank.robots[world.home]
    since = time.monotonic()
    with Client(world.supervisor.path, timeout=PATIENCE, expect_digest=world.home) as client:
        while not world.stop.is_set():
            q = [rng.uniform(-2, 2) for _ in range(robot.dof)]
            since = _call(world, since, "fkclient, pinned", partial(client.fk, q), [robot.pose(q)])


def stamped(found: dict[str, Any]) -> tuple[str, Any]:
    """Whose answer it says that it is, and the answer."""
    return found["digest"], found["poses"]


def _call(world: World, since: float, who: str, verb: Callable[[], Any], right: list[Any]) -> float:
    """One call: its answer is among those that are right, or its error has a reason. since: when the last was made -> now."""
    begun = time.monotonic()
    book = world.book
    try:
        found = verb()
    except ModelChanged as e:
        mine = e.data["expected"] == world.home and e.data["got"] in world.bank.robots and "pinned" in who
        book.check(f"{who}: -32012", 1, [] if mine else [f"{e!r}"])
    except ConnectionLost as e:  # twice, so there must be two reasons
        hows = world.supervisor.asked(since, time.monotonic())
        book.end(who, f"ConnectionLost after {' and '.join(hows[:2])}") if len(hows) > 1 else book.unclear(who, f"{e}; {hows}")
    except NoDaemon:
        book.refuse(who)
    except RpcError as e:
        crowd = e.code == -32030 and world.crowded(begun)
        book.end(who, "refused with -32030: too many connections") if crowd else book.unclear(who, str(e))
    except BadReply as e:
        book.check(who, 1, [str(e)])
    except FkError as e:
        book.unclear(who, f"{type(e).__name__}: {e}")
    else:
        book.check(who, 1, [] if found in right else [f"got {found!r:.300}, expected {' or '.join(f'{r!r:.300}' for r in right)}"])
    return begun


CLIENTS = (pipelined, headed, pinned, verbs, pinned_verbs)
