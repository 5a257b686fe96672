"""demo: pack the built-in arm, serve it on a private socket, ask it in three ways, stop it."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
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
    import socket

    text.say(f"\n$ fkd --socket {path} {bundle} &")
    # The daemon's own readiness message, as systemd would get it: no guessing by the clock.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind(f"{path}.ready")
        ready.settimeout(30.0)
        environ = {**os.environ, "NOTIFY_SOCKET": f"{path}.ready"}
        command = [sys.executable, "-m", "fkd", "--socket", path, *arguments, bundle]
        daemon = subprocess.Popen(command, env=environ)
        try:
            if not ready.recv(4096).startswith(b"READY=1"):
                raise FkdError("the daemon did not start; its message is above")
            yield daemon
        except TimeoutError:
            raise FkdError("the daemon did not start within 30 s") from None
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(10)


def ask_by_client(path: str) -> None:
    """The client library, where it is installed, and the round trip it measures."""
    try:
        from fkclient import Client
    except ImportError:
        text.say("\n(fkd-client is not installed: no round trip measured)")
        return
    q = [float(x) for x in Q]
    text.say(f'\n>>> fkclient.Client("{path}").fk({q})')
    with Client(path) as client:
        T = client.fk(q)
        text.say(text.matrix(T))
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            client.fk(q)
            times.append(time.perf_counter() - start)
    times.sort()
    text.say(f"  round trip from Python: median {times[ROUNDS // 2] * 1e6:.0f} us, p99 {times[ROUNDS * 99 // 100] * 1e6:.0f} us")
