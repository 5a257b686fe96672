"""Reading URDF records: defaults, strict numbers, and one small file for every finding of the reader."""

from __future__ import annotations

import inspect
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fkd.errors import Finding
from fkd.load import urdf
from fkd.load.urdf import Description, JointRecord, read_urdf
from fkd.load.xml import parse_xml
from fkd.model import TYPES, Limits, Mimic

ENDS = '<parent link="a"/><child link="b"/>'
LINKS = '<link name="a"/><link name="b"/>'


def described(inner: str) -> Description:
    """The records of a robot with these elements; the first of them stands in line 2."""
    return read_urdf(parse_xml(f'<robot name="r">\n{inner}\n</robot>'.encode(), "arm.urdf"))


def joint(parts: str = "", kind: str = "revolute") -> JointRecord:
    """The record of one joint that has nothing wrong with it."""
    description = described(f'{LINKS}<joint name="j" type="{kind}">{ENDS}{parts}</joint>')
    assert not [f for f in description.findings if f.severity == "error"]
    (record,) = description.joints
    return record


def errors(inner: str) -> list[Finding]:
    return [f for f in described(inner).findings if f.severity == "error"]


# -- what is read ------------------------------------------------------------------------------------------------------


def test_defaults_are_those_of_the_specification() -> None:
    record = joint()
    assert (record.xyz, record.rpy) == ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert record.axis is None  # build.py makes it (1, 0, 0)
    assert record.limits is None
    assert record.mimic is None
    assert joint('<mimic joint="k"/>').mimic == Mimic("k", 1.0, 0.0)
    assert joint('<limit effort="1" velocity="2"/>').limits == Limits(0.0, 0.0, 2.0, 1.0)


@pytest.mark.parametrize(
    ("origin", "xyz", "rpy"),
    [
        ("<origin/>", (0, 0, 0), (0, 0, 0)),
        ('<origin xyz="1 2 3"/>', (1, 2, 3), (0, 0, 0)),
        ('<origin rpy="1 2 3"/>', (0, 0, 0), (1, 2, 3)),
        ('<origin rpy="4 5 6" xyz="1 2 3"/>', (1, 2, 3), (4, 5, 6)),
        ('<origin xyz="0 0 0" rpy="-0.0 0 0"/>', (0, 0, 0), (0, 0, 0)),
    ],
)
def test_half_an_origin_is_an_origin(origin: str, xyz: tuple[float, ...], rpy: tuple[float, ...]) -> None:
    record = joint(origin)
    assert (record.xyz, record.rpy) == (xyz, rpy)


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_read(kind: str) -> None:
    record = joint(kind=kind)
    assert (record.name, record.type, record.parent, record.child) == ("j", kind, "a", "b")


def test_records_keep_document_order_file_and_line() -> None:
    description = described(
        f'<joint name="j2" type="fixed">\n  {ENDS}\n<axis xyz="1 0 0"/></joint>\n'
        f'<link name="b"/>\n<joint name="j1" type="fixed">{ENDS}</joint><link name="a"/>'
    )
    assert [(j.name, j.file, j.line) for j in description.joints] == [("j2", "arm.urdf", 2), ("j1", "arm.urdf", 6)]
    assert [(name, e.line) for name, e in description.links] == [("b", 5), ("a", 6)]
    assert description.joints[0].lines == {"parent": 3, "child": 3, "axis": 4}
    assert (description.name, description.file, description.line) == ("r", "arm.urdf", 1)


