"""fkctl batch: every format against the poses one by one, from a file and from a daemon; and all that it refuses."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import fkd
from fkd.ctl.main import main
from fkd.ctl.tables import ROWS
from fkd.ctl.target import Local
from fkd.errors import FkdError
from fkd.kernel.pose import quaternion_from_rotation, rotation_of

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


def write_csv(path: str, q: np.ndarray, header: list[str] | None = None) -> None:
    lines = [",".join(header)] if header else []
    Path(path).write_text("\n".join([*lines, *(",".join(map(repr, row)) for row in q.tolist())]) + "\n")


def read_csv(name: str) -> tuple[list[str], np.ndarray]:
    head, *rows = Path(name).read_text().splitlines()
    return head.split(","), np.array([[float(x) for x in row.split(",")] for row in rows])


def ulps(a: np.ndarray, b: np.ndarray) -> float:
    """How far apart, in units of the last place of 1 where numbers are small."""
    return float((np.abs(a - b) / np.spacing(np.maximum(np.abs(b), 1.0))).max())


def test_rows_are_the_poses_one_by_one(fkctl, q, poses) -> None:
    np.save("q.npy", q)
    ran = fkctl("--model", ARM, "batch", "q.npy", "poses.npy")
    assert (ran.status, ran.out) == (0, f"{len(q)} rows, 1 link: poses.npy\n")
    got = np.load("poses.npy")
    assert got.shape == (len(q), 4, 4)
    assert ulps(got, poses) <= 2


def test_rows_are_pinocchios(fkctl, q) -> None:
    pin = pytest.importorskip("pinocchio")
    np.save("q.npy", q)
    assert fkctl("--model", ARM, "batch", "q.npy", "poses.npy").status == 0
    got = np.load("poses.npy")
    model = pin.buildModelFromUrdf(ARM)
    data = model.createData()
    for k in range(0, len(q), 500):
        there = pin.neutral(model)
        for name, value in zip(NAMES, q[k], strict=True):
            joint = model.joints[model.getJointId(name)]
            there[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
        pin.framesForwardKinematics(model, data, there)
        assert np.abs(got[k] - data.oMf[model.getFrameId("tool0")].homogeneous).max() < 1e-12


def test_all_formats_say_the_same(fkctl, q) -> None:
    np.save("q.npy", q)
    write_csv("q.csv", q)
    mixed = [3, 0, 5, 1, 4, 2]
    write_csv("named.csv", q[:, mixed], [NAMES[k] for k in mixed])
    pa.parquet.write_table(pa.table({NAMES[k]: q[:, k] for k in mixed}), "q.parquet")
    names = ("q.npy", "q.csv", "named.csv", "q.parquet")
    for name in names:
        for out in (".npy", ".csv", ".parquet"):
            assert fkctl("--model", ARM, "batch", name, name + out, "--format", "matrix").status == 0
    expected = np.load("q.npy.npy").reshape(-1, 16)
    columns = [f"tool0.m{i}{j}" for i in range(4) for j in range(4)]
    for name in names:
        assert np.array_equal(np.load(f"{name}.npy").reshape(-1, 16), expected)
        head, rows = read_csv(f"{name}.csv")
        assert head == columns
        assert np.array_equal(rows, expected)
        table = pa.parquet.read_table(f"{name}.parquet")
        assert table.column_names == columns
        assert np.array_equal(np.array(table.columns).T, expected)


def test_poses_as_places_and_quaternions(fkctl, q) -> None:
    write_csv("q.csv", q[:50])
    assert fkctl("--model", ARM, "batch", "q.csv", "poses.csv", "--link", "hand", "--link", "tool0", "--base", "forearm").status == 0
    head, got = read_csv("poses.csv")
    assert head == [f"{link}.{part}" for link in ("hand", "tool0") for part in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    robot = fkd.load(ARM)
    for row, values in zip(got, q[:50], strict=True):
        for link, pose in (("hand", row[:7]), ("tool0", row[7:])):
            T = robot.fk(values, link, "forearm")
            rotation = rotation_of(T.ravel().tolist())
            assert np.abs(pose - [*T[:3, 3], *quaternion_from_rotation(rotation)]).max() < 2e-15


def test_several_links_have_an_axis_of_their_own_in_npy(fkctl, q) -> None:
    np.save("q.npy", q[:3])
    for form, shape in (("matrix", (4, 4)), ("pose", (7,))):
        command = ("--model", ARM, "batch", "q.npy", "out.npy", "--format", form)
        assert fkctl(*command, "--link", "hand", "--link", "tool0").status == 0
        both = np.load("out.npy")
        assert both.shape == (3, 2, *shape)
        for k, link in enumerate(("hand", "tool0")):
            assert fkctl(*command, "--link", link).status == 0
            assert np.array_equal(np.load("out.npy"), both[:, k])


def test_a_daemon_gives_the_poses_of_fk_to_the_bit(fkctl, daemons: Any, q, poses) -> None:
    daemon = daemons("wire_arm.urdf")
    np.save("q.npy", q)
    assert fkctl("--socket", daemon.path, "batch", "q.npy", "live.npy").status == 0
    assert np.array_equal(np.load("live.npy"), poses)


def test_no_rows_give_no_poses(fkctl) -> None:
    np.save("q.npy", np.zeros((0, 6)))
    Path("q.csv").write_text(",".join(NAMES))
    for name in ("q.npy", "q.csv"):
        for out in ("out.npy", "out.csv", "out.parquet"):
            assert fkctl("--model", ARM, "batch", name, out).out == f"0 rows, 1 link: {out}\n"
        assert np.load("out.npy").shape == (0, 4, 4)
        assert read_csv("out.csv")[0] == pa.parquet.read_table("out.parquet").column_names
        assert "did you mean `hand`" in fkctl("--model", ARM, "batch", name, "out.npy", "--link", "hnad").err


def test_a_robot_that_cannot_move_has_no_rows(fkctl) -> None:
    np.save("q.npy", np.zeros((3, 0)))
    assert "no joints that move" in fkctl("--model", str(ROBOTS / "emit_static.urdf"), "batch", "q.npy", "out.npy").err


def test_names_and_places_that_do_not_fit(fkctl, q) -> None:
    np.save("q.npy", q[:2])
    os.symlink("q.npy", "link.npy")
    for arguments, status, words in [
        (("q.npy", "q.npy"), 2, "same file"),
        (("q.npy", "link.npy"), 2, "same file"),
        (("q.npy", "out.txt"), 1, "tables end in .csv, .npy, .parquet"),
        (("q.nyp", "out.npy"), 1, "did you mean `.npy`"),
        (("absent.npy", "out.npy"), 1, "cannot read absent.npy: there is no such file"),
        (("q.npy", "nowhere/out.npy"), 1, "cannot write nowhere/out.npy"),
        (("q.npy", "."), 1, "tables end in"),
        (("q.npy", "out.npy", "--link", "hnad"), 1, "did you mean `hand`"),
        (("q.npy", "out.npy", "--base", "bsae"), 1, "did you mean `base`"),
        (("q.npy", "out.npy", "--link", "j6"), 1, "is a joint"),
    ]:
        ran = fkctl("--model", ARM, "batch", *arguments)
        assert ran.status == status, ran
        assert words in ran.err
    assert sorted(os.listdir()) == ["link.npy", "q.npy"]


def test_the_model_is_not_written_over(fkctl) -> None:
    """A DH table is a model, and ends in .csv as poses do."""
    table = "# convention: standard\n# length_unit: m\n# angle_unit: rad\njoint,type,a,alpha,d,theta\nj1,revolute,0.5,0,0,0\n"
    Path("arm.csv").write_text(table)
    np.save("q.npy", np.zeros((2, 1)))
    ran = fkctl("--model", "arm.csv", "batch", "q.npy", "arm.csv")
    assert ran.status == 2
    assert "arm.csv is read" in ran.err
    assert Path("arm.csv").read_text() == table


def test_what_was_there_stays_if_the_batch_fails(fkctl, q) -> None:
    q = q.copy()
    q[-1, 3] = np.nan
    for name in ("out.csv", "out.npy", "out.parquet"):
        Path(name).write_text("before")
        np.save("q.npy", q)
        ran = fkctl("--model", ARM, "batch", "q.npy", name)
        assert f"q.npy: row {len(q) - 1}: column `j4`: nan is not a finite number" in ran.err
        assert Path(name).read_text() == "before"
    assert len(os.listdir()) == 4


def test_a_pose_beyond_a_double_names_its_row(fkctl, daemons: Any) -> None:
    slides = str(ROBOTS / "wire_slides.urdf")
    write_csv("q.csv", np.array([[0.0, 0.0]] * 3 + [[1e308, 1e308]]))
    daemon = daemons("wire_slides.urdf")
    for target in (("--model", slides), ("--socket", daemon.path)):
        ran = fkctl(*target, "batch", "q.csv", "out.csv")
        assert ran.status == 1
        assert "q.csv:4: the pose at this q is beyond the range of a double" in ran.err


class Daemon:
    """Answers as a daemon does, and does something else at its third batch."""

    def __init__(self, third: Callable[[bytes], bytes]) -> None:
        self._local = Local(ARM)
        self._third = third
        self._batches = 0

    def ask(self, method: str, params: Any) -> bytes:
        answer = self._local.ask(method, params)
        self._batches += method == "compute_fk_batch"
        return self._third(answer) if self._batches == 3 else answer


@pytest.fixture
def third(monkeypatch: pytest.MonkeyPatch, q) -> Callable[[Callable[[bytes], bytes]], None]:
    """Puts a Daemon in the place of the real one, and rows into q.npy."""

    def place(what: Callable[[bytes], bytes]) -> None:
        np.save("q.npy", q)
        monkeypatch.setattr("fkd.ctl.batch.target", lambda options: Daemon(what))

    return place


def interrupted(_: bytes) -> bytes:
    raise KeyboardInterrupt


def killed(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGTERM)
    return b"null"


def gone(_: bytes) -> bytes:
    raise FkdError("the connection broke")


def test_a_model_that_changes_on_the_way_ends_the_batch(fkctl, third) -> None:
    """Rows of two models in one file would be a wrong answer."""
    third(lambda answer: answer.replace(fkd.load(ARM).digest.encode(), b"0" * 64))
    for out in ("out.npy", "out.csv", "out.parquet"):
        ran = fkctl("batch", "q.npy", out)
        assert ran.status == 1
        assert "the daemon's model changed while the batch ran" in ran.err
    assert os.listdir() == ["q.npy"]


@pytest.mark.parametrize("answer", [b"{}", b"[]", b"null", b'{"poses":{}}', b"1"])
def test_answers_of_other_shapes_are_no_poses(fkctl, third, answer: bytes) -> None:
    third(lambda _: answer)
    assert "cannot make sense of the result of compute_fk_batch" in fkctl("batch", "q.npy", "out.npy").err
    assert os.listdir() == ["q.npy"]


def test_a_model_of_another_shape_is_refused(fkctl, impostor) -> None:
    path = impostor(b'{"jsonrpc":"2.0","result":{"name":"a"},"id":1}\n')
    assert "cannot make sense of the result of model" in fkctl("--socket", path, "batch", "q.npy", "out.npy").err


@pytest.mark.parametrize(("what", "status"), [(interrupted, 130), (killed, 130), (gone, 1)])
@pytest.mark.parametrize("out", ["out.npy", "out.csv", "out.parquet"])
def test_nothing_half_written_is_left(third, out: str, what: Callable[[bytes], bytes], status: int) -> None:
    third(what)
    assert main(["batch", "q.npy", out]) == status
    assert os.listdir() == ["q.npy"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("out", ["out.npy", "out.csv", "out.parquet"])
def test_a_full_disk_leaves_nothing(fkctl, q, out: str) -> None:
    """A limit on the size of files stands in for the disk."""
    np.save("q.npy", q)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
    try:
        ran = fkctl("--model", ARM, "batch", "q.npy", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ran.status == 1
    assert f"cannot write {out}: " in ran.err
    assert os.listdir() == ["q.npy"]


def test_progress_is_for_terminals(q) -> None:
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
        assert (b"100%" in seen and b"rows/s" in seen and b" s left" in seen) is shown
        assert not shown or seen.endswith(b"\r\x1b[K")  # the line is taken away
        assert done.stdout.endswith(b"out.npy\n")


def test_without_pyarrow_a_line_says_how_to_get_it(fkctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fkd.ctl.table_parquet", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    np.save("q.npy", np.zeros((1, 6)))
    Path("q.parquet").touch()
    for names in (("q.npy", "out.parquet"), ("q.parquet", "out.npy")):
        assert "pip install 'fkd[table]'" in fkctl("--model", ARM, "batch", *names).err
    assert not Path("out.parquet").exists()


def test_json_says_what_was_done(fkctl, q) -> None:
    np.save("q.npy", q[:2])
    found = json.loads(fkctl("--model", ARM, "--json", "batch", "q.npy", "out.npy").out)
    assert found == {"rows": 2, "links": ["tool0"], "format": "matrix", "digest": fkd.load(ARM).digest}
