"""pack, verify, check, show: what can be done with a description or a bundle, without a daemon."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from fkd.ctl import text
from fkd.ctl.main import UsageError
from fkd.errors import BundleRefused, FkdError
from fkd.load import examine, load_model
from fkd.load.collect import collect
from fkd.load.pack import write_bundle
from fkd.load.source import open_source
from fkd.model import Joint, Model


def add_pack(p: argparse.ArgumentParser) -> None:
    p.add_argument("source", metavar="SRC", help="a folder, .urdf or .xacro")
    p.add_argument("-o", "--output", metavar="OUT.zip", help="default: the source's name with .zip, in the current folder")
    p.add_argument("--model-file", metavar="F", help="which file of a folder is the model")
    p.add_argument("--tip", metavar="L", help="the link that by-position calls answer for")
    p.add_argument("--base", metavar="L", help="the link that poses are expressed in")
    p.add_argument("--length-unit", choices=("m", "mm", "cm"), help="the description's unit of length (default m)")
    p.epilog = "examples:\n  fkctl pack ur5e.urdf -o ur5e.zip\n  fkctl pack my_robot/ --tip tool0"
    p.set_defaults(run=pack)


def pack(options: argparse.Namespace) -> int:
    source = Path(options.source)
    name = source.resolve().name
    for ending in (".urdf.xacro", ".xacro", ".urdf"):
        name = name.removesuffix(ending)
    output = Path(options.output or f"{name}.zip")
    overrides = {k: v for k, v in (("tip", options.tip), ("base", options.base), ("length_unit", options.length_unit)) if v}
    data = write_bundle(collect(source, model=options.model_file, **overrides))
    # What is written is what was checked: the bytes go through the same door as the daemon's.
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        model, findings = load_model(temporary)
        temporary.replace(output)
    except OSError as e:
        raise FkdError(f"cannot write {output}: {e.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
    for finding in findings:
        if finding.severity == "warning":
            text.say(str(finding))
    text.say(f"{output}: {model.name}, {len(model.links)} links, {model.dof} values in q, {model.base} -> {model.tip or '(no single tip)'}")
    text.say(f"digest {model.digest}")
    return 0


def add_verify(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", metavar="ZIP", help="a bundle")
    p.epilog = "examples:\n  fkctl verify ur5e.zip"
    p.set_defaults(run=verify)


def verify(options: argparse.Namespace) -> int:
    source = open_source(options.file)
    if not source.hashed:
        raise BundleRefused(f"{options.file} is no bundle; `fkctl pack` makes one", reason="not-a-bundle", member=options.file)
    names = source.names()
    if options.json:
        text.say(json.dumps({"digest": source.digest, "members": names}))
    else:
        text.say(f"{options.file}: {len(names)} member{'' if len(names) == 1 else 's'}, every hash right")
        text.say(f"digest {source.digest}")
    return 0


def add_check(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", nargs="?", metavar="FILE", help="a bundle, URDF or xacro (default: the daemon's model)")
    p.epilog = "examples:\n  fkctl check ur5e.urdf\n  fkctl check ur5e.zip --json > findings.json   # exit status 1 if any is an error"
    p.set_defaults(run=check)


def check(options: argparse.Namespace) -> int:
    name = options.file or options.model
    if name:
        findings = [f._asdict() for f in examine(name)]
        answer = json.dumps(findings)
    else:
        from fkd.ctl.target import target

        answer = target(options).ask("check", []).decode()
        findings = json.loads(answer)
    errors = sum(f["severity"] == "error" for f in findings)
    if options.json:
        text.say(answer)
        return 1 if errors else 0
    for f in findings:
        place = f"{f['file']}:{f['line']}" if f["line"] else f["file"]
        hint = f" ({f['hint']})" if f["hint"] else ""
        text.say(f"{place}: {f['severity']}: {f['message']} [{f['code']}]{hint}")
    warnings = sum(f["severity"] == "warning" for f in findings)
    text.say(f"{name or 'the loaded model'}: {errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}")
    return 1 if errors else 0


def add_show(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", nargs="?", metavar="FILE", help="a bundle, URDF or xacro (or use --model)")
    p.epilog = "examples:\n  fkctl show ur5e.zip"
    p.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    name = options.file or options.model
    if not name:
        raise UsageError("show needs a file; `fkctl model` tells about the running daemon")
    model, _ = load_model(name)
    text.say(f"{model.name}: {len(model.links)} links, {len(model.joints)} joints, {model.dof} values in q")
    text.say(f"{model.trust}, digest {model.digest}")
    text.say(f"base {model.base}, tip {model.tip or '(no single tip: ' + ', '.join(model.tip_candidates) + ')'}")
    text.say("\n".join(tree(model)))
    return 0


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
