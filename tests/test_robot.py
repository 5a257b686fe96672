"""Robot: every form of q, every way to get it wrong, and kernels that agree with the kinematics run over floats."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fkd
import fkd.robot
from fkd.errors import FkdError, InvalidParams, ModelError
from fkd.load.build import Choices, build_model
from fkd.load.check import check_description, refuse_errors
from fkd.load.urdf import read_urdf
from fkd.load.xml import parse_xml
from fkd.robot import Robot, load

MIXED = Path(__file__).parent / "robots" / "kin_mixed.urdf"
# lift, shoulder, elbow, wrist, finger_left_slide, drive (3), flight (7)
WIDTHS = {"lift": 1, "shoulder": 1, "elbow": 1, "wrist": 1, "finger_left_slide": 1, "drive": 3, "flight": 7}
Q = [0.2, 0.5, -1.0, 0.7, 0.01, 0.3, -0.4, 0.9, 1.0, 2.0, 3.0, 0.1, -0.2, 0.3, 0.9]
NAMED: dict[str, Any] = {
    "lift": 0.2, "shoulder": 0.5, "elbow": -1.0, "wrist": 0.7, "finger_left_slide": 0.01, "drive": [0.3, -0.4, 0.9],
    "flight": [1.0, 2.0, 3.0, 0.1, -0.2, 0.3, 0.9],
}  # fmt: skip


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load(MIXED)


def built(inner: str, **choices: Any) -> Robot:
    """A robot of these elements."""
    description = read_urdf(parse_xml(f'<robot name="r">{inner}</robot>'.encode(), "arm.urdf"))
    findings = check_description(description)
    refuse_errors(findings, "arm.urdf")
    return Robot(
        build_model(description, Choices(**choices), digest="", trust="unbundled", source="arm.urdf"), findings
    )


def pair(kind: str, parts: str = "") -> Robot:
    """Two links, one joint."""
    return built(
        f'<link name="a"/><link name="b"/><joint name="j" type="{kind}"><parent link="a"/><child link="b"/>{parts}</joint>'
    )


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives: its result or an FkdError; any other exception fails the test."""
    try:
        return call()
    except FkdError as error:
        return error


# -- what a robot says of itself ---------------------------------------------------------------------------------------


def test_names_and_order(robot: Robot) -> None:
    assert robot.name == "kin_mixed"
    assert robot.joints == tuple(WIDTHS)
    assert robot.dof == sum(WIDTHS.values()) == len(Q)
    assert robot.links[:3] == ("base_link", "column", "upper_arm")
    assert len(robot.links) == 12
    assert robot.digest == hashlib.sha256(MIXED.read_bytes()).hexdigest()
    assert "kin_mixed" in repr(robot)
    assert not [f for f in robot.findings if f.severity == "error"]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "import fkd.robot",
        "import fkd.load",
        "from fkd.load.check import rings",
        "fkd.load",
        "import fkd.load.urdf, fkd.robot",
    ],
)
def test_load_is_the_function_however_the_package_of_that_name_was_imported(before: str) -> None:
    code = f"import fkd\n{before}\nprint(fkd.load(r'{MIXED}').name, fkd.load(r'{MIXED}').dof, fkd.Robot.__name__, fkd.FkdError.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.stdout, done.stderr) == ("kin_mixed 15 Robot FkdError\n", "")


def test_a_name_that_the_package_does_not_have() -> None:
    with pytest.raises(AttributeError, match="laod"):
        _ = fkd.laod


