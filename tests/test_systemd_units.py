"""The units as files: systemd understands them, they shut the service in, and `make install` puts them where they belong.

That they work is shown by `make test-systemd`, which boots a systemd.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SYSTEMD = ROOT / "systemd"
UNITS = ("fkd.service", "fkd.socket", "fkd@.service", "fkd@.socket")
EXPOSURE = 4  # tenths; 0 is shut in, 100 is wide open


def analyze_version() -> int:
    if not shutil.which("systemd-analyze"):
        return 0
    found = re.search(r"systemd (\d+)", subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True).stdout)
    return int(found[1]) if found else 0


needs_analyze = pytest.mark.skipif(analyze_version() < 250, reason="systemd-analyze of systemd 250 or newer is not here")
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The units in a folder of their own, with a program that is there on every machine, and the real-time drop-in."""
    for unit in UNITS:
        (tmp_path / unit).write_text((SYSTEMD / unit).read_text().replace("/usr/local/bin/fkd", sys.executable))
    for service in ("fkd.service", "fkd@.service"):
        (tmp_path / f"{service}.d").mkdir()
        shutil.copy(SYSTEMD / "realtime.conf", tmp_path / f"{service}.d/realtime.conf")
    return tmp_path


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", "--no-pager", *words], capture_output=True, text=True, timeout=60)


def complaints(folder: Path) -> list[str]:
    """What systemd has to say about our units; about the machine's own it may say what it likes."""
    done = analyze("verify", "--man=no", *(str(folder / unit) for unit in UNITS))
    return [line for line in (done.stdout + done.stderr).splitlines() if "fkd" in line or str(folder) in line]


@needs_analyze
def test_systemd_understands_every_line(folder: Path) -> None:
    assert complaints(folder) == []


@needs_analyze
@pytest.mark.parametrize("file", [*UNITS, "fkd.service.d/realtime.conf", "fkd@.service.d/realtime.conf"])
def test_a_line_that_systemd_does_not_understand_would_be_seen(folder: Path, file: str) -> None:
    section = "[Socket]" if file.endswith(".socket") else "[Service]"
    with (folder / file).open("a") as f:
        f.write(f"\n{section}\nNoSuchDirective=yes\n")
    assert any("NoSuchDirective" in line for line in complaints(folder))


@needs_analyze
@pytest.mark.parametrize("unit", ["fkd.service", "fkd@.service"])
@pytest.mark.parametrize("realtime", [False, True])
def test_the_service_is_shut_in(folder: Path, unit: str, realtime: bool) -> None:
    if not realtime:
        shutil.rmtree(folder / f"{unit}.d")
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE}", str(folder / unit))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", ["service", "socket"])
def test_a_template_is_the_plain_unit_but_for_names(kind: str) -> None:
    template = (SYSTEMD / f"fkd@.{kind}").read_text()
    for instance, plain in (
        (" of the robot %i", ""), ("fkd@%i.socket", "fkd.socket"), ("/run/fkd/%i.sock", "/run/fkd/fkd.sock"), ("/etc/fkd/%i.zip", "/etc/fkd/robot.zip"),
    ):  # fmt: skip
        template = template.replace(instance, plain)
    assert template == (SYSTEMD / f"fkd.{kind}").read_text()


def test_real_time_needs_no_hole_in_the_walls() -> None:
    keys = re.findall(r"^(\w+)=", (SYSTEMD / "realtime.conf").read_text(), re.MULTILINE)
    assert keys == ["CPUSchedulingPolicy", "CPUSchedulingPriority", "CPUSchedulingResetOnFork", "CPUAffinity"]
    assert "RestrictRealtime=yes" in (SYSTEMD / "fkd.service").read_text().splitlines()


def make(*words: str, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX")}
    return subprocess.run(["make", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=60, env=environ, umask=umask)


def files(folder: Path) -> dict[str, int]:
    """Every file below a folder, with its mode."""
    return {str(p.relative_to(folder)): p.stat().st_mode & 0o777 for p in folder.rglob("*") if p.is_file()}


@needs_make
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_units_are_installed_for_their_prefix_and_taken_away_again(tmp_path: Path, umask: int) -> None:
    done = make("install-units", f"DESTDIR={tmp_path}", "PREFIX=/opt/fkd", umask=umask)
    assert done.returncode == 0, done.stderr
    lib = "opt/fkd/lib"
    expected = {*(f"{lib}/systemd/system/{unit}" for unit in UNITS), f"{lib}/sysusers.d/fkd.conf", f"{lib}/tmpfiles.d/fkd.conf"}
    assert files(tmp_path) == dict.fromkeys(expected, 0o644)
    assert all(p.stat().st_mode & 0o777 == 0o755 for p in tmp_path.rglob("*") if p.is_dir())
    for unit in UNITS:
        ours, installed = (SYSTEMD / unit).read_text(), (tmp_path / lib / "systemd/system" / unit).read_text()
        assert installed == ours.replace("/usr/local/bin/fkd", "/opt/fkd/bin/fkd")
        assert ("ExecStart=/opt/fkd/bin/fkd " in installed) == unit.endswith(".service")
    (tmp_path / "etc/fkd/robot.zip").write_bytes(b"the operator's")
    for _ in range(2):
        done = make("uninstall", f"DESTDIR={tmp_path}", "PREFIX=/opt/fkd")
        assert done.returncode == 0, done.stderr
        assert files(tmp_path).keys() == {"etc/fkd/robot.zip"}


@needs_make
@pytest.mark.parametrize("prefix", ["/home/me/.local", "/root", "/tmp/fkd"])
def test_a_place_that_the_service_cannot_see_is_refused(tmp_path: Path, prefix: str) -> None:
    done = make("install", f"DESTDIR={tmp_path}", f"PREFIX={prefix}", f"PYTHON={sys.executable}")
    assert done.returncode == 2
    assert f"not {prefix}; choose another PREFIX= or PYTHON=" in done.stderr
    assert not any(tmp_path.iterdir())
