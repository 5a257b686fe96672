"""A description as a whole -> every finding about it, in one pass. Errors forbid building; warnings deserve a look.

The tree must have one root that reaches every link, one parent a link, unique names, and mimic chains that end in
an independent joint. Nothing is ever mended or downgraded: a vendor's mistake is named, with file and line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from fkd.errors import BundleRefused, Finding, nearest
from fkd.kernel.pose import angle_between, rotation_from_rpy
from fkd.load.urdf import Description, JointRecord
from fkd.load.xml import Element

TOO_FAR = 20.0  # metres from one joint to the next: a crane, or an arm in millimetres
TOO_NEAR = 1e-3  # metres, the longest of all: a watch, or an arm in kilometres
TURN = 2 * math.pi
CALIBRATION = (0.02, 0.1)  # m and rad from the nominal origin: no arm is built further off
SINGLE = ("revolute", "continuous", "prismatic")  # joints of one value
SHOWN = 8  # names in a message
SEARCHES = 20  # for the nearest name


def check_description(description: Description, scale: float = 1.0) -> list[Finding]:
    """All findings, the worst first, then by place. `scale` takes the description's lengths to metres. Never raises."""
    checker = _Checker(description, scale)
    checker.run()
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(checker.findings, key=lambda f: (order[f.severity], f.file, f.line))


def calibrated(description: Description, origins: Mapping[str, tuple[Sequence[float], Sequence[float]]], scale: float) -> list[Finding]:
    """One finding for each joint whose nominal origin this unit's measured one (xyz in m, rpy in rad) replaces."""
    found = []
    for joint in description.joints:
        if joint.name not in origins:
            continue
        xyz, rpy = origins[joint.name]
        apart = math.dist(xyz, [scale * x for x in joint.xyz])
        angle = angle_between(rotation_from_rpy(joint.rpy), rotation_from_rpy(rpy))
        message = (
            f"joint `{joint.name}` has this unit's measured origin, {apart * 1e3:.4g} mm and {math.degrees(angle):.4g} deg "
            f"from the nominal one at {joint.file}:{joint.line}"
        )
        if not math.isfinite(apart):
            found.append(Finding("settings-calibrated", "error", "bundle.toml", 0, f"joint `{joint.name}` is calibrated beyond the range of a double"))
            continue
        far = apart > CALIBRATION[0] or angle > CALIBRATION[1]
        hint = "are these metres and radians?" if far else ""
        found.append(Finding("settings-calibrated", "warning" if far else "info", "bundle.toml", 0, message, hint))
    return found


def refuse_errors(findings: Sequence[Finding], source: str) -> None:
    """Raise BundleRefused if any finding is an error. Its message is the first; its data has them all."""
    errors = [f for f in findings if f.severity == "error"]
    if not errors:
        return
    first = errors[0]
    more = f"\n(and {len(errors) - 1} more; `fkctl check {source}` lists them)" if len(errors) > 1 else ""
    raise BundleRefused(
        str(first) + more, reason=first.code, file=first.file, line=first.line,
        findings=[f._asdict() for f in errors],
    )


def rings(following: Mapping[str, str]) -> list[list[str]]:
    """Every ring in `following` (name -> the name it points to), once, in the direction of the pointing."""
    found: list[list[str]] = []
    seen: set[str] = set()
    for name in following:
        walk: dict[str, None] = {}  # a dict for its order
        while name in following and name not in seen:
            seen.add(name)
            walk[name] = None
            name = following[name]
        if name in walk:
            ring = list(walk)
            found.append(ring[ring.index(name) :])
    return found


def path(ring: Sequence[str]) -> str:
    """A ring of names as a message shows it, back at its start."""
    names = [f"`{name}`" for name in ring]
    if len(names) > SHOWN:
        names[SHOWN - 1 :] = ["..."]
    return " -> ".join((*names, names[0]))


