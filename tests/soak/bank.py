"""Questions for a daemon, and what it must answer, to the byte: the same robots, asked in this process."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from functools import partial
from math import degrees
from typing import Any, NamedTuple

from fkd.dispatch import call, serving
from fkd.errors import InternalError
from fkd.limits import limits
from fkd.robot import Robot
from fkd.service import Session
from fkd.wire.connection import Connection
from fkd.wire.framing import MAX_MESSAGE

STRANGER = "0" * 64  # the digest of no robot
PLAIN = 200  # questions that are a pose by position, as controllers ask
LINES = 3  # of an answer under a header: the header, an empty line, and the answer
WEIGHT = 20  # how much more often one of them is asked than any other

# What no daemon may take, with an answer of its own for each. %d is the question's number.
BAD = [
    b"what is this?", b'{"jsonrpc":"2.0","method":"compute_fk","params":[0,', b"\xff\xfe\x00", b"[]", b"[1,%d]", b"%d", b'"%d"', b"nul",
    b'{"jsonrpc":"1.0","method":"ping","id":%d}', b'{"jsonrpc":"2.0","id":%d}', b'{"jsonrpc":"2.0","method":5,"id":%d}',
    b'{"jsonrpc":"2.0","method":"ping","id":{"a":%d}}', b'{"jsonrpc":"2.0","method":"ping","id":%d,"id":1}',
    b'{"jsonrpc":"2.0","method":"compute_fq","params":[],"id":%d}', b'{"jsonrpc":"2.0","method":"ping","params":[1],"id":%d}',
    b'{"jsonrpc":"2.0","method":"compute_fk","params":[0,0],"id":%d}', b'{"jsonrpc":"2.0","method":"compute_fk","params":[0,0,"0",0,0,0],"id":%d}',
    b'{"jsonrpc":"2.0","method":"compute_fk","params":[0,0,true,0,0,0],"id":%d}', b'{"jsonrpc":"2.0","method":"compute_fk","params":[NaN],"id":%d}',
    b'{"jsonrpc":"2.0","method":"compute_fk","params":[0,1e999,0,0,0,0],"id":%d}', b'{"jsonrpc":"2.0","method":"compute_fk","params":{"q":{"j":1}},"id":%d}',
    b'{"jsonrpc":"2.0","method":"compute_fk","params":{"q":[],"lnks":1},"id":%d}', b'{"jsonrpc":"2.0","method":"compute_fk","params":"q","id":%d}',
    b'{"jsonrpc":"2.0","method":"decompose","params":{"matrix":[2,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1]},"id":%d}', b'{"jsonrpc":"2.0","method":"decompose","id":%d}',
    b'{"jsonrpc":"2.0","method":"compute_ik","params":{"pose":[1]},"id":%d}', b'{"jsonrpc":"2.0","method":"pin","params":["%d"],"id":1}',
    b'{"jsonrpc":"2.0","method":"ping","params":' + b"[" * 80 + b"]" * 80 + b',"id":%d}', b'{"jsonrpc":"2.0","method":"dh","params":{"link":"bse"},"id":%d}',
    b'{"jsonrpc":"2.0","method":"reload","params":{"bundle":"here.zip"},"id":%d}', b"[" + b",".join([b"0"] * 1001) + b"]",
]  # fmt: skip


class Block(NamedTuple):
    """Some questions as they are sent, and the lines that come back, by who serves."""

    data: bytes
    answers: dict[str, list[bytes]]  # by the digest of the robot that serves

    @property
    def size(self) -> int:
        """How many lines come back."""
        return len(next(iter(self.answers.values())))

    def wrong(self, lines: Sequence[bytes], rest: bytes = b"") -> list[str]:
        """What is wrong with these answers to the block's first questions, and with `rest`, the start of the next."""
        if not rest and any(lines == right for right in self.answers.values()):
            return []
        rights = list(zip(*self.answers.values(), strict=True))
        wrong = [self._expected(got, right) for got, right in zip(lines, rights, strict=False) if got not in right]
        following = rights[len(lines)] if len(lines) < self.size else ()
        if not any(right.startswith(rest) for right in (*following, b"")):
            wrong.append(self._expected(rest, following))
        return wrong

    @staticmethod
    def _expected(got: bytes, rights: Sequence[bytes]) -> str:
        return f"got {got[:300]!r}, expected {' or '.join(repr(right[:300]) for right in rights) or 'nothing'}"


class Bank:
    """Questions that fit all of some robots, and the answers of each."""

    def __init__(self, robots: Sequence[Robot], seed: int) -> None:
        """robots: alike in their joints and links, not in their poses."""
        self.robots = {robot.digest: robot for robot in robots}
        self.questions = list(questions(robots[0], random.Random(seed)))
        self._answers: dict[tuple[str | None, bool], dict[str, list[bytes]]] = {}

    def answers(self, pinned: str | None = None, headed: bool = False) -> dict[str, list[bytes]]:
        """What each robot answers to all questions, for a caller who is pinned to this digest."""
        key = pinned, headed
        if key not in self._answers:
            self._answers[key] = {d: answers(robot, self.questions, pinned, headed) for d, robot in self.robots.items()}
        return self._answers[key]

    def block(self, rng: random.Random, size: int, pinned: str | None = None, headed: bool = False) -> Block:
        """`size` questions, for a caller who is pinned to this digest; under headers, or as lines."""
        weights = [WEIGHT] * PLAIN + [1] * (len(self.questions) - PLAIN)
        chosen = rng.choices(range(len(self.questions)), weights, k=size)
        lines = [self.questions[i] for i in chosen]
        found = {d: [line for i in chosen if a[i] for line in a[i].split(b"\n")] for d, a in self.answers(pinned, headed).items()}
        return Block(b"".join(map(framed, lines) if headed else lines), found)


