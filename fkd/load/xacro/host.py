"""Where an expansion is and what it works with: the place and the way there, arguments, packages, files read."""

from __future__ import annotations

from typing import NoReturn

from fkd.errors import BundleRefused, Finding
from fkd.load.xacro.budget import Budget, Fault, suggest
from fkd.load.xacro.files import SCHEME, Files, Tree
from fkd.load.xacro.functions import CONSTANTS
from fkd.load.xacro.text import Texts
from fkd.load.xacro.values import Lazy, Scope, Value, describe, literal, short, truth
from fkd.load.xacro.yaml import parse_yaml
from fkd.load.xml import Element, parse_xml

MAX_TRAIL = 200  # macro calls, includes and properties within each other; Python's own limit is some 1000 frames
MAX_FINDINGS = 200
# Of one xacro file: reading cannot be interrupted. The largest seen has 2000 tags.
MAX_SOURCE = 4 << 20  # bytes
MAX_TAGS = 50_000


class Host:
    """The state of one expansion, and what texts and expressions may ask of it.

    `file`, `line` and `trail` say where the expansion is. They are not put back when a Fault is raised, so that
    `refuse` can tell where it struck.
    """

    constants = CONSTANTS

    def __init__(self, files: Files, entry: str, arguments: dict[str, str], budget: Budget) -> None:
        self.tree = Tree(files, budget)
        self.budget = budget
        self.texts = Texts(budget, self)
        self.arguments = arguments
        self.unused = set(arguments)
        self.findings: list[Finding] = []
        self.documents = [entry]  # the files being included in each other: what relative names are relative to
        self.file, self.line, self.offset = entry, 1, 0  # offset: lines from the start of a text
        self.trail: list[tuple[str, str, int]] = []  # how, file, line: outermost first
        self._parsed: dict[str, Element] = {}
        self._yaml: dict[str, Value] = {}

    # --- the place ---

    def at(self, node: Element) -> None:
        self.file, self.line, self.offset = node.file, node.line, 0

    def enter(self, how: str, file: str, line: int) -> None:
        """Go to another place, from which `leave` comes back."""
        self.trail.append((how, self.file, self.line + self.offset))
        if len(self.trail) > MAX_TRAIL:
            raise Fault("xacro-recursion", f"macros, includes and properties nested deeper than {MAX_TRAIL}")
        self.file, self.line, self.offset = file, line, 0

    def leave(self) -> None:
        _, self.file, self.line = self.trail.pop()
        self.offset = 0

    def chain(self) -> str:
        """The way here, innermost step first, for messages."""
        steps = [f", {how} {file}:{line}" for how, file, line in reversed(self.trail)]
        return "".join(steps[:8]) + (f", ... ({len(steps) - 8} more)" if len(steps) > 8 else "")

    def refuse(self, fault: Fault) -> NoReturn:
        """Raise the BundleRefused that a Fault becomes here."""
        file, line = (fault.file, fault.line) if fault.file else (self.file, self.line + self.offset)
        here = f", loaded from {self.file}:{self.line + self.offset}" if fault.file else ""
        raise BundleRefused(
            f"{file}:{line}: {fault.message}{here}{self.chain()}", reason=fault.reason, file=file, line=line
        ) from None

    def may_say(self) -> bool:
        return len(self.findings) < MAX_FINDINGS

    def say(self, code: str, severity: str, message: str) -> None:
        """Note what `check` should tell about this place."""
        if self.may_say():
            self.findings.append(Finding(code, severity, self.file, self.line + self.offset, short(message, 400)))

    # --- attributes of xacro's own elements ---

    def wanted(self, node: Element, name: str, *optional: str) -> str:
        """An attribute that must be there; any beside it and the `optional` ones is noted."""
        for extra in node.attributes:
            if extra != name and extra not in optional and not extra.startswith("xmlns:") and self.may_say():
                hint = suggest(extra, (name, *optional))
                self.say("xacro-attribute", "warning", f"<{node.tag}> has no attribute `{extra}`{hint}")
        if name not in node.attributes:
            raise Fault("xacro-attribute", f"<{node.tag}> needs the attribute `{name}`{suggest(name, node.attributes)}")
        return node.attributes[name]

    def condition(self, node: Element, text: str, scope: Scope) -> bool:
        """Whether a text is true. Raises Fault (`xacro-condition`) if it is neither true nor false."""
        value = self.texts.evaluate(text, scope)
        result = truth(value)
        if result is None:
            given = f"`{short(value)}`" if isinstance(value, str) else describe(value)
            what = f'"{short(text)}" is {given}, which is' if "$" in text else f"{given} is"
            wish = "give true, false or an integer"
            raise Fault("xacro-condition", f"<{node.tag}>: {what} neither true nor false; {wish}")
        return result

    # --- what texts and expressions ask for ---

    def resolve(self, name: str, lazy: Lazy, scope: Scope) -> Value:
        """Compute a property at its first use, in the scope that holds it."""
        self.enter(f"in property `{short(name)}`, used at", lazy.file, lazy.line)
        if lazy.busy:
            raise Fault(
                "xacro-recursion",
                f'the property `{name}` has a circular definition; lazy_eval="false" computes it where it is defined',
            )
        lazy.busy = True
        value = scope.values[name] = literal(self.texts.evaluate(lazy.text, scope))
        self.leave()
        return value

    def argument(self, name: str) -> str:
        if name not in self.arguments:
            hint = suggest(name, self.arguments) or f"; give it one: {short(name)}:=VALUE"
            raise Fault("xacro-undefined-arg", f"no value for the argument `{short(name)}`{hint}")
        self.unused.discard(name)
        return self.arguments[name]

    def package(self, name: str) -> str:
        self.tree.find(name, self.documents[-1])
        return SCHEME + name

    def folder(self) -> str:
        return self.tree.locate(self.documents[-1].rpartition("/")[0])

    def absolute(self, name: str) -> str:
        folder, _, last = self.tree.resolve(name, self.documents[-1]).rpartition("/")
        return f"{self.tree.locate(folder)}/{last}"

    def load_yaml(self, name: Value) -> Value:
        if not isinstance(name, str):
            raise TypeError(f"load_yaml: a file name is wanted, not {describe(name)}")
        path = self.tree.existing(name, self.documents[-1], "xacro-yaml")
        if path not in self._yaml:
            names = Scope(self, None, None)  # a unit's number sees the constants alone

            def number(text: str) -> float:
                value = self.texts.evaluator.evaluate(text, names)
                if type(value) not in (int, float, bool):
                    raise Fault("xacro-yaml", f"a number is wanted, not {describe(value)}")
                return float(value)

            self._yaml[path] = parse_yaml(self.tree.read(path), path, self.budget, number)
        return self._yaml[path]

    def parse(self, path: str) -> Element:
        """The tree of a file. Raises Fault, BundleRefused."""
        if path not in self._parsed:
            data = self.tree.read(path)
            if b"xacro" in data or self.trail:  # a plain URDF has the limits of XML alone
                tags = data.count(b"<")
                if len(data) > MAX_SOURCE or tags > MAX_TAGS:
                    raise Fault("xacro-budget", f"a file of more than {MAX_SOURCE} bytes or {MAX_TAGS} tags")
                self.budget.hold(4 * len(data) + 600 * tags)
            self._parsed[path] = parse_xml(data, path)
        self.budget.step(50)
        return self._parsed[path]