@pytest.mark.parametrize(
    "skipped",
    [
        '<transmission name="t"><joint name="j"/></transmission>',
        '<gazebo reference="a"><joint name="k" type="nonsense"/></gazebo>',
        '<ros2_control name="c"><joint name="j"><param name="x">1</param></joint></ros2_control>',
        '<sensor name="s"><origin xyz="1,2"/></sensor>',
        '<undeclared:thing joint="?"/>',
        '<material name="m"><color rgba="a b"/></material>',
        '<link name="c"><joint/><inertial><origin xyz="nan"/></inertial><visual><origin xyz="x"/></visual></link>',
        f'<joint name="k" type="fixed">{ENDS}<dynamics damping="x"/><safety_controller soft_lower_limit="?"/></joint>',
        f'<joint name="k" type="fixed">{ENDS}<limit effort="1" velocity="x" max_current="2"/></joint>',
        f'<joint name="k" type="fixed">{ENDS}<p:note xyz="?"/><axis p:note="?" xyz="?"/></joint>',
        f'<joint name="k" type="floating">{ENDS}<axis xyz="0 0 0"/></joint>',
        "<!-- <joint/> -->text",
    ],
)
def test_what_does_not_matter_is_skipped_unread(skipped: str) -> None:
    assert described(skipped).findings == []


def test_a_name_is_taken_as_it_stands() -> None:
    description = described('<link name="a b"/><link name="Bras&#233;"/><link name="-1"/><link name="a/b"/>')
    assert [name for name, _ in description.links] == ["a b", "Brasé", "-1", "a/b"]
    assert description.findings == []


def test_velocity_and_effort_are_kept_where_they_read() -> None:
    assert joint('<limit lower="-1" upper="1" effort=" 5 " velocity="1,5"/>').limits == Limits(-1.0, 1.0, None, 5.0)
    assert joint('<limit lower="-1" upper="1" effort="1e999"/>').limits == Limits(-1.0, 1.0, None, None)
    assert joint('<limit lower="0" upper="0" velocity="2"/>', "continuous").limits == Limits(None, None, 2.0, None)


# -- numbers -----------------------------------------------------------------------------------------------------------

SPACE = st.text("\t\n\r ", max_size=3)
GAP = st.text("\t\n\r ", min_size=1, max_size=3)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def written(space: str) -> str:
    """White space as a file has it: references, so that the reader sees the very characters."""
    return "".join(f"&#{ord(c)};" for c in space)


@given(st.tuples(FINITE, FINITE, FINITE), SPACE, GAP, GAP, SPACE, st.booleans())
def test_every_float_reads_back_exactly_between_any_white_space(
    xyz: tuple[float, float, float], before: str, gap: str, other: str, after: str, raw: bool
) -> None:
    spaces = [s if raw else written(s) for s in (before, gap, other, after)]
    text = spaces[0] + repr(xyz[0]) + spaces[1] + repr(xyz[1]) + spaces[2] + repr(xyz[2]) + spaces[3]
    record = joint(f'<origin xyz="{text}"/>')
    assert list(map(repr, record.xyz)) == list(map(repr, xyz))  # the sign of zero too


@given(FINITE, st.sampled_from(["{:.20e}", "{:+.17g}", "{:E}", "{:f}", "{:.0f}."]))
def test_every_decimal_notation_reads(value: float, form: str) -> None:
    text = form.format(value)
    assert joint(f'<mimic joint="k" offset="{text}"/>').mimic == Mimic("k", 1.0, float(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.", 1.0), (".5", 0.5), ("+1", 1.0), ("-.5e-1", -0.05), ("1E+2", 100.0), ("007", 7.0), ("1e-400", 0.0),
     ("0." + "0" * 400 + "1e401", 1.0), ("1" + "0" * 500 + "e-500", 1.0)],
)  # fmt: skip
def test_unusual_decimals_read(text: str, value: float) -> None:
    mimic = joint(f'<mimic joint="k" offset="{text}"/>').mimic
    assert mimic is not None
    assert mimic.offset == value


def is_decimal(word: str) -> bool:
    """The C locale's decimals, said another way: what float() takes, of these characters alone."""
    try:
        return set(word) <= set("0123456789+-.eE") and math.isfinite(float(word))
    except ValueError:
        return False


