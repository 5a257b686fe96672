"""Building a model: frames, axes, the order of q, units, calibration, mimic chains folded, and the default tip."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load.build import Choices, build_model, unit
from fkd.load.check import check_description, refuse_errors
from fkd.load.urdf import read_urdf
from fkd.load.xml import parse_xml
from fkd.model import Joint, Limits, Mimic, Model


def built(inner: str, **choices: Any) -> Model:
    """The model of a robot with these elements; the first of them stands in line 2."""
    description = read_urdf(parse_xml(f'<robot name="r">\n{inner}\n</robot>'.encode(), "arm.urdf"))
    refuse_errors(check_description(description), "arm.urdf")
    return build_model(description, Choices(**choices), digest="d" * 64, trust="unbundled", source="arm.urdf")


def links(*names: str) -> str:
    return "".join(f'<link name="{name}"/>' for name in names)


def joint(name: str, parent: str, child: str, parts: str = "", kind: str = "continuous") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{parts}</joint>'


def only(parts: str = "", kind: str = "revolute", **choices: Any) -> Joint:
    """The one joint of a two-link robot."""
    (found,) = built(links("a", "b") + joint("j", "a", "b", parts, kind), **choices).joints
    return found


AB = links("a", "b")


# -- one joint ---------------------------------------------------------------------------------------------------------


def test_defaults() -> None:
    found = only()
    assert found.axis == (1.0, 0.0, 0.0)
    assert found.T_parent_joint == (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    assert (found.limits, found.mimic, found.index, found.ratio, found.bias) == (None, None, 0, 1.0, 0.0)
    assert found.place == ("arm.urdf", 2)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_quarter_turn_of_pitch_is_exact(sign: int) -> None:
    T = only(f'<origin xyz="1 2 3" rpy="0 {sign * math.pi / 2!r} 0"/>').T_parent_joint
    assert (0, 0, sign, 1, 0, 1, 0, 2, -sign, 0, 0, 3) == T


def test_a_sloppy_right_angle_keeps_its_value() -> None:
    T = only('<origin rpy="1.5708 0 0"/>').T_parent_joint
    assert T[5] == math.cos(1.5708)
    assert T[5] != 0.0


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.tuples(FINITE, FINITE, FINITE))
@example((1e-200, 0.0, -1e-200))
@example((1e308, -1e308, 1e308))
@example((5e-324, 0.0, 0.0))
@example((1e-17, 1.0, 0.0))
@example((0.6, 0.8, 0.0))
@example((-0.0, 0.0, -1.0))
def test_an_axis_becomes_a_unit_vector_of_the_same_direction(axis: tuple[float, float, float]) -> None:
    assume(any(axis))
    u = unit(axis)
    assert abs(math.hypot(*u) - 1.0) <= 4e-16
    assert all(str(c) != "-0.0" for c in u)
    # |u x axis| / |axis|, exactly up to the last division
    (ux, uy, uz), (x, y, z) = map(Fraction, u), map(Fraction, axis)
    size = max(abs(x), abs(y), abs(z))
    for side in (uy * z - uz * y, uz * x - ux * z, ux * y - uy * x):
        assert abs(side / size) <= 2e-15  # below 1e-15 a component is the rounding of a right angle, and becomes 0
    assert ux * x + uy * y + uz * z > 0


@pytest.mark.parametrize(
    ("axis", "clean"), [("6.1e-17 0 1", (0, 0, 1)), ("1e-17 -1 0", (0, -1, 0)), ("0 6e-17 -2", (0, 0, -1))]
)
def test_an_axis_along_a_coordinate_but_for_rounding_is_that_coordinate(axis: str, clean: tuple[float, ...]) -> None:
    assert only(f'<axis xyz="{axis}"/>').axis == clean


@given(st.tuples(*[st.floats(-1e3, 1e3)] * 3).filter(any))
def test_a_unit_vector_stays_as_it_is(axis: tuple[float, float, float]) -> None:
    assert unit(unit(axis)) == unit(axis)


# -- the order of q ----------------------------------------------------------------------------------------------------

ORDER = (
    links("a", "b", "c", "d", "e", "f")
    + joint("j2", "d", "e")
    + joint("j10", "a", "b", kind="planar")
    + joint("fix", "b", "c", kind="fixed")
    + joint("j1", "c", "d", kind="floating")
    + joint("copy", "e", "f", '<mimic joint="j2"/>', "prismatic")
)


def test_q_follows_the_document() -> None:
    model = built(ORDER)
    assert [j.name for j in model.joints] == ["j2", "j10", "fix", "j1", "copy"]
    assert [j.name for j in model.independent] == ["j2", "j10", "j1"]
    assert model.q_names == ("j2",) + ("j10",) * 3 + ("j1",) * 7
    assert model.dof == 11
    assert {j.name: j.index for j in model.joints} == {"j2": 0, "j10": 1, "fix": -1, "j1": 4, "copy": 0}
    assert {j.name: j.width for j in model.joints} == {"j2": 1, "j10": 3, "fix": 0, "j1": 7, "copy": 0}
    assert all(j is model.by_name[j.name] for j in model.independent)


def test_joints_of_the_bundle_reorder_q_and_nothing_else() -> None:
    plain, model = built(ORDER), built(ORDER, joints=("j1", "j2", "j10"))
    assert model.q_names == ("j1",) * 7 + ("j2",) + ("j10",) * 3
    assert {j.name: j.index for j in model.joints} == {"j2": 7, "j10": 8, "fix": -1, "j1": 0, "copy": 7}
    assert [j.name for j in model.joints] == [j.name for j in plain.joints]
    assert model.links == plain.links == ("a", "b", "c", "d", "e", "f")


@pytest.mark.parametrize(
    ("names", "named"),
    [(("j1", "j2"), "`j10`"), (("j1", "j2", "j10", "j3"), "`j3`"), (("j1", "j2", "j10", "fix"), "`fix`"),
     (("j1", "j2", "j10", "copy"), "`copy`"), ((), "`j2`, `j10`, `j1`")],
)  # fmt: skip
def test_joints_names_every_independent_joint_once(names: tuple[str, ...], named: str) -> None:
    with pytest.raises(BundleRefused) as caught:
        built(ORDER, joints=names)
    assert (caught.value.reason, caught.value.data["member"]) == ("settings-joints", "bundle.toml")
    assert named in caught.value.message


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Parents of links 1, 2 ... (link 0 is the root), and the order of the joints in the document."""
    count = draw(st.integers(1, 12))
    return [draw(st.integers(0, k)) for k in range(count)], draw(st.permutations(range(count)))


