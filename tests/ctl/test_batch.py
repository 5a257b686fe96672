"""fkctl batch: every format against the poses one by one, from a file and from a daemon; and all that it refuses."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import fkd
from fkd.ctl.tables import ROWS, CsvReader, NpyWriter

ROBOTS = Path(__file__).parent.parent / "robots"
ARM = str(ROBOTS / "wire_arm.urdf")
NAMES = ["j1", "j2", "j3", "j4", "j5", "j6"]


@pytest.fixture(scope="module")
def q() -> np.ndarray:
    return np.random.default_rng(7).uniform(-3, 3, (ROWS + 321, 6))


@pytest.fixture(scope="module")
def poses(q: np.ndarray) -> np.ndarray:
    robot = fkd.load(ARM)
    return np.array([robot.fk(row) for row in q])


def write_csv(path: Path, q: np.ndarray, header: list[str] | None = None) -> str:
    lines = [",".join(header)] if header else []
    path.write_text("\n".join([*lines, *(",".join(map(repr, row)) for row in q.tolist())]) + "\n")
    return str(path)


def read_csv(name: str) -> tuple[list[str], np.ndarray]:
    head, *rows = Path(name).read_text().splitlines()
    return head.split(","), np.array([[float(x) for x in row.split(",")] for row in rows])


def ulps(a: np.ndarray, b: np.ndarray) -> float:
    """How far apart, in units of the last place of 1 where numbers are small."""
    return float((np.abs(a - b) / np.spacing(np.maximum(np.abs(b), 1.0))).max())


def test_npy_in_and_out(fkctl, q, poses, tmp_path) -> None:
    np.save("q.npy", q)
    ran = fkctl("--model", ARM, "batch", "q.npy", "poses.npy")
    assert (ran.status, ran.out) == (0, f"{len(q)} rows, 1 link: poses.npy\n")
    got = np.load("poses.npy")
    assert got.shape == (len(q), 4, 4)
    assert ulps(got, poses) <= 2


def test_all_formats_say_the_same(fkctl, q) -> None:
    np.save("q.npy", q)
    write_csv(Path("q.csv"), q)
    mixed = [3, 0, 5, 1, 4, 2]
    write_csv(Path("named.csv"), q[:, mixed], [NAMES[k] for k in mixed])
    pa.parquet.write_table(pa.table({NAMES[k]: q[:, k] for k in mixed}), "q.parquet")
    for name in ("q.npy", "q.csv", "named.csv", "q.parquet"):
        for out in (".npy", ".csv", ".parquet"):
            assert fkctl("--model", ARM, "batch", name, name + out, "--format", "matrix").status == 0
    expected = np.load("q.npy.npy").reshape(-1, 16)
    columns = [f"tool0.m{i}{j}" for i in range(4) for j in range(4)]
    for name in ("q.npy", "q.csv", "named.csv", "q.parquet"):
        assert np.array_equal(np.load(f"{name}.npy").reshape(-1, 16), expected)
        head, rows = read_csv(f"{name}.csv")
        assert head == columns
        assert np.array_equal(rows, expected)
        table = pa.parquet.read_table(f"{name}.parquet")
        assert table.column_names == columns
        assert np.array_equal(np.array(table.columns).T, expected)


def test_poses_as_places_and_quaternions(fkctl, q) -> None:
    rows = q[:5]
    write_csv(Path("q.csv"), rows)
    assert fkctl("--model", ARM, "batch", "q.csv", "poses.csv", "--link", "hand", "--link", "tool0", "--base", "forearm").status == 0
    head, got = read_csv("poses.csv")
    assert head == [f"{link}.{part}" for link in ("hand", "tool0") for part in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    for row, values in zip(got, rows.tolist(), strict=True):
        out = fkctl("--model", ARM, "--json", "fk", "--link", "hand", "--link", "tool0", "--base", "forearm", "--format", "pose", "--", *map(repr, values)).out
        one = json.loads(out)["poses"]
        expected = [x for link in ("hand", "tool0") for x in (*one[link]["xyz"], *one[link]["quaternion"])]
        assert row == pytest.approx(expected, abs=1e-14)


def test_several_links_have_an_axis_of_their_own_in_npy(fkctl, q) -> None:
    np.save("q.npy", q[:3])
    assert fkctl("--model", ARM, "batch", "q.npy", "m.npy", "--link", "hand", "--link", "tool0").status == 0
    assert fkctl("--model", ARM, "batch", "q.npy", "p.npy", "--link", "hand", "--link", "tool0", "--format", "pose").status == 0
    assert np.load("m.npy").shape == (3, 2, 4, 4)
    assert np.load("p.npy").shape == (3, 2, 7)


def test_a_daemon_gives_the_same_within_two_units_of_the_last_place(fkctl, daemons: Any, q, poses) -> None:
    daemon = daemons("wire_arm.urdf")
    np.save("q.npy", q)
    assert fkctl("--socket", daemon.path, "batch", "q.npy", "live.npy").status == 0
    assert np.array_equal(np.load("live.npy"), poses)  # row by row the single kernel
    assert fkctl("--model", ARM, "batch", "q.npy", "file.npy").status == 0
    assert ulps(np.load("file.npy"), poses) <= 2


def test_degrees_are_for_what_turns(fkctl) -> None:
    gantry = str(ROBOTS / "wire_gripper.urdf")
    write_csv(Path("rad.csv"), np.array([[0.25, 0.5]]), ["lift", "knuckle"])
    write_csv(Path("deg.csv"), np.array([[0.25, np.degrees(0.5)]]), ["lift", "knuckle"])
    for name, flags in (("rad.csv", ()), ("deg.csv", ("--deg",))):
        assert fkctl("--model", gantry, "batch", name, name + ".npy", "--link", "right_tip", *flags).status == 0
    assert np.abs(np.load("rad.csv.npy") - np.load("deg.csv.npy")).max() < 1e-15


def test_wide_joints_have_a_column_for_each_value(fkctl) -> None:
    mixed = str(ROBOTS / "kin_mixed.urdf")
    robot = fkd.load(mixed)
    rows = np.random.default_rng(3).uniform(0.1, 1, (4, robot.dof))
    np.save("q.npy", rows)
    assert fkctl("--model", mixed, "batch", "q.npy", "a.npy", "--link", robot.links[-1]).status == 0
    names = []
    for j in robot.model.independent:
        parts = {1: ("",), 3: (".x", ".y", ".theta"), 7: (".x", ".y", ".z", ".qx", ".qy", ".qz", ".qw")}[j.width]
        names += [j.name + p for p in parts]
    write_csv(Path("q.csv"), rows[:, ::-1], names[::-1])
    assert fkctl("--model", mixed, "batch", "q.csv", "b.npy", "--link", robot.links[-1]).status == 0
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))
    ran = fkctl("--model", mixed, "batch", "q.csv", "c.npy", "--deg", "--link", robot.links[-1])
    assert ran.status == 1
    assert "--deg is not defined" in ran.err


CSV_FAULTS = {
    "1,2,3\n": "q.csv:1: 3 values where 6",
    "1,2,3,4,5,6\n1,2,3,4,5\n": "q.csv:2: 5 values where 6",
    "1,2,3,4,5,6\n\n": "q.csv:2: 1 values where 6",
    "1,2,3,4,5,x\n": "q.csv:1: column 6: `x` is not a number",
    "1,2,3,4,5,1_0\n": "q.csv:1: column 6: `1_0`",
    "1,2,3,4,5,0x1\n": "q.csv:1: column 6",
    "1,2,3,4,5,\n": "q.csv:1: column 6",
    "1,2,3,4,5,\u0665\n": "q.csv:1: column 6",
    "1,2,3,4,5,nan\n": "q.csv:1: a value is not a finite number",
    "0,0,0,0,0,0\n1,2,3,4,5,1e999\n": "q.csv:2: a value is not a finite number",
    "1;2;3;4;5;6\n": "q.csv:1: expected values parted by commas",
    "1,5;2,5;3,5\n": "q.csv:1: 4 values where 6",
    "j1,j2,j3,j4,j5,jj6\n": "q.csv:1: no joint `jj6`; did you mean `j6`?",
    "j1,j2,j3,j4,j5,j5\n": "q.csv:1: column `j5` is there twice",
    "j1,j2,j3,j4,j5\n": "q.csv:1: no column for `j6`",
    "time,j1,j2,j3,j4,j5,j6\n": "no joint `time`",
}


@pytest.mark.parametrize("content", CSV_FAULTS, ids=range(len(CSV_FAULTS)))
def test_what_a_csv_may_not_hold_is_refused_with_its_line(fkctl, content: str) -> None:
    Path("q.csv").write_text(content)
    ran = fkctl("--model", ARM, "batch", "q.csv", "out.csv")
    assert ran.status == 1
    assert CSV_FAULTS[content] in ran.err
    assert os.listdir() == ["q.csv"]


def test_columns_that_are_no_joints_can_be_left_out(fkctl, q) -> None:
    lines = [f'"a, b",{",".join(map(repr, row))},ok' for row in q[:3].tolist()]
    Path("q.csv").write_text("\n".join(["note," + ",".join(NAMES) + ",state", *lines]))
    assert fkctl("--model", ARM, "batch", "q.csv", "a.npy", "--skip", "note", "--skip", "state").status == 0
    np.save("q.npy", q[:3])
    assert fkctl("--model", ARM, "batch", "q.npy", "b.npy").status == 0
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))
    assert "no column `nite`" in fkctl("--model", ARM, "batch", "q.csv", "c.npy", "--skip", "nite", "--skip", "note", "--skip", "state").err


@pytest.mark.parametrize("array", [np.zeros(6), np.zeros((2, 5)), np.zeros((2, 6), dtype=bool), np.full((2, 6), "x"), np.zeros((2, 6), complex)])
def test_arrays_of_other_shapes_or_kinds_are_refused(fkctl, array: np.ndarray) -> None:
    np.save("q.npy", array)
    ran = fkctl("--model", ARM, "batch", "q.npy", "out.npy")
    assert ran.status == 1
    assert "expected numbers of shape (n, 6)" in ran.err


def test_pickled_broken_and_absent_files_are_refused(fkctl) -> None:
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    Path("broken.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff")
    Path("broken.parquet").write_bytes(b"PAR1")
    Path("folder.csv").mkdir()
    for name in ("objects.npy", "broken.npy", "broken.parquet", "folder.csv", "absent.csv"):
        ran = fkctl("--model", ARM, "batch", name, "out.npy")
        assert ran.status == 1
        assert f"cannot read {name}" in ran.err
    assert not Path("out.npy").exists()


def test_parquet_columns_must_be_numbers_without_gaps(fkctl) -> None:
    for column in (["a"], [None], [True]):
        pa.parquet.write_table(pa.table({**{n: [0.0] for n in NAMES[:5]}, "j6": column}), "q.parquet")
        ran = fkctl("--model", ARM, "batch", "q.parquet", "out.npy")
        assert ran.status == 1
        assert "j6" in ran.err or "not a finite number" in ran.err


def test_names_and_places_that_do_not_fit(fkctl, q) -> None:
    np.save("q.npy", q[:2])
    for arguments, status, words in [
        (("q.npy", "q.npy"), 2, "same file"),
        (("q.npy", "out.txt"), 1, "tables end in .csv, .npy, .parquet"),
        (("q.nyp", "out.npy"), 1, "did you mean `.npy`"),
        (("q.npy", "nowhere/out.npy"), 1, "cannot write nowhere/out.npy"),
        (("q.npy", "."), 1, "tables end in"),
        (("q.npy", "out.npy", "--link", "hnad"), 1, "did you mean `hand`"),
        (("q.npy", "out.npy", "--base", "bsae"), 1, "did you mean `base`"),
        (("q.npy", "out.npy", "--skip", "time"), 1, "names no columns"),
    ]:
        ran = fkctl("--model", ARM, "batch", *arguments)
        assert ran.status == status, ran
        assert words in ran.err
    assert sorted(os.listdir()) == ["q.npy"]


def test_a_pose_beyond_a_double_names_its_row(fkctl, daemons: Any) -> None:
    slides = str(ROBOTS / "wire_slides.urdf")
    write_csv(Path("q.csv"), np.array([[0.0, 0.0]] * 3 + [[1e308, 1e308]]))
    daemon = daemons("wire_slides.urdf")
    for target in (("--model", slides), ("--socket", daemon.path)):
        ran = fkctl(*target, "batch", "q.csv", "out.csv")
        assert ran.status == 1
        assert "q.csv:4: the pose at this q is beyond the range of a double" in ran.err


def test_a_model_that_changes_on_the_way_ends_the_batch(fkctl, monkeypatch: pytest.MonkeyPatch, q) -> None:
    """Rows of two models in one file would be a wrong answer."""
    from fkd.ctl.target import Local

    digests = iter(["a", "a", "b"])
    honest = Local.ask

    def ask(self: Local, method: str, params: Any) -> bytes:
        answer = json.loads(honest(self, method, params))
        answer["digest"] = next(digests)
        return json.dumps(answer).encode()

    monkeypatch.setattr(Local, "ask", ask)
    monkeypatch.setattr("fkd.ctl.batch.local", lambda answers, links, base: __import__("fkd.ctl.batch").ctl.batch.live(answers, MODEL, links, base))
    np.save("q.npy", q)
    MODEL.update(json.loads(honest(Local(ARM), "model", [])), digest="a")
    ran = fkctl("--model", ARM, "batch", "q.npy", "out.npy")
    assert ran.status == 1
    assert "model changed" in ran.err
    assert os.listdir() == ["q.npy"]


MODEL: dict[str, Any] = {}


def test_progress_is_for_terminals(fkctl, daemons: Any, q, tmp_path: Path) -> None:
    import subprocess
    import sys

    np.save("q.npy", q)
    command = [sys.executable, "-m", "fkd.ctl", "--model", ARM, "batch", "q.npy", "out.npy"]
    for flags, shown in (([], True), (["--quiet"], False)):
        leader, follower = pty.openpty()
        done = subprocess.run([*command, *flags], stderr=follower, stdout=subprocess.PIPE, check=True)
        os.close(follower)
        seen = b""
        try:
            while data := os.read(leader, 1 << 16):
                seen += data
        except OSError:  # the end of a terminal (EIO)
            pass
        os.close(leader)
        assert (b"100%" in seen) is shown
        assert done.stdout.endswith(b"out.npy\n")
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""


def test_json_says_what_was_done(fkctl, q) -> None:
    np.save("q.npy", q[:2])
    found = json.loads(fkctl("--model", ARM, "--json", "batch", "q.npy", "out.npy").out)
    assert found == {"rows": 2, "links": ["tool0"], "format": "matrix", "digest": fkd.load(ARM).digest}


def test_an_npy_of_no_rows_reads_back(tmp_path: Path) -> None:
    writer = NpyWriter(tmp_path / "a.npy", (4, 4))
    writer.close()
    assert np.load(tmp_path / "a.npy").shape == (0, 4, 4)


def test_memory_does_not_grow_with_the_rows_of_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("0,0\n" * (3 * ROWS + 1))
    sizes = [len(c.values) for c in CsvReader(str(path), ["a", "b"], []).chunks()]
    assert sizes == [ROWS] * 3 + [1]
