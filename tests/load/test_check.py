"""Checking a description as a whole: every fault of the tree, the names and the mimic rules, once, where it stands."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.errors import BundleRefused, Finding
from fkd.load import check
from fkd.load.check import check_description, refuse_errors
from fkd.load.urdf import read_urdf
from fkd.load.xml import parse_xml


def checked(inner: str, scale: float = 1.0) -> list[Finding]:
    """All findings about a robot with these elements; the first of them stands in line 2."""
    return check_description(read_urdf(parse_xml(f'<robot name="r">\n{inner}\n</robot>'.encode(), "arm.urdf")), scale)


def links(*names: str) -> str:
    return "".join(f'<link name="{name}"/>' for name in names)


def joint(name: str, parent: str, child: str, parts: str = "", kind: str = "continuous") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{parts}</joint>'


def mimic(source: str, more: str = "") -> str:
    return f'\n<mimic joint="{source}" {more}/>'


def limit(text: str) -> str:
    return f"\n<limit {text}/>"


AB, ABC = links("a", "b"), links("a", "b", "c")
CHAIN = joint("j", "a", "b") + joint("k", "b", "c")

# code, severity, line, what the message names, the elements from line 2 on
CASES = [
    ("urdf-link-twice", "error", 3, "arm.urdf:2", AB + '\n<link name="a"/>' + joint("j", "a", "b")),
    ("urdf-joint-twice", "error", 3, "arm.urdf:2", ABC + joint("j", "a", "b") + "\n" + joint("j", "b", "c")),
    ("urdf-no-links", "error", 1, "no links", ""),
    ("urdf-link-unknown", "error", 3, "parent link `x`", AB + '<joint name="j" type="fixed">\n<parent link="x"/><child link="b"/></joint>'),
    ("urdf-link-unknown", "error", 3, "child link `x`", links("a") + '<joint name="j" type="fixed"><parent link="a"/>\n<child link="x"/></joint>'),
    ("urdf-ring", "error", 3, "`b` its own parent", AB + '<joint name="j" type="fixed"><parent link="b"/>\n<child link="b"/></joint>'),
    ("urdf-ring", "error", 3, "`b` its own parent", AB + joint("j", "a", "b") + "\n" + joint("k", "b", "b")),
    ("urdf-ring", "error", 3, "-> `a`", AB + joint("j", "a", "b") + "\n" + joint("k", "b", "a")),
    ("urdf-ring", "error", 3, "`c` ->", ABC + joint("j", "b", "c") + "\n" + joint("k", "c", "b")),  # an island; `a` is the one root
    ("urdf-two-parents", "error", 3, "`j` (arm.urdf:2)", ABC + joint("j", "a", "b") + "\n" + joint("k", "c", "b")),
    ("urdf-two-parents", "error", 3, "link `b`", AB + joint("j", "a", "b") + "\n" + joint("k", "a", "b")),
    ("urdf-roots", "error", 1, "`a`, `c`", ABC + joint("j", "a", "b")),
    ("urdf-roots", "error", 1, "2 links", AB),
    ("urdf-mimic-fixed", "warning", 3, "`k`", ABC + joint("j", "a", "b") + joint("k", "b", "c", mimic("j"), "fixed")),
    ("urdf-mimic-type", "error", 3, "planar", ABC + joint("j", "a", "b") + joint("k", "b", "c", mimic("j"), "planar")),
    ("urdf-mimic-type", "error", 3, "floating", ABC + joint("j", "a", "b") + joint("k", "b", "c", mimic("j"), "floating")),
    ("urdf-mimic-unknown", "error", 3, "`ghost`", AB + joint("j", "a", "b", mimic("ghost"))),
    ("urdf-mimic-unknown", "error", 3, "`b`", AB + joint("j", "a", "b", mimic("b"))),  # a link is no joint
    ("urdf-mimic-ring", "error", 3, "`j` mimics itself", AB + joint("j", "a", "b", mimic("j"))),
    ("urdf-mimic-ring", "error", 3, "`j` -> `k` -> `j`", ABC + joint("j", "a", "b", mimic("k")) + joint("k", "b", "c", mimic("j"))),
    ("urdf-mimic-source", "error", 3, "`j`, which is fixed", ABC + joint("j", "a", "b", kind="fixed") + joint("k", "b", "c", mimic("j"))),
    ("urdf-mimic-source", "error", 3, "`j`, which is planar", ABC + joint("j", "a", "b", kind="planar") + joint("k", "b", "c", mimic("j"))),
    ("urdf-axis-ignored", "warning", 3, "fixed", AB + joint("j", "a", "b", '\n<axis xyz="0 0 1"/>', "fixed")),
    ("urdf-axis-degenerate", "warning", 3, "1e-200", AB + joint("j", "a", "b", '\n<axis xyz="0 0 1e-200"/>')),
    ("urdf-axis-degenerate", "warning", 3, "inf", AB + joint("j", "a", "b", '\n<axis xyz="1.7e308 1.7e308 0"/>')),
    ("urdf-axis-normalised", "warning", 3, "length 5", AB + joint("j", "a", "b", '\n<axis xyz="0 3 4"/>')),
    ("urdf-rpy-degrees", "warning", 3, "90", AB + joint("j", "a", "b", '\n<origin rpy="0 90 0"/>')),
    ("urdf-units", "warning", 3, "330 m", AB + joint("j", "a", "b", '\n<origin xyz="0 330 0"/>')),
    ("urdf-units", "warning", 1, "0.4 mm", AB + joint("j", "a", "b", '\n<origin xyz="0.0004 0 0"/>')),
    ("urdf-limit-missing", "warning", 3, "`j`", AB + "\n" + joint("j", "a", "b", kind="revolute")),
    ("urdf-limit-reversed", "warning", 3, "1 > upper -1", AB + joint("j", "a", "b", limit('lower="1" upper="-1"'), "prismatic")),
    ("urdf-limit-zero-range", "warning", 3, "`j`", AB + joint("j", "a", "b", limit('effort="1" velocity="1"'), "revolute")),
    ("urdf-zero-outside", "warning", 3, "0.5 .. 1", AB + joint("j", "a", "b", limit('lower="0.5" upper="1"'), "revolute")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "severity", "line", "named", "inner"), CASES, ids=[f"{c[0]}-{k}" for k, c in enumerate(CASES)]
)
def test_each_fault_is_one_finding_with_its_place(code: str, severity: str, line: int, named: str, inner: str) -> None:
    (found,) = checked(inner)
    assert (found.code, found.severity, found.file, found.line) == (code, severity, "arm.urdf", line)
    assert named in found.message


def test_every_finding_of_the_checker_is_covered_here() -> None:
    codes = set(re.findall(r'"(urdf-[a-z]+(?:-[a-z]+)*)"', inspect.getsource(check)))
    assert codes - {"urdf-root"} == {case[0] for case in CASES}


# -- what is sound -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inner",
    [
        links("a"),
        AB + joint("j", "a", "b"),
        AB + joint("a", "a", "b"),  # a joint may be called like a link
        joint("b", "a", "b") + links("b", "a"),
        ABC + joint("k", "b", "c", mimic("j")) + joint("j", "a", "b"),
        ABC + joint("k", "b", "c", mimic("j") + limit('lower="-1" upper="1"'), "prismatic") + joint("j", "a", "b"),
    ],
)
def test_sound_descriptions_have_no_findings(inner: str) -> None:
    assert checked(inner) == []


@st.composite
def trees(draw: st.DrawFn, least: int = 1) -> list[tuple[str, str, str]]:
    """The (joint, parent, child) of a random tree of links l0 (the root), l1 ..., in random document order."""
    count = draw(st.integers(least, 12))
    edges = [(f"j{k}", f"l{draw(st.integers(0, k - 1))}", f"l{k}") for k in range(1, count)]
    return draw(st.permutations(edges))


def document(edges: list[tuple[str, str, str]]) -> str:
    """A tree as text: the joints, each in a line of its own, then the links."""
    names = {"l0"} | {child for _, _, child in edges}
    return "\n".join(joint(*edge) for edge in edges) + links(*sorted(names))


@given(trees())
def test_any_tree_in_any_order_is_sound(edges: list[tuple[str, str, str]]) -> None:
    assert checked(document(edges)) == []


@given(trees(least=2), st.data())
def test_one_more_joint_is_never_sound(edges: list[tuple[str, str, str]], data: st.DataObject) -> None:
    names = [f"l{k}" for k in range(len(edges) + 1)]
    parent, child = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
    at = data.draw(st.integers(0, len(edges)))
    found = checked(document([*edges[:at], ("extra", parent, child), *edges[at:]]))
    expected = {"urdf-ring"} if child == "l0" else {"urdf-two-parents", "urdf-ring"}
    assert found
    assert {f.code for f in found} <= expected
    assert all(f.severity == "error" for f in found)


@given(trees(least=3), st.data())
def test_one_joint_less_leaves_two_roots(edges: list[tuple[str, str, str]], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(edges))
    (found,) = checked(document([e for e in edges if e != gone]) + links(gone[2]))
    assert found.code == "urdf-roots"
    assert "`l0`" in found.message
    assert f"`{gone[2]}`" in found.message


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_every_ring_is_found_once(sizes: list[int], random: object) -> None:
    edges = []
    for number, size in enumerate(sizes):
        edges += [(f"j{number}_{k}", f"r{number}_{k}", f"r{number}_{(k + 1) % size}") for k in range(size)]
        edges.append((f"t{number}", f"r{number}_0", f"tail{number}"))  # it hangs from the ring
    random.shuffle(edges)  # type: ignore[attr-defined]
    found = checked(document(edges) + links(*{parent for _, parent, _ in edges} - {c for _, _, c in edges}))
    assert [f.code for f in found if f.code == "urdf-ring"] == ["urdf-ring"] * len(sizes)
    for number in range(len(sizes)):
        assert sum(f"`r{number}_0`" in f.message for f in found) == 1


# -- mimic -------------------------------------------------------------------------------------------------------------


@st.composite
def forests(draw: st.DrawFn) -> dict[str, str]:
    """Followers and what each mimics, ending in the independent joints j0 .. j2, in random order."""
    count = draw(st.integers(4, 12))
    pairs = [(f"j{k}", f"j{draw(st.integers(0, k - 1))}") for k in range(3, count)]
    return dict(draw(st.permutations(pairs)))


def followers(rules: dict[str, str]) -> str:
    names = sorted({*rules, *rules.values(), "j0"})
    order = [*rules, *(n for n in names if n not in rules)]
    bodies = [joint(n, "base", f"{n}_link", mimic(rules[n]) if n in rules else "") for n in order]
    return "".join(bodies) + links("base", *(f"{n}_link" for n in names))


@given(forests())
def test_any_mimic_forest_in_any_order_is_sound(rules: dict[str, str]) -> None:
    assert checked(followers(rules)) == []


@given(forests(), st.data())
def test_a_rule_that_closes_a_ring_is_one_finding(rules: dict[str, str], data: st.DataObject) -> None:
    last = data.draw(st.sampled_from(sorted(rules)))
    ring = [last]
    while ring[-1] in rules:
        ring.append(rules[ring[-1]])
    (found,) = checked(followers({**rules, ring[-1]: last}))
    assert found.code == "urdf-mimic-ring"
    assert all(f"`{name}`" in found.message for name in ring)


def test_a_broken_rule_is_told_where_it_stands_and_not_again_for_those_who_follow() -> None:
    for source in ("ghost", "fixture", "k"):
        tree = links("a", "b", "c", "d", "e") + joint("fixture", "a", "e", kind="fixed")
        tree += (
            joint("j", "a", "b", mimic("k")) + joint("l", "c", "d", mimic("j")) + joint("k", "b", "c", mimic(source))
        )
        (found,) = checked(tree)
        assert found.message.startswith("joint `k` ")


# -- several faults at once --------------------------------------------------------------------------------------------


def test_all_faults_are_told_in_one_pass_the_worst_first() -> None:
    found = checked(
        joint("j", "a", "b", '\n<axis xyz="0 2 0"/>\n<origin rpy="0 180 0"/>')
        + joint("k", "b", "x", '<axis xyz="0 0 0"/>')
        + "\n"
        + joint("l", "b", "b", mimic("nobody"))
        + links("a", "b", "a")
    )
    assert [(f.severity, f.code, f.line) for f in found] == [
        ("error", "urdf-axis-zero", 4), ("error", "urdf-link-unknown", 4), ("error", "urdf-ring", 5),
        ("error", "urdf-link-twice", 6), ("error", "urdf-mimic-unknown", 6),
        ("warning", "urdf-axis-normalised", 3), ("warning", "urdf-rpy-degrees", 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "inner"),
    [
        ("urdf-joint-type", AB + joint("j", "a", "b", kind="screw")),
        ("urdf-joint-parent", AB + '<joint name="j" type="fixed"><child link="b"/></joint>'),
        ("urdf-name-missing", AB + '<joint type="fixed"><parent link="a"/><child link="b"/></joint>'),
        ("urdf-element-unknown", AB + joint("j", "a", "b").replace("joint", "jont")),
        ("urdf-joint-type", ABC + joint("j", "a", "b", kind="screw") + joint("k", "b", "c", mimic("j"))),
    ],
)
def test_a_joint_that_cannot_be_read_does_not_put_the_tree_in_doubt(code: str, inner: str) -> None:
    (found,) = checked(inner)
    assert found.code == code


def test_a_wrong_root_is_the_only_finding() -> None:
    (found,) = check_description(read_urdf(parse_xml(b"<sdf><link/></sdf>", "arm.sdf")))
    assert (found.code, found.file, found.line) == ("urdf-root", "arm.sdf", 1)


def test_the_nearest_name_is_in_the_hint() -> None:
    (found,) = checked(links("base_link", "tool0") + joint("j", "base_lnik", "tool0"))
    assert "`base_link`" in found.hint
    (found,) = checked(ABC + joint("elbow", "a", "b") + joint("k", "b", "c", mimic("elbov")))
    assert "`elbow`" in found.hint


def test_lengths_are_judged_in_metres() -> None:
    far = AB + joint("j", "a", "b", '<origin xyz="0 0 330"/>')
    assert [f.code for f in checked(far)] == ["urdf-units"]
    assert checked(far, 0.001) == []


def test_a_refusal_carries_every_error_and_its_first_reason() -> None:
    findings = checked(AB + joint("j", "a", "b", '<axis xyz="0 2 0"/>') + "\n" + joint("k", "a", "b", mimic("x")))
    with pytest.raises(BundleRefused) as caught:
        refuse_errors(findings, "arm.zip")
    error = caught.value
    assert (error.reason, error.data["file"], error.data["line"]) == ("urdf-two-parents", "arm.urdf", 3)
    assert [f["code"] for f in error.data["findings"]] == ["urdf-two-parents", "urdf-mimic-unknown"]
    assert "fkctl check arm.zip" in error.message
    assert "\n(and 1 more" in error.message
    refuse_errors(checked(AB + joint("j", "a", "b", '<axis xyz="0 2 0"/>')), "arm.zip")


def test_long_chains_and_rings_are_no_harder_than_short_ones() -> None:
    count = 1500
    names = [f"l{k}" for k in range(count)]
    edges = [(f"j{k}", names[k - 1], names[k]) for k in range(1, count)]
    assert checked(document(edges[::-1])) == []
    (found,) = checked(document([*edges, ("back", names[-1], names[0])]))
    assert found.code == "urdf-ring"
    assert len(found.message) < 300
    rules = {f"j{k}": f"j{k + 1}" for k in range(count)}
    assert checked(followers(rules)) == []
    (found,) = checked(followers({**rules, f"j{count}": "j0"}))
    assert found.code == "urdf-mimic-ring"
    assert len(found.message) < 300
