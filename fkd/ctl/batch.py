"""batch: many configurations in a file -> the poses of their links in another."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from fkd.ctl import tables, text
from fkd.ctl.files import refuse_special, replacing
from fkd.ctl.main import UsageError, file_name
from fkd.ctl.tables import Array, Chunk
from fkd.ctl.target import Local, Target, read, target
from fkd.errors import FkdError, InvalidParams
from fkd.kernel.pose import quaternion_from_rotation, rotation_of

PARTS = {3: ("x", "y", "theta"), 7: ("x", "y", "z", "qx", "qy", "qz", "qw")}  # the columns of wide joints
POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
MATRIX = tuple(f"m{i}{j}" for i in range(4) for j in range(4))
ASKED = 400_000  # bytes of a request: a daemon takes 1 MiB
POSES = 20_000  # of one reply

Compute = Callable[[Array], dict[str, Array]]  # (n, dof) rad|m -> {link: (n, 16)}


def add_batch(p: argparse.ArgumentParser) -> None:
    p.add_argument("input", type=file_name, metavar="IN", help="rows of q: .csv (header of joint names, or model order), .npy (n, dof), .parquet")
    p.add_argument("output", type=file_name, metavar="OUT", help=".csv, .npy or .parquet, whatever IN is")
    p.add_argument("--link", action="append", metavar="L", help="a link to ask for; may be repeated (default: the tip)")
    p.add_argument("--base", metavar="LINK", help="the link that poses are expressed in")
    p.add_argument("--deg", action="store_true", help="revolute and continuous values are in degrees")
    p.add_argument("--format", choices=("pose", "matrix"), help="columns of a link (default: matrix for .npy, else pose)")
    p.add_argument("--skip", action="append", default=[], metavar="COLUMN", help="leave out a column of IN that is no joint; may be repeated")
    p.add_argument("--quiet", action="store_true", help="no progress on the terminal")
    p.epilog = (
        "examples:\n  fkctl batch q.csv poses.csv\n  fkctl --model ur5e.zip batch q.npy poses.npy --link tool0 --link wrist_1_link\n"
        "  fkctl batch log.csv poses.parquet --skip time --deg\n\n"
        "Poses are T_base_link. pose: LINK.x .y .z (m) .qx .qy .qz .qw; matrix: LINK.m00 .. LINK.m33, row-major.\n"
        ".npy: (n, 4, 4) or (n, 7) for one link, (n, links, 4, 4) or (n, links, 7) for several.\n"
        "Wide joints take several columns: NAME.x NAME.y NAME.theta (planar), NAME.x .. NAME.qw (floating)."
    )
    p.set_defaults(run=batch)


def batch(options: argparse.Namespace) -> int:
    form = options.format or ("matrix" if tables.kind(options.output) == ".npy" else "pose")
    refuse_special(Path(options.output), "poses.csv")
    if os.path.exists(options.output) and os.path.exists(options.input) and os.path.samefile(options.input, options.output):
        raise UsageError(f"IN and OUT are the same file, {options.output}")
    answers = target(options)
    model = read(answers.ask("model", []), "model", dict)
    reader = tables.read_table(options.input, columns(model), options.skip)
    scale = radians(model) if options.deg else None
    links = tuple(dict.fromkeys(options.link or [default_tip(model)]))
    compute = local(answers, links, options.base) if isinstance(answers, Local) else live(answers, model, links, options.base)
    progress = Progress(sys.stderr, shown=not options.quiet and sys.stderr.isatty())
    rows = 0
    try:
        with replacing(Path(options.output)) as fresh:
            writer = written(fresh, links, form)
            try:
                for chunk in reader.chunks():
                    writer.write(in_form(computed(compute, chunk, reader, scale), form))
                    rows += len(chunk.values)
                    progress.show(rows, chunk.share)
            finally:
                writer.close()
    finally:
        progress.end()
    if options.json:
        text.raw(json.dumps({"rows": rows, "links": links, "format": form, "digest": model["digest"]}).encode())
    else:
        text.say(f"{text.count(rows, 'row')}, {text.count(len(links), 'link')}: {options.output}")
    return 0


def columns(model: dict[str, Any]) -> list[str]:
    """The names of q's values, in their order: the joint's, with a part's behind it where it has several."""
    joints = {j["name"]: j for j in model["joints"]}
    return [f"{name}.{part}" if part else name for name in model["q"] for part in PARTS.get(joints[name]["width"], ("",))]


