"""Inverse kinematics of one chain: the closed form where there is one, the numeric search where there is none."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from time import monotonic

from fkd.kernel.ik_analytic import recognise
from fkd.kernel.ik_answer import Answer, Goal, Solution
from fkd.kernel.ik_chain import Chain
from fkd.kernel.ik_numeric import STARTS, Clock, Search
from fkd.kernel.ik_starts import Starts
from fkd.kernel.motion import Tree
from fkd.kernel.steps import finished

STARTS_PROVEN = 16  # starts where the closed form has shown that there is no solution, and only the nearest is wanted


class Ik:
    """All that is compiled for the chain from `base` to `link` (places in the tree). Safe to share between threads.

    lower, upper: limits for each value of q, infinite for none; rest: what stands for q where a goal has no seed, best
    the middle of the limits. All (tree.width,), rad|m.
    Raises ValueError for a floating joint on the way.
    """

    def __init__(
        self, tree: Tree, link: int, base: int, lower: Sequence[float], upper: Sequence[float], rest: Sequence[float]
    ) -> None:
        self.chain = Chain(tree, link, base, lower, upper)
        self.starts = Starts(self.chain)
        self.analytic = recognise(self.chain)
        self.rest = tuple(rest)

    def prepare(self, position_only: bool = False) -> Generator[None, None, None]:
        """Compile and sample what such goals need, some 30 ms the first time, resting after 5 ms at most."""
        yield from self.chain.prepare(position_only)
        yield from self.starts.prepare()

    def search(
        self, goal: Goal, method: str = "auto", deadline: float | None = None, clock: Clock = monotonic
    ) -> Generator[None, None, Answer]:
        """The search as a generator: prepared, each `next` does some 20 to 200 us of work; its value is the Answer.

        method: "auto", "numeric", or "analytic", which must be there (`analytic`) and does not do position_only.
        deadline: in seconds on `clock`; None for no bound but the number of starts.
        """
        starts, outside = STARTS, False
        if self.analytic is not None and method != "numeric" and not goal.position_only:
            found, outside = yield from self._closed(goal)
            if found:
                return Answer(found, None, "", "analytic", 0, 0)
            if outside or self.analytic.exact:
                starts = STARTS_PROVEN
        answer = yield from Search(self.chain, self.starts, self.rest, goal, deadline, clock, starts).run()
        if outside and answer.reason in ("unreachable", "singular"):
            return Answer([], answer.nearest, "limits", answer.method, answer.iterations, answer.restarts)
        return answer

    def solve(
        self, goal: Goal, method: str = "auto", deadline: float | None = None, clock: Clock = monotonic
    ) -> Answer:
        """The same without rests."""
        return finished(self.search(goal, method, deadline, clock))

    def _closed(self, goal: Goal) -> Generator[None, None, tuple[list[Solution], bool]]:
        """The closed form's solutions, nearest to the seed first, and whether there are others outside the limits."""
        assert self.analytic is not None
        chain = self.chain
        base = goal.seed if goal.seed is not None else self.rest
        seed = chain.chosen(base)
        target = chain.target(goal.T_base_tool, goal.tool, False)
        tolerances = goal.position_tolerance / chain.length, goal.orientation_tolerance
        found, outside = yield from self.analytic.solve(target, seed, tolerances, goal.solutions != "all")
        solutions = []
        step = chain.step(False)
        for x, singular in sorted(found, key=lambda f: chain.way(f[0], seed)):
            yield
            position, angle = chain.errors(step([*x, *target.values, 0.0, *chain.free]))
            solutions.append(Solution(chain.whole(x, base), position * chain.length, angle, True, singular))
        return solutions, outside
