"""verify, check, show: what is said of a file, whatever it is."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path

import pytest

TEMPLATE = '<robot name="r"><link name="a"/><link name="b"/>{}</robot>'
JOINT = '<joint name="j" type="{type}"><parent link="a"/><child link="b"/>{inside}</joint>'


# -- verify ------------------------------------------------------------------------------------------------------------


def test_a_good_bundle_verifies(fkctl, members, packed):
    ran = fkctl("verify", packed)
    digest = hashlib.sha256(members(packed)["MANIFEST.txt"]).hexdigest()
    assert ran == (0, f"crane.zip: 1 member, every hash right\ndigest {digest}\n", "")
    assert json.loads(fkctl("verify", packed, "--json").out) == {"digest": digest, "members": ["ctl_crane.urdf"]}


def test_tampering_is_seen_wherever_it_is(fkctl, members, packed):
    """One byte of the stored model changed, and its CRC with it."""
    found = members(packed)
    found["ctl_crane.urdf"] = found["ctl_crane.urdf"].replace(b'xyz="2 0 0"', b'xyz="3 0 0"')
    with zipfile.ZipFile("bad.zip", "w") as z:
        for name, data in found.items():
            z.writestr(name, data)
    for words in (["verify", "bad.zip"], ["show", "bad.zip"], ["--model", "bad.zip", "fk", "0", "0"]):
        ran = fkctl(*words)
        assert ran.status == 1
        assert "`ctl_crane.urdf` has another hash" in ran.err
    assert fkctl("check", "bad.zip").status == 1


@pytest.mark.parametrize("at", [0, 1, 2, 3, 10])
def test_a_torn_bundle_is_refused(fkctl, packed, at):
    data = packed.read_bytes()
    Path("torn.zip").write_bytes(data[: at * len(data) // 11 or 2])
    ran = fkctl("verify", "torn.zip")
    assert ran.status == 1
    assert "torn.zip" in ran.err


def test_a_zip_without_manifest_and_a_plain_file_are_no_bundles(fkctl, crane):
    with zipfile.ZipFile("bare.zip", "w") as z:
        z.write(crane, "crane.urdf")
    ran = fkctl("verify", "bare.zip")
    assert ran.status == 1
    assert "no MANIFEST.txt" in ran.err
    assert "fkctl pack" in ran.err
    ran = fkctl("verify", crane)
    assert (ran.status, ran.err) == (1, f"fkctl: {crane} is no bundle; `fkctl pack` makes one\n")
    assert "did you mean `bare.zip`?" in fkctl("verify", "bar.zip").err


# -- check -------------------------------------------------------------------------------------------------------------

BROKEN = {
    "empty": b"",
    "blank": b" \n",
    "text": b"solid robot",
    "binary": bytes(range(256)),
    "utf-16 without a word of it": "<robot/>".encode("utf-16-be"),
    "zip in name": b"PK\x03\x04 and no more",
    "cut": TEMPLATE.format("")[:-9].encode(),
    "another root": b"<sdf version='1.7'/>",
    "doctype": b"<!DOCTYPE robot [<!ENTITY a 'b'>]><robot name='&a;'/>",
    "deep": b"<robot name='r'>" + b"<a>" * 100_000 + b"</a>" * 100_000 + b"</robot>",
    "no links": b"<robot name='r'/>",
    "two roots": TEMPLATE.format("").encode(),
    "ring": TEMPLATE.format(JOINT.format(type="fixed", inside="").replace('"a"', '"b"')).encode(),
    "unknown type": TEMPLATE.format(JOINT.format(type="hinge", inside="")).encode(),
    "comma": TEMPLATE.format(JOINT.format(type="fixed", inside='<origin xyz="0,1 0 0"/>')).encode(),
    "count": TEMPLATE.format(JOINT.format(type="fixed", inside='<origin xyz="0 0"/>')).encode(),
    "nan": TEMPLATE.format(JOINT.format(type="fixed", inside='<origin rpy="0 nan 0"/>')).encode(),
    "zero axis": TEMPLATE.format(JOINT.format(type="continuous", inside='<axis xyz="0 0 0"/>')).encode(),
    "mimic of nobody": TEMPLATE.format(JOINT.format(type="continuous", inside='<mimic joint="k"/>')).encode(),
    "mimic of itself": TEMPLATE.format(JOINT.format(type="continuous", inside='<mimic joint="j"/>')).encode(),
    "no such link": TEMPLATE.format(JOINT.format(type="fixed", inside="").replace('"b"', '"c"')).encode(),
    "link twice": TEMPLATE.format('<link name="a"/>' + JOINT.format(type="fixed", inside="")).encode(),
    "joint twice": TEMPLATE.format(JOINT.format(type="fixed", inside="") * 2).encode(),
    "huge number": TEMPLATE.format(JOINT.format(type="fixed", inside=f'<origin xyz="{"9" * 5000} 0 0"/>')).encode(),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_check_finds_what_is_broken(fkctl, kind):
    file = Path("broken.urdf")
    file.write_bytes(BROKEN[kind])
    ran = fkctl("check", file)
    findings = json.loads(fkctl("check", file, "--json").out)
    assert (ran.status, ran.err) == (1, "")
    *lines, last = ran.out.splitlines()
    assert len(lines) == len(findings) > 0
    errors = sum(f["severity"] == "error" for f in findings)
    assert last.startswith(f"broken.urdf: {errors} error")
    for line, f in zip(lines, findings, strict=True):
        assert line.startswith("broken.urdf")
        assert f"{f['severity']}: " in line
        assert f"[{f['code']}]" in line
        assert f.keys() == {"code", "severity", "file", "line", "message", "hint"}
    # whatever check calls an error, nothing else takes
    for words in (["show", file], ["--model", file, "fk"], ["pack", file]):
        assert fkctl(*words).status == 1
    assert [p.name for p in Path().iterdir()] == ["broken.urdf"]


def test_check_of_what_is_no_file_at_all(fkctl, folder):
    os.mkfifo("pipe")
    Path("ring").symlink_to("ring")
    for name in ("nowhere", folder, "pipe", "ring", "/dev/zero", "a/b", "x" * 300):
        ran = fkctl("check", name)
        assert (ran.status, ran.err) == (1, "")
        assert "1 error, 0 warnings" in ran.out


def test_the_exit_status_of_check_is_about_errors_alone(fkctl, crane, packed):
    for good in (crane, packed):
        assert fkctl("check", good).status == 0
    Path("warned.urdf").write_text(TEMPLATE.format(JOINT.format(type="revolute", inside="")))
    ran = fkctl("check", "warned.urdf")
    assert ran.status == 0
    assert "warned.urdf: 0 errors, 1 warning" in ran.out
    assert fkctl("--model", "warned.urdf", "check") == ran


def test_findings_are_the_same_bytes_from_a_daemon(fkctl, daemons):
    """Names beyond ASCII too."""
    warned = Path("warned.urdf").absolute()
    warned.write_text(TEMPLATE.format(JOINT.format(type="revolute", inside="").replace('"j"', '"Gelenk_\u00e4\u2192"')), "utf-8")
    by_file = fkctl("check", warned, "--json")
    assert "Gelenk_\u00e4\u2192" in by_file.out
    assert fkctl("--socket", daemons(str(warned)).path, "check", "--json") == by_file


def test_check_gives_every_finding_with_its_line(fkctl, robots):
    findings = json.loads(fkctl("check", robots / "ctl_broken.urdf", "--json").out)
    errors = [(f["line"], f["file"]) for f in findings if f["severity"] == "error"]
    assert errors == [(10, "ctl_broken.urdf"), (13, "ctl_broken.urdf"), (19, "ctl_broken.urdf")]


# -- show --------------------------------------------------------------------------------------------------------------


def test_show_draws_the_tree(fkctl, crane):
    digest = hashlib.sha256(Path(crane).read_bytes()).hexdigest()
    assert fkctl("show", crane) == fkctl("--model", crane, "show")
    assert fkctl("show", crane).out == f"""\
