"""demo: pack the built-in arm, serve it on a private socket, ask it in two ways, stop it."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from fkd.ctl import main as ctl
from fkd.ctl import text
from fkd.errors import FkdError

Q = ["0.3", "-0.4", "0.8", "0.0", "0.5", "-1.2"]
ROUNDS = 2000
START_SECONDS, STOP_SECONDS = 30.0, 10.0


def add_demo(p: argparse.ArgumentParser) -> None:
    p.epilog = "examples:\n  fkctl demo"
    p.set_defaults(run=demo)


def demo(_options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="fkd-demo") as folder:
        urdf, bundle, path = (str(Path(folder, name)) for name in ("arm.urdf", "arm.zip", "fkd.sock"))
        Path(urdf).write_bytes(files("fkd.ctl").joinpath("arm.urdf").read_bytes())
        _step("pack", urdf, "-o", bundle)
        with serving(bundle, path):
            _step("--socket", path, "fk", *Q)
            ask_by_client(path)
    return 0


def _step(*words: str) -> None:
    """One fkctl command, shown and run."""
    text.say(f"\n$ fkctl {' '.join(words)}")
    if ctl.run(list(words)):
        raise FkdError("the demo's own command failed; please report it")


@contextlib.contextmanager
def serving(bundle: str, path: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon on a private socket, up when it says so, stopped on the way out."""
    text.say(f"\n$ fkd --socket {path} {bundle} &")
    sys.stdout.flush()  # before the daemon's own first line
    # The daemon's own readiness message, as systemd would get it: no guessing by the clock.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        try:
            ready.bind(f"{path}.ready")
        except OSError as e:
            raise FkdError(f"cannot make a socket in {os.path.dirname(path)}: {e.strerror or e}; set TMPDIR to a short path") from None
        # Without the caller's settings for a daemon of their own, such as FKD_TIP.
        environ = {k: v for k, v in os.environ.items() if not k.startswith("FKD_")} | {"NOTIFY_SOCKET": f"{path}.ready"}
        daemon = subprocess.Popen([sys.executable, "-m", "fkd", "--socket", path, *arguments, bundle], env=environ)
        try:
            if not _is_ready(ready, daemon):
                raise FkdError("the daemon did not start; its message is above")
            yield daemon
        finally:
            daemon.terminate()
            try:
                daemon.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _is_ready(ready: socket.socket, daemon: subprocess.Popen[bytes]) -> bool:
    """Wait for the daemon's READY, or its end."""
    end = os.pidfd_open(daemon.pid)
    try:
        while ready.fileno() in select.select([ready.fileno(), end], [], [], START_SECONDS)[0]:
            if ready.recv(4096).startswith(b"READY=1"):
                return True
        return False
    finally:
        os.close(end)


def ask_by_client(path: str) -> None:
    """The client library, where it is installed, and the round trip it measures."""
    try:
        from fkclient import Client, FkError
    except ImportError:
        text.say("\n(fkd-client is not installed: no round trip measured)")
        return
    q = [float(x) for x in Q]
    text.say(f'\n>>> fkclient.Client("{path}").fk({q})')
    times = []
    try:
        with Client(path) as client:
            text.say(text.matrix(client.fk(q)))
            for _ in range(ROUNDS):
                start = time.perf_counter()
                client.fk(q)
                times.append(time.perf_counter() - start)
    except FkError as e:
        raise FkdError(f"the client library failed: {e}") from None
    times.sort()
    text.say(f"  round trip from Python: median {times[ROUNDS // 2] * 1e6:.0f} us, p99 {times[ROUNDS * 99 // 100] * 1e6:.0f} us")
