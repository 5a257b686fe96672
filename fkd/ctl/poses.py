"""fk and decompose."""

from __future__ import annotations

import argparse
import json
from typing import Any

from fkd.ctl import text
from fkd.ctl.main import UsageError
from fkd.ctl.target import tell
from fkd.kernel.pose import rotation_of, rpy_from_rotation, translation_of


def configuration(words: list[str]) -> list[float] | dict[str, Any]:
    """The words after a command -> q: numbers in model order, or name=value (name=x,y,theta for wide joints)."""
    named = [w for w in words if "=" in w]
    if not named:
        return [number(w) for w in words]
    if len(named) < len(words):
        raise UsageError("give all values as numbers in model order, or all as name=value")
    q: dict[str, Any] = {}
    for word in named:
        name, _, value = word.partition("=")
        if name in q:
            raise UsageError(f"joint `{name}` is given twice")
        parts = [number(v, f"joint `{name}`: ") for v in value.split(",")]
        q[name] = parts if len(parts) > 1 else parts[0]
    return q


def number(word: str, whose: str = "") -> float:
    """A finite number in C's decimal spelling. Raises UsageError."""
    try:
        value = float(word) if word.isascii() and "_" not in word else None
    except ValueError:
        value = None
    if value is None:
        hint = "; blanks part the values, without commas or brackets" if set(word) & set(",;[]()") else ""
        raise UsageError(f"{whose}`{word}` is not a number{hint}")
    if value - value != 0.0:  # inf and nan differ from themselves
        raise UsageError(f"{whose}`{word}` is not a finite number")
    return value


def add_configuration(p: argparse.ArgumentParser) -> None:
    p.add_argument("q", nargs="*", metavar="Q", help="joint values in model order, or name=value (`fkctl model` tells the order)")
    p.add_argument("--deg", action="store_true", help="revolute and continuous values, and printed angles, in degrees")
    p.add_argument("--base", metavar="LINK", help="the link that poses are expressed in")


def named(options: argparse.Namespace, **members: Any) -> dict[str, Any]:
    """By-name parameters: q and what the options say."""
    params: dict[str, Any] = {"q": configuration(options.q), **members}
    if options.deg:
        params["degrees"] = True
    if options.base is not None:
        params["base"] = options.base
    return params


def add_fk(p: argparse.ArgumentParser) -> None:
    add_configuration(p)
    p.add_argument("--link", action="append", metavar="L", help='a link to ask for; may be repeated; "all" for every one (default: the tip)')
    p.add_argument("--format", choices=("matrix", "pose", "ros"), default="matrix", help="form of the poses (default: matrix)")
    p.epilog = (
        "examples:\n  fkctl fk 0 -1.57 1.57 0 1.57 0\n  fkctl fk --deg 0 -90 90 0 90 0 --link tool0 --link wrist_3_link\n"
        "  fkctl --model ur5e.zip fk shoulder_pan_joint=0.1 elbow_joint=-1e-3 ... --base base_link"
    )
    p.set_defaults(run=fk)


def fk(options: argparse.Namespace) -> int:
    params = named(options)
    if options.link is not None:
        params["links"] = "all" if options.link == ["all"] else options.link
    if options.format != "matrix":
        params["format"] = options.format

    def show(answer: dict[str, Any]) -> None:
        for link, pose in answer["poses"].items():
            text.say(f"{link}{'' if options.base is None else f' in {options.base}'}")
            text.say(_pose(pose, options))

    return tell(options, "compute_fk", params, show)


def _pose(pose: Any, options: argparse.Namespace) -> str:
    if isinstance(pose, list):
        rpy = rpy_from_rotation(rotation_of(pose))[0]
        return f"{text.matrix(pose)}\n  xyz {text.numbers(translation_of(pose))}  rpy {text.angles(rpy, options.deg)}"
    if "position" in pose:
        return json.dumps(pose)
    return (
        f"  xyz {text.numbers(pose['xyz'])}  quaternion {text.numbers(pose['quaternion'])}"
        f"  rpy {text.angles(pose['rpy'], options.deg)}"
    )


def add_decompose(p: argparse.ArgumentParser) -> None:
    add_configuration(p)
    p.add_argument("--link", metavar="L", help="the link to ask for (default: the tip)")
    p.add_argument("--matrix", nargs=16, metavar="M", help="decompose this 4x4 matrix instead, row by row")
    p.epilog = "examples:\n  fkctl decompose 0 -1.57 1.57 0 1.57 0\n  fkctl decompose --matrix 1 0 0 0.1  0 1 0 0  0 0 1 0.5  0 0 0 1"
    p.set_defaults(run=decompose)


def decompose(options: argparse.Namespace) -> int:
    if options.matrix:
        if options.q or options.link is not None or options.base is not None:
            raise UsageError("--matrix stands alone: no joint values, --link or --base")
        params: dict[str, Any] = {"matrix": [number(w) for w in options.matrix]}
    else:
        params = named(options, **({} if options.link is None else {"link": options.link}))
    return tell(options, "decompose", params, lambda d: show_forms(d, options.deg))


def show_forms(d: dict[str, Any], deg: bool) -> None:
    """A pose in all its forms."""
    text.say(text.matrix(d["matrix"]))
    text.say(f"  xyz         {text.numbers(d['xyz'])}")
    text.say(f"  rpy         {text.angles(d['rpy'], deg)}")
    if d["gimbal_lock"]:
        text.say("              (gimbal lock: only one of roll and yaw is defined; roll is 0 by convention)")
    else:
        text.say(f"  or rpy      {text.angles(d['rpy_alt'], deg)}")
    text.say(f"  quaternion  {text.numbers(d['quaternion'])}  (x y z w)")
    axis = d["axis_angle"]
    text.say(f"  axis, angle {text.numbers(axis['axis'])}, {text.angles([axis['angle']], deg)}")
