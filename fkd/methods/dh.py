"""dh."""

from __future__ import annotations

from msgspec import Raw

from fkd.service import Session, Work
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode


def dh(session: Session, params: Raw) -> Work:
    """{"convention", "rows": [{"joint", "type", "a", "alpha", "d", "theta"}], "base", "tool", "residual"}, and what to heed."""
    from fkd.dh import table  # it needs NumPy, which poses do not

    given = m.dh.decode(params)
    if isinstance(given, list):
        m.read_nothing(params, "dh by position")
        given = m.Dh()
    model, kernels = session.robot.model, session.robot.kernels
    link = given.link if given.link is not None else model.require_tip()
    return encode((yield from table(kernels, link, model.base if given.base is None else given.base, given.convention)))
