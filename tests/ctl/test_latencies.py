"""Histograms as stats answers them: made coarser, subtracted and drawn without losing anything."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.ctl.latencies import BAR, BLOCKS, ROWS, Histogram, coarser, drawing, duration, histogram, since, steps
from fkd.metrics import Meter, last

samples = st.lists(st.integers(512, 10**11), max_size=60)


def of(sample: list[int]) -> Histogram:
    meter = Meter()
    for ns in sample:
        meter.took(ns)
    return histogram(meter.report())


@given(samples, st.integers(0, 3))
def test_coarser_buckets_hold_what_the_finer_did(sample: list[int], splits: int) -> None:
    found = coarser(of(sample), splits)
    assert sum(n for _, n in found) == len(sample)
    assert {longest for longest, _ in found} <= set(steps(3, 38, splits))
    for longest, _ in found:
        assert sum(n for end, n in found if end <= longest) == sum(ns <= longest for ns in sample)


def test_the_finest_steps_are_the_daemons_buckets() -> None:
    assert steps(10, 33, 3) == [last(k) for k in range(2 << 3, 25 << 3)]


@given(samples, samples)
def test_what_came_since(before: list[int], more: list[int]) -> None:
    assert since(of(before + more), of(before)) == of(more)
    assert since(of(before), of(before)) == []


@given(samples.filter(bool))
def test_a_drawing_shows_every_count_and_its_longest_bar_is_full(sample: list[int]) -> None:
    rows = [line.split() for line in drawing(of(sample))]
    drawn = [row for row in rows if len(row) > 2]
    assert sum(int(row[-1]) for row in drawn) == len(sample)
    bars = {int(row[-1]): row[2] for row in drawn}
    assert len(bars[max(bars)]) == BAR
    assert all(set(bar) <= set(BLOCKS) for bar in bars.values())
    assert sorted(bars.values(), key=lambda b: (len(b), BLOCKS.index(b[-1]))) == [bars[n] for n in sorted(bars)]


@given(samples.filter(bool))
def test_a_drawing_has_a_row_for_each_time_between(sample: list[int]) -> None:
    lines = list(drawing(of(sample)))
    octaves = max(sample).bit_length() - min(sample).bit_length() + 1
    assert len(lines) <= max(ROWS, octaves)
    for line in (lines[0], lines[-1]):
        assert line.split()[2:]  # neither begins nor ends with nothing


def test_a_drawing_of_nothing_has_no_lines() -> None:
    assert list(drawing([])) == []


def test_where_blocks_cannot_be_written_bars_are_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    first, *_, final = drawing(of([1000] * 8 + [3000]))
    assert first.split()[2] == "#" * BAR
    assert final.split()[2] == "#" * (BAR // 8)


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0.00 ns"), (8, "8.00 ns"), (999.4, "999 ns"), (999.6, "1.00 us"), (12_345, "12.3 us"), (99_949, "99.9 us"),
     (99_950, "100 us"), (1e6, "1.00 ms"), (999_499_999, "999 ms"), (1e9, "1.00 s"), (3.6e12, "3600 s")],
)  # fmt: skip
def test_durations(ns: float, text: str) -> None:
    assert duration(ns) == text