# -- every form of q ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [list, tuple, np.array, lambda q: np.array(q)[::-1][::-1], lambda q: [np.float64(x) for x in q], iter,
     lambda q: [Fraction(x) for x in q], lambda _: NAMED, lambda _: {k: np.array(v) if isinstance(v, list) else v for k, v in NAMED.items()},
     lambda _: {k: tuple(v) if isinstance(v, list) else v for k, v in NAMED.items()}],
)  # fmt: skip
def test_q_may_come_in_many_forms(robot: Robot, form: Callable[[list[float]], Any]) -> None:
    T = robot.fk(form(Q), "camera")
    assert T.shape == (4, 4)
    assert T.dtype == np.float64
    assert T.ravel().tolist() == robot.kernels.reference(Q, ["camera"])["camera"]


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.int8, np.float16, int])
def test_numbers_of_other_types_are_taken_for_their_value(robot: Robot, kind: type) -> None:
    q = [kind(x) for x in (1, 0, -1, 2, 0, 3, 0, 1, 0, 2, 3, 0, 0, 0, 1)]
    expected = robot.fk([float(x) for x in q], "camera")
    assert np.array_equal(robot.fk(q, "camera"), expected)
    assert np.array_equal(robot.fk(np.array(q, dtype=kind), "camera"), expected)


@given(st.permutations(list(NAMED.items())))
@settings(max_examples=30)
def test_the_order_of_names_does_not_matter(items: list[tuple[str, Any]]) -> None:
    assert load(MIXED).configuration(dict(items)) == Q


def test_degrees_turn_hinges_and_leave_slides() -> None:
    arm = built(
        '<link name="a"/><link name="b"/><link name="c"/><link name="d"/>'
        '<joint name="s" type="prismatic"><parent link="a"/><child link="b"/></joint>'
        '<joint name="r" type="revolute"><parent link="b"/><child link="c"/></joint>'
        '<joint name="c" type="continuous"><parent link="c"/><child link="d"/><mimic joint="r" multiplier="2" offset="0.5"/></joint>'
    )
    assert arm.configuration([2.0, 90.0], degrees=True) == [2.0, math.pi / 2]
    assert arm.configuration({"r": 90.0, "s": 2.0}, degrees=True) == [2.0, math.pi / 2]
    follower = math.degrees(2 * math.pi / 2 + 0.5)  # the rule itself counts in radians
    assert arm.configuration({"r": 90.0, "s": 2.0, "c": follower}, degrees=True) == [2.0, math.pi / 2]
    with pytest.raises(InvalidParams) as caught:
        arm.configuration({"r": 90.0, "s": 2.0, "c": 180.5}, degrees=True)
    assert caught.value.reason == "follower-inconsistent"


@pytest.mark.parametrize("q", [Q, NAMED])
def test_degrees_of_wide_joints_are_not_defined(robot: Robot, q: Any) -> None:
    with pytest.raises(InvalidParams) as caught:
        robot.configuration(q, degrees=True)
    assert caught.value.reason == "degrees-undefined"


def test_missing_joints_are_named_or_put_to_their_zero(robot: Robot) -> None:
    with pytest.raises(InvalidParams) as caught:
        robot.configuration({"lift": 0.2, "drive": [0, 0, 0]})
    error = caught.value
    assert (error.reason, error.data["path"]) == ("joint-missing", "$.params.q")
    assert error.data["expected"] == list(robot.joints)
    assert error.data["got"] == ["lift", "drive"]
    for name in ("shoulder", "elbow", "wrist", "finger_left_slide", "flight"):
        assert f"`{name}`" in error.message
    assert robot.configuration({"lift": 0.2}, missing="zero") == [0.2] + [0.0] * 13 + [1.0]
    assert robot.configuration({}, missing="zero") == [0.0] * 14 + [1.0]
    with pytest.raises(InvalidParams):  # an array is whole or wrong
        robot.configuration([0.2], missing="zero")


# -- followers ---------------------------------------------------------------------------------------------------------

CABLE = -20 * 0.01 + 0.25


