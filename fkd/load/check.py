"""A description as a whole -> every finding about it, in one pass. Errors forbid building; warnings deserve a look.

The tree must have one root that reaches every link, one parent a link, unique names, and mimic chains that end in
an independent joint. Nothing is ever mended or downgraded: a vendor's mistake is named, with file and line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fkd.errors import BundleRefused, Finding, nearest
from fkd.load.urdf import Description, JointRecord
from fkd.load.xml import Element

SUSPICIOUS_REACH = (1e-3, 100.0)  # metres; arms lie between a watch and a crane
TURN = 2 * math.pi


def check_description(description: Description) -> list[Finding]:
    """All findings, the reader's own first, sorted by place. Never raises."""
    checker = _Checker(description)
    checker.run()
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(checker.findings, key=lambda f: (order[f.severity], f.file, f.line))


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


class _Checker:
    def __init__(self, description: Description) -> None:
        self.d = description
        self.findings = list(description.findings)

    def say(self, severity: str, code: str, line: int, message: str, hint: str = "", file: str = "") -> None:
        self.findings.append(Finding(code, severity, file or self.d.file, line, message, hint))

    def about(self, severity: str, code: str, joint: JointRecord, message: str, hint: str = "", part: str = "") -> None:
        line = joint.lines.get(part, joint.line)
        via = "".join(f", called from {f}:{n}" for f, n in joint.called_from)
        self.say(severity, code, line, f"joint `{joint.name}` {message}{via}", hint, joint.file)

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
        children: dict[str, list[str]] = {}
        sound = bool(links)
        for joint in self.d.joints:
            for end, name in (("parent", joint.parent), ("child", joint.child)):
                if name not in known:
                    near = nearest(name, links)
                    hint = f"did you mean `{near}`?" if near else f'add <link name="{name}"/>'
                    self.about("error", "urdf-link-unknown", joint, f"has the {end} link `{name}`, which is not defined", hint, end)
                    sound = False
            if joint.parent == joint.child:
                self.about("error", "urdf-ring", joint, f"makes link `{joint.child}` its own parent", part="child")
                sound = False
            elif joint.child in carrier:
                other = carrier[joint.child]
                message = f"and joint `{other.name}` (line {other.line}) both carry link `{joint.child}`; a link has one parent"
                self.about("error", "urdf-two-parents", joint, message, part="child")
                sound = False
            carrier.setdefault(joint.child, joint)
            children.setdefault(joint.parent, []).append(joint.child)
        if not sound:
            return  # roots and reach would only repeat what is already said
        roots = [name for name in links if name not in carrier]
        if len(roots) > 1:
            named = ", ".join(f"`{r}`" for r in roots[:8]) + (", ..." if len(roots) > 8 else "")
            self.say("error", "urdf-roots", self.d.line, f"{len(roots)} links have no parent: {named}; a robot has one root",
                     "join them with a joint, or take the spare ones out")
        reached = set(roots)
        pending = list(roots)
        while pending:
            for child in children.get(pending.pop(), ()):
                if child not in reached:
                    reached.add(child)
                    pending.append(child)
        lost = [name for name in links if name not in reached]
        if lost:
            ring = self.ring(lost[0], carrier)
            joint = carrier[ring[0]]
            path = " -> ".join(f"`{name}`" for name in (*ring, ring[0]))
            self.about("error", "urdf-ring", joint, f"closes a ring of links: {path}", "a robot is a tree; cut the ring", "child")

    @staticmethod
    def ring(link: str, carrier: dict[str, JointRecord]) -> list[str]:
        """The ring that the walk from `link` towards its parents ends in, parents first."""
        seen: list[str] = []
        while link not in seen:
            seen.append(link)
            link = carrier[link].parent
        return list(reversed(seen[seen.index(link):]))

    # -- mimic -----------------------------------------------------------------------------------------------------

    def mimics(self) -> None:
        by_name = {j.name: j for j in self.d.joints}
        for joint in self.d.joints:
            if joint.mimic is None:
                continue
            if joint.type == "fixed":
                self.about("warning", "urdf-mimic-fixed", joint, "is fixed; its <mimic> is ignored", part="mimic")
                continue
            if joint.type not in ("revolute", "continuous", "prismatic"):
                self.about("error", "urdf-mimic-type", joint, f"is {joint.type}; only joints of one value can mimic", part="mimic")
                continue
            self.mimic_chain(joint, by_name)

    def mimic_chain(self, joint: JointRecord, by_name: dict[str, JointRecord]) -> None:
        """Follow one follower to its independent source."""
        assert joint.mimic is not None  # noqa: S101 (the caller's condition, for the type checker)
        chain, here = [joint.name], joint
        while here.mimic is not None and here.type != "fixed":
            name = here.mimic.source
            if name not in by_name:
                near = nearest(name, by_name)
                hint = f"did you mean `{near}`?" if near else ""
                if here is joint:  # a broken link further up is told once, where it stands
                    self.about("error", "urdf-mimic-unknown", joint, f"mimics `{name}`, which is not a joint", hint, "mimic")
                return
            if name in chain:
                path = " -> ".join(f"`{n}`" for n in (*chain[chain.index(name):], name))
                what = "mimics itself" if name == joint.name and len(chain) == 1 else f"is in, or leads to, a mimic ring: {path}"
                self.about("error", "urdf-mimic-ring", joint, what, part="mimic")
                return
            chain.append(name)
            here = by_name[name]
        if here.type not in ("revolute", "continuous", "prismatic"):
            self.about("error", "urdf-mimic-source", joint, f"mimics `{here.name}`, which is {here.type} and has no single value", part="mimic")

    # -- numbers that read, but look wrong -------------------------------------------------------------------------

    def numbers(self, joint: JointRecord) -> None:
        if joint.type in ("fixed", "floating"):
            if "axis" in joint.lines:
                self.about("info", "urdf-axis-ignored", joint, f"is {joint.type}; its axis is ignored", part="axis")
        elif joint.axis is not None:
            length = math.hypot(*joint.axis)
            if length < 1e-6 or length > 1e6:
                self.about("warning", "urdf-axis-degenerate", joint, f"has an axis of length {length:.3g}", "is it meant?", "axis")
            elif abs(length - 1.0) > 1e-6:
                self.about("info", "urdf-axis-normalised", joint, f"has an axis of length {length:.6g}; taken as a unit vector", part="axis")
        if any(abs(angle) > TURN + 1e-3 for angle in joint.rpy):
            given = " ".join(f"{a:g}" for a in joint.rpy)
            self.about("warning", "urdf-rpy-degrees", joint, f"has rpy {given}, which looks like degrees", "URDF angles are radians", "origin")
        reach = max(abs(x) for x in joint.xyz)
        if reach > SUSPICIOUS_REACH[1]:
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
            self.about("info", "urdf-zero-outside", joint, f"does not allow 0: its limits are {lower:g} .. {upper:g}", part="limit")
