"""Where to start the search for a configuration: samples of a chain's own poses, nearest to the target first.

The samples are a fixed low-discrepancy sequence over the limits, the same in every process: the search has no random
numbers. A sample whose pose is near the target lies near a solution, of one branch or another, so that the next-nearest
is the natural restart. Source of the sequence: Roberts 2018, the additive recurrence of the generalised golden ratio.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from math import pi

import numpy as np

from fkd.kernel.ik_chain import Chain, Target
from fkd.kernel.ik_column import WIDE, Column

SAMPLES = 1024  # some 4 ms; four times as many save 6 % of the iterations, and cost as much to look through
PER_COLUMN = 32  # chains of one or two values need fewer
SLICE = 32  # samples between two rests: some 0.1 ms


class Starts:
    """The samples of one chain, made when they are first wanted."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        # values (s, n); and by sample: pose (12), |p|^2, values over scale (n), the sum of their squares
        self._samples: tuple[np.ndarray, np.ndarray] | None = None

    def prepare(self) -> Generator[None, None, None]:
        """Make the samples, resting between slices. Two at once do the work twice and agree."""
        if self._samples is not None:
            return
        chain = self.chain
        pose = chain.pose()
        yield
        n = len(chain.columns)
        count = min(SAMPLES, PER_COLUMN**n)
        steps = _steps(n)
        ranges = [_range(c, chain.reach) for c in chain.columns]
        values, table = np.empty((count, n)), np.empty((14 + n, count), np.float32)
        for s in range(count):
            x = [low + (0.5 + (s + 1) * a) % 1.0 * span for a, (low, span) in zip(steps, ranges, strict=True)]
            values[s] = x
            T = pose(x)
            scaled = [v * u for v, u in zip(x, chain.units, strict=True)]
            table[:, s] = [*T, T[3] * T[3] + T[7] * T[7] + T[11] * T[11], *scaled, sum(v * v for v in scaled)]
            if s % SLICE == SLICE - 1:
                yield
        self._samples = values, table

    def nearest(self, target: Target, seed: Sequence[float], pull: float) -> Iterator[list[float]]:
        """All samples' values, those first whose pose is nearest to the target; `prepare` must have run.

        pull: what the squared distance of the values from `seed` counts for, against that of the poses.
        """
        assert self._samples is not None
        values, table = self._samples
        *R, px, py, pz, x, y, z = target.values
        # minus (|p - p'|^2 + |R - R'|^2 / 2, about the square of the angle between, + pull |v - v'|^2) is, but for
        # constants, linear in what is kept of a sample
        units = self.chain.units
        near = [c.centred(v) * u for c, v, u in zip(self.chain.columns, seed, units, strict=True)]
        from_seed = [*(2.0 * pull * v for v in near), -pull]
        if target.position_only:
            closeness = np.einsum("j,ji->i", np.array(from_seed, np.float32), table[13:])
            for i, goal in enumerate((px, py, pz)):
                row = table[4 * i : 4 * i + 4]
                closeness -= (row[0] * x + row[1] * y + row[2] * z + (row[3] - goal)) ** 2
        else:
            px, py, pz = (a - R[3 * i] * x - R[3 * i + 1] * y - R[3 * i + 2] * z for i, a in enumerate((px, py, pz)))
            weights = [*R[0:3], 2.0 * px, *R[3:6], 2.0 * py, *R[6:9], 2.0 * pz, -1.0, *from_seed]
            closeness = np.einsum("j,ji->i", np.array(weights, np.float32), table)
        for _ in range(len(values)):
            # The place of the maximum, in two scalar calls; and above, einsum for a product. argmax, min, sort and BLAS
            # use 512-bit instructions, after which many a processor runs a third slower for some 2 ms: all of a search.
            rising = np.maximum.accumulate(closeness)
            best = int(rising.searchsorted(rising[-1]))
            closeness[best] = -np.inf
            yield values[best].tolist()


def _steps(n: int) -> list[float]:
    """The recurrence's step for each of n dimensions."""
    g = 2.0
    for _ in range(64):
        g = (1.0 + g) ** (1.0 / (n + 1))
    return [g ** -(k + 1) % 1.0 for k in range(n)]


def _range(column: Column, reach: float) -> tuple[float, float]:
    """Lowest sample and span of a value: its limits, else a period, else as far as the chain reaches either way."""
    if column.period and not column.bounded:
        return -0.5 * column.period, column.period
    rest = column.within(0.0)
    unit = pi if column.angle else reach
    low = column.lower if abs(column.lower) <= WIDE else max(rest - unit, column.lower)
    high = column.upper if abs(column.upper) <= WIDE else min(rest + unit, column.upper)
    return low, high - low
