"""pack: a description becomes a bundle, the same bytes everywhere, or nothing at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

TEMPLATE = '<robot name="r"><link name="a"/><link name="b"/>{}</robot>'
JOINT = '<joint name="j" type="{type}"><parent link="a"/><child link="b"/>{inside}</joint>'


def tree(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder, hidden files too."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


def test_a_file_becomes_a_bundle_of_itself(fkctl, members, crane):
    ran = fkctl("pack", crane, "-o", "out.zip")
    assert ran.status == 0
    found = members(Path("out.zip"))
    assert list(found) == ["MANIFEST.txt", "ctl_crane.urdf"]
    assert found["ctl_crane.urdf"] == Path(crane).read_bytes()
    digest = hashlib.sha256(found["MANIFEST.txt"]).hexdigest()
    assert ran.out == f"out.zip: ctl_crane, 5 links, 2 values in q, rail -> hook\ndigest {digest}\n"


def test_two_packs_are_the_same_bytes_wherever_they_are_made(fkctl, spawn, folder, tmp_path, monkeypatch):
    assert fkctl("pack", folder, "-o", tmp_path / "1.zip").status == 0
    monkeypatch.chdir(folder)
    assert fkctl("pack", ".", "-o", "../2.zip").status == 0
    assert spawn("pack", "my_crane/", "-o", "3.zip", cwd=tmp_path, env={"TZ": "Pacific/Auckland", "LC_ALL": "C"}).status == 0
    copy = tmp_path / "elsewhere" / "other_name"
    shutil.copytree(folder, copy)
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert fkctl("pack", copy, "-o", tmp_path / "4.zip").status == 0
    first, *others = ((tmp_path / f"{k}.zip").read_bytes() for k in "1234")
    assert all(other == first for other in others)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum")
def test_sha256sum_checks_the_unpacked_tree(fkctl, folder, tmp_path):
    fkctl("pack", folder, "--base", "carriage", "-o", "b.zip")
    with zipfile.ZipFile("b.zip") as z:
        z.extractall(tmp_path / "tree")
    done = subprocess.run(["sha256sum", "--strict", "-c", "MANIFEST.txt"], cwd=tmp_path / "tree", capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["bundle.toml: OK", "urdf/crane.urdf: OK"])


def test_a_folders_settings_go_in_and_options_stand_above_them(fkctl, members, folder):
    fkctl("pack", folder, "-o", "1.zip")
    fkctl("pack", folder, "-o", "2.zip", "--tip", "weight", "--base", "carriage")
    assert set(members(Path("1.zip"))) == {"MANIFEST.txt", "bundle.toml", "urdf/crane.urdf"}
    for bundle, tip, base in (("1.zip", "hook", "rail"), ("2.zip", "weight", "carriage")):
        model = json.loads(fkctl("show", bundle, "--json").out)
        assert (model["tip"], model["base"]) == (tip, base)
        # the calibrated eye: 2.0625 instead of 2
        pose = json.loads(fkctl("--model", bundle, "fk", "0", "0", "--link=hook", "--base=jib", "--json").out)["poses"]["hook"]
        assert pose[3] == 2.0625


def test_a_unit_of_length_scales_the_lengths_and_no_more(fkctl, members, crane):
    fkctl("pack", crane, "-o", "mm.zip", "--length-unit", "mm")
    poses = json.loads(fkctl("--model", "mm.zip", "fk", "0.25", "0", "--link=all", "--json").out)["poses"]
    assert poses["hook"][3::4] == pytest.approx([0.25 + 0.0025, 0, 0.001, 1])
    limits = json.loads(fkctl("show", "mm.zip", "--json").out)["joints"][0]["limits"]
    assert limits == pytest.approx({"lower": -0.004, "upper": 0.004})
    # metres are the default, and say nothing
    fkctl("pack", crane, "-o", "m.zip", "--length-unit", "m")
    assert "bundle.toml" not in members(Path("m.zip"))


@pytest.mark.parametrize(
    ("source", "output"),
    [("arm.urdf", "arm.zip"), ("Arm.URDF", "Arm.zip"), ("arm.v2.urdf", "arm.v2.zip"), ("arm", "arm.zip"), ("arm/", "arm.zip"),
     ("arm/.", "arm.zip"), ("arm.urdf/", "arm.zip"), ("./deep/../arm.urdf", "arm.zip")],
)  # fmt: skip
def test_the_default_output_is_the_sources_name(fkctl, crane, source, output):
    Path("deep").mkdir()
    name = Path(os.path.abspath(source))
    if name.name.lower().endswith(".urdf") and not source.endswith("/"):
        shutil.copy(crane, name)
    else:
        name.mkdir()
        shutil.copy(crane, name)
    ran = fkctl("pack", source)
    assert ran.status == 0, ran
    assert ran.out.startswith(f"{output}: ")
    assert Path(output).is_file()


def test_the_bundle_is_as_readable_as_any_new_file(packed):
    """A daemon under another user has to read it."""
    Path("plain").touch()
    assert stat.S_IMODE(packed.stat().st_mode) == stat.S_IMODE(Path("plain").stat().st_mode)


def test_a_pack_replaces_a_bundle_and_follows_a_link(fkctl, crane, packed):
    Path("current.zip").symlink_to("crane.zip")
    ran = fkctl("pack", crane, "-o", "current.zip", "--tip", "weight")
    assert ran.status == 0
    assert Path("current.zip").is_symlink()
    assert json.loads(fkctl("show", "crane.zip", "--json").out)["tip"] == "weight"


def test_pack_as_json(fkctl, crane):
    found = json.loads(fkctl("pack", crane, "--json").out)
    assert found["bundle"] == "ctl_crane.zip"
    assert found["digest"] == json.loads(fkctl("verify", "ctl_crane.zip", "--json").out)["digest"]
    assert [f for f in found["findings"] if f["severity"] == "error"] == []


def test_warnings_are_said_and_do_not_hinder(fkctl):
    Path("r.urdf").write_text(TEMPLATE.format(JOINT.format(type="revolute", inside="")))
    ran = fkctl("pack", "r.urdf")
    assert ran.status == 0
    assert "r.urdf:1: warning: " in ran.out


def test_several_models_are_listed(fkctl, members, folder):
    shutil.copy(folder / "urdf" / "crane.urdf", folder / "urdf" / "spare.urdf")
    ran = fkctl("pack", folder)
    assert ran.status == 1
    assert "`urdf/crane.urdf`, `urdf/spare.urdf`" in ran.err
    assert "--model-file" in ran.err
    plain, dotted, absolute = (
        fkctl("pack", folder, "-o", "o.zip", "--model-file", f)
        for f in ("urdf/spare.urdf", "./urdf/../urdf/spare.urdf", folder / "urdf/spare.urdf")
    )
    assert plain == dotted == absolute
    assert plain.status == 0
    assert "urdf/spare.urdf" in members(Path("o.zip"))


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["nowhere"], 1, "nowhere: no such file"),
        (["FOLDER", "--model-file", "urdf/carne.urdf"], 1, "did you mean `urdf/crane.urdf`?"),
        (["FOLDER", "--model-file", "urdf"], 1, "no file `urdf`"),
        (["FOLDER", "--model-file", "../work"], 1, "no file `../work`"),
        (["FOLDER", "--model", "urdf/crane.urdf"], 2, "--model-file chooses the model within a folder"),
        (["CRANE", "--model-file", "x"], 1, "is a file; --model-file chooses within a folder"),
        (["CRANE", "--tip", "hok"], 1, "the tip `hok` is not a link; did you mean `hook`?"),
        (["CRANE", "--base", "rial"], 1, "the base `rial` is not a link; did you mean `rail`?"),
        (["CRANE", "--tip", ""], 1, "`tip` holds ``"),
        (["FOLDER/README.txt"], 1, "no model in it (.urdf or .xacro)"),
        (["empty"], 1, "no model in it (.urdf or .xacro)"),
        (["old.zip"], 1, "old.zip: no MANIFEST.txt"),
        (["broken.urdf"], 1, "broken.urdf is not packed: it has"),
        (["once.urdf"], 1, "once.urdf:1: error: "),
        (["not_xml.urdf"], 1, "not_xml.urdf:1: "),
        (["blank.urdf"], 1, "blank.urdf: the file is empty"),
        (["colon:1.urdf"], 1, "holds a colon"),
        (["/dev/null", "-o", "OUT"], 1, "not a regular file"),
        (["/"], 2, "/ has no name of its own; name the bundle with -o"),
    ],
)
def test_what_cannot_be_packed_leaves_nothing(fkctl, crane, robots, folder, words, status, says):
    Path("empty").mkdir()
    Path("blank.urdf").touch()
    Path("not_xml.urdf").write_text("solid crane")
    Path("old.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    Path("once.urdf").write_text(TEMPLATE.format(JOINT.format(type="hinge", inside="")))
    shutil.copy(robots / "ctl_broken.urdf", "broken.urdf")
    shutil.copy(crane, "colon:1.urdf")
    before = tree(Path())
    stand_for = {"CRANE": crane, "FOLDER": str(folder), "OUT": "o.zip"}
    words = [w.replace("FOLDER/", f"{folder}/") for w in words]
    ran = fkctl("pack", *(stand_for.get(w, w) for w in words))
    assert ran.status == status
    assert says in ran.err
    assert ".fkctl" not in ran.err + ran.out
    assert tree(Path()) == before


def test_every_error_of_a_model_is_told_at_once(fkctl, robots):
    shutil.copy(robots / "ctl_broken.urdf", "broken.urdf")
    ran = fkctl("pack", "broken.urdf")
    assert ran.err == "fkctl: broken.urdf is not packed: it has 3 errors\n"
    errors = [line for line in fkctl("check", "broken.urdf").out.splitlines() if ": error: " in line]
    assert ran.out.splitlines() == errors


def test_a_failed_pack_leaves_the_old_bundle_alone(fkctl, crane, robots, packed):
    before = packed.read_bytes()
    shutil.copy(robots / "ctl_broken.urdf", "broken.urdf")
    for words in ([robots / "ctl_broken.urdf"], [crane, "--tip", "nowhere"], ["nowhere"]):
        assert fkctl("pack", *words, "-o", packed).status == 1
    assert packed.read_bytes() == before
    assert sorted(p.name for p in Path().iterdir()) == ["broken.urdf", "crane.zip"]


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("a_folder", "a_folder is a folder; name a file in it: -o a_folder/NAME.zip"),
        (".", ". is a folder"),
        ("no/such/folder/o.zip", "cannot write no/such/folder/o.zip: No such file or directory"),
        ("model.urdf/o.zip", "cannot write model.urdf/o.zip: Not a directory"),
        ("x" * 300, "File name too long"),
        ("model.urdf", "model.urdf is there and is no bundle; it is left alone"),
        ("/dev/null", "/dev/null is there and is no regular file; it is left alone"),
        ("a_pipe", "a_pipe is there and is no regular file"),
        ("a_ring", "a_ring is there and is no regular file"),
    ],
)
def test_outputs_that_cannot_be_written(fkctl, crane, output, says):
    Path("a_folder").mkdir()
    os.mkfifo("a_pipe")
    Path("a_ring").symlink_to("a_ring")
    shutil.copy(crane, "model.urdf")
    before = {p.name: p.lstat().st_mtime_ns for p in Path().iterdir()}
    ran = fkctl("pack", "model.urdf", "-o", output)
    assert ran.status == 1
    assert says in ran.err
    assert {p.name: p.lstat().st_mtime_ns for p in Path().iterdir()} == before
    assert Path("model.urdf").read_bytes() == Path(crane).read_bytes()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write(fkctl, crane):
    Path("closed").mkdir(mode=0o500)
    ran = fkctl("pack", crane, "-o", "closed/o.zip")
    assert (ran.status, ran.err) == (1, "fkctl: cannot write closed/o.zip: Permission denied\n")


@pytest.mark.parametrize("kind", ["dangling", "ring", "outside", "folder", "unknown key", "not toml"])
def test_a_bundle_toml_is_read_or_refused_never_passed_over(fkctl, folder, kind):
    file = folder / "bundle.toml"
    file.unlink()
    if kind == "dangling":
        file.symlink_to("nowhere.toml")
    elif kind == "ring":
        file.symlink_to("bundle.toml")
    elif kind == "outside":
        Path("outside.toml").write_text('tip = "weight"\n')
        file.symlink_to(Path("outside.toml").absolute())
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_text("tipp = 'hook'\n" if kind == "unknown key" else "tip: hook\n")
    ran = fkctl("pack", folder)
    assert ran.status == 1
    assert "bundle.toml" in ran.err
    assert not list(Path().glob("*.zip"))
