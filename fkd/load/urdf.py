"""An element tree -> the joints and links that it describes, each with file and line. Judges one record at a time.

What concerns the tree as a whole (rings, roots, mimic chains) is check.py's. Elements that do not matter to
kinematics are skipped unread, whatever their prefix.
Source: the URDF specification, <robot>, <link> and <joint> elements.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from fkd.errors import Finding, nearest
from fkd.load.xml import Element
from fkd.model import TYPES, Limits, Mimic

# Exactly what the C locale's decimal notation allows: no commas, underscores, hex, inf or nan. No two runs of digits
# may touch: where a megabyte of them is not a number, trying every split between the two would take hours.
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
XML_SPACE = re.compile(r"[ \t\r\n]+")

# What each element of a joint may carry. An attribute beyond these is most likely misspelt, and reading the
# element without it would silently put a default in its place.
ATTRIBUTES = {
    "origin": ("xyz", "rpy"),
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz", "rpy"),  # old files write rpy="0 0 0" here; it never had a meaning
    "mimic": ("joint", "multiplier", "offset"),
    "limit": ("lower", "upper", "velocity", "effort"),
}
SKIPPED_IN_JOINT = ("dynamics", "calibration", "safety_controller", "joint_properties", "gazebo", "physics", "hardwareInterface")
XACRO_CONTROL = ("if", "unless", "include", "call", "insert_block", "element", "attribute")
SKIPPED_IN_ROBOT = (
    "material", "gazebo", "transmission", "ros2_control", "sensor", "frame", "mujoco", "model_state", "loop_joint",
    "group", "drake", "version", "static", "plugin", "actuator", "disable_collisions", "author", "verbose",
)


@dataclass(slots=True)
class JointRecord:
    """One <joint> as the file has it; `axis` None where it is not given. Lengths and angles as written."""

    name: str
    type: str
    parent: str
    child: str
    file: str
    line: int
    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0)
    axis: tuple[float, ...] | None = None
    limits: Limits | None = None
    mimic: Mimic | None = None
    called_from: tuple[tuple[str, int], ...] = ()
    lines: dict[str, int] = field(default_factory=dict)  # where its elements stand


@dataclass(slots=True)
class Description:
    """All records of one robot."""

    name: str
    file: str
    line: int
    links: list[tuple[str, Element]]
    joints: list[JointRecord]
    findings: list[Finding]
    unread: set[str] = field(default_factory=set)  # joints too broken to stand here; "" for one without a name


def read_urdf(root: Element) -> Description:
    """Read every link and joint; what is wrong with any of them becomes a finding, and the rest is read on."""
    reader = _Reader()
    return reader.robot(root)


class _Reader:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.unread: set[str] = set()

    def say(self, severity: str, code: str, at: Element, message: str, hint: str = "") -> None:
        via = "".join(f", called from {f}:{n}" for f, n in at.called_from)
        self.findings.append(Finding(code, severity, at.file, at.line, message + via, hint))

    def error(self, code: str, at: Element, message: str, hint: str = "") -> None:
        self.say("error", code, at, message, hint)

    def robot(self, root: Element) -> Description:
        links: list[tuple[str, Element]] = []
        joints: list[JointRecord] = []
        if root.tag != "robot":
            self.error("urdf-root", root, f"the document is <{root.tag}>; a robot description starts with <robot>")
            return Description("", root.file, root.line, links, joints, self.findings)
        name = root.attributes.get("name", "")
        if not name:
            self.say("warning", "urdf-robot-unnamed", root, "<robot> has no name")
        for element in root.elements():
            if element.tag == "link":
                if link := self.name_of(element):
                    links.append((link, element))
            elif element.tag == "joint":
                if (joint := self.joint(element)) is not None:
                    joints.append(joint)
                else:
                    self.unread.add(element.attributes.get("name", ""))
            elif self.skip(element, ("link", "joint"), SKIPPED_IN_ROBOT, "<robot>"):
                self.unread.add(element.attributes.get("name", ""))
        return Description(name, root.file, root.line, links, joints, self.findings, self.unread)

    def skip(self, element: Element, known: tuple[str, ...], harmless: tuple[str, ...], where: str) -> bool:
        """Pass over what does not matter; refuse (True) what is most likely a misspelt name of something that does."""
        tag = element.tag
        if tag in harmless:
            return False
        if tag.startswith("xacro:"):
            hint = "rename the file to .urdf.xacro, or expand it first"
            if where != "<robot>" or tag.removeprefix("xacro:") in XACRO_CONTROL:
                self.error("urdf-xacro-left", element, f"<{tag}> in {where} is not expanded, and what it holds is lost", hint)
                return True
            self.say("warning", "urdf-xacro-left", element, f"<{tag}> is not expanded and adds nothing here", hint)
            return False
        bare = tag.rpartition(":")[2]
        if ":" in tag and (where == "<robot>" or bare not in known):
            return False
        near = bare if ":" in tag else nearest(tag, known)
        if near:
            self.error("urdf-element-unknown", element, f"<{tag}> in {where} is not an element of URDF", f"did you mean <{near}>?")
        elif where != "<robot>":
            known_here = f"known: {', '.join(known + harmless)}"
            self.error("urdf-element-unknown", element, f"<{tag}> in {where} is not an element of URDF, and what it means would be lost", known_here)
            return True
        else:
            self.say("info", "urdf-element-skipped", element, f"<{tag}> in {where} is not an element of URDF; skipped")
        return near is not None

    def name_of(self, element: Element) -> str | None:
        name = element.attributes.get("name", "")
        if not name.strip():
            self.error("urdf-name-missing", element, f"a <{element.tag}> has no name")
            return None
        if name != name.strip():
            self.say("warning", "urdf-name-blank", element, f"the name {name!r} has blanks at its ends; they count as part of it")
        return name

    def joint(self, element: Element) -> JointRecord | None:
        """One <joint>, or None if it is too broken to stand for anything."""
        name = self.name_of(element)
        kind = element.attributes.get("type", "")
        label = f"joint `{name or '?'}`"
        if kind not in TYPES:
            what = f"has the unknown type `{kind}`" if kind else "has no type"
            near = nearest(kind, TYPES)
            self.error("urdf-joint-type", element, f"{label} {what}; expected one of {', '.join(TYPES)}", f"did you mean `{near}`?" if near else "")
        parts = self.parts(element, label)
        ends = {}
        for end in ("parent", "child"):
            part = parts.get(end)
            link = part.attributes.get("link", "") if part else ""
            if not link:
                self.error(f"urdf-joint-{end}", part or element, f"{label} names no {end} link", f'write <{end} link="..."/>')
            ends[end] = link
        record = JointRecord(
            name or "", kind, ends["parent"], ends["child"], element.file, element.line,
            called_from=element.called_from, lines={tag: part.line for tag, part in parts.items()},
        )
        if (origin := parts.get("origin")) is not None:
            record.xyz = self.vector(origin, "xyz", label) or record.xyz
            record.rpy = self.vector(origin, "rpy", label) or record.rpy
        if (axis := parts.get("axis")) is not None:
            record.axis = self.axis(axis, label, kind)
        if (limit := parts.get("limit")) is not None:
            record.limits = self.limits(limit, label, kind)
        if (mimic := parts.get("mimic")) is not None:
            record.mimic = self.mimic(mimic, label)
        usable = name is not None and kind in TYPES and record.parent and record.child
        return record if usable else None

    def parts(self, element: Element, label: str) -> dict[str, Element]:
        """The kinematic elements of a joint by tag, each at most once and without unknown attributes."""
        parts: dict[str, Element] = {}
        for child in element.elements():
            if child.tag not in ATTRIBUTES:
                self.skip(child, tuple(ATTRIBUTES), SKIPPED_IN_JOINT, label)
                continue
            if child.tag in parts:
                self.error("urdf-element-twice", child, f"{label} has <{child.tag}> twice (first in line {parts[child.tag].line})")
                continue
            parts[child.tag] = child
            for attribute in child.attributes:
                self.attribute(child, attribute, label)
        return parts

    def attribute(self, child: Element, attribute: str, label: str) -> None:
        known = ATTRIBUTES[child.tag]
        if attribute in known or ":" in attribute:
            return
        near = {"min": "lower", "max": "upper"}.get(attribute) if child.tag == "limit" else None
        near = near or nearest(attribute, known)
        if child.tag == "limit" and near not in ("lower", "upper"):
            return  # vendors add motor data here; it does not touch the kinematics
        hint = f"did you mean `{near}`?" if near else f"known: {', '.join(known)}"
        self.error("urdf-attribute-unknown", child, f"<{child.tag}> of {label} has an unknown attribute `{attribute}`", hint)

    def numbers(self, element: Element, attribute: str, label: str, count: int) -> tuple[float, ...] | None:
        """Exactly `count` finite numbers, or None and a finding."""
        text = element.attributes[attribute]
        words = [w for w in XML_SPACE.split(text) if w]
        place = f"{attribute}=\"{text if len(text) <= 60 else text[:57] + '...'}\" of {label}"
        for word in words:
            if not NUMBER.fullmatch(word):
                hint = ""
                if "," in word:
                    hint = "write a decimal point, and blanks between numbers"
                elif "$" in word:
                    hint = "this is xacro: name the file .urdf.xacro"
                shown = word if len(word) <= 40 else word[:37] + "..."
                self.error("urdf-number", element, f"{place}: `{shown}` is not a number", hint)
                return None
            if not math.isfinite(float(word)):
                self.error("urdf-number", element, f"{place}: `{word[:40]}` is beyond the range of a double")
                return None
        if len(words) != count:
            wanted = "one number" if count == 1 else f"{count} numbers"
            self.error("urdf-number-count", element, f"{place}: expected {wanted}, got {len(words)}")
            return None
        return tuple(float(w) for w in words)

    def vector(self, element: Element, attribute: str, label: str) -> tuple[float, ...] | None:
        if attribute not in element.attributes:
            return None
        return self.numbers(element, attribute, label, 3)

    def number(self, element: Element, attribute: str, label: str, default: float) -> float:
        if attribute not in element.attributes:
            return default
        found = self.numbers(element, attribute, label, 1)
        return found[0] if found else default

    def axis(self, element: Element, label: str, kind: str) -> tuple[float, ...] | None:
        if kind in ("fixed", "floating"):
            return None  # check.py mentions it; the numbers have no meaning there, good or bad
        if "xyz" not in element.attributes:
            self.error("urdf-axis-empty", element, f"<axis> of {label} has no xyz", 'write <axis xyz="..."/>, or leave <axis> out for 1 0 0')
            return None
        axis = self.numbers(element, "xyz", label, 3)
        if axis is not None and not any(axis):
            self.error("urdf-axis-zero", element, f"the axis of {label} is the zero vector, which has no direction")
            return None
        return axis

    def limits(self, element: Element, label: str, kind: str) -> Limits | None:
        """URDF: lower and upper default to 0. Only revolute and prismatic joints have position limits."""
        velocity, effort = (self.lenient(element, a) for a in ("velocity", "effort"))
        given = [a for a in ("lower", "upper") if a in element.attributes]
        if kind not in ("revolute", "prismatic"):
            if given:
                self.say("warning", "urdf-limit-ignored", element, f"position limits on {label}, which is {kind}, are ignored")
            return Limits(None, None, velocity, effort)
        if len(given) == 1:
            self.say("warning", "urdf-limit-partial", element, f"{label} gives only `{given[0]}`; the other limit is 0, URDF's default")
        lower, upper = (self.number(element, a, label, 0.0) for a in ("lower", "upper"))
        return Limits(lower, upper, velocity, effort)

    def lenient(self, element: Element, attribute: str) -> float | None:
        """A number that does not touch the kinematics: kept if it reads, else left out."""
        text = element.attributes.get(attribute, "").strip(" \t\r\n")
        if not NUMBER.fullmatch(text):
            return None
        value = float(text)
        return value if math.isfinite(value) else None

    def mimic(self, element: Element, label: str) -> Mimic | None:
        source = element.attributes.get("joint", "")
        if not source:
            self.error("urdf-mimic-source", element, f"<mimic> of {label} names no joint", 'write <mimic joint="..."/>')
            return None
        return Mimic(source, self.number(element, "multiplier", label, 1.0), self.number(element, "offset", label, 0.0))
