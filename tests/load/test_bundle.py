"""Bundles: what real archivers write is read, everything that can be read in two ways is refused.

The zips are built here byte by byte (APPNOTE 4.3), by code that shares nothing with the reader.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import struct
import subprocess
import tracemalloc
import zipfile
import zlib
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load.bundle import Limits, open_bundle
from fkd.load.pack import write_bundle

URDF = b'<robot name="r"><link name="base"/></robot>\n'
UNIX_FILE = 0o100644 << 16


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def deflate(data: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(data) + deflater.flush()


@dataclass
class Entry:
    """One member as it shall stand in the zip; `local` and `central` override header fields by name."""

    name: bytes
    data: bytes = b""
    method: int = 8
    flags: int = 0
    attributes: int = UNIX_FILE
    extra: bytes = b""
    packed: bytes | None = None
    descriptor: bytes | None = None  # "", or struct format of the data descriptor
    local: dict | None = None
    central: dict | None = None
    before: bytes = b""  # bytes between the entry before and this one
    disk: int = 0
    offset: int | None = None


def build(entries: list[Entry], *, comment: bytes = b"", tail: bytes = b"", before_end: bytes = b"", **end) -> bytes:
    out, directory = bytearray(), bytearray()
    for e in entries:
        packed = e.packed if e.packed is not None else deflate(e.data) if e.method == 8 else e.data
        out += e.before
        offset = len(out)
        fields = {
            "flags": e.flags, "method": e.method, "crc": zlib.crc32(e.data), "packed": len(packed), "size": len(e.data),
            "name": e.name, "extra": e.extra,
        }  # fmt: skip
        here = fields | ({"crc": 0, "packed": 0, "size": 0} if e.descriptor is not None else {}) | (e.local or {})
        there = fields | (e.central or {})
        out += struct.pack("<4s5H3I2H", b"PK\3\4", 20, here["flags"], here["method"], 0, 33, here["crc"],
                           here["packed"], here["size"], len(here["name"]), len(here["extra"]))  # fmt: skip
        out += here["name"] + here["extra"] + packed
        if e.descriptor is not None:
            sign = b"PK\7\x08" if "s" in e.descriptor else b""
            out += sign + struct.pack(e.descriptor.replace("s", ""), there["crc"], there["packed"], there["size"])
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 0x314, 20, there["flags"], there["method"], 0, 33,
                                 there["crc"], there["packed"], there["size"], len(there["name"]), len(there["extra"]),
                                 0, e.disk, 0, e.attributes, offset if e.offset is None else e.offset)  # fmt: skip
        directory += there["name"] + there["extra"]
    record = {
        "disk": 0,
        "start": 0,
        "here": len(entries),
        "count": len(entries),
        "size": len(directory),
        "offset": len(out),
    } | end
    return bytes(out + directory + before_end) + struct.pack("<4s4H2IH", b"PK\5\6", *record.values(),
                                                             len(comment)) + comment + tail  # fmt: skip


def manifest(entries: list[Entry], prefix: bytes = b"") -> Entry:
    lines = [sha(e.data).encode() + b"  " + e.name.removeprefix(prefix) + b"\n" for e in entries]
    return Entry(prefix + b"MANIFEST.txt", b"".join(lines))


def bundle(*entries: Entry, **end) -> bytes:
    """A zip of `entries` and their true manifest: nothing is wrong but what the entries themselves say."""
    return build([manifest([e for e in entries if not e.name.endswith(b"/")]), *entries], **end)


ROBOT = Entry(b"robot.urdf", URDF)


def refused(data: bytes, **options) -> BundleRefused:
    with pytest.raises(BundleRefused) as caught:
        open_bundle(data, "b.zip", **options)
    assert caught.value.code == -32040
    return caught.value


# --- what is read


def test_reads_members_and_digest():
    other = Entry(b"config/limits.yaml", b"a: 1\n", method=0)
    data = bundle(ROBOT, other)
    opened = open_bundle(data, "b.zip")
    assert opened.names() == ["config/limits.yaml", "robot.urdf"]
    assert opened.read("robot.urdf") == URDF
    assert opened.read("config/limits.yaml") == b"a: 1\n"
    assert opened.digest == sha(manifest([ROBOT, other]).data)
    assert opened.hashed
    assert "robot.urdf" in opened
    assert "MANIFEST.txt" not in opened
    assert "config" not in opened


def test_common_top_folder_is_left_out():
    entries = [Entry(b"ur5e/urdf/a.urdf", URDF), Entry(b"ur5e/b.txt", b"b")]
    folders = [Entry(b"ur5e/", attributes=0o040755 << 16 | 0x10, method=0), Entry(b"ur5e/urdf/", attributes=0x10)]
    opened = open_bundle(build([*folders, *entries, manifest(entries, b"ur5e/")]), "b.zip")
    assert opened.names() == ["b.txt", "urdf/a.urdf"]
    assert opened.top == "ur5e"
    assert opened.read("urdf/a.urdf") == URDF


def test_a_manifest_deeper_down_is_a_member_like_any_other():
    opened = open_bundle(bundle(ROBOT, Entry(b"doc/MANIFEST.txt", b"x")), "b.zip")
    assert opened.names() == ["doc/MANIFEST.txt", "robot.urdf"]


def test_without_manifest_only_where_allowed():
    data = build([Entry(b"top/robot.urdf", URDF)])
    assert refused(data).reason == "bundle-no-manifest"
    opened = open_bundle(data, "b.zip", allow_unhashed=True)
    assert (opened.names(), opened.hashed, opened.digest) == (["robot.urdf"], False, sha(data))


def test_a_manifest_that_is_there_must_hold_even_where_none_is_needed():
    wrong = [Entry(b"MANIFEST.txt", sha(b"other").encode() + b"  robot.urdf\n"), ROBOT]
    assert refused(build(wrong), allow_unhashed=True).reason == "bundle-hash-differs"


ZIP64 = struct.pack("<2H2Q", 1, 16, len(URDF), len(deflate(URDF)))
ACCEPTED = {
    "stored": replace(ROBOT, method=0),
    "deflate options in flags": replace(ROBOT, flags=0b110),
    "descriptor with signature (macOS, Java)": replace(ROBOT, flags=8, descriptor="<s3I"),
    "descriptor without signature": replace(ROBOT, flags=8, descriptor="<3I"),
    "descriptor of 64 bits": replace(ROBOT, flags=8, descriptor="<sI2Q"),
    "descriptor of 64 bits without signature": replace(ROBOT, flags=8, descriptor="<I2Q"),
    "descriptor, and sizes in the header too (Info-ZIP)": replace(
        ROBOT, flags=8, descriptor="<s3I", local={"size": len(URDF)}
    ),
    "zip64 field in the local header (Info-ZIP from a pipe)": replace(
        ROBOT, local={"packed": 0xFFFFFFFF, "size": 0xFFFFFFFF, "extra": ZIP64}
    ),
    "zip64 field in the central directory": replace(
        ROBOT, central={"size": 0xFFFFFFFF, "extra": struct.pack("<2HQ", 1, 8, len(URDF))}
    ),
    "time stamps in extra fields": replace(ROBOT, extra=struct.pack("<2HBI", 0x5455, 5, 1, 0)),
    "padding of an aligner": replace(ROBOT, local={"extra": b"\0\0\0"}),
    "Windows attributes": replace(ROBOT, attributes=0x20),
    "Unix permissions without a type (Python)": replace(ROBOT, attributes=0o600 << 16),
    "UTF-8 flag": replace(ROBOT, name="é/robot.urdf".encode(), flags=0x800),
    "UTF-8 without the flag (Info-ZIP, macOS)": replace(ROBOT, name="é/robot.urdf".encode()),
    "Unicode path field that agrees": replace(ROBOT, extra=struct.pack("<2H5x", 0x7075, 15) + b"robot.urdf"),
    "empty file, deflated": Entry(b"robot.urdf"),
    "empty file, stored": Entry(b"robot.urdf", method=0),
    "name with spaces and signs": Entry(b"a b/*robot (1)+#~.urdf", URDF),
    "a zip in the zip is a file": Entry(b"inner.zip", build([ROBOT]), method=0),
}


@pytest.mark.parametrize("entry", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts_what_archivers_write(entry):
    opened = open_bundle(bundle(entry), "b.zip")
    path = entry.name.decode()
    assert opened.names() == [path]
    assert opened.read(path) == entry.data


def test_archive_comment_is_accepted():
    assert open_bundle(bundle(ROBOT, comment=b"0123456789abcdef"), "b.zip").read("robot.urdf") == URDF


@pytest.mark.parametrize("seekable", [True, False])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("wide", [True, False])
def test_accepts_what_zipfile_writes(seekable, method, wide):
    class Pipe(io.RawIOBase):
        data = b""

        def writable(self):
            return True

        def write(self, chunk):
            self.data += bytes(chunk)
            return len(chunk)

    out = io.BytesIO() if seekable else Pipe()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("top/", b"")
        with archive.open("top/robot.urdf", "w", force_zip64=wide) as member:
            member.write(URDF)
        archive.writestr("top/ü.txt", b"u" * 999)
        archive.writestr("top/MANIFEST.txt", f"{sha(URDF)}  robot.urdf\n{sha(b'u' * 999)}  ü.txt\n")
    opened = open_bundle(out.getvalue() if seekable else out.data, "b.zip")
    assert {n: opened.read(n) for n in opened.names()} == {"robot.urdf": URDF, "ü.txt": b"u" * 999}


@pytest.mark.skipif(not shutil.which("zip"), reason="needs Info-ZIP")
@pytest.mark.parametrize("streamed", [True, False])
def test_accepts_what_info_zip_writes(tmp_path, streamed):
    (tmp_path / "ur5e/urdf").mkdir(parents=True)
    (tmp_path / "ur5e/urdf/a.urdf").write_bytes(URDF * 50)
    (tmp_path / "ur5e/MANIFEST.txt").write_text(f"{sha(URDF * 50)}  urdf/a.urdf\n")
    made = subprocess.run(["zip", "-rq", "-", "ur5e"], cwd=tmp_path, capture_output=True, check=True)
    if not streamed:
        subprocess.run(["zip", "-rq", "out.zip", "ur5e"], cwd=tmp_path, check=True)
    data = made.stdout if streamed else (tmp_path / "out.zip").read_bytes()
    assert open_bundle(data, "b.zip").read("urdf/a.urdf") == URDF * 50


# --- what is refused

GOOD = bundle(ROBOT)
# The rules for names are tested in test_paths.py; here, that they hold for the raw bytes of a zip.
NAMES = {
    b"/abs.txt": "bundle-path-absolute",
    b"a/../../b.txt": "bundle-path-parent",
    b"..\\..\\win.txt": "bundle-path-backslash",
    b"C:/d.txt": "bundle-path-drive",
    b"note.txt\0.urdf": "bundle-path-control",
    b"a\x1b[2Jb": "bundle-path-control",
    b"d/" * 40 + b"x": "bundle-path-too-deep",
    b"x" * 60_000: "bundle-path-too-long",
    b"caf\xe9.txt": "bundle-path-encoding",
    b"\xc0\xae\xc0\xae/x": "bundle-path-encoding",  # dots in overlong UTF-8
    b"a//": "bundle-path-component",
    b"../": "bundle-path-parent",
    b"/": "bundle-path-empty",
    b"": "bundle-path-empty",
}


@pytest.mark.parametrize(("name", "reason"), NAMES.items())
@pytest.mark.parametrize("unhashed", [False, True])
def test_refuses_names_that_mean_different_files_to_different_readers(name, reason, unhashed):
    error = refused(bundle(ROBOT, Entry(name, attributes=0)), allow_unhashed=unhashed)
    assert error.reason == reason
    assert error.data["member"] in str(error)
    assert str(error).isprintable()


@pytest.mark.parametrize(
    "names",
    [
        [b"robot.urdf"],
        [b"Robot.URDF"],
        [b"MANIFEST.txt"],
        [b"manifest.TXT"],
        [b"a/", b"a/"],
        [b"a", b"a/"],
        [b"a/", b"A"],
    ],
)
def test_refuses_duplicate_names(names):
    error = refused(bundle(ROBOT, *[Entry(n, attributes=0) for n in names]))
    assert error.reason == "bundle-duplicate-name"
    assert error.data["member"] in str(error)


def test_refuses_a_file_that_is_also_a_folder():
    assert refused(bundle(Entry(b"a"), Entry(b"a/b"))).reason == "bundle-file-is-folder"


def with_robot(**changes) -> bytes:
    return bundle(replace(ROBOT, **changes))


LONG = URDF * 100
SPECIAL = {
    "symbolic link": with_robot(attributes=0o120777 << 16),
    "pipe": with_robot(attributes=0o010644 << 16),
    "socket": with_robot(attributes=0o140644 << 16),
    "block device": with_robot(attributes=0o060644 << 16),
    "character device": with_robot(attributes=0o020644 << 16),
    "folder by mode, file by name": with_robot(attributes=0o040755 << 16),
    "folder by DOS attribute, file by name": with_robot(attributes=0x10),
    "file by mode, folder by name": bundle(ROBOT, Entry(b"a/")),
    "volume label": with_robot(attributes=0x08),
    "reparse point": with_robot(attributes=0x400),
}
REFUSED = {
    "not a zip": (b"\x7fELF" + bytes(100), "bundle-not-a-zip"),
    "empty": (b"", "bundle-not-a-zip"),
    "text": (URDF, "bundle-not-a-zip"),
    "only a beginning": (b"PK\3\4", "bundle-truncated"),
    "data before the first entry": (b"#!/bin/sh\n" + GOOD, "bundle-extra-data"),
    "data before it, offsets corrected": (
        build([manifest([ROBOT]), replace(ROBOT, before=b"x")]), "bundle-extra-data"),
    "an entry that the directory does not list": (
        build([manifest([ROBOT]), replace(ROBOT, before=GOOD[: GOOD.find(b"PK\1\2")])]), "bundle-extra-data"),
    "data before the central directory": (bundle(ROBOT, offset=GOOD.find(b"PK\1\2") - 1), "bundle-extra-data"),
    "data behind the central directory": (bundle(ROBOT, before_end=b"x"), "bundle-extra-data"),
    "data behind the end": (GOOD + b"x", "bundle-extra-data"),
    "zip behind a zip": (GOOD + GOOD, "bundle-extra-data"),
    "end record in the comment": (bundle(ROBOT, comment=b"a" + build([]) + b"b"), "bundle-extra-data"),
    "comment cut short": (bundle(ROBOT, comment=b"abc")[:-1], "bundle-truncated"),
    "fewer entries than said": (bundle(ROBOT, here=3, count=3), "bundle-central-directory"),
    "more entries than said": (bundle(ROBOT, here=1, count=1), "bundle-central-directory"),
    "two parts": (bundle(ROBOT, disk=1), "bundle-multi-disk"),
    "count differs by part": (bundle(ROBOT, here=1), "bundle-multi-disk"),
    "entry on another part": (with_robot(disk=1), "bundle-multi-disk"),
    "zip64 end": (bundle(ROBOT, before_end=b"PK\6\7" + bytes(16)), "bundle-zip64"),
    "zip64 offset": (bundle(ROBOT, offset=0xFFFFFFFF), "bundle-zip64"),
    "encrypted": (with_robot(flags=1), "bundle-encrypted"),
    "strongly encrypted": (with_robot(flags=1 << 6 | 1), "bundle-encrypted"),
    "masked headers": (with_robot(flags=1 << 13), "bundle-encrypted"),
    "patch data": (with_robot(flags=1 << 5), "bundle-flags"),
    "unknown flag": (with_robot(flags=1 << 15), "bundle-flags"),
    "deflate64": (with_robot(method=9), "bundle-compression"),
    "bzip2": (with_robot(method=12), "bundle-compression"),
    "LZMA": (with_robot(method=14), "bundle-compression"),
    "AES": (with_robot(method=99), "bundle-compression"),
    "other local name": (with_robot(local={"name": b"other.urdf"}), "bundle-local-header"),
    "other local method": (with_robot(local={"method": 0}), "bundle-local-header"),
    "other local flags": (with_robot(local={"flags": 0x800}), "bundle-local-header"),
    "locally encrypted": (with_robot(local={"flags": 1}), "bundle-local-header"),
    "other local CRC": (with_robot(local={"crc": 1}), "bundle-local-header"),
    "other local size": (with_robot(local={"size": 1}), "bundle-local-header"),
    "other local packed size": (with_robot(local={"packed": 1}), "bundle-local-header"),
    "sizes of zero without a descriptor": (with_robot(local={"size": 0, "packed": 0, "crc": 0}), "bundle-local-header"),
    "descriptor missing": (with_robot(flags=8), "bundle-local-header"),
    "descriptor unannounced": (with_robot(descriptor="<s3I"), "bundle-local-header"),
    "descriptor behind full headers": (
        with_robot(descriptor="<s3I", local={"size": len(URDF), "packed": len(deflate(URDF)), "crc": zlib.crc32(URDF)}),
        "bundle-extra-data"),
    "descriptor with another signature": (
        bundle(replace(ROBOT, flags=8, descriptor="<s3I")).replace(b"PK\7\x08", b"PK\7\x09"), "bundle-local-header"),
    "zip64 field with other sizes": (
        with_robot(local={"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF, "extra": struct.pack("<2H2Q", 1, 16, 1, 1)}),
        "bundle-local-header"),
    "zip64 size of exabytes": (
        with_robot(central={"size": 0xFFFFFFFF, "extra": struct.pack("<2HQ", 1, 8, 1 << 60)}), "bundle-too-big"),
    "zip64 field that is not there": (with_robot(central={"size": 0xFFFFFFFF}), "bundle-too-big"),
    "extra field that runs over": (with_robot(extra=struct.pack("<2H", 1, 99)), "bundle-extra-field"),
    "extra field twice": (with_robot(extra=struct.pack("<4H", 1, 0, 1, 0)), "bundle-extra-field"),
    "other name in the Unicode path field": (
        with_robot(extra=struct.pack("<2H5x", 0x7075, 7) + b"ab"), "bundle-two-names"),
    "overlapping entries": (
        bundle(replace(ROBOT, method=0), Entry(b"note.txt", URDF, offset=120)), "bundle-overlap"),
    "two names for one entry": (
        build([manifest([ROBOT]), ROBOT, replace(ROBOT, name=b"n", offset=0)]), "bundle-overlap"),
    "entry in the central directory": (with_robot(offset=len(GOOD) - 60), "bundle-local-header"),
    "entry behind the end": (with_robot(offset=0xFFFFFF00), "bundle-local-header"),
    "no local header": (with_robot(before=bytes(30), offset=GOOD.find(b"PK\3\4", 4)), "bundle-local-header"),
    "folder with data": (bundle(ROBOT, Entry(b"a/", b"data", attributes=0x10)), "bundle-folder-data"),
    "folder with hidden data": (
        bundle(ROBOT, Entry(b"a/", packed=deflate(b"data"), attributes=0x10)), "bundle-size-lies"),
    "stored size lies": (with_robot(method=0, packed=URDF + b"x"), "bundle-size-lies"),
    "unpacks to more": (with_robot(packed=deflate(URDF + b"x")), "bundle-size-lies"),
    "unpacks to less": (with_robot(packed=deflate(URDF[:-1])), "bundle-size-lies"),
    "data behind the deflated": (with_robot(packed=deflate(URDF) + b"x"), "bundle-size-lies"),
    "much data behind the deflated": (with_robot(packed=deflate(URDF) + bytes(200_000)), "bundle-size-lies"),
    "deflated data cut": (with_robot(packed=deflate(URDF)[:-1]), "bundle-deflate"),
    "deflated data of nothing": (with_robot(packed=b""), "bundle-deflate"),
    "deflated data broken": (with_robot(packed=b"\xff" * 20), "bundle-deflate"),
    "CRC lies": (with_robot(local={"crc": 1}, central={"crc": 1}), "bundle-crc"),
    "CRC of a folder lies": (
        bundle(ROBOT, Entry(b"a/", attributes=0x10, local={"crc": 1}, central={"crc": 1})), "bundle-crc"),
    "no manifest": (build([ROBOT]), "bundle-no-manifest"),
    "nothing at all": (build([]), "bundle-no-manifest"),
    "manifest by another name": (
        build([replace(manifest([ROBOT]), name=b"manifest.txt"), ROBOT]), "bundle-no-manifest"),
    "several manifests": (
        build([manifest([], b"a/"), manifest([], b"b/")]), "bundle-several-manifests"),
    "manifest too deep": (build([manifest([ROBOT], b"a/b/"), ROBOT]), "bundle-no-manifest"),
    "empty manifest": (build([Entry(b"MANIFEST.txt"), ROBOT]), "bundle-manifest-empty"),
    "hash of another file": (
        build([manifest([replace(ROBOT, data=b"x")]), ROBOT]), "bundle-hash-differs"),
    "listed file absent": (build([manifest([ROBOT, Entry(b"gone.xacro")]), ROBOT]), "bundle-listed-absent"),
    "unlisted file present": (build([manifest([ROBOT]), ROBOT, Entry(b"extra.xacro")]), "bundle-unlisted"),
    "unlisted file beside the top folder": (
        build([manifest([ROBOT], b"a/"), replace(ROBOT, name=b"a/robot.urdf"), Entry(b"__MACOSX/._a")]),
        "bundle-unlisted"),
}  # fmt: skip
REFUSED |= {kind: (data, "bundle-special-entry") for kind, data in SPECIAL.items()}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_refuses(data, reason):
    error = refused(data)
    assert error.reason == reason
    assert "b.zip" in str(error)


def test_a_lying_size_is_refused_without_a_manifest_too():
    lying = build([replace(ROBOT, packed=deflate(URDF + b"x"))])
    assert refused(lying, allow_unhashed=True).reason == "bundle-size-lies"


def test_messages_name_the_member():
    for kind in ("encrypted", "LZMA", "symbolic link", "CRC lies", "unpacks to more", "hash of another file"):
        error = refused(REFUSED[kind][0])
        assert error.data["member"] == "robot.urdf"
        assert "`robot.urdf`" in str(error)
    assert "`gone.xacro`" in str(refused(REFUSED["listed file absent"][0]))
    assert "macOS" in str(refused(REFUSED["unlisted file beside the top folder"][0]))
    assert "`manifest.txt`" in str(refused(REFUSED["manifest by another name"][0]))


def test_a_differing_hash_names_both():
    error = refused(REFUSED["hash of another file"][0])
    assert (error.data["expected"], error.data["got"]) == (sha(b"x"), sha(URDF))
    assert sha(b"x") in str(error)
    assert sha(URDF) in str(error)


def test_unlisted_files_are_all_named_up_to_ten():
    few = build([manifest([ROBOT]), ROBOT, *[Entry(f"x{i}".encode()) for i in range(10)]])
    many = build([manifest([ROBOT]), ROBOT, *[Entry(f"x{i:02}".encode()) for i in range(12)]])
    assert all(f"`x{i}`" in str(refused(few)) for i in range(10))
    assert str(refused(many)).count("`x") == 10
    assert "and 2 more" in str(refused(many))


def test_a_listed_file_by_nearly_its_name_is_suggested():
    error = refused(build([manifest([Entry(b"robot.udrf", URDF)]), ROBOT]))
    assert (error.reason, error.data["did_you_mean"]) == ("bundle-listed-absent", "robot.urdf")


def test_reading_what_is_not_there_suggests_what_is():
    opened = open_bundle(bundle(ROBOT, Entry(b"urdf/arm.xacro"), Entry(b"urdf/hand.xacro")), "b.zip")
    for wrong, right in {
        "robot.udrf": "robot.urdf",
        "arm.xacro": "urdf/arm.xacro",
        "urdf/hnd.xacro": "urdf/hand.xacro",
    }.items():
        with pytest.raises(BundleRefused, match=f"did you mean `{right}`") as caught:
            opened.read(wrong)
        assert (caught.value.reason, caught.value.data["did_you_mean"]) == ("bundle-member-absent", right)
    for other in ("", "/robot.urdf", "../robot.urdf", "Robot.urdf", "MANIFEST.txt", "x" * 10_000):
        assert other not in opened
        with pytest.raises(BundleRefused):
            opened.read(other)


# --- what it may cost


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(members=2), "bundle-too-many-members"),
        (Limits(total=3000), "bundle-too-big"),
        (Limits(total=100), "bundle-too-big"),
        (Limits(text_member=2000), "bundle-text-too-big"),
        (Limits(manifest=100), "bundle-manifest-too-big"),
        (Limits(ratio=5, ratio_floor=100), "bundle-ratio"),
    ],
)
def test_limits(limits, reason):
    data = bundle(replace(ROBOT, data=URDF * 60), Entry(b"mesh.stl", bytes(range(256)) * 9, method=0))
    assert open_bundle(data, "b.zip", limits=Limits(members=3, total=8000, ratio_floor=5000)).hashed
    assert refused(data, limits=limits).reason == reason


def test_the_text_limit_spares_meshes():
    data = bundle(ROBOT, Entry(b"mesh.stl", bytes(5000), method=0))
    assert "mesh.stl" in open_bundle(data, "b.zip", limits=Limits(text_member=1000))


def test_many_small_bombs_are_one_bomb():
    data = bundle(ROBOT, *[Entry(f"{i}.bin".encode(), bytes(200_000)) for i in range(10)])
    assert refused(data).reason == "bundle-ratio"


def test_more_members_than_are_allowed_are_not_even_listed():
    assert refused(bundle(ROBOT, here=65535, count=65535)).reason == "bundle-too-many-members"


def peak(data: bytes) -> int:
    tracemalloc.start()
    try:
        refused(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bombs_are_refused_before_they_are_unpacked():
    spaces = URDF[:-1] + b" " * (30 << 20) + b"\n"
    honest = bundle(replace(ROBOT, data=spaces))
    assert refused(honest).reason == "bundle-ratio"
    assert peak(honest) < 1 << 20
    lying = build([manifest([ROBOT]), replace(ROBOT, packed=deflate(spaces))])  # declares the size of URDF
    assert refused(lying).reason == "bundle-size-lies"
    assert peak(lying) < 4 << 20


def quoting_overlap(count: int) -> bytes:
    """Entries whose data each begin with the headers of all that follow, quoted in stored blocks of deflate.

    Source: D. Fifield, A better zip bomb, USENIX WOOT 2019, section 3.
    """
    packed, size, crc = deflate(bytes(100_000)), 100_000, zlib.crc32(bytes(100_000))
    plain, out, records = bytes(100_000), b"", []
    for i in reversed(range(count)):
        name = f"p{i:02}".encode()
        header = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(packed), size, 3, 0) + name
        records.append((crc, len(packed), size, name))
        out = header + packed
        packed = struct.pack("<BHH", 0, len(header), len(header) ^ 0xFFFF) + out
        plain = header + plain
        size, crc = len(plain), zlib.crc32(plain)
    listed = [Entry(name, plain[(i + 1) * 33 :]) for i, (*_, name) in enumerate(reversed(records))]
    front = build([manifest(listed)])
    front = front[: front.find(b"PK\1\2")]
    first = build([manifest(listed)])[len(front) : -22]
    directory = first + b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 0x314, 20, 0, 8, 0, 33, *numbers, 3, 0, 0, 0, 0, UNIX_FILE,
                    len(front) + i * 38) + name
        for i, (*numbers, name) in enumerate(reversed(records))
    )  # fmt: skip
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count + 1, count + 1, len(directory), len(front + out), 0)
    return front + out + directory + end


def test_a_quoting_overlap_is_refused_before_it_is_unpacked():
    data = quoting_overlap(30)
    assert refused(data).reason == "bundle-overlap"
    assert peak(data) < 1 << 20
    assert open_bundle(quoting_overlap(1), "b.zip").read("p00") == bytes(100_000)  # it is well made but for that


# --- laws


def contents(data: bytes) -> dict[str, bytes]:
    opened = open_bundle(data, "b.zip")
    return {n: opened.read(n) for n in opened.names()}


STREAMED = bundle(replace(ROBOT, flags=8, descriptor="<s3I"), Entry(b"dir/", method=0, attributes=0x10))


@pytest.mark.parametrize(
    "data", [GOOD, STREAMED, write_bundle({"robot.urdf": URDF})], ids=["deflated", "streamed", "own"]
)
def test_any_flipped_bit_is_refused_or_without_effect(data):
    before, digest = contents(data), open_bundle(data, "b.zip").digest
    refusals = 0
    for at in range(len(data)):
        for bit in (1, 2, 4, 8, 16, 32, 64, 128):
            flipped = bytearray(data)
            flipped[at] ^= bit
            try:
                opened = open_bundle(bytes(flipped), "b.zip")
            except BundleRefused:
                refusals += 1
            else:
                assert {n: opened.read(n) for n in opened.names()} == before
                assert opened.digest == digest
    assert refusals > 4 * len(data)


@pytest.mark.parametrize("data", [GOOD, STREAMED], ids=["deflated", "streamed"])
def test_any_truncation_is_refused(data):
    for length in range(len(data)):
        refused(data[:length])


@given(st.data())
@settings(max_examples=300)
def test_damage_of_any_kind_is_refused_or_without_effect(draw):
    data = bytearray(STREAMED)
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(data)))
        data[at : at + draw.draw(st.integers(0, 8))] = draw.draw(st.binary(max_size=8))
    with contextlib.suppress(BundleRefused):
        assert contents(bytes(data)) == contents(STREAMED)


@given(st.binary(max_size=200))
def test_noise_is_refused(noise):
    refused(noise)
    refused(b"PK\3\4" + noise)
