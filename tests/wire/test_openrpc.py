"""rpc.discover: a valid OpenRPC document, and a true one: what it says of requests and results is held against real ones."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from msgspec import Raw
from referencing import Registry
from referencing.jsonschema import DRAFT7

from fkd import errors
from fkd.dispatch import METHODS, PARAMETERS, call, run, serving
from fkd.errors import BundleRefused, FkdError
from fkd.robot import load
from fkd.service import Session
from fkd.wire.answers import ANSWERS

ROBOTS = Path(__file__).parent.parent / "robots"
HERE = "urn:fkd"


def session(robot: str) -> Session:
    return Session(serving(load(ROBOTS / robot)))


def ask(asked: Session, method: str, params: Any = ()) -> Any:
    return json.loads(run(asked, method, Raw(json.dumps(params).encode())))


slides = session("wire_slides.urdf")
DOCUMENT: dict[str, Any] = ask(slides, "rpc.discover")
ENTRIES: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in DOCUMENT["methods"]}
REGISTRY: Any = Registry().with_resource(HERE, DRAFT7.create_resource(DOCUMENT))
methods = pytest.mark.parametrize("method", METHODS)


def inside(value: Any) -> list[Any]:
    """All objects in a value."""
    found = [value] if isinstance(value, dict) else []
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += inside(part)
    return found


def wrong(value: Any, schema: Any) -> list[str]:
    """What a schema of the document finds wrong with a value."""
    text = json.dumps(schema).replace('"#/components', f'"{HERE}#/components')
    return [f"{e.json_path}: {e.message}" for e in Draft7Validator(json.loads(text), registry=REGISTRY).iter_errors(value)]


def wrong_params(method: str, params: dict[str, Any]) -> list[str]:
    known = {p["name"]: p for p in ENTRIES[method]["params"]}
    found = [f"no {name}" for name, p in known.items() if p["required"] and name not in params]
    for name, value in params.items():
        found += wrong(value, known[name]["schema"]) if name in known else [f"{name} is not known"]
    return found


# -- the document itself -----------------------------------------------------------------------------------------------


def test_the_document_has_what_one_must_have() -> None:
    assert DOCUMENT["openrpc"] == "1.3.2"
    assert DOCUMENT["info"].keys() >= {"title", "version"}
    assert list(ENTRIES) == list(METHODS)
    assert len(DOCUMENT["methods"]) == len(ENTRIES)
    for entry in ENTRIES.values():
        names = [p["name"] for p in entry["params"]]
        assert len(set(names)) == len(names)
        assert entry["paramStructure"] in ("by-name", "either")


def test_every_reference_leads_somewhere() -> None:
    for found in inside(DOCUMENT):
        if isinstance(found.get("$ref"), str):
            assert len(found) == 1
            place: Any = DOCUMENT
            for step in found["$ref"].removeprefix("#/").split("/"):
                place = place[step]
            assert place


def test_nothing_stands_there_that_nobody_refers_to() -> None:
    referred = {found["$ref"].rpartition("/")[2] for found in inside(DOCUMENT) if isinstance(found.get("$ref"), str)}
    assert referred >= DOCUMENT["components"]["schemas"].keys()


@methods
def test_every_method_says_all_that_a_caller_must_know(method: str) -> None:
    """Whoever adds a method: its docstring, its parameters in messages.py, its result and errors in answers.py."""
    entry = ENTRIES[method]
    assert method in ANSWERS
    assert entry["summary"].endswith((".", '"pong".'))
    assert entry["result"]["schema"]
    assert [p["name"] for p in entry["params"]] == list(getattr(PARAMETERS.get(method), "__struct_fields__", ()))
    for param in entry["params"]:
        assert param["description"], param["name"]
    assert {"#/components/errors/InvalidParams", "#/components/errors/InternalError"} <= {e["$ref"] for e in entry["errors"]}


def test_what_is_answered_is_answered_by_a_method() -> None:
    assert ANSWERS.keys() <= METHODS.keys()


def test_all_schemas_are_schemas() -> None:
    schemas = list(DOCUMENT["components"]["schemas"].values())
    for entry in ENTRIES.values():
        schemas += [entry["result"]["schema"], *(p["schema"] for p in entry["params"])]
        schemas += [entry["x-by-position"][k] for k in ("params", "result") if "x-by-position" in entry]
    for schema in schemas:
        Draft7Validator.check_schema(schema)


def test_errors_are_those_of_the_table() -> None:
    found = {name: e["code"] for name, e in DOCUMENT["components"]["errors"].items()}
    assert found == {c.__name__: c.code for c in vars(errors).values() if isinstance(c, type) and issubclass(c, FkdError) and c is not FkdError}
    for error in DOCUMENT["components"]["errors"].values():
        assert all(error["data"].values()), error  # each member is explained


def test_it_is_made_when_asked_for_in_steps_and_then_kept() -> None:
    again = call(slides, "rpc.discover", Raw(b"[]"))
    assert not isinstance(again, bytes)
    with pytest.raises(StopIteration) as end:
        next(again)
    assert json.loads(end.value.value) == DOCUMENT
    code = """
