"""The folder of files that a model comes from: a bundle, or one plain file. The loader reads through nothing else."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.parsers import expat

from fkd.errors import BundleRefused, did_you_mean
from fkd.load.bundle import absent, listing, open_bundle
from fkd.load.limits import DEFAULT, Limits
from fkd.load.paths import show
from fkd.load.settings import SETTINGS, Settings, parse_settings

_DESCRIPTIONS = (".urdf", ".xacro", ".xml")
_TABLES = (".csv", ".toml", ".json")  # of Denavit-Hartenberg rows
_HEAD = 1 << 16  # bytes of a file in which its root element must begin; the longest licence comment has some 12 KiB
_MAX_SIBLINGS = 1000  # entries of a folder searched for a name like the one given


class Source(Protocol):
    """Named files, read-only and unchanging. `digest` tells one content from another."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def digest(self) -> str:
        """SHA-256, 64 hex digits."""

    @property
    def hashed(self) -> bool:
        """Whether a manifest vouches for every file."""

    def names(self) -> list[str]:
        """The paths of its files, sorted."""

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises BundleRefused (`bundle-member-absent`)."""

    def __contains__(self, path: object) -> bool: ...


@dataclass(frozen=True, slots=True, eq=False)
class SingleFile:
    """A plain file as a source: it is the only member."""

    name: str
    digest: str
    _data: bytes
    hashed: bool = False

    def names(self) -> list[str]:
        """The file's own name."""
        return [self.name]

    def read(self, path: str) -> bytes:
        """The file's bytes. Raises BundleRefused (`bundle-member-absent`) for any other path."""
        if path != self.name:
            raise absent(self.name, path, (), "; a plain file stands alone: make a bundle of both by `fkctl pack`")
        return self._data

    def __contains__(self, path: object) -> bool:
        return path == self.name


def open_source(path: str | Path, *, allow_unhashed: bool = False, limits: Limits = DEFAULT) -> Source:
    """Open what lies at `path`: a bundle if it begins as a zip does (or is named `.zip`), else a plain file.

    Raises BundleRefused: `source-...` if the file cannot be had, `bundle-...` if the bundle must not be used.
    """
    path = Path(path)
    data = _read_file(path, limits)
    if data.startswith(b"PK") or path.suffix.lower() == ".zip":
        return open_bundle(data, show(path.name), allow_unhashed=allow_unhashed, limits=limits)
    return _alone(path, data, limits)


def read_settings(source: Source) -> Settings:
    """The source's own bundle.toml, or the defaults where it has none. Raises BundleRefused."""
    return parse_settings(source.read(SETTINGS), SETTINGS) if SETTINGS in source else Settings()


def find_model(source: Source, settings: Settings) -> str:
    """The path of the model: the one that bundle.toml names, else the only `.urdf`, else the only xacro file whose
    root is a `<robot>` with a name.

    Raises BundleRefused (`bundle-no-model`, `bundle-model-unclear`, `bundle-model-kind`, `bundle-member-absent`).
    """
    names = source.names()
    if settings.model is not None:
        return _named_model(source, settings.model)
    if len(names) == 1 and names[0].casefold().endswith(_DESCRIPTIONS + _TABLES) and names[0] != "bundle.toml":
        return names[0]
    urdfs = [n for n in names if n.casefold().endswith(".urdf")]
    xacros = [n for n in names if n.casefold().endswith(".xacro")]
    candidates = urdfs or [n for n in xacros if _names_a_robot(source.read(n))]
    if len(candidates) == 1:
        return candidates[0]
    how = 'say which by `model = "..."` in bundle.toml (`fkctl pack --model-file`)'
    if candidates:
        raise BundleRefused(
            f"{source.name}: {len(candidates)} files could be the model: {listing(candidates)}; {how}",
            reason="bundle-model-unclear",
            file=source.name,
            candidates=candidates[:10],
        )
    if xacros:
        message = f"no .urdf, and no xacro file that holds `<robot name=`: {listing(xacros)}; {how}"
    else:
        message = f"no model in it (.urdf or .xacro), only {listing(names) or 'nothing'}"
    raise BundleRefused(
        f"{source.name}: {message}", reason="bundle-no-model", file=source.name, candidates=xacros[:10] or None
    )


def _named_model(source: Source, path: str) -> str:
    if path not in source:
        raise absent(source.name, path, source.names(), " (`model` in bundle.toml names it)")
    if path == "bundle.toml" or not path.casefold().endswith(_DESCRIPTIONS + _TABLES):
        raise BundleRefused(
            f"{source.name}: `model` in bundle.toml names `{show(path)}`; a model is a file in "
            f"{', '.join(_DESCRIPTIONS)}, or a table of DH rows in {', '.join(_TABLES)}",
            reason="bundle-model-kind",
            file=source.name,
            member=show(path),
        )
    return path


class _Root(Exception):
    """Carries the root element's tag and attributes out of the parser."""


def _names_a_robot(data: bytes) -> bool:
    """Whether the root element is a `<robot>` with a name; read no further than that."""

    def start(tag: str, attributes: dict[str, str]) -> None:
        raise _Root(tag == "robot" and "name" in attributes)

    def doctype(*_: object) -> None:
        raise _Root(False)  # refused anyway, and its entities are not worth a risk here

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data[:_HEAD], False)
    except _Root as root:
        return bool(root.args[0])
    except (expat.ExpatError, LookupError, ValueError):  # no XML, or an encoding that cannot be read
        return False
    return False


def _alone(path: Path, data: bytes, limits: Limits) -> SingleFile:
    if len(data) > limits.text_member:
        raise _unfit(path, "bundle-text-too-big", f"{len(data)} bytes; at most {limits.text_member} are allowed")
    return SingleFile(show(path.name), hashlib.sha256(data).hexdigest(), data)


def _read_file(path: Path, limits: Limits) -> bytes:
    """All bytes of a regular file; never blocks, and never opens a device (some act on being opened)."""
    try:
        _refuse_irregular(path, os.stat(path), limits)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            _refuse_irregular(path, status, limits)  # what was opened need not be what was looked at
            data = file.read(status.st_size + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise _unfit(path, "source-absent", f"no such file{_sibling(path)}") from None
    except OSError as e:
        raise _unfit(path, "source-unreadable", f"cannot be read: {e.strerror}") from None
    except ValueError:  # NUL, or a character that no file name can have
        raise _unfit(path, "source-absent", "not a possible file name") from None
    if not data:
        raise _unfit(path, "source-empty", "the file is empty")
    if len(data) != status.st_size:
        raise _unfit(path, "source-changing", "the file changed while it was read; try again")
    return data


def _refuse_irregular(path: Path, status: os.stat_result, limits: Limits) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise _unfit(path, "source-folder", f"a folder; make a bundle of it: `fkctl pack {show(str(path))}`")
    if not stat.S_ISREG(status.st_mode):
        raise _unfit(path, "source-special", "not a regular file (a pipe, socket or device?)")
    if status.st_size > limits.total:
        raise _unfit(path, "bundle-too-big", f"{status.st_size} bytes; at most {limits.total} are allowed")


def _unfit(path: Path, reason: str, message: str) -> BundleRefused:
    shown = show(str(path))
    return BundleRefused(f"{shown}: {message}", reason=reason, file=shown)


def _sibling(path: Path) -> str:
    """The nearest name in the same folder, as the tail of a sentence."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MAX_SIBLINGS), strict=False)]
    except OSError:
        return ""
    return show(did_you_mean(path.name, names))
