"""Model: a robot's kinematic tree as frozen tables. Numbers and names only; no I/O, no kernels.

Conventions: metre and radian; a `Frame` is the upper 3x4 part of a homogeneous matrix, row-major, 12 numbers.
`T_a_b` takes coordinates in b into a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fkd.errors import ModelError, cut, did_you_mean, nearest

Frame = tuple[float, ...]  # 12 numbers: r00 r01 r02 x, r10 r11 r12 y, r20 r21 r22 z
IDENTITY: Frame = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)

# How many values of q a joint of each type takes.
WIDTH = {"fixed": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "planar": 3, "floating": 7}
TYPES = tuple(WIDTH)


@dataclass(frozen=True, slots=True)
class Limits:
    """Position limits (rad or m) and, where the file gives them, velocity and effort."""

    lower: float | None
    upper: float | None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True, slots=True)
class Mimic:
    """q = multiplier * q(source) + offset, as the file declares it."""

    source: str
    multiplier: float
    offset: float


@dataclass(frozen=True, slots=True)
class Joint:
    """One edge of the tree.

    `T_parent_joint` is the joint's frame in its parent link at q = 0; `axis` is a unit vector in the joint frame.
    `index` is the first place in q that the joint reads (its source's, for a follower; -1 if fixed), and `ratio`,
    `bias` are the whole mimic chain folded into one affine map: value = ratio * q[index] + bias.
    """

    name: str
    type: str
    parent: str
    child: str
    T_parent_joint: Frame
    axis: tuple[float, float, float]
    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)  # the origin in numbers, m and rad, from which the frame was made
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0)
    limits: Limits | None = None
    mimic: Mimic | None = None
    index: int = -1
    ratio: float = 1.0
    bias: float = 0.0
    place: tuple[str, int] = ("", 0)  # file and line

    @property
    def width(self) -> int:
        """How many values of q are this joint's own: 0 for fixed joints and followers."""
        return 0 if self.mimic else WIDTH[self.type]


@dataclass(frozen=True)
class Model:
    """A robot that passed every check. Immutable, shared by all who compute with it.

    `joints` are in document order; `q_names[i]` names the joint that owns q[i].
    """

    name: str
    root: str
    links: tuple[str, ...]
    joints: tuple[Joint, ...]
    independent: tuple[Joint, ...]  # the joints with values of their own, in the order of q
    tip: str | None
    base: str
    tip_candidates: tuple[str, ...] = ()
    digest: str = ""
    trust: str = "unbundled"  # "hashed": every byte checked against the manifest; "unhashed": a zip without one
    source: str = ""  # the description's name, as the user knows it
    calibrated: tuple[str, ...] = field(default=())  # joints whose origin this unit's calibration replaced

    @cached_property
    def dof(self) -> int:
        """The number of values in q."""
        return sum(j.width for j in self.independent)

    @cached_property
    def by_child(self) -> dict[str, Joint]:
        """Link -> the joint that carries it (the root has none)."""
        return {j.child: j for j in self.joints}

    @cached_property
    def by_name(self) -> dict[str, Joint]:
        """Joint name -> joint."""
        return {j.name: j for j in self.joints}

    @cached_property
    def link_set(self) -> frozenset[str]:
        return frozenset(self.links)

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        """For each place of q, the joint that owns it."""
        return tuple(j.name for j in self.independent for _ in range(j.width))

    def chain(self, link: str) -> tuple[Joint, ...]:
        """The joints from the root to `link`, in that order."""
        path: list[Joint] = []
        while (joint := self.by_child.get(link)) is not None:
            path.append(joint)
            link = joint.parent
        return tuple(reversed(path))

    def require_link(self, name: str, path: str = "$.params.links") -> str:
        """`name` if it is a link; else ModelError with the nearest link, or the child link of a joint so named."""
        if not isinstance(name, str):
            raise ModelError(f"a link is named by a string, not by {type(name).__name__}", reason="unknown-link", path=path, name=cut(str(name)))
        if name in self.link_set:
            return name
        if name in self.by_name:
            child = self.by_name[name].child
            raise ModelError(
                f"`{name}` is a joint, not a link; its child link is `{child}`",
                reason="joint-not-link", path=path, name=name, did_you_mean=child,
            )
        raise ModelError(
            f"no link `{cut(name)}` in robot `{self.name}`{did_you_mean(name, self.links)}",
            reason="unknown-link", path=path, name=cut(name), did_you_mean=nearest(name, self.links),
        )

    def require_tip(self) -> str:
        """The default tip; ModelError `no-tip` with the candidates if the model has none."""
        if self.tip is not None:
            return self.tip
        listed = ", ".join(f"`{c}`" for c in self.tip_candidates[:8])
        raise ModelError(
            f"robot `{self.name}` has no single tip (candidates: {listed}); name the links in the call, "
            "start fkd with --tip LINK, or set `tip` in bundle.toml",
            reason="no-tip", candidates=list(self.tip_candidates),
        )


def default_tip(joints: Sequence[Joint], root: str) -> tuple[str | None, tuple[str, ...]]:
    """The leaf whose path from the root carries the most independent joints, and all that tie for it.

    Of several, the one named `tool0`, else the only one whose name ends in it, else None.
    """
    children: dict[str, list[Joint]] = {}
    for j in joints:
        children.setdefault(j.parent, []).append(j)
    moving = {root: 0}
    pending = [root]
    while pending:
        for j in children.get(pending.pop(), ()):
            moving[j.child] = moving[j.parent] + (j.width > 0)
            pending.append(j.child)
    leaves = {link: moving[link] for link in (root, *(j.child for j in joints)) if link not in children}
    most = max(leaves.values())
    ties = tuple(link for link, n in leaves.items() if n == most)
    if len(ties) == 1:
        return ties[0], ties
    if "tool0" in ties:
        return "tool0", ties
    tools = [link for link in ties if link.endswith("tool0")]
    return (tools[0] if len(tools) == 1 else None), ties