def test_followers_follow(robot: Robot) -> None:
    """finger_right = finger_left; cable = -20 * finger_right + 0.25."""
    left = robot.fk(Q, "finger_left", "wrist")
    right = robot.fk(Q, "finger_right", "wrist")
    assert left[:3, 3] == pytest.approx([0.02, 0.01 + 0.01, 0.1], abs=1e-15)
    assert right[:3, 3] == pytest.approx([0.02, -0.01 - 0.01, 0.1], abs=1e-15)
    cable = robot.fk(Q, "cable", "forearm")
    assert cable[1:3, 1:3] == pytest.approx(
        np.array([[math.cos(CABLE), -math.sin(CABLE)], [math.sin(CABLE), math.cos(CABLE)]]), abs=1e-15
    )


@pytest.mark.parametrize("given_value", [CABLE, round(CABLE, 6), CABLE + 9e-7])
def test_a_consistent_follower_may_be_given_in_any_order(robot: Robot, given_value: float) -> None:
    more = {"finger_right_slide": 0.01, "cable_roll": given_value}
    assert robot.configuration({**more, **NAMED}) == Q
    assert robot.configuration({**NAMED, **more}) == Q


@pytest.mark.parametrize(
    ("name", "value"), [("cable_roll", CABLE + 1e-5), ("cable_roll", -CABLE), ("finger_right_slide", 0.02)]
)
def test_an_inconsistent_follower_is_refused_in_any_order(robot: Robot, name: str, value: float) -> None:
    for q in ({name: value, **NAMED}, {**NAMED, name: value}):
        with pytest.raises(InvalidParams) as caught:
            robot.configuration(q)
        error = caught.value
        assert (error.reason, error.data["path"], error.data["got"]) == (
            "follower-inconsistent",
            f"$.params.q.{name}",
            value,
        )
        assert "`finger_left_slide`" in error.message


def test_a_follower_alone_does_not_stand_for_its_source(robot: Robot) -> None:
    given_values = {k: v for k, v in NAMED.items() if k != "finger_left_slide"} | {"finger_right_slide": 0.01}
    with pytest.raises(InvalidParams) as caught:
        robot.configuration(given_values)
    assert caught.value.reason == "joint-missing"
    with pytest.raises(InvalidParams) as caught:  # zero and 0.01 contradict each other
        robot.configuration(given_values, missing="zero")
    assert caught.value.reason == "follower-inconsistent"


# -- every way to get q wrong ------------------------------------------------------------------------------------------


def but(**changes: Any) -> dict[str, Any]:
    return {**NAMED, **changes}


def at(place: int, value: Any) -> list[Any]:
    return [*Q[:place], value, *Q[place + 1 :]]


WRONG = [
    # numbers
    *[(at(2, value), "not-a-number", "$.params.q[2]") for value in
      (math.nan, math.inf, -math.inf, True, False, np.True_, None, "0.5", b"1", [0.5], [], {}, 1j, np.complex128(1), 10**400,
       10**5000, np.array([0.5]), np.array(0.5j), object(), Decimal("nan"), np.float64("inf"))],
    *[(but(elbow=value), "not-a-number", "$.params.q.elbow") for value in (math.nan, True, None, "1", [0.5], np.bool_(False))],
    (but(drive=[0.0, math.nan, 0.0]), "not-a-number", "$.params.q.drive[1]"),
    (but(flight=[0, 0, 0, 0, 0, 0, True]), "not-a-number", "$.params.q.flight[6]"),
    (np.array([*Q[:-1], np.nan]), "not-a-number", "$.params.q[14]"),
    (np.array(Q).reshape(-1, 1), "not-a-number", "$.params.q[0]"),
    (np.array([True] * 15), "not-a-number", "$.params.q[0]"),
    (np.array(Q, dtype=complex), "not-a-number", "$.params.q[0]"),
    (np.array(list("abcdefghijklmno")), "not-a-number", "$.params.q[0]"),
    # counts
    ([], "q-length", "$.params.q"),
    (Q[:-1], "q-length", "$.params.q"),
    ([*Q, 0.0], "q-length", "$.params.q"),
    (np.array(Q * 2), "q-length", "$.params.q"),
    # wide joints
    *[(but(drive=value), "joint-width", "$.params.q.drive") for value in (0.5, [1.0, 2.0], [1.0] * 4, "xyt", None, {}, b"abc")],
    (but(flight=[0.0] * 6), "joint-width", "$.params.q.flight"),
    (but(flight=[0.0] * 8), "joint-width", "$.params.q.flight"),
    # names
    (but(flange=0.0), "joint-fixed", "$.params.q.flange"),
    (but(elbov=0.0), "unknown-joint", "$.params.q.elbov"),
    (but(forearm=0.0), "unknown-joint", "$.params.q.forearm"),
    ({**NAMED, "": 0.0}, "unknown-joint", "$.params.q."),
    ({**NAMED, 3: 0.0}, "unknown-joint", "$.params.q.3"),
    ({**NAMED, None: 0.0}, "unknown-joint", "$.params.q.None"),
]  # fmt: skip


