"""The listening socket: right from the first moment, never stolen, and left behind as it should be."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fkd import listen
from fkd.listen import MAX_PATH, Listener, ListenError, adopt, bind


@pytest.fixture
def path(short_folder: Path) -> str:
    return str(short_folder / "fkd.sock")


@pytest.fixture
def wide_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def refusal(path: str, mode: int = 0o660, group: str | None = None) -> ListenError:
    with pytest.raises(ListenError) as e:
        bind(path, mode, group)
    return e.value


def connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        return s.connect_ex(path) == 0


def stale(path: str) -> None:
    """A socket's file without a listener, as SIGKILL leaves it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(path)
        s.listen()


def names(path: str) -> list[str]:
    return sorted(os.listdir(os.path.dirname(path)))


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# -- bind --------------------------------------------------------------------------------------------------------------


def test_it_listens_and_close_leaves_nothing(path: str) -> None:
    listener = bind(path, 0o660, None)
    assert connects(path)
    assert not listener.socket.getblocking()
    listener.close()
    assert names(path) == []


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666, 0o640, 0o777, 0o000])
@pytest.mark.usefixtures("wide_umask")
def test_mode_and_umask(path: str, mode: int) -> None:
    """The mode is as asked whatever the umask, and the umask is afterwards as it was."""
    listener = bind(path, mode, None)
    assert mode_of(path) == mode
    assert os.umask(0) == 0
    listener.close()


