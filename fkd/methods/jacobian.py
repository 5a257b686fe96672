"""compute_jacobian."""

from __future__ import annotations

from msgspec import Raw

from fkd.methods.reading import read_tool
from fkd.service import Session
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode


def compute_jacobian(session: Session, params: Raw) -> bytes:
    """By position: the default tip's 6 rows. By name: the rows, whose columns they have, and how well they are conditioned."""
    given = m.compute_jacobian.decode(params)
    robot = session.robot
    if isinstance(given, list):
        return encode(robot.jacobian_rows(given, path="$.params"))
    q = robot.configuration(m.read_q(given.q), degrees=given.degrees, missing=given.missing)
    rows = robot.jacobian_rows(q, given.link, given.base, read_tool(given.tool), given.frame)
    from fkd.kernel.singular import manipulability, singular_values  # NumPy is not needed for a pose

    found = singular_values(rows)
    return encode({"jacobian": rows, "joints": robot.model.q_names, "manipulability": manipulability(found), "singular_values": found})