def block_of(lines: Sequence[bytes], robots: Iterable[Robot]) -> Block:
    """These lines, whatever they are, as a block for a caller who is not pinned."""
    found = {robot.digest: [line for a in answers(robot, lines) if a for line in a.split(b"\n")] for robot in robots}
    return Block(b"".join(lines), found)


def framed(line: bytes) -> bytes:
    """A line as it is sent under a header. What comes back is LINES lines."""
    body = line.removesuffix(b"\n")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def answers(robot: Robot, asked: Sequence[bytes], pinned: str | None = None, headed: bool = False) -> list[bytes]:
    """What this robot answers to each of these lines, without the last newline; b"" for nothing."""
    session = Session(serving(robot))
    session.pinned = pinned
    connection = Connection(partial(call, session))
    if not headed:
        connection.receive(b"\n")  # the first bytes tell how messages are parted, and it may be noise that comes first
    found = []
    for line in asked:
        connection.receive(framed(line) if headed else line)
        out = connection.answer(1)
        while connection.more:
            out += connection.answer(1)
        if b'"code":%d,' % InternalError.code in out:
            raise AssertionError(f"an internal error on {line[:300]!r}")
        found.append(out.removesuffix(b"\n"))
    return found


def questions(robot: Robot, rng: random.Random) -> list[bytes]:
    """Of every method and of every kind of error, each with an id of its own; first PLAIN poses by position."""
    asked = [request("compute_fk", drawn(robot, rng)) for _ in range(PLAIN)]
    asked += [request("compute_fk", named(robot, rng)) for _ in range(50)]
    asked += [request("decompose", drawn(robot, rng)) for _ in range(20)]
    asked += [request("decompose", {"q": drawn(robot, rng), "link": rng.choice(robot.links)}) for _ in range(5)]
    asked += [request("decompose", {"matrix": robot.pose(drawn(robot, rng))}) for _ in range(5)]
    asked += [request("compute_jacobian", drawn(robot, rng)) for _ in range(20)]
    asked += [request("compute_jacobian", {"q": drawn(robot, rng), "frame": "tip", "tool": tool(rng)}) for _ in range(10)]
    for rows in (1, 2, 5, 30, 200):
        asked.append(request("compute_fk_batch", {**named(robot, rng), "q": [drawn(robot, rng) for _ in range(rows)]}))
    asked += [request("compute_ik", aim(robot, rng, **more)) for more in (
        {}, {"method": "numeric"}, {"solutions": "all"}, {"solutions": "nearest", "seed": drawn(robot, rng)}, {"position_only": True})]
    asked.append(request("compute_ik", {"pose": {"xyz": [90, 0, 0], "rpy": [0, 0, 0]}, "timeout_ms": 10000}))  # out of reach
    asked += [request("dh", {"convention": c}) for c in ("standard", "modified")]
    asked += [request("ping"), request("check", [])]
    asked += [line.replace(b"%d", b"%d" % n) for n, line in enumerate(BAD)]
    asked.append(b" " * (MAX_MESSAGE + 1))
    for size in (1, 3, 30):
        asked.append(b"[" + b",".join(rng.choices(asked[:300], k=size)) + b"]")
    with_ids = [line.replace(b'"id":0', b'"id":' + identity(n)) for n, line in enumerate(asked)]
    silent = [line.replace(b',"id":0', b"") for line in rng.choices(asked[:300], k=10)]
    return [line + b"\n" for line in with_ids + silent]


def request(method: str, params: Any = None) -> bytes:
    """A request with the id 0, without params if they are None."""
    members = {} if params is None else {"params": params}
    return json.dumps({"jsonrpc": "2.0", "method": method, **members, "id": 0}, separators=(",", ":")).encode()


def identity(number: int) -> bytes:
    """An id that no other question has, in one of the forms that ids may have."""
    return [b"%d", b'"%d"', b"-%d", b"%d.50", b'"\\u00e9 \xc3\xa9 %d"'][number % 5] % (number + 1)


def drawn(robot: Robot, rng: random.Random) -> list[float]:
    """A q within the limits, at times all zeros."""
    lower, upper = limits(robot.model)
    within = zip(lower, upper, strict=True)
    return [0.0] * robot.dof if rng.random() < 0.05 else [rng.uniform(max(low, -7.0), min(high, 7.0)) for low, high in within]


def named(robot: Robot, rng: random.Random) -> dict[str, Any]:
    """`compute_fk` by name, with some of its options."""
    q: Any = drawn(robot, rng)
    more: dict[str, Any] = {"degrees": True} if rng.random() < 0.3 else {}
    if more:
        q = [degrees(x) for x in q]
    if rng.random() < 0.3:
        q = dict(zip(robot.joints, q, strict=True))
    options = {"links": rng.choice(["all", [robot.links[-1]], list(robot.links[1:4])]), "base": rng.choice(robot.links), "tool": tool(rng),
               "format": rng.choice(["matrix", "pose", "ros"])}  # fmt: skip
    return {"q": q, **more, **{k: v for k, v in options.items() if rng.random() < 0.5}}


def tool(rng: random.Random) -> dict[str, list[float]]:
    """T_link_tool."""
    return {"xyz": [rng.uniform(-0.2, 0.2) for _ in range(3)], "rpy": [rng.uniform(-3, 3) for _ in range(3)]}


def aim(robot: Robot, rng: random.Random, **more: Any) -> dict[str, Any]:
    """`compute_ik` of a pose within reach. No deadline: what it cuts short is another answer each time."""
    return {"pose": robot.pose(drawn(robot, rng)), "timeout_ms": 10000, **more}
