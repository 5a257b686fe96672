"""The daemon's start, as a process and in this one: ready, or one clear message; and one path for many starts."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fkd.daemon import main

ZEROS = [0] * 6


def serves(daemon: Any) -> bool:
    return bool(daemon.ask("compute_fk", [0] * 6)["result"] == [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1])


def test_ready_means_that_the_next_request_is_answered(daemons: Any) -> None:
    daemon = daemons(ready=False)
    lines = daemon.notice()
    assert serves(daemon)
    assert lines[0] == "READY=1"
    assert lines[1].startswith("STATUS=serving wire_arm")
    assert not [name for name in os.listdir(daemons.folder) if name not in ("fkd.sock", "fkd.sock.lock", "notify0", "stderr0")]
    assert f"serving wire_arm (unbundled, digest {daemon.ask('model')['result']['digest'][:12]}, generation 1)" in daemon.stderr


def test_a_bad_model_ends_with_1_and_one_clear_message_and_is_never_ready(daemons: Any) -> None:
    bad = daemons.folder / "bad.urdf"
    bad.write_text("<robot name='r'><link name='a'/><joint name='j' type='hinge'><parent link='a'/><child link='b'/></joint></robot>")
    daemon = daemons(str(bad), ready=False)
    assert daemon.ended() == 1
    assert daemon.stderr.startswith("fkd: ")
    assert "bad.urdf" in daemon.stderr
    assert "hinge" in daemon.stderr
    assert "Traceback" not in daemon.stderr
    told = daemon.notices_left()
    assert "READY=1" not in told
    assert [line for line in told if line.startswith("STATUS=") and "bad.urdf" in line]
    assert not os.path.exists(daemon.path)


class Ends:
    """Runs `fkd` in this process, for starts that come to nothing: status, what it said, what systemd heard."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capfd = capfd
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(str(folder / "notify"))
        self._notices.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "notify"))

    def __call__(self, *arguments: str) -> tuple[int, str, bytes]:
        try:
            status = main(["--socket", str(self.folder / "fkd.sock"), *arguments])
        except SystemExit as e:
            status = int(str(e.code))
        told = b""
        with contextlib.suppress(BlockingIOError):
            told = self._notices.recv(4096)
        assert not (self.folder / "fkd.sock").exists()
        return status, self._capfd.readouterr().err, told


