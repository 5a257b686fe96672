"""Reloads of the real daemon: by method, by signal, good ones and bad ones, under load, pinned clients, permissions."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from fkd.rebuild import CHILD, Wanted
from fkd.robot import load

ARM_ZEROS = [1, 0, 0, 1.0625, 0, 1, 0, 0, 0, 0, 1, 0.75, 0, 0, 0, 1]  # wire_arm at q = 0
BAD = "<robot name='bad'><link name='a'/><link name='b'/></robot>"
NOBODY = 65534


@pytest.fixture
def live(short_folder: Path, robots: Path) -> Path:
    """A file to serve that tests may change."""
    return Path(shutil.copy(robots / "wire_arm.urdf", short_folder / "live.urdf"))


def altered(robots: Path) -> str:
    """wire_arm with its first joint a metre higher: as many joints, other poses."""
    text = (robots / "wire_arm.urdf").read_text()
    assert '"0 0 0.5"' in text
    return text.replace('"0 0 0.5"', '"0 0 1.5"', 1)


def test_a_reload_serves_the_new_model_with_a_new_generation(daemons: Any, live: Path, robots: Path) -> None:
    daemon = daemons(str(live))
    talk = daemon.connect()
    before = talk.ask("model")["result"]
    live.write_text(altered(robots))
    result = talk.ask("reload")["result"]
    model = talk.ask("model")["result"]
    assert result == {"digest": model["digest"], "generation": 2}
    assert model["digest"] != before["digest"]
    pose = talk.ask("compute_fk", [0] * 6)["result"]
    assert pose[11] == ARM_ZEROS[11] + 1.0
    assert pose == talk.ask("compute_fk", {"q": [0] * 6})["result"]["poses"]["tool0"]
    assert pose == load(live).pose([0.0] * 6)
    assert daemon.connect().ask("status")["result"]["generation"] == 2


def test_another_bundle_is_served_and_read_again_by_the_next_reload(daemons: Any, live: Path, robots: Path) -> None:
    daemon = daemons("wire_slides.urdf")
    assert daemon.ask("reload", {"bundle": str(live)})["result"]["generation"] == 2
    live.write_text(altered(robots))
    assert daemon.ask("reload", {})["result"]["generation"] == 3
    assert daemon.ask("compute_fk", [0] * 6)["result"][11] == ARM_ZEROS[11] + 1.0


@pytest.mark.parametrize("params", [{"bundle": "relative.zip"}, {"bundle": ""}, {"bundle": "/nul\0"}, {"bundle": 5}, ["x"], {"bundel": "/x"}])
def test_params_that_name_no_bundle(daemons: Any, shared_daemon: Any, params: Any) -> None:
    assert shared_daemon.ask("reload", params)["error"]["code"] == -32602


def test_a_bad_model_is_refused_with_its_reason_and_the_old_one_serves_on(daemons: Any, live: Path) -> None:
    daemon = daemons(str(live))
    talk = daemon.connect()
    for text, reason in ((BAD, "urdf-roots"), ("no xml", None), (None, None)):
        live.unlink() if text is None else live.write_text(text)
        error = talk.ask("reload")["error"]
        assert error["code"] == -32040
        assert reason in (None, error["data"]["reason"])
        assert talk.ask("compute_fk", [0] * 6)["result"] == ARM_ZEROS
    assert talk.ask("status")["result"]["generation"] == 1
    assert [r["outcome"] for r in talk.ask("stats")["result"]["reloads"]] == ["refused"] * 3


def test_what_the_operator_expects_holds_for_reloads_too(daemons: Any, live: Path, robots: Path) -> None:
    daemon = daemons(str(live), "--dof", "6", "--expect-digest", load(live).digest)
    assert daemon.ask("reload", {"bundle": str(robots / "wire_slides.urdf")})["error"]["data"]["reason"] == "digest-unexpected"
    assert daemon.ask("reload")["result"]["generation"] == 2


def test_a_hang_up_reloads_and_says_so_to_systemd(daemons: Any, live: Path, robots: Path) -> None:
    daemon = daemons(str(live))
    live.write_text(altered(robots))
    daemon.process.send_signal(signal.SIGHUP)
    reloading = daemon.notice()
    assert reloading[0] == "RELOADING=1"
    assert int(reloading[1].removeprefix("MONOTONIC_USEC=")) > 0
    daemon.wait_ready()
    assert daemon.ask("compute_fk", [0] * 6)["result"][11] == ARM_ZEROS[11] + 1.0
    live.write_text(BAD)
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.notice()[0] == "RELOADING=1"
    ready = daemon.notice()
    assert ready[0] == "READY=1"
    assert "refused" in ready[1]
    assert "reload refused" in daemon.stderr
    assert daemon.ask("status")["result"]["generation"] == 2


def test_a_pinned_connection_gets_no_answer_of_another_model(daemons: Any, live: Path, robots: Path) -> None:
    daemon = daemons(str(live))
    pinned, free = daemon.connect(), daemon.connect()
    digest = pinned.ask("model")["result"]["digest"]
    assert pinned.ask("pin", [digest.upper()])["result"] == {"digest": digest, "generation": 1}
    assert pinned.ask("reload")["result"]["digest"] == digest  # the same model: the pin holds
    assert pinned.ask("compute_fk", [0] * 6)["result"] == ARM_ZEROS
    live.write_text(altered(robots))
    new = free.ask("reload")["result"]["digest"]
    for method in ("compute_fk", "decompose", "compute_jacobian", "check"):
        error = pinned.ask(method, [0] * 6)["error"]
        assert (error["code"], error["data"]["expected"], error["data"]["got"]) == (-32012, digest, new)
    for method in ("ping", "status", "stats", "model"):
        assert "result" in pinned.ask(method)
    assert pinned.ask("pin", {"digest": digest})["error"]["code"] == -32012
    assert pinned.ask("pin", [new])["result"]["digest"] == new
    assert pinned.ask("compute_fk", [0] * 6)["result"][11] == ARM_ZEROS[11] + 1.0


@pytest.mark.parametrize("params", [[], [""], ["ab" * 31], ["g" * 64], ["ab" * 32, 1], {"digest": 5}, [None], {}])
def test_what_is_no_digest_is_not_pinned(shared_daemon: Any, params: Any) -> None:
    talk = shared_daemon.connect()
    assert talk.ask("pin", params)["error"]["code"] == -32602
    assert talk.ask("compute_fk", [0] * 6)["result"] == ARM_ZEROS


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become someone else")
def test_only_admins_may_reload(daemons: Any, live: Path) -> None:
    """Another user may ask for poses, and may reload once in the admin group, be it as a supplementary group."""
    daemons.folder.chmod(0o755)
    group = 64321
    daemon = daemons(str(live), "--mode", "0666", "--admin-group", str(group))
    script = (
        "import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        """s.sendall(b'{"jsonrpc":"2.0","method":"reload","id":1}\\n'); sys.stdout.write(s.makefile().readline())"""
    )
    outcome = [json.loads(as_user(script, daemon.path, groups)) for groups in ([], [group])]
    assert outcome[0]["error"]["code"] == -32020
    assert outcome[0]["error"]["data"]["reason"] == "not-admin"
    assert outcome[1]["result"]["generation"] == 2


def as_user(script: str, path: str, groups: list[int]) -> str:
    """The output of a script run by a user without rights, by the system's own Python, which that user may read."""
    command = [shutil.which("python3", path="/usr/bin:/bin") or "python3", "-I", "-c", script, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, user=NOBODY, group=NOBODY, extra_groups=groups, cwd="/")
    return done.stdout


