"""The answer of `stats` in Prometheus's text exposition format.

Source: Prometheus, Exposition formats, Text-based format (version 0.0.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from fkd.ctl.latencies import coarser, histogram, steps

# The same buckets in every scrape: two to each power of two from a microsecond to 17 s.
ENDS = steps(10, 34, 1)  # ns

Sample = tuple[str, dict[str, str], float]  # suffix of the family's name, labels, value


def exposition(s: dict[str, Any]) -> Iterator[str]:
    """The lines of it."""
    methods, connections = s["methods"], s["connections"]
    yield from family("fkd_requests", "counter", "Requests answered, right or with an error, by method.",
                      [("_total", {"method": name}, m["count"]) for name, m in methods.items()])  # fmt: skip
    yield from family("fkd_errors", "counter", "Error answers, by method and JSON-RPC code; method (none): no request of any method.",
                      [("_total", {"method": name, "code": code}, n) for name, m in methods.items() for code, n in m["errors"].items()])  # fmt: skip
    yield from family("fkd_request_duration_seconds", "histogram", "Time from a method's start to its result.",
                      [x for name, m in methods.items() if m["histogram_us"] for x in buckets(name, m)])  # fmt: skip
    yield from family("fkd_connections", "gauge", "Connections open now.", [("", {}, connections["open"])])
    for kind, what in (("accepted", "taken since the start"), ("refused", "refused: too many, or no file descriptor left"),
                       ("dropped", "dropped: they did not read their answers")):  # fmt: skip
        yield from family(f"fkd_connections_{kind}", "counter", f"Connections {what}.", [("_total", {}, connections[kind])])
    yield from family("fkd_start_time_seconds", "gauge", "When the daemon started, in Unix time.", [("", {}, s["started_unix_time"])])
    yield from family("fkd_generation", "gauge", "How many models have served, the present one too.", [("", {}, s["generation"])])
    yield from family("fkd_model_info", "gauge", "The model that serves.", [("", {"digest": s["digest"]}, 1)])
    last = s["reloads"][-1:]
    yield from family("fkd_last_reload_success", "gauge", "Whether the last reload was taken.",
                      [("", {}, r["outcome"] == "serving") for r in last])  # fmt: skip
    yield from family("fkd_last_reload_timestamp_seconds", "gauge", "When the last reload began.",
                      [("", {}, r["unix_time"]) for r in last])  # fmt: skip


def buckets(name: str, m: dict[str, Any]) -> Iterator[Sample]:
    """One method's histogram: for each end how many took no longer, all in +Inf, their sum and count."""
    counts = dict.fromkeys(ENDS, 0)
    total = 0
    for longest, n in coarser(histogram(m), 1):
        total += n
        if longest <= ENDS[-1]:
            counts[max(longest, ENDS[0])] += n
    for end, n in zip(ENDS, accumulate(counts.values()), strict=True):
        yield "_bucket", {"method": name, "le": repr(end / 1e9)}, n
    yield "_bucket", {"method": name, "le": "+Inf"}, total
    yield "_sum", {"method": name}, m["latency_us"]["sum"] / 1e6
    yield "_count", {"method": name}, total


def family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Samples of one name under their HELP and TYPE; nothing where there are none."""
    lines = [f"{name}{suffix}{written(labels)} {number(value)}" for suffix, labels, value in samples]
    if lines:
        full = f"{name}_total" if kind == "counter" else name
        yield f"# HELP {full} {about}"
        yield f"# TYPE {full} {kind}"
        yield from lines


def written(labels: dict[str, str]) -> str:
    inside = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def escaped(value: str) -> str:
    """A label's value: backslash, quote and line feed would end it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A number to its last bit; True and False as 1 and 0."""
    return repr(value + 0)