def radians(model: dict[str, Any]) -> Array:
    """What each value in degrees is multiplied with to give rad|m. Raises FkdError for wide joints."""
    joints = {j["name"]: j for j in model["joints"]}
    for name in model["q"]:
        if joints[name]["width"] > 1:
            raise FkdError(f"--deg is not defined for the {joints[name]['type']} joint `{name}`; give radians and metres")
    return np.array([pi / 180.0 if joints[name]["type"] in ("revolute", "continuous") else 1.0 for name in model["q"]])


def default_tip(model: dict[str, Any]) -> str:
    if model["tip"] is None:
        raise FkdError(f"robot `{model['name']}` has no single tip; name the links with --link")
    tip: str = model["tip"]
    return tip


def local(answers: Local, links: tuple[str, ...], base: str | None) -> Compute:
    """In this process, by the batch kernels."""
    robot = answers.robot

    def compute(q: Array) -> dict[str, Array]:
        found: dict[str, Array] = robot.fk_batch(q, links, base)  # type: ignore[assignment]  # of several links
        return {link: T.reshape(-1, 16) for link, T in found.items()}

    return compute


def live(answers: Target, model: dict[str, Any], links: tuple[str, ...], base: str | None) -> Compute:
    """By the daemon, as many rows at once as a message holds. Raises FkdError if its model changes on the way."""
    step = max(1, min(ASKED // (25 * max(model["dof"], 1)), POSES // len(links)))
    params = {"links": links, "stamp": True, **({} if base is None else {"base": base})}

    def ask(q: Array, first: int) -> dict[str, list[list[float]]]:
        try:
            answer = answers.ask("compute_fk_batch", {"q": q.tolist(), **params})
        except FkdError as e:
            raise RowError(e, first) from None
        found = read(answer, "compute_fk_batch", dict)
        if found["digest"] != model["digest"]:
            raise FkdError("the daemon's model changed while the batch ran; nothing was written", reason="model-changed")
        poses: dict[str, list[list[float]]] = found["poses"]
        return poses

    def compute(q: Array) -> dict[str, Array]:
        parts = [ask(q[k : k + step], k) for k in range(0, len(q), step)]
        return {link: np.array([T for part in parts for T in part[link]]).reshape(-1, 16) for link in links}

    return compute


class RowError(Exception):
    """An error about one row of several that were asked together."""

    def __init__(self, error: FkdError, first: int = 0) -> None:
        super().__init__(str(error))
        self.error = error
        self.first = first


def computed(compute: Compute, chunk: Chunk, reader: tables.Reader, scale: Array | None) -> list[Array]:
    """The poses of a chunk, one (n, 16) array a link. Raises FkdError that names the row's place in the file."""
    q = chunk.values if scale is None else chunk.values * scale
    finite = np.isfinite(q).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise FkdError(f"{reader.place(chunk.first + row)}: a value is not a finite number")
    try:
        return list(compute(q).values())
    except RowError as e:
        raise placed(e.error, chunk.first + e.first, reader) from None
    except InvalidParams as e:
        raise placed(e, chunk.first, reader) from None


def placed(error: FkdError, first: int, reader: tables.Reader) -> FkdError:
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
    rows = [
        [[T[3], T[7], T[11], *quaternion_from_rotation(rotation_of(T))] for T in found.tolist()] for found in poses
    ]
    return np.concatenate([np.array(r).reshape(-1, 7) for r in rows], axis=1)


def written(path: Path, links: Sequence[str], form: str) -> tables.Writer:
    """The file that takes the poses."""
    ending = tables.kind(path.name)
    if ending == ".npy":
        many = () if len(links) == 1 else (len(links),)
        return tables.NpyWriter(path, (*many, 4, 4) if form == "matrix" else (*many, 7))
    names = [f"{link}.{part}" for link in links for part in (MATRIX if form == "matrix" else POSE)]
    return tables.CsvWriter(path, names) if ending == ".csv" else tables.ParquetWriter(path, names)


class Progress:
    """One line on the terminal that tells how far it is, some ten times a second."""

    def __init__(self, stream: Any, *, shown: bool) -> None:
        self._stream = stream
        self._shown = shown
        self._start = self._last = time.monotonic()

    def show(self, rows: int, share: float) -> None:
        now = time.monotonic()
        if not self._shown or (now - self._last < 0.1 and share < 1.0):
            return
        self._last = now
        took = max(now - self._start, 1e-9)
        left = took / share - took if share else 0.0
        bar = "#" * round(24 * share)
        self._stream.write(f"\r[{bar:<24}] {share:4.0%}  {rows} rows  {rows / took:,.0f} rows/s  {left:.0f} s left \x1b[K")
        self._stream.flush()

    def end(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
