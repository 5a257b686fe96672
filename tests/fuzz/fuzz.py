"""Mutated descriptions, bundles, tables, expressions and messages, for as long as asked.

Whatever comes in, what comes out is a robot or a FkdError with a reason, within the time that a model may take; any
other exception, a slow case or a run of memory is a fault, and its input is written out. `make fuzz` runs it for ten
minutes; the tests run it for a moment.

    python tests/fuzz/fuzz.py [--seconds 600] [--seed 0] [--only urdf,xacro,zip,dh,expression,wire]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fkd.dispatch import call, serving
from fkd.errors import FkdError
from fkd.load import model_of
from fkd.load.bundle import open_bundle
from fkd.load.check import check_description
from fkd.load.dhread import Stated, read_table
from fkd.load.dhtable import describe_table
from fkd.load.pack import write_bundle
from fkd.load.settings import Settings, parse_settings
from fkd.load.source import find_model
from fkd.load.urdf import read_urdf
from fkd.load.xacro import expand
from fkd.load.xml import parse_xml
from fkd.robot import Robot, load
from fkd.service import Session
from fkd.wire.connection import Connection

HERE = Path(__file__).resolve().parent
SLOWEST = 2.0  # seconds of the process's own time for one case
MOST = 256 << 20  # bytes for one case

XACRO = b"""<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="n" default="3"/><xacro:property name="l" value="${0.5 * pi}"/><xacro:property name="d" value="${dict(a=1, b=[1, 2])}"/>
<xacro:macro name="arm" params="name parent:=^|base len:=0.1 *origin **extra"><link name="${name}"/>
<joint name="j_${name}" type="revolute"><parent link="${parent}"/><child link="${name}"/><xacro:insert_block name="origin"/>
<xacro:insert_block name="extra"/><axis xyz="0 0 ${1 if len > 0 else -1}"/><limit lower="-1" upper="${radians(90)}" effort="0" velocity="0"/></joint></xacro:macro>
<link name="base"/><xacro:if value="$(arg n)"><xacro:arm name="a" parent="base" len="${l}"><origin xyz="0 0 ${d['a']}"/><x><dynamics/></x></xacro:arm></xacro:if>
<xacro:unless value="${len(d.b) == 2}"><xacro:include filename="$(find p)/q.xacro"/></xacro:unless></robot>"""
TABLE = b'{"convention":"standard","length_unit":"mm","angle_unit":"deg","rows":[{"joint":"a","type":"revolute","a":10,"alpha":90,"d":1.5,"theta":-90,"lower":-1,"upper":2},{"joint":"b","type":"prismatic","a":0,"alpha":0,"d":0,"theta":0}]}'
CSV = b"# convention: modified\n# length_unit: m\n# angle_unit: rad\njoint,type,a,alpha,d,theta\nj1,revolute,0,1.5,0.1,0\nj2,prismatic,0.2,0,0,0.3\n"
TOML = b'tip = "tool0"\nlength_unit = "mm"\njoints = ["j1", "j2"]\n[calibration.j1]\nxyz = [0.1, 0, 0]\nrpy = [0, 0, 1e-3]\n[xacro.args]\nn = 3\n'
EXPRESSION = [b"${[x * 2 for x in range(3)][1] ** 2}", b"${'%.3f' % (pi / 2)}", b"${sin(radians(30)) if l > 1 else d['b'][0]}", b"${max([1, 2, *range(3)])}"]
MESSAGES = [
    b'{"jsonrpc":"2.0","method":"compute_fk","params":[0.1,0.2,0.3,0,0,0],"id":1}', b'[{"jsonrpc":"2.0","method":"ping","id":"a"},{"jsonrpc":"2.0","method":"status"}]',
    b'{"jsonrpc":"2.0","method":"compute_fk","params":{"q":[0,0,0,0,0,0],"links":"all","format":"pose","tool":{"xyz":[0,0,1],"rpy":[0,0,0]}},"id":null}',
    b'{"jsonrpc":"2.0","method":"decompose","params":{"matrix":[1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1]},"id":1e3}',
]  # fmt: skip
TOKENS = [b"<", b">", b'"', b"&", b"${", b"}", b"$(", b")", b"[", b"]", b"{", b",", b":", b"\0", b"\xff", b"\xc3\xa9", b"-", b"e999", b"nan", b"0", b"1e308",
          b"9" * 400, b"<!DOCTYPE x [<!ENTITY e 'e'>]>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"../", b"xacro:", b"**", b"'a'*9**9", b"\n", b"(" * 60, b"[" * 300]  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few edits: bytes flipped, pieces cut, doubled or moved, tokens put in, numbers and words exchanged."""
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        at, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        end = min(end, at + rng.choice((1, 4, 30, 400)))
        kind = rng.randrange(7)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[end:]
        elif kind == 2:
            data = data[:end] + data[at:end] * rng.choice((1, 2, 20)) + data[end:]
        elif kind == 3:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif kind == 4:
            data = data[:at] + rng.choice(TOKENS) + data[end:]
        else:
            words = list(re.finditer(rb"[\w.+-]+", data))
            if len(words) > 1:
                one, two = rng.choice(words), rng.choice(words)
                data = data[: one.start()] + two.group() + data[one.end() :]
    return data


