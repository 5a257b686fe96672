"""Running fkctl: in this process for speed, or as a process of its own; and programs that listen but are not fkd."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fkd.ctl.main import main

PATIENCE = 30.0


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Ran]


def orderly(ran: Ran) -> Ran:
    """What holds of every run: a known exit status; on stderr nothing, or one line of ours."""
    assert ran.status in (0, 1, 2, 3), ran
    assert "Traceback" not in ran.err, ran
    if ran.err:
        assert ran.status != 0, ran
        assert ran.err.startswith("fkctl: "), ran
        assert ran.err.find("\n") == len(ran.err) - 1, ran
    if ran.status >= 2:
        assert ran.err, ran
        assert not ran.out, ran
    return ran


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs in an empty folder, and knows of no daemon by its surroundings."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.delenv("FKD_SOCKET", raising=False)
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(work / "none"))


@pytest.fixture
def fkctl(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run fkctl in this process."""

    def run(*words: object) -> Ran:
        capsys.readouterr()
        status = main([str(w) for w in words])
        return orderly(Ran(status, *capsys.readouterr()))

    return run


@pytest.fixture(scope="session")
def spawn() -> Run:
    """Run fkctl as a user's shell does."""

    def run(*words: object, **options: Any) -> Ran:
        command = [sys.executable, "-m", "fkd.ctl", *map(str, words)]
        environ = {**os.environ, **options.pop("env", {})}
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environ, **options)
        return orderly(Ran(done.returncode, done.stdout, done.stderr))

    return run


@pytest.fixture(scope="session")
def crane(robots: Path) -> str:
    return str(robots / "ctl_crane.urdf")


@pytest.fixture(scope="session")
def members() -> Callable[[Path], dict[str, bytes]]:
    """What a bundle holds: {path: bytes}."""

    def read(bundle: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(bundle) as z:
            return {name: z.read(name) for name in z.namelist()}

    return read


@pytest.fixture
def packed(fkctl, crane) -> Path:
    assert fkctl("pack", crane, "-o", "crane.zip").status == 0
    return Path("crane.zip")


@pytest.fixture
def folder(robots, tmp_path) -> Path:
    """A robot's folder: a model, a bundle.toml, and things that no bundle needs."""
    place = tmp_path / "my_crane"
    (place / "urdf").mkdir(parents=True)
    shutil.copy(robots / "ctl_crane.urdf", place / "urdf" / "crane.urdf")
    (place / "bundle.toml").write_text(
        '# of unit 7\ntip = "hook"\n[calibration.eye]\nxyz = [2.0625, 0, 0]\nrpy = [0, 0, 0]\n'
    )
    (place / "README.txt").write_text("about the crane")
    (place / ".hidden.urdf").write_text("not seen")
    return place


@pytest.fixture
def impostor(short_folder: Path) -> Iterator[Callable[[bytes], str]]:
    """Something that listens and is not fkd: it reads one line, sends the given bytes and hangs up -> its socket."""
    threads: list[threading.Thread] = []

    def serve(listener: socket.socket, reply: bytes) -> None:
        with listener, contextlib.suppress(OSError):
            peer, _ = listener.accept()
            with peer, peer.makefile("rb") as lines:
                lines.readline()
                peer.sendall(reply)

    def start(reply: bytes) -> str:
        path = str(short_folder / f"impostor{len(threads)}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.settimeout(PATIENCE)
        listener.bind(path)
        listener.listen()
        threads.append(threading.Thread(target=serve, args=(listener, reply), daemon=True))
        threads[-1].start()
        return path

    yield start
    for thread in threads:
        thread.join(PATIENCE)
