"""fkctl export-c: two files that compile without a warning, and say where they come from."""

from __future__ import annotations

import os
import shutil
import subprocess
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


def test_the_command_is_in_the_comment(fkctl, tmp_path: Path) -> None:
    assert fkctl("export-c", ARM, "-o", tmp_path, "--prefix", "my arm").status == 0
    for name in ("my_arm_fk.h", "my_arm_fk.c"):
        assert f"command fkctl export-c {ARM} -o {tmp_path} --prefix 'my arm'" in (tmp_path / name).read_text()


@pytest.mark.skipif(GCC is None, reason="no gcc on this machine")
def test_names_of_any_kind_do_not_leave_the_comment(fkctl) -> None:
    name = "*/??/\n#error \u00e9\\.urdf"
    Path(name).parent.mkdir(parents=True)
    shutil.copy(ARM, name)
    assert fkctl("--model", name, "export-c", "--prefix", "arm").status == 0
    subprocess.run([GCC, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "arm_fk.c"], check=True)


def test_what_it_needs(fkctl) -> None:
    assert "needs the description's file" in fkctl("export-c").err
    assert "is not a folder" in fkctl("export-c", ARM, "-o", "nowhere").err
    assert "did you mean `hand`" in fkctl("export-c", ARM, "--link", "hnad").err
    Path("wire_arm_fk.h").mkdir()
    assert "is a folder" in fkctl("--model", ARM, "export-c").err
