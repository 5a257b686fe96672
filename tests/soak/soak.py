"""A steady load on one daemon, every answer of which is checked to the byte against the same robot in this process.

Fails if an answer is wrong or missing, if the daemon's memory grows between the first tenth and the end, if it keeps
files open, ends, or logs a fault of its own. `make soak` runs it for two minutes, `make soak HOURS=8` over night.

    python tests/soak/soak.py [--minutes 2 | --hours 8] [--requests N] [--seed 0] [--robot BUNDLE]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bank import LINES, STRANGER, Bank, framed, request
from fkclient import Client, RpcError
from stream import Stream
from supervisor import Supervisor

import fkd
from fkd.errors import FkdError
from fkd.robot import Robot

ARM = Path(__file__).resolve().parents[1] / "robots" / "wire_arm.urdf"
GROWTH = 8 << 20  # bytes by which resident memory may differ between the first tenth and the end
RAW = 3  # connections that send many requests at once
SAMPLES = 200
SETTLING = 30.0  # seconds in which the daemon must have seen that its clients have gone
RELOADS = 60  # in the whole time, every other one of a bundle that is not there


@dataclass
class Account:
    """What was asked and what came of it. Each thread counts its own."""

    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Soak:
    """One run: threads that ask, and what they found."""

    def __init__(self, robot: Robot, path: str, seed: int) -> None:
        self.bank = Bank([robot], seed)
        self.robot, self.path, self.seed = robot, path, seed
        self.stop = threading.Event()
        self.accounts: list[Account] = []
        self._threads: list[threading.Thread] = []

    @property
    def asked(self) -> int:
        return sum(sum(a.kinds.values()) for a in self.accounts)

    @property
    def wrong(self) -> list[str]:
        return [w for a in self.accounts for w in a.wrong]

    @contextmanager
    def load(self, reload_every: float) -> Any:
        """The load runs for as long as the block does."""
        for n in range(RAW):
            self._start(self._raw, random.Random(f"{self.seed} raw {n}"))
        self._start(self._verbs, random.Random(f"{self.seed} verbs"))
        self._start(self._operator, reload_every)
        try:
            yield
        finally:
            self.stop.set()
            for thread in self._threads:
                thread.join()

    def _start(self, work: Any, *arguments: Any) -> None:
        account = Account()

        def run() -> None:
            try:
                work(account, *arguments)
            except Exception as e:  # a lost connection, a daemon that is stuck: here, each of them is a fault
                account.wrong.append(f"{work.__name__}: {type(e).__name__}: {e}")
                self.stop.set()

        self.accounts.append(account)
        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    def once(self) -> None:
        """Every question once, so that all is compiled that ever will be."""
        stream = Stream(self.path)
        for line, right in zip(self.bank.questions, self.bank.answers()[self.robot.digest], strict=True):
            stream.exchange(line, bool(right))
        stream.close()

    def _raw(self, account: Account, rng: random.Random) -> None:
        """Blocks of one to hundreds of questions, on connections that last a while; some are pinned, some speak under headers."""
        while not self.stop.is_set():
            stream = Stream(self.path)
            pinned, headed = rng.choice([None, None, self.robot.digest, STRANGER]), rng.random() < 0.25
            if pinned:
                pin = request("pin", [pinned]) + b"\n"
                stream.exchange(framed(pin) if headed else pin, LINES if headed else 1)
            for _ in range(rng.choice((1, 10, 100))):
                block = self.bank.block(rng, rng.choice((1, 1, 10, 100, 500)), pinned, headed)
                account.wrong += block.wrong(stream.exchange(block.data, block.size))
                name = "under headers" if headed else "lines"
                account.kinds[f"{name}, pinned elsewhere" if pinned == STRANGER else name] += block.size // (LINES if headed else 1)
                if account.wrong:
                    self.stop.set()
                if self.stop.is_set():
                    break
            if surplus := stream.surplus:
                account.wrong.append(f"more than was asked for: {surplus[:200]!r}")
            stream.close()

    def _verbs(self, account: Account, rng: random.Random) -> None:
        """One call at a time by the client library, compared with the Python interface."""
        robot = self.robot
        with Client(self.path, timeout=30.0) as client, Client(self.path, timeout=30.0, expect_digest=STRANGER) as stranger:
            while not self.stop.is_set():
                rows = [[rng.uniform(-2, 2) for _ in range(robot.dof)] for _ in range(3)]
                q, link = rows[0], rng.choice(robot.links)
                found = {
                    "fk": (client.fk(q), robot.fk(q).ravel().tolist()),
                    "fk by name": (client.fk(q, links=link), robot.fk(q, link).ravel().tolist()),
                    "fk batch": (client.fk_batch(rows, links=link), [robot.fk(row, link).ravel().tolist() for row in rows]),
                    "jacobian": (client.jacobian(q), robot.jacobian(q).tolist()),
                    "decompose": (client.decompose(q)["matrix"], robot.fk(q).ravel().tolist()),
                    "model": (client.model()["q"], list(robot.joints)),
                    "ping": (client.ping(), "pong"),
                    "unknown link": (failed(client.fk, q, links="nowhere"), -32001),
                    "pinned elsewhere": (failed(stranger.fk, q), -32012),
                }
                account.kinds.update(f"client: {name}" for name in found)
                account.wrong += [f"{name}: got {got!r:.300}, expected {right!r:.300}" for name, (got, right) in found.items() if got != right]

    def _operator(self, account: Account, every: float) -> None:
        """Looks at status and stats, and reloads, in turn what serves and what is not there."""
        stream = Stream(self.path)
        rounds = 0
        while not self.stop.wait(every / 10):
            for method in ("status", "stats", "model"):
                result = ask(stream, method)["result"]
                if result["digest"] != self.robot.digest:
                    account.wrong.append(f"{method}: got another robot: {result!r:.300}")
            account.kinds["operator"] += 3
            rounds += 1
            if rounds % 20 == 10:
                reply = ask(stream, "reload", {"bundle": "/nowhere/robot.zip"})
                if reply.get("error", {}).get("code") != -32040:
                    account.wrong.append(f"reload of nothing: got {reply!r:.300}")
            if rounds % 20 == 0:
                reply = ask(stream, "reload")
                if reply.get("result", {}).get("digest") != self.robot.digest:
                    account.wrong.append(f"reload: got {reply!r:.300}")
            account.kinds["reload"] += rounds % 10 == 0
        stream.close()


def ask(stream: Stream, method: str, params: Any = None) -> dict[str, Any]:
    """One request -> the whole reply."""
    reply: dict[str, Any] = json.loads(stream.exchange(request(method, params) + b"\n", 1)[0])
    return reply


def failed(verb: Any, *arguments: Any, **options: Any) -> int:
    """The code of the error that this call gives; 0 if it gives none."""
    try:
        verb(*arguments, **options)
    except RpcError as e:
        return e.code
    return 0


def resident(pid: int) -> int:
    """Bytes of the process that are in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def run(seconds: float, *, seed: int = 0, robot: Path = ARM, served: Path | None = None, requests: float = math.inf) -> list[str]:
    """Load a daemon for so long, or for so many requests; print figures -> faults.

    served: what the daemon serves, if not the robot that its answers are compared with.
    """
    with tempfile.TemporaryDirectory(prefix="fkd-soak-") as folder, Supervisor(Path(folder), served or robot) as supervisor:
        soak = Soak(fkd.load(robot), supervisor.path, seed)
        pid = supervisor.life.process.pid
        soak.once()
        idle = left = settled_files(supervisor.path, pid)
        memory = [resident(pid)]
        begun = time.monotonic()
        with soak.load(seconds / RELOADS), suppress(KeyboardInterrupt):  # what was seen until then is worth knowing
            while not soak.stop.wait(seconds / SAMPLES) and time.monotonic() < begun + seconds and soak.asked < requests:
                memory.append(resident(pid))
        took = time.monotonic() - begun
        if supervisor.life.runs:
            left = settled_files(supervisor.path, pid, idle)
        log = supervisor.log.read_text(errors="replace")
    print(f"{soak.asked} requests in {took:.0f} s, {soak.asked / took:.0f} a second: {dict(sum((a.kinds for a in soak.accounts), Counter()))}")
    faults = soak.wrong + supervisor.faults + grown(memory, idle, left)
    faults += confessed(log)
    print("\n".join(faults[:20]) if faults else "no fault: every answer right, memory flat, no file left open")
    return faults


