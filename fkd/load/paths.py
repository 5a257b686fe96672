"""What a member of a bundle may be called, so that every reader on every system takes it for the same file.

A name is refused rather than mended: two readers that mend it differently open different files.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category, normalize

from fkd.errors import BundleRefused

MAX_PATH = 512  # bytes; the longest path in public robot packages is about 150
MAX_COMPONENT = 255  # bytes; what Linux file systems take, so that the unpacked tree can exist
MAX_DEPTH = 32  # components; real packages have up to 10
MAX_SHOWN = 120  # characters of a name in a message

_SUSPECT = ("//", "./", " /")  # in `/path/`: a component that is empty, or ends in a dot or space
_HIDDEN = {"Cc", "Cf", "Zl", "Zp"}  # control, format (bidirectional overrides, zero width), line separators


class Fault(NamedTuple):
    """Why a path is refused: a stable reason, and what follows "the path" in a message."""

    reason: str
    text: str


def show(name: str) -> str:
    """`name` as it may stand in a message: hidden characters escaped, long names cut."""
    text = name[:MAX_SHOWN]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(name) <= MAX_SHOWN else text + "..."


def path_fault(path: str) -> Fault | None:
    """What is wrong with `path` as a member of a bundle (relative, `/` between components), or None."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return Fault("bundle-path-encoding", "is not UTF-8")
    if not path:
        return Fault("bundle-path-empty", "is empty")
    if length > MAX_PATH:
        return Fault("bundle-path-too-long", f"is {length} bytes long; at most {MAX_PATH} are allowed")
    if not path.isprintable() and any(category(c) in _HIDDEN for c in path):
        return Fault("bundle-path-control", "holds NUL, a control character or an invisible one")
    if "\\" in path:
        return Fault("bundle-path-backslash", "holds a backslash; components are parted by `/`")
    if path.startswith("/"):
        return Fault("bundle-path-absolute", "is absolute; it must be relative to the manifest's folder")
    if ":" in path:
        return Fault("bundle-path-drive", "holds a colon, which on Windows names a drive or a stream")
    if (depth := path.count("/") + 1) > MAX_DEPTH:
        return Fault("bundle-path-too-deep", f"has {depth} components; at most {MAX_DEPTH} are allowed")
    framed = f"/{path}/"
    if any(s in framed for s in _SUSPECT):
        components = path.split("/")
        if ".." in components:
            return Fault("bundle-path-parent", "holds `..`, which leads out of its folder")
        if "" in components or "." in components:
            return Fault("bundle-path-component", "holds an empty component or `.`")
        return Fault("bundle-path-trailing-dot", "has a component that ends in a dot or space, which Windows drops")
    if length > MAX_COMPONENT and max(len(c.encode()) for c in path.split("/")) > MAX_COMPONENT:
        return Fault("bundle-path-too-long", f"has a component over {MAX_COMPONENT} bytes")
    if not path.isascii() and (plain := normalize("NFKC", path)) != path and (fault := path_fault(plain)):
        return Fault(fault.reason, f"has a compatibility form that {fault.text}")  # such as full-width dots
    return None


def refuse_clashes(files: Iterable[str], folders: Iterable[str], name: str) -> None:
    """Refuse two entries that some file system takes for one: the same name, also by case or Unicode form.

    files, folders: the paths of the entries of bundle `name`, without a closing `/`.
    Raises BundleRefused (`bundle-duplicate-name`, `bundle-file-is-folder`).
    """
    seen: dict[str, str] = {}
    file_keys: set[str] = set()

    def add(path: str) -> str:
        key = _fold(path).replace("/", "\0")  # NUL sorts first: what lies in a folder comes right behind it
        if key in seen:
            same = seen[key] == path
            how = "is there twice" if same else f"and `{show(seen[key])}` differ only by case or Unicode form"
            raise BundleRefused(
                f"{name}: `{show(path)}` {how}", reason="bundle-duplicate-name", file=name, member=show(path)
            )
        seen[key] = path
        return key

    file_keys.update(map(add, files))
    for path in folders:
        add(path)
    for key, following in pairwise(sorted(seen)):
        if key in file_keys and following.startswith(key + "\0"):
            raise BundleRefused(
                f"{name}: `{show(seen[key])}` is a file, and `{show(seen[following])}` lies in it as in a folder",
                reason="bundle-file-is-folder",
                file=name,
                member=show(seen[key]),
            )


def _fold(path: str) -> str:
    if path.isascii():
        return path.casefold()
    return normalize("NFKC", normalize("NFKC", path).casefold())
