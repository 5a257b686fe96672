"""top: what the daemon does now, from the differences of its stats. Drawn anew on a terminal, else line by line."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from fkd.ctl import text
from fkd.ctl.interrupts import ended_by_signals
from fkd.ctl.latencies import Histogram, duration, histogram, since
from fkd.ctl.main import NoDaemon, seconds
from fkd.ctl.screen import Screen
from fkd.ctl.stats import aligned, connections, of_a_daemon, span
from fkd.ctl.target import PATIENCE, Kept, read, socket_path
from fkd.errors import FkdError
from fkd.metrics import quantile

QUANTILES = {"p50": 500, "p90": 900, "p99": 990, "max": 1000}  # permille


def add_top(p: argparse.ArgumentParser) -> None:
    p.add_argument("--interval", type=seconds, default=1.0, metavar="S", help="seconds between two looks (default 1)")
    p.add_argument("--count", type=positive, metavar="N", help="end after N intervals")
    p.epilog = (
        "examples:\n  fkctl top\n  fkctl top --interval 10 --count 6 > minute.txt\n\n"
        "q or Ctrl-C ends it. Rates and latencies are those of the last interval (latencies to an eighth), top's own calls of\n"
        "stats among them. --json: the result of stats at the end of each interval, one a line.\n"
        "If the daemon goes, or starts anew, top says so and goes on trying. It ends with 3 if there is no daemon when it\n"
        "starts, or when the last of N intervals ends."
    )
    p.set_defaults(run=top)


def positive(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 10 and int(word)):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got `{word}`")
    return int(word)


def top(options: argparse.Namespace) -> int:
    of_a_daemon(options, "top")
    daemon = Kept(socket_path(options.socket), options.timeout or PATIENCE)
    before = look(daemon)
    lack: Exception | None = None
    count, due = 0, time.monotonic()
    with contextlib.closing(daemon), contextlib.suppress(KeyboardInterrupt), ended_by_signals(), opened(options) as view:
        view.start(before)
        while count != options.count:
            count, due = count + 1, max(due + options.interval, time.monotonic())
            if view.ended(due):
                return 0
            try:
                now = look(daemon)
            except (FkdError, NoDaemon) as e:
                lack = e
                view.miss(e)
            else:
                lack = None
                view.show(now, before)
                before = now
    if lack and count == options.count:
        raise lack
    return 0


# -- what there is to show ---------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """What stats answered."""

    answer: bytes
    stats: dict[str, Any]
    histograms: dict[str, Histogram]


def look(daemon: Kept) -> Look:
    """Raises NoDaemon, or FkdError, also for an answer of another shape."""
    answer = daemon.ask("stats", [])

    def understand(s: dict[str, Any]) -> Look:
        found = Look(answer, s, {name: histogram(m) for name, m in s["methods"].items()})
        frame(found, None)  # all that will be looked for is there
        return found

    return read(answer, "stats", understand)


class Rate(NamedTuple):
    """What one method did in an interval."""

    name: str
    requests: float  # per second
    errors: float  # per second
    latency: list[float]  # ns, as QUANTILES; none for what has no times


class Interval(NamedTuple):
    """What happened between two looks, or since the daemon's start."""

    seconds: float
    whole: bool  # whether it began with the daemon
    rates: list[Rate]


def interval(now: Look, before: Look | None) -> Interval:
    if before is not None and before.stats["started_unix_time"] != now.stats["started_unix_time"]:
        before = None  # another daemon
    took = max(now.stats["uptime_s"] - (before.stats["uptime_s"] if before else 0.0), 1e-9)
    found = []
    for name, m in now.stats["methods"].items():
        was = before.stats["methods"].get(name) if before else None
        count = m["count"] - (was["count"] if was else 0)
        errors = sum(m["errors"].values()) - (sum(was["errors"].values()) if was else 0)
        times = since(now.histograms[name], before.histograms[name] if before and was else [])
        slowest = round(m["latency_us"]["max"] * 1e3)
        if count:
            latency = [min(quantile(times, permille), slowest) for permille in QUANTILES.values()] if times else []
            found.append(Rate(name, count / took, errors / took, latency))
    return Interval(took, before is None, sorted(found, key=lambda r: -r.requests))


