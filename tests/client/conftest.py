"""A daemon of the test's own making: a real Unix socket, on which each connection follows a script."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

POSE = [1.0, 0.0, 0.0, 0.25, 0.0, 1.0, 0.0, -0.5, 0.0, 0.0, 1.0, 1.75, 0.0, 0.0, 0.0, 1.0]


class Peer:
    """The daemon's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._stream = sock.makefile("rb")

    def request(self) -> dict[str, Any] | None:
        """The next request; None at the end of the stream."""
        line = self._stream.readline()
        return json.loads(line) if line else None

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reply(self, ident: object, result: object) -> None:
        self.send(line(ident, result))

    def end(self) -> None:
        """Close; what the client has sent and was not read becomes its ECONNRESET."""
        self._stream.close()
        self.socket.close()


def line(ident: object, result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}).encode() + b"\n"


def error_line(ident: object, code: int, message: str, data: object = None) -> bytes:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}).encode() + b"\n"


def echo(peer: Peer) -> None:
    """Answers each request with its own method and params; compute_fk by position with a pose whose x is q[0]."""
    while (request := peer.request()) is not None:
        params = request.get("params")
        if request["method"] == "compute_fk" and isinstance(params, list):
            peer.reply(request["id"], [*POSE[:3], float(params[0]), *POSE[4:]])
        else:
            peer.reply(request["id"], {"method": request["method"], "params": params})


Script = Callable[[Peer], None]


class FakeDaemon:
    """Listens at `path`; the n-th connection follows the n-th script, further ones the last. Without, accepts none."""

    def __init__(self, path: str, *scripts: Script, backlog: int = 16) -> None:
        self.path = path
        self.connections = 0
        self.faults: list[BaseException] = []
        self._scripts: tuple[Script, ...] = ()
        self._peers: list[Peer] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(backlog)
        if scripts:
            self.follow(*scripts)

    def follow(self, *scripts: Script) -> None:
        """Accept connections from now on."""
        self._scripts = scripts
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            peer = Peer(sock)
            self._peers.append(peer)
            self._start(self._serve, script, peer)

    def _serve(self, script: Script, peer: Peer) -> None:
        try:
            script(peer)
        except (ConnectionError, ValueError, OSError):
            pass  # the client has gone, or the test has ended
        except BaseException as e:
            self.faults.append(e)
        finally:
            peer.end()

    def stop(self) -> None:
        """Take the socket away and end every connection."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        os.unlink(self.path)
        for peer in list(self._peers):
            with contextlib.suppress(OSError):  # it has ended already
                peer.socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


def fill_backlog(path: str) -> list[socket.socket]:
    """Connections that the daemon has not accepted, as many as the kernel keeps for it."""
    fillers: list[socket.socket] = []
    while True:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            sock.connect(path)
        except BlockingIOError:
            sock.close()
            return fillers
        fillers.append(sock)


@pytest.fixture
def path() -> Iterator[str]:
    """A free socket path, short enough whatever the test's name."""
    with tempfile.TemporaryDirectory(prefix="fk") as folder:
        yield os.path.join(folder, "s")


@pytest.fixture
def serve(path: str) -> Iterator[Callable[..., FakeDaemon]]:
    """serve(script, ...) -> the daemon, at the fixture `path`."""
    daemons: list[FakeDaemon] = []

    def start(*scripts: Script, **options: Any) -> FakeDaemon:
        daemons.append(FakeDaemon(path, *scripts, **options))
        return daemons[-1]

    yield start
    for daemon in daemons:
        if daemon._listener.fileno() != -1:
            daemon.stop()
        assert not daemon.faults
