"""Where the files of a description are: relative paths, packages, patterns; never anything outside the bundle.

Inside an expansion a package's folder is written `package://NAME`, which survives joining with text, is found again
when the text is used as a file name, and means the same to other tools. Absolute paths count from the bundle's root.
"""

from __future__ import annotations

import fnmatch
from typing import Protocol

from fkd.errors import BundleRefused
from fkd.load.xacro.budget import Budget, Fault, suggest
from fkd.load.xml import Text, parse_xml

SCHEME = "package://"


class Files(Protocol):
    """A bundle, or a single file. Paths are separated by `/` and relative to the bundle's root."""

    def names(self) -> list[str]: ...
    def read(self, path: str) -> bytes: ...  # raises BundleRefused
    def __contains__(self, path: str) -> bool: ...


class Tree:
    """The files of one expansion, with the packages among them and a record of what was used."""

    def __init__(self, files: Files, budget: Budget) -> None:
        self.files, self.budget = files, budget
        self.used: dict[str, None] = {}  # in the order of first use
        self._names: list[str] = []
        self._packages: dict[str, list[str]] = {}  # name -> folders, by package.xml
        self._folders: dict[str, list[str]] = {}  # name -> folders of that name, nearest to the root

    def read(self, path: str) -> bytes:
        """The bytes of a file, which thereby is used. Raises BundleRefused."""
        self.used[path] = None
        return self.files.read(path)

    def resolve(self, name: str, base: str, reason: str = "xacro-include") -> str:
        """The path of the file that `name` means in the file `base`. Raises Fault if it is outside the bundle."""
        self.budget.step(1 + (len(name) >> 6))
        name = name.removeprefix("file://")
        if name.startswith(SCHEME):
            package, _, rest = name.removeprefix(SCHEME).partition("/")
            name = f"/{self.find(package, base)}/{rest}"
        parts: list[str] = [] if name.startswith("/") else base.split("/")[:-1]
        for part in name.split("/"):
            if part == "..":
                if not parts:
                    raise Fault(reason, f"`{name[:200]}` leads out of the bundle; a model may read only its own files")
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return "/".join(parts)

    def existing(self, name: str, base: str, reason: str = "xacro-include") -> str:
        """The same, for a file that must be there. Raises Fault."""
        path = self.resolve(name, base, reason)
        if path not in self.files:
            last = path.rpartition("/")[2]
            same = [n for n in self.names() if n.rpartition("/")[2] == last][:3]
            hint = f"; there is {', '.join(f'`{n}`' for n in same)}" if same else suggest(path, self.names())
            hint += "; absolute names count from the bundle's root" if name.startswith("/") else ""
            raise Fault(reason, f"there is no file `{path[:200]}` in the bundle{hint}")
        return path

    def matching(self, pattern: str, base: str) -> list[str]:
        """The files that a pattern with `*`, `?` or `[...]` means, sorted; `*` stays within one folder."""
        path = self.resolve(pattern, base)
        if len(path) > 256:
            raise Fault("xacro-include", "a file pattern of more than 256 characters")
        wanted = path.split("/")
        return sorted(name for name in self.names() if _matches(name.split("/"), wanted))

    def find(self, package: str, base: str) -> str:
        """The folder of a package: that of the `package.xml` which names it, else the folder of that name.

        Of several, the one that holds `base`. Raises Fault (`xacro-package`) if there is none, or no telling which.
        """
        self._index()
        folders = self._packages.get(package) or self._folders.get(package, [])
        if len(folders) > 1:
            holding = [f for f in folders if not f or base.startswith(f"{f}/")]
            folders = [max(holding, key=len)] if holding else folders
        if not folders:
            hint = suggest(package, self._packages)
            raise Fault(
                "xacro-package",
                f"package `{package[:100]}` is not in the bundle{hint}; a bundle must hold every package that its "
                "model names, each with its package.xml",
            )
        if len(folders) > 1:
            raise Fault("xacro-package", f"package `{package}` is in the bundle twice: {', '.join(folders[:4])}")
        folder = folders[0]
        witness = f"{folder}/package.xml".removeprefix("/")
        if witness not in self.files:  # some file must stand for the folder, or a packed bundle would not have it
            witness = next((n for n in self.names() if n.startswith(f"{folder}/")), base)
        self.used[witness] = None
        return folder

    def locate(self, folder: str) -> str:
        """A folder's name that means the same in every file: `package://NAME/...`, or a path from the root."""
        best = ("", "")
        self._index()
        for name, folders in self._packages.items():
            for home in folders:
                inside = home == "" or folder == home or folder.startswith(f"{home}/")
                if inside and len(folders) == 1 and (not best[0] or len(home) > len(best[1])):
                    best = (name, home)
        name, home = best
        if not name:
            return f"/{folder}" if folder else ""
        rest = folder[len(home) :].strip("/")
        return SCHEME + name + (f"/{rest}" if rest else "")

    def names(self) -> list[str]:
        self._names = self._names or sorted(self.files.names())
        self.budget.step(1 + (len(self._names) >> 2))
        return self._names

    def _index(self) -> None:
        """Find the packages, and the folders by which others may be found, at the first need."""
        if self._folders:
            return
        folders: dict[str, None] = {}
        for path in self.names():
            parts = path.split("/")[:-1]
            folders.update(dict.fromkeys("/".join(parts[:n]) for n in range(1, len(parts) + 1)))
            if path.rpartition("/")[2] == "package.xml" and (name := self._package_name(path)):
                self._packages.setdefault(name, []).append("/".join(parts))
        self._folders[""] = [""]
        for folder in sorted(folders, key=lambda f: f.count("/")):
            same = self._folders.setdefault(folder.rpartition("/")[2], [folder])
            if folder != same[0] and folder.count("/") == same[0].count("/"):
                same.append(folder)

    def _package_name(self, path: str) -> str:
        data = self.files.read(path)
        self.budget.step(20 + (len(data) >> 6))
        try:
            root = parse_xml(data, path)
        except BundleRefused:  # not the model's file: a broken one only means that its package cannot be found
            return ""
        names = [c for c in root.elements() if c.tag == "name"]
        return "".join(c.value for n in names[:1] for c in n.children if isinstance(c, Text)).strip()


def _matches(parts: list[str], wanted: list[str]) -> bool:
    """Whether a path matches a pattern, folder by folder; a hidden name matches no `*`."""
    return len(parts) == len(wanted) and all(
        fnmatch.fnmatchcase(p, w) and (p[:1] != "." or w[:1] == ".") for p, w in zip(parts, wanted, strict=True)
    )
