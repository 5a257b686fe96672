"""model, status, ping, call; and what there is at a socket when there is no daemon, or something else."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time

import pytest

from fkd.ctl import target

# -- the commands ------------------------------------------------------------------------------------------------------


def test_model_tells_the_order_of_q(fkctl, robots):
    lines = fkctl("--model", robots / "ctl_crane.urdf", "model").out.splitlines()
    assert lines[0].startswith("ctl_crane: rail -> hook, digest ")
    assert lines[1] == "q takes 2 values, in this order:"
    assert lines[2].split() == ["0", "run", "(prismatic", "-4", "..", "4", "m)"]
    assert lines[3].split() == ["1", "swing", "(continuous)"]
    assert lines[4].split() == ["balance", "(follows", "swing)"]
    assert lines[5] == "links: rail carriage jib hook weight"


def test_model_of_wide_joints_and_of_none(fkctl, robots, tmp_path):
    out = fkctl("--model", robots / "ctl_cart.urdf", "model").out
    assert "floor -> (no single tip)" in out
    assert "q takes 5 values" in out
    assert "0  drive  (planar, 3 values)" in out
    block = tmp_path / "block.urdf"
    block.write_text('<robot name="block"><link name="all_of_it"/></robot>')
    assert "q takes 0 values\nlinks: all_of_it" in fkctl("--model", block, "model").out


def test_status_is_a_table_of_what_the_wire_says(fkctl, shared_daemon):
    found = json.loads(fkctl("--socket", shared_daemon.path, "status", "--json").out)
    assert found["pid"] == shared_daemon.process.pid
    lines = fkctl("--socket", shared_daemon.path, "status").out.splitlines()
    assert [line.split()[0] for line in lines] == list(found)
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert shown["digest"] == found["digest"]
    assert shown["calibrated"] == "-"


def test_ping(fkctl, shared_daemon):
    assert fkctl("--socket", shared_daemon.path, "ping", "--json").out == '"pong"\n'
    assert fkctl("--socket", shared_daemon.path, "ping").out.startswith("pong in ")


def test_the_environment_names_the_socket_and_the_option_wins(fkctl, shared_daemon, monkeypatch, short_folder):
    monkeypatch.setenv("FKD_SOCKET", shared_daemon.path)
    assert fkctl("ping").status == 0
    assert fkctl("--socket", short_folder / "none", "ping").status == 3
    monkeypatch.setenv("FKD_SOCKET", str(short_folder / "none"))
    assert fkctl("ping").status == 3
    assert fkctl("--socket", shared_daemon.path, "ping").status == 0


def test_show_as_json_is_the_models(fkctl, robots):
    crane = robots / "ctl_crane.urdf"
    assert fkctl("show", crane, "--json") == fkctl("--model", crane, "model", "--json")


# -- call --------------------------------------------------------------------------------------------------------------


def test_call_prints_the_result_raw(fkctl, shared_daemon):
    assert fkctl("--socket", shared_daemon.path, "call", "ping").out == '"pong"\n'
    by_position = fkctl("--socket", shared_daemon.path, "call", "compute_fk", "[0,0,0,0,0,0]").out
    assert len(json.loads(by_position)) == 16


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "the parameters are not JSON"),
        ("{", "the parameters are not JSON"),
        ("{'q': [1]}", "the parameters are not JSON"),
        ("[1,]", "the parameters are not JSON"),
        ("q=1", "the parameters are not JSON"),
        ("[" * 100_000, "the parameters are not JSON: nested too deep"),
        ("[" + "9" * 5000 + "]", "the parameters are not JSON"),
        ("3", "the parameters must be a JSON array or object, e.g. '[3]'"),
        ('"x"', "the parameters must be a JSON array or object"),
        ("null", "the parameters must be a JSON array or object"),
        ("[NaN]", "a number that JSON does not have"),
        ("[-Infinity]", "a number that JSON does not have"),
        ("[1e999]", "a number that JSON does not have"),
    ],
)
def test_call_with_bad_json(fkctl, shared_daemon, crane, given, says):
    for where in (("--socket", shared_daemon.path), ("--model", crane)):
        ran = fkctl(*where, "call", "compute_fk", given)
        assert ran.status == 2
        assert says in ran.err


def test_deep_but_valid_json_is_refused_in_one_line(fkctl, shared_daemon, crane):
    for depth in (65, 500, 990):
        for where in (("--socket", shared_daemon.path), ("--model", crane)):
            assert fkctl(*where, "call", "compute_fk", "[" * depth + "]" * depth).status in (1, 2)


@pytest.mark.parametrize("word", ["\udcff", "a\nb", "\u202e", "x" * 1000, '"', "\\"])
def test_strange_names_arrive_as_names(fkctl, shared_daemon, word):
    for words in (["call", word], ["fk", *"000000", "--link", word], ["fk", f"{word}=1"]):
        ran = fkctl("--socket", shared_daemon.path, *words)
        assert ran.status == 1, ran


# -- nobody there ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["ping"], ["fk", "0"], ["status"], ["model"], ["call", "x"], ["check"], ["decompose", "0"]])
def test_no_socket(fkctl, short_folder, words):
    path = short_folder / "none"
    ran = fkctl("--socket", path, *words)
    assert ran == (3, "", (
        f"fkctl: no daemon at {path}: there is no such socket; start one with `fkd BUNDLE`, name another with --socket, "
        "or ask a file with --model\n"
    ))  # fmt: skip


def test_a_stale_socket_a_file_and_a_folder(fkctl, short_folder):
    stale = short_folder / "stale"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(str(stale))
        s.listen()
    file = short_folder / "file"
    file.touch()
    for path in (stale, file, short_folder):
        ran = fkctl("--socket", path, "ping")
        assert ran.status == 3
        assert f"no daemon at {path}: nobody listens there" in ran.err
    assert file.exists()
    assert stat.S_ISSOCK(stale.stat().st_mode)


def test_paths_that_no_socket_can_have(fkctl, tmp_path):
    for path in (tmp_path / ("x" * 120), "x/" * 60, "no/such/folder/s", f"{tmp_path}/{'y' * 300}"):
        assert fkctl("--socket", path, "ping").status == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may connect to anything")
def test_a_socket_that_may_not_be_connected_to(fkctl, short_folder):
    path = short_folder / "closed"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(str(path))
        s.listen()
        path.chmod(0)
        ran = fkctl("--socket", path, "ping")
    assert ran.status == 3
    assert "its mode or group" in ran.err


def test_a_queue_that_is_full(fkctl, short_folder):
    """Callers pile up before a daemon that hangs: the next one is told so instead of waiting for ever."""
    path = str(short_folder / "full")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(path)
        s.listen(0)
        waiting = []
        try:
            for _ in range(64):
                caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                waiting.append(caller)
                caller.setblocking(False)
                caller.connect(path)
        except BlockingIOError:
            pass
        else:
            pytest.skip("this system's queues have no end")
        ran = fkctl("--socket", path, "--timeout", "0.2", "ping")
        assert ran.status == 3
        assert "more callers wait there than it takes" in ran.err
        for caller in waiting:
            caller.close()


# -- somebody else -----------------------------------------------------------------------------------------------------

COMMANDS = [["fk", "0"], ["decompose", "0"], ["status"], ["model"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\n",
        b"{}\n",
        b"null\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"jsonrpc":"2.0","result":1,"id":2}\n',
        b'{"error":1}\n',
        b'{"error":{"code":1}}\n',
        b'{"error":{"code":"1","message":"m"}}\n',
        b'{"error":{"code":1,"message":"m","data":[1]}}\n',
        b'{"jsonrpc":"2.0","result":1,"id":1}\n{"jsonrpc":"2.0","result":1,"id":2}\n',
    ],
    ids=lambda reply: reply[:40].decode("latin-1").strip(),
)
def test_an_answer_that_is_not_fkds(fkctl, impostor, reply, words):
    ran = fkctl("--socket", impostor(reply), *words)
    assert ran.status == 1
    assert "answered something that is not fkd's" in ran.err


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("result", [b"", b"[[[", b"[" * 100_000, b"null", b"1", b"{}", b'"pong"', b'{"poses":1}'])
def test_a_result_of_another_shape(fkctl, impostor, words, result):
    """Of another version, or of another program that speaks JSON-RPC."""
    ran = fkctl("--socket", impostor(b'{"jsonrpc":"2.0","result":%b,"id":1}\n' % result), *words)
    if (words[0], result) != ("status", b'{"poses":1}'):  # status shows whatever it is told
        assert ran.status == 1
        assert f"cannot make sense of the result of {'compute_fk' if words[0] == 'fk' else words[0]}" in ran.err


def test_an_error_with_any_data_is_shown(fkctl, impostor):
    data = {"message": "x", "reason": 5, "self": 1, "code": 2}
    reply = {"jsonrpc": "2.0", "error": {"code": -32001, "message": "two\nlines", "data": data}, "id": 1}
    assert fkctl("--socket", impostor(json.dumps(reply).encode() + b"\n"), "fk", "0") == (1, "", "fkctl: two lines\n")


@pytest.mark.parametrize("reply", [b"", b"half an ans"])
def test_a_peer_that_hangs_up(fkctl, impostor, reply):
    ran = fkctl("--socket", impostor(reply), "ping")
    assert ran.status == 1
    assert "closed the connection without an answer" in ran.err


def test_a_peer_that_never_answers(fkctl, short_folder):
    path = str(short_folder / "mute")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(path)
        s.listen()
        ran = fkctl("--socket", path, "--timeout", "0.05", "ping")
    assert ran == (1, "", f"fkctl: no answer from {path} within 0.05 s; --timeout S waits longer\n")


def test_a_peer_that_drips_is_bound_by_the_same_timeout(fkctl, short_folder):
    """Bytes that keep coming do not set the clock back."""
    path = str(short_folder / "drip")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()

    def drip() -> None:
        peer, _ = listener.accept()
        try:
            while True:
                peer.sendall(b" ")
                time.sleep(0.001)  # the pace of the drip; nothing waits for it
        except OSError:
            peer.close()

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    ran = fkctl("--socket", path, "--timeout", "0.1", "ping")
    thread.join(30)
    listener.close()
    assert ran.status == 1
    assert "no answer" in ran.err


def test_an_endless_answer_is_cut_off(fkctl, impostor, monkeypatch):
    monkeypatch.setattr(target, "MAX_REPLY", 1 << 20)
    ran = fkctl("--socket", impostor(b"x" * (2 << 20)), "ping")
    assert ran.status == 1
    assert "is over 1 MiB" in ran.err


def test_a_reason_given_before_the_request_was_read_is_told(fkctl, short_folder):
    """The peer answers and hangs up in the middle of a request larger than any socket's buffer."""
    path = str(short_folder / "hasty")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()

    def hurry() -> None:
        peer, _ = listener.accept()
        peer.sendall(b'{"jsonrpc":"2.0","error":{"code":-32031,"message":"too much"},"id":null}\n')
        peer.recv(1)
        peer.close()

    thread = threading.Thread(target=hurry, daemon=True)
    thread.start()
    ran = fkctl("--socket", path, "call", "x", json.dumps(["x" * (8 << 20)]))
    thread.join(30)
    listener.close()
    assert ran == (1, "", "fkctl: too much\n")


def test_a_request_over_the_daemons_limit(fkctl, shared_daemon):
    """The daemon hangs up in the middle of the request; why is still read."""
    ran = fkctl("--socket", shared_daemon.path, "call", "compute_fk", f"[{'0.125,' * 300_000}0]")
    assert ran.status == 1
    assert "1048576" in ran.err
