"""fkctl jacobian: the wire's numbers under their names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import fkd

ARM = str(Path(__file__).parent.parent / "robots" / "wire_arm.urdf")
Q = ["0.1", "-0.2", "0.3", "-0.4", "0.5", "-6e-1"]


def test_rows_and_columns_are_labelled(fkctl) -> None:
    ran = fkctl("--model", ARM, "jacobian", *Q)
    assert ran.status == 0
    head, *rows = ran.out.splitlines()
    assert head.split() == ["j1", "j2", "j3", "j4", "j5", "j6"]
    J = fkd.load(ARM).jacobian([float(x) for x in Q])
    for label, line, expected in zip(("vx", "vy", "vz", "wx", "wy", "wz"), rows, J, strict=False):
        name, *values = line.split()
        assert name == label
        assert np.abs(np.array(values, float) - expected).max() < 1e-9
    assert rows[6].split()[0] == "manipulability"
    assert len(rows[7].split()) == 2 + 6


def test_json_is_the_wires_result(fkctl) -> None:
    found = json.loads(fkctl("--model", ARM, "--json", "jacobian", *Q, "--link", "hand", "--base", "forearm", "--frame", "tip").out)
    expected = fkd.load(ARM).jacobian([float(x) for x in Q], "hand", "forearm", frame="tip")
    assert np.array_equal(found["jacobian"], expected)


def test_degrees(fkctl) -> None:
    a = json.loads(fkctl("--model", ARM, "--json", "jacobian", *["90"] * 6, "--deg").out)
    b = json.loads(fkctl("--model", ARM, "--json", "jacobian", *[repr(np.pi / 2)] * 6).out)
    assert np.abs(np.array(a["jacobian"]) - b["jacobian"]).max() < 1e-15


def test_values_of_a_wide_joint_have_a_column_each(fkctl) -> None:
    mixed = Path(ARM).parent / "kin_mixed.urdf"
    robot = fkd.load(mixed)
    ran = fkctl("--model", mixed, "jacobian", *["0.5"] * robot.dof, "--link", robot.links[-1])
    assert ran.status == 0, ran
    heads = ran.out.splitlines()[0].split()
    assert len(heads) == len(set(heads)) == robot.dof
    assert {"drive.theta", "flight.qw", "elbow"} <= set(heads)


def test_a_daemon_gives_what_the_file_gives(fkctl, shared_daemon) -> None:
    options = (*Q, "--link", "hand", "--frame", "tip")
    assert fkctl("--socket", shared_daemon.path, "jacobian", *options) == fkctl("--model", ARM, "jacobian", *options)


def test_wrong_words(fkctl) -> None:
    assert fkctl("--model", ARM, "jacobian", "0").status == 1
    assert fkctl("--model", ARM, "jacobian", *Q, "--frame", "world").status == 2
    assert "did you mean `hand`" in fkctl("--model", ARM, "jacobian", *Q, "--link", "hnad").err
