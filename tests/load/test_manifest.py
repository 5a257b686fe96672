"""MANIFEST.txt: what sha256sum writes is read, and nothing that could be read in two ways."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load.manifest import format_manifest, parse_manifest

A, B = hashlib.sha256(b"a").hexdigest(), hashlib.sha256(b"b").hexdigest()


def parse(data: bytes, max_lines: int = 100) -> dict[str, str]:
    return parse_manifest(data, "b.zip", max_lines)


@pytest.mark.parametrize(
    "text",
    [
        f"{A}  a.urdf\n{B}  dir/b c.txt\n",
        f"{A}  a.urdf\n{B}  dir/b c.txt",
        f"{A}  a.urdf\r\n{B}  dir/b c.txt\r\n",
        f"{A}  a.urdf\r\n{B}  dir/b c.txt",
        f"{A} *a.urdf\n{B} *dir/b c.txt\n",
        f"{A.upper()}  a.urdf\n{B}  dir/b c.txt\n",
        f"{A}  ./a.urdf\n{B} *./dir/b c.txt\n",
    ],
)
def test_reads_the_forms_that_sha256sum_has(text):
    assert parse(text.encode()) == {"a.urdf": A, "dir/b c.txt": B}


@pytest.mark.parametrize(
    ("text", "path"),
    [(f"{A}   a", " a"), (f"{A}  *a", "*a"), (f"{A} **a", "*a"), (f"{A} * a", " a"), (f"{A}  é.urdf", "é.urdf")],
)
def test_reads_odd_names_as_sha256sum_does(text, path):
    assert parse(text.encode()) == {path: A}


BAD_LINES = {
    "short hash": f"{A[:40]}  b",
    "MD5": f"{A[:32]}  b",
    "SHA-512": f"{A}{B}  b",
    "hash of 63 digits": f"{A[:63]}  b",
    "hash of 65 digits": f"{A}0  b",
    "not hex": f"{A[:63]}g  b",
    "digits of another script": f"{A[:63]}\u0663  b",
    "one space": f"{A} b",
    "tab": f"{A}\tb",
    "space before": f" {A}  b",
    "no path": f"{A}  ",
    "only a hash": A,
    "blank line": "",
    "comment": "# b",
    "BSD form": f"SHA256 (b) = {B}",
    "escaped name": f"\\{B}  b\\nc",
    "byte order mark": f"\ufeff{B}  b",
    "UTF-16": f"{B}  b".encode("utf-16").decode("latin-1"),
    "NUL in the hash": f"{A[:-1]}\0  b",
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_refuses_other_lines_with_their_number(line):
    with pytest.raises(BundleRefused, match=r"^b\.zip: MANIFEST\.txt:2: ") as caught:
        parse(f"{A}  a\n{line}\n{B}  c\n".encode())
    assert (caught.value.reason, caught.value.data["line"]) == ("bundle-manifest-line", 2)
    assert (caught.value.data["file"], caught.value.data["member"]) == ("MANIFEST.txt", "MANIFEST.txt")
    assert str(caught.value).isprintable()


def test_other_algorithms_are_called_by_name():
    for line, word in {"MD5": "MD5", "short hash": "SHA-1", "SHA-512": "SHA-512", "BSD form": "--tag"}.items():
        with pytest.raises(BundleRefused, match=word):
            parse(BAD_LINES[line].encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "bundle-manifest-empty"),
        (b"\n", "bundle-manifest-line"),
        (f"{A}  a\n{A}  a\n".encode(), "bundle-manifest-duplicate"),
        (f"{A}  a\n{B} *./a\n".encode(), "bundle-manifest-duplicate"),
        (f"{A}  MANIFEST.txt\n".encode(), "bundle-manifest-lists-itself"),
        (f"{A}  a\xe9\n".encode("latin-1"), "bundle-manifest-encoding"),
        (f"{A}  ../a\n".encode(), "bundle-path-parent"),
        (f"{A}  ././a\n".encode(), "bundle-path-component"),
        (f"{A}  ./\n".encode(), "bundle-path-empty"),
        (f"{A}  /a\n".encode(), "bundle-path-absolute"),
        (f"{A}  a\\b\n".encode(), "bundle-path-backslash"),
        (f"{A}  a\0b\n".encode(), "bundle-path-control"),
        (f"{A}  a\rb\n".encode(), "bundle-path-control"),
        (f"{A}  a\r\r\n".encode(), "bundle-path-control"),
    ],
)
def test_refuses_by_reason(data, reason):
    with pytest.raises(BundleRefused) as caught:
        parse(data)
    assert caught.value.reason == reason
    assert caught.value.data["line"] >= 1


def test_the_number_of_lines_is_limited():
    text = "".join(f"{A}  {i}\n" for i in range(10)).encode()
    assert len(parse(text, 10)) == 10
    with pytest.raises(BundleRefused) as caught:
        parse(text, 9)
    assert caught.value.reason == "bundle-too-many-members"


PATHS = st.text("abé漢 *+-()", min_size=1, max_size=6).map(lambda s: s + "x")


@given(st.dictionaries(PATHS, st.binary(max_size=4).map(lambda d: hashlib.sha256(d).hexdigest()), min_size=1))
def test_what_is_written_is_read(hashes):
    text = format_manifest(hashes)
    assert parse(text) == hashes
    assert text == format_manifest(dict(reversed(hashes.items())))


@given(st.binary(max_size=300))
def test_noise_is_refused(noise):
    with pytest.raises(BundleRefused):
        parse(noise)


@given(st.data())
def test_any_other_byte_is_refused_or_changes_only_its_own_line(draw):
    text = bytearray(f"{A}  a.urdf\n{B}  b.txt\n".encode())
    at = draw.draw(st.integers(0, len(text) - 1).filter(lambda i: text[i] != 0x0A))  # without it two lines become one
    text[at] = draw.draw(st.integers(0, 255))
    try:
        hashes = parse(bytes(text))
    except BundleRefused:
        return
    assert ("a.urdf", A) in hashes.items() or ("b.txt", B) in hashes.items()


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="needs coreutils")
@pytest.mark.parametrize("options", [["-t"], ["-b"]])
def test_reads_what_sha256sum_writes(tmp_path, options):
    for name in ("a.urdf", "b c.txt", "é"):
        (tmp_path / name).write_bytes(b"a")
    text = subprocess.run(
        ["sha256sum", *options, "./a.urdf", "b c.txt", "é"], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    assert parse(text) == {"a.urdf": A, "b c.txt": A, "é": A}
