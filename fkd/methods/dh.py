"""dh."""

from __future__ import annotations

from msgspec import Raw

from fkd.service import Session, Work
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode


def dh(session: Session, params: Raw) -> Work:
    """A chain as a Denavit-Hartenberg table, with the transforms before and behind that make it complete.

    For revolute, continuous and prismatic joints. `residual` is what proves it. By position, `[]`: from the model's base to
    its tip, by the standard convention.
    """
    from fkd.dh import table  # it needs NumPy, which poses do not

    given = m.dh.decode(params)
    if isinstance(given, list):
        m.read_nothing(params, "dh by position")
        given = m.Dh()
    model, kernels = session.robot.model, session.robot.kernels
    link = given.link if given.link is not None else model.require_tip()
    return encode((yield from table(kernels, link, model.base if given.base is None else given.base, given.convention)))
