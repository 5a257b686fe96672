"""expand, export-urdf, from-dh, diff, as typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fkd.ctl.main import main
from fkd.robot import load

XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="z" default="1"/><link name="a"/><link name="b"/>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0 0 $(arg z)"/></joint></robot>"""
TABLE = "joint,type,a,alpha,d,theta\nj1,revolute,100,90,0,0\nj2,prismatic,0,0,50,0\n"
UNITS = ["--convention", "standard", "--length-unit", "mm", "--angle-unit", "deg"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xacro").write_text(XACRO)
    (tmp_path / "t.csv").write_text(TABLE)
    return tmp_path


def test_expand_to_the_terminal_and_to_a_file(folder: Path, capsys: Any) -> None:
    assert main(["expand", "m.xacro", "--xacro-arg", "z:=2.5"]) == 0
    printed = capsys.readouterr().out
    assert 'xyz="0 0 2.5"' in printed
    assert main(["expand", "m.xacro", "--xacro-arg", "z:=2.5", "-o", "m.urdf"]) == 0
    assert (folder / "m.urdf").read_text().rstrip("\n") == printed.rstrip("\n")
    assert load(folder / "m.urdf").pose([0.0])[11] == 2.5
    assert main(["expand", "m.xacro", "--xacro-arg", "z=2"]) == 2
    assert "name:=value" in capsys.readouterr().err


def test_export_is_a_urdf_of_the_same_robot(folder: Path) -> None:
    assert main(["export-urdf", "m.xacro", "-o", "out.urdf"]) == 0
    assert load(folder / "out.urdf").pose([0.7]) == load(folder / "m.xacro").pose([0.7])


def test_from_dh_says_what_is_not_stated_and_writes_what_is(folder: Path, capsys: Any) -> None:
    assert main(["from-dh", "t.csv"]) == 1
    assert "--convention" in capsys.readouterr().err
    assert main(["from-dh", "t.csv", *UNITS, "-o", "t.urdf"]) == 0
    # Rz(0) Tx(0.1) Rx(90 deg) Tz(0.05 + q2): z of joint 2 is -y of the base
    assert load(folder / "t.urdf").pose([0.0, 0.01])[3::4] == pytest.approx([0.1, -0.06, 0.0, 1.0], abs=1e-15)
    assert main(["from-dh", "m.xacro", *UNITS]) == 1
    assert "no DH table" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["expand", "m.xacro"], ["export-urdf", "m.xacro"], ["from-dh", "t.csv", *UNITS]])
def test_nothing_is_written_over_by_a_slip(folder: Path, command: list[str], capsys: Any) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    for output in (command[1], ".", "/dev/null"):
        assert main([*command, "-o", output]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert main([*command, "-o", ""]) == 2
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before


def test_diff(folder: Path, capsys: Any) -> None:
    main(["expand", "m.xacro", "-o", "old.urdf"])
    main(["expand", "m.xacro", "--xacro-arg", "z:=1.002", "-o", "new.urdf"])
    capsys.readouterr()
    assert main(["diff", "old.urdf", "old.urdf"]) == 0
    assert capsys.readouterr().out == "no difference\n"
    assert main(["diff", "old.urdf", "new.urdf", "--exit-code"]) == 1
    capsys.readouterr()
    assert main(["diff", "old.urdf", "new.urdf"]) == 0
    printed = capsys.readouterr().out
    assert "joint j: xyz (0 0 1) -> (0 0 1.002)" in printed
    assert "2.000000 mm" in printed
    assert main(["--json", "diff", "old.urdf", "new.urdf"]) == 0
    assert json.loads(capsys.readouterr().out)["moved"][0]["link"] == "b"
    for samples in ("0", "-1", "1000000000"):
        assert main(["diff", "old.urdf", "new.urdf", "--samples", samples]) == 2
