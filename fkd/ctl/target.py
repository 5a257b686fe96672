"""Who answers fkctl: a daemon on its socket, or a model file in this process. Both give the wire's own bytes."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from fkd.ctl import text
from fkd.ctl.main import NoDaemon, UsageError
from fkd.errors import FkdError

_HEAD = b'{"jsonrpc":"2.0","result":'
_TAIL = b',"id":1}'
MAX_REPLY = 256 << 20
PATIENCE = 5.0  # seconds that a daemon may take to answer, where the user does not say
T = TypeVar("T")


class Answer(FkdError):
    """An error that the daemon answered."""


class Target(Protocol):
    """Whoever answers."""

    def ask(self, method: str, params: Any) -> bytes:
        """Run one method -> its result's JSON. Raises FkdError, or NoDaemon."""


def target(options: argparse.Namespace) -> Target:
    """The model that --model names, else the daemon."""
    if options.model and options.socket:
        raise UsageError("--socket and --model exclude each other: ask the daemon or the file")
    return Local(options.model) if options.model else Live(socket_path(options.socket), options.timeout or PATIENCE)


def tell(options: argparse.Namespace, method: str, params: Any, show: Callable[[Any], None]) -> int:
    """Ask one method, and show its result: the wire's bytes for --json, else as `show` prints it -> exit status."""
    answer = target(options).ask(method, params)
    if options.json:
        text.raw(answer)
    else:
        read(answer, method, show)
    return 0


def read(answer: bytes, method: str, use: Callable[[Any], T]) -> T:
    """What `use` makes of a result. Raises FkdError where it has another shape than this version of fkd gives it."""
    try:
        return use(json.loads(answer))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as e:
        raise FkdError(
            f"cannot make sense of the result of {method} ({type(e).__name__}: {e}); does another version of fkd, "
            "or another program, answer at the socket?"
        ) from e


def dumps(params: Any) -> bytes:
    """Parameters as JSON. Raises UsageError for what JSON cannot say."""
    try:
        return json.dumps(params, allow_nan=False).encode()
    except ValueError:
        raise UsageError("the parameters hold a number that JSON does not have (NaN, or beyond a double)") from None
    except RecursionError:
        raise UsageError("the parameters are nested too deep") from None


def socket_path(given: str | None) -> str:
    from fkd.address import default_socket

    return given or default_socket(os.environ)


class Local:
    """A robot loaded from a file, asked through the same dispatch as over the wire."""

    def __init__(self, path: str) -> None:
        from fkd.dispatch import serving  # the kernels are wanted only here
        from fkd.robot import load
        from fkd.service import Session

        self.robot = load(path)
        self._session = Session(serving(self.robot))

    def ask(self, method: str, params: Any) -> bytes:
        from msgspec import Raw

        from fkd.dispatch import run

        return run(self._session, method, Raw(dumps(params)))


class Live:
    """A daemon, asked on a connection for each call."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    def ask(self, method: str, params: Any) -> bytes:
        request = b'{"jsonrpc":"2.0","method":%b,"params":%b,"id":1}\n' % (dumps(method), dumps(params))
        line = self._exchange(request)
        if line.startswith(_HEAD) and line.endswith(_TAIL):
            return line[len(_HEAD) : -len(_TAIL)]
        raise _answer_error(line) or FkdError(
            f"{self.path} answered something that is not fkd's: {line[:80].decode(errors='backslashreplace')!r}; "
            "is it another program's socket?"
        )

    def _exchange(self, request: bytes) -> bytes:
        """One line out, one line back, within the timeout."""
        deadline = time.monotonic() + self.timeout
        with self._connected() as s:
            try:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # why it hung up is still to be read
                    s.sendall(request)
                return self._line(s, deadline)
            except TimeoutError:
                raise FkdError(f"no answer from {self.path} within {self.timeout:g} s; --timeout S waits longer") from None
            except OSError as e:
                raise FkdError(f"the connection to {self.path} broke: {e.strerror or e}") from None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        with self._connect() as s:
            yield s

    def _connect(self) -> socket.socket:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(self.timeout)
        try:
            s.connect(self.path)
        except OSError as e:
            s.close()
            raise _no_daemon(self.path, e) from None
        return s

    def _line(self, s: socket.socket, deadline: float) -> bytes:
        reply = bytearray()
        while not reply.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0.0:
                raise TimeoutError
            s.settimeout(left)
            part = s.recv(1 << 16)
            if not part:
                raise FkdError(f"{self.path} closed the connection without an answer; is it fkd's socket?")
            reply += part
            if len(reply) > MAX_REPLY:
                raise FkdError(f"the answer from {self.path} is over {MAX_REPLY >> 20} MiB; is it fkd's socket?")
        return bytes(reply[:-1])


class Kept(Live):
    """A daemon, asked again and again on one connection."""

    _socket: socket.socket | None = None

    def ask(self, method: str, params: Any) -> bytes:
        """As any target's; where the connection has broken since the last answer, on a new one."""
        kept = self._socket is not None
        try:
            return super().ask(method, params)
        except Answer:
            raise
        except FkdError:
            if not kept:
                raise
            return super().ask(method, params)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        self._socket = s = self._socket or self._connect()
        s.settimeout(self.timeout)
        try:
            yield s
        except BaseException:
            self.close()  # a late answer must not be taken for the next one's
            raise

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _no_daemon(path: str, e: OSError) -> NoDaemon:
    why = {
        errno.ENOENT: "there is no such socket",
        errno.ECONNREFUSED: "nobody listens there",
        errno.EAGAIN: "more callers wait there than it takes",
        errno.EACCES: "you may not connect to it (its mode or group)",
    }.get(e.errno or 0, e.strerror or str(e))
    return NoDaemon(f"no daemon at {path}: {why}; start one with `fkd BUNDLE`, name another with --socket, or ask a file with --model")


def _answer_error(line: bytes) -> Answer | None:
    """A reply that holds the wire's error object -> an exception with its code and data; None for anything else."""
    try:
        error = json.loads(line)["error"]
        code, message, data = error["code"], error["message"], error.get("data") or {}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(code, int) or not isinstance(message, str) or not isinstance(data, dict):
        return None
    found = Answer(message, reason=str(data.get("reason", "")))
    found.code, found.data = code, data  # type: ignore[misc]
    return found
