"""dh: a chain as a Denavit-Hartenberg table, aligned, drawn, or as a file that `from-dh` reads."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import degrees, hypot, pi
from typing import Any

from fkd.ctl import text
from fkd.ctl.convert import write
from fkd.ctl.main import file_name
from fkd.ctl.target import Target, read, target
from fkd.kernel.pose import rotation_of, rpy_from_rotation, translation_of
from fkd.load.dhwrite import write_table

STEP = {"standard": "Rz(theta) Tz(d) Tx(a) Rx(alpha)", "modified": "Rx(alpha) Tx(a) Rz(theta) Tz(d)"}
LENGTHS = ("a", "d")
ANGLES = ("alpha", "theta")
NAMED_AXES = {(1, 0, 0): "+x", (-1, 0, 0): "-x", (0, 1, 0): "+y", (0, -1, 0): "-y", (0, 0, 1): "+z", (0, 0, -1): "-z"}


def add_dh(p: argparse.ArgumentParser) -> None:
    p.add_argument("--convention", choices=tuple(STEP), default="standard", help="default: standard")
    p.add_argument("--link", metavar="L", help="the end of the chain (default: the tip)")
    p.add_argument("--base", metavar="LINK", help="its beginning")
    p.add_argument("--deg", action="store_true", help="print angles in degrees")
    p.add_argument("--draw", action="store_true", help="draw the chain, joint by joint")
    p.add_argument("-o", "--output", type=file_name, metavar="TABLE", help="write a .csv, .toml or .json that `fkctl from-dh` and `fkd` read")
    p.epilog = (
        "examples:\n  fkctl --model ur5e.zip dh\n  fkctl --model ur5e.zip dh --convention modified --draw\n"
        "  fkctl --model ur5e.zip dh -o ur5e-dh.csv && fkctl from-dh ur5e-dh.csv -o again.urdf\n\n"
        "T_base_link = base * rows * tool. A joint's value adds to its theta, or to its d where it slides. The residual is the\n"
        "largest difference from the robot itself, in m or rad, over sampled q."
    )
    p.set_defaults(run=dh)


def dh(options: argparse.Namespace) -> int:
    answers = target(options)
    params = {k: v for k in ("convention", "link", "base") if (v := getattr(options, k)) is not None}
    answer = answers.ask("dh", params)
    if options.output is not None:
        write(options.output, read(answer, "dh", lambda found: write_table(found, options.output)), options.model or "")
        return 0
    if options.json:
        text.raw(answer)
        return 0
    show = draw if options.draw else show_table
    read(answer, "dh", lambda found: show(found, options, answers))
    return 0


def show_table(found: dict[str, Any], options: argparse.Namespace, _: Target) -> None:
    """Aligned columns, base, tool and residual."""
    unit = "deg" if options.deg else "rad"
    text.say(f"{found['convention']} DH, m and {unit}: {STEP[found['convention']]}")
    text.say(f"  base  {_pose(found['base'], options.deg)}")
    table = [["joint", "type", "a", "alpha", "d", "theta"]]
    table += [[row["joint"], row["type"], *(_number(row[k], k, options.deg) for k in ("a", "alpha", "d", "theta"))] for row in found["rows"]]
    widths = [max(len(line[k]) for line in table) for k in range(6)]
    for line in table:
        cells = [c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True))]
        text.say("  " + "  ".join(cells).rstrip())
    text.say(f"  tool  {_pose(found['tool'], options.deg)}")
    _remarks(found)


def draw(found: dict[str, Any], options: argparse.Namespace, answers: Target) -> None:
    """The chain from base to link: each joint with its axis, and what leads to the next."""
    rows = found["rows"]
    model = read(answers.ask("model", []), "model", dict)
    base, link = options.base or model["base"], options.link or model["tip"]
    ahead = found["convention"] == "standard"  # a row's a and alpha lead to the next axis; else from the one before
    text.say(f"  [{base}]")
    text.say(f"   |     base  {_pose(found['base'], options.deg)}")
    T = found["base"]
    for row, case in zip(rows, found["cases"], strict=True):
        if not ahead:
            text.say(f"   |     {_link(row, case, options.deg)}")
            T = _product(T, row, found["convention"])
        sign = "[=]" if row["type"] == "prismatic" else "(o)"
        axis = tuple(round(T[k], 9) + 0.0 for k in (2, 6, 10))
        way = NAMED_AXES.get(axis) or "(" + " ".join(f"{x:.4g}" for x in axis) + ")"
        moves = "d" if row["type"] == "prismatic" else "theta"
        numbers = "  ".join(f"{k} = {_number(row[k], k, options.deg)}{' + q' if k == moves else ''}" for k in ("theta", "d"))
        text.say(f"  {sign}    {row['joint']}  {row['type']}, axis {way}:  {numbers}")
        if ahead:
            T = _product(T, row, found["convention"])
            text.say(f"   |     {_link(row, case, options.deg)}")
    text.say(f"   |     tool  {_pose(found['tool'], options.deg)}")
    text.say(f"  [{link}]")
    _remarks(found)


def _link(row: dict[str, Any], case: str, deg: bool) -> str:
    """What lies between two axes."""
    if case in ("parallel", "collinear") and abs(row["alpha"]) > 1.0:
        case = f"anti{case}" if case == "parallel" else "collinear, opposed"
    return f"a = {_number(row['a'], 'a', deg)}  alpha = {_number(row['alpha'], 'alpha', deg)}  ({case})"


def _product(T: Sequence[float], row: dict[str, Any], convention: str) -> list[float]:
    """T_base_(k-1) -> T_base_k at q = 0, 16 numbers."""
    from fkd.kernel.dh import product

    A = product(convention, [row[k] for k in ("a", "alpha", "d", "theta")]).ravel().tolist()
    return [sum(T[4 * i + k] * A[4 * k + j] for k in range(4)) for i in range(4) for j in range(4)]


def _number(value: float, key: str, deg: bool) -> str:
    """Twelve digits, which tell 1 from 1.0000000001 and 1.57 from a right angle."""
    if key in LENGTHS:
        return f"{value + 0.0:.12g}"
    if deg:
        return f"{degrees(value) + 0.0:.12g}"
    return {0.0: "0", pi: "pi", -pi: "-pi", pi / 2: "pi/2", -pi / 2: "-pi/2"}.get(value, f"{value:.12g}")


def _pose(T: Sequence[float], deg: bool) -> str:
    xyz = translation_of(T)
    rpy = rpy_from_rotation(rotation_of(T))[0]
    if hypot(*xyz) == 0.0 and max(map(abs, rpy)) == 0.0:
        return "none"
    return f"xyz {' '.join(_number(x, 'a', deg) for x in xyz)}  rpy {' '.join(_number(x, 'theta', deg) for x in rpy)}"


def _remarks(found: dict[str, Any]) -> None:
    text.say(f"  residual {found['residual']:.2g}")
    for name, rule in found.get("mimic", {}).items():
        text.say(f"  {name} follows: {rule['multiplier']:g} * {rule['joint']} + {rule['offset']:g}")
    for warning in found.get("warnings", []):
        text.say(f"  note: {warning}")
    if "warnings" in found:
        text.say("  note: twelve digits are shown here; -o and --json give them all")
