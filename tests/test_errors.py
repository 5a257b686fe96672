"""The table of errors; and the nearest name: what a slip of the fingers was most likely meant to be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd import errors
from fkd.errors import FkdError, did_you_mean, nearest

LINKS = [f"{side}_{part}_{k}_link" for side in ("left", "right") for part in ("shoulder", "elbow", "wrist") for k in range(1, 5)]
METHODS = ["compute_fk", "compute_fk_batch", "compute_ik", "decompose", "status", "stats", "ping", "pin"]

names = st.text("abcdefg_123", min_size=1, max_size=12)


@given(st.lists(names, min_size=1, max_size=8), st.data())
def test_a_name_is_nearest_to_itself_in_any_case(candidates: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(candidates))
    assert nearest(name, candidates) == name
    assert nearest(name.upper(), candidates) == name


@given(st.text(max_size=300), st.lists(st.text(max_size=12), max_size=8))
def test_only_what_exists_is_suggested(name: str, candidates: list[str]) -> None:
    found = nearest(name, candidates)
    assert found is None or found in candidates
    assert did_you_mean(name, candidates) == (f"; did you mean `{found}`?" if found else "")


def test_a_letter_left_out_doubled_or_swapped_does_not_hide_a_name() -> None:
    for name in LINKS:
        for k in range(1, len(name) - 1):
            slips = {name[:k] + name[k + 1 :], name[:k] + name[k] + name[k:], name[:k] + name[k + 1] + name[k] + name[k + 2 :]}
            for slip in slips:
                if any(c.isdigit() for c in slip):  # else it may be any of its kind
                    assert nearest(slip, LINKS) == name, slip


@pytest.mark.parametrize(
    ("name", "pool", "meant"),
    [
        ("compute_kf", METHODS, "compute_fk"), ("ComputeFK", METHODS, "compute_fk"), ("compute_fk_bach", METHODS, "compute_fk_batch"),
        ("wirst", ["elbow", "wrist"], "wrist"), ("tool", ["tool0", "base"], "tool0"), ("arm.urdf", ["urdf/arm.urdf", "README"], "urdf/arm.urdf"),
        ("lnik", ["link", "base"], "link"), ("zzz", METHODS, None), ("j7", ["j1", "j2"], None), ("", METHODS, None),
        ("x" * 300, ["x"], None), ("compute_fk" * 30, METHODS, None), ("a", [], None),
    ],
)  # fmt: skip
def test_examples(name: str, pool: list[str], meant: str | None) -> None:
    assert nearest(name, pool) == meant


# -- the table at the head of errors.py, from which `rpc.discover` describes the errors ---------------------------------

ROWS = {name: (int(code), set(re.findall(r"`(\w+)`", data))) for name, code, data in
        re.findall(r"^\| `(\w+)` +\| (-\d+) \| .*? +\| (.*?) +\|$", errors.__doc__ or "", re.MULTILINE)}  # fmt: skip
CLASSES = {c.__name__: c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, FkdError) and c is not FkdError}


def test_every_class_has_its_row_and_every_row_its_class() -> None:
    assert {name: code for name, (code, _) in ROWS.items()} == {name: c.code for name, c in CLASSES.items()}


def test_an_error_has_no_data_that_its_row_does_not_name() -> None:
    """As far as the source says it: every keyword with which one is made."""
    made = 0
    for file in Path(errors.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ROWS:
                given = {k.arg for k in call.keywords if k.arg} - {"reason"}
                assert given <= ROWS[call.func.id][1], f"{file}:{call.lineno}"
                made += 1
    assert made > 100
