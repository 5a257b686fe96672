"""A program -> NumPy calls for many configurations, chunk by chunk over scratch that is allocated once.

Every operation is one ufunc call over the rows of a chunk, written into a slot: one line of the workspace's pool. Which
operation writes which slot is settled once, by liveness; sines and cosines are taken for all angles at once.
A chunk allocates nothing, and rows are independent: the same row gives the same bits wherever in a batch it stands.
Against the function of emit_python, sines and cosines differ by 1.2e-16 at most, and seldom (see sincos); all else is bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fkd.errors import InvalidParams
from fkd.kernel.program import Program, operands
from fkd.kernel.sincos import PASSES as SINCOS_PASSES
from fkd.kernel.sincos import SinCos, aligned

Array = np.ndarray[Any, np.dtype[np.float64]]
Step = tuple[np.ufunc, tuple["int | Array", ...], int]  # function, slots or constants that it reads, slot it writes
Angles = tuple[int, int, int, int]  # first slot of the angles, of their sines, of their cosines; how many

UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative}
TURNS = ("sin", "cos")
# Rows of a chunk. A call costs about a microsecond, and half a nanosecond a row: with fewer rows the calls cost more
# than the work, with more the pool leaves the cache. CHUNK bounds rows times calls, in between.
LEAST_ROWS, MOST_ROWS, CHUNK = 1000, 4000, 1_200_000


class BatchKernel:
    """A program settled onto slots. Immutable: threads may share it, each with a workspace of its own."""

    def __init__(self, program: Program) -> None:
        plan = _Plan(program)
        self.width = program.width
        self.columns = tuple(len(group) for group in program.outputs)  # of each output
        self.inputs = _runs(plan.inputs)  # (first column of q, first slot, how many)
        self.steps = tuple(plan.steps)
        self.fixed = tuple(plan.fixed)  # (slot, constant)
        self.slots = plan.slots
        passes = len(plan.inputs) + sum(self.columns)
        passes += sum(1 if len(s) == 3 else SINCOS_PASSES * s[3] for s in plan.steps)
        self.rows = max(LEAST_ROWS, min(MOST_ROWS, CHUNK // max(passes, 1)))

    def workspace(self, rows: int | None = None) -> Workspace:
        """Scratch for one thread. rows: of a chunk, rounded up to a multiple of 8; default `self.rows`."""
        return Workspace(self, rows or self.rows)


def compile_numpy(program: Program) -> BatchKernel:
    """The program as a kernel for batches."""
    return BatchKernel(program)


class Workspace:
    """The scratch of one kernel, and the computation over it. One thread at a time: another thread takes another."""

    def __init__(self, kernel: BatchKernel, rows: int) -> None:
        self.kernel = kernel
        self.rows = rows = (rows + 7) // 8 * 8
        self._pool = aligned(kernel.slots, rows)
        for slot, value in kernel.fixed:
            self._pool[slot] = value
        self._sincos = SinCos(rows)
        self._calls = self._bound(rows)
        self._last = rows, self._calls

    def __call__(self, q: Array, outs: Sequence[Array] | None = None) -> tuple[Array, ...]:
        """q: (n, width) -> one (n, columns) for each output, written into `outs` if given.

        A row that is not finite, or has no result (a quaternion of norm zero), comes out not finite.
        Raises InvalidParams for shapes and kinds of arrays that do not fit.
        """
        self._check_q(q)
        if outs is None:
            outs = [np.empty((len(q), columns)) for columns in self.kernel.columns]
        for _ in self.chunks(q, outs):
            pass
        return tuple(outs)

    def chunks(self, q: Array, outs: Sequence[Array]) -> Iterator[int]:
        """The same in slices: yields the number of rows done after each chunk, so that others can have a turn.

        Nothing is kept in the scratch between chunks: others may use the workspace in their turn.
        """
        self._check_q(q)
        self._check_outs(q, outs)
        return self._chunks(q, outs)

    def _chunks(self, q: Array, outs: Sequence[Array]) -> Iterator[int]:
        for start in range(0, len(q), self.rows):
            stop = min(start + self.rows, len(q))
            self._chunk(q[start:stop], [out[start:stop] for out in outs])
            yield stop

    def _chunk(self, q: Array, outs: Sequence[Array]) -> None:
        n = len(q)
        if n != self._last[0]:
            self._last = n, self._calls if n == self.rows else self._bound(n)
        with np.errstate(all="ignore"):
            for column, slot, count in self.kernel.inputs:
                np.copyto(self._pool[slot : slot + count, :n], q[:, column : column + count].T)
            for function, arguments in self._last[1]:
                function(*arguments)
        first = 0
        for out in outs:
            columns = out.shape[1]
            np.copyto(out, self._pool[first : first + columns, :n].T)
            first += columns

    def _bound(self, n: int) -> list[tuple[Any, tuple[Array, ...]]]:
        """The kernel's steps for a chunk of n rows: functions and the arrays to call them with."""
        pool = self._pool[:, :n]
        calls: list[tuple[Any, tuple[Array, ...]]] = []
        for step in self.kernel.steps:
            if len(step) == 4:
                *firsts, count = step
                calls.append((self._sincos, tuple(pool[k : k + count] for k in firsts)))
            else:
                function, sources, target = step
                read = (pool[s] if isinstance(s, int) else s for s in sources)
                calls.append((function, (*read, pool[target])))
        return calls

    def _check_q(self, q: Array) -> None:
        if not isinstance(q, np.ndarray) or q.dtype.kind not in "fiu" or q.shape[1:] != (self.kernel.width,):
            raise InvalidParams(
                f"a batch takes q as an array of real numbers of shape (n, {self.kernel.width}), got {_form(q)}",
                reason="q-shape", path="$.params.q", expected=f"(n, {self.kernel.width})", got=_form(q),
            )  # fmt: skip

    def _check_outs(self, q: Array, outs: Sequence[Array]) -> None:
        if len(outs) != len(self.kernel.columns):
            raise InvalidParams(f"{len(outs)} arrays for {len(self.kernel.columns)} outputs", reason="out-shape")
        for k, (out, columns) in enumerate(zip(outs, self.kernel.columns, strict=True)):
            wanted = (len(q), columns)
            if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != wanted:
                raise InvalidParams(
                    f"output {k} must be a float64 array of shape {wanted}, got {_form(out)}",
                    reason="out-shape", path=f"out[{k}]", expected=str(wanted), got=_form(out),
                )  # fmt: skip
            if not out.flags.writeable or np.may_share_memory(q, out):
                raise InvalidParams(
                    f"output {k} must be writable and share no memory with q", reason="out-memory", path=f"out[{k}]"
                )


