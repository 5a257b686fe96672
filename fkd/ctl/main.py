"""fkctl: find the command, import its family alone, run it, turn errors into one line and an exit status.

Exit status: 0 answered; 1 the answer is an error, or has error findings; 2 usage; 3 no daemon.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from fkd.errors import FkdError, did_you_mean


class Command(NamedTuple):
    """Where a command lives: `fkd.ctl.MODULE` has `add_NAME(parser)`, which sets the parser's `run`."""

    module: str
    help: str


COMMANDS = {
    "pack": Command("files", "make a hashed bundle from a description"),
    "verify": Command("files", "check a bundle's hashes and safety"),
    "check": Command("files", "list every finding about a description"),
    "show": Command("files", "the tree, joints and limits"),
    "fk": Command("poses", "where the links are at q"),
    "decompose": Command("poses", "a pose in all its forms"),
    "model": Command("live", "which robot serves: links, joints, order of q"),
    "status": Command("live", "the daemon's health"),
    "ping": Command("live", "whether the daemon answers, and how fast"),
    "call": Command("live", "any method, with JSON parameters"),
    "demo": Command("demo", "pack, serve and ask the built-in arm"),
}

NUMBER = re.compile(r"-(\d|\.\d)")


class NoDaemon(Exception):
    """Nobody listens at the socket."""


class UsageError(Exception):
    """Words that the command does not understand."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command `fkctl`."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return run(words)
    except UsageError as e:
        return fail(str(e), 2)
    except NoDaemon as e:
        return fail(str(e), 3)
    except FkdError as e:
        return fail(str(e), 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has gone, e.g. `fkctl show | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def run(words: list[str]) -> int:
    common = common_parser()
    before, rest = split(words)
    if not rest:
        parser = overview(common)
        if "-h" in before or "--help" in before:
            parser.print_help()
            return 0
        parser.parse_args(before)
        raise UsageError("no command; `fkctl --help` lists them")
    name, *arguments = rest
    if name not in COMMANDS:
        raise UsageError(f"no command `{name}`{did_you_mean(name, COMMANDS)} (`fkctl --help` lists them)")
    command = COMMANDS[name]
    parser = argparse.ArgumentParser(
        prog=f"fkctl {name}", parents=[common], description=command.help[0].upper() + command.help[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    getattr(import_module(f"fkd.ctl.{command.module}"), f"add_{name.replace('-', '_')}")(parser)
    # A blank in front makes argparse take "-1e-3" for a value, whatever options there are.
    arguments = [" " + w if NUMBER.match(w) else w for w in before + arguments]
    options = parser.parse_intermixed_args(arguments)
    status: int = options.run(options)
    sys.stdout.flush()
    return status


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """The options before the command, and the command with the rest."""
    k = 0
    while k < len(words) and words[k].startswith("-"):
        k += 2 if words[k] in ("--socket", "--model", "--timeout") else 1
    return words[:k], words[k:]


def common_parser() -> argparse.ArgumentParser:
    """The options that every command takes, before its name or after."""
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument("--socket", metavar="PATH", help="the daemon's socket (default: $FKD_SOCKET, else as fkd's own)")
    p.add_argument("--model", metavar="FILE", help="answer from this bundle, URDF or xacro, without a daemon")
    p.add_argument("--json", action="store_true", help="print exactly the wire's result")
    p.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds to wait for the daemon (default 5)")
    return p


def overview(common: argparse.ArgumentParser) -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name:<12}{c.help}" for name, c in COMMANDS.items())
    return argparse.ArgumentParser(
        prog="fkctl", parents=[common], usage="fkctl [--socket PATH | --model FILE] [--json] COMMAND ...",
        description="Ask a robot where it is, and prepare bundles for fkd.",
        epilog=f"commands:\n{lines}\n\n`fkctl COMMAND --help` tells more, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip


def fail(message: str, status: int) -> int:
    print(f"fkctl: {message}", file=sys.stderr)
    return status
