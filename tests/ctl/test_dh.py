"""fkctl dh: the table for people, the drawing, and the file that leads back to the same robot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fkd

ROBOTS = Path(__file__).parent.parent / "robots"
ARM = str(ROBOTS / "wire_arm.urdf")


def test_the_table_is_aligned_and_complete(fkctl) -> None:
    ran = fkctl("--model", ARM, "dh")
    assert ran.status == 0
    lines = ran.out.splitlines()
    assert lines[0] == "standard DH, m and rad: Rz(theta) Tz(d) Tx(a) Rx(alpha)"
    rows = [line.split() for line in lines if line.split()[0].startswith("j") and line.split()[0] != "joint"]
    expected = fkd.load(ARM).dh()["rows"]
    assert [r[:2] for r in rows] == [[e["joint"], e["type"]] for e in expected]
    words = {"pi": np.pi, "-pi": -np.pi, "pi/2": np.pi / 2, "-pi/2": -np.pi / 2}
    for row, e in zip(rows, expected, strict=True):
        assert [words.get(w) or float(w) for w in row[2:]] == pytest.approx([e[k] for k in ("a", "alpha", "d", "theta")], abs=1e-11)
    assert lines[-1].startswith("  residual ")
    assert len({len(line) for line in lines if line.split()[0].startswith("j")} - {0}) == 1


@pytest.mark.parametrize("file", ["t.csv", "t.toml", "t.json"])
@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_its_file_leads_back_to_the_same_robot(fkctl, convention: str, file: str) -> None:
    assert fkctl("--model", ARM, "dh", "--convention", convention, "-o", file).status == 0
    assert fkctl("from-dh", file, "-o", "again.urdf").status == 0
    before, after = fkd.load(ARM), fkd.load("again.urdf")
    assert before.joints == after.joints
    for q in np.random.default_rng(1).uniform(-3, 3, (20, 6)):
        assert np.abs(before.fk(q) - after.fk(q)).max() < 1e-14
    limits = [[(j.limits.lower, j.limits.upper) for j in r.model.independent if j.limits and j.type == "revolute"] for r in (before, after)]
    assert limits[0] == limits[1]


def test_so_does_the_wires_own_result(fkctl) -> None:
    Path("t.json").write_text(fkctl("--model", ARM, "--json", "dh").out)
    assert fkctl("from-dh", "t.json", "--length-unit", "m", "--angle-unit", "rad", "-o", "again.urdf").status == 0
    q = [0.1, -0.2, 0.3, 0.4, 0.5, -0.6]
    assert np.abs(fkd.load(ARM).fk(q) - fkd.load("again.urdf").fk(q)).max() < 1e-14


def test_the_drawing_names_every_joint_and_its_axis(fkctl) -> None:
    for flags in ((), ("--deg",), ("--convention", "modified")):
        ran = fkctl("--model", ARM, "dh", "--draw", *flags)
        assert ran.status == 0
        lines = ran.out.splitlines()
        assert (lines[0], lines[-2]) == ("  [base]", "  [tool0]")
        axes = [line.split("axis ")[1].split(":")[0] for line in lines if "(o)" in line]
        assert [a[1] for a in axes] == ["z", "y", "y", "x", "y", "x"]  # as the description says
    assert "[=]" in fkctl("--model", str(ROBOTS / "wire_slides.urdf"), "dh", "--draw").out


def test_followers_are_said(fkctl) -> None:
    gripper = str(ROBOTS / "wire_gripper.urdf")
    assert "mirror follows: -1 * knuckle + 0" in fkctl("--model", gripper, "dh", "--link", "right_tip").out
    ran = fkctl("--model", gripper, "dh", "--link", "right_tip", "-o", "t.json")  # the knuckle is on the other side
    assert ran.status == 1
    assert "follows `knuckle`, which is not in this chain" in ran.err
    assert fkctl("--model", gripper, "dh", "--link", "right_tip", "--base", "left", "-o", "t.toml").status == 0
    assert fkctl("from-dh", "t.toml", "-o", "again.urdf").status == 0
    again = fkd.load("again.urdf").fk({"knuckle": 0.3})
    assert np.abs(again - fkd.load(gripper).fk({"knuckle": 0.3, "lift": 1.0}, "right_tip", "left")).max() < 1e-15


def test_where_rounding_matters_it_says_so(fkctl) -> None:
    Path("tilted.urdf").write_text(
        "<robot name='tilted'><link name='a'/><link name='b'/><link name='c'/>"
        "<joint name='j1' type='continuous'><parent link='a'/><child link='b'/><axis xyz='0 0 1'/></joint>"
        "<joint name='j2' type='continuous'><parent link='b'/><child link='c'/><origin xyz='0.4 0 0' rpy='0 1e-4 0'/><axis xyz='0 0 1'/></joint></robot>"
    )
    notes = [line for line in fkctl("--model", "tilted.urdf", "dh").out.splitlines() if line.startswith("  note: ")]
    assert "0.0001 rad from parallel, and not taken as parallel" in notes[0]
    assert "lengths up to 4e+03 m nearly cancel" in notes[1]
    assert "twelve digits" in notes[-1]
    assert "note" not in fkctl("--model", ARM, "dh").out


def test_wrong_words(fkctl) -> None:
    assert fkctl("--model", ARM, "dh", "--convention", "classic").status == 2
    assert "did you mean `hand`" in fkctl("--model", ARM, "dh", "--link", "hnad").err
    assert "written as .csv, .toml or .json" in fkctl("--model", ARM, "dh", "-o", "t.txt").err
    assert fkctl("--model", str(ROBOTS / "kin_mixed.urdf"), "dh", "--link", fkd.load(ROBOTS / "kin_mixed.urdf").links[-1]).status in (0, 1)


def test_a_daemon_answers_the_same(fkctl, daemons) -> None:
    daemon = daemons("wire_arm.urdf")
    for flags in ((), ("--draw",), ("--json",)):
        assert fkctl("--socket", daemon.path, "dh", *flags).out == fkctl("--model", ARM, "dh", *flags).out
    assert json.loads(fkctl("--socket", daemon.path, "--json", "dh").out)["residual"] < 1e-14