def _form(x: object) -> str:
    """An array as an error message names it."""
    return f"{x.dtype} of shape {x.shape}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"


def _runs(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, int, int], ...]:
    """(column, slot) pairs -> (column, slot, count): neighbours are copied together, in three quarters of the time."""
    runs: list[tuple[int, int, int]] = []
    for column, slot in sorted(pairs):
        if runs and (column, slot) == (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]):
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((column, slot, 1))
    return tuple(runs)


class _Plan:
    """Which slot holds what, and when. The outputs have the first slots, in order, and keep them."""

    def __init__(self, program: Program) -> None:
        self.inputs: list[tuple[int, int]] = []
        self.steps: list[Step | Angles] = []
        self.fixed: list[tuple[int, float]] = []
        self.slots = 0
        self._program = program
        self._left = program.uses  # reads of each node that are still to come
        self._slot: dict[int, int] = {}
        self._wanted: dict[int, int] = {}  # node -> the slot that it has to be made in
        self._free: list[int] = []
        copies = self._outputs()
        levels = self._levels()
        for level in range(max(levels, default=0) + 1):
            turns = [k for k, at in enumerate(levels) if at == level + 1 and program.nodes[k][0] in TURNS]
            angles = self._angles(turns)
            for k, at in enumerate(levels):
                if at == level:
                    self._make(k)
            self._turn(angles, turns)
        self._copy(copies)

    def _outputs(self) -> list[tuple[int, int]]:
        """Slots for the outputs -> (node, slot) of those that must be copied there at the end."""
        nodes = [node for group in self._program.outputs for node in group]
        self.slots = self._kept = len(nodes)
        copies = []
        angles = {a for op, a, _ in self._program.nodes if op in TURNS}
        for slot, node in enumerate(nodes):
            if node in self._program.constants:
                self.fixed.append((slot, self._program.constants[node]))
            elif node in self._wanted or node in angles or self._program.nodes[node][0] in TURNS:
                copies.append((node, slot))
            else:
                self._wanted[node] = slot
        return copies

    def _levels(self) -> list[int]:
        """For each node, how many sines and cosines lie one within the other between q and it."""
        levels: list[int] = []
        for op, a, b in self._program.nodes:
            levels.append(max((levels[p] for p in operands(op, a, b)), default=0) + (op in TURNS))
        return levels

    def _angles(self, turns: Sequence[int]) -> dict[int, int]:
        """Slots side by side for the angles of these nodes, then for all their sines, then for all their cosines."""
        angles = dict.fromkeys(self._program.nodes[k][1] for k in turns)
        count = len(angles)
        places = {node: self.slots + i for i, node in enumerate(angles)}
        for k in turns:
            op, a, _ = self._program.nodes[k]
            self._slot[k] = places[a] + (count if op == "sin" else 2 * count)
        self._wanted |= places
        self.slots += 3 * count
        return places

    def _make(self, node: int) -> None:
        op, a, b = self._program.nodes[node]
        if op == "const" or op in TURNS:
            return
        if op == "var":
            self._slot[node] = self._wanted[node] if node in self._wanted else self._take()
            self.inputs.append((a, self._slot[node]))
            return
        read = operands(op, a, b)
        sources = tuple(self._source(p) for p in read)
        for p in read:  # before the target is chosen: an operation may write over what it reads
            self._release(p)
        self._slot[node] = self._wanted[node] if node in self._wanted else self._take()
        self.steps.append((UFUNCS[op], sources, self._slot[node]))

    def _turn(self, angles: dict[int, int], turns: Sequence[int]) -> None:
        """The sines and cosines of a level, all at once."""
        if not angles:
            return
        self._copy([(node, slot) for node, slot in angles.items() if self._slot.get(node) != slot])
        first, count = min(angles.values()), len(angles)
        self.steps.append((first, first + count, first + 2 * count, count))
        for k in turns:
            self._release(self._program.nodes[k][1])
        used = {self._slot[k] for k in turns}
        self._free += [slot for slot in range(first + count, first + 3 * count) if slot not in used]

    def _copy(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.steps += [(np.positive, (self._source(node),), slot) for node, slot in pairs]

    def _source(self, node: int) -> int | Array:
        """A node's slot; a constant as an array without dimensions, which no call has to convert."""
        constants = self._program.constants
        return np.array(constants[node]) if node in constants else self._slot[node]

    def _take(self) -> int:
        """A slot that nothing needs any more, the last used first, or a new one."""
        if self._free:
            return self._free.pop()
        self.slots += 1
        return self.slots - 1

    def _release(self, node: int) -> None:
        self._left[node] -= 1
        if self._left[node] == 0 and self._slot.get(node, 0) >= self._kept:
            self._free.append(self._slot[node])
