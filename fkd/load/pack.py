"""Files -> the bytes of a bundle, the same bytes for the same files anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from fkd.errors import BundleRefused
from fkd.load.bundle import open_bundle
from fkd.load.limits import DEFAULT, Limits
from fkd.load.manifest import MANIFEST, format_manifest
from fkd.load.paths import path_fault, show

_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_UNIX = 3
_MODE = 0o100644 << 16


def write_bundle(members: Mapping[str, bytes], *, limits: Limits = DEFAULT) -> bytes:
    """Pack files into a bundle and add its MANIFEST.txt.

    members: {path: bytes} -> a zip that `open_bundle` accepts. Members are stored, not deflated: versions of zlib
    differ in the bytes they write, and a stored zip is the same on every machine.
    Raises BundleRefused for every name or size that `open_bundle` would refuse.
    """
    for path in members:
        if path == MANIFEST:
            raise BundleRefused(
                f"{MANIFEST} is written anew; leave it out", reason="bundle-manifest-lists-itself", member=MANIFEST
            )
        if fault := path_fault(path):
            raise BundleRefused(f"`{show(path)}` {fault.text}", reason=fault.reason, member=show(path))
    hashes = {path: hashlib.sha256(data).hexdigest() for path, data in members.items()}
    out = BytesIO()
    with ZipFile(out, "w", ZIP_STORED) as archive:
        for path in [MANIFEST, *sorted(members)]:
            info = ZipInfo(path, _TIME)
            info.create_system, info.external_attr = _UNIX, _MODE
            archive.writestr(info, format_manifest(hashes) if path == MANIFEST else members[path])
    packed = out.getvalue()
    open_bundle(packed, "the new bundle", limits=limits)  # clashes and limits: whatever would be refused is, now
    return packed
