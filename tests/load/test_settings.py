"""bundle.toml: everything that may stand in it is read, anything else is refused with its line."""

from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load.settings import Calibration, Settings, format_settings, parse_settings

WHOLE = """\
# the arm in cell 3
model = "urdf/ur5e.urdf.xacro"
tip = "tool0"
base = "base_link"
length_unit = "mm"
joints = ["a", "b",
          "c"]

[calibration.a]
xyz = [0, -1e-3, 0.25]
rpy = [0.0, 1.5, -3]

[calibration."b.c d"]
xyz = [1.0, 2.0, 3.0]
rpy = [0.0, 0.0, 0.0]

[xacro.args]
name = "ur"
safety_limits = true
"""


def parse(text: str) -> Settings:
    return parse_settings(text.encode(), "bundle.toml")


def refused(text: str | bytes) -> BundleRefused:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(BundleRefused) as caught:
        parse_settings(data, "bundle.toml")
    assert caught.value.reason.startswith("settings-")
    assert caught.value.data["file"] == "bundle.toml"
    assert str(caught.value).startswith("bundle.toml")
    return caught.value


def test_reads_the_whole():
    assert parse(WHOLE) == Settings(
        model="urdf/ur5e.urdf.xacro",
        tip="tool0",
        base="base_link",
        length_unit="mm",
        joints=("a", "b", "c"),
        calibration={
            "a": Calibration((0.0, -0.001, 0.25), (0.0, 1.5, -3.0)),
            "b.c d": Calibration((1.0, 2.0, 3.0), (0.0, 0.0, 0.0)),
        },
        xacro_args={"name": "ur", "safety_limits": "true"},
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff", "[xacro]\n", "[calibration]\n", "[xacro.args]\n"])
def test_all_of_it_is_optional(text):
    assert parse(text) == Settings(None, None, None, "m", None, {}, {})


def test_lines_may_end_as_on_windows():
    assert parse(WHOLE.replace("\n", "\r\n")) == parse(WHOLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"0.10"', "0.10"),
        ('"a b"', "a b"),
        ('""', ""),
        ("true", "true"),
        ("false", "false"),
        ("2", "2"),
        ("-0x10", None),
        ("0x10", "16"),
        ("1_000", "1000"),
        ("0.10", "0.1"),
        ("1e-5", "1e-05"),
        ("-0.0", "-0.0"),
    ],
)
def test_xacro_arguments_become_text(value, text):
    if text is None:
        refused(f"[xacro.args]\nx = {value}")
    else:
        assert parse(f"[xacro.args]\nx = {value}").xacro_args == {"x": text}


