"""compute_ik."""

from __future__ import annotations

from msgspec import Raw

from fkd.aim import Aim
from fkd.methods.reading import read_pose, read_tool
from fkd.service import Session, Work
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode


def compute_ik(session: Session, params: Raw) -> Work:
    """Inverse kinematics: the configurations that take a link or tool to a pose.

    Where there are none, the error has as its reason unreachable, limits, singular or deadline, and in its data the nearest
    configuration that was found and how far off it is. The same question has the same answer, while there is time.
    """
    given = m.compute_ik.decode(params)
    aim = Aim(
        read_pose(given.pose, "$.params.pose"), given.link, given.base, read_tool(given.tool),
        None if given.seed is None else m.read_q(given.seed, "$.params.seed"), given.solutions, given.method,
        given.position_tolerance, given.orientation_tolerance, given.position_only, given.timeout_ms, given.best_effort,
        given.degrees,
    )  # fmt: skip
    return encode((yield from session.robot.inverse.search(aim)))
