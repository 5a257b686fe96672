"""The programs and compiled functions of one model: made when they are first asked for, and kept while they are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from fkd.kernel.emit_python import code, compile_python, function
from fkd.kernel.jacobian import pose_and_jacobian
from fkd.kernel.motion import Edge, Tree, forward
from fkd.kernel.pose import matrix
from fkd.kernel.program import Program, record
from fkd.kernel.scalar import Ref
from fkd.model import Model

if TYPE_CHECKING:
    from fkd.kernel.emit_numpy import Workspace

Kernel = Callable[[Sequence[float]], Any]

KEPT_WORKSPACES = 4  # for batches, in each thread; 1.4 MB each for a six-axis arm, some 10 MB for all links of 60
KEPT_KERNELS = 64  # compiled (base, links) pairs; each takes some 50 kB for a six-axis arm


class Kernels:
    """What computes for one model. Safe to share between threads.

    tip_code: what the default tip's kernel was compiled to, if it was, in another process.
    """

    def __init__(self, model: Model, tip_code: CodeType | None = None) -> None:
        self.model = model
        self.places = {link: k for k, link in enumerate(model.links)}  # of links in the tree
        self.tree = _tree(model, self.places)
        self._compiled: OrderedDict[tuple[Any, ...], Kernel] = OrderedDict()
        self._local = threading.local()  # each thread's workspaces, by (base, links)
        # The default tip's kernel: q -> 16 numbers. Compiled here, so that the first caller does not wait for it.
        self.tip_code = tip_code
        self.tip: Kernel = lambda _q: model.require_tip()
        if model.tip is not None:
            self.tip_code = tip_code or code(self.program((model.tip,), model.base), self._label(model.base, (model.tip,)))
            self.tip = self._compiled[model.base, (model.tip,)] = function(self.tip_code)

    def poses(self, links: tuple[str, ...], base: str) -> Kernel:
        """The compiled function q -> poses for these links, from the cache or made now."""
        return self._cached((base, links), lambda: compile_python(self.program(links, base), self._label(base, links)))

    def jacobian(self, link: str, base: str) -> Kernel:
        """The compiled function of `jacobian_program`, from the cache or made now."""
        return self._cached((base, (link,), "jacobian"), lambda: compile_python(
            self.jacobian_program(link, base), self._label(base, (link, "Jacobian"))
        ))  # fmt: skip

    def _label(self, base: str, links: Sequence[str]) -> str:
        """What a kernel is called in tracebacks and profiles."""
        return f"{self.model.name}: {base} -> {', '.join(links[:3])}"

    def _cached(self, key: tuple[Any, ...], make: Callable[[], Kernel]) -> Kernel:
        kernel = self._compiled.get(key)
        if kernel is None:
            kernel = self._compiled[key] = make()
            while len(self._compiled) > KEPT_KERNELS:
                self._compiled.popitem(last=False)
        else:
            try:  # noqa: SIM105 (suppress() would take as long again)
                self._compiled.move_to_end(key)
            except KeyError:  # another thread's kernels have pushed it out meanwhile
                pass
        return kernel

    def program(self, links: Sequence[str], base: str) -> Program:
        """The straight-line program q -> T_base_link, 16 numbers, one output a link."""
        places = [self.places[self.model.require_link(link)] for link in links]
        tree, start = self.tree, self.places[self.model.require_link(base, "$.params.base")]
        return record(tree.width, lambda q: [matrix(T) for T in forward(tree, q, places, start)])  # type: ignore[arg-type]

    def jacobian_program(self, link: str, base: str) -> Program:
        """The straight-line program q -> T_base_link (16 numbers) and the Jacobian (6 x dof numbers, row-major)."""
        place = self.places[self.model.require_link(link, "$.params.link")]
        tree, start = self.tree, self.places[self.model.require_link(base, "$.params.base")]

        def computation(q: Sequence[Ref]) -> list[list[Ref]]:
            T, rows = pose_and_jacobian(tree, q, place, start)
            return [matrix(T), [x for row in rows for x in row]]  # type: ignore[list-item,arg-type]

        return record(tree.width, computation)

    def workspace(self, links: tuple[str, ...], base: str) -> Workspace:
        """This thread's scratch for batches of these links, kept from call to call."""
        kept: OrderedDict[tuple[str, tuple[str, ...]], Workspace] = self._local.__dict__.setdefault("kept", OrderedDict())
        key = (base, links)
        if key not in kept:
            from fkd.kernel.emit_numpy import compile_numpy

            kept[key] = compile_numpy(self.program(links, base)).workspace()
            while len(kept) > KEPT_WORKSPACES:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key]

    def reference(self, q: Sequence[float], links: Sequence[str], base: str | None = None) -> dict[str, list[float]]:
        """The same poses by the kinematics run over floats: slow and obvious, the measure of every kernel."""
        places = [self.places[self.model.require_link(link)] for link in links]
        frames = forward(self.tree, q, places, self.places[self.model.base if base is None else base])
        return {link: matrix(T) for link, T in zip(links, frames, strict=True)}  # type: ignore[arg-type]


def _tree(model: Model, place: Mapping[str, int]) -> Tree:
    edges: list[Edge | None] = [None] * len(model.links)
    for j in model.joints:
        edges[place[j.child]] = Edge(j.type, place[j.parent], j.T_parent_joint, j.axis, j.index, j.ratio, j.bias)
    return Tree(tuple(edges), model.dof)
