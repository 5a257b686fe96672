"""Two robots side by side: which joints and limits changed, and which links moved, by how much at worst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import dist, pi
from random import Random
from typing import Any

from fkd.configuration import NEUTRAL
from fkd.kernel.pose import angle_between, rotation_of, translation_of
from fkd.model import Joint
from fkd.robot import Robot

UNLIMITED = {"prismatic": 1.0, "planar": 1.0, "floating": 1.0}  # m; angles go all round
WIDEST = 1e3  # m or rad: limits beyond stand for none
FIELDS = ("type", "parent", "child", "xyz", "rpy", "axis", "limits", "mimic")


@dataclass(frozen=True)
class Moved:
    """How far a link stands from where it stood, at worst over the sampled q: position (m) and angle (rad)."""

    link: str
    position: float
    angle: float


@dataclass(frozen=True)
class Difference:
    """All that differs. `moved` has every link of both robots, the worst first; `samples` is how many q were tried."""

    joints_added: list[str] = field(default_factory=list)
    joints_removed: list[str] = field(default_factory=list)
    joints_changed: list[tuple[str, str, Any, Any]] = field(default_factory=list)  # joint, field, old, new
    links_added: list[str] = field(default_factory=list)
    links_removed: list[str] = field(default_factory=list)
    order_changed: bool = False
    base_changed: tuple[str, str] | None = None
    tip_changed: tuple[str | None, str | None] | None = None
    moved: list[Moved] = field(default_factory=list)
    samples: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing differs at all."""
        lists = (self.joints_added, self.joints_removed, self.joints_changed, self.links_added, self.links_removed)
        still = all(m.position == 0.0 and m.angle == 0.0 for m in self.moved)
        return still and not any(lists) and not (self.order_changed or self.base_changed or self.tip_changed)


def compare(old: Robot, new: Robot, *, samples: int = 200, seed: int = 0) -> Difference:
    """Compare two robots joint by joint, and link by link over `samples` configurations (the first all zero).

    q is drawn within the old robot's limits, the same values for joints of the same name; others stay at 0. Poses are
    those in each robot's root.
    """
    was, now = old.model.by_name, new.model.by_name
    changed = [
        (name, key, getattr(was[name], key), getattr(now[name], key))
        for name in was
        if name in now
        for key in FIELDS
        if getattr(was[name], key) != getattr(now[name], key)
    ]
    shared = [link for link in old.links if link in new.model.link_set]
    return Difference(
        joints_added=[n for n in now if n not in was],
        joints_removed=[n for n in was if n not in now],
        joints_changed=changed,
        links_added=[link for link in new.links if link not in old.model.link_set],
        links_removed=[link for link in old.links if link not in new.model.link_set],
        order_changed=[j for j in old.joints if j in new.joints] != [j for j in new.joints if j in old.joints],
        base_changed=_if_changed(old.model.base, new.model.base),
        tip_changed=_if_changed(old.model.tip, new.model.tip),
        moved=_moved(old, new, shared, samples, Random(seed)),
        samples=samples,
    )


def _if_changed(a: Any, b: Any) -> tuple[Any, Any] | None:
    return None if a == b else (a, b)


def _moved(old: Robot, new: Robot, links: list[str], samples: int, random: Random) -> list[Moved]:
    worst = dict.fromkeys(links, (0.0, 0.0))
    for k in range(samples if links else 0):
        drawn = {j.name: draw(j, random) if k else list(NEUTRAL[j.width]) for j in old.model.independent}
        poses = [robot.poses(_values(robot, drawn), links, robot.model.root) for robot in (old, new)]
        for link in links:
            A, B = (p[link][:12] for p in poses)
            if A == B:
                continue
            angle = angle_between(rotation_of(A), rotation_of(B))
            apart = dist(translation_of(A), translation_of(B))
            worst[link] = (max(worst[link][0], apart), max(worst[link][1], angle))
    return sorted((Moved(link, *w) for link, w in worst.items()), key=lambda m: (-m.position, -m.angle))


def draw(joint: Joint, random: Random) -> list[float]:
    """Random values for one joint within its limits; all round, or within a metre, where it has none."""
    if joint.width == 1 and joint.limits and joint.limits.lower is not None and joint.limits.upper is not None:
        lower, upper = sorted(max(-WIDEST, min(WIDEST, x)) for x in (joint.limits.lower, joint.limits.upper))
        return [random.uniform(lower, upper)]
    slide = UNLIMITED.get(joint.type, pi)
    if joint.width == 7:
        return [random.uniform(-slide, slide) for _ in range(3)] + [random.gauss(0.0, 1.0) for _ in range(4)]
    return [random.uniform(-slide, slide) for _ in range(min(joint.width, 2))] + [random.uniform(-pi, pi)] * (joint.width == 3)


def _values(robot: Robot, drawn: Mapping[str, list[float]]) -> list[float]:
    values: list[float] = []
    for joint in robot.model.independent:
        given = drawn.get(joint.name, [])
        values += given if len(given) == joint.width else NEUTRAL[joint.width]
    return values
