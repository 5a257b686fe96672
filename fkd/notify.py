"""What systemd wants to hear: ready, reloading, stopping, status, and that the loop still turns.

Source: sd_notify(3), sd_watchdog_enabled(3). Without NOTIFY_SOCKET every call is silent.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping

log = logging.getLogger("fkd")

MAX_LINE = 1000  # characters: far below what a datagram holds, far above what a status needs


class Notifier:
    """One datagram a message; sending never blocks and never raises."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._socket: socket.socket | None = None
        self._address = ""
        address = environ.get("NOTIFY_SOCKET", "")
        if address[:1] in ("/", "@") and len(os.fsencode(address)) <= 107:
            # "@" is how the environment writes the NUL byte of an abstract address
            self._address = "\0" + address[1:] if address[0] == "@" else address
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)
        elif address:
            log.warning("NOTIFY_SOCKET=%r is neither an absolute path nor an abstract name; ignored", address)
        self.watchdog = watchdog_interval(environ) if self._socket else None

    def send(self, *lines: str) -> None:
        """Send one message of these lines, e.g. "READY=1", "STATUS=serving".

        Each stays one line, whatever a robot or a file is called: what follows a newline would be an order to systemd.
        """
        if self._socket is None:
            return
        message = "\n".join(" ".join(line.split())[:MAX_LINE] for line in lines)
        try:
            self._socket.sendto(message.encode(errors="replace"), self._address)
        except OSError as e:
            log.debug("systemd was not told %s: %s", lines[0], e)

    def ready(self, status: str) -> None:
        self.send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", "STATUS=reloading")

    def stopping(self) -> None:
        self.send("STOPPING=1", "STATUS=stopping")

    def alive(self) -> None:
        self.send("WATCHDOG=1")


def watchdog_interval(environ: Mapping[str, str]) -> float | None:
    """Seconds between two signs of life: half of WATCHDOG_USEC; None if it is not asked of this process."""
    text = environ.get("WATCHDOG_USEC", "")
    pid = environ.get("WATCHDOG_PID", "")
    if pid and pid != str(os.getpid()):
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) > 0):
        if text not in ("", "0"):
            log.warning("WATCHDOG_USEC=%.40r is not a number of microseconds; no watchdog", text)
        return None
    return int(text) / 2e6
