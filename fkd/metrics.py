"""What the daemon counts: for each method how often, how long and which errors; connections; the last reloads.

Fixed in size: nothing grows with requests, with clients, or with what they call things. Recording must cost next to
nothing, so all that can be worked out later is worked out when someone asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

QUANTILES = {"p50": 500, "p90": 900, "p99": 990, "p99.9": 999}  # permille
KEPT_RELOADS = 16
OTHER = "(none)"  # what is no request of any method: bytes that are no JSON, unknown methods

# Buckets: eight to each power of two nanoseconds, from 512 ns on; below that a UNIT each.
UNIT = 64  # ns
EIGHTH = 7


def place(ns: int) -> int:
    """The bucket that a time is counted in."""
    units = ns // UNIT
    bits = units.bit_length()
    return units if units <= EIGHTH else bits - 3 << 3 | units >> bits - 4 & EIGHTH


def last(place: int) -> int:
    """The longest time (ns) that is counted in a bucket."""
    octave, eighth = divmod(place, 8)
    return (eighth + 1 if octave == 0 else (8 | eighth) + 1 << octave - 1) * UNIT - 1


QUICK = bytes(place(k * UNIT) for k in range(4096))  # the buckets of times below 0.26 ms, which most are: looked up
SHORT = len(QUICK) * UNIT  # ns
BUCKETS = place(2**63)  # for times of less than 292 years


class Meter:
    """One method's latencies (ns), and its errors by JSON-RPC code."""

    __slots__ = ("buckets", "errors", "slowest", "total")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.errors: dict[int, int] = {}
        self.slowest = 0
        self.total = 0

    def took(self, ns: int) -> None:
        """Count one answer, right or an error, and the time that it took."""
        self.buckets[QUICK[ns // UNIT] if ns < SHORT else place(ns)] += 1
        self.total += ns
        if ns > self.slowest:
            self.slowest = ns

    def failed(self, code: int) -> None:
        """Count one error."""
        self.errors[code] = self.errors.get(code, 0) + 1

    @property
    def count(self) -> int:
        """How many were answered. What is no request of any method has errors and no times."""
        return sum(self.buckets) or sum(self.errors.values())

    def report(self) -> dict[str, Any]:
        """As the method `stats` answers it; times in microseconds."""
        histogram = [(last(place), n) for place, n in enumerate(self.buckets) if n]
        latency = {name: min(quantile(histogram, permille), self.slowest) / 1e3 for name, permille in QUANTILES.items()}
        return {
            "count": self.count,
            "errors": {str(code): n for code, n in sorted(self.errors.items())},
            "latency_us": {**latency, "max": self.slowest / 1e3, "sum": self.total / 1e3},
            "histogram_us": [[ns / 1e3, n] for ns, n in histogram],
        }


def quantile(histogram: Sequence[tuple[float, int]], permille: int) -> float:
    """The time that so many of a thousand did not exceed, as the longest of its bucket; 0 if there is none.

    histogram: for each bucket its longest time and how many are in it, by time.
    """
    wanted, seen = permille * sum(n for _, n in histogram), 0
    for longest, n in histogram:
        seen += n
        if 1000 * seen >= wanted:
            return longest
    return 0


class Metrics:
    """All that a daemon counts."""

    def __init__(self, methods: Iterable[str] = ()) -> None:
        self.methods = {name: Meter() for name in (*methods, OTHER)}
        self.accepted = 0  # connections, of those that could have one
        self.refused = 0  # because there were too many
        self.dropped = 0  # because they did not read, or too slowly
        self.reloads: deque[dict[str, Any]] = deque(maxlen=KEPT_RELOADS)

    @property
    def requests(self) -> int:
        """How many were answered, right or with an error."""
        return sum(m.count for m in self.methods.values())
