"""A checked description -> Model: rotations computed, axes normalised, mimic chains folded, q laid out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fkd.errors import BundleRefused, did_you_mean
from fkd.kernel.pose import frame, rotation_from_rpy, snap
from fkd.load.urdf import Description, JointRecord
from fkd.model import WIDTH, Joint, Limits, Mimic, Model, default_tip


@dataclass(frozen=True)
class Choices:
    """What the bundle or the operator says beyond the description. Lengths are in units of which `per_metre` make a metre."""

    tip: str | None = None
    base: str | None = None
    joints: Sequence[str] | None = None
    per_metre: float = 1.0  # a divisor, because 9 / 1000 is rounded right and 9 * 0.001 is not
    calibration: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)  # joint -> xyz, rpy


def unit(axis: Sequence[float] | None) -> tuple[float, float, float]:
    """A unit vector along `axis`, without the noise of right angles; URDF's default is (1, 0, 0)."""
    if axis is None:
        return (1.0, 0.0, 0.0)
    biggest = max(abs(a) for a in axis)  # first, so that 1e-200 or 1e200 neither vanishes nor overflows
    scaled = [a / biggest for a in axis]
    length = math.hypot(*scaled)
    if abs(length * biggest - 1.0) < 1e-15:  # what was normalised once stays as it is, to the last bit
        x, y, z = (snap(a) for a in axis)
    else:
        x, y, z = (snap(a / length) for a in scaled)
    return (x, y, z)


def build_model(description: Description, choices: Choices, *, digest: str, trust: str, source: str) -> Model:
    """Build the model of a description without error findings.

    Raises BundleRefused: `settings-...` where the choices do not fit the description, `urdf-mimic-overflow`.
    """
    records = {j.name: j for j in description.joints}
    for name in choices.calibration:
        if name not in records:
            raise BundleRefused(f"{source}: bundle.toml calibrates `{name}`, which is no joint{did_you_mean(name, records)}",
                                reason="settings-calibration", member="bundle.toml")
    joints = tuple(_joint(r, records, choices) for r in description.joints)
    independent = _order(joints, choices, source)
    index, place = {}, 0
    for joint in independent:
        index[joint.name] = place
        place += joint.width
    by_name = {j.name: j for j in joints}
    joints = tuple(_drive(j, by_name, index) for j in joints)
    by_name = {j.name: j for j in joints}
    links = tuple(name for name, _ in description.links)
    carried = {j.child for j in joints}
    root = next(name for name in links if name not in carried)
    tip, ties = default_tip(joints, root)
    chosen = _known(choices.tip, links, by_name, "tip", source), _known(choices.base, links, by_name, "base", source)
    tip, base = tip if chosen[0] is None else chosen[0], root if chosen[1] is None else chosen[1]
    return Model(
        name=description.name, root=root, links=links, joints=joints,
        independent=tuple(by_name[j.name] for j in independent), tip=tip, base=base, tip_candidates=ties,
        digest=digest, trust=trust, source=source, calibrated=tuple(choices.calibration),
    )  # fmt: skip


def _joint(record: JointRecord, records: Mapping[str, JointRecord], choices: Choices) -> Joint:
    """One record -> one joint, its lengths in metres, its place in q still open."""
    n = choices.per_metre
    xyz, rpy = choices.calibration.get(record.name, (tuple(x / n for x in record.xyz), record.rpy))
    limits = record.limits
    if limits and record.type == "prismatic" and limits.lower is not None and limits.upper is not None:
        velocity = None if limits.velocity is None else limits.velocity / n
        limits = Limits(limits.lower / n, limits.upper / n, velocity, limits.effort)
    mimic = record.mimic if record.type != "fixed" else None
    if mimic is not None and n != 1.0:  # a prismatic end of the rule counts in the description's unit
        own, other = (n if records[name].type == "prismatic" else 1.0 for name in (record.name, mimic.source))
        mimic = Mimic(mimic.source, mimic.multiplier * other / own, mimic.offset / own)
    return Joint(
        record.name, record.type, record.parent, record.child, frame(xyz, rotation_from_rpy(rpy)), unit(record.axis),
        tuple(xyz), tuple(rpy), limits, mimic, place=(record.file, record.line),
    )


def _order(joints: Sequence[Joint], choices: Choices, source: str) -> list[Joint]:
    """The independent joints in the order of q: the document's, or the one that bundle.toml names in full."""
    free = {j.name: j for j in joints if j.width}
    if choices.joints is None:
        return list(free.values())
    for name in choices.joints:
        if name not in free:
            why = did_you_mean(name, free) or "; it is fixed, a follower, or not in the description"
            raise BundleRefused(f"{source}: `joints` in bundle.toml names `{name}`, which is no independent joint{why}",
                                reason="settings-joints", member="bundle.toml")
    missing = [name for name in free if name not in choices.joints]
    if missing:
        raise BundleRefused(f"{source}: `joints` in bundle.toml leaves out {', '.join(f'`{m}`' for m in missing)}; "
                            "it must name every independent joint once", reason="settings-joints", member="bundle.toml")
    return [free[name] for name in choices.joints]


def _drive(joint: Joint, joints: Mapping[str, Joint], index: Mapping[str, int]) -> Joint:
    """Fold the mimic chain of a joint into value = ratio * q[index] + bias. Raises BundleRefused where it overflows."""
    if WIDTH[joint.type] == 0:
        return joint
    ratio, bias, mimic, name = 1.0, 0.0, joint.mimic, joint.name
    while mimic is not None:
        # value = ratio * s + bias with s = m * s' + b of the next joint up the chain
        bias += ratio * mimic.offset
        ratio *= mimic.multiplier
        name = mimic.source
        mimic = joints[name].mimic
    if not (math.isfinite(ratio) and math.isfinite(bias)):
        file, line = joint.place
        raise BundleRefused(f"{file}:{line}: the mimic chain of joint `{joint.name}` leaves the range of a double",
                            reason="urdf-mimic-overflow", file=file, line=line)
    return replace(joint, index=index[name], ratio=ratio, bias=bias)


def _known(name: str | None, links: Sequence[str], joints: Mapping[str, Joint], what: str, source: str) -> str | None:
    if name is not None and name not in links:
        hint = f"; it is a joint, whose child link is `{joints[name].child}`" if name in joints else did_you_mean(name, links)
        raise BundleRefused(f"{source}: the {what} `{name}` is not a link{hint}",
                            reason=f"settings-{what}", member=source)
    return name
