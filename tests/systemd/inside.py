"""Runs in the container that tests/systemd/run boots: what an operator does and what befalls a service, tried for real.

Prints a line for each thing that holds, with what was measured, and "all held" at the end.
"""

from __future__ import annotations

import grp
import json
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from tools import HERE, HOME, SOCKET, Caller, Load, ask, pack, pid, run, serves, show, stopwatch, systemctl, until

CONNECTS = 320  # made while the daemon is dead


def activation() -> str:
    """An enabled socket is enough: the first connection starts the daemon, and waits for its answer."""
    pack("wire_arm.urdf", "/etc/fkd/robot.zip")
    systemctl("enable", "--now", "fkd.socket")
    assert show("fkd.service", "ActiveState") == "inactive"
    with stopwatch() as took:
        serves()
        ms = took()
    assert show("fkd.service", "ActiveState") == "active"
    assert show("fkd.service", "StatusText").startswith("serving wire_arm"), show("fkd.service", "StatusText")
    return f"{ms:.0f} ms from connect to the first reply"


def confinement() -> str:
    """It runs as nobody in particular, filtered, and all that it can do still works."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid()}/status").read_text().splitlines())
    assert "0" not in status["Uid"].split(), status["Uid"]
    assert (status["Seccomp"], status["NoNewPrivs"], int(status["CapEff"], 16), int(status["CapBnd"], 16)) == ("2", "1", 0, 0)
    for method, params in (
        ("decompose", [0] * 6), ("compute_jacobian", [0.1] * 6), ("compute_fk_batch", {"q": [[0] * 6] * 5000}), ("model", []),
        ("check", []), ("status", []), ("stats", []),
    ):  # fmt: skip
        ask(method, params)
    return f"uid {status['Uid'].split()[0]}, no capability, {status['VmRSS'].strip()} resident"


def readiness() -> str:
    """A bundle that must not be served: never active, callers wait; once it is mended, they have their answers."""
    systemctl("stop", "fkd.service")
    Path("/etc/fkd/robot.zip").write_bytes(b"no zip at all")
    systemctl("start", "fkd.service", status=None)
    waiting = Caller()
    waiting.send("compute_fk", [0] * 6)
    restarts = int(show("fkd.service", "NRestarts"))
    states, texts = set(), set()
    while int(show("fkd.service", "NRestarts")) < restarts + 2:
        states.add(show("fkd.service", "ActiveState"))
        texts.add(show("fkd.service", "StatusText"))
    assert "active" not in states, states
    assert any("not a zip" in text for text in texts), texts
    pack("wire_arm.urdf", "/etc/fkd/new.zip")
    os.rename("/etc/fkd/new.zip", "/etc/fkd/robot.zip")
    with stopwatch() as took:
        assert waiting.reply()["result"] == HOME
        ms = took()
    until(lambda: show("fkd.service", "ActiveState") == "active")
    return f"after {restarts + 2} refused starts, a caller that waited had its answer {ms:.0f} ms after the bundle was mended"


def kill() -> str:
    """kill -9: connections wait, none is refused."""
    before = pid()
    os.kill(before, signal.SIGKILL)
    with stopwatch() as took:
        callers = []
        back = 0.0
        for _ in range(CONNECTS):
            callers.append(Caller())  # raises where it is refused
            callers[-1].send("compute_fk", [0] * 6)
            time.sleep(0.0005)
        for caller in callers:
            assert caller.reply()["result"] == HOME
            back = back or took()
    for caller in callers:
        caller.close()
    assert pid() != before
    return f"{back:.0f} ms to the next reply; {CONNECTS} connects meanwhile, 0 refused, all answered"


def watchdog() -> str:
    """A daemon that hangs is killed and replaced."""
    before = pid()
    os.kill(before, signal.SIGSTOP)
    with stopwatch() as took:
        serves()
        ms = took()
    assert pid() != before
    log = run("journalctl", "--unit=fkd", "--output=cat", "--no-pager")
    assert "Watchdog timeout" in log
    assert "Fatal Python error: Aborted" in log  # and where it was
    return f"{ms:.0f} ms from the hang to the next reply"


def reload() -> str:
    """Both ways of reloading end when the new bundle serves; a bad one changes nothing; the process stays the same."""
    before, times = pid(), []
    with Load() as load:
        for generation in range(2, 5):
            with stopwatch() as took:
                systemctl("reload", "fkd.service")
                times.append(took())
            assert ask("status")["generation"] == generation
        run("/usr/local/bin/fkctl", "reload")
        assert ask("status")["generation"] == 5
        good = Path("/etc/fkd/robot.zip").read_bytes()
        Path("/etc/fkd/robot.zip").write_bytes(b"no zip at all")
        assert "not a zip" in run("/usr/local/bin/fkctl", "reload", status=1)
        systemctl("reload", "fkd.service")
        assert ask("status")["generation"] == 5
        assert "refused" in show("fkd.service", "StatusText")
        Path("/etc/fkd/robot.zip").write_bytes(good)
        systemctl("reload", "fkd.service")
        assert ask("status")["generation"] == 6
    assert show("fkd.service", "ActiveState") == "active"
    assert pid() == before
    return f"{min(times):.0f} to {max(times):.0f} ms; a caller beside it waited {load.worst:.1f} ms at most in {load.count} calls"


def permissions() -> str:
    """Members of fkd-clients ask; others do not reach the socket; only admins reload."""
    found = os.stat(SOCKET)
    assert (oct(found.st_mode & 0o777), found.st_uid, found.st_gid) == ("0o660", 0, grp.getgrnam("fkd-clients").gr_gid)
    fkctl = ("/usr/local/bin/fkctl", "--json")
    member, stranger = {"user": "fkdtest-member", "extra_groups": ["fkd-clients"]}, {"user": "fkdtest-stranger", "extra_groups": []}
    assert json.loads(run(*fkctl, "call", "compute_fk", "[0,0,0,0,0,0]", **member)) == HOME
    assert "may not" in (said := run(*fkctl, "ping", status=3, **stranger)), said
    assert "admin" in run(*fkctl, "reload", status=1, **member)
    run(*fkctl, "reload")
    return "a member of fkd-clients asks, another user gets EACCES, a member may not reload, root may"


def stop() -> str:
    """The daemon goes, the socket stays, and the next connection brings the daemon back."""
    inode = os.stat(SOCKET).st_ino
    with stopwatch() as took:
        systemctl("stop", "fkd.service")
        ms = took()
    assert (show("fkd.service", "ActiveState"), show("fkd.service", "Result")) == ("inactive", "success")
    assert os.stat(SOCKET).st_ino == inode
    serves()
    systemctl("stop", "fkd.service", "fkd.socket")
    assert not os.path.exists(SOCKET)
    systemctl("start", "fkd.socket")
    serves()
    return f"{ms:.0f} ms; the socket stays and starts it again"


def instances() -> str:
    """fkd@NAME: a daemon, a bundle, a socket for each."""
    pack("wire_arm.urdf", "/etc/fkd/left.zip")
    pack("wire_slides.urdf", "/etc/fkd/right-2.zip")
    systemctl("enable", "--now", "fkd@left", "fkd@right-2")
    serves("/run/fkd/left.sock")
    assert ask("compute_fk", [1, 2], "/run/fkd/right-2.sock")[3] == 3.125
    systemctl("reload", "fkd@left")
    assert ask("status", path="/run/fkd/left.sock")["generation"] == 2
    assert ask("status", path="/run/fkd/right-2.sock")["generation"] == 1
    systemctl("stop", "fkd@left.service", "fkd@left.socket")
    assert not os.path.exists("/run/fkd/left.sock")
    assert ask("compute_fk", [1, 2], "/run/fkd/right-2.sock")[3] == 3.125
    serves()
    os.kill(pid("fkd@right-2.service"), signal.SIGKILL)
    assert ask("compute_fk", [1, 2], "/run/fkd/right-2.sock")[3] == 3.125
    return "two more robots beside the first; each is reloaded, stopped and killed for itself"


def realtime() -> str:
    """The drop-in: first in, first out, on one CPU; not so what the daemon starts."""
    cpus = os.sched_getaffinity(0)
    cpu = 1 if 1 in cpus else min(cpus)
    folder = Path("/etc/systemd/system/fkd.service.d")
    folder.mkdir()
    (folder / "realtime.conf").write_text((HERE / "realtime.conf").read_text().replace("CPUAffinity=1", f"CPUAffinity={cpu}"))
    systemctl("daemon-reload")
    try:
        systemctl("restart", "fkd.service")
    except AssertionError:
        if "real-time" in (why := run("journalctl", "--unit=fkd", "--output=cat", "--no-pager", "--lines=20")) or "SCHED" in why:
            return "skipped: this machine gives containers no real-time scheduling"
        raise
    main = pid()
    assert os.sched_getscheduler(main) == os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_getscheduler(main)
    assert os.sched_getparam(main).sched_priority == 50
    assert os.sched_getaffinity(main) == {cpu}
    serves()
    until(lambda: len(os.listdir(f"/proc/{main}/task")) == 1)  # it has warmed up
    with Load(cpu=min(cpus - {cpu} or cpus)) as load:
        for _ in range(3):
            run("/usr/local/bin/fkctl", "reload")
        inner = load.worst
        systemctl("reload", "fkd.service")
    shutil.rmtree(folder)
    systemctl("daemon-reload")
    systemctl("restart", "fkd.service")
    serves()
    return f"FIFO 50 on CPU {cpu}; a caller waited {inner:.1f} ms at most beside fkctl reload, {load.worst:.1f} ms beside systemctl's"


def logs() -> str:
    """One entry an event, at its level, and none for requests."""
    entries = [json.loads(line) for line in run("journalctl", "--unit=fkd", "--output=json", "--no-pager").splitlines()]
    ours = [(e["PRIORITY"], e["MESSAGE"]) for e in entries if e.get("_COMM") == "fkd"]
    assert {e["SYSLOG_IDENTIFIER"] for e in entries if e.get("_COMM") == "fkd"} == {"fkd"}
    levels = {(start, level) for level, text in ours for start in ("serving", "reloaded", "reload refused", "stopping") if text.startswith(start)}
    assert levels == {("serving", "6"), ("reloaded", "6"), ("reload refused", "3"), ("stopping", "6")}, ours
    assert {level for level, text in ours if text.startswith("robot.zip: not a zip")} == {"3"}, ours
    assert not [text for _, text in ours if text.startswith("fkd:") or "Traceback" in text], ours
    return f"{len(ours)} lines at levels 3 and 6"


def second_boot() -> str:
    """What was enabled is there again, and nothing has failed."""
    for name in ("fkd", "left", "right-2"):
        assert os.path.exists(f"/run/fkd/{name}.sock"), name
    assert show("fkd.service", "ActiveState") == "inactive"
    with stopwatch() as took:
        serves()
        ms = took()
    serves("/run/fkd/left.sock")
    assert ask("compute_fk", [1, 2], "/run/fkd/right-2.sock")[3] == 3.125
    for unit in ("fkd.socket", "fkd@left.service", "fkd@left.socket", "fkd@right-2.service"):
        assert systemctl("is-enabled", unit).strip() == "enabled"
    assert "fkd" not in systemctl("list-units", "--failed", "--plain", "--no-legend")
    return f"sockets are there, {ms:.0f} ms to the first reply"


def uninstall() -> str:
    """Stopped, disabled, removed; the bundles stay."""
    run("make", "-C", str(HERE), "uninstall")
    assert not os.path.exists(SOCKET)
    units = systemctl("list-units", "--all", "--plain", "--no-legend", "fkd*").replace("fkdtest", "")
    assert "running" not in units, units
    assert "listening" not in units, units
    left = [str(p) for p in Path("/etc/systemd/system").rglob("fkd*") if not p.name.startswith("fkdtest")]
    assert not left, left
    assert sorted(os.listdir("/etc/fkd")) == ["left.zip", "right-2.zip", "robot.zip"]
    return "nothing runs, nothing is enabled, the bundles stay"


BOOTS = {
    "1": (activation, confinement, readiness, kill, watchdog, permissions, stop, reload, instances, realtime, logs),
    "2": (second_boot, uninstall),
}


def main() -> int:
    for prove in BOOTS[os.environ["FKDTEST_BOOT"]]:
        try:
            print(f"ok {prove.__name__}: {prove()}", flush=True)
        except Exception:
            print(f"FAILED {prove.__name__}: {prove.__doc__}\n{traceback.format_exc()}", flush=True)
            print(run("journalctl", "--boot", "--no-pager", "--lines=60"))
            return 1
    print("all held", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
