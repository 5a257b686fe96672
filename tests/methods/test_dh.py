"""dh over the wire: the shape of the result, what is refused and how, and turns for others meanwhile."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Raw

from fkd.dispatch import call, run, serving
from fkd.errors import FkdError
from fkd.kernel.steps import finished
from fkd.robot import load
from fkd.service import Session

ROBOTS = Path(__file__).parent.parent / "robots"
arm = Session(serving(load(ROBOTS / "wire_arm.urdf")))
mixed = Session(serving(load(ROBOTS / "kin_mixed.urdf")))
gripper = Session(serving(load(ROBOTS / "wire_gripper.urdf")))


def ask(session: Session, **params: Any) -> Any:
    return json.loads(run(session, "dh", Raw(json.dumps(params).encode())), parse_constant=pytest.fail)


def refused(session: Session, params: Any) -> FkdError:
    with pytest.raises(FkdError) as e:
        run(session, "dh", Raw(json.dumps(params).encode()))
    return e.value


def test_the_result_has_what_the_design_says() -> None:
    for convention in ("standard", "modified"):
        got = ask(arm, convention=convention)
        assert set(got) == {"convention", "rows", "base", "tool", "residual", "cases"}
        assert got["convention"] == convention
        assert [row["joint"] for row in got["rows"]] == ["j1", "j2", "j3", "j4", "j5", "j6"]
        assert all(set(row) >= {"joint", "type", "a", "alpha", "d", "theta"} for row in got["rows"])
        assert np.shape(got["base"]) == np.shape(got["tool"]) == (16,)
        assert 0 <= got["residual"] < 1e-14
    assert ask(arm) == ask(arm, convention="standard", link="tool0", base="base")


def test_a_followers_row_takes_its_own_value() -> None:
    """`mimic` says how to come by it."""
    got = ask(gripper, link="right_tip")
    assert got["mimic"] == {
        "mirror": {"joint": "knuckle", "multiplier": -1.0, "offset": 0.0}, "curl": {"joint": "knuckle", "multiplier": -2.0, "offset": 0.5},
    }  # fmt: skip


@pytest.mark.parametrize(("params", "code", "reason", "path"), [
    ({"convention": "classic"}, -32602, "unknown-choice", "$.params.convention"),
    ({"convention": 1}, -32602, None, "$.params.convention"),
    ({"link": "hnad"}, -32001, "unknown-link", "$.params.link"),
    ({"base": "hnad"}, -32001, "unknown-link", "$.params.base"),
    ({"link": "j6"}, -32001, "joint-not-link", "$.params.link"),
    ({"link": 7}, -32602, None, "$.params.link"),
    ({"links": "hand"}, -32602, None, None),
    ([0, 0, 0, 0, 0, 0], -32602, None, None),
])  # fmt: skip
def test_what_is_refused(params: Any, code: int, reason: str | None, path: str | None) -> None:
    error = refused(arm, params)
    assert error.code == code
    assert reason in (None, error.reason)
    assert path in (None, error.data.get("path"))


def test_planar_and_floating_joints_are_named() -> None:
    model = mixed.robot.model
    seen = set()
    for link in model.links:
        if kinds := [j for j in model.chain(link) if j.type in ("planar", "floating")]:
            error = refused(mixed, {"link": link, "base": model.root})
            seen.add(error.reason)
            assert error.reason in {f"{j.type}-joint" for j in kinds}
            assert any(f"`{j.name}`" in str(error) for j in kinds)
    assert seen


def test_others_have_their_turns_meanwhile() -> None:
    work = call(arm, "dh", Raw(b"{}"))
    assert isinstance(work, Generator)
    for _ in range(20):
        next(work)
        assert json.loads(run(arm, "ping", Raw(b"[]"))) == "pong"
    assert json.loads(finished(work)) == ask(arm)
