"""ik: what people read goes back into fk, failures are one line, and daemon and file answer alike."""

from __future__ import annotations

import json
import re
from math import degrees, radians
from typing import Any

import pytest

Q = [0.1, -0.25, 1e-1, -2.5e-1, 0.5, -1.0]
NAMES = ["j1", "j2", "j3", "j4", "j5", "j6"]


@pytest.fixture(scope="module")
def arm(robots):
    return str(robots / "wire_arm.urdf")


@pytest.fixture
def pose(fkctl, arm) -> dict[str, list[float]]:
    """The tip at Q, in all its forms."""
    found: dict[str, list[float]] = json.loads(fkctl("--model", arm, "decompose", *Q, "--json").out)
    return found


def rows(out: str) -> tuple[list[str], list[list[float]], str]:
    """What was printed: names, configurations, and the last line."""
    header, *lines, last = out.splitlines()
    names = header.split()
    return names, [[float(w) for w in line.split()[: len(names)]] for line in lines], last


def solved(fkctl, arm, *words: Any) -> list[float]:
    ran = fkctl("--model", arm, "ik", *words, "--seed", *Q)
    assert ran.status == 0, ran
    names, (q,), last = rows(ran.out)
    assert names == NAMES
    assert last.startswith("1 solution, ")
    return q


def test_a_solution_goes_back_into_fk(fkctl, arm, pose) -> None:
    for words in (
        ["--xyz", *pose["xyz"], "--rpy", *pose["rpy"]], ["--xyz", *pose["xyz"], "--quat", *pose["quaternion"]],
        ["--matrix", *pose["matrix"]], ["--method", "numeric", "--nearest", "--matrix", *pose["matrix"], "--link", "tool0", "--base", "base"],
    ):  # fmt: skip
        q = solved(fkctl, arm, *words)
        assert q == pytest.approx(Q, abs=2e-6)
        back = json.loads(fkctl("--model", arm, "fk", *q, "--json").out)["poses"]["tool0"]
        assert back == pytest.approx(pose["matrix"], abs=1e-5)


def test_errors_are_in_millimetres_and_degrees(fkctl, arm, pose) -> None:
    ran = fkctl("--model", arm, "ik", "--xyz", *pose["xyz"], "--rpy", *pose["rpy"])
    assert re.search(r"  0\.0000\d\d mm 0\.0000\d\d deg$", ran.out.splitlines()[1])
    assert re.fullmatch(r"1 solution, analytic, 0 iterations, 0 restarts", ran.out.splitlines()[2])
    ran = fkctl("--model", arm, "ik", "--xyz", *pose["xyz"], "--position-only")
    assert ran.out.splitlines()[1].endswith(" mm")


def test_degrees_are_for_all_angles(fkctl, arm, pose) -> None:
    seed = [degrees(x) for x in Q]
    ran = fkctl("--model", arm, "ik", "--deg", "--xyz", *pose["xyz"], "--rpy", *map(degrees, pose["rpy"]), "--seed", *seed)
    _, (q,), last = rows(ran.out)
    assert q == pytest.approx(seed, abs=1e-4)
    assert last.endswith(", angles in degrees")


def test_all_solutions_nearest_to_the_seed_first(fkctl, arm, pose) -> None:
    words = ["--model", arm, "ik", "--matrix", *pose["matrix"], "--all", "--seed", *Q]
    _, found, last = rows(fkctl(*words).out)
    assert found[0] == pytest.approx(Q, abs=1e-6)
    assert last.startswith(f"{len(found)} solutions, analytic")
    assert [s["q"] for s in json.loads(fkctl(*words, "--json").out)["solutions"]] == [pytest.approx(q, abs=1e-8) for q in found]


def test_a_seed_may_be_named_and_partial(fkctl, arm, pose) -> None:
    words = ["--model", arm, "ik", "--matrix", *pose["matrix"], "--nearest", "--json", "--seed"]
    named = fkctl(*words, *(f"{name}={x}" for name, x in zip(NAMES, Q, strict=True)))
    assert named == fkctl(*words, *Q)
    assert fkctl(*words, "j1=0.1").status == 0
    assert "did you mean `j1`" in fkctl(*words, "jj1=0.1").err


