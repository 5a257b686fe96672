"""stats: what the daemon has counted, as a table, as drawings of the latencies, or for Prometheus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fkd.ctl import text
from fkd.ctl.latencies import drawing, duration, histogram
from fkd.ctl.main import UsageError
from fkd.ctl.prometheus import exposition
from fkd.ctl.target import tell

QUANTILES = ("p50", "p90", "p99", "p99.9", "max")


def add_stats(p: argparse.ArgumentParser) -> None:
    p.add_argument("--prometheus", action="store_true", help="in Prometheus's text exposition format")
    p.epilog = (
        "examples:\n  fkctl stats\n  fkctl stats --prometheus > fkd.prom.new && mv fkd.prom.new fkd.prom\n\n"
        "count: requests answered since the daemon's start, right or with an error. Latencies: from a method's start to its\n"
        "result, with the turns of others between; the time on the way is not in them. (none): what is no request of any method.\n"
        "A bar's time is the longest that it counts."
    )
    p.set_defaults(run=stats)


def stats(options: argparse.Namespace) -> int:
    of_a_daemon(options, "stats")
    if options.prometheus and options.json:
        raise UsageError("--prometheus and --json exclude each other")
    return tell(options, "stats", [], show_prometheus if options.prometheus else show_stats)


def of_a_daemon(options: argparse.Namespace, command: str) -> None:
    """Raise UsageError where a file is asked, which has counted nothing."""
    if options.model:
        raise UsageError(f"{command} is for a daemon, and --model asks a file")


def show_prometheus(s: dict[str, Any]) -> None:
    text.say("\n".join(exposition(s)))


def show_stats(s: dict[str, Any]) -> None:
    # All is made before any is said: an answer of another shape must not be shown by half.
    lines = [
        f"up {span(s['uptime_s'])}, generation {s['generation']}, digest {s['digest'][:12]}, {text.count(s['requests'], 'request')}",
        connections(s["connections"]), "", *aligned([HEADER, *(row(name, m) for name, m in s["methods"].items())]),
    ]  # fmt: skip
    errors = [f"  {name}: {count_errors(m['errors'])}" for name, m in s["methods"].items() if m["errors"]]
    reloads = [f"  {reload(r)}" for r in s["reloads"]]
    lines += ["", "errors by code", *errors] if errors else []
    lines += ["", "last reloads", *reloads] if reloads else []
    for name, m in s["methods"].items():
        if found := histogram(m):
            lines += ["", name, *(f"  {line}" for line in drawing(found))]
    text.say("\n".join(lines))


HEADER = ("method", "count", "errors", *QUANTILES)


def row(name: str, m: dict[str, Any]) -> Sequence[str]:
    latency = [duration(m["latency_us"][q] * 1e3) if m["histogram_us"] else "-" for q in QUANTILES]
    return name, str(m["count"]), str(sum(m["errors"].values())), *latency


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells of equal number in each row -> lines: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(r, widths, strict=True))) for r in rows]


def connections(c: dict[str, Any]) -> str:
    return f"connections: {c['open']} open, {c['accepted']} accepted, {c['refused']} refused, {c['dropped']} dropped"


def count_errors(errors: dict[str, int]) -> str:
    return ", ".join(f"{n} x {code}" for code, n in errors.items())


def reload(r: dict[str, Any]) -> str:
    """One reload of the history in a line."""
    when = datetime.fromtimestamp(r["unix_time"]).astimezone().isoformat(" ", "seconds")
    served = r["outcome"] == "serving"
    outcome = f"serving {r['digest'][:12]}" if served else f"refused ({r['reason']}): {' '.join(r['message'].split())}"
    return f"{when}  generation {r['generation']}, {r['seconds']:.2f} s, {outcome}"


def span(s: float) -> str:
    """Seconds in the two units that tell most of them."""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    rest = round(s)
    for unit, size in units:
        n, rest = divmod(rest, size)
        if n or parts:
            parts.append(f"{n} {unit}")
    return " ".join(parts[:2]) or "0 s"
