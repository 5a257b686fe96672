"""export-c: a model as C99, for controllers that have no socket."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from fkd.ctl import text
from fkd.ctl.convert import write
from fkd.ctl.main import UsageError, file_name
from fkd.ctl.target import Local
from fkd.errors import FkdError
from fkd.exportc import export_c as written


def add_export_c(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", nargs="?", type=file_name, metavar="FILE", help="a bundle, URDF, xacro or DH table (or use --model)")
    p.add_argument("-o", "--output", type=file_name, default=".", metavar="DIR", help="where the two files go (default: here)")
    p.add_argument("--link", action="append", metavar="L", help="functions for this link; may be repeated (default: the tip)")
    p.add_argument("--prefix", type=file_name, metavar="P", help="what all names begin with (default: the robot's name)")
    p.add_argument("--float", action="store_true", help="single precision (default: double)")
    p.epilog = (
        "examples:\n  fkctl export-c ur5e.zip -o src\n  fkctl export-c ur5e.zip --link tool0 --link wrist_1_link --float\n\n"
        "Writes PREFIX_fk.h and PREFIX_fk.c: C99 that needs libm alone, allocates nothing and keeps no state."
    )
    p.set_defaults(run=export_c)


def export_c(options: argparse.Namespace) -> int:
    name = options.file or options.model
    if not name:
        raise UsageError("export-c needs the description's file: a daemon has only what it made of it")
    if options.socket:
        raise UsageError("export-c reads a file; --socket does not go with it")
    command = "fkctl " + shlex.join(options.words)
    robot = Local(name).robot
    header_name, header, source_name, source = written(
        robot, options.link, options.prefix, "float" if options.float else "double", command
    )
    folder = Path(options.output)
    if not folder.is_dir():
        raise FkdError(f"{options.output} is not a folder; make it, or name another with -o")
    for file, content in ((header_name, header), (source_name, source)):
        write(str(folder / file), content, name)
        text.say(str(folder / file))
    return 0
