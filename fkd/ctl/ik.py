"""ik."""

from __future__ import annotations

import argparse
from math import degrees, radians
from typing import Any

from fkd.ctl import text
from fkd.ctl.main import UsageError
from fkd.ctl.poses import configuration, number
from fkd.ctl.target import PATIENCE, read, target
from fkd.errors import FkdError, IkFailed

WIDE = {1: ("",), 3: (".x", ".y", ".theta"), 7: (".x", ".y", ".z", ".qx", ".qy", ".qz", ".qw")}  # what to call a joint's values


def add_ik(p: argparse.ArgumentParser) -> None:
    p.add_argument("--xyz", nargs=3, metavar=("X", "Y", "Z"), help="where the link shall be, in metres")
    p.add_argument("--rpy", nargs=3, metavar=("R", "P", "Y"), help="its roll, pitch and yaw")
    p.add_argument("--quat", nargs=4, metavar=("X", "Y", "Z", "W"), help="its quaternion, in place of --rpy")
    p.add_argument("--matrix", nargs=16, metavar="M", help="its pose as a 4x4 matrix, row by row, in place of all these")
    p.add_argument("--link", metavar="L", help="the link to bring there (default: the tip)")
    p.add_argument("--base", metavar="LINK", help="the link that the pose is expressed in")
    p.add_argument("--tool-xyz", nargs=3, metavar=("X", "Y", "Z"), help="a tool on the link, to bring there instead: its origin")
    p.add_argument("--tool-rpy", nargs=3, metavar=("R", "P", "Y"), help="and its orientation")
    p.add_argument("--seed", nargs="+", metavar="Q", help="where to start: values in model order, or name=value")
    which = p.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all solutions, nearest to the seed first")
    which.add_argument("--nearest", action="store_true", help="the solution nearest to the seed: a path keeps its branch")
    p.add_argument("--position-only", action="store_true", help="any orientation will do")
    p.add_argument("--method", choices=("auto", "numeric", "analytic"), help="default auto: analytic where the arm allows it")
    p.add_argument("--deg", action="store_true", help="angles given (--rpy, --tool-rpy, --seed) and printed are in degrees")
    p.add_argument("--tolerance", metavar="M", help="how far off the position may be, in metres (default 1e-6)")
    p.add_argument("--angle-tolerance", metavar="RAD", help="how far off the orientation may be, in radians (default 1e-6)")
    p.add_argument("--timeout-ms", metavar="MS", help="how long to search (default 200)")
    p.add_argument("--best-effort", action="store_true", help="print the nearest configuration where there is no solution")
    p.epilog = (
        "examples:\n  fkctl ik --xyz 0.4 -0.1 0.3 --rpy 3.1416 0 0\n"
        "  fkctl ik --xyz 0.4 -0.1 0.3 --rpy 180 0 0 --deg --all --seed 0 -90 90 0 90 0\n"
        "  fkctl ik --matrix 1 0 0 0.4  0 -1 0 -0.1  0 0 -1 0.3  0 0 0 1 --link tool0 --nearest --seed elbow_joint=1.5\n"
        "  fkctl --model ur5e.zip ik --xyz 0.4 -0.1 0.3 --position-only --best-effort"
    )
    p.set_defaults(run=ik)


def ik(options: argparse.Namespace) -> int:
    params = wanted(options)
    if options.timeout is None and "timeout_ms" in params:
        options.timeout = PATIENCE + 1e-3 * max(params["timeout_ms"], 0.0)
    who = target(options)
    try:
        answer = who.ask("compute_ik", params)
    except FkdError as e:
        q = (e.data.get("nearest") or {}).get("q") if e.code == IkFailed.code else None
        if q is None:
            raise
        raise FkdError(f"{e.message} [{e.reason}]; the nearest is q {text.numbers(q)}") from None
    if options.json:
        text.raw(answer)
        return 0
    names = read(who.ask("model", []), "model", names_of)
    read(answer, "compute_ik", lambda found: show(found, names, options.deg))
    return 0


def wanted(options: argparse.Namespace) -> dict[str, Any]:
    """The wire's parameters. Raises UsageError."""
    params: dict[str, Any] = {"pose": pose(options)}
    if options.tool_xyz or options.tool_rpy:
        params["tool"] = parts(options.tool_xyz or ["0"] * 3, options.tool_rpy, None, options.deg)
    if options.seed:
        params["seed"] = configuration(options.seed)
    for name in ("link", "base", "method"):
        if getattr(options, name) is not None:
            params[name] = getattr(options, name)
    for name, word in (("position_tolerance", options.tolerance), ("orientation_tolerance", options.angle_tolerance),
                       ("timeout_ms", options.timeout_ms)):  # fmt: skip
        if word is not None:
            params[name] = number(word)
    for name, said in (("position_only", options.position_only), ("best_effort", options.best_effort), ("degrees", options.deg)):
        if said:
            params[name] = True
    if options.all or options.nearest:
        params["solutions"] = "all" if options.all else "nearest"
    return params


def pose(options: argparse.Namespace) -> Any:
    """The pose that the options give, in one of the wire's forms."""
    if options.matrix:
        if options.xyz or options.rpy or options.quat:
            raise UsageError("--matrix is the whole pose: no --xyz, --rpy or --quat beside it")
        return [number(w) for w in options.matrix]
    if not options.xyz:
        raise UsageError("where to? give --xyz X Y Z with --rpy R P Y or --quat X Y Z W, or --matrix and 16 numbers")
    if bool(options.rpy) + bool(options.quat) != (0 if options.position_only else 1):
        hint = "--position-only takes neither" if options.position_only else "or say --position-only, if any orientation will do"
        raise UsageError(f"give --rpy R P Y or --quat X Y Z W beside --xyz; {hint}")
    return parts(options.xyz, options.rpy, options.quat, options.deg)


def parts(xyz: list[str], rpy: list[str] | None, quaternion: list[str] | None, deg: bool) -> dict[str, list[float]]:
    found = {"xyz": [number(w) for w in xyz]}
    if rpy:
        found["rpy"] = [radians(number(w)) if deg else number(w) for w in rpy]
    if quaternion:
        found["quaternion"] = [number(w) for w in quaternion]
    return found


def names_of(model: dict[str, Any]) -> list[str]:
    """What each value of q is called."""
    width = {j["name"]: j["width"] for j in model["joints"]}
    return [name + part for name in model["q"] for part in WIDE[width[name]]]


def show(found: dict[str, Any], names: list[str], deg: bool) -> None:
    """A header of names, a line for each solution, a line on how it was found."""
    rows = [[text.number(x) for x in s["q"]] for s in found["solutions"]]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    text.say("  ".join(name.rjust(w) for name, w in zip(names, widths, strict=True)))
    for s, row in zip(found["solutions"], rows, strict=True):
        off = f"{1e3 * s['position_error']:.6f} mm"
        if s["orientation_error"] is not None:
            off += f" {degrees(s['orientation_error']):.6f} deg"
        notes = [] if s["converged"] else ["not a solution: the nearest"]
        notes += ["singular: one of infinitely many"] if s["singular"] else []
        text.say("  ".join([*(x.rjust(w) for x, w in zip(row, widths, strict=True)), off, *notes]))
    text.say(f"{text.count(len(found['solutions']), 'solution')}, {found['method']}, "
             f"{text.count(found['iterations'], 'iteration')}, {text.count(found['restarts'], 'restart')}"
             + (", angles in degrees" if deg else ""))  # fmt: skip

