"""The raw members of a zip: its structure checked byte by byte, its data inflated in bounded steps.

The standard zipfile module is not used for reading: it cuts names at NUL, takes the last of duplicates, trusts
the central directory over the local headers, and (before 3.11.8 and 3.12.2) reads entries that overlap. Here a
zip is accepted only if it can be read in one way: the entries follow each other without gap or overlap from the
first byte to the central directory, which ends where the end record begins, which ends with the file.

Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 (structure), 4.4 (fields), 4.5 (extra fields).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from fkd.errors import BundleRefused
from fkd.load.limits import Limits
from fkd.load.paths import path_fault, refuse_clashes, show

_LOCAL = Struct("<4s5H3I2H")
_CENTRAL = Struct("<4s6H3I5H2I")
_END = Struct("<4s4H2IH")
_SIZES = {12: Struct("<3I"), 16: Struct("<4x3I"), 20: Struct("<I2Q"), 24: Struct("<4xI2Q")}  # data descriptors
_EXTRA = Struct("<2H")
_MAX_EXTRA_FIELDS = 8  # archivers write up to four
_LOCAL_SIGNATURE, _CENTRAL_SIGNATURE, _END_SIGNATURE = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_DESCRIPTOR_SIGNATURE, _ZIP64_LOCATOR_SIGNATURE = b"PK\7\x08", b"PK\6\7"
_ZIP64_FIELD, _UNICODE_PATH_FIELD = 0x0001, 0x7075
_STORED, _DEFLATED = 0, 8

# General purpose flags (4.4.4)
_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13  # encryption, strong encryption, masked headers
_DESCRIPTOR = 1 << 3  # sizes and CRC follow the data
_UTF8 = 1 << 11
_ALLOWED_FLAGS = 1 << 1 | 1 << 2 | _DESCRIPTOR | _UTF8  # 1 and 2: how hard deflate tried

# External attributes (4.4.15): the Unix mode above, the DOS and Windows attributes below
_MODE_TYPE, _MODE_FILE, _MODE_FOLDER = 0o170000, 0o100000, 0o040000
_DOS_FOLDER, _DOS_SPECIAL = 0x10, 0x08 | 0x40 | 0x400  # volume label, device, reparse point

_STEP = 1 << 16  # bytes in and out of one call of inflate
_TEXT = (".urdf", ".xacro", ".xml", ".srdf", ".toml", ".yaml", ".yml", ".json", ".csv")


@dataclass(frozen=True, slots=True)
class Member:
    """One entry: its path (no closing `/`), and where its data is."""

    path: str
    folder: bool
    size: int
    packed: int  # bytes of data in the zip, from `start`
    start: int
    crc: int
    deflated: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    """One record of the central directory, as yet without its local header."""

    path: str
    raw_name: bytes
    folder: bool
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


class Archive:
    """A zip in memory whose structure is sound and within limits. What the data hold shows on reading them."""

    def __init__(self, data: bytes, name: str, limits: Limits) -> None:
        """data: the zip; name: what messages call it. Raises BundleRefused with a reason of its own a kind."""
        self._data = data
        self.name = name
        if len(data) > limits.total:
            raise self.refuse("bundle-too-big", f"{len(data)} bytes; at most {limits.total} are allowed")
        count, directory, end = self._read_end(limits)
        entries = self._read_central(count, directory, end, limits)
        files = [e.path for e in entries if not e.folder]
        refuse_clashes(files, [e.path for e in entries if e.folder], name)
        self.members = self._read_locals(entries, directory)
        total, packed = sum(m.size for m in self.members), sum(m.packed for m in self.members)
        if total > max(limits.ratio_floor, limits.ratio * packed):
            raise self.refuse("bundle-ratio", f"{packed} bytes unpack to {total}, more than {limits.ratio} times")

    def refuse(self, reason: str, message: str, member: str | None = None) -> BundleRefused:
        """The error that refuses this zip, because of one member or as a whole."""
        if member is None:
            return BundleRefused(f"{self.name}: {message}", reason=reason, file=self.name)
        shown = show(member)
        return BundleRefused(f"{self.name}: `{shown}` {message}", reason=reason, file=self.name, member=shown)

    def chunks(self, member: Member) -> Iterator[bytes]:
        """Unpack one member piece by piece, never more than it declares.

        Raises BundleRefused (`bundle-size-lies`, `bundle-crc`, `bundle-deflate`), at the end at the latest.
        """
        size = crc = 0
        for chunk in self._inflate(member) if member.deflated else self._slices(member):
            size += len(chunk)
            if size > member.size:
                raise self.refuse("bundle-size-lies", f"unpacks to more than its {member.size} bytes", member.path)
            crc = zlib.crc32(chunk, crc)
            yield chunk
        if size != member.size:
            raise self.refuse("bundle-size-lies", f"declares {member.size} bytes and unpacks to {size}", member.path)
        if crc != member.crc:
            raise self.refuse("bundle-crc", f"declares CRC {member.crc:08x} and has {crc:08x}", member.path)

    def _slices(self, member: Member) -> Iterator[bytes]:
        end = member.start + member.packed
        for at in range(member.start, end, _STEP):
            yield self._data[at : min(at + _STEP, end)]

    def _inflate(self, member: Member) -> Iterator[bytes]:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        at, end, tail = member.start, member.start + member.packed, b""
        while not inflater.eof:
            if not tail:
                tail = self._data[at : min(at + _STEP, end)]
                at += len(tail)
            try:
                chunk = inflater.decompress(tail, _STEP)
            except zlib.error as e:
                raise self.refuse("bundle-deflate", f"cannot be unpacked: {e}", member.path) from None
            tail = inflater.unconsumed_tail
            if chunk:
                yield chunk
            elif not tail and at == end and not inflater.eof:
                raise self.refuse("bundle-deflate", "cannot be unpacked: its data end early", member.path)
        if inflater.unused_data or at < end:
            raise self.refuse("bundle-size-lies", "has other data behind its compressed data", member.path)

    def _read_end(self, limits: Limits) -> tuple[int, int, int]:
        """The end record -> number of entries, offset of the central directory, offset of the end record."""
        data = self._data
        at = len(data) - _END.size
        if at < 0 or data[at : at + 4] != _END_SIGNATURE or data[-2:] != b"\0\0":  # a comment, or worse
            at = data.rfind(_END_SIGNATURE, max(0, at - 0xFFFF))
        if not data.startswith((_LOCAL_SIGNATURE, _END_SIGNATURE)):
            if at < 0:
                raise self.refuse("bundle-not-a-zip", f"not a zip: it begins with {data[:8]!r}")
            raise self.refuse("bundle-extra-data", "does not begin with an entry: data before it, or a part of a set")
        if at < 0 or at + _END.size > len(data):
            raise self.refuse("bundle-truncated", "no end record: the zip is cut short or damaged")
        _, disk, directory_disk, here, count, size, offset, comment = _END.unpack_from(data, at)
        if (rest := len(data) - at - _END.size) != comment:
            reason = "bundle-truncated" if rest < comment else "bundle-extra-data"
            raise self.refuse(reason, f"{rest} bytes follow the end record, which announces {comment}")
        if count > limits.members:
            raise self.refuse("bundle-too-many-members", f"{count} entries; at most {limits.members} are allowed")
        if data[max(0, at - 20) : at].startswith(_ZIP64_LOCATOR_SIGNATURE) or offset == 0xFFFFFFFF:
            raise self.refuse("bundle-zip64", "a zip64 end record; no bundle within the limits needs one")
        if disk or directory_disk or here != count:
            raise self.refuse("bundle-multi-disk", "one part of a zip in several parts; join them")
        if offset + size != at:
            where = f"{size} bytes of central directory at {offset}, but its end at {at}"
            raise self.refuse("bundle-extra-data", f"{where}: data are missing, or there are other data in between")
        return count, offset, at

    def _read_central(self, count: int, at: int, end: int, limits: Limits) -> list[_Entry]:
        entries: list[_Entry] = []
        total = 0
        for _ in range(count):
            if at + _CENTRAL.size > end or self._data[at : at + 4] != _CENTRAL_SIGNATURE:
                place = f"entry {len(entries) + 1} of {count}"
                raise self.refuse("bundle-central-directory", f"{place} is not in the central directory")
            entry, at = self._read_entry(at, end)
            entries.append(entry)
            total += entry.size
            self._refuse_costly(entry, total, limits)
        if at != end:
            raise self.refuse("bundle-central-directory", f"the central directory holds more than its {count} entries")
        return entries

    def _refuse_costly(self, entry: _Entry, total: int, limits: Limits) -> None:
        if total > limits.total:
            message = f"brings the unpacked bytes to {total}; at most {limits.total} are allowed"
            raise self.refuse("bundle-too-big", message, entry.path)
        if entry.size > limits.text_member and entry.path.casefold().endswith(_TEXT):
            message = f"is a text of {entry.size} bytes; at most {limits.text_member} are allowed"
            raise self.refuse("bundle-text-too-big", message, entry.path)
        if entry.size > max(limits.ratio_floor, limits.ratio * entry.packed):
            message = f"unpacks from {entry.packed} bytes to {entry.size}, more than {limits.ratio} times"
            raise self.refuse("bundle-ratio", f"{message}; if it is meant so, store it uncompressed", entry.path)

    def _read_entry(self, at: int, end: int) -> tuple[_Entry, int]:
        """The record of the central directory at `at` -> the entry, and where the next record begins."""
        _, _, _, flags, method, _, _, *more = _CENTRAL.unpack_from(self._data, at)
        crc, packed, size, name_length, extra_length, comment_length, disk, _, attributes, offset = more
        name_at = at + _CENTRAL.size
        extra_at = name_at + name_length
        after = extra_at + extra_length + comment_length
        if after > end:
            raise self.refuse("bundle-central-directory", "an entry runs over the end of the central directory")
        raw_name = self._data[name_at:extra_at]
        extra = self._data[extra_at : extra_at + extra_length]
        path = self._path(raw_name)
        folder = path.endswith("/")
        if fault := path_fault(path.removesuffix("/")):
            raise self.refuse(fault.reason, fault.text, path)
        size, packed, offset = self._resolve_extra(extra, raw_name, path, size, packed, offset)
        if flags & _ENCRYPTED:
            raise self.refuse("bundle-encrypted", "is encrypted", path)
        if flags & ~_ALLOWED_FLAGS:
            raise self.refuse("bundle-flags", f"has flags {flags:#06x} that no bundle needs", path)
        if method not in (_STORED, _DEFLATED):
            message = f"is compressed by method {method}; only stored (0) and deflated (8) are allowed"
            raise self.refuse("bundle-compression", message, path)
        if disk:
            raise self.refuse("bundle-multi-disk", f"is on part {disk} of a zip in several parts", path)
        self._refuse_special(attributes, folder, path)
        if folder and size:
            raise self.refuse("bundle-folder-data", f"is a folder with {size} bytes of data", path)
        if method == _STORED and size != packed:
            raise self.refuse("bundle-size-lies", f"is stored as {packed} bytes and declares {size}", path)
        return _Entry(path.removesuffix("/"), raw_name, folder, flags, method, crc, packed, size, offset), after

    def _path(self, raw_name: bytes) -> str:
        try:  # UTF-8 flag or not: Info-ZIP and macOS write UTF-8 without it; code pages are a guess, hence refused
            return raw_name.decode()
        except UnicodeDecodeError:
            name = raw_name.decode("latin-1")
            raise self.refuse("bundle-path-encoding", "is not UTF-8; name it in ASCII or UTF-8", name) from None

    def _resolve_extra(self, extra: bytes, raw_name: bytes, path: str, *values: int) -> list[int]:
        """The values (size, packed size, offset), each that is all ones read from the zip64 field (4.5.3)."""
        fields: dict[int, bytes] = {}
        at = 0
        while at + 4 <= len(extra):
            tag, length = _EXTRA.unpack_from(extra, at)
            at += 4 + length
            if at > len(extra) or tag in fields or len(fields) == _MAX_EXTRA_FIELDS:
                raise self.refuse("bundle-extra-field", "has malformed, repeated or too many extra fields", path)
            fields[tag] = extra[at - length : at]
        if any(extra[at:]):  # up to three zeros are what aligners leave
            raise self.refuse("bundle-extra-field", "has malformed extra fields", path)
        if _UNICODE_PATH_FIELD in fields and fields[_UNICODE_PATH_FIELD][5:] != raw_name:
            raise self.refuse("bundle-two-names", "has another name in its Unicode path field", path)
        wide = fields.get(_ZIP64_FIELD, b"")
        resolved = []
        for value in values:
            if value == 0xFFFFFFFF and wide:
                value, wide = int.from_bytes(wide[:8], "little"), wide[8:]
            resolved.append(value)
        return resolved

    def _refuse_special(self, attributes: int, folder: bool, path: str) -> None:
        kind = attributes >> 16 & _MODE_TYPE
        if kind not in (0, _MODE_FOLDER if folder else _MODE_FILE):
            message = f"is no regular {'folder' if folder else 'file'} but a link, device or such: mode"
            raise self.refuse("bundle-special-entry", f"{message} {attributes >> 16:o}", path)
        if attributes & _DOS_SPECIAL or (attributes & _DOS_FOLDER and not folder):
            raise self.refuse("bundle-special-entry", f"is no regular file: attributes {attributes & 0xFFFF:#x}", path)

    def _read_locals(self, entries: list[_Entry], directory: int) -> list[Member]:
        """Each entry's local header, in the order of the bytes; together they must fill the zip up to `directory`."""
        ordered = sorted(entries, key=lambda e: e.offset)
        boundaries = [e.offset for e in ordered[1:]] + [directory]
        if (first := ordered[0].offset if ordered else directory) != 0:
            raise self.refuse("bundle-extra-data", f"{first} bytes before the first entry")
        if ordered and ordered[-1].offset + _LOCAL.size > directory:
            raise self.refuse("bundle-local-header", "is said to begin behind all entries", ordered[-1].path)
        return [self._read_local(e, boundary) for e, boundary in zip(ordered, boundaries, strict=False)]

    def _read_local(self, entry: _Entry, boundary: int) -> Member:
        path = entry.path
        name_at = entry.offset + _LOCAL.size
        if name_at > boundary:
            raise self.refuse("bundle-overlap", "overlaps with the next entry or the central directory", path)
        signature, _, flags, method, _, _, *more = _LOCAL.unpack_from(self._data, entry.offset)
        crc, packed, size, name_length, extra_length = more
        if signature != _LOCAL_SIGNATURE:
            raise self.refuse("bundle-local-header", "has no local header where the central directory says", path)
        extra_at = name_at + name_length
        start = extra_at + extra_length
        end = start + entry.packed
        if end > boundary:
            raise self.refuse("bundle-overlap", "overlaps with the next entry or the central directory", path)
        if self._data[name_at:extra_at] != entry.raw_name:
            raise self.refuse("bundle-local-header", "has another name in its local header", path)
        if (flags, method) != (entry.flags, entry.method):
            raise self.refuse("bundle-local-header", "has other flags or another method in its local header", path)
        size, packed = self._resolve_extra(self._data[extra_at:start], entry.raw_name, path, size, packed)
        declared = (entry.crc, entry.packed, entry.size)
        deferred = bool(flags & _DESCRIPTOR)
        for here, there in zip((crc, packed, size), declared, strict=True):
            if here != there and not (deferred and here == 0):
                raise self.refuse("bundle-local-header", "has another size or CRC in its local header", path)
        if deferred:  # which of the four forms it has, its length tells
            form = _SIZES.get(boundary - end)
            signed = boundary - end in (12, 20) or self._data[end : end + 4] == _DESCRIPTOR_SIGNATURE
            if form is None or not signed or form.unpack_from(self._data, end) != declared:
                raise self.refuse("bundle-local-header", "has another size or CRC behind its data", path)
        elif end != boundary:
            raise self.refuse("bundle-extra-data", f"is followed by {boundary - end} bytes of no entry", path)
        return Member(path, entry.folder, entry.size, entry.packed, start, entry.crc, method == _DEFLATED)
