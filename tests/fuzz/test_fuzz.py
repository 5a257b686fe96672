"""A moment of fuzzing in every run of the tests; `make fuzz` goes on for ten minutes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("fkd_fuzz", Path(__file__).with_name("fuzz.py"))
fuzz = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz)


def test_a_moment_of_fuzzing() -> None:
    count, faults = fuzz.run(seconds=4.0, seed=1)
    assert not faults
    assert min(count.values()) > 10


def test_the_fuzzer_sees_what_it_looks_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fuzz.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(fuzz, "targets", lambda: {"bad": (lambda data: 1 / 0, [b"x"])})
    _, faults = fuzz.run(seconds=0.05, seed=1)
    assert faults
    assert "ZeroDivisionError" in faults[0]
    assert list(tmp_path.iterdir())
