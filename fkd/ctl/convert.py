"""expand, export-urdf, from-dh, diff: one description into another, or beside another."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from math import degrees
from pathlib import Path
from typing import Any

from fkd.ctl import text
from fkd.ctl.files import add_xacro, dumps, refuse_special, replacing, xacro_args
from fkd.ctl.main import UsageError, file_name
from fkd.errors import FkdError
from fkd.load import load_model, model_of, table_of
from fkd.load.collect import find
from fkd.load.dhread import Stated, is_table
from fkd.load.source import find_model, open_source, read_settings
from fkd.load.write import write_urdf
from fkd.load.xacro import expand as expand_xacro
from fkd.load.xml_text import to_text

MAX_SAMPLES = 100_000


def write(output: str | None, content: str, *sources: str) -> None:
    """To a file, whole or not at all and never over one of `sources`; or to standard output."""
    if output is None:
        text.raw(content.rstrip("\n").encode())
        return
    path = Path(output)
    refuse_special(path, "NAME.urdf")
    if any(path.exists() and Path(s).exists() and path.samefile(s) for s in sources):
        raise FkdError(f"{output} is what is read; name another file with -o")
    with replacing(path) as fresh:
        fresh.write_text(content, encoding="utf-8")


def add_expand(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", type=file_name, metavar="XACRO", help="a .xacro file, a package folder or a bundle")
    add_xacro(p)
    p.add_argument("-o", "--output", type=file_name, metavar="URDF", help="default: standard output")
    p.epilog = "examples:\n  fkctl expand ur.urdf.xacro --xacro-arg ur_type:=ur5e -o ur5e.urdf"
    p.set_defaults(run=expand)


def expand(options: argparse.Namespace) -> int:
    source, settings, entry = find(Path(options.file), package_paths=options.package_path)
    args = {**settings.xacro_args, **xacro_args(options.xacro_arg)}
    write(options.output, to_text(expand_xacro(source, entry, args).root), options.file)
    return 0


def add_export_urdf(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", nargs="?", type=file_name, metavar="FILE", help="a bundle, URDF, xacro or DH table (or use --model)")
    p.add_argument("-o", "--output", type=file_name, metavar="URDF", help="default: standard output")
    p.epilog = "examples:\n  fkctl export-urdf ur5e.zip -o ur5e.urdf"
    p.set_defaults(run=export_urdf)


def export_urdf(options: argparse.Namespace) -> int:
    name = options.file or options.model
    if not name:
        raise UsageError("export-urdf needs a file")
    write(options.output, write_urdf(load_model(name)[0]), name)
    return 0


def add_from_dh(p: argparse.ArgumentParser) -> None:
    p.add_argument("table", type=file_name, metavar="TABLE", help="CSV, TOML or JSON with joint, type, a, alpha, d, theta (and lower, upper)")
    p.add_argument("--convention", choices=("standard", "modified"), help="must be said here or in the file")
    p.add_argument("--length-unit", choices=("m", "cm", "mm"), help="must be said here or in the file")
    p.add_argument("--angle-unit", choices=("rad", "deg"), help="must be said here or in the file")
    p.add_argument("-o", "--output", type=file_name, metavar="URDF", help="default: standard output")
    p.epilog = "examples:\n  fkctl from-dh arm.csv --convention standard --length-unit mm --angle-unit deg -o arm.urdf"
    p.set_defaults(run=from_dh)


def from_dh(options: argparse.Namespace) -> int:
    source = open_source(options.table)
    settings = read_settings(source)
    name = find_model(source, settings)
    if not is_table(name):
        raise FkdError(f"{options.table} holds `{name}`, which is no DH table (.csv, .toml or .json)")
    given = Stated(options.convention, options.length_unit, options.angle_unit)
    write(options.output, write_urdf(model_of(table_of(source, name, settings, given), settings, name)), options.table)
    return 0


def add_diff(p: argparse.ArgumentParser) -> None:
    p.add_argument("old", type=file_name, metavar="OLD", help="a bundle, URDF, xacro or DH table")
    p.add_argument("new", type=file_name, metavar="NEW", help="another")
    p.add_argument("--samples", type=int, default=200, metavar="N", help="how many configurations are tried (default 200)")
    p.add_argument("--exit-code", action="store_true", help="exit status 1 if they differ")
    p.epilog = "examples:\n  fkctl diff ur5e-nominal.zip ur5e-calibrated.zip"
    p.set_defaults(run=diff)


def diff(options: argparse.Namespace) -> int:
    from fkd.diff import compare
    from fkd.robot import load

    if not 1 <= options.samples <= MAX_SAMPLES:
        raise UsageError(f"--samples takes a number from 1 to {MAX_SAMPLES}")
    found = compare(load(options.old), load(options.new), samples=options.samples)
    status = 1 if options.exit_code and not found.same else 0
    if options.json:
        text.raw(dumps({"same": found.same, **asdict(found)}))
        return status
    for what, names in (
        ("joints added", found.joints_added), ("joints removed", found.joints_removed),
        ("links added", found.links_added), ("links removed", found.links_removed),
    ):  # fmt: skip
        if names:
            text.say(f"{what}: {', '.join(names)}")
    for joint, key, was, now in found.joints_changed:
        text.say(f"joint {joint}: {key} {_shown(was)} -> {_shown(now)}")
    for what, pair in (("base", found.base_changed), ("tip", found.tip_changed)):
        if pair:
            text.say(f"{what}: {pair[0]} -> {pair[1]}")
    if found.order_changed:
        text.say("the order of q changed")
    moved = [m for m in found.moved if m.position or m.angle]
    if moved:
        text.say(f"links that moved, at worst over {found.samples} configurations:")
        width = max(len(m.link) for m in moved)
        for m in moved:
            text.say(f"  {m.link:<{width}}  {m.position * 1e3:12.6f} mm  {degrees(m.angle):11.6f} deg")
    if found.same:
        text.say("no difference")
    return status


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + " ".join(f"{x:.9g}" for x in value) + ")"
    if value is None:
        return "none"
    return str(value)
