"""jacobian: how the tip moves with each joint."""

from __future__ import annotations

import argparse
from typing import Any

from fkd.ctl import text
from fkd.ctl.poses import add_configuration, named
from fkd.ctl.target import tell

ROWS = ("vx", "vy", "vz", "wx", "wy", "wz")


def add_jacobian(p: argparse.ArgumentParser) -> None:
    add_configuration(p)
    p.add_argument("--link", metavar="L", help="the link whose velocity is meant (default: the tip)")
    p.add_argument("--frame", choices=("base", "tip"), default="base", help="whose axes the rows are in (default: base)")
    p.epilog = (
        "examples:\n  fkctl jacobian 0 -1.57 1.57 0 1.57 0\n  fkctl jacobian --deg 0 -90 90 0 90 0 --frame tip\n\n"
        "Rows: linear velocity of the link's origin (m), then angular (rad), per unit (rad or m) of each value of q."
    )
    p.set_defaults(run=jacobian)


def jacobian(options: argparse.Namespace) -> int:
    params = named(options, frame=options.frame, **({} if options.link is None else {"link": options.link}))
    return tell(options, "compute_jacobian", params, show_jacobian)


def show_jacobian(answer: dict[str, Any]) -> None:
    """The rows under the names of q's values, and how far they are from singular."""
    names = text.value_names(answer["joints"])
    columns = [[name, *(text.number(row[k]) for row in answer["jacobian"])] for k, name in enumerate(names)]
    widths = [max(map(len, c)) for c in columns]
    for i, label in enumerate(("  ", *ROWS)):
        text.say("  ".join((f"  {label}", *(c[i].rjust(w) for c, w in zip(columns, widths, strict=True)))))
    text.say(f"  manipulability   {answer['manipulability']:.9g}")
    text.say(f"  singular values  {text.numbers(answer['singular_values'])}")