REFUSED = {
    "no TOML": ('tip = "a"\nbase = \n', "settings-syntax", 2),
    "no TOML at the end": ('tip = "a"\nbase = [', "settings-syntax", 2),
    "key twice": ('tip = "a"\ntip = "b"', "settings-syntax", 2),
    "table twice": ("[xacro.args]\n[xacro.args]", "settings-syntax", 2),
    "integer of many digits": (f"[xacro.args]\nx = {'9' * 5000}", "settings-syntax", None),
    "nested deep": ("x = " + "[" * 30_000, "settings-syntax", None),
    "inline tables nested deep": ("x = " + "{a=" * 10_000, "settings-syntax", None),
    "dotted without end": ("\n" + "a." * 20_000 + "a = 1", "settings-syntax", 2),
    "not UTF-8": (b'tip = "a"\nbase = "\xe9"', "settings-encoding", 2),
    "huge": ("#" * 100_000, "settings-too-big", None),
    "unknown key": ('base = "b"\nmodle = "a.urdf"', "settings-unknown-key", 2),
    "unknown table": ('tip = "a"\n\n[calibraton.j]\nxyz = [0, 0, 0]', "settings-unknown-key", 3),
    "key of another table": ('[calibration.j]\nxyz=[0,0,0]\nrpy=[0,0,0]\ntip="a"', "settings-unknown-key", 4),
    "unknown key of xacro": ('tip = "a"\n[xacro]\narg = 1', "settings-unknown-key", 3),
    "unknown key of a calibration": ("[calibration.j]\nxyz=[0,0,0]\nquat=[0,0,0,1]", "settings-unknown-key", 3),
    "tip a number": ("tip = 1", "settings-type", 1),
    "tip a date": ("tip = 1979-05-27", "settings-type", 1),
    "tip a table": ('[tip]\nname = "a"', "settings-type", 1),
    "tip empty": ('base = "a"\ntip = ""', "settings-value", 2),
    "tip blank": ('tip = " "', "settings-value", 1),
    "tip with a newline": (r'tip = "a\nb"', "settings-value", 1),
    "base an array": ('base = ["a"]', "settings-type", 1),
    "model outside": ('model = "../a.urdf"', "settings-value", 1),
    "model absolute": ('model = "/a.urdf"', "settings-value", 1),
    "model with backslash": (r"model = 'urdf\a.urdf'", "settings-value", 1),
    "model a boolean": ("model = true", "settings-type", 1),
    "unit unknown": ('length_unit = "inch"', "settings-value", 1),
    "unit by case": ('length_unit = "MM"', "settings-value", 1),
    "unit a number": ("length_unit = 0.001", "settings-type", 1),
    "joints a string": ('joints = "a, b"', "settings-type", 1),
    "joints with a number": ('joints = ["a", 2]', "settings-type", 1),
    "joints nested": ('joints = [["a"]]', "settings-type", 1),
    "joint twice": ('tip = "x"\njoints = ["a", "b", "a"]', "settings-duplicate", 2),
    "joint without name": ('joints = ["a", ""]', "settings-value", 1),
    "calibration a number": ("calibration = 1", "settings-type", 1),
    "calibration of a joint a list": ("[calibration]\nj = [0, 0, 0]", "settings-type", 2),
    "calibration without rpy": ("[calibration.j]\nxyz = [0, 0, 0]", "settings-missing", 1),
    "calibration without xyz": ("\n[calibration.j]\nrpy = [0, 0, 0]", "settings-missing", 2),
    "calibration empty": ("[calibration.j]", "settings-missing", 1),
    "two numbers": ("[calibration.j]\nxyz = [0, 0]\nrpy = [0, 0, 0]", "settings-value", 2),
    "four numbers": ("[calibration.j]\nxyz = [0, 0, 0]\nrpy = [0, 0, 0, 1]", "settings-value", 3),
    "one number": ("[calibration.j]\nxyz = 0\nrpy = [0, 0, 0]", "settings-type", 2),
    "numbers in a string": ('[calibration.j]\nxyz = "0 0 0"\nrpy = [0, 0, 0]', "settings-type", 2),
    "strings for numbers": ('[calibration.j]\nxyz = ["0", "0", "0"]\nrpy = [0, 0, 0]', "settings-type", 2),
    "boolean for a number": ("[calibration.j]\nxyz = [0, 0, true]\nrpy = [0, 0, 0]", "settings-type", 2),
    "nan": ("[calibration.j]\nxyz = [0, 0, nan]\nrpy = [0, 0, 0]", "settings-value", 2),
    "inf": ("[calibration.j]\nxyz = [0, 0, 0]\nrpy = [0, 0, -inf]", "settings-value", 3),
    "overflow": ("[calibration.j]\nxyz = [0, 0, 1e999]\nrpy = [0, 0, 0]", "settings-value", 2),
    "integer over 64 bits": (f"[calibration.j]\nxyz = [0, 0, 1{'0' * 400}]\nrpy = [0, 0, 0]", "settings-value", 2),
    "second of two joints": (
        "[calibration.i]\nxyz=[0,0,0]\nrpy=[0,0,0]\n[calibration.j]\nxyz=[0,0,0]\nrpy=[0,0]", "settings-value", 6),
    "dotted keys": ("calibration.j.xyz = [0, 0]\ncalibration.j.rpy = [0, 0, 0]", "settings-value", 1),
    "inline tables": ("\ncalibration = {j = {xyz = [0, 0], rpy = [0, 0, 0]}}", "settings-value", 2),
    "quoted names": ('[calibration."a.b"]\nxyz = [0, 0]\nrpy = [0, 0, 0]', "settings-value", 2),
    "key in a text": ('base = """\nx "tip = y"""\ntip = 1', "settings-type", 3),
    "argument nan": ("[xacro.args]\na = nan", "settings-value", 2),
    "argument a list": ("[xacro.args]\na = 1\nb = [1]", "settings-type", 3),
    "argument a table": ("[xacro.args.a]\nb = 1", "settings-type", 1),
    "argument a time": ("[xacro.args]\na = 10:00:00", "settings-type", 2),
    "argument a vast integer": (f"[xacro.args]\na = 0x{'f' * 9000}", "settings-value", 2),
    "argument without name": ('[xacro.args]\n"" = 1', "settings-value", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "line"), REFUSED.values(), ids=REFUSED)
