"""What the daemon counts: for each method how often, how long, and which errors. Fixed in size; nothing grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
KEPT_RELOADS = 16
OTHER = "(none)"  # what is no request of any method: bytes that are no JSON, unknown methods


class Meter:
    """One method's count, errors and latencies.

    Latencies are counted in buckets of an eighth to a quarter of their value: four to each power of two nanoseconds.
    """

    __slots__ = ("buckets", "errors", "slowest", "total")

    def __init__(self) -> None:
        self.buckets = [0] * 256
        self.errors: dict[int, int] = {}
        self.slowest = 0  # ns
        self.total = 0  # ns

    def took(self, ns: int) -> None:
        """Count one answer and the time that it took."""
        bits = (ns | 8).bit_length()
        self.buckets[bits << 2 | ns >> bits - 3 & 3] += 1
        self.total += ns
        if ns > self.slowest:
            self.slowest = ns

    def failed(self, code: int) -> None:
        """Count one error of this JSON-RPC code."""
        self.errors[code] = self.errors.get(code, 0) + 1

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def quantile(self, q: float) -> float:
        """The latency (ns) that a share q of the answers did not exceed: the upper end of its bucket, at most the slowest."""
        wanted, seen = q * self.count, 0
        for place, n in enumerate(self.buckets):
            seen += n
            if n and seen >= wanted:
                return min(upper(place), self.slowest)
        return 0.0

    def report(self) -> dict[str, Any]:
        """As the method `stats` answers it; times in microseconds."""
        latency = {name: round(self.quantile(q) / 1e3, 3) for name, q in QUANTILES.items()}
        return {
            "count": self.count,
            "errors": {str(code): n for code, n in sorted(self.errors.items())},
            "latency_us": {**latency, "max": self.slowest / 1e3, "sum": self.total / 1e3},
            "histogram_us": [[upper(place) / 1e3, n] for place, n in enumerate(self.buckets) if n],
        }


def upper(place: int) -> float:
    """The upper end (ns) of a bucket."""
    return float((place & 3 | 4) + 1 << (place >> 2) - 3)


class Metrics:
    """All meters of a daemon, and its last reloads."""

    def __init__(self, methods: Iterable[str] = ()) -> None:
        self.methods = {name: Meter() for name in (*methods, OTHER)}
        self.reloads: deque[dict[str, Any]] = deque(maxlen=KEPT_RELOADS)

    @property
    def requests(self) -> int:
        """How many were answered, well or with an error."""
        return sum(m.count + sum(m.errors.values()) for m in self.methods.values())

    def report(self) -> dict[str, Any]:
        """As the method `stats` answers it: the methods that were asked, by name."""
        asked = {name: m.report() for name, m in self.methods.items() if m.errors or m.count}
        return {"requests": self.requests, "methods": asked, "reloads": list(self.reloads)}
