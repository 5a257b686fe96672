"""A daemon that is killed, stopped, frozen, reloaded and beset at random, while every answer that it gives is checked.

It runs as under a service manager: its socket is held for it and it is started anew whenever it ends. It fails if an
answer is wrong, a connect refused, a connection's end without a reason, or a daemon's end not asked for. `make chaos`.

    python tests/soak/chaos.py [--seconds 60] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from bank import Bank, request
from clients import CLIENTS
from soak import ARM, confessed, interrupt, settled_files
from stream import Stream
from supervisor import Supervisor
from visitors import limits, visit
from world import World

import fkd
from fkd.errors import BundleRefused
from fkd.load.pack import write_bundle
from fkd.rebuild import LONGEST

VISITING = 3  # at the same time
STORM = 12  # reloads at once, of which nine may wait


class File(NamedTuple):
    """What lies where a bundle should, and what comes of it: a robot's digest, or the reason why not."""

    path: Path
    digest: str | None
    reason: str | None


def bundles(folder: Path) -> list[File]:
    """Two robots, and much that is none."""
    text = ARM.read_bytes()
    good = write_bundle({"arm.urdf": text})
    other = write_bundle({"arm.urdf": text.replace(b'xyz="0 0 0.5"', b'xyz="0 0.125 1.5" rpy="0.1 0 0"')})
    forged = BytesIO()
    with ZipFile(BytesIO(good)) as old, ZipFile(forged, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'"0 0 0.5"', b'"0 0 0.6"'))
    contents = {
        "one.zip": good, "two.zip": other, "truncated.zip": good[: len(good) // 2], "forged.zip": forged.getvalue(), "empty.zip": b"",
        "rootless.zip": write_bundle({"arm.urdf": b"<robot name='r'><link name='a'/><link name='b'/></robot>"}), "noise.zip": b"PK" * 5000,
    }  # fmt: skip
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return [known(folder / name) for name in (*contents, "absent.zip")]


def known(path: Path) -> File:
    try:
        return File(path, fkd.load(path).digest, None)
    except BundleRefused as e:
        return File(path, None, e.reason)


class Havoc:
    """What is done to the daemon itself: one thing after the other, so that what must come of each is known."""

    def __init__(self, world: World, files: list[File], live: Path, rng: random.Random) -> None:
        self._world, self._files, self._live, self._rng = world, files, live, rng
        self._good = [file for file in files if file.digest]
        self._supervisor = world.supervisor
        self._read: dict[int, File] = {}  # what a daemon was told to read by the method, and reads again at a SIGHUP

    def run(self) -> None:
        """One after the other, until it is time to stop."""
        deeds = [self.kill, self.terminate, self.freeze, self.hang_up, self.hang_up, self.hang_up_and_kill, self.reload, self.reload, self.storm]
        while not self._world.stop.wait(self._rng.choice((0.0, 0.1, 0.3, 1.0))):
            self._rng.choice(deeds)()

    def kill(self) -> None:
        self._world.book.throw("kill -9")
        self._supervisor.send(signal.SIGKILL)
        self._maybe_ready()

    def terminate(self) -> None:
        self._world.book.throw("SIGTERM")
        self._supervisor.send(signal.SIGTERM)
        self._maybe_ready()

    def freeze(self) -> None:
        """SIGSTOP for up to a second; at times killed in it."""
        self._world.book.throw("SIGSTOP")
        self._supervisor.send(signal.SIGSTOP)
        self._world.stop.wait(self._rng.uniform(0.05, 1.0))
        if self._rng.random() < 0.1:
            self.kill()
        else:
            self._supervisor.send(signal.SIGCONT)

    def hang_up(self) -> None:
        """SIGHUP, with another robot or something bad in the bundle's place; then a good one again."""
        file = self._rng.choice(self._files)
        self._world.book.throw(f"SIGHUP: {file.path.stem}")
        life = self._supervisor.ready()
        before = self._serving()
        self._put(file)
        told = life.reloads
        self._supervisor.send(signal.SIGHUP)
        self._supervisor.wait(lambda _: life.readies - 1 == life.reloads > told or not life.runs)
        if life.runs:
            file = self._read.get(life.process.pid, file)
            serves, wanted = self._serving(), file.digest or before
            refused = "refused" in life.status
            if wanted and serves and (serves != wanted or refused == bool(file.digest)):
                self._world.book.unclear("SIGHUP", f"{file}: serving {serves}, expected {wanted}; {life.status}")
        self._put(self._rng.choice(self._good))

    def hang_up_and_kill(self) -> None:
        """Killed while it reloads."""
        self._world.book.throw("SIGHUP and kill -9")
        self._supervisor.ready()
        self._put(self._rng.choice(self._good))
        self._supervisor.send(signal.SIGHUP)
        self._world.stop.wait(self._rng.uniform(0.0, 0.3))
        self._supervisor.send(signal.SIGKILL)
        self._maybe_ready()

    def reload(self) -> None:
        """The method, with another bundle."""
        file = self._rng.choice(self._files)
        self._world.book.throw(f"reload: {file.path.stem}")
        self._world.connection("operator", lambda stream: self._judge(file, stream, self._reload(stream, file)))
        if file.digest:
            self._put(file)  # what a daemon that is started anew serves

    def storm(self) -> None:
        """Many reloads at once: each is done, or refused with -32030."""
        file = self._rng.choice(self._good)
        self._world.book.throw("storm of reloads")

        def one(stream: Stream) -> None:
            self._judge(file, stream, self._reload(stream, file), crowd=True)

        threads = [threading.Thread(target=self._world.connection, args=("operator", one)) for _ in range(STORM)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _reload(self, stream: Stream, file: File) -> dict[str, Any]:
        stream.patience = STORM * LONGEST
        reply: dict[str, Any] = json.loads(stream.exchange(request("reload", {"bundle": str(file.path)}) + b"\n", 1)[0])
        return reply

    def _judge(self, file: File, stream: Stream, reply: dict[str, Any], *, crowd: bool = False) -> None:
        """Whether a reload came out as it had to."""
        error = reply.get("error", {})
        if "result" in reply:
            self._read[stream.pid] = file
        refused = (error.get("code"), error.get("data", {}).get("reason"))
        right = refused == (-32040, file.reason) if file.reason else reply.get("result", {}).get("digest") == file.digest
        self._world.book.check("operator", 1, [] if right or (crowd and error.get("code") == -32030) else [f"{file}: {reply!r:.300}"])

    def _serving(self) -> str | None:
        """The digest of the robot that serves, if a connection lasts for as long as it takes to ask."""
        found: list[str] = []
        self._world.connection("operator", lambda stream: found.append(stream.status["digest"]))
        return found[0] if found else None

    def _put(self, file: File) -> None:
        """Lay a copy where the daemon's bundle lies, or nothing where there is nothing."""
        if not file.path.exists():
            self._live.unlink(missing_ok=True)
            return
        new = self._live.with_suffix(".new")
        new.write_bytes(file.path.read_bytes())
        os.replace(new, self._live)

    def _maybe_ready(self) -> None:
        """Let it come up again, or not."""
        if self._rng.random() < 0.7:
            self._supervisor.ready()


def run(seconds: float, seed: int = 0) -> list[str]:
    """Chaos for so long; print what was thrown and what came of it -> faults."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="fkd-chaos-") as name:
        folder = Path(name)
        files = bundles(folder)
        good = [file for file in files if file.digest]
        bank = Bank([fkd.load(file.path) for file in good], seed)
        for pinned, headed in ((None, False), (None, True), (good[0].digest, False)):
            bank.answers(pinned, headed)  # now, not amid the chaos
        live = folder / "live.zip"
        live.write_bytes(good[0].path.read_bytes())
        with Supervisor(folder, live, limits()) as supervisor:
            idle = settled_files(supervisor.path, supervisor.life.process.pid)
            world = World(supervisor, bank, str(good[0].digest))
            faults = besiege(world, Havoc(world, files, live, rng), seconds, seed)
            left = settled_files(supervisor.path, supervisor.ready().process.pid, idle)
        log = supervisor.log.read_text(errors="replace")
    report(world, log)
    faults += world.book.wrong + world.book.unexplained + supervisor.faults
    faults += [f"{world.book.refused} connects were refused"] * bool(world.book.refused)
    faults += [f"{left} open files without clients, where {idle} were before"] * (left > idle)
    faults += confessed(log)
    print("\n".join(faults[:20]) if faults else "no fault: every answer right, no connect refused, every end explained")
    return faults


def besiege(world: World, havoc: Havoc, seconds: float, seed: int) -> list[str]:
    """All at once, for so long. What nobody foresaw is a fault."""
    faults: list[str] = []

    def guarded(work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as e:
            faults.append(f"{getattr(work, '__name__', work)}: {type(e).__name__}: {e}")
            world.stop.set()

    works: list[tuple[Any, ...]] = [(havoc.run,)]
    works += [(work, world, random.Random(f"{seed} {n}")) for n, work in enumerate((*CLIENTS, *[visit] * VISITING))]
    threads = [threading.Thread(target=guarded, args=work) for work in works]
    try:
        for thread in threads:
            thread.start()
        world.stop.wait(seconds)
    except KeyboardInterrupt:
        pass  # what was seen until then is worth knowing
    finally:
        world.stop.set()
        for thread in threads:
            thread.join()
    return faults


def report(world: World, log: str) -> None:
    """Print what happened."""
    book = world.book
    print("thrown:", ", ".join(f"{n} {what}" for what, n in sorted(book.thrown.items())))
    print(f"daemons: {len(world.supervisor.lives)}; dropped clients in their log: {log.count('dropped a client')}")
    print(f"answers checked: {sum(book.checked.values())} ({', '.join(f'{n} {who}' for who, n in sorted(book.checked.items()))})")
    print(f"wrong answers: {len(book.wrong)}; refused connects: {book.refused}; ends of connections: {sum(book.ends.values())}, of which "
          f"unexplained: {len(book.unexplained)}")  # fmt: skip
    hows: dict[str, Counter[str]] = {}
    for (who, how), n in book.ends.items():
        hows.setdefault(how, Counter())[who] += n
    for how, whose in sorted(hows.items()):
        print(f"  {how}: {sum(whose.values())} ({', '.join(f'{n} {who}' for who, n in whose.most_common())})")


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=60.0)
    p.add_argument("--seed", type=int, default=0)
    options = p.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return 1 if run(options.seconds, options.seed) else 0
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
