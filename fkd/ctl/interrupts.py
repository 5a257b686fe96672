"""Signals that end a command, as Ctrl-C does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """`kill` and a terminal that goes end the work as Ctrl-C does, so that nothing half done is left."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGHUP)}
    caught = [s for s, handler in before.items() if handler == signal.SIG_DFL]  # not what nohup ignores
    for s in caught:
        signal.signal(s, stop)
    try:
        yield
    finally:
        for s in caught:
            signal.signal(s, signal.SIG_DFL)
