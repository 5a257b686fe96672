"""What goes into a bundle: the model, what it includes, and the settings that the integrator gives."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fkd.errors import BundleRefused, did_you_mean
from fkd.load.settings import Settings, format_settings, parse_settings
from fkd.load.source import find_model, single_file

SETTINGS = "bundle.toml"
TEXT = (".urdf", ".xacro", ".xml", ".toml", ".yaml", ".yml", ".json", ".csv")
MAX_FILES = 10_000


def collect(source: Path, *, model: str | None = None, **overrides: Any) -> dict[str, bytes]:
    """The members of a bundle made of `source`, a file or a folder.

    model: which file of a folder is the model; overrides: fields of Settings that stand above a folder's own
    bundle.toml. Raises BundleRefused.
    """
    if not source.is_dir():
        if model is not None:
            raise BundleRefused(f"{source} is a file; --model-file chooses within a folder", reason="source-not-folder")
        if source.suffix.lower() == ".zip":
            raise BundleRefused(f"{source} is packed already; `fkctl verify {source}` tells whether all is right", reason="source-zip")
        alone = single_file(source)
        name = find_model(alone, Settings())
        return with_settings({name: alone.read(name)}, replace(Settings(), **overrides))
    folder = Folder(source)
    # Whatever is called bundle.toml is read or refused: a dangling link passed over would lose a calibration unseen.
    there = os.path.lexists(source / SETTINGS)
    settings = parse_settings(folder.read(SETTINGS), SETTINGS) if there else Settings()
    if model is not None:
        overrides["model"] = Path(os.path.relpath(source / model, source)).as_posix()  # ./a.urdf, or absolute
    settings = replace(settings, **overrides)
    name = find_model(folder, settings)
    return with_settings({name: folder.read(name)}, settings)


def with_settings(members: dict[str, bytes], settings: Settings) -> dict[str, bytes]:
    """The members, and a bundle.toml if the settings say anything."""
    text = format_settings(settings)
    return {**members, SETTINGS: text} if text else members


@dataclass(frozen=True)
class Folder:
    """A folder's text files as a source. Hidden files and links out of it are not seen."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    digest = ""
    hashed = False

    def names(self) -> list[str]:
        found = []
        for place, folders, files in os.walk(self.path):
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            for file in files:
                path = Path(place, file)
                if not file.startswith(".") and file.lower().endswith(TEXT) and path.is_file() and self._inside(path):
                    found.append(path.relative_to(self.path).as_posix())
            if len(found) > MAX_FILES:
                raise BundleRefused(f"{self.path} holds more than {MAX_FILES} files; name the model's own folder", reason="source-too-many")
        return sorted(found)

    def read(self, path: str) -> bytes:
        file = self.path / path
        if not self._inside(file):
            message = f"{file} is a link out of the folder; put the file itself there"
            raise BundleRefused(message, reason="source-link", member=path)
        if not file.is_file():
            if os.path.lexists(file):
                raise BundleRefused(f"{file} is no regular file, or a link to nowhere", reason="source-special", member=path)
            raise BundleRefused(f"{self.path}: no file `{path}`{did_you_mean(path, self.names())}", reason="bundle-member-absent", member=path)
        try:
            return file.read_bytes()
        except OSError as e:
            raise BundleRefused(f"{file}: cannot be read: {e.strerror}", reason="source-unreadable", member=path) from None

    def __contains__(self, path: object) -> bool:
        file = self.path / str(path)
        return file.is_file() and self._inside(file)

    def _inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.path.resolve())