class _Checker:
    def __init__(self, description: Description, scale: float) -> None:
        self.d = description
        self.scale = scale
        self.findings = list(description.findings)
        self.searches = 0

    def say(self, severity: str, code: str, line: int, message: str, hint: str = "", file: str = "") -> None:
        self.findings.append(Finding(code, severity, file or self.d.file, line, message, hint))

    def about(self, severity: str, code: str, joint: JointRecord, message: str, hint: str = "", part: str = "") -> None:
        line = joint.lines.get(part, joint.line)
        via = "".join(f", called from {f}:{n}" for f, n in joint.called_from)
        self.say(severity, code, line, f"joint `{joint.name}` {message}{via}", hint, joint.file)

    def near(self, name: str, names: Iterable[str]) -> str | None:
        """The nearest name, for the first few faults: each search reads all names."""
        self.searches += 1
        return nearest(name, names) if self.searches <= SEARCHES else None

    def run(self) -> None:
        broken = any(f.severity == "error" and f.code == "urdf-root" for f in self.findings)
        if broken:
            return
        self.names()
        self.tree()
        self.mimics()
        for joint in self.d.joints:
            self.numbers(joint)
            self.limits(joint)
        longest = self.scale * max((abs(x) for joint in self.d.joints for x in joint.xyz), default=0.0)
        if 0.0 < longest < TOO_NEAR:
            self.say("warning", "urdf-units", self.d.line, f"no joint lies further than {longest * 1e3:.3g} mm from its parent", "URDF lengths are metres")

    # -- names -----------------------------------------------------------------------------------------------------

    def names(self) -> None:
        """Links and joints are two name spaces, each without duplicates."""
        first_link: dict[str, Element] = {}
        for name, element in self.d.links:
            if name in first_link:
                where = first_link[name]
                message = f"link `{name}` is defined twice (first at {where.file}:{where.line})"
                self.say("error", "urdf-link-twice", element.line, message, file=element.file)
            else:
                first_link[name] = element
        first_joint: dict[str, JointRecord] = {}
        for joint in self.d.joints:
            if joint.name in first_joint:
                where_joint = first_joint[joint.name]
                self.about("error", "urdf-joint-twice", joint, f"is defined twice (first at {where_joint.file}:{where_joint.line})")
            else:
                first_joint[joint.name] = joint
        if not first_link:
            self.say("error", "urdf-no-links", self.d.line, "the robot has no links")

    # -- the tree --------------------------------------------------------------------------------------------------

    def tree(self) -> None:
        links = list(dict.fromkeys(name for name, _ in self.d.links))
        known = set(links)
        carrier: dict[str, JointRecord] = {}
        sound = bool(links) and not self.d.unread
        for joint in self.d.joints:
            for end, name in (("parent", joint.parent), ("child", joint.child)):
                if name not in known:
                    near = self.near(name, links)
                    hint = f"did you mean `{near}`?" if near else f'add <link name="{name}"/>'
                    self.about("error", "urdf-link-unknown", joint, f"has the {end} link `{name}`, which is not defined", hint, end)
                    sound = False
            if joint.parent == joint.child:
                self.about("error", "urdf-ring", joint, f"makes link `{joint.child}` its own parent", part="child")
                sound = False
            elif (other := carrier.setdefault(joint.child, joint)) is not joint:
                message = f"and joint `{other.name}` ({other.file}:{other.line}) both carry link `{joint.child}`; a link has one parent"
                self.about("error", "urdf-two-parents", joint, message, part="child")
                sound = False
        order = {name: k for k, name in enumerate(carrier)}
        for ring in rings({child: joint.parent for child, joint in carrier.items()}):
            joint = carrier[max(ring, key=order.__getitem__)]
            hint = "a robot is a tree; cut the ring"
            self.about("error", "urdf-ring", joint, f"closes a ring of links: {path(ring[::-1])}", hint, "child")
        # Every link that no ring holds up hangs from a root. Where joints are in doubt, so are the roots.
        roots = [name for name in links if name not in carrier]
        if sound and len(roots) > 1:
            named = ", ".join(f"`{r}`" for r in roots[:SHOWN]) + (", ..." if len(roots) > SHOWN else "")
            self.say("error", "urdf-roots", self.d.line, f"{len(roots)} links have no parent: {named}; a robot has one root",
                     "join them with a joint, or take the spare ones out")

    # -- mimic -----------------------------------------------------------------------------------------------------

    def mimics(self) -> None:
        by_name = {j.name: j for j in self.d.joints}
        follows: dict[str, str] = {}
        for joint in self.d.joints:
            if joint.mimic is None:
                continue
            if joint.type == "fixed":
                self.about("warning", "urdf-mimic-fixed", joint, "is fixed; its <mimic> is ignored", part="mimic")
            elif joint.type not in SINGLE:
                self.about("error", "urdf-mimic-type", joint, f"is {joint.type}; only joints of one value can mimic", part="mimic")
            elif (source := by_name.get(joint.mimic.source)) is not None:
                follows[joint.name] = source.name
                if source.type not in SINGLE:
                    message = f"mimics `{source.name}`, which is {source.type} and has no single value"
                    self.about("error", "urdf-mimic-source", joint, message, part="mimic")
            elif joint.mimic.source not in self.d.unread:
                near = self.near(joint.mimic.source, by_name)
                hint = f"did you mean `{near}`?" if near else ""
                self.about("error", "urdf-mimic-unknown", joint, f"mimics `{joint.mimic.source}`, which is not a joint", hint, "mimic")
        for ring in rings(follows):
            what = "mimics itself" if len(ring) == 1 else f"is in a mimic ring: {path(ring)}"
            self.about("error", "urdf-mimic-ring", by_name[ring[0]], what, part="mimic")

    # -- numbers that read, but look wrong -------------------------------------------------------------------------

    def numbers(self, joint: JointRecord) -> None:
        if joint.type in ("fixed", "floating"):
            if "axis" in joint.lines:
                self.about("warning", "urdf-axis-ignored", joint, f"is {joint.type}; its axis is ignored", part="axis")
        elif joint.axis is not None:
            length = math.hypot(*joint.axis)
            if length < 1e-6 or length > 1e6:
                self.about("warning", "urdf-axis-degenerate", joint, f"has an axis of length {length:.3g}", "is it meant?", "axis")
            elif abs(length - 1.0) > 1e-6:
                self.about("warning", "urdf-axis-normalised", joint, f"has an axis of length {length:.6g}; taken as a unit vector", part="axis")
        if any(abs(angle) > TURN + 1e-3 for angle in joint.rpy):
            given = " ".join(f"{a:g}" for a in joint.rpy)
            self.about("warning", "urdf-rpy-degrees", joint, f"has rpy {given}, which looks like degrees", "URDF angles are radians", "origin")
        reach = self.scale * max(abs(x) for x in joint.xyz)
        if reach > TOO_FAR:
            self.about("warning", "urdf-units", joint, f"lies {reach:g} m from its parent", "are the lengths in millimetres?", "origin")

    def limits(self, joint: JointRecord) -> None:
        if joint.type not in ("revolute", "prismatic"):
            return
        if joint.limits is None:
            self.about("warning", "urdf-limit-missing", joint, f"is {joint.type} but has no <limit>; it counts as unlimited")
            return
        lower, upper = joint.limits.lower, joint.limits.upper
        if lower is None or upper is None:
            return
        if lower > upper:
            self.about("warning", "urdf-limit-reversed", joint, f"has limits in reverse: lower {lower:g} > upper {upper:g}", part="limit")
        elif lower == upper:
            self.about("warning", "urdf-limit-zero-range", joint, f"cannot move: both limits are {lower:g}", part="limit")
        elif not lower <= 0.0 <= upper:
            self.about("warning", "urdf-zero-outside", joint, f"does not allow 0: its limits are {lower:g} .. {upper:g}", part="limit")
