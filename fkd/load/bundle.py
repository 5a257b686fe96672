"""The bundle: a zip whose every file is named and hashed by its manifest. Opened in memory, all of it verified.

Nothing is unpacked to disk, and nothing is kept unpacked: members are inflated once to be hashed, piece by
piece, and again when they are read, so opening takes little more memory than the zip itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fkd.errors import BundleRefused, nearest
from fkd.load.limits import DEFAULT, Limits
from fkd.load.manifest import MANIFEST, parse_manifest
from fkd.load.paths import MAX_PATH, show
from fkd.load.zipread import Archive, Member

__all__ = ["Bundle", "Limits", "open_bundle"]

_MAX_COMPARED = 30  # names searched for the nearest one: the search is quadratic in their length
_MAX_LISTED = 10  # names in one message


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """An open bundle, immutable; what it holds was verified when it was opened."""

    name: str
    digest: str  # SHA-256 hex of the bytes of MANIFEST.txt; without a manifest, of the zip's
    hashed: bool  # False only if there is no manifest and that was allowed
    top: str  # the one folder that holds everything and is left out of the paths, or ""
    _archive: Archive
    _members: Mapping[str, Member]

    def names(self) -> list[str]:
        """The paths of the files, sorted; without the top folder, folders, and MANIFEST.txt."""
        return sorted(self._members)

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises BundleRefused (`bundle-member-absent`)."""
        member = self._members.get(path)
        if member is None:
            raise absent(self.name, path, self._members)
        return b"".join(self._archive.chunks(member))

    def __contains__(self, path: object) -> bool:
        return path in self._members


def open_bundle(data: bytes, name: str, *, allow_unhashed: bool = False, limits: Limits = DEFAULT) -> Bundle:
    """Open and verify a bundle.

    data: the zip; name: what messages call it; allow_unhashed: accept a zip without manifest (one that is there
    must hold). Raises BundleRefused with a reason of its own for each kind of fault, and the member's name.
    """
    archive = Archive(data, name, limits)
    files = {m.path: m for m in archive.members if not m.folder}
    top = _top(files, name)
    if top is None:
        if not allow_unhashed:
            raise _no_manifest(files, name)
        top = _common_folder(files)
        members = {path.removeprefix(top): m for path, m in files.items()}
        for member in archive.members:
            _sha256(archive, member)  # sizes and CRC still have to be true
        return Bundle(name, hashlib.sha256(data).hexdigest(), False, top.rstrip("/"), archive, members)
    manifest = files.pop(top + MANIFEST)
    if manifest.size > limits.manifest:
        message = f"has {manifest.size} bytes; at most {limits.manifest} are allowed"
        raise archive.refuse("bundle-manifest-too-big", message, manifest.path)
    text = b"".join(archive.chunks(manifest))
    hashes = parse_manifest(text, name, limits.members)
    _refuse_difference(hashes, files, top, name)
    members = {path: files[top + path] for path in hashes}
    for folder in archive.members:
        if folder.folder:
            _sha256(archive, folder)
    for path, expected in hashes.items():
        if (found := _sha256(archive, members[path])) != expected:
            raise BundleRefused(
                f"{name}: `{show(path)}` has another hash than {MANIFEST} says: expected {expected}, found {found}",
                reason="bundle-hash-differs",
                file=name,
                member=show(path),
                expected=expected,
                got=found,
            )
    return Bundle(name, hashlib.sha256(text).hexdigest(), True, top.rstrip("/"), archive, members)


def absent(name: str, path: str, names: Iterable[str], hint: str = "") -> BundleRefused:
    """The error for a file that is not in the source called `name`, with the nearest that is."""
    near = _nearest_path(path, sorted(names))
    mean = f"; did you mean `{show(near)}`?" if near else ""
    return BundleRefused(
        f"{name}: no file `{show(path)}` in it{mean}{hint}",
        reason="bundle-member-absent",
        file=name,
        member=show(path),
        did_you_mean=near,
    )


def listing(names: Iterable[str]) -> str:
    """Names for a message: the first ten of them, and how many more there are."""
    shown = [f"`{show(n)}`" for n in names]
    more = f" and {len(shown) - _MAX_LISTED} more" if len(shown) > _MAX_LISTED else ""
    return ", ".join(shown[:_MAX_LISTED]) + more


def _nearest_path(path: str, names: Iterable[str]) -> str | None:
    """The same file name in another folder, else the most similar of the paths that have most in common with it."""
    folder, _, file_name = path.casefold().rpartition("/")
    suffix = file_name.rpartition(".")[2]

    def distance(name: str) -> tuple[bool, bool, bool]:
        own_folder, _, own_name = name.casefold().rpartition("/")
        return own_name != file_name, own_folder != folder, not own_name.endswith(suffix)

    likely = sorted(names, key=distance)[:_MAX_COMPARED]
    return likely[0] if likely and not distance(likely[0])[0] else nearest(path[:MAX_PATH], likely)


def _sha256(archive: Archive, member: Member) -> str:
    sha256 = hashlib.sha256()
    for chunk in archive.chunks(member):
        sha256.update(chunk)
    return sha256.hexdigest()


def _top(files: Mapping[str, Member], name: str) -> str | None:
    """The folder of the manifest: "" or one top folder with its `/`; None if there is no manifest."""
    if MANIFEST in files:
        return ""
    found = [p for p in files if p.count("/") == 1 and p.endswith("/" + MANIFEST)]
    if len(found) > 1:
        raise BundleRefused(
            f"{name}: several manifests and none at the top: {listing(sorted(found))}; one bundle holds one robot",
            reason="bundle-several-manifests",
            file=name,
            member=show(min(found)),
        )
    return found[0].removesuffix(MANIFEST) if found else None


def _common_folder(files: Iterable[str]) -> str:
    tops = {path.partition("/")[0] + "/" if "/" in path else "" for path in files}
    return tops.pop() if len(tops) == 1 else ""


def _no_manifest(files: Iterable[str], name: str) -> BundleRefused:
    near = [p for p in sorted(files) if p.rpartition("/")[2].casefold() in ("manifest.txt", "manifest", "sha256sums")]
    hint = f"`{show(near[0])}` is not it; " if near else ""
    return BundleRefused(
        f"{name}: no {MANIFEST} at the top or in the one top folder; {hint}make a bundle by `fkctl pack`",
        reason="bundle-no-manifest",
        file=name,
        member=MANIFEST,
    )


def _refuse_difference(hashes: Mapping[str, str], files: Mapping[str, Member], top: str, name: str) -> None:
    """The manifest is a closed list: what it names is there, and nothing else is."""
    missing = [path for path in hashes if top + path not in files]
    unlisted = [p for p in sorted(files) if not p.startswith(top) or p.removeprefix(top) not in hashes]
    if missing:
        near = _nearest_path(missing[0], unlisted)
        mean = f"; did it mean `{show(near)}`, which it does not list?" if near else ""
        raise BundleRefused(
            f"{name}: {MANIFEST} lists {listing(missing)}, not in the zip{mean}",
            reason="bundle-listed-absent",
            file=name,
            member=show(missing[0]),
            did_you_mean=near,
        )
    if unlisted:
        mac = any(p.startswith("__MACOSX/") or p.endswith(".DS_Store") for p in unlisted)
        hint = " (macOS adds such files of its own; make the bundle by `fkctl pack`)" if mac else ""
        raise BundleRefused(
            f"{name}: {MANIFEST} does not list {listing(unlisted)}{hint}",
            reason="bundle-unlisted",
            file=name,
            member=show(unlisted[0]),
            members=[show(p) for p in unlisted[:_MAX_LISTED]],
        )
