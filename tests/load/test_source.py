"""Sources: a bundle or a plain file is opened, anything else is refused clearly; and which file the model is."""

from __future__ import annotations

import hashlib
import os
import socket
import zipfile

import pytest

from fkd.errors import BundleRefused
from fkd.load.bundle import Bundle, Limits, open_bundle
from fkd.load.pack import write_bundle
from fkd.load.settings import Settings
from fkd.load.source import find_model, open_source

URDF = b'<robot name="r"><link name="base"/></robot>'
XACRO = b'<?xml version="1.0"?>\n<!-- <robot name="no"> -->\n<robot xmlns:xacro="x"\n  name="$(arg n)"/>'
MACROS = b'<robot xmlns:xacro="x"><xacro:macro name="m"/></robot>'


def refused(call, *arguments, **options) -> BundleRefused:
    with pytest.raises(BundleRefused) as caught:
        call(*arguments, **options)
    return caught.value


# --- opening


def test_opens_a_bundle(tmp_path):
    path = tmp_path / "ur5e.zip"
    path.write_bytes(write_bundle({"robot.urdf": URDF}))
    for given in (path, str(path)):
        source = open_source(given)
        assert isinstance(source, Bundle)
        assert (source.name, source.names(), source.hashed) == ("ur5e.zip", ["robot.urdf"], True)