@given(
    trees(),
    st.lists(st.sampled_from(["fixed", "continuous", "prismatic", "planar", "floating"]), min_size=12, max_size=12),
)
def test_a_tree_in_any_order_keeps_its_shape(tree: tuple[list[int], list[int]], kinds: list[str]) -> None:
    parents, order = tree
    body = "".join(joint(f"j{k}", f"l{parents[k]}", f"l{k + 1}", kind=kinds[k]) for k in order)
    model = built(body + links(*(f"l{k}" for k in range(len(parents), -1, -1))))
    assert model.root == model.base == "l0"
    assert [j.name for j in model.joints] == [f"j{k}" for k in order]
    place = 0
    for j in model.independent:  # q has no holes and no overlaps
        assert j.index == place
        place += j.width
    assert place == model.dof == len(model.q_names)
    for k in range(len(parents) + 1):
        chain = model.chain(f"l{k}")
        walk = "l0"
        for j in chain:
            assert j.parent == walk
            walk = j.child
        assert walk == f"l{k}"


# -- units and calibration ---------------------------------------------------------------------------------------------


def test_millimetres_scale_lengths_and_leave_angles() -> None:
    origin = '<origin xyz="100 -200 0.5" rpy="0.1 0.2 0.3"/>'
    slide = '<limit lower="-250" upper="500" velocity="100" effort="30"/>'
    turn = '<limit lower="-2" upper="3" velocity="1" effort="30"/>'
    for kind, limit, scaled in (
        ("prismatic", slide, Limits(-0.25, 0.5, 0.1, 30.0)),
        ("revolute", turn, Limits(-2.0, 3.0, 1.0, 30.0)),
    ):
        metres, found = only(origin + limit, kind), only(origin + limit, kind, per_metre=1000.0)
        assert [found.T_parent_joint[k] for k in (3, 7, 11)] == pytest.approx([0.1, -0.2, 0.0005], rel=1e-15)
        assert [found.T_parent_joint[k] for k in (0, 1, 2, 4, 5, 6)] == [
            metres.T_parent_joint[k] for k in (0, 1, 2, 4, 5, 6)
        ]
        assert found.limits == scaled


