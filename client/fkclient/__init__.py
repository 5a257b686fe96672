"""Client of fkd, the forward kinematics daemon.

    from fkclient import Client

    with Client() as robot:
        pose = robot.fk([0.0, -1.57, 1.57, 0.0, 0.0, 0.0])  # 16 numbers, row-major, base <- tip

`AsyncClient` has the same verbs as coroutines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fkclient.errors import (
    BadReply,
    BadValue,
    ConnectionLost,
    FkError,
    ModelChanged,
    NoDaemon,
    RpcError,
    Timeout,
)
from fkclient.sync import Client

if TYPE_CHECKING:
    from fkclient.aio import AsyncClient

__all__ = [
    "AsyncClient",
    "BadReply",
    "BadValue",
    "Client",
    "ConnectionLost",
    "FkError",
    "ModelChanged",
    "NoDaemon",
    "RpcError",
    "Timeout",
]


def __getattr__(name: str) -> object:
    if name == "AsyncClient":  # on demand: asyncio costs several times what the rest does
        from fkclient.aio import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
