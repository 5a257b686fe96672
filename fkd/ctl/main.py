"""fkctl: find the command, import its family alone, run it, turn errors into one line and an exit status.

Exit status: 0 answered; 1 the answer is an error, or has error findings; 2 usage; 3 no daemon.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

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
    "expand": Command("convert", "xacro -> URDF"),
    "export-urdf": Command("convert", "any model -> a clean URDF"),
    "from-dh": Command("convert", "a DH table -> URDF"),
    "diff": Command("convert", "what changed between two models, and which links moved"),
    "fk": Command("poses", "where the links are at q"),
    "decompose": Command("poses", "a pose in all its forms"),
    "ik": Command("ik", "which q takes the tool to a pose"),
    "jacobian": Command("jacobian", "how the tip moves with each joint"),
    "dh": Command("dh", "a chain as a Denavit-Hartenberg table"),
    "batch": Command("batch", "many configurations in a file -> their poses in another"),
    "export-c": Command("exportc", "a model -> C99, for controllers without a socket"),
    "model": Command("live", "which robot serves: links, joints, order of q"),
    "status": Command("live", "the daemon's health"),
    "stats": Command("stats", "what the daemon has counted: requests, errors, latencies"),
    "top": Command("top", "the same as it happens"),
    "ping": Command("live", "whether the daemon answers, and how fast"),
    "reload": Command("live", "serve the bundle as it now is, or another"),
    "call": Command("live", "any method, with JSON parameters"),
    "demo": Command("demo", "pack, serve and ask the built-in arm"),
}

NUMBER = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)  # the last two for a clear refusal
LONGEST_TIMEOUT = 86400.0


class NoDaemon(Exception):
    """Nobody listens at the socket."""


class UsageError(Exception):
    """Words that the command does not understand."""


class Parser(argparse.ArgumentParser):
    """argparse under this house's rules: no abbreviations, `-1e-3` is a value, an error is one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)
        self._negative_number_matcher = NUMBER  # argparse's own knows no exponents

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (`{self.prog} --help` tells more)")

    def parse(self, words: list[str]) -> argparse.Namespace:
        """Options and values in any order. Raises UsageError, with the nearest option for an unknown one."""
        options, unknown = self.parse_known_intermixed_args(words)
        for word in unknown:
            name = word.partition("=")[0]
            if name.startswith("-"):
                self.error(f"no option `{name}`{did_you_mean(name, self._option_string_actions)}")
            self.error(f"`{word}` is one word too many")
        return options


def main(argv: Sequence[str] | None = None) -> int:
    """The command `fkctl`."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (closed by the caller, as in `fkctl ping >&-`)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an ASCII terminal shows what it can
    try:
        status = attempt(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader has gone, e.g. `fkctl show | head`
        drop_output()
        return 1
    except OSError as e:  # most likely a full disk behind `> FILE`
        drop_output()
        return fail(f"the output: {e.strerror or e}", 1)
    except KeyboardInterrupt:
        return 130


def attempt(words: list[str]) -> int:
    """Run the command -> its exit status, or that of its error."""
    try:
        return run(words)
    except UsageError as e:
        return fail(str(e), 2)
    except NoDaemon as e:
        return fail(str(e), 3)
    except FkdError as e:
        return fail(str(e), 1)
    except OSError as e:
        if e.filename is None:  # stdout's
            raise
        return fail(f"{e.filename}: {e.strerror}", 1)
    except SystemExit:  # argparse's --help, the only one to end so
        return 0


def run(words: list[str]) -> int:
    common = common_parser()
    before, rest = split(words)
    if not rest:
        overview(common).parse(before)
        raise UsageError("no command; `fkctl --help` lists them")
    name, *arguments = rest
    if name not in COMMANDS:
        raise UsageError(f"no command `{name}`{did_you_mean(name, COMMANDS)} (`fkctl --help` lists them)")
    command = COMMANDS[name]
    parser = Parser(prog=f"fkctl {name}", parents=[common], description=command.help[0].upper() + command.help[1:] + ".")
    getattr(import_module(f"fkd.ctl.{command.module}"), f"add_{name.replace('-', '_')}")(parser)
    options = parser.parse(before + arguments)
    options.words = words
    status: int = options.run(options)
    return status


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """The options before the command, and the command with the rest."""
    k = 0
    while k < len(words) and words[k].startswith("-") and not NUMBER.match(words[k]):
        k += 2 if words[k] in ("--socket", "--model", "--timeout") else 1
    return words[:k], words[k:]


def common_parser() -> Parser:
    """The options that every command takes, before its name or after."""
    p = Parser(add_help=False)
    p.add_argument("--socket", type=file_name, metavar="PATH", help="the daemon's socket (default: $FKD_SOCKET, else as fkd's own)")
    p.add_argument("--model", type=file_name, metavar="FILE", help="answer from this bundle, URDF or xacro, without a daemon")
    p.add_argument("--json", action="store_true", help="print exactly the wire's result")
    p.add_argument("--timeout", type=seconds, metavar="S", help="seconds to wait for the daemon (default 5; reload: 65)")
    return p


def file_name(word: str) -> str:
    """Not empty: what an unset shell variable leaves must not become the default."""
    if not word:
        raise argparse.ArgumentTypeError("expected a path, got an empty word")
    return word


def seconds(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"expected seconds, above 0 and at most {LONGEST_TIMEOUT:g}, got `{word}`")
    return value


def overview(common: Parser) -> Parser:
    lines = "\n".join(f"  {name:<12}{c.help}" for name, c in COMMANDS.items())
    return Parser(
        prog="fkctl", parents=[common], usage="fkctl [--socket PATH | --model FILE] [--json] COMMAND ...",
        description="Ask a robot where it is, and prepare bundles for fkd.",
        epilog=f"commands:\n{lines}\n\n`fkctl COMMAND --help` tells more, with examples.",
    )  # fmt: skip


def fail(message: str, status: int) -> int:
    """One line on stderr."""
    print("fkctl:", " ".join(message.splitlines()), file=sys.stderr)
    return status


def drop_output() -> None:
    """Nothing more can be written: let the interpreter's last flush go nowhere, instead of failing again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
