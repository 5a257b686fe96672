"""fkctl export-c: two files that compile without a warning, and say where they come from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fkd

ARM = str(Path(__file__).parent.parent / "robots" / "wire_arm.urdf")
GCC = shutil.which("gcc")


@pytest.mark.skipif(GCC is None, reason="no gcc on this machine")
@pytest.mark.parametrize("flags", [(), ("--float",), ("--link", "hand", "--link", "tool0", "--prefix", "my")])
def test_it_compiles_clean_also_freestanding(fkctl, flags: tuple[str, ...]) -> None:
    ran = fkctl("export-c", ARM, *flags)
    assert ran.status == 0
    header, source = ran.out.split()
    assert [header, source] == [os.path.normpath(x) for x in (header, source)]
    for more in ((), ("-ffreestanding",)):
        command = [GCC, "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *more, "-c", source, "-o", "out.o"]
        subprocess.run(command, check=True)
    assert f"digest  {fkd.load(ARM).digest}" in Path(header).read_text()


def test_the_command_is_in_the_comment(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fkd.ctl", "export-c", ARM, "-o", str(tmp_path), "--prefix", "arm"]
    subprocess.run(command, check=True, capture_output=True)
    assert f"command fkctl export-c {ARM} -o {tmp_path} --prefix arm" in (tmp_path / "arm_fk.h").read_text()


def test_what_it_needs(fkctl) -> None:
    assert "needs the description's file" in fkctl("export-c").err
    assert "is not a folder" in fkctl("export-c", ARM, "-o", "nowhere").err
    assert "did you mean `hand`" in fkctl("export-c", ARM, "--link", "hnad").err
    Path("wire_arm_fk.h").mkdir()
    assert "is a folder" in fkctl("--model", ARM, "export-c").err
