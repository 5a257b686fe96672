"""Who answers fkctl: a daemon on its socket, or a model file in this process. Both give the wire's own bytes."""

from __future__ import annotations

import argparse
import errno
import json
import os
import socket
import time
from typing import Any, Protocol

from fkd.ctl.main import NoDaemon
from fkd.errors import FkdError

_HEAD = b'{"jsonrpc":"2.0","result":'
_TAIL = b',"id":1}'
MAX_REPLY = 256 << 20


class Answer(FkdError):
    """An error that the daemon answered."""


class Target(Protocol):
    def ask(self, method: str, params: Any) -> bytes:
        """Run one method -> its result's JSON. Raises FkdError, or NoDaemon."""


def target(options: argparse.Namespace) -> Target:
    """The model that --model names, else the daemon."""
    return Local(options.model) if options.model else Live(socket_path(options.socket), options.timeout)


def result(options: argparse.Namespace, method: str, params: Any) -> Any:
    """One method's result as Python values."""
    return json.loads(target(options).ask(method, params))


def socket_path(given: str | None) -> str:
    from fkd.address import default_socket

    return given or default_socket(os.environ)


class Local:
    """A robot loaded from a file, asked through the same dispatch as over the wire."""

    def __init__(self, path: str) -> None:
        from fkd.dispatch import Service  # the kernels are wanted only here
        from fkd.robot import load

        self._service = Service(load(path))

    def ask(self, method: str, params: Any) -> bytes:
        from msgspec import Raw

        return self._service.call(method, Raw(json.dumps(params).encode()))


class Live:
    """A daemon, asked once."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    def ask(self, method: str, params: Any) -> bytes:
        request = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}, allow_nan=False)
        line = self._exchange(request.encode() + b"\n")
        if line.startswith(_HEAD) and line.endswith(_TAIL):
            return line[len(_HEAD) : -len(_TAIL)]
        try:
            error = json.loads(line)["error"]
            raise answer_error(error)
        except (ValueError, KeyError, TypeError):
            raise FkdError(f"{self.path} answered something that is not fkd's: {line[:80]!r}") from None

    def _exchange(self, request: bytes) -> bytes:
        """One line out, one line back, within the timeout."""
        deadline = time.monotonic() + self.timeout
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(self.timeout)
            try:
                s.connect(self.path)
                s.sendall(request)
                parts: list[bytes] = []
                while not parts or not parts[-1].endswith(b"\n"):
                    s.settimeout(max(deadline - time.monotonic(), 1e-3))
                    part = s.recv(1 << 16)
                    if not part:
                        raise FkdError(f"the daemon at {self.path} closed the connection without an answer")
                    parts.append(part)
                    if time.monotonic() > deadline:
                        raise TimeoutError
            except TimeoutError:
                raise FkdError(f"no answer from {self.path} within {self.timeout:g} s") from None
            except OSError as e:
                raise _no_daemon(self.path, e) from None
        return b"".join(parts)[:-1]


def _no_daemon(path: str, e: OSError) -> NoDaemon:
    why = {
        errno.ENOENT: "there is no such socket",
        errno.ECONNREFUSED: "nobody listens there",
        errno.EACCES: "you may not connect to it (its mode or group)",
    }.get(e.errno or 0, e.strerror or str(e))
    return NoDaemon(f"no daemon at {path}: {why}; start one with `fkd BUNDLE`, name another with --socket, or ask a file with --model")


def answer_error(error: dict[str, Any]) -> Answer:
    """The wire's error object -> an exception with its code and data."""
    data = dict(error.get("data") or {})
    found = Answer(str(error["message"]), reason=str(data.pop("reason", "")), **data)
    found.code = error["code"]  # type: ignore[misc]
    return found
