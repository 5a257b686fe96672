"""Numbers and tables as people read them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from math import degrees

PARTS = {3: ("x", "y", "theta"), 7: ("x", "y", "z", "qx", "qy", "qz", "qw")}  # of a planar joint, of a floating one


def number(x: float, width: int = 0) -> str:
    """Nine decimals, which is a nanometre; no negative zero."""
    text = f"{x:.9f}"
    return ("0.000000000" if text == "-0.000000000" else text).rjust(width)


def matrix(T: Sequence[float]) -> str:
    """16 numbers -> four aligned rows."""
    width = max(len(number(x)) for x in T)
    return "\n".join("  [ " + "  ".join(number(x, width) for x in T[4 * i : 4 * i + 4]) + " ]" for i in range(4))


def angles(values: Sequence[float], in_degrees: bool) -> str:
    """Angles in rad -> text in rad, or in degrees with the unit said."""
    shown = [degrees(a) for a in values] if in_degrees else values
    return " ".join(number(a) for a in shown) + (" deg" if in_degrees else "")


def numbers(values: Sequence[float]) -> str:
    return " ".join(number(v) for v in values)


def value_names(joints: Iterable[str]) -> list[str]:
    """For each value of q the joint that it moves -> a name for each: the joint's, with the part's behind it if it has several."""
    owners = list(joints)
    widths, seen = Counter(owners), Counter[str]()
    names = []
    for owner in owners:
        names.append(f"{owner}.{PARTS[widths[owner]][seen[owner]]}" if widths[owner] > 1 else owner)
        seen[owner] += 1
    return names


def count(n: int, noun: str) -> str:
    """1 error, 2 errors."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def say(text: str) -> None:
    print(text)


def raw(result: bytes) -> None:
    """The wire's result, to the byte, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(result + b"\n")
