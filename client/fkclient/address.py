"""Where the daemon listens, and one step towards it."""

from __future__ import annotations

import errno
import os
import socket

from fkclient.errors import BadValue, NoDaemon

# While the backlog of a listening Unix socket is full, a non-blocking connect fails with EAGAIN and the kernel offers
# no event to wait for: the only way is to ask again. Seconds; each pause is twice the one before.
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.02

_WHY = {
    errno.ENOENT: "there is no such socket; is fkd running?",
    errno.ECONNREFUSED: "no daemon listens there (a socket left behind, or not a socket)",
    errno.EACCES: "this user may not use it; ask for the group that owns the socket",
    errno.EPROTOTYPE: "it is a socket of another type",
}


def socket_path(path: str | os.PathLike[str] | None) -> str:
    """`path`, else $FKD_SOCKET, else fkd.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /run/fkd."""
    if path is None:
        path = os.environ.get("FKD_SOCKET") or None
    if path is None:
        first = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]  # systemd joins several by colons
        path = os.path.join(first or os.environ.get("XDG_RUNTIME_DIR") or "/run/fkd", "fkd.sock")
    if not isinstance(path, (str, bytes, os.PathLike)) or not (text := os.fsdecode(path)) or "\0" in text:
        raise BadValue(f"path is {path!r}; expected the path of a Unix socket")
    return text


def connect(path: str) -> socket.socket | None:
    """A connected, non-blocking socket; None while the daemon's backlog is full.

    Raises NoDaemon, which says why, when nobody can be reached.
    """
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as e:
        raise NoDaemon(f"cannot open a socket: {e}") from e
    try:
        sock.setblocking(False)
        sock.connect(path)
    except BlockingIOError:
        sock.close()
        return None
    except OSError as e:
        sock.close()
        raise NoDaemon(f"cannot reach a daemon at {path}: {_WHY.get(e.errno or 0, str(e))}") from e
    return sock


def timeout_seconds(timeout: float) -> float:
    """A timeout that poll can hold (its milliseconds are a C int). Raises BadValue for any other."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= 1e6:
        raise BadValue(f"timeout is {timeout!r}; expected seconds, more than 0 and at most 1e6")
    return float(timeout)


def log_ignored(path: str, ident: object) -> None:
    """Note a reply that belongs to no call. Logging is imported here because it would double the import's cost."""
    import logging

    logging.getLogger("fkclient").warning("ignored a reply from %s with id %r: no call waits for it", path, ident)
