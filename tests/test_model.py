"""The model: looking up links, the default tip, and that nothing in it can be changed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.errors import ModelError
from fkd.load.build import Choices, build_model
from fkd.load.check import check_description, refuse_errors
from fkd.load.urdf import read_urdf
from fkd.load.xml import parse_xml
from fkd.model import Model

AB = '<link name="a"/><link name="b"/>'


def built(inner: str, **choices: Any) -> Model:
    """The model of a robot with these elements; the first of them stands in line 2."""
    description = read_urdf(parse_xml(f'<robot name="r">\n{inner}\n</robot>'.encode(), "arm.urdf"))
    refuse_errors(check_description(description), "arm.urdf")
    return build_model(description, Choices(**choices), digest="d" * 64, trust="unbundled", source="arm.urdf")


def links(*names: str) -> str:
    return "".join(f'<link name="{name}"/>' for name in names)


def joint(name: str, parent: str, child: str, parts: str = "", kind: str = "continuous") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{parts}</joint>'


# -- names -------------------------------------------------------------------------------------------------------------


def test_a_joint_may_be_called_like_a_link() -> None:
    model = built(links("base", "wrist", "tool") + joint("wrist", "base", "wrist") + joint("base", "wrist", "tool"))
    assert model.root == "base"
    assert model.by_name["wrist"].child == "wrist"
    assert model.require_link("wrist") == "wrist"


def test_looking_up_a_link() -> None:
    model = built(links("base_link", "tool0") + joint("j", "base_link", "tool0"))
    with pytest.raises(ModelError) as caught:
        model.require_link("j", "$.here")
    assert caught.value.reason == "joint-not-link"
    assert caught.value.data == {"path": "$.here", "name": "j", "did_you_mean": "tool0"}
    with pytest.raises(ModelError) as caught:
        model.require_link("Tool0", "$.here")
    assert (caught.value.reason, caught.value.data["did_you_mean"]) == ("unknown-link", "tool0")


# -- the default tip ---------------------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Parents of links 1, 2 ... (link 0 is the root), and the order of the joints in the document."""
    count = draw(st.integers(1, 12))
    return [draw(st.integers(0, k)) for k in range(count)], draw(st.permutations(range(count)))


def hand(*tips: str) -> str:
    """An arm of one joint with one fixed leaf for each name."""
    return (
        links("base", "arm", *tips)
        + joint("j", "base", "arm")
        + "".join(joint(f"to_{t}", "arm", t, kind="fixed") for t in tips)
    )


@pytest.mark.parametrize(
    ("inner", "tip", "candidates"),
    [
        (links("a"), "a", ("a",)),
        (AB + joint("j", "a", "b", kind="fixed"), "b", ("b",)),
        (hand("flange"), "flange", ("flange",)),
        (hand("flange", "tool0"), "tool0", ("flange", "tool0")),
        (hand("flange", "left_tool0"), "left_tool0", ("flange", "left_tool0")),
        (hand("right_tool0", "left_tool0"), None, ("right_tool0", "left_tool0")),
        (hand("right_tool0", "tool0"), "tool0", ("right_tool0", "tool0")),
        (hand("flange", "camera"), None, ("flange", "camera")),
        (hand("flange", "Tool0"), None, ("flange", "Tool0")),
        # the leaf with the most independent joints wins, whatever the names and the number of fixed joints
        (hand("tool0") + links("x", "y") + joint("k", "arm", "x") + joint("l", "x", "y", kind="fixed"), "y", ("y",)),
        # a follower is no independent joint, so the two fingers tie with the palm's
        (
            hand("flange", "tool0") + links("f") + joint("k", "arm", "f", '<mimic joint="j"/>'),
            "tool0",
            ("flange", "tool0", "f"),
        ),
        # a joint of several values counts as one
        (hand("tool0") + links("x") + joint("k", "base", "x", kind="floating"), "tool0", ("tool0", "x")),
    ],
)
def test_the_default_tip(inner: str, tip: str | None, candidates: tuple[str, ...]) -> None:
    model = built(inner)
    assert model.tip == tip
    assert sorted(model.tip_candidates) == sorted(candidates)
    if tip is None:
        with pytest.raises(ModelError) as caught:
            model.require_tip()
        assert caught.value.reason == "no-tip"
        assert sorted(caught.value.data["candidates"]) == sorted(candidates)
    else:
        assert model.require_tip() == tip


@given(trees(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_the_default_tip_carries_the_most_independent_joints(
    tree: tuple[list[int], list[int]], moves: list[bool]
) -> None:
    parents, order = tree
    body = "".join(
        joint(f"j{k}", f"l{parents[k]}", f"l{k + 1}", kind="continuous" if moves[k] else "fixed") for k in order
    )
    model = built(body + links(*(f"l{k}" for k in range(len(parents) + 1))))
    leaves = {f"l{k}" for k in range(len(parents) + 1)} - {f"l{p}" for p in parents}
    count = {leaf: sum(j.width > 0 for j in model.chain(leaf)) for leaf in leaves}
    best = {leaf for leaf in leaves if count[leaf] == max(count.values())}
    assert set(model.tip_candidates) == best
    assert model.tip == (best.pop() if len(best) == 1 else None)


# -- frozen ------------------------------------------------------------------------------------------------------------


def test_a_model_is_frozen_and_pickles() -> None:
    model = built(hand("flange", "camera"))
    _ = model.by_name, model.by_child, model.link_set
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(AttributeError):
        model.name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        model.joints[0].ratio = 2.0  # type: ignore[misc]
