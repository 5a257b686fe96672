"""fkd: one robot's kinematics, served in microseconds from a bundle whose every file is hashed.

    >>> import fkd
    >>> robot = fkd.load("ur5e.zip")
    >>> robot.fk([0, -1.57, 1.57, 0, 1.57, 0])     # (4, 4), T_base_tip, metre and radian
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fkd.errors import FkdError as FkdError
    from fkd.robot import Robot as Robot
    from fkd.robot import load as load

__all__ = ["FkdError", "Robot", "load"]


def __getattr__(name: str) -> Any:
    """Import on first use: fkctl's short commands must not pay for kernels they do not run."""
    if name in ("Robot", "load"):
        from fkd import robot

        return getattr(robot, name)
    if name == "FkdError":
        from fkd.errors import FkdError

        return FkdError
    raise AttributeError(f"module 'fkd' has no attribute {name!r}")
