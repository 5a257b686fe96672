"""What goes into a bundle: the model, what it includes, and the settings that the integrator gives."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fkd.errors import BundleRefused
from fkd.load.dhread import is_table
from fkd.load.folder import PACKAGE, Folders, beside, packages, siblings
from fkd.load.settings import SETTINGS, Settings, format_settings
from fkd.load.source import Source, find_model, open_source, read_settings
from fkd.load.xacro import expand


def collect(source: Path, *, model: str | None = None, package_paths: Iterable[str] = (), **overrides: Any) -> dict[str, bytes]:
    """The members of a bundle made of `source`, a file or a folder.

    model: which file of a folder is the model; package_paths: where other packages lie; overrides: fields of Settings
    that stand above a folder's own bundle.toml. Raises BundleRefused.
    """
    files, settings, entry = find(source, model=model, package_paths=package_paths)
    args = {**settings.xacro_args, **overrides.pop("xacro_args", {})}
    settings = replace(settings, **overrides, xacro_args=args)
    used = {entry} if is_table(entry) else {entry, *expand(files, entry, settings.xacro_args).files}
    if settings.model is not None or is_table(entry) or sum(path.endswith((".urdf", ".xacro")) for path in used) > 1:
        settings = replace(settings, model=entry)  # so that it is found again among what it includes
    members = {path: files.read(path) for path in used if path != SETTINGS}
    text = format_settings(settings)
    return {**members, SETTINGS: text} if text else members


def find(source: Path, *, model: str | None = None, package_paths: Iterable[str] = ()) -> tuple[Source, Settings, str]:
    """Where a description and what it includes are read from, what bundle.toml says, and the model's path."""
    paths = list(package_paths)
    if source.is_dir():
        mounts = {"": source}
        for path in paths:
            mounts |= packages(path)
        if (source / PACKAGE).is_file():  # a package itself: those beside it are within reach, as in a workspace
            mounts |= {n: f for n, f in siblings(source).items() if n not in mounts}
        folder = Folders(mounts)
        if SETTINGS not in folder and os.path.lexists(source / SETTINGS):  # passing it over could lose a calibration unseen
            message = f"{source / SETTINGS} is no regular file, or a link out of the folder; put the file itself there"
            raise BundleRefused(message, reason="source-special", member=SETTINGS)
        settings = read_settings(folder)
        if model is not None:  # ./a.urdf and an absolute path will do
            settings = replace(settings, model=Path(os.path.relpath(source / model, source)).as_posix())
        own = Folders({"": source})  # the model is in the folder itself, not in a package that it uses
        return folder, settings, find_model(own, settings)
    alone = open_source(source)
    if model is not None:
        raise BundleRefused(f"{source} is a file; --model-file chooses within a folder", reason="source-not-folder")
    if alone.hashed or SETTINGS in alone:
        settings = read_settings(alone)
        return alone, settings, find_model(alone, settings)
    entry = find_model(alone, Settings())
    if (source.parent / SETTINGS).is_file():
        raise BundleRefused(
            f"{source.parent / SETTINGS} lies beside it and would be passed over; pack the folder: "
            f"`fkctl pack {source.parent} --model-file {source.name}`", reason="source-settings", file=str(source),
        )
    folders = beside(source, paths)
    if not entry.endswith(".xacro"):
        return alone, Settings(), entry
    return folders, Settings(), folders.path_of(source)