@given(st.text("01.+-eE,_xXaAnfityINF'pdL", min_size=1, max_size=6))
@example("1_0")
@example("0,5")
@example("0x10")
@example("1e")
@example("e1")
@example(".")
@example("--1")
@example("1e1e1")
@example("1.2.3")
@example("nan")
@example("Infinity")
@example("1e999")
@example("1f")
@example("1d3")
def test_a_number_is_a_c_locale_decimal_and_nothing_else(word: str) -> None:
    found = errors(f'<joint name="j" type="revolute">{ENDS}<axis xyz="1 {word} 0"/></joint>'.replace("'", "&apos;"))
    assert [(f.code, f.line) for f in found] == ([] if is_decimal(word) else [("urdf-number", 2)])


@given(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="0123456789.eE \ufffe\uffff"))
@example("\u00a0")
@example("\u2212")
@example("\u0661")
@example("\uff11")
@example("\u2003")
@example("+")
def test_no_other_character_parts_or_makes_a_number(character: str) -> None:
    escaped = f"&#{ord(character)};"
    for text in (f"1{escaped}2 0 0", f"{escaped} 1 2 3", f"1 2 {escaped}"):
        found = errors(f'<joint name="j" type="revolute">{ENDS}<origin xyz="{text}"/></joint>')
        assert [f.code for f in found] == ["urdf-number"]


@given(st.lists(FINITE, max_size=6).filter(lambda v: len(v) != 3))
def test_a_vector_has_three_numbers(values: list[float]) -> None:
    text = " ".join(map(repr, values))
    (found,) = errors(f'<joint name="j" type="revolute">{ENDS}<origin rpy="{text}"/></joint>')
    assert (found.code, found.line) == ("urdf-number-count", 2)
    assert "`j`" in found.message
    assert "rpy" in found.message


@pytest.mark.parametrize(
    "part",
    ['<mimic joint="k" offset="1 2"/>', '<mimic joint="k" multiplier=""/>', '<limit lower="1 2" upper="3"/>',
     '<limit lower="-1" upper=""/>', '<axis xyz="1"/>', '<axis xyz=""/>', '<origin xyz=""/>'],
)  # fmt: skip
def test_a_wrong_count_is_refused_wherever_it_stands(part: str) -> None:
    (found,) = errors(f'<joint name="j" type="revolute">{ENDS}{part}</joint>')
    assert found.code == "urdf-number-count"


def test_a_wall_of_digits_is_refused_as_soon_as_it_is_read() -> None:
    for text in ("1" * 200_000 + "x 0 0", "1." + "1" * 200_000 + "x 0 0", "1 " * 100_000):
        (found,) = errors(f'<joint name="j" type="revolute">{ENDS}<origin xyz="{text}"/></joint>')
        assert found.code in ("urdf-number", "urdf-number-count")
        assert len(found.message) < 250


# -- findings ----------------------------------------------------------------------------------------------------------

