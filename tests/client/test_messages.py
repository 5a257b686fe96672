"""What the client sends and how it reads replies, without a socket."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from fkclient import BadReply, BadValue, FkError, ModelChanged, RpcError, messages
from fkclient.address import socket_path
from fkclient.replies import Lines, envelope
from hypothesis import given
from hypothesis import strategies as st

from .conftest import POSE, error_line, line

finite = st.floats(allow_nan=False, allow_infinity=False)


def sent(call: messages.Call, ident: int = 7) -> dict[str, Any]:
    data = call.request(ident)
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    return json.loads(data)


def read(call: messages.Call, data: bytes) -> Any:
    return call.answer(call.decode(data))


# -- requests -----------------------------------------------------------------------------------------------------


def test_fk_by_position_as_bytes() -> None:
    assert messages.fk([0.5, -1, 2.25], {}).request(12) == (
        b'{"jsonrpc":"2.0","method":"compute_fk","params":[0.5,-1,2.25],"id":12}\n'
    )


@given(st.lists(finite | st.integers(-(2**53), 2**53), max_size=12))
def test_numbers_arrive_as_they_left(q: list[float]) -> None:
    assert sent(messages.fk(q, {}))["params"] == q
    assert sent(messages.fk(tuple(q), {}))["params"] == q
    assert sent(messages.fk(q, {"degrees": True}))["params"]["q"] == q


@given(st.lists(st.lists(finite, max_size=7), max_size=5))
def test_rows_arrive_as_they_left(q: list[list[float]]) -> None:
    assert sent(messages.fk(q, {}, batch=True))["params"] == {"q": q}
    assert sent(messages.fk([tuple(row) for row in q], {}, batch=True))["params"] == {"q": q}


def test_options_that_are_defaults_are_not_sent() -> None:
    default = {"links": None, "degrees": False, "format": "matrix", "missing": "error", "stamp": False}
    assert sent(messages.fk([1.0], default))["params"] == [1.0]
    chosen = {"links": "tool0", "base": "b", "degrees": True, "format": "pose", "missing": "zero", "stamp": True}
    assert sent(messages.fk({"a": 1.0}, chosen))["params"] == {"q": {"a": 1.0}, **chosen, "links": ["tool0"]}
    assert sent(messages.fk([1.0], {"links": "all"}))["params"] == {"q": [1.0], "links": "all"}
    assert sent(messages.fk([1.0], {"links": ("a", "b")}))["params"] == {"q": [1.0], "links": ["a", "b"]}


def test_other_verbs() -> None:
    q = [0.1, 0.2]
    assert sent(messages.decompose(q, {}))["params"] == q
    assert sent(messages.decompose(q, {"link": "a"}))["params"] == {"q": q, "link": "a"}
    assert sent(messages.decompose(None, {"matrix": np.eye(4)}))["params"] == {"matrix": np.eye(4).tolist()}
    assert sent(messages.decompose(None, {"pose": {"xyz": [1, 2, 3]}}))["params"] == {"pose": {"xyz": [1, 2, 3]}}
    assert sent(messages.jacobian(q, {}))["params"] == q
    assert sent(messages.jacobian(q, {"frame": "tip"}))["params"] == {"q": q, "frame": "tip"}
    assert sent(messages.ik(np.eye(4), {"seed": np.zeros(2)}))["params"] == {
        "pose": np.eye(4).ravel().tolist(),
        "seed": [0.0, 0.0],
    }
    assert sent(messages.ik([list(r) for r in np.eye(4)], {}))["params"] == {"pose": np.eye(4).ravel().tolist()}
    assert sent(messages.dh({"convention": "modified"}))["params"] == {"convention": "modified"}
    assert sent(messages.plain("model")) == {"jsonrpc": "2.0", "method": "model", "params": [], "id": 7}
    assert "params" not in sent(messages.call("stats", None))
    assert sent(messages.call("a\"\n", {"x": None}))["method"] == "a\"\n"


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ([0.0, math.nan], "q[1] is nan"),
        ([0.0, math.inf], "q[1] is inf"),
        ((-math.inf,), "q[0] is -inf"),
        ([0.0, True], "q[1] is True"),
        ([False], "q[0] is False"),
        ([None], "q[0] is None"),
        (["0.1"], "q[0] is '0.1'"),
        ([np.True_], "q[0] is True"),
        ([np.float32("nan")], "q[0] is nan"),
        ([np.float64("inf")], "q[0] is inf"),
        ([1j], "q[0] is 1j"),
        ((10**400,), "q[0] is 1000"),
        ({"elbow": 10**5000}, 'q["elbow"] is too long'),
        ([b"\1"], "q[0] is b"),
        ([Decimal("NaN")], "q[0] is Decimal('NaN')"),
        ({"elbow": math.nan}, 'q["elbow"] is nan'),
        ({"elbow": True}, 'q["elbow"] is True'),
        ({1: 0.5}, "q has the key 1"),
        ({0.5, 0.25}, "(set)"),
        (iter([0.5]), "(list_iterator)"),
        ("12", "q is '12'"),
        (b"12", "q is b'12'"),
        (0.5j, "q is 0.5j"),
        (None, "q is None"),
        (np.array([0.0, math.nan]), "q[1] is nan"),
        (np.array([True, False]), "q[0] is True"),
        (np.array(["1"]), "q[0] is '1'"),
        (np.array([1j]), "q[0] is 1j"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), "q[1] is None"),
        (np.zeros((2, 3)), "shape (2, 3)"),
        (np.array(1.0), "shape ()"),
    ],
)
def test_what_is_no_joint_value_is_refused_by_its_place(bad: Any, place: str) -> None:
    for options in ({}, {"degrees": True}):
        with pytest.raises(BadValue) as caught:
            messages.fk(bad, options)
        assert place in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, FkError)


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ([[0.0], [math.nan]], "q[1][0] is nan"),
        ([[0.0, 1.0], [1.0, True]], "q[1][1] is True"),
        ([[0.0], {1.0}], "q[1] is {1.0} (set)"),
        ([{1.0}], "q[0] is {1.0} (set)"),
        (np.array([[0.0, 1.0], [math.inf, 0.0]]), "q[1][0] is inf"),
        (np.zeros(3), "expected (n, dof)"),
    ],
)
def test_rows_are_refused_by_their_place(bad: Any, place: str) -> None:
    with pytest.raises(BadValue) as caught:
        messages.fk(bad, {}, batch=True)
    assert place in str(caught.value)


def test_a_list_that_holds_itself() -> None:
    endless: list[Any] = [1.0]
    endless.append(endless)
    with pytest.raises(BadValue, match="nested too deeply"):
        messages.fk(endless, {})
    with pytest.raises(BadValue, match="cannot be sent"):
        messages.call("x", endless)


@given(st.lists(finite, min_size=1, max_size=6), st.integers(0, 5), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_no_null_ever_stands_for_a_number(q: list[float], at: int, bad: float) -> None:
    at %= len(q)
    q[at] = bad
    for build in (messages.fk, messages.jacobian, messages.decompose):
        with pytest.raises(BadValue, match=rf"q\[{at}\]"):
            build(q, {})
    with pytest.raises(BadValue, match=rf'params\["q"\]\[{at}\]'):
        messages.call("compute_fk", {"q": q, "base": None})


def test_number_like_values_are_taken() -> None:
    q = [np.float64(0.5), np.float32(0.25), np.int64(3), Fraction(1, 2), Decimal("0.125"), np.array(2.0)]
    assert sent(messages.fk(q, {}))["params"] == [0.5, 0.25, 3, 0.5, 0.125, 2.0]
    assert sent(messages.fk(np.array([1, 2], dtype=np.int8), {}))["params"] == [1, 2]
    assert sent(messages.fk(range(3), {}))["params"] == [0, 1, 2]


def test_numbers_in_other_members_are_checked_too() -> None:
    for member in ({"tool": [math.nan] * 16}, {"tool": {"xyz": [0, 0, True], "rpy": [0, 0, 0]}}):
        with pytest.raises(BadValue, match="tool"):
            messages.fk([0.0], member)
    with pytest.raises(BadValue, match=r'pose\["xyz"\]\[0\] is inf'):
        messages.ik({"xyz": [math.inf, 0, 0]}, {})
    with pytest.raises(BadValue, match="position_tolerance is nan"):
        messages.ik([0.0] * 16, {"position_tolerance": math.nan})
    with pytest.raises(BadValue, match=r"matrix\[0\]\[0\] is nan"):
        messages.decompose(None, {"matrix": np.full((4, 4), math.nan)})


def test_call_refuses_what_json_cannot_hold() -> None:
    for params in ([math.nan], {"a": {"b": (1.0, -math.inf)}}, [np.array([math.nan])], [np.float32("inf")]):
        with pytest.raises(BadValue, match="expected a finite number"):
            messages.call("x", params)
    for params in ([object()], ["\ud800"], {"a": 1j}):
        with pytest.raises(BadValue, match="cannot be sent as JSON"):
            messages.call("x", params)
    for params in ("text", b"text", 5, {1, 2}):
        with pytest.raises(BadValue, match="params is a"):
            messages.call("x", params)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="method is a int"):
        messages.call(5, None)  # type: ignore[arg-type]
    assert sent(messages.call("x", ["null", None, np.arange(2)]))["params"] == ["null", None, [0, 1]]


def test_decompose_takes_one_thing() -> None:
    for q, named in ((None, {}), ([1.0], {"matrix": [0.0] * 16}), (None, {"pose": {}, "matrix": []})):
        with pytest.raises(BadValue, match="exactly one of q, matrix and pose"):
            messages.decompose(q, named)


# -- replies ------------------------------------------------------------------------------------------------------


def test_fk_results() -> None:
    poses = {"a": POSE, "b": POSE[::-1]}
    stamped = {"poses": poses, "generation": 3}
    assert read(messages.fk([0.0], {}), line(7, [int(x) for x in POSE])) == [float(int(x)) for x in POSE]
    assert read(messages.fk([0.0], {"links": "all"}), line(7, stamped)) == poses
    assert read(messages.fk([0.0], {"links": ["a"]}), line(7, {"poses": {"a": POSE}})) == {"a": POSE}
    assert read(messages.fk([0.0], {"links": "a"}), line(7, stamped)) == POSE
    assert read(messages.fk({"j": 0.0}, {}), line(7, {"poses": {"a": POSE}})) == {"a": POSE}
    assert read(messages.fk([0.0], {"links": "a", "stamp": True}), line(7, stamped)) == stamped
    assert read(messages.fk([[0.0]], {"links": "a"}, batch=True), line(7, {"poses": {"a": [POSE]}})) == [POSE]


def test_arrays_for_arrays() -> None:
    q, pose = np.zeros(1), np.array(POSE).reshape(4, 4)
    one = line(7, {"poses": {"a": POSE}})
    for call, reply in (
        (messages.fk(q, {}), line(7, POSE)),
        (messages.fk(q, {"links": "a"}), one),
        (messages.fk(q, {"degrees": True}), one),
    ):
        answer = read(call, reply)
        assert answer.shape == (4, 4)
        assert (answer == pose).all()
    assert (read(messages.fk(q, {"links": ["a"]}), one)["a"] == pose).all()
    assert (read(messages.fk(q, {"stamp": True}), one)["poses"]["a"] == pose).all()
    many = read(messages.fk(np.zeros((2, 1)), {}, batch=True), line(7, {"poses": {"a": [POSE, POSE]}}))["a"]
    assert many.shape == (2, 4, 4)
    assert (many == pose).all()
    assert read(messages.fk(np.zeros((0, 1)), {}, batch=True), line(7, {"poses": {"a": []}}))["a"].shape == (0, 4, 4)
    form = {"xyz": [0, 0, 0], "quaternion": [0, 0, 0, 1], "rpy": [0, 0, 0]}
    assert read(messages.fk(q, {"format": "pose"}), line(7, {"poses": {"a": form}})) == {"a": form}
    assert read(messages.jacobian(q, {}), line(7, [[0.5]] * 6)).shape == (6, 1)
    named = read(messages.jacobian(q, {"link": "a"}), line(7, {"jacobian": [[0.5]] * 6, "joints": ["j"]}))
    assert named["jacobian"].shape == (6, 1)
    assert named["joints"] == ["j"]
    parts = read(messages.decompose(q, {}), line(7, {"xyz": [1, 2, 3], "matrix": POSE, "gimbal_lock": False}))
    assert parts["xyz"].tolist() == [1.0, 2.0, 3.0]
    assert parts["matrix"].shape == (4, 4)
    assert parts["gimbal_lock"] is False
    found = read(messages.ik(pose, {}), line(7, {"solutions": [{"q": [0.5], "converged": True}], "method": "numeric"}))
    assert isinstance(found["solutions"][0]["q"], np.ndarray)
    assert found["method"] == "numeric"


@pytest.mark.parametrize(
    "result", [POSE[:15], [*POSE, 0.0], [None, *POSE[1:]], ["0", *POSE[1:]], {"poses": {}}, None, "pose", [[0.0] * 4] * 4]
)
def test_a_pose_with_holes_is_no_pose(result: Any) -> None:
    with pytest.raises(BadReply, match="compute_fk"):
        read(messages.fk([0.0], {}), line(7, result))


def test_results_of_a_foreign_shape() -> None:
    for result in ([1.0], None, {"pose": {}}, {"poses": {"b": POSE}}, {"poses": 5}):
        with pytest.raises(BadReply, match="compute_fk"):
            read(messages.fk([0.0], {"links": "a"}), line(7, result))
    with pytest.raises(BadReply, match="compute_fk"):
        read(messages.fk(np.zeros(1), {"links": "a"}), line(7, {"poses": {"a": POSE[:15]}}))
    with pytest.raises(BadReply, match="neither a result nor an error"):
        read(messages.plain("model"), b'{"jsonrpc":"2.0","id":7}\n')


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"\xff", b"[]", b"5", b"{", b'{"id":1}x', b'{"id":1.5,"result":0}', b'{"id":true,"result":0}', b'{"id":[]}',
        b'{"id":1,"error":"text"}', b'{"id":1,"error":{"code":"x","message":""}}', b'{"id":1,"result":NaN}',
        b'{"id":1,"result":' + b"[" * 100_000, b'{"id":' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_what_is_no_reply(bad: bytes) -> None:
    with pytest.raises(BadReply):
        envelope(bad)


def test_numbers_out_of_range_and_depth_in_a_result() -> None:
    call = messages.plain("model")
    for result in (b"1e999", b"9" * 5000, b"[" * 200_000 + b"]" * 200_000):
        with pytest.raises(BadReply):
            read(call, b'{"jsonrpc":"2.0","id":7,"result":' + result + b"}")


def test_errors_carry_code_reason_and_data() -> None:
    data = {"reason": "unknown-name", "did_you_mean": "elbow"}
    call = messages.fk([0.0], {})
    with pytest.raises(RpcError) as caught:
        read(call, error_line(7, -32001, "no joint `elbo`", data))
    error = caught.value
    assert (error.code, error.message, error.reason, error.data) == (-32001, "no joint `elbo`", "unknown-name", data)
    assert str(error) == "no joint `elbo` [unknown-name, -32001]"
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), copied.code, copied.data) == (RpcError, -32001, data)
    with pytest.raises(ModelChanged) as changed:
        read(call, error_line(7, -32012, "another model"))
    assert changed.value.reason == ""


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_do_not_depend_on_how_they_are_cut(whole: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(part + b"\n" for part in whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    lines = Lines(100)
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [out for piece in pieces for out in lines.feed(piece)] == whole
    assert lines.size == 0


def test_the_limit_of_a_line() -> None:
    assert Lines(5).feed(b"12345\n12345\n1") == [b"12345", b"12345"]
    for pieces in ([b"123456\n"], [b"123", b"456"], [b"1\n123456"], [b"123", b"456\n"], [b"1\n123456\n1"]):
        lines = Lines(5)
        with pytest.raises(BadReply, match="more than 5 bytes"):
            [lines.feed(piece) for piece in pieces]


# -- the package ----------------------------------------------------------------------------------------------------


def test_the_socket_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FKD_SOCKET", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert socket_path(None) == "/run/fkd/fkd.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert socket_path(None) == "/run/user/7/fkd.sock"
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/a:/run/b")
    assert socket_path(None) == "/run/a/fkd.sock"
    monkeypatch.setenv("FKD_SOCKET", "/tmp/x.sock")
    assert socket_path(None) == "/tmp/x.sock"
    assert socket_path("given") == "given"
    for bad in ("", "a\0b", 5):
        with pytest.raises(BadValue, match="path is"):
            socket_path(bad)  # type: ignore[arg-type]


def test_the_import_is_light() -> None:
    code = (
        "import sys, fkclient; heavy = {'numpy', 'asyncio', 'logging', 'fkd'} & set(sys.modules); assert not heavy, heavy;"
        "fkclient.Client('x'); assert 'numpy' not in sys.modules;"
        "assert fkclient.AsyncClient.__name__ == 'AsyncClient'; assert 'numpy' not in sys.modules;"
        "assert all(hasattr(fkclient, name) for name in fkclient.__all__)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_unknown_attributes_are_missing() -> None:
    import fkclient

    with pytest.raises(AttributeError, match="no attribute 'Cleint'"):
        fkclient.Cleint  # noqa: B018