@pytest.mark.parametrize(
    ("source", "follower", "ratio", "bias"),
    # follower = 2 * source + 3 in the file's units: mm and rad; here in m and rad
    [("prismatic", "prismatic", 2.0, 0.003), ("continuous", "prismatic", 0.002, 0.003),
     ("prismatic", "continuous", 2000.0, 3.0), ("continuous", "continuous", 2.0, 3.0)],
)  # fmt: skip
def test_millimetres_scale_the_sliding_ends_of_a_mimic_rule(
    source: str, follower: str, ratio: float, bias: float
) -> None:
    rule = '<mimic joint="s" multiplier="2" offset="3"/>'
    body = links("a", "b", "c") + joint("f", "b", "c", rule, follower) + joint("s", "a", "b", kind=source)
    found = built(body, per_metre=1000.0).by_name["f"]
    assert (found.ratio, found.bias) == pytest.approx((ratio, bias), rel=1e-15)


def test_a_measured_origin_replaces_the_nominal_one_in_metres() -> None:
    body = AB + joint("j", "a", "b", '<origin xyz="100 0 0" rpy="1 2 3"/>')
    model = built(body, per_metre=1000.0, calibration={"j": ((0.1003, 0.0, -0.0002), (0.0, 0.0, math.pi / 2))})
    assert model.calibrated == ("j",)
    assert model.joints[0].T_parent_joint == (0, -1, 0, 0.1003, 1, 0, 0, 0, 0, 0, 1, -0.0002)


def test_a_measured_origin_of_no_joint_is_refused() -> None:
    with pytest.raises(BundleRefused) as caught:
        built(links("a", "b") + joint("elbow", "a", "b"), calibration={"elbov": ((0, 0, 0), (0, 0, 0))})
    assert caught.value.reason == "settings-calibration"
    assert "did you mean `elbow`" in caught.value.message


# -- mimic -------------------------------------------------------------------------------------------------------------

NUMBER = st.floats(-4, 4).map(lambda x: round(x, 3))


@st.composite
def rules(draw: st.DrawFn) -> tuple[dict[str, tuple[str, float, float]], list[str]]:
    """Random followers (name -> source, multiplier, offset) over j0 and j1, and the order of all in the document."""
    count = draw(st.integers(3, 10))
    found = {f"j{k}": (f"j{draw(st.integers(0, k - 1))}", draw(NUMBER), draw(NUMBER)) for k in range(2, count)}
    return found, draw(st.permutations([f"j{k}" for k in range(count)]))


@given(rules(), st.tuples(NUMBER, NUMBER))
def test_a_mimic_chain_folds_to_what_it_gives_step_by_step(
    given_rules: tuple[dict[str, tuple[str, float, float]], list[str]], values: tuple[float, float]
) -> None:
    forest, order = given_rules
    body = links("base")
    for name in order:
        source, m, b = forest.get(name, ("", 0.0, 0.0))
        rule = f'<mimic joint="{source}" multiplier="{m!r}" offset="{b!r}"/>' if source else ""
        body += links(f"{name}_link") + joint(name, "base", f"{name}_link", rule)
    model = built(body)
    q = [Fraction(values[0] if n == "j0" else values[1]) for n in model.q_names]

    def value(name: str) -> tuple[Fraction, Fraction]:
        """The joint's value, and a bound on the size of all that was added up for it: exact."""
        if name not in forest:
            v = Fraction(dict(zip(("j0", "j1"), values, strict=True))[name])
            return v, abs(v)
        source, m, b = forest[name]
        v, size = value(source)
        return Fraction(m) * v + Fraction(b), abs(Fraction(m)) * size + abs(Fraction(b))

    assert model.q_names == tuple(n for n in order if n in ("j0", "j1"))
    for j in model.joints:
        exact, size = value(j.name)
        assert abs(Fraction(j.ratio) * q[j.index] + Fraction(j.bias) - exact) <= size * Fraction(1, 10**14)
        assert j.width == (0 if j.name in forest else 1)


