"""Clients that behave badly, each for a few seconds: whatever they do, what they are answered must be right."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

from bank import Block, block_of, request
from stream import Ended, Stream
from world import Gone, World

LIMIT = 64  # connections that the daemon takes
GRACE = 2.0  # seconds that it gives those who do not read
UNREAD = 8 << 20  # bytes of answers that may wait for all of them
GLUTTONS = 6
ROWS = 1500  # of all links, that each of them asks for: some 2.4 MB
PING = request("ping") + b"\n"
PONG = b'{"jsonrpc":"2.0","result":"pong","id":0}'


def slow_reader(world: World, rng: random.Random) -> None:
    """Takes seconds to read what it has asked for, but reads."""
    block = world.bank.block(rng, 3000)
    world.connection("slow reader", lambda stream: world.ask("slow reader", stream, block, pace=0.1))


def never_reader(world: World, rng: random.Random) -> None:
    """Asks for as long as anybody listens, and reads nothing of it."""
    block, until = world.bank.block(rng, 5000), time.monotonic() + rng.uniform(1, 4 * GRACE)
    world.connection("never reader", lambda stream: _sit(world, stream, "never reader", block, until))


def gluttons(world: World, rng: random.Random) -> None:
    """Several ask at once for megabytes each, and read nothing of it: more than may wait for all."""
    q = [[rng.uniform(-2, 2)] * next(iter(world.bank.robots.values())).dof] * ROWS
    block = block_of([request("compute_fk_batch", {"q": q, "links": "all"}) + b"\n"], world.bank.robots.values())

    until = time.monotonic() + 3 * GRACE

    def act(others: int, stream: Stream) -> str:
        stream.send(block.data)
        if others:
            world.connection("glutton", partial(act, others - 1))
        return _sit(world, stream, "glutton", Block(b"", block.answers), until)

    world.connection("glutton", partial(act, GLUTTONS - 1))


def _sit(world: World, stream: Stream, who: str, block: Block, until: float) -> str:
    """Send what is taken and read nothing, until the daemon closes or the time is over."""
    left = block.data
    while not world.stop.is_set() and time.monotonic() < until:
        left = left[stream.push(left) :]
        if world.wait(stream, 0.1):
            end = stream.rest()
            world.book.check(who, len(end.lines), block.wrong(end.lines, end.rest))
            world.explain(who, stream, end, excuse="dropped for not reading", cut=True)
            raise Gone
    return "closed by the client, unread"


def half_message(world: World, rng: random.Random) -> None:
    """Stops amid a question; then goes, or says the rest after all."""
    block = world.bank.block(rng, rng.choice((1, 50)))
    cut = rng.randrange(len(block.data))

    def act(stream: Stream) -> str | None:
        stream.send(block.data[:cut])
        if not world.wait(stream, rng.uniform(0, 2.5)) and rng.random() < 0.5:
            return "closed by the client, amid a question"
        world.ask("half message", stream, Block(block.data[cut:], block.answers))
        return None

    world.connection("half message", act)


def trickle(world: World, rng: random.Random) -> None:
    """Sends byte by byte."""
    block = world.bank.block(rng, 3)

    def act(stream: Stream) -> None:
        for i in range(min(len(block.data), 3000)):
            stream.send(block.data[i : i + 1])
        world.ask("trickle", stream, Block(block.data[3000:], block.answers))

    world.connection("trickle", act)


def garbage(world: World, rng: random.Random) -> None:
    """Sends noise and damaged questions among good ones."""
    plain = [line for line in world.bank.questions if len(line) < 2000 and b"reload" not in line and b"compute_ik" not in line]
    lines = []
    for _ in range(20):
        line = bytearray(rng.choice(plain)) if rng.random() < 0.7 else bytearray(rng.randbytes(rng.randrange(1, 2000)) + b"\n")
        for _ in range(rng.choice((0, 1, 2, 5))):
            line[rng.randrange(len(line))] = rng.choice((rng.randrange(256), *b'{}[]",:\\0'))
        lines.append(bytes(line))
    block = block_of([b"".join(lines) + b"\n"], world.bank.robots.values())
    world.connection("garbage", lambda stream: world.ask("garbage", stream, block))


def huge(world: World, rng: random.Random) -> None:
    """Sends messages about as long as may be, and longer, between good ones."""
    fill = rng.choice((b" ", b"9", b"[", b'"')) * rng.choice(((1 << 20) - 100, (1 << 20) + 1, 3 << 20))
    line = b'{"jsonrpc":"2.0","method":"ping","params":[%b],"id":7}\n' % fill
    block = block_of([line, rng.choice(world.bank.questions), line, PING], world.bank.robots.values())
    world.connection("huge", lambda stream: world.ask("huge", stream, block))


def half_closed(world: World, rng: random.Random) -> None:
    """Says that it has sent its last before it reads; has the last newline left out at times."""
    block = world.bank.block(rng, rng.choice((1, 20, 200)))  # so few that the answers find room until they are read

    def act(stream: Stream) -> None:
        stream.send(block.data.rstrip(b"\n") if rng.random() < 0.5 else block.data)
        stream.finish()
        end = stream.rest()
        world.book.check("half closed", len(end.lines), block.wrong(end.lines, end.rest))
        whole = len(end.lines) == block.size and not end.rest
        world.explain("half closed", stream, end, excuse="closed by the daemon after the last answer" if whole else "")
        raise Gone

    world.connection("half closed", act)


def abrupt(world: World, rng: random.Random) -> None:
    """Leaves amid its answers."""
    block = world.bank.block(rng, 500)

    def act(stream: Stream) -> str:
        stream.push(block.data)
        return "closed by the client, amid the answers"

    world.connection("abrupt", act)


def idle(world: World, rng: random.Random) -> None:
    """Is silent for a while before it asks."""
    block = world.bank.block(rng, 5)

    def act(stream: Stream) -> None:
        world.wait(stream, rng.uniform(0.5, 4.0))
        world.ask("idle", stream, block)

    world.connection("idle", act)


def churn(world: World, rng: random.Random) -> None:
    """Many short connections, one after the other."""
    for _ in range(50):
        block = world.bank.block(rng, 1)
        world.connection("churn", lambda stream, block=block: world.ask("churn", stream, block))  # type: ignore[misc]


def flood(world: World, rng: random.Random) -> None:
    """Connects far more often at once than the daemon takes; each asks one thing."""
    key = object()
    world.crowd(key, float("inf"))
    streams: list[Stream] = []
    for _ in range(rng.choice((LIMIT + 20, 300, 900))):
        try:
            streams.append(Stream(world.supervisor.path))
        except (ConnectionRefusedError, FileNotFoundError):
            world.book.refuse("flood")
    for stream in streams:
        stream.send(PING)
    for stream in streams:
        _one_of_flood(world, stream)
    for stream in streams:
        stream.close()
    # It is over once a daemon has seen all of them off.
    over: list[bool] = []
    while not any(over) and not world.stop.is_set():
        world.connection("flood", lambda stream: over.append(stream.status["connections"] < LIMIT // 2))
    world.crowd(key, time.monotonic())


def _one_of_flood(world: World, stream: Stream) -> None:
    try:
        line = stream.exchange(b"", 1)[0]
    except Ended as end:
        world.explain("flood", stream, end)
        return
    if line == PONG:
        world.book.check("flood", 1, [])
        world.book.end("flood", "closed by the client")
    elif b'"code":-32030,' in line:
        world.book.end("flood", "refused with -32030: too many connections")
    else:
        world.book.check("flood", 1, [f"got {line[:300]!r}"])


# How often each comes, beside the others.
VISITORS: dict[Callable[[World, random.Random], None], int] = {
    slow_reader: 3, never_reader: 4, gluttons: 1, half_message: 3, trickle: 3, garbage: 3, huge: 3, half_closed: 3, abrupt: 3, idle: 3,
    churn: 3, flood: 1,
}  # fmt: skip


def limits() -> str:
    """What the daemon is given in place of its own limits."""
    return f"connections={LIMIT}, grace={GRACE}, unread_in_all={UNREAD}"


def visit(world: World, rng: random.Random) -> None:
    """One visitor after the other, until it is time to stop."""
    while not world.stop.is_set():
        visitor = rng.choices(list(VISITORS), list(VISITORS.values()))[0]
        world.book.throw(visitor.__name__.replace("_", " "))
        visitor(world, rng)