ctl_crane: 5 links, 4 joints, 2 values in q
unbundled, digest {digest}
base rail, tip hook
rail
└─ carriage  [run, prismatic, q[0], axis 1 0 0, -4 .. 4 m]
   ├─ jib  [swing, continuous, q[1], axis 0 0 1]
   │  └─ hook  [eye, fixed]
   └─ weight  [balance, revolute, = -0.5 * swing + 0.25, axis 0 0 1, -3 .. 3 rad]
"""


def test_show_of_wide_joints_and_no_single_tip(fkctl, robots):
    assert "floor -> (no single tip: left, right)\n" in fkctl("pack", robots / "ctl_cart.urdf").out
    out = fkctl("show", robots / "ctl_cart.urdf").out
    assert "base floor, tip (no single tip: left, right)" in out
    assert "cart  [drive, planar, q[0..2], axis 0 0 1]" in out
    assert "left  [left_mast, prismatic, q[3], axis 0 0 1, 0 .. 2 m]" in out


def test_show_says_whether_the_bundle_is_hashed(fkctl, members, packed):
    digest = hashlib.sha256(members(packed)["MANIFEST.txt"]).hexdigest()
    assert fkctl("show", packed).out.splitlines()[1] == f"hashed, digest {digest}"


def test_a_chain_of_two_thousand_links(fkctl):
    n = 2000
    links = "".join(f'<link name="l{i}"/>' for i in range(n))
    joints = "".join(
        f'<joint name="j{i}" type="prismatic"><parent link="l{i}"/><child link="l{i + 1}"/><axis xyz="0 0 1"/>'
        '<limit lower="0" upper="1" effort="1" velocity="1"/></joint>'
        for i in range(n - 1)
    )
    Path("chain.urdf").write_text(f'<robot name="chain">{links}{joints}</robot>')
    ran = fkctl("show", "chain.urdf")
    assert ran.status == 0
    *_, last = lines = ran.out.splitlines()
    assert len(lines) == 3 + n
    assert last.strip() == f"└─ l{n - 1}  [j{n - 2}, prismatic, q[{n - 2}], axis 0 0 1, 0 .. 1 m]"
    pose = json.loads(fkctl("--model", "chain.urdf", "fk", *["0.5"] * (n - 1), "--json").out)["poses"]
    assert pose == {f"l{n - 1}": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, (n - 1) / 2, 0, 0, 0, 1]}
