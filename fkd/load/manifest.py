"""MANIFEST.txt: the closed list of a bundle's files with their SHA-256, as sha256sum writes and checks it.

Source: GNU coreutils manual, section "sha2 utilities" (the format is that of "md5sum invocation").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fkd.errors import BundleRefused
from fkd.load.paths import path_fault, show

MANIFEST = "MANIFEST.txt"
_LINE = re.compile(rb"([0-9A-Fa-f]{64}) [ *](.+)", re.DOTALL)
_OTHER_HASH = re.compile(rb"([0-9A-Fa-f]+) [ *].")
_EXPECTED = "<64 hex digits of SHA-256><two spaces><path>"
_ALGORITHMS = {32: "MD5", 40: "SHA-1", 56: "SHA-224", 96: "SHA-384", 128: "SHA-512"}


def parse_manifest(data: bytes, name: str, max_lines: int) -> dict[str, str]:
    """Read the manifest of the bundle called `name`.

    data: the bytes of MANIFEST.txt -> {path: SHA-256 as 64 lower-case hex digits}, in the order of the lines.
    Raises BundleRefused (`bundle-manifest-...`, `bundle-path-...`) with the line.
    """
    lines = data.removesuffix(b"\n").split(b"\n", max_lines) if data else []
    if len(lines) > max_lines:
        raise _refuse("bundle-too-many-members", f"more than {max_lines} lines", name, max_lines + 1)
    hashes: dict[str, str] = {}
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix(b"\r")
        match = _LINE.fullmatch(line)
        if match is None:
            raise _refuse("bundle-manifest-line", _why_not(line), name, number, expected=_EXPECTED)
        try:
            path = match[2].decode().removeprefix("./")  # `sha256sum ./*` writes it
        except UnicodeDecodeError:
            shown = show(match[2].decode("latin-1"))
            raise _refuse("bundle-manifest-encoding", f"the path `{shown}` is not UTF-8", name, number) from None
        if fault := path_fault(path):
            raise _refuse(fault.reason, f"the path `{show(path)}` {fault.text}", name, number, member=show(path))
        if path == MANIFEST:
            message = f"lists {MANIFEST} itself; leave that line out"
            raise _refuse("bundle-manifest-lists-itself", message, name, number)
        if path in hashes:
            message = f"lists `{show(path)}` again"
            raise _refuse("bundle-manifest-duplicate", message, name, number, member=show(path))
        hashes[path] = match[1].decode().lower()
    if not hashes:
        raise _refuse("bundle-manifest-empty", "is empty; it must list every other file", name, 1)
    return hashes


def format_manifest(hashes: Mapping[str, str]) -> bytes:
    """{path: SHA-256 in hex} -> the bytes of MANIFEST.txt, sorted by path; `sha256sum -c` reads them."""
    return "".join(f"{hashes[path]}  {path}\n" for path in sorted(hashes)).encode()


def _why_not(line: bytes) -> str:
    got = f"expected {_EXPECTED}, got `{show(line[:200].decode(errors='backslashreplace'))}`"
    if line.startswith(b"\\"):
        return f"{got}: an escaped name; names with a backslash or newline are not allowed"
    if line.startswith(b"SHA256 ("):
        return f"{got}: write it without --tag"
    if (other := _OTHER_HASH.match(line)) and len(other[1]) in _ALGORITHMS:
        return f"{got}: this looks like {_ALGORITHMS[len(other[1])]}"
    return got


def _refuse(reason: str, message: str, name: str, line: int, **data: str) -> BundleRefused:
    data.setdefault("member", MANIFEST)
    return BundleRefused(f"{name}: {MANIFEST}:{line}: {message}", reason=reason, file=MANIFEST, line=line, **data)
