"""What everybody in the chaos shares: the daemon, the right answers, and the book of what happened to whom."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable

from bank import LINES, Bank, Block, framed, request
from stream import Ended, Stream, Stuck
from supervisor import Supervisor

ENOUGH = 20  # wrong answers
STATUS = request("status") + b"\n"


class Gone(Exception):
    """A connection is over; the book says why."""


class Book:
    """Counts, for any thread to write in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.thrown: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()  # answers, by who asked
        self.ends: Counter[tuple[str, str]] = Counter()  # connections, by whose they were and how they ended
        self.wrong: list[str] = []
        self.unexplained: list[str] = []
        self.refused = 0  # connects

    def throw(self, what: str) -> None:
        with self._lock:
            self.thrown[what] += 1

    def check(self, who: str, count: int, wrong: list[str]) -> None:
        with self._lock:
            self.checked[who] += count
            self.wrong += [f"{who}: {w}" for w in wrong]

    def end(self, who: str, how: str) -> None:
        with self._lock:
            self.ends[who, how] += 1

    def unclear(self, who: str, what: str) -> None:
        with self._lock:
            self.unexplained.append(f"{who}: {what}")
        self.end(who, "UNEXPLAINED")

    def refuse(self, who: str) -> None:
        with self._lock:
            self.refused += 1
        self.end(who, "REFUSED")


class World:
    """The daemon, what it must answer, and what it goes through."""

    def __init__(self, supervisor: Supervisor, bank: Bank, home: str) -> None:
        """home: the digest of the robot that clients are pinned to."""
        self.supervisor, self.bank, self.home = supervisor, bank, home
        self.book = Book()
        self.stop = threading.Event()
        self._crowds: dict[object, tuple[float, float]] = {}  # when more clients than may were there

    def connection(self, who: str, act: Callable[[Stream], str | None], headed: bool = False) -> None:
        """One connection from its start to its end: what `act` does on it. How it ends goes into the book.

        headed: it speaks under headers. act: returns words for how the client closed it if that was before its last answer.
        """
        try:
            stream = Stream(self.supervisor.path)
        except (ConnectionRefusedError, FileNotFoundError):
            self.book.refuse(who)
            return
        except Stuck as e:
            self.book.unclear(who, str(e))
            return
        try:
            how = self._greet(who, stream, headed) or act(stream)
            if how is None and (surplus := stream.surplus):
                self.book.check(who, 0, [f"came unasked: {surplus[:200]!r}"])
            self.book.end(who, how or "closed by the client")
        except Gone:
            pass
        except Ended as e:
            self.explain(who, stream, e)
        except Stuck as e:
            self.book.unclear(who, f"{e}; the daemon: {self.supervisor.life}")
        finally:
            stream.close()

    def ask(self, who: str, stream: Stream, block: Block, pace: float = 0.0) -> None:
        """Send a block, check what comes back. Raises Ended once what came before the end is checked."""
        try:
            lines = stream.exchange(block.data, block.size, pace)
        except Ended as e:
            self.book.check(who, len(e.lines), block.wrong(e.lines, e.rest))
            raise
        self.book.check(who, len(lines), block.wrong(lines))
        if len(self.book.wrong) > ENOUGH:
            self.stop.set()

    def wait(self, stream: Stream, seconds: float) -> bool:
        """Wait so long, or until it is time to stop; True as soon as the daemon closes. Reads nothing."""
        until = time.monotonic() + seconds
        while not (closed := stream.closed_within(min(0.1, seconds))) and time.monotonic() < until and not self.stop.is_set():
            pass
        return closed

    def explain(self, who: str, stream: Stream, end: Ended, *, excuse: str = "", cut: bool = False) -> None:
        """Enter how a connection ended that the daemon closed. excuse: what else may be the reason; cut: may be amid a line."""
        how = self.fate(stream)
        if how is None and excuse:
            how = excuse
        if how is None:
            self.book.unclear(who, f"{end} and no reason; connected {time.monotonic() - stream.opened:.3f} s ago to {stream.pid}, now "
                                   f"{self.supervisor.life.process.pid}")  # fmt: skip
        elif end.rest and how == "EOF after SIGTERM" and not cut:
            self.book.unclear(who, f"{how}, amid a line: {end.rest[-100:]!r}")
        else:
            self.book.end(who, how)

    def fate(self, stream: Stream) -> str | None:
        """What the daemon of this connection was told to do to itself, if it was."""
        life = self.supervisor.life_of(stream.pid) if stream.pid else None
        now = time.monotonic()
        how = life.asked(now) if life else next(iter(self.supervisor.asked(stream.opened, now)), None)
        return how and f"EOF after {how}"

    def crowded(self, since: float) -> bool:
        """Whether at any time since then more clients than may were there."""
        return any(since <= until for _, until in list(self._crowds.values()))

    def crowd(self, key: object, until: float) -> None:
        """Note that there is a crowd, by then the last."""
        self._crowds[key] = (time.monotonic(), until)

    def _greet(self, who: str, stream: Stream, headed: bool) -> str | None:
        """Learn which daemon serves this connection; how it ended, if there were too many."""
        try:
            line = stream.exchange(framed(STATUS) if headed else STATUS, LINES if headed else 1)[-1]
        except Ended as e:
            if not e.lines:
                self.explain(who, stream, e)
                raise Gone from None
            line = e.lines[0]  # who is turned away is told so before it has said how it speaks
        reply = json.loads(line)
        if "error" in reply and reply["error"]["code"] == -32030 and self.crowded(stream.opened):
            return "refused with -32030: too many connections"
        stream.status = reply.get("result", {})
        if stream.status.get("digest") not in self.bank.robots:
            self.book.check(who, 0, [f"status: {reply!r:.300}"])
        return None
