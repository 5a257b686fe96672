"""xacro -> plain XML: properties, macros, includes and conditions expanded, inside the bundle only.

Behaves as xacro 2.1.1 does on the same input, with these differences on purpose: expressions are a bounded language of
our own; nothing outside the bundle is read, and no environment; comments are never evaluated; and `$(find pkg)` stands
for `package://pkg`, wherever that package lies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from fkd.errors import BundleRefused, Finding
from fkd.load.xacro.budget import Budget, Fault, suggest
from fkd.load.xacro.files import Files
from fkd.load.xacro.host import MAX_TRAIL, Host
from fkd.load.xacro.macro import bind, declare, find
from fkd.load.xacro.property import define
from fkd.load.xacro.values import Scope, literal, short
from fkd.load.xml import MAX_DEPTH, Comment, Element, Text
from fkd.load.xml_text import to_text

__all__ = ["Expansion", "Files", "expand", "to_text"]

TAGS = ("property", "arg", "macro", "call", "insert_block", "include", "if", "unless", "element", "attribute")
_XML_NAME = re.compile(r"[^\W\d][\w.-]*(?::[^\W\d][\w.-]*)?")

Nodes = list[Element | Text | Comment]


class Expansion(NamedTuple):
    """What `expand` gives: the document, the files it was made of in the order of use, and what `check` should say."""

    root: Element
    files: tuple[str, ...]
    findings: tuple[Finding, ...]


def expand(
    files: Files, entry: str, args: Mapping[str, str] | None = None, *, budget: Budget | None = None
) -> Expansion:
    """Expand a description; a plain URDF comes back as it is.

    entry: path of the file in `files`; args: values for its `<xacro:arg>`s. In the result every element keeps the file
    and line of its text, and in `called_from` the macro calls that made it, innermost first.
    Raises BundleRefused: the reasons start with `xacro-` or `xml-`, and carry file, line and the call chain.
    """
    work = _Expander(files, entry, dict(args or {}), budget or Budget())
    try:
        return work.run()
    except Fault as fault:
        work.refuse(fault)
    except BundleRefused as refused:  # from reading a file, which says its own place
        raise BundleRefused(refused.message + work.chain(), reason=refused.reason, **refused.data) from None
    except RecursionError:
        work.refuse(Fault("xacro-recursion", "macros, properties or expressions are nested too deeply"))
    except MemoryError:
        work.refuse(Fault("xacro-budget", "the expansion needs more memory than there is"))


class _Expander(Host):
    """One expansion: goes through the document once, in order, and writes what is left of it."""

    called_from: tuple[tuple[str, int], ...] = ()
    depth = 0

    def run(self) -> Expansion:
        self.budget.start()
        entry = self.documents[0]
        source = self.parse(self.tree.existing(f"/{entry}", entry))
        # A .urdf that still holds calls of macros is a URDF all the same: its reader says that they add nothing.
        if entry.endswith(".urdf") or not (entry.endswith(".xacro") or _is_xacro(source)):
            return Expansion(source, tuple(self.tree.used), ())
        self.look_over(source)
        scope = Scope(self, None, None)
        self.at(source)
        root = self.element(source, scope)
        if (name := source.attributes.get("xacro:targetNamespace")) is not None:
            root.attributes["xmlns"] = self.texts.string(name, scope)
        self.content(source, root.children, scope, root)
        self.at(source)
        for name in sorted(self.unused):
            hint = suggest(name, self.arguments.keys() - {name})
            # With a name beside it that the file does declare, it is a slip that would leave the default robot in place.
            severity = "error" if hint else "warning"
            self.say("xacro-unused-arg", severity, f"the argument `{name}` is given, but nothing uses it{hint}")
        return Expansion(root, tuple(self.tree.used), tuple(self.findings))

    def look_over(self, root: Element) -> None:
        """Say what looks like xacro and is none, and so stays in the document as it is."""
        self.at(root)
        for name, value in root.attributes.items():
            if name.startswith("xmlns:") and name != "xmlns:xacro" and value.rstrip("/").endswith("/xacro"):
                what = f"only the prefix `xacro:` is expanded; elements with `{name[6:]}:` stay as they are"
                self.say("xacro-prefix", "warning", what)
        for child in root.elements():
            if child.tag in TAGS:
                self.at(child)
                self.say("xacro-prefix", "warning", f"<{child.tag}> is not expanded; write <xacro:{child.tag}>")

    def element(self, source: Element, scope: Scope) -> Element:
        """A copy of one element, its attributes evaluated, without its content."""
        attributes: dict[str, str] = {}
        size = 500
        for name, value in source.attributes.items():
            if name[:6] != "xacro:" and name != "xmlns:xacro":
                attributes[name] = self.texts.string(value, scope) if "$" in value else value
                size += 100 + len(attributes[name]) if "$" in value else 60
        self.budget.step(3)
        self.budget.hold(size)
        return Element(source.tag, attributes, source.file, source.line, [], source.called_from or self.called_from)

    def content(self, source: Element, out: Nodes, scope: Scope, owner: Element) -> None:
        """Expand the content of `source` into `out`; `owner` is what <xacro:attribute> and name spaces go to."""
        self.depth += 1
        if self.depth > MAX_DEPTH + MAX_TRAIL:
            raise Fault("xacro-recursion", f"elements nested deeper than {MAX_DEPTH + MAX_TRAIL}")
        for node in source.children:
            if isinstance(node, Text):
                if "$" in node.value:
                    self.file, self.line, self.offset = source.file, node.line - node.value.count("\n"), 0
                    node = Text(self.texts.string(node.value, scope), node.line)
                    self.budget.hold(100 + len(node.value))
                out.append(node)
            elif isinstance(node, Comment):
                out.append(node)
            else:
                self.at(node)
                if node.tag == "xacro:element":
                    node = self.named(node, scope)
                if node.tag[:6] == "xacro:":
                    handler = _HANDLERS.get(node.tag)
                    if handler:
                        handler(self, node, out, scope, owner)
                    else:
                        self.call(node.tag[6:], node, out, scope, owner)
                else:
                    made = self.element(node, scope)
                    out.append(made)
                    if node.children:
                        self.content(node, made.children, scope, made)
        self.depth -= 1

    def named(self, node: Element, scope: Scope) -> Element:
        """The element that <xacro:element> stands for."""
        tag = self.name(node, "xacro:name", scope)
        attributes = {n: v for n, v in node.attributes.items() if n != "xacro:name"}
        return Element(tag, attributes, node.file, node.line, node.children, node.called_from)

    def name(self, node: Element, attribute: str, scope: Scope) -> str:
        """An attribute that holds the name of what is to be made."""
        if attribute not in node.attributes:
            raise Fault("xacro-attribute", f"<{node.tag}> needs the attribute `{attribute}`")
        name = self.texts.string(node.attributes[attribute], scope)
        if len(name) > 200 or not _XML_NAME.fullmatch(name):
            raise Fault("xacro-attribute", f"<{node.tag}>: `{short(name)}` is not a name")
        return name

    def adopt(self, owner: Element, attributes: Mapping[str, str]) -> None:
        """Give an element the name spaces that an include or macro in it declares."""
        for name, value in attributes.items():
            if name.startswith("xmlns:") and owner.attributes.setdefault(name, value) != value:
                self.say("xacro-namespace", "warning", f"the prefix `{name[6:]}` already has another name space")

    def choose(self, node: Element, out: Nodes, scope: Scope, _owner: Element) -> None:
        """<xacro:if> and <xacro:unless>."""
        if self.condition(node, self.wanted(node, "value"), scope) == (node.tag == "xacro:if"):
            holder = Element(node.tag, {}, node.file, node.line)
            self.content(node, out, scope, holder)
            self.lost(node, holder)

    def lost(self, node: Element, holder: Element) -> None:
        """Say that an <xacro:attribute> has nothing to go to: what holds it is gone, as in xacro."""
        for name in holder.attributes:
            if not name.startswith("xmlns:"):
                self.at(node)
                self.say("xacro-attribute", "warning", f"<xacro:attribute> directly in <{node.tag}> is lost: `{name}`")

    def argument_default(self, node: Element, _out: Nodes, scope: Scope, _owner: Element) -> None:
        """<xacro:arg>."""
        name = self.wanted(node, "name", "default")
        if name not in self.arguments:
            if "default" not in node.attributes:
                what = f"the argument `{short(name)}` has no default; give it a value: {short(name)}:=VALUE"
                raise Fault("xacro-undefined-arg", what)
            self.arguments[name] = self.texts.string(node.attributes["default"], scope)

    def attribute(self, node: Element, _out: Nodes, scope: Scope, owner: Element) -> None:
        self.wanted(node, "name", "value")
        owner.attributes[self.name(node, "name", scope)] = self.texts.string(self.wanted(node, "value", "name"), scope)

    def property(self, node: Element, _out: Nodes, scope: Scope, _owner: Element) -> None:
        define(self, node, scope)

    def macro(self, node: Element, _out: Nodes, scope: Scope, _owner: Element) -> None:
        declare(node, self.wanted(node, "name", "params"), scope)

    def insert_block(self, node: Element, out: Nodes, scope: Scope, owner: Element) -> None:
        name = self.wanted(node, "name")
        block = scope.block(f"**{name}") or scope.block(f"*{name}")
        if block is None:
            raise Fault("xacro-undefined-block", f"no block `{short(name)}`{suggest(name, scope.block_names())}")
        whole = scope.block(f"**{name}") is None  # the element itself, not its content
        holder = Element(node.tag, {}, block.file, block.line, [block])
        self.enter("inserted at", block.file, block.line)
        self.content(holder if whole else block, out, scope, owner if whole else holder)
        self.leave()

    def include(self, node: Element, out: Nodes, scope: Scope, owner: Element) -> None:
        paths = self.included(node, scope)
        space = self.texts.string(node.attributes.get("ns", ""), scope)
        if space:
            inner = Scope(self, scope, None, named=True)
            scope.values[space] = scope.macros[space] = inner
            scope = inner
        for path in paths:
            self.enter("included from", path, 1)
            root = self.parse(path)
            self.at(root)
            self.documents.append(path)
            holder = self.element(root, scope)
            self.content(root, out, scope, holder)
            self.documents.pop()
            self.leave()
            self.adopt(owner, holder.attributes)

    def included(self, node: Element, scope: Scope) -> list[str]:
        """The files that an <xacro:include> means."""
        name = self.texts.string(self.wanted(node, "filename", "ns", "optional"), scope)
        base = self.documents[-1]
        if any(c in name for c in "*?["):
            paths = self.tree.matching(name, base)
            if not paths:
                self.say("xacro-include", "warning", f"no file of the bundle matches `{short(name)}`")
            return paths
        optional = self.condition(node, node.attributes.get("optional") or "false", scope)
        if optional and self.tree.resolve(name, base) not in self.tree.files:
            return []
        return [self.tree.existing(name, base)]

    def call_by_name(self, node: Element, out: Nodes, scope: Scope, owner: Element) -> None:
        """<xacro:call>."""
        if not node.attributes.get("macro"):
            raise Fault("xacro-attribute", "<xacro:call> needs the attribute `macro`")
        name = self.texts.string(node.attributes["macro"], scope)
        attributes = {n: v for n, v in node.attributes.items() if n != "macro"}
        self.call(name, Element(node.tag, attributes, node.file, node.line, node.children), out, scope, owner)

    def call(self, name: str, node: Element, out: Nodes, scope: Scope, owner: Element) -> None:
        """Expand a macro call: parameters and blocks in the caller's scope, the body in one of its own."""
        macro, home = find(name, scope, TAGS)
        inner = Scope(self, home, home)
        self.budget.step(15)
        for given, text in node.attributes.items():
            if given not in macro.parameters:
                hint = suggest(given, macro.parameters)
                raise Fault("xacro-parameters", f"the macro `{name}` has no parameter `{given}`{hint}")
            inner.values[given] = literal(self.texts.evaluate(text, scope))
        blocks = Element(node.tag, {}, node.file, node.line)
        self.content(node, blocks.children, scope, blocks)
        self.at(node)
        bind(macro, inner, scope, blocks.elements(), self.texts)
        body, caller = macro.body, self.called_from
        self.enter("called from", body.file, body.line)
        self.called_from = ((node.file, node.line), *caller)
        spaces = {n: v for n, v in body.attributes.items() if n[:6] == "xmlns:" and n != "xmlns:xacro"}
        holder = Element(body.tag, spaces, body.file, body.line)
        self.content(body, out, inner, holder)
        self.called_from = caller
        self.lost(body, holder)
        self.leave()
        self.adopt(owner, holder.attributes)


def _is_xacro(root: Element) -> bool:
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag.startswith("xacro:") or "xmlns:xacro" in element.attributes:
            return True
        stack.extend(element.elements())
    return False


_HANDLERS: dict[str, Callable[[_Expander, Element, Nodes, Scope, Element], None]] = {
    "xacro:property": _Expander.property, "xacro:arg": _Expander.argument_default, "xacro:macro": _Expander.macro,
    "xacro:call": _Expander.call_by_name, "xacro:insert_block": _Expander.insert_block,
    "xacro:include": _Expander.include, "xacro:if": _Expander.choose, "xacro:unless": _Expander.choose,
    "xacro:attribute": _Expander.attribute,
}
