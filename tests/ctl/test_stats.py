"""fkctl stats: a real daemon's counts as a table, as drawings, as JSON and for Prometheus."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from fkd.ctl.prometheus import ENDS, exposition
from fkd.ctl.stats import span
from fkd.metrics import Meter

ZEROS = [0] * 6


@pytest.fixture(scope="module")
def busy(shared_daemon: Any) -> Any:
    """A daemon that has answered compute_fk 20 times, three of them with an error, and been told nonsense once."""
    daemon = shared_daemon
    talk = daemon.connect()
    for params in (*[ZEROS] * 17, [0], [1], {"q": ZEROS, "links": ["nowhere"]}):
        talk.ask("compute_fk", params)
    talk.ask("compute_fk_batch", {"q": [ZEROS] * 100})
    talk.send(b"nonsense\n")
    talk.reply()
    talk.ask("pink")
    talk.close()
    return daemon


def stats(daemon: Any) -> Any:
    return daemon.ask("stats")["result"]


# -- as a table --------------------------------------------------------------------------------------------------------


def test_the_table_counts_what_was_asked(fkctl, busy):
    out = fkctl("--socket", busy.path, "stats").out
    first, second, _, *rest = out.splitlines()
    assert re.fullmatch(r"up \d+ s, generation 1, digest [0-9a-f]{12}, \d+ requests", first)
    assert re.fullmatch(r"connections: [12] open, \d+ accepted, 0 refused, 0 dropped", second)
    table = rest[: rest.index("")]
    assert table[0].split() == ["method", "count", "errors", "p50", "p90", "p99", "p99.9", "max"]
    assert len({len(line) for line in table}) == 1
    counts = {line.split()[0]: line.split()[1:3] for line in table[1:]}
    assert counts.items() >= {"compute_fk": ["20", "3"], "compute_fk_batch": ["1", "0"], "(none)": ["2", "2"]}.items()
    assert "\n\nerrors by code\n  compute_fk: 2 x -32602, 1 x -32001\n  (none): 1 x -32700, 1 x -32601\n\n" in out
    assert "last reloads" not in out


def test_latencies_are_drawn_for_each_method_that_has_any(fkctl, busy):
    out = fkctl("--socket", busy.path, "stats").out
    parts = dict(part.split("\n", 1) for part in out.strip().split("\n\n")[3:])
    assert {"compute_fk", "compute_fk_batch"} <= set(parts) <= {"compute_fk", "compute_fk_batch", "stats"}
    counts = [line.split()[3:] for line in parts["compute_fk"].splitlines()]
    assert sum(int(n) for found in counts for n in found) == 20
    assert "█" * 40 in parts["compute_fk"]


def test_the_last_reloads_are_told_with_their_reasons(fkctl, daemons):
    daemon = daemons("wire_arm.urdf")
    assert fkctl("--socket", daemon.path, "reload").status == 0
    assert fkctl("--socket", daemon.path, "reload", "nowhere.zip").status == 1
    told = fkctl("--socket", daemon.path, "stats").out.split("last reloads\n")[1].split("\n\n")[0].splitlines()
    digest = stats(daemon)["digest"]
    when = r"  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d  generation 2, \d+\.\d\d s, "
    assert re.fullmatch(when + f"serving {digest[:12]}", told[0])
    assert re.fullmatch(when + r"refused \(source-absent\): .*nowhere\.zip: no such file", told[1])


@pytest.mark.parametrize(
    ("s", "text"),
    [(0, "0 s"), (0.6, "1 s"), (59, "59 s"), (60, "1 min 0 s"), (3661, "1 h 1 min"), (86400, "1 d 0 h"), (400 * 86400 + 7200, "400 d 2 h")],
)
def test_spans(s, text):
    assert span(s) == text


# -- as JSON -----------------------------------------------------------------------------------------------------------


def test_json_is_the_wires(fkctl, busy):
    found = json.loads(fkctl("--socket", busy.path, "stats", "--json").out)
    again = stats(busy)
    assert list(found) == list(again)
    assert found["started_unix_time"] == again["started_unix_time"]
    for counted in (found, again):
        counted["methods"].pop("stats", None)
    assert found["methods"] == again["methods"]
    assert found["connections"]["accepted"] == again["connections"]["accepted"] - 1
    assert found["requests"] == again["requests"] - 1


# -- for Prometheus ----------------------------------------------------------------------------------------------------


def parsed(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_the_exposition_is_what_the_daemon_counted(fkctl, busy):
    families = parsed(fkctl("--socket", busy.path, "stats", "--prometheus").out)
    found = stats(busy)
    requests = {x.labels["method"]: x.value for x in families["fkd_requests"].samples}
    assert requests.items() >= {"compute_fk": 20, "compute_fk_batch": 1, "(none)": 2}.items()
    errors = {(x.labels["method"], x.labels["code"]): x.value for x in families["fkd_errors"].samples}
    assert errors == {("compute_fk", "-32001"): 1, ("compute_fk", "-32602"): 2, ("(none)", "-32700"): 1, ("(none)", "-32601"): 1}
    assert families["fkd_start_time_seconds"].samples[0].value == found["started_unix_time"]
    assert families["fkd_model_info"].samples[0].labels == {"digest": found["digest"]}
    assert families["fkd_connections_accepted"].samples[0].value == found["connections"]["accepted"] - 1
    kinds = {name: family.type for name, family in families.items()}
    assert kinds == {
        "fkd_requests": "counter", "fkd_errors": "counter", "fkd_request_duration_seconds": "histogram", "fkd_connections": "gauge",
        "fkd_connections_accepted": "counter", "fkd_connections_refused": "counter", "fkd_connections_dropped": "counter",
        "fkd_start_time_seconds": "gauge", "fkd_generation": "gauge", "fkd_model_info": "gauge",
    }  # fmt: skip
    assert all(family.documentation for family in families.values())


def check_histogram(family: Any, name: str, method: dict[str, Any]) -> None:
    """All that makes one a histogram, and one of these times."""
    samples = [x for x in family.samples if x.labels["method"] == name]
    ladder = [(float(x.labels["le"]), x.value) for x in samples if x.name.endswith("_bucket")]
    assert [le for le, _ in ladder] == [*(ns / 1e9 for ns in ENDS), float("inf")]
    assert all(a <= b for (_, a), (_, b) in pairwise(ladder))
    for le, n in ladder:
        assert n == sum(m for end_us, m in method["histogram_us"] if round(end_us * 1e3) <= le * 1e9 * (1 + 1e-12))
    rest = {x.name.rpartition("_")[2]: x.value for x in samples if not x.name.endswith("_bucket")}
    assert rest["count"] == ladder[-1][1] == sum(n for _, n in method["histogram_us"])
    assert rest["sum"] == pytest.approx(method["latency_us"]["sum"] / 1e6)


def test_the_histograms_are_cumulative_in_seconds(fkctl, busy):
    families = parsed(fkctl("--socket", busy.path, "stats", "--prometheus").out)
    found = stats(busy)["methods"]
    for name in ("compute_fk", "compute_fk_batch"):
        check_histogram(families["fkd_request_duration_seconds"], name, found[name])


def answer(methods: dict[str, Any], reloads: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """What a daemon might answer."""
    connections = {"open": 1, "accepted": 2, "refused": 3, "dropped": 4}
    return {"started_unix_time": 1.5, "uptime_s": 2.5, "generation": 1, "digest": "d", "connections": connections,
            "requests": 1, "methods": methods, "reloads": reloads or []}  # fmt: skip


@settings(max_examples=50)
@given(st.lists(st.integers(8, 10**12), min_size=1, max_size=40))
def test_any_times_make_a_histogram(sample):
    meter = Meter()
    for ns in sample:
        meter.took(ns)
    methods = {"m": meter.report()}
    check_histogram(parsed("\n".join(exposition(answer(methods))) + "\n")["fkd_request_duration_seconds"], "m", methods["m"])


@settings(max_examples=100)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_name_survives_as_a_label(name):
    meter = Meter()
    meter.failed(-1)
    families = parsed("\n".join(exposition(answer({name: meter.report()}))) + "\n")
    assert [x.labels for x in families["fkd_requests"].samples] == [{"method": name}]
    assert [x.labels for x in families["fkd_errors"].samples] == [{"method": name, "code": "-1"}]


@pytest.mark.parametrize(("outcome", "value"), [("serving", 1), ("refused", 0)])
def test_the_last_reload_is_told(outcome, value):
    other = {"outcome": "serving" if value == 0 else "refused", "unix_time": 1.0}
    families = parsed("\n".join(exposition(answer({}, [other, {"outcome": outcome, "unix_time": 123.5}]))) + "\n")
    assert families["fkd_last_reload_success"].samples[0].value == value
    assert families["fkd_last_reload_timestamp_seconds"].samples[0].value == 123.5
    assert "fkd_requests" not in families  # nothing was asked: no family without samples


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["stats", "--json", "--prometheus"], "exclude each other"),
        (["--model", "arm.urdf", "stats"], "stats is for a daemon"),
        (["stats", "7"], "one word too many"),
        (["stats", "--prometeus"], "did you mean `--prometheus`?"),
    ],
)
def test_usage(fkctl, words, says):
    ran = fkctl(*words)
    assert ran.status == 2
    assert says in ran.err


def test_no_daemon(fkctl, short_folder):
    assert fkctl("--socket", short_folder / "none", "stats").status == 3


@pytest.mark.parametrize("how", [[], ["--prometheus"]])
@pytest.mark.parametrize(
    "result",
    [b"null", b"7", b"{}", b'{"methods":{}}', json.dumps(answer({"m": {}})).encode(),
     json.dumps(answer({}, [{"outcome": 1}])).encode(),
     json.dumps(answer({"m": {**Meter().report(), "histogram_us": [[1, 1], [1e300, 1e300]], "errors": 7}})).encode(),
     json.dumps(answer({})).replace("2.5", "1e999").replace("1.5", '"x"').encode()],
)  # fmt: skip
def test_an_answer_of_another_shape(fkctl, impostor, result, how):
    ran = fkctl("--socket", impostor(b'{"jsonrpc":"2.0","result":%b,"id":1}\n' % result), "stats", *how)
    assert ran.status == 1
    assert "cannot make sense of the result of stats" in ran.err
    assert ran.out == ""