import sys
from fkd.methods import discover
from fkd.dispatch import METHODS, PARAMETERS
assert not {"fkd.wire.openrpc", "fkd.wire.results"} & set(sys.modules)
assert len(list(discover.reference(METHODS, PARAMETERS)(None, b"[]"))) > len(METHODS)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_the_document_is_valid_by_the_meta_schema() -> None:
    """OpenRPC's own, which npm brings (see the Makefile), as it brings the one of JSON Schema that this refers to."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node here")
    packages = [str(Path(sys.prefix) / "node" / "node_modules"), *filter(None, [os.environ.get("NODE_PATH")])]
    code = 'const m = ["@open-rpc/meta-schema", "@json-schema-tools/meta-schema"].map(require); console.log(JSON.stringify(m.map((s) => s.default || s)))'
    ran = subprocess.run([node, "-e", code], env={**os.environ, "NODE_PATH": os.pathsep.join(packages)}, capture_output=True, text=True, timeout=60)
    if "MODULE_NOT_FOUND" in ran.stderr:
        pytest.skip("the npm packages with the meta-schemas are not installed")
    meta, of_schemas = json.loads(ran.stdout)
    names = [of_schemas["$id"], of_schemas["$id"].rstrip("/")]
    registry: Any = Registry().with_resources([(name, DRAFT7.create_resource(of_schemas)) for name in names])
    validator = Draft7Validator(meta, registry=registry)
    assert [e.message for e in validator.iter_errors(DOCUMENT)] == []
    for broken in ({**DOCUMENT, "openrpc": "0"}, {**DOCUMENT, "methods": [{"name": "x"}]}, {**DOCUMENT, "unknown": 1}):
        assert list(validator.iter_errors(broken))


# -- examples ----------------------------------------------------------------------------------------------------------


@methods
def test_examples_are_what_is_asked_and_answered(method: str) -> None:
    entry = ENTRIES[method]
    for example in entry["examples"]:
        params = {p["name"]: p["value"] for p in example["params"]}
        assert wrong_params(method, params) == []
        assert wrong(example["result"]["value"], entry["result"]["schema"]) == []
        assert close(ask(slides, method, params), example["result"]["value"])
    if example := entry.get("x-by-position", {}).get("example"):
        assert close(ask(slides, method, example["params"]), example["result"])


def close(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return bool(a == b if isinstance(a, str | bool) else a == pytest.approx(b, abs=1e-12))


# -- what is answered --------------------------------------------------------------------------------------------------

ASKED = sorted(p.name for p in ROBOTS.glob("*.urdf") if p.name != "ctl_broken.urdf")


def held(asked: Session, method: str, params: Any = ()) -> Any:
    """A real answer, held against the document; None if the method refuses, which is held against it too."""
    entry = ENTRIES[method]
    answer = refusal = None
    try:
        answer = ask(asked, method, params)
    except FkdError as e:
        refusal = e
    if refusal is not None:
        kind = type(refusal).__name__
        assert {"$ref": f"#/components/errors/{kind}"} in entry["errors"], (method, refusal)
        assert {"reason", *refusal.data} <= DOCUMENT["components"]["errors"][kind]["data"].keys()
        return None
    if isinstance(params, dict):
        assert wrong_params(method, params) == []
        assert wrong(answer, entry["result"]["schema"]) == []
    else:
        form = entry.get("x-by-position", {"params": {}, "result": entry["result"]["schema"]})
        assert wrong(list(params), form["params"]) == []
        assert wrong(answer, form["result"]) == []
    return answer


@pytest.mark.parametrize("robot", ASKED)
def test_every_answer_is_as_the_document_says(robot: str) -> None:
    asked = session(robot)
    model = held(asked, "model")
    neutral = {j["name"]: {1: 0.125, 3: [0.1, 0.2, 0.3], 7: [0, 0, 0, 0, 0, 0, 1]}[j["width"]] for j in model["joints"] if j["width"]}
    q = [x for name in model["q"] for x in (neutral[name] if isinstance(neutral[name], list) else [neutral[name]])]
    link = model["tip"] or model["links"][-1]
    for method in ("check", "status", "ping", "stats", "rpc.discover"):
        assert held(asked, method) is not None
        assert held(asked, method, {}) is not None
    for method in ("compute_fk", "decompose", "compute_jacobian"):
        held(asked, method, q)
        held(asked, method, {"q": q})
    for form in ("matrix", "pose", "ros"):
        params = {"links": "all", "base": link, "tool": {"xyz": [0, 0, 1]}, "format": form, "stamp": True, "missing": "zero"}
        assert held(asked, "compute_fk", {"q": neutral, **params})
        assert held(asked, "compute_fk_batch", {"q": [q, neutral], **params})
    held(asked, "compute_fk", {"q": q, "degrees": True, "links": link})
    assert held(asked, "decompose", {"q": neutral, "link": link})
    assert held(asked, "compute_jacobian", {"q": q, "link": link, "frame": "tip", "tool": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]})
    for convention in ("standard", "modified"):
        held(asked, "dh", {"link": link, "convention": convention})
    held(asked, "dh")
    pose = ask(asked, "compute_fk", {"q": q, "links": [link], "format": "pose"})["poses"][link]
    for more in ({}, {"best_effort": True, "pose": {"xyz": [9, 9, 9]}}, {"position_only": True, "seed": neutral}, {"solutions": "all", "seed": q},
                 {"pose": {"xyz": [9, 9, 9], "rpy": [0, 0, 1]}, "method": "numeric"}):  # fmt: skip
        held(asked, "compute_ik", {"pose": pose, "link": link, "timeout_ms": 2000, **more})
    assert held(asked, "pin", {"digest": model["digest"]}) == held(asked, "pin", [model["digest"]])
    assert held(asked, "stats")["methods"]["compute_ik"]["count"] == 5


def test_reloads_and_what_is_said_of_them_are_as_the_document_says() -> None:
    asked = session("wire_slides.urdf")
    service = asked.service
    assert held(asked, "reload", {}) is None  # without a daemon there is nobody to do it

    def reload(bundle: str | None) -> Future[tuple[str, int]]:
        done: Future[tuple[str, int]] = Future()
        done.set_exception(BundleRefused("no", member="x", findings=[])) if bundle else done.set_result((service.robot.digest, 2))
        return done

    service.reload = reload
    assert held(asked, "reload") is None  # not permitted
    asked.socket, _other = socket.socketpair()
    service.may_reload = lambda _: True
    assert held(asked, "reload") == held(asked, "reload", {}) == {"digest": service.robot.digest, "generation": 2}
    assert held(asked, "reload", {"bundle": "/x.zip"}) is None
    held(asked, "pin", ["0" * 64])
    for method in METHODS:  # pinned to another model
        held(asked, method)


def test_reloads_of_a_daemon_are_as_the_document_says(daemons: Any) -> None:
    daemon = daemons("wire_slides.urdf")
    assert daemon.ask("reload", {})["result"].keys() == {"digest", "generation"}
    assert daemon.ask("reload", {"bundle": "/no/such/bundle.zip"})["error"]["data"]["reason"]
    for method in ("stats", "status", "rpc.discover"):
        assert wrong(daemon.ask(method)["result"], ENTRIES[method]["result"]["schema"]) == []
    assert [r["outcome"] for r in daemon.ask("stats")["result"]["reloads"]] == ["serving", "refused"]


# -- what is asked -----------------------------------------------------------------------------------------------------

Q = [0.25, 0.5]
MATRIX = [1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 3, 0, 0, 0, 1]
# What a request may not be, by the document and by the method.
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("compute_fk", {}), ("compute_fk", {"q": None}), ("compute_fk", {"q": "0 0"}), ("compute_fk", {"q": [0, "0"]}), ("compute_fk", {"q": [0, None]}),
    ("compute_fk", {"q": {"s1": "0", "s2": 0}}), ("compute_fk", {"q": Q, "link": "slide"}), ("compute_fk", {"q": Q, "links": 7}),
    ("compute_fk", {"q": Q, "links": ["slide", 7]}), ("compute_fk", {"q": Q, "base": []}), ("compute_fk", {"q": Q, "degrees": 1}),
    ("compute_fk", {"q": Q, "degrees": None}), ("compute_fk", {"q": Q, "format": "euler"}), ("compute_fk", {"q": Q, "missing": None}),
    ("compute_fk", {"q": Q, "tool": [1, 0, 0]}), ("compute_fk", {"q": Q, "tool": {"xyz": [0, 0]}}), ("compute_fk", {"q": Q, "tool": {"x": 0}}),
    ("compute_fk", {"q": Q, "tool": {"xyz": [0, 0, 0], "quaternion": [0, 0, 1]}}), ("compute_fk", {"q": Q, "tool": {"position": {"x": 0, "y": 0}}}),
    ("compute_fk", {"q": Q, "stamp": "yes"}), ("compute_fk_batch", {"q": Q}), ("compute_fk_batch", {"q": [["0", 0]]}), ("compute_fk_batch", {"q": {}}),
    ("compute_fk_batch", {"q": [None]}), ("decompose", {"matrix": MATRIX[:15]}), ("decompose", {"matrix": [MATRIX[:4]] * 3}), ("decompose", {"rpy": [0, 0]}),
    ("decompose", {"xyz": [0, 0, 0], "quaternion": [0, 0, 0, "1"]}), ("compute_jacobian", {"q": Q, "frame": "world"}), ("compute_ik", {}),
    ("compute_ik", {"pose": MATRIX, "solutions": "some"}), ("compute_ik", {"pose": MATRIX, "seed": 7}), ("compute_ik", {"pose": "home"}),
    ("compute_ik", {"pose": MATRIX, "timeout_ms": "100"}), ("compute_ik", {"pose": MATRIX, "timeout_ms": None}), ("dh", {"convention": "craig"}),
    ("dh", {"links": ["slide"]}), ("pin", {}), ("pin", {"digest": "abc"}), ("reload", {"bundle": 7}), ("ping", {"x": 1}), ("rpc.discover", {"x": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "params"), REFUSED)
def test_what_the_document_does_not_allow_is_refused(method: str, params: dict[str, Any]) -> None:
    assert wrong_params(method, params)
    with pytest.raises(errors.InvalidParams):
        ask(slides, method, params)


@methods
def test_defaults_are_what_is_taken_where_nothing_is_said(method: str) -> None:
    start = {"compute_ik": {"pose": {"xyz": [0.5, 0, 0]}, "timeout_ms": 9999}, "pin": {"digest": slides.robot.digest}, "decompose": {"q": Q}, "dh": {},
             "compute_fk_batch": {"q": [Q]}}.get(method, {"q": Q})  # fmt: skip
    params = ENTRIES[method]["params"]
    if method == "reload" or not params:
        return
    for param in params:
        assert param["required"] == ("default" not in param["schema"])
        if not param["required"] and param["name"] not in start:
            default = param["schema"]["default"]
            assert wrong(default, param["schema"]) == []
            assert ask(slides, method, {**start, param["name"]: default}) == ask(slides, method, start)