def frame(now: Look, before: Look | None) -> list[str]:
    """The lines of one look, for a terminal."""
    s, (took, whole, rates) = now.stats, interval(now, before)
    rows = [(r.name, per_second(r.requests), per_second(r.errors), *([duration(ns) for ns in r.latency] or "-" * len(QUANTILES)))
            for r in rates]  # fmt: skip
    return [
        f"up {span(s['uptime_s'])}, generation {s['generation']}, digest {s['digest'][:12]}", connections(s["connections"]),
        f"{per_second(sum(r.requests for r in rates))} requests/s {'since the start' if whole else f'in {took:.2f} s'}", "",
        *aligned([("method", "requests/s", "errors/s", *QUANTILES), *rows]),
    ]  # fmt: skip


LINE = "{:8}  {:18} {:>10} {:>8} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10}"
HEADER = LINE.format("time", "method", "requests/s", "errors/s", *(f"{q}_us" for q in QUANTILES), "connections", "generation")


def lines(now: Look, before: Look) -> Iterator[str]:
    """A line for each method, for files and pipes; latencies in microseconds."""
    for r in interval(now, before).rates:
        latency = [f"{ns / 1e3:.3f}" for ns in r.latency] or "-" * len(QUANTILES)
        yield LINE.format(clock(), r.name, f"{r.requests:.1f}", f"{r.errors:.1f}", *latency, now.stats["connections"]["open"],
                          now.stats["generation"])  # fmt: skip


def per_second(x: float) -> str:
    return f"{x:.0f}" if x >= 99.95 else f"{x:.1f}"


def clock() -> str:
    return time.strftime("%H:%M:%S")


# -- where it is shown -------------------------------------------------------------------------------------------------


class View(Protocol):
    """Whom top shows what it sees."""

    def start(self, first: Look) -> None: ...

    def ended(self, due: float) -> bool:
        """Wait until `due` (monotonic), or until the user has seen enough: True."""

    def show(self, now: Look, before: Look) -> None: ...

    def miss(self, why: Exception) -> None:
        """There is no daemon now."""


@contextlib.contextmanager
def opened(options: argparse.Namespace) -> Iterator[View]:
    """The view that suits stdout."""
    if options.json or not sys.stdout.isatty():
        yield Printed(as_json=options.json)
    else:
        screen = Screen()
        with screen.taken():
            yield Drawn(screen)


class Printed:
    """For files and pipes."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def start(self, first: Look) -> None:
        if not self._as_json:
            self._say(HEADER)

    def ended(self, due: float) -> bool:
        time.sleep(max(due - time.monotonic(), 0.0))
        return False

    def show(self, now: Look, before: Look) -> None:
        if self._as_json:
            text.raw(now.answer)
            sys.stdout.flush()
            return
        if now.stats["started_unix_time"] != before.stats["started_unix_time"]:
            self._say(f"{clock()}  the daemon has started anew")
        self._say(*lines(now, before))

    def miss(self, why: Exception) -> None:
        if not self._as_json:
            self._say(f"{clock()}  {why}; trying again")

    @staticmethod
    def _say(*said: str) -> None:
        for line in said:
            text.say(line)
        sys.stdout.flush()


class Drawn:
    """For eyes."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._note = ""

    def start(self, first: Look) -> None:
        self._draw(frame(first, None))

    def ended(self, due: float) -> bool:
        return self._screen.pressed("qQ", due)

    def show(self, now: Look, before: Look) -> None:
        if now.stats["started_unix_time"] != before.stats["started_unix_time"]:
            self._note = f"; the daemon has started anew at {clock()}"
        self._draw(frame(now, before))

    def miss(self, why: Exception) -> None:
        self._draw(["", f"{why}", "", "trying again"])

    def _draw(self, shown: list[str]) -> None:
        self._screen.draw([f"fkctl top  {clock()}  (q ends it{self._note})", *shown])
