"""The blocking client: one connection, one call at a time."""

from __future__ import annotations

import itertools
import os
import select
import socket
import threading
import weakref
from collections.abc import Mapping, Sequence
from time import monotonic, sleep
from typing import Any, Self, Unpack

from fkclient import messages
from fkclient.address import FIRST_PAUSE, LONGEST_PAUSE, connect, log_ignored, socket_path, timeout_seconds
from fkclient.arguments import q_bytes
from fkclient.errors import ConnectionLost, Timeout
from fkclient.messages import FK, Call
from fkclient.options import DecomposeOptions, DhOptions, FkOptions, IkOptions, JacobianOptions
from fkclient.replies import MAX_REPLY, Lines, Reply, envelope

_CHUNK = 1 << 16  # bytes asked of one recv; nearly every reply fits
_NO_SIGNAL = int(socket.MSG_NOSIGNAL)  # EPIPE, not SIGPIPE, which some programs let kill them

_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _in_forked_child() -> None:
    for client in list(_clients):
        client._forget()


os.register_at_fork(after_in_child=_in_forked_child)


class Client:
    """Asks the daemon at `path` and waits for the answer.

    path: the daemon's socket; default: $FKD_SOCKET, else fkd.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /run/fkd.
    timeout: seconds, for each call as a whole; may be changed at any time (`client.timeout = 60`).
    expect_digest: the model this client is bound to; every connection is pinned to it before its first call.
    max_reply: bytes; a longer reply is refused with BadReply.

    It connects at the first call, and again after a loss. A call whose connection ends before the answer is sent once
    more on a new one, because calls change nothing. Threads may share a client (their calls take turns, and the wait
    counts against the timeout); a forked child opens its own connection. A closed client may be used again: its next
    call opens a connection.

    Lengths are in metres, angles in radians. Every verb raises BadValue (an argument that must not be sent), NoDaemon,
    Timeout, ConnectionLost, BadReply, or RpcError (the daemon's own error; ModelChanged if it serves another model).
    """

    _socket: socket.socket | None = None

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 1.0,
        expect_digest: str | None = None,
        max_reply: int = MAX_REPLY,
    ) -> None:
        self.path = socket_path(path)
        self.timeout = timeout_seconds(timeout)
        self._digest = expect_digest
        self._max_reply = max_reply
        self._ids = itertools.count(1)  # never used twice, so that an answer cannot be taken for another's
        self._lock = threading.Lock()
        _clients.add(self)

    # -- the verbs ------------------------------------------------------------------------------------------------

    def fk(self, q: Any, **options: Unpack[FkOptions]) -> Any:
        """The pose of the tip, or of `links`, in the base.

        q: (dof,) rad or m, in model order, or {joint: value}.
        A list and no option: 16 numbers, row-major, base <- tip, by the fastest way. Else {link: pose}, or the pose
        alone for one link given by its name, or with `stamp` the wire's whole result.
        A NumPy array as q: (4, 4) arrays in place of lists, and one such array alone if no links are named.
        """
        if type(q) is list and not options:
            return self._ask(FK, q_bytes(q))
        return self._ask(messages.fk(q, options))

    def fk_batch(self, q: Any, **options: Unpack[FkOptions]) -> Any:
        """The poses of many configurations: {link: [pose, ...]}, or the list alone for one link given by its name.

        q: (n, dof) rad or m. A NumPy array as q: (n, 4, 4) arrays in place of lists.
        """
        return self._ask(messages.fk(q, options, batch=True))

    def decompose(self, q: Any = None, **options: Unpack[DecomposeOptions]) -> dict[str, Any]:
        """A pose as xyz, rpy, rpy_alt, gimbal_lock, quaternion, axis_angle and matrix.

        q: (dof,) rad or m, of which the tip's pose (or that of `link`) is taken; or else `matrix`, or else `pose`.
        """
        return self._dict(messages.decompose(q, options))

    def jacobian(self, q: Any, **options: Unpack[JacobianOptions]) -> Any:
        """The geometric Jacobian at the tip, (6, dof), rows linear then angular, expressed in the base.

        q: (dof,) rad or m. Without options the rows alone; else {"jacobian", "joints", "manipulability", ...}.
        """
        return self._ask(messages.jacobian(q, options))

    def ik(self, pose: Any, **options: Unpack[IkOptions]) -> dict[str, Any]:
        """Joint values that take the tip to `pose`: {"solutions": [{"q", ...}], "method", "iterations", "restarts"}.

        pose: 16 numbers, (4, 4), or {"xyz", "quaternion" or "rpy"}; metres, radians, base <- tip.
        Raises RpcError -32010 if there is none, with the nearest pose found in its data.
        """
        return self._dict(messages.ik(pose, options))

    def dh(self, **options: Unpack[DhOptions]) -> dict[str, Any]:
        """The Denavit-Hartenberg table: {"convention", "rows", "base", "tool", "residual"}."""
        return self._dict(messages.dh(options))

    def model(self) -> dict[str, Any]:
        """The loaded model: name, digest, generation, root, tip, links, joints, dof."""
        return self._dict(messages.plain("model"))

    def status(self) -> dict[str, Any]:
        """The daemon's health."""
        return self._dict(messages.plain("status"))

    def ping(self) -> str:
        """The daemon's "pong"."""
        return str(self._ask(messages.plain("ping")))

    def call(self, method: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """Any method of the wire, with params by position or by name; the raw result.

        `pin` binds this client, not just its present connection: later ones are pinned to the same digest.
        """
        call = messages.call(method, params)
        if method == "pin":
            self._digest = messages.pinned_digest(params)
        return self._ask(call)

    def close(self) -> None:
        """Close the connection, once a call under way in another thread has ended."""
        self._wait_for_turn(monotonic() + self.timeout)
        self._drop()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._socket is not None:
            self._socket.close()

    # -- one call -------------------------------------------------------------------------------------------------

    def _dict(self, call: Call) -> dict[str, Any]:
        result: dict[str, Any] = self._ask(call)
        return result

    def _ask(self, call: Call, params: bytes = b"") -> Any:
        deadline = monotonic() + self.timeout
        if not self._lock.acquire(False):
            self._wait_for_turn(deadline)
        try:
            try:
                if self._socket is None:
                    self._connect(deadline)
                reply = self._exchange(call, params, deadline)
            except ConnectionLost:
                self._drop()
                self._connect(deadline)
                reply = self._exchange(call, params, deadline)
        except BaseException:  # KeyboardInterrupt too: what this connection still owes must not meet the next call
            self._drop()
            raise
        finally:
            self._lock.release()
        if reply.error is None and call.read is None and reply.result:
            return reply.result  # as `answer` would
        return call.answer(reply)

    def _wait_for_turn(self, deadline: float) -> None:
        if not self._lock.acquire(timeout=max(0.0, deadline - monotonic())):
            raise Timeout(f"another call of this client was still under way after {self.timeout:g} s")

    def _connect(self, deadline: float) -> None:
        pause = FIRST_PAUSE
        while (sock := connect(self.path)) is None:
            left = deadline - monotonic()
            if left <= 0:
                raise Timeout(f"the daemon at {self.path} took no connection within {self.timeout:g} s; is it stuck?")
            sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE)
        self._socket = sock
        self._lines = Lines(self._max_reply)
        # A poll before each recv, where SO_RCVTIMEO would save a system call: the kernel starts that clock anew after
        # every signal, so that in a process with an interval timer a call might never end.
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)
        if self._digest is not None:
            pin = messages.pin(self._digest)
            pin.answer(self._exchange(pin, b"", deadline))

    def _exchange(self, call: Call, params: bytes, deadline: float) -> Reply[Any]:
        sock = self._socket
        assert sock is not None
        ident = next(self._ids)
        data = call.request(ident, params)
        try:
            sent = sock.send(data, _NO_SIGNAL)
        except OSError:
            sent = 0
        if sent != len(data):
            self._send(sock, memoryview(data)[sent:], deadline)
        while True:
            left = deadline - monotonic()
            if left <= 0 or not self._readable.poll(left * 1000):
                raise Timeout(f"no reply from the daemon at {self.path} within {self.timeout:g} s")
            try:
                data = sock.recv(_CHUNK)
            except BlockingIOError:
                continue
            except OSError as e:
                raise ConnectionLost(f"the connection to {self.path} was lost: {e}") from e
            if not data:
                raise ConnectionLost(f"the daemon at {self.path} closed the connection before its reply was complete")
            if not self._lines.size and data.endswith(b"\n"):
                try:  # nearly always it is one whole reply, and the one awaited: then this is all
                    reply = call.decoder.decode(data)
                    if reply.id == ident:
                        return reply
                except (ValueError, RecursionError):
                    pass  # several in one piece, or a bad one: look which
            for line in self._lines.feed(data):
                found = envelope(line)
                if found.id == ident:
                    return call.decode(line)
                if found.id is None:
                    raise found.unaddressed()
                log_ignored(self.path, found.id)

    def _send(self, sock: socket.socket, rest: memoryview, deadline: float) -> None:
        writable = select.poll()
        writable.register(sock, select.POLLOUT)
        while rest:
            left = deadline - monotonic()
            if left <= 0 or not writable.poll(left * 1000):
                raise Timeout(f"the daemon at {self.path} did not read the request within {self.timeout:g} s")
            try:
                rest = rest[sock.send(rest, _NO_SIGNAL) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return  # the daemon may have said why before it closed; if not, reading finds the end
            except OSError as e:
                raise ConnectionLost(f"the connection to {self.path} was lost: {e}") from e

    def _drop(self) -> None:
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()

    def _forget(self) -> None:
        """In a forked child: closing its copy of the socket leaves the parent's open; the lock may be held for ever."""
        self._drop()
        self._lock = threading.Lock()