# code, severity, line, what the message names, the elements from line 2 on
CASES = [
    ("urdf-name-missing", "error", 3, "link", '<link name="a"/>\n<link/>'),
    ("urdf-name-missing", "error", 2, "joint", f'<joint type="fixed">{ENDS}</joint>'),
    ("urdf-name-missing", "error", 2, "link", '<link name=" &#9;"/>'),
    ("urdf-name-blank", "warning", 3, "' a'", '\n<link name=" a"/>'),
    ("urdf-joint-type", "error", 2, "helical", f'<joint name="j" type="helical">{ENDS}</joint>'),
    ("urdf-joint-type", "error", 2, "no type", f'<joint name="j">{ENDS}</joint>'),
    ("urdf-joint-type", "error", 2, "Revolute", f'<joint name="j" type="Revolute">{ENDS}</joint>'),
    ("urdf-joint-parent", "error", 2, "`j`", '<joint name="j" type="fixed"><child link="b"/></joint>'),
    ("urdf-joint-parent", "error", 3, "`j`", '<joint name="j" type="fixed">\n<parent/><child link="b"/></joint>'),
    ("urdf-joint-child", "error", 2, "`j`", '<joint name="j" type="fixed"><parent link="a"/></joint>'),
    ("urdf-joint-child", "error", 3, "`j`", '<joint name="j" type="fixed"><parent link="a"/>\n<child link=""/></joint>'),
    ("urdf-element-twice", "error", 3, "line 2", f'<joint name="j" type="fixed">{ENDS}<axis xyz="1 0 0"/>\n<axis xyz="0 1 0"/></joint>'),
    ("urdf-element-twice", "error", 3, "parent", f'<joint name="j" type="fixed">{ENDS}\n<parent link="c"/></joint>'),
    ("urdf-element-unknown", "error", 3, "<jiont>", '<link name="a"/>\n<jiont name="j" type="fixed"/>'),
    ("urdf-element-unknown", "error", 3, "<orgin>", f'<joint name="j" type="fixed">{ENDS}\n<orgin xyz="1 0 0"/></joint>'),
    ("urdf-element-unknown", "error", 3, "<Axis>", f'<joint name="j" type="revolute">{ENDS}\n<Axis xyz="0 0 1"/></joint>'),
    ("urdf-element-skipped", "info", 2, "<camera_rig>", "<camera_rig/>"),
    ("urdf-element-unknown", "error", 3, "<colour>", f'<joint name="j" type="fixed">{ENDS}\n<colour/></joint>'),
    ("urdf-element-unknown", "error", 3, "<u:origin>", f'<joint name="j" type="fixed">{ENDS}\n<u:origin xyz="1 0 0"/></joint>'),
    ("urdf-xacro-left", "error", 3, "<xacro:if>", f'<joint name="j" type="fixed">{ENDS}\n<xacro:if value="1"/></joint>'),
    ("urdf-xacro-left", "error", 2, "<xacro:include>", '<xacro:include filename="arm.xacro"/>'),
    ("urdf-xacro-left", "warning", 2, "<xacro:gripper>", '<xacro:gripper name="g"/>'),
    ("urdf-attribute-unknown", "error", 3, "`min`", f'<joint name="j" type="revolute">{ENDS}\n<limit min="-1" lower="-1" upper="1"/></joint>'),
    ("urdf-attribute-unknown", "error", 3, "`xzy`", f'<joint name="j" type="fixed">{ENDS}\n<origin xzy="1 0 0"/></joint>'),
    ("urdf-attribute-unknown", "error", 2, "`quat_xyzw`", f'<joint name="j" type="fixed">{ENDS}<origin quat_xyzw="0 0 0 1"/></joint>'),
    ("urdf-attribute-unknown", "error", 2, "`uper`", f'<joint name="j" type="revolute">{ENDS}<limit lower="0" upper="1" uper="2"/></joint>'),
    ("urdf-attribute-unknown", "error", 2, "`multiplyer`", f'<joint name="j" type="revolute">{ENDS}<mimic joint="k" multiplyer="2"/></joint>'),
    ("urdf-number", "error", 3, "0,5", f'<joint name="j" type="fixed">{ENDS}\n<origin xyz="0,5 0 0"/></joint>'),
    ("urdf-number", "error", 2, "1e400", f'<joint name="j" type="fixed">{ENDS}<origin xyz="1e400 0 0"/></joint>'),
    ("urdf-number", "error", 2, "${x}", f'<joint name="j" type="fixed">{ENDS}<origin xyz="${{x}} 0 0"/></joint>'),
    ("urdf-number-count", "error", 3, "got 2", f'<joint name="j" type="fixed">{ENDS}\n<origin xyz="0.5 0"/></joint>'),
    ("urdf-axis-empty", "error", 3, "`j`", f'<joint name="j" type="revolute">{ENDS}\n<axis/></joint>'),
    ("urdf-axis-zero", "error", 3, "`j`", f'<joint name="j" type="planar">{ENDS}\n<axis xyz="0 -0 0.0"/></joint>'),
    ("urdf-limit-ignored", "warning", 3, "continuous", f'<joint name="j" type="continuous">{ENDS}\n<limit lower="0" upper="0"/></joint>'),
    ("urdf-limit-partial", "warning", 3, "`upper`", f'<joint name="j" type="revolute">{ENDS}\n<limit upper="1"/></joint>'),
    ("urdf-mimic-source", "error", 3, "`j`", f'<joint name="j" type="revolute">{ENDS}\n<mimic multiplier="2"/></joint>'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "severity", "line", "named", "inner"), CASES, ids=[f"{c[0]}-{k}" for k, c in enumerate(CASES)]
)
def test_each_fault_is_one_finding_with_its_place(code: str, severity: str, line: int, named: str, inner: str) -> None:
    (found,) = described(inner).findings
    assert (found.code, found.severity, found.file, found.line) == (code, severity, "arm.urdf", line)
    assert named in found.message
    assert str(found).startswith(f"arm.urdf:{line}: {severity}: ")


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [("\n<sdf/>", "urdf-root", "error"), ("\n<robot/>", "urdf-robot-unnamed", "warning"),
     ('\n<robot name=""/>', "urdf-robot-unnamed", "warning"), ("\n<Robot name='r'/>", "urdf-root", "error")],
)  # fmt: skip
def test_the_root_is_a_named_robot(text: str, code: str, severity: str) -> None:
    (found,) = read_urdf(parse_xml(text.encode(), "arm.urdf")).findings
    assert (found.code, found.severity, found.line) == (code, severity, 2)


