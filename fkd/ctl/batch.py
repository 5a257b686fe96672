"""batch: many configurations in a file -> the poses of their links in another."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fkd.ctl import tables, text
from fkd.ctl.columns import Columns
from fkd.ctl.files import refuse_special, replacing
from fkd.ctl.interrupts import ended_by_signals
from fkd.ctl.main import UsageError, file_name
from fkd.ctl.progress import Progress
from fkd.ctl.tables import Array, Chunk, Reader, Wanted
from fkd.ctl.target import Local, Target, read, target
from fkd.errors import FkdError
from fkd.kernel.quaternions import quaternions_from_matrices

POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
MATRIX = tuple(f"m{i}{j}" for i in range(4) for j in range(4))
FORMS = {"pose": (POSE, (7,)), "matrix": (MATRIX, (4, 4))}
ASKED = 400_000  # bytes of a request: a daemon takes 1 MiB
POSES = 20_000  # of one reply

Compute = Callable[[Array], Sequence[Array]]  # (n, dof) rad|m -> for each link (n, 16)


def add_batch(p: argparse.ArgumentParser) -> None:
    p.add_argument("input", type=file_name, metavar="IN", help="rows of q: .csv (header of joint names, or model order), .npy (n, dof), .parquet")
    p.add_argument("output", type=file_name, metavar="OUT", help=".csv, .npy or .parquet, whatever IN is")
    p.add_argument("--link", action="append", metavar="L", help="a link to ask for; may be repeated (default: the tip)")
    p.add_argument("--base", metavar="LINK", help="the link that poses are expressed in")
    p.add_argument("--deg", action="store_true", help="revolute and continuous values are in degrees")
    p.add_argument("--format", choices=tuple(FORMS), help="columns of a link (default: matrix for .npy, else pose)")
    p.add_argument("--skip", action="append", default=[], metavar="COLUMN", help="leave out a column of IN that is no joint; may be repeated")
    p.add_argument("--quiet", action="store_true", help="no progress on the terminal")
    p.epilog = (
        "examples:\n  fkctl batch q.csv poses.csv\n  fkctl --model ur5e.zip batch q.npy poses.npy --link tool0 --link wrist_1_link\n"
        "  fkctl batch log.csv poses.parquet --skip time --deg\n\n"
        "OUT has a row for each row of IN. Poses are T_base_link: coordinates in the link's frame -> the base's.\n"
        "  pose     LINK.x .y .z (m) .qx .qy .qz .qw (unit quaternion, qw >= 0)\n"
        "  matrix   LINK.m00 .. LINK.m33 (4x4, row by row)\n"
        "  .npy     (n, 4, 4) or (n, 7) for one link, (n, links, 4, 4) or (n, links, 7) for several\n"
        "Wide joints take several columns: NAME.x NAME.y NAME.theta (planar), NAME.x .. NAME.qw (floating).\n"
        "A column of a follower (mimic) must agree with its source. Others are refused, unless --skip names them.\n"
        "A fault in IN is told with its line (.csv, from 1) or row (.npy, .parquet, from 0); OUT is written whole or not at all."
    )
    p.set_defaults(run=batch)


def batch(options: argparse.Namespace) -> int:
    form = options.format or ("matrix" if tables.kind(options.output) == ".npy" else "pose")
    refuse_special(Path(options.output), "poses.csv")
    for other in (options.input, options.model):
        if other and os.path.exists(options.output) and os.path.exists(other) and os.path.samefile(other, options.output):
            raise UsageError(f"{other} is read, and is the same file as OUT, {options.output}")
    answers = target(options)
    columns = read(answers.ask("model", []), "model", lambda model: Columns(model, options.deg))
    links = tuple(dict.fromkeys(options.link or [columns.tip]))
    frames = {"links": links, **({} if options.base is None else {"base": options.base})}
    answers.ask("compute_fk", {"q": {}, "missing": "zero", **frames})  # names that do not fit are told before rows are read
    reader = tables.open_table(options.input, Wanted(columns.names, tuple(columns.followers), options.skip))
    compute = local(answers, links, options.base) if isinstance(answers, Local) else live(answers, columns, frames)
    rows = 0
    with ended_by_signals(), Progress(shown=not options.quiet and sys.stderr.isatty()) as progress, replacing(Path(options.output)) as fresh:
        writer = tables.create_table(fresh, links, *FORMS[form])
        try:
            for chunk in reader.chunks():
                writer.write(in_form(computed(compute, columns.read(chunk, reader), chunk, reader), form))
                rows += len(chunk.values)
                progress.show(rows, chunk.share)
        finally:
            writer.close()
    if options.json:
        text.raw(json.dumps({"rows": rows, "links": links, "format": form, "digest": columns.digest}).encode())
    else:
        text.say(f"{text.count(rows, 'row')}, {text.count(len(links), 'link')}: {options.output}")
    return 0


def local(answers: Local, links: tuple[str, ...], base: str | None) -> Compute:
    """In this process, by the batch kernels: within 2 ulp of what a daemon answers."""
    robot = answers.robot

    def compute(q: Array) -> list[Array]:
        found: dict[str, Array] = robot.fk_batch(q, links, base)  # type: ignore[assignment]  # of several links
        return [found[link].reshape(-1, 16) for link in links]

    return compute


def live(answers: Target, columns: Columns, frames: dict[str, Any]) -> Compute:
    """By the daemon, as many rows at once as a message holds; each pose to the bit as `fkctl fk` has it.

    Raises FkdError if its model changes on the way.
    """
    links = frames["links"]
    step = max(1, min(ASKED // (25 * len(columns.names)), POSES // len(links)))

    def poses(answer: dict[str, Any], rows: int) -> list[Array]:
        if answer["digest"] != columns.digest:
            raise FkdError("the daemon's model changed while the batch ran; nothing was written", reason="model-changed")
        return [np.array(answer["poses"][link], np.float64).reshape(rows, 16) for link in links]

    def compute(q: Array) -> list[Array]:
        parts = []
        for first in range(0, len(q), step):
            rows = q[first : first + step]
            try:
                answer = answers.ask("compute_fk_batch", {"q": rows.tolist(), "stamp": True, **frames})
            except FkdError as e:
                raise RowError(e, first) from None
            parts.append(read(answer, "compute_fk_batch", partial(poses, rows=len(rows))))
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    return compute


class RowError(Exception):
    """An error about one of the rows that were asked together, which began at row `first`."""

    def __init__(self, error: FkdError, first: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.first = first


def computed(compute: Compute, q: Array, chunk: Chunk, reader: Reader) -> Sequence[Array]:
    """The poses of a chunk, one (n, 16) array a link. Raises FkdError that names the row's place in the file."""
    try:
        return compute(q)
    except RowError as e:
        raise placed(e.error, chunk.first + e.first, reader) from None
    except FkdError as e:
        raise placed(e, chunk.first, reader) from None


def placed(error: FkdError, first: int, reader: Reader) -> FkdError:
    """The error with the place in the file, where it is about one row."""
    head, _, rest = str(error.data.get("path", "")).partition("$.params.q[")
    digits = rest.partition("]")[0]
    if head or not digits.isdigit():
        return error
    return FkdError(f"{reader.place(first + int(digits))}: {error.message}", reason=error.reason)


def in_form(poses: Sequence[Array], form: str) -> Array:
    """(n, 16) arrays of links -> (n, links * 16), or (n, links * 7) with quaternions x y z w."""
    if form == "matrix":
        return np.concatenate(poses, axis=1)
    return np.concatenate([part for T in poses for part in (T[:, 3:12:4], quaternions_from_matrices(T))], axis=1)