@pytest.fixture
def ends(short_folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Ends:
    return Ends(short_folder, monkeypatch, capfd)


@pytest.mark.parametrize(
    "text", ["<robot name='r'><link name='a'></robot>", "", "not xml at all", "<robot name='r'/>",
             "<robot name='r'><link name='a'/><link name='a'/></robot>", "<robot name='r'><link name='a'/><link name='b'/></robot>"],
)  # fmt: skip
def test_every_bad_model_is_named_to_the_user_and_to_systemd(ends: Ends, text: str) -> None:
    (ends.folder / "bad.urdf").write_text(text)
    status, said, told = ends(str(ends.folder / "bad.urdf"))
    assert status == 1
    assert said.startswith("fkd: ")
    assert "bad.urdf" in said
    assert told.startswith(b"STATUS=")
    assert b"bad.urdf" in told
    assert b"READY" not in told


@pytest.mark.parametrize("name", ["absent.urdf", "folder", "not-a-zip.zip", "empty.zip", "odd\udcff.urdf"])
def test_a_bundle_that_cannot_be_read_ends_with_1_and_a_clear_message(ends: Ends, name: str) -> None:
    (ends.folder / "folder").mkdir()
    (ends.folder / "not-a-zip.zip").write_bytes(b"PK\3\4 but no more")
    (ends.folder / "empty.zip").write_bytes(b"")
    status, said, told = ends(str(ends.folder / name))
    assert status == 1
    assert said.startswith("fkd: ")
    assert name.partition("\udcff")[0] in said
    assert told.startswith(b"STATUS=")


@pytest.mark.parametrize(
    "arguments",
    [[], ["--nonsense"], ["a.urdf", "b.urdf"], ["a.urdf", "--mode", "rw"], ["a.urdf", "--dof", "six"], ["a.urdf", "--expect-digest", "7"],
     ["--config", "/nowhere/fkd.toml", "a.urdf"]],
)  # fmt: skip
def test_bad_usage_ends_with_2(ends: Ends, arguments: list[str]) -> None:
    status, said, told = ends(*arguments)
    assert (status, told) == (2, b"")
    assert "fkd: " in said


@pytest.mark.parametrize("arguments", [["--tip", "tol0"], ["--base", "tol0"], ["--tip", "mount"], ["--base", "mount"]])
def test_a_tip_or_base_that_is_no_link_ends_with_1_and_the_link_that_was_meant(ends: Ends, robots: Path, arguments: list[str]) -> None:
    status, said, _ = ends(*arguments, str(robots / "wire_arm.urdf"))
    assert status == 1
    assert "`tool0`" in said


def test_any_other_robot_than_the_expected_one_is_refused(ends: Ends, robots: Path) -> None:
    digest = hashlib.sha256((robots / "wire_arm.urdf").read_bytes()).hexdigest()
    for arguments, words in ((["--expect-digest", "0" * 64], digest), (["--dof", "7"], "6 values")):
        status, said, told = ends(*arguments, str(robots / "wire_arm.urdf"))
        assert status == 1
        assert words in said
        assert b"READY" not in told


def test_a_wrong_key_in_the_file_is_named(ends: Ends) -> None:
    (ends.folder / "fkd.toml").write_text('tpi = "hand"\n')
    status, said, _ = ends("--config", str(ends.folder / "fkd.toml"), "arm.urdf")
    assert status == 2
    assert "`tpi`" in said
    assert "did you mean `tip`?" in said


@pytest.mark.parametrize("kind", ["file", "long", "no folder"])
def test_a_path_that_cannot_be_served_is_a_clear_error(ends: Ends, robots: Path, kind: str) -> None:
    path = {"file": "file", "long": "x" * 120, "no folder": "no/folder/fkd.sock"}[kind]
    (ends.folder / "file").write_text("precious")
    status, said, told = ends("--socket", str(ends.folder / path), str(robots / "wire_arm.urdf"))
    assert status == 1
    assert {"file": "not a socket", "long": "107", "no folder": "no/folder"}[kind] in said
    assert told.startswith(b"STATUS=")
    assert (ends.folder / "file").read_text() == "precious"


def test_a_robot_of_another_name_in_another_alphabet_is_served(daemons: Any) -> None:
    """Names of files need not be UTF-8; what the daemon says of them must be."""
    odd = os.fsencode(daemons.folder) + b"/r\xff\xc3\xa9.urdf"
    with open(odd, "wb") as file:
        file.write("<robot name='Rübe ☃'><link name='ä'/></robot>".encode())
    daemon = daemons(os.fsdecode(odd))
    status = daemon.ask("status")
    assert status["result"]["robot"] == "Rübe ☃"
    assert daemon.ask("model")["result"]["links"] == ["ä"]


# -- one path, many starts ---------------------------------------------------------------------------------------------


def test_a_second_daemon_is_refused_and_the_first_unharmed(daemons: Any) -> None:
    first = daemons()
    client, inode = first.connect(), os.stat(first.path).st_ino
    second = daemons(ready=False)
    assert second.ended() == 1
    assert "in use" in second.stderr
    assert "READY=1" not in second.notices_left()
    assert client.ask("ping")["result"] == "pong"
    assert serves(first)
    assert os.stat(first.path).st_ino == inode
    assert first.stop() == 0


def test_after_a_kill_the_next_start_serves_on_the_same_path(daemons: Any) -> None:
    first = daemons()
    first.process.kill()
    first.ended()
    assert os.path.exists(first.path)
    second = daemons()
    assert serves(second)
    assert second.stop() == 0
    assert not os.path.exists(second.path)


def test_of_many_starts_at_once_over_a_stale_file_exactly_one_wins(daemons: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(daemons.folder / "fkd.sock"))
    started = [daemons(ready=False) for _ in range(3)]
    first_words = {}
    for daemon in started:  # each either says READY=1, or why not, and ends
        lines = daemon.notice()
        first_words[daemon] = lines[0]
    winners = [d for d, word in first_words.items() if word == "READY=1"]
    assert len(winners) == 1
    for loser in set(started) - set(winners):
        assert loser.ended() == 1
        assert "in use" in loser.stderr
    assert serves(winners[0])
    assert winners[0].stop() == 0
    assert not os.path.exists(winners[0].path)


@pytest.mark.parametrize(("arguments", "mode"), [([], 0o660), (["--mode", "0606"], 0o606)])
def test_mode_and_group_stand_when_ready_whatever_the_umask(daemons: Any, arguments: list[str], mode: int) -> None:
    daemon = daemons("wire_slides.urdf", "--group", str(os.getgid()), *arguments, popen={"umask": 0})
    found = os.stat(daemon.path)
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (mode, os.getgid())


def test_the_mode_is_never_wider_than_asked_at_any_instant(daemons: Any) -> None:
    """Looked at as fast as can be while a daemon starts under an open umask."""
    daemon = daemons("wire_slides.urdf", "--mode", "0640", ready=False, popen={"umask": 0})
    daemon.notices.setblocking(False)
    seen = set()
    while True:
        with contextlib.suppress(FileNotFoundError):
            seen.add(stat.S_IMODE(os.stat(daemon.path).st_mode))
        with contextlib.suppress(BlockingIOError):
            if daemon.notices.recv(4096):
                break
    seen.add(stat.S_IMODE(os.stat(daemon.path).st_mode))
    assert {mode & ~0o640 for mode in seen} == {0}, [oct(m) for m in seen]


# -- settings ----------------------------------------------------------------------------------------------------------


def test_tip_base_and_socket_from_file_environment_and_flags(daemons: Any) -> None:
    file = daemons.folder / "fkd.toml"
    file.write_text('tip = "hand"\nbase = "shoulder"\nmode = "0600"\n')
    daemon = daemons("wire_arm.urdf", "--config", str(file), "--tip", "wrist", FKD_BASE="upper_arm")
    found = daemon.ask("model")["result"]
    assert (found["tip"], found["base"]) == ("wrist", "upper_arm")
    assert daemon.ask("compute_fk", ZEROS)["result"] == [1, 0, 0, 0.5, 0, 1, 0, 0, 0, 0, 1, 0.5, 0, 0, 0, 1]
    assert stat.S_IMODE(os.stat(daemon.path).st_mode) == 0o600


def test_the_robot_that_is_expected_is_served(daemons: Any, robots: Path) -> None:
    digest = hashlib.sha256((robots / "wire_arm.urdf").read_bytes()).hexdigest()
    daemon = daemons("wire_arm.urdf", "--expect-digest", digest.upper(), "--dof", "6")
    assert daemon.ask("status")["result"]["digest"] == digest


def test_the_default_path_is_where_the_environment_says(daemons: Any) -> None:
    daemon = daemons.new()
    arm = Path(__file__).parent / "robots" / "wire_arm.urdf"
    environ = daemons.environ(NOTIFY_SOCKET=daemon.notify_path, RUNTIME_DIRECTORY=str(daemons.folder))
    daemon.start([sys.executable, "-m", "fkd", str(arm)], environ)
    daemon.wait_ready()
    assert serves(daemon)


def test_it_runs_without_standard_streams(daemons: Any) -> None:
    """As a daemon may be started: descriptors 0 to 2 closed, so that its first sockets get their numbers."""
    daemon = daemons.new()
    arm = Path(__file__).parent / "robots" / "wire_arm.urdf"
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "fkd", "--socket", daemon.path, str(arm)]
    daemon.start(command, daemons.environ(NOTIFY_SOCKET=daemon.notify_path))
    daemon.wait_ready()
    assert serves(daemon)
    assert daemon.stop() == 0


def test_help_tells_how(daemons: Any) -> None:
    told = subprocess.run([sys.executable, "-m", "fkd", "--help"], capture_output=True, text=True, env=daemons.environ(), check=True)
    for word in ("--socket", "--mode", "--expect-digest", "BUNDLE", "example:"):
        assert word in told.stdout
