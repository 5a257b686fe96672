"""Latencies as the method `stats` answers them: differences, coarser buckets, and as people read them."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Histogram = list[tuple[int, int]]  # for each bucket that is not empty, by time: its longest time (ns), how many are in it

BAR = 40  # characters of the longest
ROWS = 16  # of a drawing: more only where powers of two alone take more
BLOCKS = "▏▎▍▌▋▊▉█"  # an eighth of a character to a whole one


def histogram(method: dict[str, Any]) -> Histogram:
    """A method's, from its part of the answer."""
    return [(round(us * 1e3), int(n)) for us, n in method["histogram_us"]]


def since(now: Histogram, before: Histogram) -> Histogram:
    """What has come to `now` since `before`."""
    old = dict(before)
    return [(longest, n - old.get(longest, 0)) for longest, n in now if n > old.get(longest, 0)]


def coarser(found: Histogram, splits: int) -> Histogram:
    """The same in buckets that split each power of two into 2^splits; the daemon's own have splits = 3."""
    counts: defaultdict[int, int] = defaultdict(int)
    for longest, n in found:
        shift = max(longest.bit_length() - 1 - splits, 0)
        counts[((longest >> shift) + 1 << shift) - 1] += n
    return sorted(counts.items())


def duration(ns: float) -> str:
    """A time in three digits and the unit that suits it."""
    for unit, size in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if ns < 999.5 * size:
            return f"{three_digits(ns / size)} {unit}"
    return f"{three_digits(ns / 1e9)} s"


def three_digits(x: float) -> str:
    """0 to 1e6, rounded to three digits, never as a power of ten."""
    return f"{x:.{0 if x >= 99.95 else 1 if x >= 9.995 else 2}f}"


def drawing(found: Histogram) -> Iterable[str]:
    """Lines with a bar for each bucket, the empty ones between them too, in buckets as fine as there is room for."""
    if not found:
        return
    splits = next((s for s in (3, 2, 1) if len(ladder(found, s)) <= ROWS), 0)
    counts = dict(coarser(found, splits))
    ends = ladder(found, splits)
    most = max(counts.values())
    width = max(len(duration(ns)) for ns in ends)
    for ns in ends:
        n = counts.get(ns, 0)
        yield f"{duration(ns):>{width}}  {bar(n / most):<{BAR}}  {n or ''}".rstrip()


def ladder(found: Histogram, splits: int) -> list[int]:
    """The ends of all coarser buckets from the first that is not empty to the last."""
    (first, _), *_, (final, _) = [*coarser(found[:1], splits), *coarser(found[-1:], splits)]
    return [ns for ns in steps(first.bit_length() - 1, final.bit_length(), splits) if first <= ns <= final]


def steps(low: int, high: int, splits: int) -> list[int]:
    """The longest times (ns) of the buckets from 2^low to 2^high that split each power of two into 2^splits."""
    return [((1 << splits) + k + 1 << bits >> splits) - 1 for bits in range(low, high) for k in range(1 << splits)]


def bar(share: float) -> str:
    """A bar whose length is a share of BAR; what is not nothing is seen."""
    eighths = max(round(share * BAR * 8), 1) if share else 0
    text = "█" * (eighths // 8) + (BLOCKS[eighths % 8 - 1] if eighths % 8 else "")
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "#" * -(-eighths // 8)
    return text
