"""A Denavit-Hartenberg table (CSV, TOML or JSON) -> the records of a robot whose joints turn or slide along z.

Conventions and units are stated, never guessed: by the file itself or by the caller. Link k's frame stands at
joint k: before the row's constant part in the standard convention, after it in the modified one; the rest of the
last row and the tool lead to `tool0`.

    standard:  T(k-1, k) = Rz(theta) Tz(d) Tx(a) Rx(alpha)      Source: Denavit and Hartenberg 1955
    modified:  T(k-1, k) = Rx(alpha) Tx(a) Rz(theta) Tz(d)      Source: Craig, Introduction to Robotics, 3.4

A joint's value adds to theta (revolute, continuous) or d (prismatic).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from fkd.errors import BundleRefused
from fkd.kernel.motion import compose
from fkd.kernel.pose import frame, rotation_from_rpy, rotation_of, rpy_from_rotation, translation_of
from fkd.load.urdf import Description, JointRecord
from fkd.load.xml import Element
from fkd.model import IDENTITY, Frame, Limits, Mimic

NOISE = 1e-15  # of a cosine: a joint's angles are read back, and convention must not cost them any digit beyond it


@dataclass(frozen=True)
class Row:
    """One row in m and rad, and the line it stands on."""

    joint: str
    type: str
    a: float
    alpha: float
    d: float
    theta: float
    limits: Limits | None
    line: int
    mimic: Mimic | None = None


@dataclass(frozen=True)
class Table:
    """A whole table in m and rad; base is T_base_0, tool is T_n_tool."""

    name: str
    file: str
    convention: str
    rows: tuple[Row, ...]
    base: Frame = IDENTITY
    tool: Frame = IDENTITY


def describe_table(table: Table) -> Description:
    """The table's robot as records: base_link, one link a moving row, tool0."""
    joints: list[JointRecord] = []
    links = ["base_link"]
    pending = table.base  # the constant part since the last joint
    for row in table.rows:
        before, after = _row(table.convention, row)
        pending = _compose(pending, before)
        if row.type != "fixed":
            links.append(f"link_{len(links)}")
            joints.append(_joint(row.joint, row.type, links[-2], links[-1], pending, table.file, row.line, row.limits, row.mimic))
            pending = IDENTITY
        pending = _compose(pending, after)
    last = table.rows[-1].line
    joints.append(_joint(_free("tool_joint", joints), "fixed", links[-1], "tool0", _compose(pending, table.tool), table.file, last))
    links.append("tool0")
    elements = [(link, Element("link", {"name": link}, table.file, 1)) for link in links]
    return Description(table.name, table.file, 1, elements, joints, [])


def _free(name: str, joints: Sequence[JointRecord]) -> str:
    taken = {j.name for j in joints}
    while name in taken:
        name += "_"
    return name


def _row(convention: str, row: Row) -> tuple[Frame, Frame]:
    """A row's constant parts before and after its joint's motion."""
    about_x = frame((row.a, 0.0, 0.0), rotation_from_rpy((row.alpha, 0.0, 0.0)))
    about_z = frame((0.0, 0.0, row.d), rotation_from_rpy((0.0, 0.0, row.theta)))
    # Rz(theta) Tz(d) commutes with the motion, which is about or along the same z.
    return (about_z, about_x) if convention == "standard" else (_compose(about_x, about_z), IDENTITY)


def _compose(A: Frame, B: Frame) -> Frame:
    return tuple(x + 0.0 for x in compose(A, B))  # type: ignore[misc]


def _joint(
    name: str, kind: str, parent: str, child: str, T: Frame, file: str, line: int, limits: Limits | None = None,
    mimic: Mimic | None = None,
) -> JointRecord:
    if not all(map(isfinite, T)):
        raise BundleRefused(f"{file}:{line}: the frame of joint `{name}` leaves the range of a double", reason="dh-overflow", file=file, line=line)
    rpy = rpy_from_rotation(rotation_of(T), NOISE)[0]
    return JointRecord(name, kind, parent, child, file, line, translation_of(T), rpy, (0.0, 0.0, 1.0), limits, mimic)
