"""The daemon's settings: a TOML file, then the environment, then the command line; later ones win."""

from __future__ import annotations

import argparse
import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fkd.address import default_socket
from fkd.errors import FkdError, did_you_mean
from fkd.rebuild import Wanted
from fkd.server import Limits


class ConfigError(FkdError):
    """A setting that cannot be used; the message names it and where it stands."""

    default_reason = "config"


@dataclass(frozen=True)
class Config:
    """All that `fkd` can be told. Every field is also a key of the TOML file and FKD_<FIELD> in the environment."""

    bundle: str = ""
    socket: str = ""
    tip: str | None = None
    base: str | None = None
    mode: int = 0o660
    group: str | None = None
    admin_group: str | None = None
    expect_digest: str | None = None
    dof: int | None = None
    allow_unhashed: bool = False
    max_message: int = Limits.message
    max_connections: int = Limits.connections
    drain_seconds: float = 1.5  # how long clients may take to fetch their last answers at shutdown

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.bundle, self.tip, self.base, self.allow_unhashed, self.expect_digest, self.dof)

    @property
    def limits(self) -> Limits:
        return Limits(message=self.max_message, connections=self.max_connections)


def parse_arguments(argv: Sequence[str], environ: Mapping[str, str]) -> Config:
    """The command line, over the environment, over the file that --config names.

    Raises ConfigError; argparse ends the process (status 2) on words that it does not know.
    """
    given = vars(_parser().parse_args(argv))
    config_file = given.pop("config")
    values: dict[str, Any] = _from_file(config_file) if config_file else {}
    values |= _from_environment(environ)
    values |= {k: _value(k, v, f"--{k.replace('_', '-')}") for k, v in given.items() if v is not None}
    config = Config(**values)
    if not config.bundle:
        raise ConfigError("no robot: name a bundle, URDF or xacro file, or set `bundle` in the --config file")
    return dataclasses.replace(config, socket=config.socket or default_socket(environ))


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="fkd", description="Serve one robot's kinematics on a Unix socket by JSON-RPC 2.0.",
        epilog="example: fkd --socket /run/fkd/fkd.sock ur5e.zip",
    )  # fmt: skip
    p.add_argument("bundle", nargs="?", metavar="BUNDLE", help="a bundle made by `fkctl pack`, or a plain .urdf or .xacro")
    p.add_argument("--socket", metavar="PATH", help="default: $FKD_SOCKET, else fkd.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /run/fkd")
    p.add_argument("--config", metavar="FILE", help="TOML file with any of these settings")
    p.add_argument("--tip", metavar="LINK", help="the link that by-position calls answer for")
    p.add_argument("--base", metavar="LINK", help="the link that poses are expressed in (default: the root)")
    p.add_argument("--mode", metavar="OCTAL", help="the socket's file mode (default 0660)")
    p.add_argument("--group", metavar="G", help="the socket's group")
    p.add_argument("--admin-group", metavar="G", help="whose members may reload, beside root and the daemon's own user")
    p.add_argument("--expect-digest", metavar="SHA", help="refuse to start on any other model")
    p.add_argument("--dof", metavar="N", help="refuse to start unless q has N values")
    p.add_argument("--allow-unhashed", action="store_true", default=None, help="take a zip without MANIFEST.txt")
    return p


def _from_file(name: str) -> dict[str, Any]:
    try:
        with Path(name).open("rb") as f:
            table = tomllib.load(f)
    except OSError as e:
        raise ConfigError(f"cannot read {name}: {e.strerror}") from None
    except (ValueError, RecursionError) as e:  # no TOML, no UTF-8, thousands of digits or of brackets
        raise ConfigError(f"{name}: {e}") from None
    return {k: _value(k, v, f"{name}: `{k}`") for k, v in table.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """FKD_TIP, FKD_MODE ...; what is set but empty counts as not set."""
    names = {f"FKD_{f.name.upper()}": f.name for f in dataclasses.fields(Config)}
    return {field: _value(field, environ[name], f"${name}") for name, field in names.items() if environ.get(name)}


def _value(key: str, value: Any, where: str) -> Any:
    """One setting's value, checked and turned into its type."""
    fields = {f.name: f for f in dataclasses.fields(Config)}
    if key not in fields:
        raise ConfigError(f"{where}: there is no such setting{did_you_mean(key, fields)}")
    got = f"{value!r:.80}"
    if key == "mode":
        return _mode(value, where)
    if key == "allow_unhashed":
        return _flag(value, where)
    if key in ("dof", "max_message", "max_connections"):
        digits = "" if isinstance(value, bool) else str(value)
        if not (digits.isascii() and digits.isdigit() and len(digits) < 19) or (key != "dof" and int(digits) < 1):
            raise ConfigError(f"{where}: expected a whole number, got {got}")
        return int(digits)
    if key == "drain_seconds":
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            seconds = -1.0
        if not 0.0 <= seconds <= 3600.0 or isinstance(value, bool):
            raise ConfigError(f"{where}: expected seconds from 0 to 3600, got {got}")
        return seconds
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"{where}: expected a string, got {got}")
    if key == "expect_digest" and not (len(value) == 64 and all(c in "0123456789abcdefABCDEF" for c in value)):
        raise ConfigError(f"{where}: expected a SHA-256 of 64 hex digits, got {got}")
    return value.lower() if key == "expect_digest" else value


def _flag(value: Any, where: str) -> bool:
    words = {True: True, False: False, "1": True, "0": False, "true": True, "false": False, "yes": True, "no": False}
    if not isinstance(value, (str, bool)) or value not in words:
        raise ConfigError(f"{where}: expected true or false, got {value!r:.80}")
    return words[value]


def _mode(value: Any, where: str) -> int:
    """A file mode as octal text ("0660"); bare TOML numbers are refused, because 660 and 0o660 differ."""
    text = value if isinstance(value, str) else ""
    digits = text.removeprefix("0o")
    if not digits or any(c not in "01234567" for c in digits) or int(digits, 8) > 0o777:
        raise ConfigError(f'{where}: expected an octal file mode as text, like "0660", got {value!r:.80}')
    return int(digits, 8)
