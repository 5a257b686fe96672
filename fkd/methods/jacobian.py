"""compute_jacobian."""

from __future__ import annotations

from math import isfinite

from msgspec import Raw

from fkd.errors import InvalidParams
from fkd.methods.reading import read_tool
from fkd.service import Session
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode


def compute_jacobian(session: Session, params: Raw) -> bytes:
    """The geometric Jacobian of a link or tool, and how far it is from a singular one.

    By position, `[q1 .. qn]`: the 6 rows alone, for the model's tip, in the axes of its base.
    """
    given = m.compute_jacobian.decode(params)
    robot = session.robot
    if isinstance(given, list):
        return encode(robot.jacobian_rows(given, path="$.params"))
    q = robot.configuration(m.read_q(given.q), degrees=given.degrees, missing=given.missing)
    rows = robot.jacobian_rows(q, given.link, given.base, read_tool(given.tool), given.frame)
    from fkd.kernel.singular import manipulability, singular_values  # NumPy is not needed for a pose

    found = singular_values(rows)
    size = manipulability(found)
    if not isfinite(size):
        raise InvalidParams("the manipulability at this q is beyond the range of a double", reason="overflow", path="$.params.q",
                            expected="a robot and values of a usual size", got="too large")
    return encode({"jacobian": rows, "joints": robot.model.q_names, "manipulability": size, "singular_values": found})
