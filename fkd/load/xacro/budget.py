"""What one expansion may use, and the refusal that ends it. A hostile text meets a limit; a real one none.

The largest public description (PR2) takes a tenth of the steps and a fifteenth of the memory allowed here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from fkd.errors import did_you_mean

# Sizes of one value. Real files hold numbers, names and lists of some tens of entries.
MAX_STRING = 1 << 20  # characters
MAX_ITEMS = 100_000  # entries of a list, tuple, dict or range
MAX_BITS = 4096  # of an integer
MAX_NESTING = 50  # lists in lists

MAX_MESSAGE = 600  # characters: names in it may be of any length
STEPS_PER_LOOK = 256  # between two looks at the clock: some 0.2 ms of work


class Fault(Exception):
    """A refusal on its way up to the expander, which adds the place and the call chain.

    `file` and `line` are given where the place is not the element being expanded (a YAML file).
    """

    def __init__(self, reason: str, message: str, file: str | None = None, line: int = 0) -> None:
        message = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 3] + "..."
        super().__init__(message)
        self.reason, self.message, self.file, self.line = reason, message, file, line


@dataclass(slots=True)
class Budget:
    """Steps, bytes and seconds of processor time that one expansion may use; each use takes from what is left.

    Memory counts everything ever made, not what is alive: an upper bound that costs one subtraction. Time is that of
    the thread, so that a busy machine does not refuse a good model; steps end most attacks earlier, and everywhere
    at the same point.
    """

    steps: int = 300_000
    memory: int = 64 << 20
    seconds: float = 1.0
    _look: int = field(default=0, init=False)
    _deadline: float = field(default=0.0, init=False)

    def start(self) -> None:
        """Start the clock."""
        self._deadline = time.thread_time() + self.seconds

    def step(self, count: int = 1) -> None:
        """Take `count` steps. Raises Fault (`xacro-budget`) once steps or time have run out."""
        self.steps -= count
        self._look -= count
        if self._look < 0 or self.steps < 0:
            self._look_up()

    def hold(self, size: int) -> None:
        """Take `size` bytes. Raises Fault (`xacro-budget`)."""
        self.memory -= size
        if self.memory < 0:
            raise Fault("xacro-budget", "the expansion needs more memory than a robot description may use")

    def _look_up(self) -> None:
        self._look = STEPS_PER_LOOK
        if self.steps < 0:
            raise Fault("xacro-budget", "the expansion takes more steps than a robot description may use")
        if self._deadline and time.thread_time() > self._deadline:
            raise Fault("xacro-budget", f"the expansion takes longer than {self.seconds} s")


def suggest(name: str, candidates: Iterable[str]) -> str:
    """`did_you_mean` that stays fast whatever the names: the search is quadratic in their length."""
    if len(name) > 80:
        return ""
    return did_you_mean(name, [c for c in candidates if len(c) <= 80][:500])
