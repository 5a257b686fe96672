"""What columns mean: degrees, joints of several values, followers that are told too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import fkd

ROBOTS = Path(__file__).parent.parent / "robots"
GRIPPER = str(ROBOTS / "wire_gripper.urdf")


def write_csv(path: str, q: np.ndarray, header: list[str] | None = None) -> None:
    lines = [",".join(header)] if header else []
    Path(path).write_text("\n".join([*lines, *(",".join(map(repr, row)) for row in q.tolist())]) + "\n")


def test_degrees_are_for_what_turns(fkctl) -> None:
    write_csv("rad.csv", np.array([[0.25, 0.5]]), ["lift", "knuckle"])
    write_csv("deg.csv", np.array([[0.25, np.degrees(0.5)]]), ["lift", "knuckle"])
    for name, flags in (("rad.csv", ()), ("deg.csv", ("--deg",))):
        assert fkctl("--model", GRIPPER, "batch", name, name + ".npy", "--link", "right_tip", *flags).status == 0
    assert np.abs(np.load("rad.csv.npy") - np.load("deg.csv.npy")).max() < 1e-15


def test_wide_joints_have_a_column_for_each_value(fkctl) -> None:
    mixed = str(ROBOTS / "kin_mixed.urdf")
    robot = fkd.load(mixed)
    rows = np.random.default_rng(3).uniform(0.1, 1, (4, robot.dof))
    np.save("q.npy", rows)
    names = []
    for j in robot.model.independent:
        parts = {1: ("",), 3: (".x", ".y", ".theta"), 7: (".x", ".y", ".z", ".qx", ".qy", ".qz", ".qw")}[j.width]
        names += [j.name + p for p in parts]
    write_csv("q.csv", rows[:, ::-1], names[::-1])
    pa.parquet.write_table(pa.table({name: rows[:, k] for k, name in enumerate(names)}), "q.parquet")
    for name in ("q.npy", "q.csv", "q.parquet"):
        assert fkctl("--model", mixed, "batch", name, f"{name}.npy", "--link", robot.links[-1]).status == 0
        assert np.array_equal(np.load("q.npy.npy"), np.load(f"{name}.npy"))
    ran = fkctl("--model", mixed, "batch", "q.csv", "c.npy", "--deg", "--link", robot.links[-1])
    assert ran.status == 1
    assert "--deg is not defined" in ran.err


def test_followers_may_be_there_if_they_agree(fkctl) -> None:
    """curl = 2 mirror + 0.5, mirror = -knuckle, in degrees too."""
    lift, knuckle = np.array([0.25, 0.5, 0.75]), np.array([0.125, -0.25, 0.5])
    header, rows = ["curl", "knuckle", "lift", "mirror"], np.array([0.5 - 2 * knuckle, knuckle, lift, -knuckle]).T
    degrees = np.degrees(rows)
    degrees[:, 2] = lift
    command = ("--model", GRIPPER, "batch", "q.csv")
    options = ("--link", "right_tip")
    write_csv("q.csv", rows, header)
    assert fkctl(*command, "a.npy", *options).status == 0
    write_csv("q.csv", degrees, header)
    assert fkctl(*command, "b.npy", *options, "--deg").status == 0
    write_csv("q.csv", rows[:, [2, 1]])
    assert fkctl(*command, "c.npy", *options).status == 0
    assert np.array_equal(np.load("a.npy"), np.load("c.npy"))
    assert np.abs(np.load("a.npy") - np.load("b.npy")).max() < 1e-15
    rows[1, 0] += 1e-5
    write_csv("q.csv", rows, header)
    ran = fkctl(*command, "d.npy", *options)
    assert ran.status == 1
    assert "q.csv:3: column `curl`: it follows `knuckle` and should be 1, got 1.00001" in ran.err
    assert fkctl(*command, "d.npy", *options, "--skip", "curl").status == 0
    assert np.array_equal(np.load("a.npy"), np.load("d.npy"))
