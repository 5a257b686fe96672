"""Arrays of configurations and poses: into the shapes that the batch kernels take, or an error that says what was wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkd.configuration import kind
from fkd.errors import InvalidParams

Array = NDArray[np.float64]


def rows(q: Any, dof: int) -> Array:
    """Rows of numbers -> an (n, dof) array. Raises InvalidParams."""
    try:
        found = q if isinstance(q, np.ndarray) and q.dtype.kind in "fiu" else np.asarray(q)
        if found.size and found.dtype.kind not in "fiu":  # no strings, booleans, complex numbers or objects
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidParams(f"a batch takes q as rows of {dof} numbers each, got {kind(q)}", reason="q-shape",
                            path="$.params.q", expected=f"(n, {dof})", got=kind(q)) from None
    if found.size == 0 and found.ndim == 1:
        found = found.reshape(0, dof)
    if found.ndim != 2 or found.shape[1] != dof:
        raise InvalidParams(f"a batch takes q as rows of {dof} numbers each, got an array of shape {found.shape}",
                            reason="q-shape", path="$.params.q", expected=f"(n, {dof})", got=str(found.shape))
    return found


def flat(out: Any, count: int, link: str) -> Array:
    """An (n, 4, 4) array of the caller's as (n, 16) over the same memory. Raises InvalidParams."""
    if isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == (count, 4, 4) and out.flags.writeable:
        found: Array = out.reshape(count, 16)
        if out.size == 0 or np.may_share_memory(found, out):
            return found
    got = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else kind(out)
    raise InvalidParams(f"out for link `{link}` must be a writeable float64 array of shape ({count}, 4, 4) whose matrices are "
                        f"contiguous, got {got}", reason="out-shape", path="out", expected=f"({count}, 4, 4)", got=got)


def first_not_finite(poses: Array) -> int | None:
    """The first row that holds what is no number, or None."""
    with np.errstate(all="ignore"):
        total = float(poses.sum())  # one pass without memory of its own; a finite sum has finite terms only
    if total - total == 0.0:
        return None
    bad = np.flatnonzero(~np.isfinite(poses).all(axis=1))
    return int(bad[0]) if len(bad) else None
