"""Writing bundles: what is written is read, is the same everywhere, and is plain to other tools."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import time
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load.bundle import Limits, open_bundle
from fkd.load.pack import write_bundle

URDF = b'<robot name="r"><link name="base"/></robot>\n'


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


SAFE = st.text("abcXYZ019_-+ ()é漢", min_size=1, max_size=8).map(lambda s: s.rstrip(" ") + "x")
PATHS = st.lists(SAFE, min_size=1, max_size=4).map("/".join)
MEMBERS = st.dictionaries(PATHS, st.binary(max_size=200), min_size=1, max_size=6)


def contents(data: bytes) -> dict[str, bytes]:
    opened = open_bundle(data, "b.zip")
    return {n: opened.read(n) for n in opened.names()}


@given(MEMBERS)
def test_what_is_written_is_read_or_refused(members):
    try:
        data = write_bundle(members)
    except BundleRefused as e:
        refusal = e.reason
    else:
        assert contents(data) == members
        return
    assert refusal in ("bundle-duplicate-name", "bundle-file-is-folder")


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=12), st.binary(max_size=9), max_size=4))
def test_any_name_at_all_is_written_faithfully_or_refused(members):
    try:
        data = write_bundle(members)
    except BundleRefused:
        return
    assert contents(data) == members


@given(st.lists(st.sampled_from(["a", "b.urdf", "c/d", "é"]), unique=True, min_size=1).flatmap(
    lambda names: st.tuples(st.just(names), st.permutations(names))))  # fmt: skip
def test_the_order_of_members_does_not_matter(orders):
    one, other = ({n: n.encode() for n in order} for order in orders)
    assert write_bundle(one) == write_bundle(other)


# --- writing


def test_written_bytes_depend_on_nothing_else(monkeypatch):
    members = {"b.urdf": URDF, "a/ü.txt": b"u", "z": b""}
    data = write_bundle(members)
    old = os.umask(0)
    try:
        for zone in ("Pacific/Kiritimati", "UTC+12"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert write_bundle(dict(reversed(members.items()))) == data
            os.umask(0o777)
    finally:
        os.umask(old)
        monkeypatch.undo()
        time.tzset()
    assert sha(data) == "9b7c32d75759e43c1147f471219352f7b86415677cd423b91dad44646ba8afce"  # on every machine


def test_written_zip_is_plain_to_other_readers():
    with zipfile.ZipFile(io.BytesIO(write_bundle({"b.urdf": URDF, "a/c.txt": b"c"}))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["MANIFEST.txt", "a/c.txt", "b.urdf"]
        for info in archive.infolist():
            assert (info.date_time, info.external_attr, info.compress_type) == (
                (1980, 1, 1, 0, 0, 0),
                0o100644 << 16,
                0,
            )
        assert archive.read("MANIFEST.txt").decode() == f"{sha(b'c')}  a/c.txt\n{sha(URDF)}  b.urdf\n"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, "bundle-manifest-empty"),
        ({"MANIFEST.txt": b""}, "bundle-manifest-lists-itself"),
        ({"manifest.txt": b""}, "bundle-duplicate-name"),
        ({"a": b"", "A": b""}, "bundle-duplicate-name"),
        ({"a": b"", "a/b": b""}, "bundle-file-is-folder"),
        ({"a/": b""}, "bundle-path-component"),
        ({"../a": b""}, "bundle-path-parent"),
        ({"a\\b": b""}, "bundle-path-backslash"),
        ({"a\nb": b""}, "bundle-path-control"),
        ({"caf\udce9": b""}, "bundle-path-encoding"),
    ],
)
def test_writing_refuses_what_could_not_be_opened(members, reason):
    with pytest.raises(BundleRefused) as caught:
        write_bundle(members)
    assert caught.value.reason == reason


def test_writing_keeps_to_the_limits():
    with pytest.raises(BundleRefused) as caught:
        write_bundle({"a.urdf": bytes(2000)}, limits=Limits(text_member=1000))
    assert caught.value.reason == "bundle-text-too-big"


def test_what_compresses_beyond_the_ratio_is_written_and_read():
    members = {"blank.bmp": bytes(2 << 20)}
    assert contents(write_bundle(members)) == members


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="needs coreutils")
def test_sha256sum_checks_the_unpacked_tree(tmp_path):
    data = write_bundle({"robot.urdf": URDF, "meshes/a b (é).stl": bytes(99), " *odd": b"", "-n": b"x"})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(tmp_path)
    check = ["sha256sum", "-c", "--strict", "--quiet", "MANIFEST.txt"]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 0
    (tmp_path / "robot.urdf").write_bytes(URDF + b" ")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1
