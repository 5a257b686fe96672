"""pack, verify, check, show: what can be done with a description or a bundle, without a daemon."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fkd.ctl import text
from fkd.ctl.main import UsageError, file_name
from fkd.errors import BundleRefused, Finding, FkdError
from fkd.load import examine, load_model
from fkd.load.collect import collect
from fkd.load.pack import write_bundle
from fkd.load.source import open_source
from fkd.model import Joint, Model

SHOWN = 10  # warnings at most that `pack` repeats


def add_pack(p: argparse.ArgumentParser) -> None:
    p.add_argument("source", type=file_name, metavar="SRC", help="a folder, .urdf or .xacro")
    p.add_argument("-o", "--output", type=file_name, metavar="OUT.zip", help="default: the source's name with .zip, in the current folder")
    p.add_argument("--model-file", type=file_name, metavar="F", help="which file of a folder is the model, as seen from the folder")
    p.add_argument("--tip", metavar="L", help="the link that by-position calls answer for")
    p.add_argument("--base", metavar="L", help="the link that poses are expressed in")
    p.add_argument("--length-unit", choices=("m", "mm", "cm"), help="the description's unit of length (default m)")
    add_xacro(p)
    p.epilog = (
        "examples:\n  fkctl pack ur5e.urdf -o ur5e.zip\n  fkctl pack my_robot/ --tip tool0\n"
        "  fkctl pack ur_description/urdf/ur.urdf.xacro --xacro-arg name:=ur --xacro-arg ur_type:=ur5e -o ur5e.zip"
    )
    p.set_defaults(run=pack)


def add_xacro(p: argparse.ArgumentParser) -> None:
    """The options that say what a xacro file needs from outside."""
    p.add_argument("--xacro-arg", action="append", default=[], metavar="K:=V", help="a value for an <xacro:arg>, again and again")
    p.add_argument("--package-path", action="append", default=[], metavar="DIR", help="where packages of $(find ...) lie, or NAME=DIR for one; again and again")


def xacro_args(pairs: Sequence[str]) -> dict[str, str]:
    """["name:=value"] -> {name: value}."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition(":=")
        if not sign or not name or name in found:
            raise UsageError(f"`{pair}` is {'given twice' if name in found else 'no xacro argument; write name:=value'}")
        found[name] = value
    return found


def pack(options: argparse.Namespace) -> int:
    if options.model:
        raise UsageError("pack takes no --model; --model-file chooses the model within a folder")
    source, output = Path(options.source), Path(options.output or default_output(options.source))
    refuse_to_replace(output)
    given = {"tip": options.tip, "base": options.base, "length_unit": options.length_unit}
    members = collect(
        source, model=options.model_file, package_paths=options.package_path,
        xacro_args=xacro_args(options.xacro_arg), **{k: v for k, v in given.items() if v is not None},
    )  # fmt: skip
    try:
        model, findings = write_checked(write_bundle(members), output)
    except BundleRefused as e:
        errors = [Finding(**f) for f in e.data.get("findings", ())]
        if len(errors) < 2:
            raise
        report(errors)
        raise FkdError(f"{source} is not packed: it has {len(errors)} errors") from None
    if options.json:
        text.raw(dumps({"bundle": str(output), "digest": model.digest, "findings": [f._asdict() for f in findings]}))
        return 0
    warnings = [f for f in findings if f.severity == "warning"]
    report(warnings[:SHOWN])
    if len(warnings) > SHOWN:
        text.say(f"... and {text.count(len(warnings) - SHOWN, 'warning')} more; `fkctl check {output}` lists them")
    inside = f"{text.count(len(model.links), 'link')}, {text.count(model.dof, 'value')} in q"
    text.say(f"{output}: {model.name}, {inside}, {model.base} -> {tip_of(model)}")
    text.say(f"digest {model.digest}")
    return 0


def default_output(source: str) -> str:
    """my_robot/ -> my_robot.zip, ur5e.urdf.xacro -> ur5e.zip, in the current folder."""
    name = os.path.basename(os.path.abspath(source))
    for ending in (".urdf.xacro", ".xacro", ".urdf"):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
            break
    if not name:
        raise UsageError(f"{source} has no name of its own; name the bundle with -o")
    return f"{name}.zip"


def refuse_special(output: Path, example: str) -> None:
    """A folder, a device or a dangling link is not written over."""
    if output.is_dir():
        raise FkdError(f"{output} is a folder; name a file in it: -o {output / example}")
    if os.path.lexists(output) and not output.is_file():
        raise FkdError(f"{output} is there and is no regular file; it is left alone")


def refuse_to_replace(output: Path) -> None:
    """Only a bundle is replaced: a slip of the hand must not cost a model."""
    refuse_special(output, "NAME.zip")
    if os.path.lexists(output):
        with output.open("rb") as f:
            if f.read(2) not in (b"PK", b""):
                raise FkdError(f"{output} is there and is no bundle; it is left alone, name another with -o")