def test_every_finding_of_the_reader_is_covered_here() -> None:
    codes = set(re.findall(r'"(urdf-[a-z]+(?:-[a-z]+)*)"', inspect.getsource(urdf)))
    assert codes - {"urdf-root", "urdf-robot-unnamed"} <= {case[0] for case in CASES}
    assert len(codes) > 15


@pytest.mark.parametrize(
    ("inner", "hint"),
    [
        (f'<joint name="j" type="revolut">{ENDS}</joint>', "`revolute`"),
        (f'<joint name="j" type="prismatic">{ENDS}<orgin xyz="1 0 0"/></joint>', "<origin>"),
        (f'<joint name="j" type="prismatic">{ENDS}<origin ryp="1 0 0"/></joint>', "`rpy`"),
        ("<lnik name='c'/>", "<link>"),
        (f'<joint name="j" type="prismatic">{ENDS}<origin xyz="0,1 0 0"/></joint>', "point"),
        (f'<joint name="j" type="prismatic">{ENDS}<origin xyz="${{a}} 0 0"/></joint>', "xacro"),
    ],
)
def test_a_hint_says_what_was_most_likely_meant(inner: str, hint: str) -> None:
    (found,) = errors(inner)
    assert hint in found.hint


def test_reading_goes_on_after_every_fault() -> None:
    description = described(
        f'<joint name="j" type="bent">{ENDS}<origin xyz="1" rpy="x y z"/><axis/></joint>\n'
        f'<joint name="k" type="fixed"><origin xyz="1 2"/></joint>\n'
        f'<joint name="l" type="revolute">{ENDS}<axis xyz="0 0 0"/><limit lower="a" upper="b"/><mimic/></joint>'
    )
    assert [(f.code, f.line) for f in description.findings] == [
        ("urdf-joint-type", 2), ("urdf-number-count", 2), ("urdf-number", 2), ("urdf-axis-empty", 2),
        ("urdf-joint-parent", 3), ("urdf-joint-child", 3), ("urdf-number-count", 3),
        ("urdf-axis-zero", 4), ("urdf-number", 4), ("urdf-number", 4), ("urdf-mimic-source", 4),
    ]  # fmt: skip
    assert [j.name for j in description.joints] == ["l"]
    assert description.unread == {"j", "k"}


def test_a_finding_in_a_macro_says_who_called_it() -> None:
    root = parse_xml(
        f'<robot name="r"><joint name="j" type="revolute">{ENDS}<axis/></joint></robot>'.encode(), "arm.urdf"
    )
    root.elements()[0].elements()[-1].called_from = (("arm.xacro", 7), ("cell.xacro", 3))
    (found,) = read_urdf(root).findings
    assert found.message.endswith(", called from arm.xacro:7, called from cell.xacro:3")
