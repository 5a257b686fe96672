"""Model -> a clean URDF. Numbers are written so that they read back to the last bit.

Load, write, load gives bit-identical kernels. Lengths are metres and calibration is in the origins, whatever the
bundle said; joints stand so that document order is the order of q. What does not matter to kinematics is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from fkd.model import Joint, Model


def write_urdf(model: Model) -> str:
    """The model as the text of a URDF."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot name={quoteattr(model.name)}>"]
    lines += [f"  <link name={quoteattr(link)}/>" for link in model.links]
    in_order = iter(model.independent)
    for joint in model.joints:
        lines += _joint(next(in_order) if joint.width else joint)
    return "\n".join([*lines, "</robot>", ""])


def _joint(j: Joint) -> list[str]:
    # Revolute without limits is what the format calls continuous; other readers refuse it by its own name.
    kind = "continuous" if j.type == "revolute" and j.limits is None else j.type
    lines = [
        f"  <joint name={quoteattr(j.name)} type={quoteattr(kind)}>",
        f"    <parent link={quoteattr(j.parent)}/>",
        f"    <child link={quoteattr(j.child)}/>",
        f'    <origin xyz="{_numbers(j.xyz)}" rpy="{_numbers(j.rpy)}"/>',
    ]
    if j.type not in ("fixed", "floating"):
        lines.append(f'    <axis xyz="{_numbers(j.axis)}"/>')
    if j.limits:
        given = {"lower": j.limits.lower, "upper": j.limits.upper, "velocity": j.limits.velocity, "effort": j.limits.effort}
        if j.type in ("revolute", "prismatic"):  # other readers refuse a limit without them
            given = {k: 0.0 if v is None else v for k, v in given.items()}
        written = " ".join(f'{k}="{_number(v)}"' for k, v in given.items() if v is not None)
        lines.append(f"    <limit {written}/>" if written else "    <limit/>")
    if j.mimic:
        m = j.mimic
        lines.append(
            f'    <mimic joint={quoteattr(m.source)} multiplier="{_number(m.multiplier)}" offset="{_number(m.offset)}"/>'
        )
    return [*lines, "  </joint>"]


def _numbers(values: Sequence[float]) -> str:
    return " ".join(map(_number, values))


def _number(x: float) -> str:
    """The shortest text that reads back as x; whole numbers without their ".0"."""
    text = repr(x + 0.0)
    return text.removesuffix(".0")