@pytest.mark.usefixtures("wide_umask")
def test_the_mode_is_never_wider_than_asked(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever touches the path meets a mode within the one asked for, and nobody can connect before it is final."""
    seen = []

    def watched(function):
        def call(*args):
            seen.append((mode_of(path), connects(path)))
            function(*args)
            seen.append((mode_of(path), connects(path)))

        return call

    monkeypatch.setattr(listen.os, "chown", watched(os.chown))
    monkeypatch.setattr(listen.os, "chmod", watched(os.chmod))
    bind(path, 0o660, str(os.getgid())).close()
    assert seen == [(0o600, False)] * 3 + [(0o660, False)]


def test_the_group_by_name_and_by_number(path: str) -> None:
    import grp

    gid = os.getgid()
    for group in (str(gid), grp.getgrgid(gid).gr_name):
        listener = bind(path, 0o660, group)
        assert os.stat(path).st_gid == gid
        listener.close()


@pytest.mark.parametrize("group", ["no-such-group", "", "-1", "4294967295", "9" * 30, "9" * 5000, "²", "1.5"])
def test_a_group_that_is_none_is_refused(path: str, group: str) -> None:
    error = refusal(path, group=group)
    assert "group" in error.message
    assert len(error.message) < 300
    assert names(path) == []


def test_a_stale_socket_is_replaced(path: str) -> None:
    stale(path)
    listener = bind(path, 0o660, None)
    assert connects(path)
    assert mode_of(path) == 0o660
    listener.close()


def test_our_own_live_socket_is_not_stolen(path: str) -> None:
    first = bind(path, 0o660, None)
    inode = os.stat(path).st_ino
    error = refusal(path)
    assert (error.reason, "in use" in error.message) == ("in-use", True)
    assert os.stat(path).st_ino == inode
    assert connects(path)
    first.close()
    bind(path, 0o660, None).close()


@pytest.mark.parametrize("backlog", [0, 1, 128])
def test_a_strangers_live_socket_is_not_stolen(path: str, backlog: int) -> None:
    """Not even one whose backlog is full."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(path)
        s.listen(backlog)
        waiting = []
        for _ in range(backlog + 1 if backlog < 2 else 0):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.setblocking(False)
            client.connect_ex(path)
            waiting.append(client)
        inode = os.stat(path).st_ino
        assert refusal(path).reason == "in-use"
        assert os.stat(path).st_ino == inode
        for client in waiting:
            client.close()
    assert names(path) == ["fkd.sock"]


def test_a_datagram_socket_is_left_alone(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        refusal(path)
        assert names(path) == ["fkd.sock"]


@pytest.mark.parametrize("kind", ["file", "folder", "link", "fifo"])
def test_what_is_no_socket_is_left_alone(path: str, kind: str) -> None:
    if kind == "file":
        Path(path).write_text("precious")
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "link":
        os.symlink("/etc/passwd", path)
    else:
        os.mkfifo(path)
    before = os.lstat(path)
    error = refusal(path)
    assert (error.reason, "not a socket" in error.message) == ("not-a-socket", True)
    assert os.lstat(path).st_ino == before.st_ino
    assert names(path) == ["fkd.sock"]


def test_the_longest_path_works_and_a_longer_one_is_a_clear_error(short_folder: Path) -> None:
    longest = str(short_folder / "x").ljust(MAX_PATH, "x")
    listener = bind(longest, 0o660, None)
    assert connects(longest)
    listener.close()
    error = refusal(longest + "x")
    assert "107" in error.message
    assert "108" in error.message
    assert os.listdir(short_folder) == []


def test_the_length_counts_in_bytes(short_folder: Path) -> None:
    assert "107" in refusal(str(short_folder / ("é" * 50))).message


def test_a_folder_that_is_absent_or_a_file_is_a_clear_error(short_folder: Path) -> None:
    assert str(short_folder / "no") in refusal(str(short_folder / "no" / "fkd.sock")).message
    (short_folder / "file").write_text("")
    assert str(short_folder / "file") in refusal(str(short_folder / "file" / "fkd.sock")).message


def test_a_folder_where_everyone_may_replace_files_is_refused(short_folder: Path) -> None:
    short_folder.chmod(0o777)
    assert "0777" in refusal(str(short_folder / "fkd.sock")).message
    short_folder.chmod(0o1777)
    bind(str(short_folder / "fkd.sock"), 0o660, None).close()


def test_a_relative_path_is_taken_from_the_working_folder(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(short_folder)
    listener = bind("fkd.sock", 0o660, None)
    assert connects(str(short_folder / "fkd.sock"))
    listener.close()
    assert os.listdir(short_folder) == []


def test_a_failure_half_way_leaves_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(listen.os, "chown", refuse)
    assert "Operation not permitted" in refusal(path, group=str(os.getgid())).message
    assert names(path) == []
    monkeypatch.undo()
    bind(path, 0o660, None).close()


# -- close -------------------------------------------------------------------------------------------------------------


def test_a_path_that_someone_else_has_taken_is_not_removed(path: str) -> None:
    listener = bind(path, 0o660, None)
    os.unlink(path)
    stale(path)
    listener.close()
    assert names(path) == ["fkd.sock"]


def test_a_path_that_is_gone_already_does_not_matter(path: str) -> None:
    listener = bind(path, 0o660, None)
    os.unlink(path)
    listener.close()
    assert names(path) == []


def test_a_lock_that_was_left_behind_does_not_keep_anyone_out(path: str) -> None:
    Path(path + ".lock").write_text("")
    listener = bind(path, 0o660, None)
    listener.close()
    assert names(path) == []


def test_a_lock_that_is_a_link_is_not_followed(path: str, tmp_path: Path) -> None:
    os.symlink(tmp_path / "target", path + ".lock")
    refusal(path)
    assert not (tmp_path / "target").exists()


# -- adopt -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch):
    """Passes a socket as systemd does, but at another descriptor than 3, which may be in use here."""

    def pass_on(sock: socket.socket) -> None:
        monkeypatch.setattr(listen, "FIRST_FD", os.dup(sock.fileno()))

    return pass_on


def environ(**changes: str) -> dict[str, str]:
    return {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": "fkd.socket", "HOME": "/", **changes}


@pytest.fixture
def listening(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(path)
        s.listen()
        yield s


def test_a_passed_socket_is_adopted_and_never_unlinked(path: str, listening: socket.socket, passed) -> None:
    given = environ()
    passed(listening)
    adopted = adopt(given)
    assert isinstance(adopted, Listener)
    assert adopted.path == path
    assert not os.get_inheritable(adopted.socket.fileno())
    adopted.close()
    assert given == {"HOME": "/"}  # children must not take the socket for theirs
    assert connects(path)
    assert names(path) == ["fkd.sock"]


def test_an_abstract_socket_is_adopted(passed) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(f"\0fkd-test-{os.getpid()}")
        s.listen()
        passed(s)
        adopted = adopt(environ())
        assert adopted is not None
        assert adopted.path == f"@fkd-test-{os.getpid()}"
        adopted.close()


@pytest.mark.parametrize(
    "changes",
    [{"LISTEN_PID": "1"}, {"LISTEN_PID": ""}, {"LISTEN_PID": "abc"}, {"LISTEN_FDS": "0"}, {"LISTEN_FDS": ""}, {"LISTEN_FDS": "abc"}, {"LISTEN_FDS": "-1"}],
)
def test_sockets_of_others_or_none_are_ignored(changes: dict[str, str]) -> None:
    given = environ(**changes)
    assert adopt(given) is None
    assert given == {"HOME": "/"}


@pytest.mark.parametrize("count", ["2", "17", "²", "9" * 5000])
def test_more_than_one_socket_is_a_clear_error(count: str) -> None:
    with pytest.raises(ListenError, match="socket"):
        adopt(environ(LISTEN_FDS=count))


def test_a_descriptor_that_is_not_open_is_a_clear_error(listening: socket.socket, passed) -> None:
    passed(listening)
    os.close(listen.FIRST_FD)
    with pytest.raises(ListenError, match=str(listen.FIRST_FD)):
        adopt(environ())


def test_a_descriptor_that_is_no_socket_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "file").open("w") as file:
        monkeypatch.setattr(listen, "FIRST_FD", file.fileno())
        with pytest.raises(ListenError, match="no socket"):
            adopt(environ())


@pytest.mark.parametrize("kind", ["datagram", "not listening", "inet"])
def test_a_socket_that_cannot_be_served_is_a_clear_error(kind: str, path: str, passed) -> None:
    family = socket.AF_INET if kind == "inet" else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM) as s:
        s.bind(("127.0.0.1", 0) if kind == "inet" else path)
        if kind == "inet":
            s.listen()
        passed(s)
        with pytest.raises(ListenError, match="stream"):
            adopt(environ())
