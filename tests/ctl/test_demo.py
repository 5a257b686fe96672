"""demo: it runs from nothing to a pose, and leaves nothing."""

from __future__ import annotations

import os
import re
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from fkd.ctl import demo
from fkd.errors import FkdError


def mentioning(text: str) -> list[str]:
    """The command lines of all processes that have `text` in them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found += [line] if text in line else []
    return found


def test_the_demo_shows_the_way_and_leaves_nothing(short_folder, capfd, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(short_folder))
    monkeypatch.setattr("tempfile.tempdir", None)  # read TMPDIR anew
    monkeypatch.setenv("FKD_TIP", "nowhere")  # the user's own daemon's settings are none of the demo's
    monkeypatch.setenv("FKD_SOCKET", str(short_folder / "none"))
    from fkd.ctl.main import main

    assert main(["demo"]) == 0
    out = capfd.readouterr().out
    commands = re.findall(r"^\$ (\w+ .*)$", out, re.MULTILINE)
    assert [c.split()[0] for c in commands] == ["fkctl", "fkd", "fkctl"]
    by_fk, _, by_client = out.partition(">>>")
    row = r"  \[( +-?\d+\.\d{9}){4} \]\n"
    assert re.search(rf"tool0\n({row}){{4}}  xyz( -?\d+\.\d{{9}}){{3}}  rpy( -?\d+\.\d{{9}}){{3}}\n", by_fk)
    if find_spec("fkclient"):
        assert re.search(rf"({row}){{4}}  round trip from Python: median \d+ us, p99 \d+ us\n", by_client)
        assert re.findall(row, by_client) == re.findall(row, by_fk)
    else:
        assert "not installed" in out
    assert list(short_folder.iterdir()) == []
    assert mentioning(str(short_folder)) == []


def test_a_daemon_that_refuses_is_noticed_at_once(short_folder, capfd):
    broken = short_folder / "broken.urdf"
    broken.write_text("<robot/>")
    with pytest.raises(FkdError, match="did not start"), demo.serving(str(broken), str(short_folder / "s")):
        pytest.fail("it is not up")
    assert "broken.urdf" in capfd.readouterr().err
    assert mentioning(str(short_folder)) == []


def test_a_daemon_that_dies_without_a_word_is_noticed_at_once(short_folder, monkeypatch):
    monkeypatch.setattr(demo.sys, "executable", "/bin/false")
    with pytest.raises(FkdError, match="did not start"), demo.serving("x.zip", str(short_folder / "s")):
        pytest.fail("it is not up")


def test_the_daemon_is_stopped_when_the_demo_fails(short_folder, crane):
    with pytest.raises(KeyError), demo.serving(crane, str(short_folder / "s")) as daemon:
        raise KeyError
    assert daemon.returncode == 0


def test_a_daemon_that_does_not_stop_is_killed(short_folder, crane, monkeypatch):
    monkeypatch.setattr(demo, "STOP_SECONDS", 0.05)
    with demo.serving(crane, str(short_folder / "s")) as daemon:
        daemon.send_signal(signal.SIGSTOP)
    assert daemon.returncode == -signal.SIGKILL


def test_a_temporary_folder_with_a_long_name_is_an_error_that_says_so(fkctl, tmp_path, monkeypatch):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    ran = fkctl("demo")
    assert ran.status == 1
    assert "set TMPDIR to a short path" in ran.err
    assert list(long.iterdir()) == []