class One:
    """A single file as what the expander reads from."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def names(self) -> list[str]:
        return ["m.urdf.xacro"]

    def read(self, _path: str) -> bytes:
        return self.data

    def __contains__(self, path: object) -> bool:
        return path == "m.urdf.xacro"


def used(robot: Robot) -> None:
    """Whatever loads must also compute, or say why not."""
    q = [0.1] * robot.dof
    poses = robot.poses(q, robot.links)
    assert all(x - x == 0.0 for T in poses.values() for x in T), "a pose that is not finite"


def urdf(data: bytes) -> None:
    description = read_urdf(parse_xml(data, "m.urdf"))
    check_description(description)
    used(Robot(model_of(description, Settings(), "m.urdf")))


def xacro(data: bytes) -> None:
    used(Robot(model_of(read_urdf(expand(One(data), "m.urdf.xacro", {"n": "2"}).root), Settings(), "m.urdf.xacro")))


def expression(data: bytes) -> None:
    expand(One(XACRO.replace(b"${l}", data.replace(b"<", b"&lt;").replace(b'"', b"&quot;"))), "m.urdf.xacro", {})


def bundle(data: bytes) -> None:
    opened = open_bundle(data, "m.zip")
    used(load_bytes(data)) if opened.names() else None
    find_model(opened, Settings())


def load_bytes(data: bytes) -> Robot:
    with tempfile.NamedTemporaryFile(suffix=".zip") as f:
        f.write(data)
        f.flush()
        return load(f.name)


def table(data: bytes) -> None:
    name = "t.csv" if b"{" not in data[:1] else "t.json"
    used(Robot(model_of(describe_table(read_table(data, name, Stated("standard", "m", "rad"))), Settings(), name)))


def settings(data: bytes) -> None:
    parse_settings(data, "bundle.toml")


class Wire:
    def __init__(self) -> None:
        self.session = Session(serving(load(HERE.parent / "robots" / "wire_arm.urdf")))

    def __call__(self, data: bytes) -> None:
        connection = Connection(partial(call, self.session))
        for line in answered(connection, b"\n" + data + b"\n").splitlines():
            read(line)
        out = answered(connection, b'{"jsonrpc":"2.0","method":"ping","id":1}\n')
        assert out.endswith(b'{"jsonrpc":"2.0","result":"pong","id":1}\n'), "the connection did not live on"


class Framed(Wire):
    """The same under Content-Length headers, which come to harm as well."""

    def __call__(self, data: bytes) -> None:
        connection = Connection(partial(call, self.session))
        out = answered(connection, b"Content-Length: 2\r\n\r\n{}" + data)
        while out:
            head, _, rest = out.partition(b"\r\n\r\n")
            size = int(head.removeprefix(b"Content-Length: "))
            assert len(rest) >= size, "a reply that is shorter than its header says"
            read(rest[:size])
            out = rest[size:]


def answered(connection: Connection, data: bytes) -> bytes:
    """All that a connection answers."""
    connection.receive(data)
    pieces = [connection.answer(1 << 30)]
    while connection.more:
        pieces.append(connection.answer(1 << 30))
    return b"".join(pieces)


def read(message: bytes) -> None:
    json.loads(message, parse_constant=lambda c: (_ for _ in ()).throw(AssertionError(f"{c} on the wire")))


def targets() -> dict[str, tuple[Callable[[bytes], None], list[bytes]]]:
    robots = [p.read_bytes() for p in sorted((HERE.parent / "robots").glob("*.urdf"))]
    zips = [write_bundle({"a/m.urdf": robots[0]}), write_bundle({"m.urdf.xacro": XACRO, "bundle.toml": b'tip = "a"\n'})]
    return {
        "urdf": (urdf, robots), "xacro": (xacro, [XACRO]), "expression": (expression, EXPRESSION), "zip": (bundle, zips),
        "dh": (table, [TABLE, CSV]), "settings": (settings, [TOML]), "wire": (Wire(), MESSAGES),
        "framed": (Framed(), [b"Content-Length: %d\r\n\r\n%b" % (len(m), m) for m in MESSAGES]),
    }  # fmt: skip


def run(seconds: float, seed: int, only: list[str] | None = None) -> tuple[dict[str, int], list[str]]:
    """Fuzz for a while -> cases a target, and the faults found."""
    chosen = {name: t for name, t in targets().items() if not only or name in only}
    rng = random.Random(seed)
    count = dict.fromkeys(chosen, 0)
    faults: list[str] = []
    end = time.monotonic() + seconds
    tracemalloc.start()
    while time.monotonic() < end:
        for name, (target, seeds) in chosen.items():
            data = mutated(rng.choice(seeds), rng)
            count[name] += 1
            tracemalloc.reset_peak()
            start = time.process_time()
            what = ""
            try:
                target(data)
            except FkdError as e:
                if not e.reason or not str(e):
                    what = "an error without reason or message"
            except Exception as e:  # whatever it is, it is what this looks for
                what = f"{type(e).__name__}: {e}"
            took, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
            if took > SLOWEST:
                what = what or f"{took:.1f} s"
            if peak > MOST:
                what = what or f"{peak >> 20} MiB"
            if what:
                kept = Path(tempfile.gettempdir(), f"fkd-fuzz-{name}-{seed}-{count[name]}")
                kept.write_bytes(data)
                faults.append(f"{name}: {what[:200]} ({kept})")
    tracemalloc.stop()
    return count, faults


def main() -> int:
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=600.0)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--only", type=lambda s: s.split(","))
    options = p.parse_args()
    count, faults = run(options.seconds, options.seed, options.only)
    print(f"{sum(count.values())} cases in {options.seconds:g} s: {count}")
    print("\n".join(faults[:20]) if faults else "no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
