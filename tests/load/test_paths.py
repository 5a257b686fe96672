"""What members may be called: names that two readers would take for different files, or for one, are refused."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load.paths import path_fault, refuse_clashes, show

NAMES = {
    "absolute": ("/abs.txt", "bundle-path-absolute"),
    "parent": ("../../escape.txt", "bundle-path-parent"),
    "parent inside": ("a/../../b.txt", "bundle-path-parent"),
    "parent that stays inside": ("a/../b.txt", "bundle-path-parent"),
    "parent at the end": ("a/..", "bundle-path-parent"),
    "full-width parent": ("．．/b.txt", "bundle-path-parent"),
    "full-width slash": ("a/..／b", "bundle-path-parent"),
    "ellipsis": ("a…/b", "bundle-path-trailing-dot"),
    "dot": ("./a.txt", "bundle-path-component"),
    "dot inside": ("a/./b.txt", "bundle-path-component"),
    "empty component": ("a//b.txt", "bundle-path-component"),
    "only a slash": ("/", "bundle-path-absolute"),
    "no name": ("", "bundle-path-empty"),
    "backslash": ("..\\..\\win.txt", "bundle-path-backslash"),
    "drive": ("C:/d.txt", "bundle-path-drive"),
    "drive without slash": ("c:d.txt", "bundle-path-drive"),
    "stream": ("robot.urdf:hidden", "bundle-path-drive"),
    "NUL": ("note.txt\0.urdf", "bundle-path-control"),
    "newline": ("a\nb", "bundle-path-control"),
    "escape": ("a\x1b[2Jb", "bundle-path-control"),
    "delete": ("a\x7fb", "bundle-path-control"),
    "right-to-left override": ("a\u202etxt.exe", "bundle-path-control"),
    "zero width": ("a\u200bb", "bundle-path-control"),
    "line separator": ("a\u2028b", "bundle-path-control"),
    "trailing dot": ("robot.urdf.", "bundle-path-trailing-dot"),
    "trailing space": ("robot.urdf ", "bundle-path-trailing-dot"),
    "folder with trailing dots": ("a.../robot.urdf", "bundle-path-trailing-dot"),
    "long component": ("x" * 256, "bundle-path-too-long"),
    "long path": ("/".join(["x" * 200] * 3), "bundle-path-too-long"),
    "deep path": ("d/" * 40 + "x", "bundle-path-too-deep"),
    "very deep path": ("d/" * 2000 + "x", "bundle-path-too-long"),
    "folder": ("a/", "bundle-path-component"),
    "not UTF-8": ("caf\udce9.txt", "bundle-path-encoding"),
}


@pytest.mark.parametrize(("path", "reason"), NAMES.values(), ids=NAMES)
def test_faults(path, reason):
    fault = path_fault(path)
    assert fault is not None
    assert fault.reason == reason


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "urdf/ur5e.urdf.xacro",
        "a b/c (1)+#~*.stl",
        ".hidden/..a",
        "a..b/c",
        "-",
        "é/漢字.urdf",
        "x" * 255,
        "d/" * 31 + "d",
    ],
)
def test_ordinary_paths_have_none(path):
    assert path_fault(path) is None


@given(st.text(st.characters(), max_size=20) | st.text("./\\: aé．\0", max_size=8))
def test_a_path_without_fault_stays_in_its_folder(path):
    if path_fault(path) is None:
        assert os.path.normpath(path) == path
        assert not os.path.isabs(path)
        assert os.pardir not in path.split("/")
        assert "\n" not in path
        assert path.encode().decode() == path


TWICE = {
    "same name": ["a", "a"],
    "by case": ["robot.urdf", "Robot.URDF"],
    "by case of a folder": ["a/x", "A/x"],
    "by composed accents": ["é.txt", "e\u0301.txt"],
    "by compatibility form": ["ﬁle.txt", "file.txt"],
    "by full width": ["ｆile.txt", "File.txt"],
    "by sharp s": ["ß.txt", "ss.txt"],
}


@pytest.mark.parametrize("names", TWICE.values(), ids=TWICE)
def test_one_name_twice(names):
    one, other = names
    for files, folders in ([names, []], [[one], [other]], [[], names]):
        with pytest.raises(BundleRefused) as caught:
            refuse_clashes(files, folders, "b.zip")
        assert caught.value.reason == "bundle-duplicate-name"
        assert f"`{other}`" in str(caught.value)


@pytest.mark.parametrize("names", [("a", "a/b"), ("A", "a/b/c"), ("a", "a!", "a/b"), ("a/b", "a/b/c", "a/bc", "a/b-")])
def test_a_file_that_is_also_a_folder(names):
    for files in (names, names[::-1]):
        with pytest.raises(BundleRefused) as caught:
            refuse_clashes(files, [], "b.zip")
        assert caught.value.reason == "bundle-file-is-folder"


def test_what_does_not_clash():
    refuse_clashes(["a/b", "a/c", "ab", "a!", "b/a"], ["a", "b", "c/d"], "b.zip")


@given(st.text())
def test_names_are_shown_on_one_line_and_short(name):
    assert show(name).isprintable()
    assert len(show(name)) <= 10 * 120 + 3
    if name.isprintable() and len(name) <= 120:
        assert show(name) == name
