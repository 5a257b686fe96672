"""Long computations as generators: each step is short, so that whoever has others to serve can do so in between."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


def finished(steps: Generator[Any, None, T]) -> T:
    """What the computation returns, all its steps taken at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