def test_refuses_with_the_line(text, reason, line):
    error = refused(text)
    assert error.reason == reason
    if line is not None:
        assert error.data["line"] == line
        assert str(error).startswith(f"bundle.toml:{line}: ")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("lenght_unit = 'm'", "length_unit"),
        ("Tip = 'a'", "tip"),
        ("joint = ['a']", "joints"),
        ("[xacro.arg]", "args"),
        ("[calibration.j]\nXYZ = [0, 0, 0]", "xyz"),
        ("length_unit = 'MM'", "mm"),
    ],
)
def test_suggests_the_nearest(text, near):
    error = refused(text)
    assert error.data["did_you_mean"] == near
    assert "did you mean" in str(error)


def test_says_which_units_there_are():
    assert all(unit in str(refused('length_unit = "inch"')) for unit in ('"m"', '"cm"', '"mm"'))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAME = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(str.strip)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
VECTOR = st.tuples(NUMBER, NUMBER, NUMBER)
PATH = st.lists(st.text("ab_é漢-0 .\"'", max_size=5).map(lambda s: s + "x"), min_size=1, max_size=3).map("/".join)
SETTINGS = st.builds(
    Settings,
    model=st.none() | PATH,
    tip=st.none() | NAME,
    base=st.none() | NAME,
    length_unit=st.sampled_from(["m", "cm", "mm"]),
    joints=st.none() | st.lists(NAME, unique=True, max_size=4).map(tuple),
    calibration=st.dictionaries(NAME, st.builds(Calibration, VECTOR, VECTOR), max_size=3),
    xacro_args=st.dictionaries(NAME, TEXT, max_size=3),
)


@given(SETTINGS)
def test_what_is_written_is_read(settings):
    data = format_settings(settings)
    assert parse_settings(data, "bundle.toml") == settings
    tomllib.loads(data.decode())


@given(SETTINGS)
def test_equal_settings_are_written_alike(settings):
    turned = Settings(
        settings.model, settings.tip, settings.base, settings.length_unit, settings.joints,
        dict(reversed(settings.calibration.items())), dict(reversed(settings.xacro_args.items())),
    )  # fmt: skip
    assert format_settings(turned) == format_settings(settings)


def test_nothing_is_written_as_nothing():
    assert format_settings(Settings()) == b""


def test_written_form():
    assert format_settings(parse(WHOLE)).decode() == (
        'model = "urdf/ur5e.urdf.xacro"\ntip = "tool0"\nbase = "base_link"\nlength_unit = "mm"\n'
        'joints = ["a", "b", "c"]\n'
        '\n[calibration."a"]\nxyz = [0.0, -0.001, 0.25]\nrpy = [0.0, 1.5, -3.0]\n'
        '\n[calibration."b.c d"]\nxyz = [1.0, 2.0, 3.0]\nrpy = [0.0, 0.0, 0.0]\n'
        '\n[xacro.args]\n"name" = "ur"\n"safety_limits" = "true"\n'
    )


@pytest.mark.parametrize(
    "settings",
    [
        Settings(tip=""),
        Settings(tip="\udce9"),
        Settings(model="../x"),
        Settings(joints=("a", "a")),
        Settings(length_unit="inch"),  # type: ignore[arg-type]
        Settings(calibration={"j": Calibration((0.0, 0.0, math.nan), (0.0, 0.0, 0.0))}),
        Settings(calibration={"": Calibration((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))}),
    ],
)
def test_writing_refuses_what_reading_refuses(settings):
    with pytest.raises(BundleRefused):
        format_settings(settings)


FRAGMENTS = st.sampled_from(
    ["[", "]", "{", "}", "=", ".", ",", '"', "'", "\n", "\r", "#", "tip", "xyz", "calibration", "xacro.args", "joints",
     "1", "-", "1e9", "nan", "true", "1979-05-27", '"""', "\\", "\\u00", " ", "é"]
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=20).map("".join) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        settings = parse_settings(text.encode(errors="surrogatepass"), "bundle.toml")
    except BundleRefused:
        return
    assert parse_settings(format_settings(settings), "bundle.toml") == settings