def test_a_rule_is_kept_as_the_file_has_it_too() -> None:
    body = links("a", "b", "c", "d") + joint("k", "b", "c", '<mimic joint="j" multiplier="-0.5" offset="0.3"/>')
    body += joint("l", "c", "d", '<mimic joint="k" multiplier="2"/>') + joint("j", "a", "b")
    model = built(body)
    assert model.by_name["l"].mimic == Mimic("k", 2.0, 0.0)
    assert (model.by_name["l"].ratio, model.by_name["l"].bias) == (-1.0, 0.6)


def test_a_rule_on_a_fixed_joint_is_void() -> None:
    found = built(
        links("a", "b", "c") + joint("j", "a", "b") + joint("k", "b", "c", '<mimic joint="j"/>', "fixed")
    ).by_name["k"]
    assert (found.mimic, found.index, found.width) == (None, -1, 0)


def test_a_chain_beyond_the_range_of_a_double_is_refused() -> None:
    body = (
        links("a", "b", "c", "d") + joint("j", "a", "b") + joint("k", "b", "c", '<mimic joint="j" multiplier="1e200"/>')
    )
    with pytest.raises(BundleRefused) as caught:
        built(body + "\n" + joint("l", "c", "d", '<mimic joint="k" multiplier="1e200"/>'))
    assert (caught.value.reason, caught.value.data) == ("urdf-mimic-overflow", {"file": "arm.urdf", "line": 3})


# -- tip and base ------------------------------------------------------------------------------------------------------


def hand(*tips: str) -> str:
    """An arm of one joint with one fixed leaf for each name."""
    return (
        links("base", "arm", *tips)
        + joint("j", "base", "arm")
        + "".join(joint(f"to_{t}", "arm", t, kind="fixed") for t in tips)
    )


def test_tip_and_base_may_be_chosen() -> None:
    model = built(hand("flange", "camera"), tip="camera", base="arm")
    assert (model.tip, model.base, model.root) == ("camera", "arm", "base")
    assert model.tip_candidates == ("flange", "camera")


@pytest.mark.parametrize("what", ["tip", "base"])
def test_a_tip_or_base_that_is_no_link_is_refused(what: str) -> None:
    for name, named in (("flnage", "did you mean `flange`"), ("j", "`j`"), ("", "``")):
        with pytest.raises(BundleRefused) as caught:
            built(hand("flange", "camera"), **{what: name})
        assert caught.value.reason == f"settings-{what}"
        assert named in caught.value.message


# -- the whole ---------------------------------------------------------------------------------------------------------


def test_frames_are_rotations() -> None:
    rng = np.random.default_rng(0)
    for rpy in rng.uniform(-7, 7, (50, 3)):
        T = np.array(only(f'<origin rpy="{" ".join(map(repr, rpy.tolist()))}"/>').T_parent_joint).reshape(3, 4)
        assert np.abs(T[:, :3].T @ T[:, :3] - np.eye(3)).max() < 1e-15
        assert np.linalg.det(T[:, :3]) > 0


def test_a_long_chain_in_reverse_order_builds() -> None:
    count = 800
    body = "".join(joint(f"j{k}", f"l{k}", f"l{k + 1}") for k in reversed(range(count)))
    model = built(body + links(*(f"l{k}" for k in range(count + 1))))
    assert model.tip == f"l{count}"
    assert model.dof == count
