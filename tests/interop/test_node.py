"""Controllers on Node, by the libraries that their authors take, against a real daemon.

`make .venv/tests-installed` installs these libraries where there is an npm; without, the tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from math import cos
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PACKAGES = Path(sys.prefix) / "node" / "node_modules"
Q = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6]


def controller(name: str, package: str, path: str) -> dict[str, Any]:
    """What a controller heard that ran to its end."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node here")
    folders = [str(PACKAGES), *filter(None, [os.environ.get("NODE_PATH")])]
    environ = {**os.environ, "NODE_PATH": os.pathsep.join(folders)}
    if subprocess.run([node, "-e", f"require.resolve('{package}')"], env=environ, capture_output=True).returncode:
        pytest.skip(f"the npm package {package} is not installed")
    ran = subprocess.run([node, HERE / name, path], env=environ, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    heard: dict[str, Any] = json.loads(ran.stdout)
    return heard


def test_vscode_jsonrpc_by_content_length(shared_daemon: Any) -> None:
    heard = controller("controller_vscode.cjs", "vscode-jsonrpc/node", shared_daemon.path)
    expected = {form: shared_daemon.ask("compute_fk", params)["result"] for form, params in
                {"position": Q, "name": {"q": Q, "links": ["tool0"], "format": "pose"}}.items()}  # fmt: skip
    assert {form: heard[form] for form in expected} == expected
    assert (heard["error"]["code"], heard["error"]["data"]["did_you_mean"]) == (-32001, "tool0")
    assert (heard["unknown"]["code"], heard["unknown"]["data"]["did_you_mean"]) == (-32601, "compute_fk")
    assert heard["ping"] == "pong"
    assert heard["cancelled"] == len(shared_daemon.ask("model")["result"]["links"])
    assert heard["many"] == pytest.approx([1.0625 * cos(k / 100) for k in range(300)])
    assert heard["batch"] == [heard["many"][k % 300] for k in range(2000)]
    assert heard["complaints"] == []


def test_jayson_by_lines(shared_daemon: Any) -> None:
    heard = controller("controller_jayson.cjs", "jayson", shared_daemon.path)
    expected = {form: shared_daemon.ask("compute_fk", params)["result"] for form, params in
                {"position": Q, "name": {"q": Q, "links": ["tool0"], "format": "pose"}}.items()}  # fmt: skip
    assert {form: heard[form]["result"] for form in expected} == expected
    assert heard["id"] == {"jsonrpc": "2.0", "result": "pong", "id": "an id of its own"}
    assert (heard["error"]["error"]["code"], heard["error"]["error"]["data"]["did_you_mean"]) == (-32001, "tool0")
    assert (heard["unknown"]["error"]["code"], heard["unknown"]["error"]["data"]["did_you_mean"]) == (-32601, "compute_fk")
    assert heard["notification"]
    assert [r["id"] for r in heard["batch"]] == ["first", "second", "third"]
    assert [r.get("result", r.get("error", {}).get("code")) for r in heard["batch"]] == [expected["position"], -32601, "pong"]
