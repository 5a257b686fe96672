"""What a bundle may cost to open. Each limit is a parameter, with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, sizes in bytes; held against what a zip declares before anything is unpacked."""

    members: int = 10_000  # entries, folders too; the largest public robot packages have about 1 000
    total: int = 512 << 20  # of the zip, and of all it unpacks to; the largest with meshes are about 200 MiB
    text_member: int = 64 << 20  # one file that is parsed (URDF, YAML ...); the largest public one is about 1 MiB
    manifest: int = 4 << 20  # 10 000 lines of 400 bytes
    ratio: int = 50  # unpacked to packed; the highest of 2 500 public descriptions and meshes is 26, the usual 2 to 15
    ratio_floor: int = 1 << 20  # up to this size any ratio does: a small file is no bomb


DEFAULT = Limits()
