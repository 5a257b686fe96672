"""fkd: one robot's kinematics, served in microseconds from a bundle whose every file is hashed.

    >>> import fkd
    >>> robot = fkd.load("ur5e.zip")
    >>> robot.fk([0, -1.57, 1.57, 0, 1.57, 0])     # (4, 4), T_base_tip, metre and radian
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fkd.errors import FkdError as FkdError
    from fkd.robot import Robot as Robot
    from fkd.robot import load as load

__all__ = ["FkdError", "Robot", "load"]


def __getattr__(name: str) -> Any:
    """Import on first use: fkctl's short commands must not pay for kernels they do not run."""
    if name == "Robot":
        from fkd.robot import Robot

        return Robot
    if name == "FkdError":
        from fkd.errors import FkdError

        return FkdError
    raise AttributeError(f"module 'fkd' has no attribute {name!r}")


class _Package(ModuleType):
    """The package itself, whose `load` is the function, although importing `fkd.load` would put that package here."""

    @property
    def load(self) -> Any:
        from fkd.robot import load

        return load

    @load.setter
    def load(self, _package: ModuleType) -> None:
        """What the import system does; `from fkd.load import ...` finds the package all the same."""


sys.modules[__name__].__class__ = _Package