def test_a_bundle_is_known_by_its_content(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_bytes(write_bundle({"inner.urdf": URDF}))
    assert open_source(path).names() == ["inner.urdf"]


def test_a_zip_by_name_only_is_refused_as_a_zip(tmp_path):
    path = tmp_path / "robot.zip"
    path.write_bytes(URDF)
    error = refused(open_source, path)
    assert error.reason == "bundle-not-a-zip"
    assert "robot.zip" in str(error)


def test_hands_on_that_hashes_may_be_missing(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.urdf", URDF)
    assert refused(open_source, path).reason == "bundle-no-manifest"
    assert open_source(path, allow_unhashed=True).hashed is False


def test_opens_a_plain_file(tmp_path):
    path = tmp_path / "ur5e.urdf"
    path.write_bytes(URDF)
    source = open_source(path)
    assert (source.name, source.names(), source.hashed) == ("ur5e.urdf", ["ur5e.urdf"], False)
    assert source.digest == hashlib.sha256(URDF).hexdigest()
    assert source.read("ur5e.urdf") == URDF
    assert "ur5e.urdf" in source
    for other in ("common.xacro", "../ur5e.urdf", str(path), ""):
        assert other not in source
        error = refused(source.read, other)
        assert error.reason == "bundle-member-absent"
        assert "fkctl pack" in str(error)


def test_a_source_does_not_follow_later_changes(tmp_path):
    path = tmp_path / "a.urdf"
    path.write_bytes(URDF)
    source = open_source(path)
    path.write_bytes(b"other")
    assert source.read("a.urdf") == URDF


def test_a_link_to_a_file_is_that_file(tmp_path):
    (tmp_path / "a.urdf").write_bytes(URDF)
    (tmp_path / "current.urdf").symlink_to("a.urdf")
    assert open_source(tmp_path / "current.urdf").names() == ["current.urdf"]


def test_refuses_a_missing_file_and_suggests_one(tmp_path):
    (tmp_path / "ur5e.zip").write_bytes(b"")
    error = refused(open_source, tmp_path / "ur5.zip")
    assert error.reason == "source-absent"
    assert "did you mean `ur5e.zip`?" in str(error)
    assert refused(open_source, tmp_path / "no/such/ur5e.zip").reason == "source-absent"
    assert refused(open_source, tmp_path / "ur5e.zip/x").reason == "source-absent"
    assert refused(open_source, "").reason in ("source-folder", "source-absent")


def test_refuses_what_is_no_file_name(tmp_path):
    assert refused(open_source, "a\0b").reason == "source-absent"
    assert refused(open_source, "a\ud800b").reason == "source-absent"
    assert refused(open_source, tmp_path / ("x" * 5000)).reason == "source-unreadable"
    (tmp_path / "loop").symlink_to("loop")
    assert refused(open_source, tmp_path / "loop").reason == "source-unreadable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_refuses_an_unreadable_file(tmp_path):
    path = tmp_path / "a.urdf"
    path.write_bytes(URDF)
    path.chmod(0)
    assert refused(open_source, path).reason == "source-unreadable"


def test_refuses_a_folder_and_says_how_to_pack_it(tmp_path):
    error = refused(open_source, tmp_path)
    assert error.reason == "source-folder"
    assert "fkctl pack" in str(error)


def test_refuses_an_empty_file(tmp_path):
    (tmp_path / "a.urdf").touch()
    assert refused(open_source, tmp_path / "a.urdf").reason == "source-empty"


def test_never_waits_for_a_pipe_socket_or_device(tmp_path):
    os.mkfifo(tmp_path / "pipe.urdf")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        for path in (tmp_path / "pipe.urdf", tmp_path / "s", "/dev/zero", "/dev/tty"):
            if os.path.lexists(path):
                assert refused(open_source, path).reason == "source-special"


def test_refuses_a_file_over_the_limits_unread(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\3\4")
    os.truncate(path, 1 << 40)  # a hole: the file takes no space, and reading it would take all memory
    assert refused(open_source, path).reason == "bundle-too-big"
    (tmp_path / "a.urdf").write_bytes(URDF)
    limits = Limits(text_member=10)
    assert refused(open_source, tmp_path / "a.urdf", limits=limits).reason == "bundle-text-too-big"


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
def test_refuses_a_file_of_another_size_than_it_says():
    assert refused(open_source, "/proc/self/status").reason == "source-changing"


def test_every_message_names_the_path(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        assert str(path) in str(refused(open_source, path))


# --- which file is the model


def source(**members: bytes) -> Bundle:
    return open_bundle(write_bundle({k.replace("__", "."): v for k, v in members.items()}), "b.zip")


def test_the_only_urdf_is_the_model():
    files = {"readme.md": b"x", "urdf/a.urdf": URDF, "urdf/a.urdf.xacro": XACRO, "m.xacro": XACRO}
    assert find_model(open_bundle(write_bundle(files), "b.zip"), Settings()) == "urdf/a.urdf"


def test_the_only_xacro_with_a_named_robot_is_the_model():
    assert find_model(source(a__xacro=MACROS, b__urdf__xacro=XACRO, c__xacro=MACROS), Settings()) == "b.urdf.xacro"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"<robot name='r'/>", True),
        (b'<robot\n\txmlns:xacro="a>b" name = "r"/>', True),
        (b'\xef\xbb\xbf<robot name="r"/>', True),
        ('<?xml version="1.0" encoding="UTF-16"?><robot name="r"/>'.encode("utf-16"), True),
        (b"<!--" + b"licence " * 2000 + b'--><robot name="r"/>', True),
        (b'<robot name="r"><broken', True),
        (b"<robot/>", False),
        (b'<!-- <robot name="r"> --><robot/>', False),
        (b'<x><robot name="r"/></x>', False),
        (b'<robot surname="r"/>', False),
        (b'<robots name="r"/>', False),
        (b"", False),
        (b"\0\xff", False),
        (b'<?xml version="1.0" encoding="no-such"?><robot name="r"/>', False),
        (b'<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>', False),
    ],
)
def test_what_a_named_robot_is(text, named):
    files = source(a__xacro=text, b__xacro=MACROS)
    if named:
        assert find_model(files, Settings()) == "a.xacro"
    else:
        error = refused(find_model, files, Settings())
        assert error.reason == "bundle-no-model"
        assert error.data["candidates"] == ["a.xacro", "b.xacro"]


@pytest.mark.parametrize(
    "files",
    [
        {"a__urdf": URDF, "b__urdf": URDF},
        {"a__urdf": URDF, "b__urdf": URDF, "c__xacro": XACRO},
        {"a__xacro": XACRO, "b__xacro": XACRO, "c__xacro": MACROS},
    ],
)
def test_two_candidates_are_listed(files):
    error = refused(find_model, source(**files), Settings())
    assert error.reason == "bundle-model-unclear"
    suffix = ".urdf" if "a__urdf" in files else ".xacro"
    assert error.data["candidates"] == [f"a{suffix}", f"b{suffix}"]
    assert all(f"`{c}`" in str(error) for c in error.data["candidates"])
    assert "bundle.toml" in str(error)


def test_no_candidate_at_all():
    assert refused(find_model, source(a__stl=b"x"), Settings()).reason == "bundle-no-model"
    assert refused(find_model, source(a__csv=b"x", b__csv=b"x"), Settings()).reason == "bundle-no-model"  # tables must be named
    assert find_model(source(table__csv=b"x"), Settings()) == "table.csv"  # but for one that stands alone


@pytest.mark.parametrize("name", ["a.urdf", "b.urdf", "c.xacro", "d.xml", "dh.csv", "dh.toml", "dh.json"])
def test_bundle_toml_decides(name):
    files = dict.fromkeys(["a.urdf", "b.urdf", "c.xacro", "d.xml", "dh.csv", "dh.toml", "dh.json"], URDF)
    assert find_model(open_bundle(write_bundle(files), "b.zip"), Settings(model=name)) == name


def test_bundle_toml_names_what_is_not_there():
    error = refused(find_model, open_bundle(write_bundle({"urdf/arm.urdf": URDF}), "b.zip"), Settings(model="arm.urdf"))
    assert (error.reason, error.data["did_you_mean"]) == ("bundle-member-absent", "urdf/arm.urdf")
    assert "bundle.toml" in str(error)


def test_bundle_toml_names_no_model():
    files = source(bundle__toml=b"", a__stl=b"", a__urdf=URDF)
    for name in ("bundle.toml", "a.stl"):
        assert refused(find_model, files, Settings(model=name)).reason == "bundle-model-kind"


@pytest.mark.parametrize("name", ["a.urdf", "a.xacro", "A.URDF", "robot.xml"])
def test_a_plain_file_is_its_own_model(tmp_path, name):
    (tmp_path / name).write_bytes(MACROS)
    assert find_model(open_source(tmp_path / name), Settings()) == name


def test_a_plain_file_of_another_kind_is_none(tmp_path):
    (tmp_path / "a.txt").write_bytes(URDF)
    assert refused(find_model, open_source(tmp_path / "a.txt"), Settings()).reason == "bundle-no-model"