def test_reloads_that_wait_are_few(daemons: Any) -> None:
    daemon = daemons("wire_slides.urdf")
    talks = [daemon.connect() for _ in range(30)]
    for talk in talks:
        talk.send(b'{"jsonrpc":"2.0","method":"reload","id":1}\n')
    replies = [talk.reply() for talk in talks]
    refused = [r["error"]["code"] for r in replies if "error" in r]
    generations = [r["result"]["generation"] for r in replies if "result" in r]
    assert set(refused) == {-32030}
    assert sorted(generations) == list(range(2, 2 + len(generations)))


def test_no_answer_is_wrong_or_missing_while_models_alternate(daemons: Any, live: Path, robots: Path) -> None:
    """Two clients ask without pause; each answer is one model's or the other's, to the bit."""
    texts = [(robots / "wire_arm.urdf").read_text(), altered(robots), BAD]
    q = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    right = []
    for text in texts[:2]:
        live.write_text(text)
        right.append(load(live).pose(q))
    daemon = daemons(str(live))
    stop, wrong, count = threading.Event(), [], [0, 0]

    def ask(which: int) -> None:
        talk = daemon.connect()
        while not stop.is_set():
            reply = talk.ask("compute_fk", q)
            count[which] += 1
            if reply.get("result") not in right:
                wrong.append(reply)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    admin = daemon.connect()
    outcomes = []
    for k in range(12):
        live.write_text(texts[k % 3])
        outcomes.append("result" in admin.ask("reload"))
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(count) > 0
    assert outcomes == [True, True, False] * 4


@pytest.mark.parametrize("asked", [True, False])
def test_a_daemon_that_is_killed_amid_a_reload_leaves_no_traceback(robots: Path, asked: bool) -> None:
    """Its child finds the pipe closed that it would answer by, or that it would be asked by."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-I", "-c", CHILD.format(path=sys.path)]
    wanted = json.dumps(Wanted(str(robots / "wire_arm.urdf"))) if asked else ""
    with open(writing, "wb") as out:
        done = subprocess.run(command, input=wanted, stdout=out, stderr=subprocess.PIPE, text=True, check=True)
    assert done.stderr == ""


def test_a_robot_goes_with_its_last_reference(robots: Path) -> None:
    """Nothing that a reload replaces waits for the garbage collector, which is told not to look at it."""
    gc.disable()
    try:
        robot = load(robots / "wire_arm.urdf")
        robot.pose([0.0] * 6)
        robot.poses([0.0] * 6, ["hand"])
        robot.jacobian_rows([0.0] * 6)
        gone = weakref.ref(robot)
        del robot
        assert gone() is None
    finally:
        gc.enable()
