"""compute_fk_batch: row by row what compute_fk says, in slices, with the row named that is wrong."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from fkd.dispatch import call, run, serving
from fkd.errors import FkdError, InvalidParams, ModelError, TooLarge
from fkd.methods.poses import MAX_POSES
from fkd.robot import load
from fkd.service import Session

ROBOTS = Path(__file__).parent.parent / "robots"
arm = Session(serving(load(ROBOTS / "wire_arm.urdf")))
gripper = Session(serving(load(ROBOTS / "wire_gripper.urdf")))
rows_of_six = st.lists(st.lists(st.floats(-3, 3), min_size=6, max_size=6), max_size=40)


def ask(session: Session, method: str, params: Any) -> Any:
    return json.loads(run(session, method, Raw(json.dumps(params).encode())), parse_constant=pytest.fail)


def refused(session: Session, params: Any) -> FkdError:
    with pytest.raises(FkdError) as e:
        run(session, "compute_fk_batch", Raw(json.dumps(params).encode()))
    return e.value


@given(rows_of_six, st.sampled_from([None, ["hand"], ["hand", "base", "tool0"], "all"]), st.sampled_from(["matrix", "pose", "ros"]))
@settings(max_examples=30, deadline=None)
def test_each_row_is_compute_fk_to_the_bit(rows: list[list[float]], links: Any, form: str) -> None:
    options = {"links": links, "format": form, "base": "forearm", "tool": {"xyz": [0.1, 0, 0], "rpy": [0, 0.5, 0]}, "degrees": True}
    batch = ask(arm, "compute_fk_batch", {"q": rows, **options})["poses"]
    singles = [ask(arm, "compute_fk", {"q": q, **options})["poses"] for q in rows]
    assert all(batch[link] == [single[link] for single in singles] for link in batch)
    assert list(batch) == (list(singles[0]) if singles else list(batch))


def test_rows_may_name_their_joints() -> None:
    rows = [{"lift": 0.5, "knuckle": 0.25}, {"knuckle": 1}]
    got = ask(gripper, "compute_fk_batch", {"q": rows, "links": "palm", "missing": "zero"})["poses"]["palm"]
    assert [T[11] for T in got] == [0.5, 0.0]


def test_no_rows_are_no_poses() -> None:
    assert ask(arm, "compute_fk_batch", {"q": []}) == {"poses": {"tool0": []}}
    assert isinstance(refused(arm, {"q": [], "links": ["nowhere"]}), ModelError)
    assert isinstance(refused(arm, {"q": [], "base": "nowhere"}), ModelError)


def test_the_stamp_says_which_model_answered() -> None:
    got = ask(arm, "compute_fk_batch", {"q": [[0] * 6], "stamp": True})
    assert (got["digest"], got["generation"]) == (arm.robot.digest, 1)
    assert got["elapsed_ns"] > 0


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ([0] * 5, "$.params.q[2]"),
        ([0] * 7, "$.params.q[2]"),
        ([0, 0, "x", 0, 0, 0], "$.params.q[2][2]"),
        ([0, 0, 0, None, 0, 0], "$.params.q[2][3]"),
        ([0, [0], 0, 0, 0, 0], "$.params.q[2][1]"),
        ([True, 0, 0, 0, 0, 0], "$.params.q[2][0]"),
        (5, "$.params.q[2]"),
        ("row", "$.params.q[2]"),
        ({"j1": "x"}, "$.params.q[2].j1"),
        ({"j1": 0}, "$.params.q[2]"),
    ],
)
def test_the_row_that_is_wrong_is_named(row: Any, path: str) -> None:
    error = refused(arm, {"q": [[0] * 6, [0] * 6, row, [0] * 6]})
    assert isinstance(error, InvalidParams)
    assert error.data["path"] == path


def test_a_pose_beyond_a_double_is_refused_by_its_row() -> None:
    slides = Session(serving(load(ROBOTS / "wire_slides.urdf")))
    error = refused(slides, {"q": [[0, 0], [1e308, 1e308]]})
    assert (error.reason, error.data["path"]) == ("overflow", "$.params.q[1]")


@pytest.mark.parametrize("params", [{"q": [[0] * 6], "links": "nowhere"}, {"q": [[0] * 6], "base": "nowhere"}])
def test_unknown_links_are_refused(params: Any) -> None:
    assert isinstance(refused(arm, params), ModelError)


@pytest.mark.parametrize("params", [[], [[0] * 6], {}, {"q": 5}, {"q": {"j1": 0}}, {"q": [], "rows": 1}, {"q": None}])
def test_other_params_are_refused(params: Any) -> None:
    assert isinstance(refused(arm, params), InvalidParams)


def test_more_poses_than_one_answer_may_hold_are_refused_at_once() -> None:
    error = refused(arm, {"q": [0] * (MAX_POSES // 5), "links": "all"})
    assert isinstance(error, TooLarge)
    assert error.data["limit"] == MAX_POSES


def test_a_long_batch_is_work_of_many_steps() -> None:
    work = call(arm, "compute_fk_batch", Raw(json.dumps({"q": [[0] * 6] * 320}).encode()))
    assert isinstance(work, Generator)
    assert sum(1 for _ in work) >= 10
