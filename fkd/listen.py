"""The listening socket: made with the right mode and owner, or taken over from systemd. Never steals a live one."""

from __future__ import annotations

import errno
import fcntl
import grp
import os
import socket
import stat
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from fkd.errors import FkdError

MAX_PATH = 107  # bytes; sun_path of sockaddr_un holds 108 with its NUL (unix(7))
BACKLOG = 1024
NO_GID = (1 << 32) - 1  # means "leave it as it is" to chown(2)
FIRST_FD = 3  # where systemd passes sockets (sd_listen_fds(3))


class ListenError(FkdError):
    """The socket cannot be served; the message says why."""

    default_reason = "socket"


class Listener:
    """A listening socket, and how to leave its path behind."""

    def __init__(self, sock: socket.socket, path: str, lock: int | None = None) -> None:
        self.socket = sock
        self.path = path
        self._lock = lock
        self._inode = os.stat(path).st_ino if lock is not None else 0

    def close(self) -> None:
        """Stop listening. Our own path is removed, unless someone has put another there; systemd's never is."""
        if self._lock is not None:
            with suppress(OSError):
                if os.stat(self.path).st_ino == self._inode:  # before the close, which would free the number for others
                    os.unlink(self.path)
            _release(self.path, self._lock)
        self.socket.close()


def adopt(environ: MutableMapping[str, str]) -> Listener | None:
    """The socket that systemd passed, or None. Source: sd_listen_fds(3)."""
    count, pid = environ.pop("LISTEN_FDS", ""), environ.pop("LISTEN_PID", "")
    environ.pop("LISTEN_FDNAMES", None)
    if not count.isdigit() or count == "0" or pid != str(os.getpid()):
        return None
    if count != "1":
        raise ListenError(f"systemd passed {count:.20} sockets; fkd takes one (one ListenStream= in the .socket unit)")
    try:
        os.set_inheritable(FIRST_FD, False)
        sock = socket.socket(fileno=FIRST_FD)
        ready = sock.family == socket.AF_UNIX and sock.type == socket.SOCK_STREAM
        ready = ready and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    except OSError as e:
        raise ListenError(f"file descriptor {FIRST_FD} from systemd is no socket: {e.strerror}") from None
    if not ready:
        raise ListenError("the socket from systemd is not a listening AF_UNIX stream socket (ListenStream=/path)")
    sock.setblocking(False)
    name = sock.getsockname()
    # An abstract name comes as bytes that begin with NUL, which people write as @.
    return Listener(sock, f"@{name[1:].decode(errors='replace')}" if isinstance(name, bytes) else name)


def bind(path: str, mode: int, group: str | None) -> Listener:
    """Make the socket at `path` and listen. Its mode and group are right before anyone can connect.

    A stale socket is replaced; a live one, or anything that is not a socket, is left alone.
    Raises ListenError.
    """
    gid = None if group is None else group_id(group)
    _check_path(path)
    lock = _lock(path)
    try:
        _clear(path)
        sock = _make(path, mode, gid)
    except OSError as e:
        _release(path, lock)
        raise ListenError(f"cannot listen on {path}: {e.strerror}") from None
    except ListenError:
        _release(path, lock)
        raise
    return Listener(sock, path, lock)


def _make(path: str, mode: int, gid: int | None) -> socket.socket:
    """The listening socket; nothing is left of it if that fails."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    before = os.umask(0o777 & ~(mode & 0o600))  # no other thread runs yet; nobody but us may connect until it is done
    try:
        sock.bind(path)
    finally:
        os.umask(before)
    try:
        if gid is not None:
            os.chown(path, -1, gid)
        os.chmod(path, mode)
        sock.listen(BACKLOG)
    except OSError:
        os.unlink(path)
        raise
    return sock


def group_id(group: str) -> int:
    """A group's number from its name or number. Raises ListenError."""
    if group.isascii() and group.isdigit() and len(group) <= 10 and int(group) < NO_GID:
        return int(group)
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise ListenError(f"there is no group `{group:.80}` on this machine") from None


def _check_path(path: str) -> None:
    size = len(os.fsencode(path))
    if size > MAX_PATH:
        raise ListenError(f"the socket path is {size} bytes long; Unix sockets allow {MAX_PATH}: {path}")
    folder = Path(path).absolute().parent
    try:
        found = os.stat(folder)
    except OSError as e:
        raise ListenError(f"the socket's folder {folder} cannot be used: {e.strerror}; make it, or choose another with --socket") from None
    if not stat.S_ISDIR(found.st_mode):
        raise ListenError(f"{folder} is not a folder")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise ListenError(f"everyone may replace files in {folder} (mode {stat.S_IMODE(found.st_mode):04o}); choose a safer folder")


def _lock_path(path: str) -> str:
    return path + ".lock"


def _lock(path: str) -> int:
    """Hold PATH.lock for as long as the daemon lives: of two starts at once, exactly one goes on."""
    name = _lock_path(path)
    while True:
        try:
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as e:
            raise ListenError(f"cannot make {name}: {e.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise ListenError(f"{path} is in use by another fkd; stop it, or choose another path with --socket", reason="in-use") from None
        try:
            if os.stat(name).st_ino == os.fstat(lock).st_ino:
                return lock
        except FileNotFoundError:
            pass
        os.close(lock)  # the one who held it has just removed it: what we hold is no longer there for others


def _release(path: str, lock: int) -> None:
    """Give the lock back. Its file goes while it is still held, so that nobody can hold a removed lock unawares."""
    with suppress(OSError):
        os.unlink(_lock_path(path))
    os.close(lock)


def _clear(path: str) -> None:
    """Remove a stale socket; refuse a live one and anything else."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ListenError(f"{path} exists and is not a socket; it is left alone", reason="not-a-socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a live server with a full backlog says EAGAIN
        code = probe.connect_ex(path)
    if code == errno.ECONNREFUSED:
        os.unlink(path)
    elif code in (0, errno.EAGAIN):
        raise ListenError(f"{path} is in use: something listens there", reason="in-use")
    elif code != errno.ENOENT:
        raise ListenError(f"{path} may be in use, it cannot be told: {os.strerror(code)}; it is left alone", reason="in-use")