@contextlib.contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A fresh file to write, which takes the place of `output` if all goes well; on failure nothing is left of it."""
    place = Path(os.path.realpath(output))  # a link stays one
    try:
        with tempfile.TemporaryDirectory(prefix=".fkctl-", dir=place.parent) as folder:
            fresh = Path(folder, output.name)  # of the same name, so that messages name what the user knows
            yield fresh
            fresh.replace(place)
    except OSError as e:
        raise FkdError(f"cannot write {output}: {e.strerror or e}") from None


def write_checked(data: bytes, output: Path) -> tuple[Model, list[Finding]]:
    """The bundle goes through the same door as at the daemon, then into its place."""
    with replacing(output) as fresh:
        fresh.write_bytes(data)
        return load_model(fresh)


def add_verify(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", type=file_name, metavar="ZIP", help="a bundle")
    p.epilog = "examples:\n  fkctl verify ur5e.zip"
    p.set_defaults(run=verify)


def verify(options: argparse.Namespace) -> int:
    source = open_source(options.file)
    if not source.hashed:
        raise BundleRefused(f"{options.file} is no bundle; `fkctl pack` makes one", reason="not-a-bundle", member=options.file)
    names = source.names()
    if options.json:
        text.raw(dumps({"digest": source.digest, "members": names}))
    else:
        text.say(f"{options.file}: {text.count(len(names), 'member')}, every hash right")
        text.say(f"digest {source.digest}")
    return 0


def add_check(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", nargs="?", type=file_name, metavar="FILE", help="a bundle, URDF or xacro (default: the daemon's model)")
    p.epilog = "examples:\n  fkctl check ur5e.urdf\n  fkctl check ur5e.zip --json > findings.json   # exit status 1 if any is an error"
    p.set_defaults(run=check)


def check(options: argparse.Namespace) -> int:
    name = options.file or options.model
    if name:
        findings = examine(name)
        answer = dumps([f._asdict() for f in findings])
    else:
        from fkd.ctl.target import read, target

        answer = target(options).ask("check", [])
        findings = read(answer, "check", lambda found: [Finding(**f) for f in found])
    errors, warnings = (sum(f.severity == severity for f in findings) for severity in ("error", "warning"))
    if options.json:
        text.raw(answer)
    else:
        report(findings)
        text.say(f"{name or 'the loaded model'}: {text.count(errors, 'error')}, {text.count(warnings, 'warning')}")
    return 1 if errors else 0


def report(findings: Sequence[Finding]) -> None:
    """One line each."""
    for finding in findings:
        text.say(" ".join(str(finding).splitlines()))


def dumps(value: Any) -> bytes:
    """JSON as the wire writes it: no blanks, UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def add_show(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", nargs="?", type=file_name, metavar="FILE", help="a bundle, URDF or xacro (or use --model)")
    p.epilog = "examples:\n  fkctl show ur5e.zip"
    p.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    name = options.file or options.model
    if not name:
        raise UsageError("show needs a file; `fkctl model` tells about the running daemon")
    if options.json:
        from fkd.ctl.target import Local

        text.raw(Local(name).ask("model", []))
        return 0
    model, _ = load_model(name)
    counts = ((len(model.links), "link"), (len(model.joints), "joint"), (model.dof, "value"))
    text.say(f"{model.name}: {', '.join(text.count(n, noun) for n, noun in counts)} in q")
    text.say(f"{model.trust}, digest {model.digest}")
    text.say(f"base {model.base}, tip {tip_of(model)}")
    text.say("\n".join(tree(model)))
    return 0


def tip_of(model: Model) -> str:
    return model.tip or f"(no single tip: {', '.join(model.tip_candidates)})"


def tree(model: Model) -> list[str]:
    """The tree as indented lines, one a link."""
    children: dict[str, list[Joint]] = {}
    for joint in model.joints:
        children.setdefault(joint.parent, []).append(joint)
    lines = []
    waiting = [(model.root, "", "", "")]  # link, its line's stem, its children's indent, its label: a stack, last first
    while waiting:
        link, stem, indent, text_ = waiting.pop()
        lines.append(f"{stem}{link}{text_}")
        joints = children.get(link, [])
        for k, joint in reversed(list(enumerate(joints))):
            last = k == len(joints) - 1
            branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
            waiting.append((joint.child, indent + branch, indent + below, f"  [{label(joint)}]"))
    return lines


def label(joint: Joint) -> str:
    """A joint in a few words: name, type, place in q or source, axis, limits."""
    words = [joint.name, joint.type]
    if joint.mimic:
        words.append(f"= {joint.mimic.multiplier:g} * {joint.mimic.source} + {joint.mimic.offset:g}")
    elif joint.width:
        words.append(f"q[{joint.index}]" if joint.width == 1 else f"q[{joint.index}..{joint.index + joint.width - 1}]")
    if joint.type not in ("fixed", "floating"):
        words.append(f"axis {_vector(joint.axis)}")
    if joint.limits and joint.limits.lower is not None and joint.limits.upper is not None:
        words.append(f"{joint.limits.lower:g} .. {joint.limits.upper:g} {'m' if joint.type == 'prismatic' else 'rad'}")
    return ", ".join(words)


def _vector(v: Sequence[float]) -> str:
    return " ".join(f"{x:g}" for x in v)