def test_a_tool(fkctl, arm, pose) -> None:
    tool = json.loads(fkctl("--model", arm, "call", "compute_fk", json.dumps(
        {"q": Q, "tool": {"xyz": [0, 0, 0.2], "rpy": [0, radians(30), 0]}})).out)["poses"]["tool0"]  # fmt: skip
    q = solved(fkctl, arm, "--matrix", *tool, "--tool-xyz", 0, 0, 0.2, "--tool-rpy", 0, radians(30), 0)
    assert q == pytest.approx(Q, abs=1e-6)


def test_a_failure_is_one_line_with_the_reason_and_the_nearest(fkctl, arm) -> None:
    words = ["--model", arm, "ik", "--xyz", 9, 0, "-1e-3", "--position-only", "--timeout-ms", 9000]
    ran = fkctl(*words)
    assert (ran.status, ran.out) == (1, "")
    assert "[unreachable]" in ran.err
    assert re.search(r"at best it is \S+ mm off", ran.err)
    nearest = [float(w) for w in ran.err.partition("the nearest is q ")[2].split()]
    ran = fkctl(*words, "--best-effort")
    _, (q,), _ = rows(ran.out)
    assert q == pytest.approx(nearest)
    assert "not a solution" in ran.out


def test_tolerances_and_time_are_passed_on(fkctl, arm) -> None:
    words = ["--model", arm, "ik", "--xyz", 2.0, 0, 0.25, "--position-only"]
    assert fkctl(*words).status == 1
    assert fkctl(*words, "--tolerance", 1).status == 0
    assert "position_tolerance" in fkctl(*words, "--tolerance", "-1e-3").err
    assert "orientation_tolerance" in fkctl(*words, "--angle-tolerance", 0).err
    assert "timeout_ms" in fkctl(*words, "--timeout-ms", "1e9").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--xyz"), (["--xyz", 1, 2], "--xyz"), (["--xyz", 1, 2, 3], "--position-only"), (["--rpy", 1, 2, 3], "--xyz"),
        (["--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "--quat", 0, 0, 0, 1], "--quat"), (["--xyz", 1, 2, "x", "--rpy", 0, 0, 0], "`x`"),
        (["--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "--position-only"], "neither"), (["--matrix", *[0] * 16, "--xyz", 1, 2, 3], "--matrix"),
        (["--matrix", *[0] * 15], "--matrix"), (["--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "--all", "--nearest"], "--nearest"),
        (["--xyz", 1, 2, 3, "--rpy", 0, 0, "nan"], "finite"), (["--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "--method", "quick"], "quick"),
        (["--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "--seed", "j1=1", 2], "name=value"), (["--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "7"], "7"),
    ],
)  # fmt: skip
def test_bad_usage(fkctl, arm, words, said) -> None:
    ran = fkctl("--model", arm, "ik", *words)
    assert ran.status == 2
    assert said in ran.err


def test_what_the_robot_does_not_have(fkctl, arm) -> None:
    ran = fkctl("--model", arm, "ik", "--xyz", 1, 0, 1, "--position-only", "--link", "tol0")
    assert (ran.status, "did you mean `tool0`" in ran.err) == (1, True)


def test_wide_joints_have_a_name_for_each_value(fkctl, robots) -> None:
    ran = fkctl("--model", robots / "ctl_cart.urdf", "ik", "--xyz", 0, 0, 0, "--position-only", "--link", "cart")
    names, found, _ = rows(ran.out)
    assert any(name.endswith(".theta") for name in names)
    assert len(found[0]) == len(names)


def test_the_daemon_answers_as_the_file_does(fkctl, arm, pose, daemons) -> None:
    daemon = daemons("wire_arm.urdf")
    words = ["ik", "--matrix", *pose["matrix"], "--all", "--timeout-ms", 9000]
    assert fkctl("--socket", daemon.path, *words) == fkctl("--model", arm, *words)
    assert fkctl("--socket", daemon.path, *words, "--json") == fkctl("--model", arm, *words, "--json")
    words = ["ik", "--xyz", 9, 0, 0, "--position-only", "--timeout-ms", 9000]
    assert fkctl("--socket", daemon.path, *words) == fkctl("--model", arm, *words)


def test_help_has_examples(fkctl) -> None:
    ran = fkctl("ik", "--help")
    assert "fkctl ik --xyz 0.4 -0.1 0.3" in ran.out
