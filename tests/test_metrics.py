"""What the daemon counts: laws of the buckets, quantiles against sorted samples, errors where they belong."""

from __future__ import annotations

import json
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from fkd.dispatch import METHODS, run, serving
from fkd.errors import FkdError
from fkd.metrics import BUCKETS, KEPT_RELOADS, OTHER, QUANTILES, UNIT, Meter, Metrics, last, place, quantile
from fkd.robot import load
from fkd.service import Session
from fkd.wire.connection import Connection

ROBOTS = Path(__file__).parent / "robots"

# Times as they are met, from a clock's tick to a day, and all powers of two.
times = st.one_of(st.integers(1, 1 << 20), st.integers(1, 86400 * 10**9), st.integers(0, 62).map(lambda k: 1 << k))


def metered(sample: list[int]) -> Meter:
    meter = Meter()
    for ns in sample:
        meter.took(ns)
    return meter


# -- buckets -----------------------------------------------------------------------------------------------------------


def test_buckets_join_without_gap_and_are_an_eighth_of_their_times_at_most() -> None:
    assert place(0) == 0
    for k in range(BUCKETS - 1):
        assert place(last(k)) == k
        assert place(last(k) + 1) == k + 1
        assert last(k + 1) - last(k) <= max((last(k) + 1) / 8, UNIT)
    assert place(2**63 - 1) == BUCKETS - 1


@given(times)
def test_a_time_is_counted_in_the_bucket_whose_ends_hold_it(ns: int) -> None:
    k = metered([ns]).buckets.index(1)
    assert ns <= last(k)
    assert k == 0 or ns > last(k - 1)


@given(st.lists(times, max_size=50))
def test_nothing_is_lost(sample: list[int]) -> None:
    report = metered(sample).report()
    assert report["count"] == len(sample) == sum(n for _, n in report["histogram_us"])
    assert report["latency_us"]["sum"] == sum(sample) / 1e3
    assert report["latency_us"]["max"] == max(sample, default=0) / 1e3
    assert all(a < b for (a, _), (b, _) in pairwise(report["histogram_us"]))


# -- quantiles ---------------------------------------------------------------------------------------------------------


def exact(sample: list[int], permille: int) -> int:
    """The smallest of a sample that so many of a thousand do not exceed."""
    return sorted(sample)[ceil(Fraction(permille, 1000) * len(sample)) - 1]


@given(st.lists(times, min_size=1, max_size=200))
def test_quantiles_are_those_of_the_sorted_sample_to_within_a_bucket(sample: list[int]) -> None:
    found = metered(sample).report()["latency_us"]
    for name, permille in QUANTILES.items():
        right = exact(sample, permille)
        assert right / 1e3 <= found[name] <= last(place(right)) / 1e3
        assert found[name] <= max(right * 1.125, right + UNIT) / 1e3


@given(st.lists(times, min_size=1, max_size=200))
def test_quantiles_rise_to_the_slowest(sample: list[int]) -> None:
    latency = metered(sample).report()["latency_us"]
    rising = [latency[name] for name in (*QUANTILES, "max")]
    assert rising == sorted(rising)
    assert latency["max"] == max(sample) / 1e3


@settings(max_examples=50)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 1000))
def test_a_quantile_of_any_histogram(counts: list[int], permille: int) -> None:
    sample = [k for k, n in enumerate(counts) for _ in range(n)]
    assert quantile(list(enumerate(counts)), permille) == exact(sample, permille)


def test_a_quantile_of_nothing_is_nothing() -> None:
    assert quantile([], 500) == 0
    assert Meter().report()["latency_us"] == {"p50": 0, "p90": 0, "p99": 0, "p99.9": 0, "max": 0, "sum": 0}


# -- what is counted, and as what --------------------------------------------------------------------------------------


def stats(session: Session) -> Any:
    return json.loads(run(session, "stats", Raw()))


@pytest.fixture
def session() -> Session:
    return Session(serving(load(ROBOTS / "wire_arm.urdf")))


def asked(session: Session, method: str, params: Any) -> None:
    """Ask, whatever comes of it."""
    with suppress(FkdError, ZeroDivisionError):
        run(session, method, Raw(json.dumps(params).encode()))


def test_each_method_has_its_own_count_and_errors(session: Session) -> None:
    for params in ([0] * 6, [0] * 5, ["x"] * 6, {"q": [0] * 6, "links": ["nowhere"]}):
        asked(session, "compute_fk", params)
    asked(session, "compute_fk_batch", {"q": [[0] * 6] * 3})  # works in steps, and in steps comes to its errors
    asked(session, "compute_fk_batch", {"q": [[0] * 6] * 3, "links": ["nowhere"]})
    asked(session, "ping", [])
    found = {name: (m["count"], m["errors"]) for name, m in stats(session)["methods"].items()}
    assert found == {
        "compute_fk": (4, {"-32001": 1, "-32602": 2}), "compute_fk_batch": (2, {"-32001": 1}), "ping": (1, {}),
    }  # fmt: skip
    assert stats(session)["methods"]["stats"]["count"] == 1  # as it was when this was asked
    assert stats(session)["requests"] == 9


def test_what_no_method_was_reached_by_counts_as_none(session: Session) -> None:
    metrics = session.service.metrics
    connection = Connection(lambda m, p: run(session, m, p), max_message=1000, failed=metrics.methods[OTHER].failed)
    connection.receive(b'nonsense\n{}\n[]\n{"jsonrpc":"2.0","method":"pink","id":1}\n{"jsonrpc":"2.0","method":"pink"}\n' + b"x" * 1001 + b"\n")
    connection.receive(b'{"jsonrpc":"2.0","method":"compute_fk","params":[0],"id":1}\n')
    connection.answer(1 << 20)
    found = stats(session)["methods"]
    assert found[OTHER]["errors"] == {"-32700": 1, "-32600": 2, "-32601": 2, "-32031": 1}
    assert (found[OTHER]["count"], found[OTHER]["histogram_us"], found[OTHER]["latency_us"]["max"]) == (6, [], 0)
    assert found["compute_fk"]["errors"] == {"-32602": 1}


def test_a_fault_of_ours_counts_on_its_method(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(session: Session, params: Raw) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setitem(METHODS, "ping", broken)
    asked(session, "ping", [])
    assert stats(session)["methods"]["ping"]["errors"] == {"-32603": 1}


def test_a_pinned_callers_refusals_count_on_what_it_asked(session: Session) -> None:
    asked(session, "pin", ["0" * 64])
    asked(session, "compute_fk", [0] * 6)
    found = stats(session)["methods"]
    assert [found[name]["errors"] for name in ("pin", "compute_fk")] == [{"-32012": 1}] * 2


@settings(max_examples=20)
@given(st.lists(st.text(max_size=20), max_size=20))
def test_no_name_makes_it_grow(names: list[str]) -> None:
    session = Session(serving(load(ROBOTS / "wire_slides.urdf")))
    before = set(session.service.metrics.methods)
    for name in names:
        asked(session, name, [])
    assert set(session.service.metrics.methods) == before == {*METHODS, OTHER}
    assert all(len(m.buckets) == BUCKETS for m in session.service.metrics.methods.values())


def test_only_the_last_reloads_are_kept() -> None:
    metrics = Metrics()
    for k in range(KEPT_RELOADS + 5):
        metrics.reloads.append({"generation": k})
    assert [r["generation"] for r in metrics.reloads] == list(range(5, KEPT_RELOADS + 5))
