"""Who is at the other end of a Unix socket, as the kernel says. Source: unix(7), SO_PEERCRED and SO_PEERGROUPS."""

from __future__ import annotations

import errno
import socket
import struct
from typing import NamedTuple, Protocol

SO_PEERGROUPS = 59  # asm-generic/socket.h; Linux 4.13 or newer
MAX_GROUPS = 65536  # NGROUPS_MAX


class Socket(Protocol):
    """What a transport says of its socket is enough."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


class Credentials(NamedTuple):
    """Who is at the other end of a connection."""

    uid: int
    groups: tuple[int, ...]


def credentials(sock: Socket) -> Credentials:
    """The user and groups of the process that made the connection. Raises OSError where the kernel cannot say."""
    _, uid, gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Credentials(uid, (gid, *_supplementary(sock)))


def _supplementary(sock: Socket) -> tuple[int, ...]:
    size = 64 * 4
    while size <= MAX_GROUPS * 4:
        try:
            found = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, size)
        except OSError as e:
            if e.errno != errno.ERANGE:
                return ()  # an old kernel: the process's own group is all that is known
            size *= 8
        else:
            return struct.unpack(f"{len(found) // 4}I", found)
    return ()
