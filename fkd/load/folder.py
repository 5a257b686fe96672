"""Folders of the file system as a source: a package, the packages beside it, and those that the user points to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fkd.errors import BundleRefused, did_you_mean

TEXT = (".urdf", ".xacro", ".xml", ".toml", ".yaml", ".yml", ".json", ".csv")
MAX_FILES = 100_000  # a whole workspace of vendors' packages has some ten thousand
MAX_DEPTH = 12  # folders below a package path
PACKAGE = "package.xml"
MAX_SIBLINGS = 1000
IGNORE = ("COLCON_IGNORE", "AMENT_IGNORE", "CATKIN_IGNORE")


@dataclass
class Folders:
    """Folders mounted side by side, read-only: {"ur_description": Path(...)}; "" mounts one at the root.

    Hidden files, links that lead out of their folder, and files that are no text of a description are not seen.
    """

    mounts: dict[str, Path]
    digest: str = ""
    hashed: bool = False
    _names: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(next(iter(self.mounts.values())))

    def names(self) -> list[str]:
        """The paths of all files, sorted."""
        if not self._names:
            for prefix, folder in self.mounts.items():
                self._names += [f"{prefix}/{path}" if prefix else path for path in self._walk(folder)]
            self._names.sort()
        return self._names

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises BundleRefused."""
        file = self._file(path)
        if file is None:
            raise BundleRefused(f"{self.name}: no file `{path}`{did_you_mean(path, self.names())}", reason="bundle-member-absent", member=path)
        try:
            return file.read_bytes()
        except OSError as e:
            raise BundleRefused(f"{file}: cannot be read: {e.strerror}", reason="source-unreadable", member=path) from None

    def __contains__(self, path: object) -> bool:
        return self._file(str(path)) is not None

    def path_of(self, file: Path) -> str:
        """The path under which a file of the file system is seen here."""
        for prefix, folder in self.mounts.items():
            if file.resolve().is_relative_to(folder.resolve()):
                inside = file.resolve().relative_to(folder.resolve()).as_posix()
                return f"{prefix}/{inside}" if prefix else inside
        raise BundleRefused(f"{file} is in none of the folders that are packed", reason="source-outside")

    def _file(self, path: str) -> Path | None:
        for prefix, folder in self.mounts.items():
            inside = path if not prefix else path.removeprefix(f"{prefix}/") if path.startswith(f"{prefix}/") else None
            if inside is None or not inside.lower().endswith(TEXT) or "\0" in inside:
                continue
            file = folder / inside
            if ".." not in file.parts and file.is_file() and _within(file, folder):
                return file
        return None

    def _walk(self, folder: Path) -> Iterable[str]:
        count = 0
        for place, folders, files in os.walk(folder):
            depth = len(Path(place).relative_to(folder).parts)
            folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < MAX_DEPTH else []
            for file in files:
                path = Path(place, file)
                if file.startswith(".") or not file.lower().endswith(TEXT) or not path.is_file() or not _within(path, folder):
                    continue
                count += 1
                if count > MAX_FILES:
                    raise BundleRefused(f"{folder} holds more than {MAX_FILES} files; name the model's own folder", reason="source-too-many")
                yield path.relative_to(folder).as_posix()


def _within(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def home(file: Path) -> Path:
    """The package that a file belongs to: the nearest folder above it with a package.xml, else its own folder."""
    folder = file.resolve().parent
    return next((f for f in (folder, *folder.parents) if (f / PACKAGE).is_file()), folder)


def packages(word: str) -> dict[str, Path]:
    """What one --package-path means: {package or folder name: folder}.

    "DIR": every package at or below it, known by its package.xml; where there is none, the folder itself and its direct
    subfolders, by their names. "NAME=DIR": that folder by that name.
    """
    name, sign, rest = word.partition("=")
    path = Path(rest if sign else word)
    if not path.is_dir():
        raise BundleRefused(f"--package-path {word}: no such folder", reason="source-absent", file=word)
    if sign:
        return {name: path}
    found: dict[str, Path] = {}
    for place, folders, files in os.walk(path):
        if any(name in files for name in IGNORE):  # what a build tool made of packages that lie elsewhere
            folders[:] = []
            continue
        if PACKAGE in files:
            name = Path(place).resolve().name
            # Two of one name stand side by side; the expander refuses to choose, should the model name them.
            found[name if name not in found else f"{name}@{len(found)}"] = Path(place)
        deep = PACKAGE in files or len(Path(place).relative_to(path).parts) >= MAX_DEPTH
        folders[:] = [] if deep else sorted(f for f in folders if not f.startswith("."))
    beneath = {f.name: f for f in sorted(path.iterdir()) if f.is_dir() and not f.name.startswith(".")}
    return found or {path.resolve().name: path, **beneath}


def siblings(package: Path) -> dict[str, Path]:
    """The packages beside one, as in a workspace."""
    beside = sorted(f for f in package.resolve().parent.iterdir() if (f / PACKAGE).is_file())
    return {f.name: f for f in beside[:MAX_SIBLINGS] if f != package.resolve()}


def beside(file: Path, package_paths: Iterable[str]) -> Folders:
    """A description's own package, those that `package_paths` name, and those beside its own."""
    given: dict[str, Path] = {}
    for word in package_paths:
        given = packages(word) | given
    own = home(file)
    if ((own / PACKAGE).is_file() and own.resolve() not in {f.resolve() for f in given.values()}) or not any(_within(file, folder) for folder in given.values()):
        given = {own.name: own} | given
    if (own / PACKAGE).is_file():
        given = given | {n: f for n, f in siblings(own).items() if n not in given}
    return Folders(given)