def grown(memory: list[int], idle: int, left: int) -> list[str]:
    """Print what the daemon took at the start, in the middle and at the end -> what it should not have kept.

    memory: samples of its resident bytes; idle, left: the files that it had open without clients, before and after.
    """
    tenth = max(1, len(memory) // 10)
    halfway = len(memory) // 2
    first, middle, last = (round(median(part)) for part in (memory[:tenth], memory[halfway : halfway + tenth], memory[-tenth:]))
    print("resident memory, MiB: " + ", ".join(f"{size / 2**20:.2f} {when}" for size, when in (
        (memory[0], "idle"), (first, "in the first tenth"), (middle, "in the middle"), (last, "at the end"), (max(memory), "at most"))))
    print(f"open files without clients: {idle} before, {left} after")
    faults = [f"resident memory grew by {last - first} bytes; at most {GROWTH} may be noise"] * (last - first > GROWTH)
    return faults + [f"{left} open files without clients, where {idle} were before"] * (left > idle)


def confessed(log: str) -> list[str]:
    """The faults of its own that the daemon has logged, each with what it says about it."""
    lines = log.splitlines()
    at = [n for n, line in enumerate(lines) if "internal error" in line or "Traceback" in line]
    return ["the daemon's log: " + "\n    ".join(lines[max(n - 1, 0) : n + 30]) for n in at]


def settled_files(path: str, pid: int, expected: int = 0) -> int:
    """How many files the daemon has open when all clients but the one who asks have gone; as soon as they are as few as expected."""
    stream = Stream(path)
    until = time.monotonic() + SETTLING
    while True:
        alone = ask(stream, "status")["result"]["connections"] == 1
        found = open_files(pid)
        if (alone and found <= (expected or found)) or time.monotonic() > until:
            stream.close()
            return found


def interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=2.0)
    p.add_argument("--hours", type=float, default=0.0, help="in place of the minutes")
    p.add_argument("--requests", type=float, default=math.inf, help="stop after so many")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--robot", type=Path, default=ARM, help="of six joints, for the questions are made for these")
    options = p.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    try:
        faults = run(60 * (60 * options.hours or options.minutes), seed=options.seed, robot=options.robot, requests=options.requests)
    except KeyboardInterrupt:
        return 130
    except FkdError as e:
        print(e, file=sys.stderr)
        return 2
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
