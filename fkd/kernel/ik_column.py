"""One value of q in inverse kinematics: its limits, and angles that come round to the same pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, hypot, inf, isfinite, tau

from fkd.kernel.motion import Edge

# A range that lacks less than this of a full turn (limits written as 6.2832 or 3.1416) is a full turn to the search;
# what it then finds in the gap is moved onto the limit and measured anew.
GAP = 1e-4
ROUNDING = 1e-9  # rad or units of length by which a value may lie outside its limits and is moved onto them
TINY = 1e-9  # m; a reach below this is the rounding of an origin: the chain only turns
WIDE = 100.0  # m; limits of a slide beyond this are how files write "none" (999999 is seen): they give no measure


@dataclass(frozen=True, slots=True)
class Column:
    """One value of q that moves the tip: place in q, limits (infinite for none), whether it turns anything, period in
    which it repeats the pose (0: never), and the change that counts as one (1 rad, or the unit of length)."""

    index: int
    lower: float
    upper: float
    angle: bool
    period: float
    scale: float

    @property
    def bounded(self) -> bool:
        """Whether the search must heed the limits: not if they leave room for a whole period."""
        if self.period and self.upper - self.lower >= self.period - GAP:
            return False
        return isfinite(self.lower) or isfinite(self.upper)

    def within(self, x: float) -> float:
        """The value inside the limits nearest to x, whole periods aside: x itself, x after some periods, or a limit."""
        if self.lower <= x <= self.upper:
            return x
        if not self.period:
            return self.lower if x < self.lower else self.upper
        if x > self.upper:  # the last at or under the upper limit
            y = x - self.period * ceil((x - self.upper) / self.period)
            below, above = self.lower - y, y + self.period - self.upper
        else:  # the first at or over the lower limit
            y = x + self.period * ceil((self.lower - x) / self.period)
            below, above = self.lower - (y - self.period), y - self.upper
        if self.lower <= y <= self.upper:
            return y
        return self.lower if below < above else self.upper

    def near(self, x: float, seed: float) -> float:
        """x moved by whole periods to where it is inside the limits and nearest to `seed`; x, if nowhere inside."""
        if not self.period:
            return x
        best = x + self.period * round((seed - x) / self.period)
        if best < self.lower:  # a limit missed by rounding is met: one more turn would leave the seed for nothing
            best += self.period * ceil((self.lower - best) / self.period - ROUNDING)
        elif best > self.upper:
            best -= self.period * ceil((best - self.upper) / self.period - ROUNDING)
        clipped = min(max(best, self.lower), self.upper)
        return clipped if abs(clipped - best) <= self.period * 2 * ROUNDING else self.within(x)

    def inside(self, x: float, seed: float) -> float | None:
        """As `near`, or None where x is outside the limits, whole periods aside, by more than rounding."""
        y = self.within(self.near(x, seed))
        return y if abs(self.difference(y, x)) <= ROUNDING else None

    def centred(self, x: float) -> float:
        """x moved by whole periods to within half a period of the middle of the range that is sampled."""
        if not self.period:
            return x
        middle = 0.5 * (self.lower + self.upper) if self.bounded else 0.0
        return x - self.period * round((x - middle) / self.period)

    def difference(self, a: float, b: float) -> float:
        """a - b, whole periods aside, in units of its scale."""
        d = a - b
        if self.period:
            d -= self.period * round(d / self.period)
        return d / self.scale


def columns(edges: Sequence[Edge], lower: Sequence[float], upper: Sequence[float], length: float) -> list[Column]:
    """The values that move what these joints carry, in the order of the joints. length: the chain's unit of length."""
    turns: dict[int, list[float]] = {}  # place in q -> ratios of the angles that it drives
    slides: set[int] = set()
    moved: list[int] = []  # in the order from base to link
    for e in edges:
        if e.kind in ("revolute", "continuous") and e.ratio:
            turns.setdefault(e.index, []).append(abs(e.ratio))
            moved.append(e.index)
        elif e.kind == "prismatic" and e.ratio:
            slides.add(e.index)
            moved.append(e.index)
        elif e.kind == "planar":
            slides |= {e.index, e.index + 1}
            turns.setdefault(e.index + 2, []).append(1.0)
            moved += range(e.index, e.index + 3)
    result = []
    for i in dict.fromkeys(moved):
        ratios = turns.get(i, [])
        period = 0.0
        if i not in slides and all(r / min(ratios) % 1.0 == 0.0 for r in ratios):
            period = tau / min(ratios)
        result.append(Column(i, lower[i], upper[i], bool(ratios), period, 1.0 if ratios else length))
    return result


def reach(edges: Sequence[Edge], lower: Sequence[float], upper: Sequence[float]) -> float:
    """No pose of the chain is further than this from its base (m), slides without limits aside; 1 where joints only turn."""
    total = 0.0
    for e in edges:
        T = e.T_parent_joint
        total += hypot(T[3], T[7], T[11])
        if e.kind == "prismatic":
            ends = [abs(e.ratio * x + e.bias) for x in (lower[e.index], upper[e.index])]
            total += max((x for x in ends if x <= WIDE), default=0.0)
    return total if TINY < total < inf else 1.0
