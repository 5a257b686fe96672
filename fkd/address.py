"""Where daemon and clients meet unless they are told otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping


def default_socket(environ: Mapping[str, str]) -> str:
    """$FKD_SOCKET, else fkd.sock in $RUNTIME_DIRECTORY (its first folder), $XDG_RUNTIME_DIR or /run/fkd."""
    if path := environ.get("FKD_SOCKET"):
        return path
    folder = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0] or environ.get("XDG_RUNTIME_DIR") or "/run/fkd"
    return os.path.join(folder, "fkd.sock")