@pytest.mark.parametrize(("q", "reason", "path"), WRONG, ids=[f"{r}-{k}" for k, (_, r, _) in enumerate(WRONG)])
def test_a_wrong_q_is_refused_with_its_place(robot: Robot, q: Any, reason: str, path: str) -> None:
    with pytest.raises((InvalidParams, ModelError)) as caught:
        robot.fk(q, "camera")
    assert (caught.value.reason, caught.value.data["path"]) == (reason, path)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    "q",
    [
        None,
        0.5,
        "0.5",
        "123456789012345",
        b"123456789012345",
        bytearray(15),
        set(Q),
        frozenset(),
        object(),
        np.array(0.5),
    ],
)
def test_what_has_no_order_or_is_no_array_is_no_q(robot: Robot, q: Any) -> None:
    with pytest.raises(InvalidParams) as caught:
        robot.fk(q, "camera")
    assert caught.value.data["path"].startswith("$.params.q")


def test_an_error_helps(robot: Robot) -> None:
    with pytest.raises(ModelError) as caught:
        robot.configuration(but(elbov=1.0))
    assert caught.value.data["did_you_mean"] == "elbow"
    with pytest.raises(ModelError) as caught:
        robot.configuration(but(forearm=1.0))
    assert "carried by joint `elbow`" in caught.value.message
    with pytest.raises(InvalidParams) as caught:
        robot.configuration(Q[:-1])
    assert caught.value.message.startswith("q has 14 numbers; robot `kin_mixed` takes 15 (lift, shoulder, ")
    assert caught.value.data["expected"] == "15 numbers"
    with pytest.raises(InvalidParams) as caught:
        robot.configuration(at(0, None), path="$.params.seed")
    assert caught.value.data["path"] == "$.params.seed[0]"


@pytest.mark.parametrize("call", [lambda r, q: r.pose(q), lambda r, q: r.poses(q, ["tool0"])], ids=["pose", "poses"])
def test_the_fast_paths_count_too(robot: Robot, call: Callable[[Robot, list[float]], Any]) -> None:
    for q in ([], Q[:-1], [*Q, 0.0]):
        with pytest.raises(InvalidParams) as caught:
            call(robot, q)
        assert (caught.value.reason, caught.value.data["got"]) == ("q-length", len(q))


# -- whatever comes ----------------------------------------------------------------------------------------------------

MIXED_ROBOT = load(MIXED)
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.binary(max_size=5),
        st.complex_numbers(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=15),
        st.dictionaries(st.one_of(st.text(max_size=3), st.sampled_from(list(WIDTHS))), inner, max_size=8),
    ),
    max_leaves=20,
)


@given(ANYTHING, st.sampled_from(["error", "zero"]), st.booleans())
def test_anything_at_all_is_a_configuration_or_an_error(q: Any, missing: str, degrees: bool) -> None:
    found = outcome(lambda: MIXED_ROBOT.configuration(q, missing=missing, degrees=degrees))
    if isinstance(found, FkdError):
        assert found.data["path"].startswith("$.params.q")
    else:
        assert len(found) == 15
        assert all(type(x) is float and math.isfinite(x) for x in found)
