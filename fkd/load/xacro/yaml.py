"""The part of YAML that robot packages use for `load_yaml`: one document of mappings, sequences and scalars.

Block and flow style, quoted and block scalars, comments, anchors, merge keys, and the unit tags of xacro. Plain
scalars mean what YAML 1.1 says as PyYAML reads it, quirks and all: `010` is 8, `1e-3` is a text, `yes` is true, and
of equal keys the last one counts. Anything else is refused with its line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from fkd.load.xacro.budget import MAX_NESTING, Budget, Fault
from fkd.load.xacro.values import Value, YamlDict, keep, short
from fkd.load.xacro.yaml_cursor import Cursor
from fkd.load.xacro.yaml_scalars import fold, resolve, tagged

MAX_YAML = 1 << 18  # bytes; the largest seen in a robot package is 6 kB
UNITS = {
    "!radians": 1.0, "!degrees": math.pi / 180.0, "!meters": 1.0, "!millimeters": 0.001, "!foot": 0.3048,
    "!inches": 0.0254,
}
_PROPERTY = re.compile(r"&[0-9A-Za-z_-]+(?=\s|$)|!!?[0-9A-Za-z_-]+(?=\s|$)")
_ALIAS = re.compile(r"\*([0-9A-Za-z_-]+)")
_FLOW_END = re.compile(r"[,\[\]{}?]|:(?=[\s,\[\]{}]|$)|(?<=\s)#")
_INDICATORS = frozenset(",[]{}#&*!|>@`%\"'")


def parse_yaml(data: bytes, file: str, budget: Budget, number: Callable[[str], float]) -> Value:
    """Read one YAML document.

    number: gives the value of the expression behind a unit tag (`!degrees 180/2`).
    Raises Fault (`xacro-yaml`) with file and line. Source: YAML 1.1, chapters 5 to 9.
    """
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeError as e:
        raise Fault("xacro-yaml", f"the file is not UTF-8: {e}", file, 1) from None
    if len(data) > MAX_YAML:
        raise Fault("xacro-yaml", f"a YAML file of more than {MAX_YAML} bytes", file, 1)
    budget.step(len(text) >> 2)
    return _Reader(text, file, budget, number).document()


class _Reader(Cursor):
    """Reads nodes; `number` gives the value behind a unit tag."""

    def __init__(self, text: str, file: str, budget: Budget, number: Callable[[str], float]) -> None:
        super().__init__(text, file, budget)
        self.number = number
        self.depth = 0
        self.anchors: dict[str, Value] = {}

    def document(self) -> Value:
        self.skip()
        if self.peek() == "%":
            self.refuse("directives are not supported")
        if self.text.startswith("---", self.at) and self.marker():
            self.at += 3
            if not self.inline():
                return self.last(self.node(-1))
            self.skip()
        return self.last(None if self.marker() else self.block(-1))

    def last(self, value: Value) -> Value:
        """The value of the document, once nothing is left behind it."""
        self.skip()
        if self.text.startswith("...", self.at) and self.marker():
            self.at += 3
            self.skip()
        if self.peek():
            self.refuse("more than one document, or text that belongs to none")
        return value

    def block(self, parent: int) -> Value:
        """A node that may take lines of its own, indented deeper than `parent`."""
        self.budget.step()
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.refuse(f"nested deeper than {MAX_NESTING}")
        if self.dash():
            value = self.sequence(self.column())
        elif self.peek() == "?" and self.gap():
            self.refuse("keys that are not scalars are not supported")
        elif self.key_ahead() >= 0:
            value = self.mapping(self.column())
        else:
            value = self.node(parent)
        self.depth -= 1
        return value

    def sequence(self, column: int) -> Value:
        items: list[Value] = []
        while not self.marker() and self.column() == column and self.dash():
            self.at += 1
            items.append(self.after(column, same_line_block=True))
            self.skip()
        if not self.marker() and self.column() > column:
            self.refuse("the indentation does not fit")
        return keep(items, self.budget)

    def mapping(self, column: int) -> Value:
        entries = YamlDict()
        merged = YamlDict()
        while True:
            colon = self.key_ahead()
            if colon < 0:
                self.refuse("`key: value` is expected")
            if self.peek() in ('"', "'"):
                key: Value = self.quoted()
            else:
                key = self.key(self.text[self.at : colon].strip(" "))
            self.at = colon + 1
            value = self.after(column)
            if key == "<<":
                self.merge(merged, value)
            else:
                entries[key] = value
            self.skip()
            if self.marker() or self.column() < column:
                return keep(YamlDict({**merged, **entries}), self.budget)
            if self.column() > column or self.dash():
                self.refuse("the indentation does not fit")

    def key(self, text: str) -> Value:
        if not text or "\t" in text:
            self.refuse("a key is expected before the colon")
        return text if text == "<<" else resolve(text, self.refuse)

    def merge(self, into: YamlDict, value: Value) -> None:
        for mapping in reversed(value if isinstance(value, list) else [value]):  # the earlier one counts
            if not isinstance(mapping, YamlDict):
                self.refuse("`<<` takes a mapping or a list of mappings")
            self.budget.step(len(mapping))
            into.update(mapping)

    def after(self, column: int, same_line_block: bool = False) -> Value:
        """What follows a key's colon or an entry's dash at `column`: on the same line, deeper below, or nothing."""
        if not self.inline():
            return self.block(column) if same_line_block else self.node(column)
        self.skip()
        if self.marker():
            return None
        if self.column() > column:
            return self.block(column)
        return self.block(column - 1) if self.column() == column and self.dash() and not same_line_block else None

    def key_ahead(self) -> int:
        """Where the colon is that makes what starts here a key; -1 if it is none."""
        start, first = self.at, self.peek()
        end = self.text.find("\n", start)
        end = len(self.text) if end < 0 else end
        colon = start
        if first in ("'", '"'):
            self.quoted()
            colon, self.at = self.at, start
            while self.text[colon : colon + 1] == " ":
                colon += 1
            found = colon < end and self.text[colon] == ":" and self.gap(colon + 1 - start)
            return colon if found else -1
        if first in _INDICATORS:
            return -1
        comment = self.text.find(" #", start, end)
        end = end if comment < 0 else comment
        while (colon := self.text.find(":", colon, end)) >= 0:
            if self.gap(colon + 1 - start):
                return colon
            colon += 1
        return -1

    def node(self, parent: int) -> Value:
        """A node that starts on this line: a scalar, flow style, or an alias; or its properties, then a block."""
        self.budget.step()
        tag = anchor = ""
        while found := _PROPERTY.match(self.text, self.at):
            if found[0][0] == "&":
                anchor = found[0][1:]
            else:
                tag = found[0]
            self.at = found.end()
            if self.inline():
                self.skip()
                below = not self.marker() and (self.column() > parent or (self.column() == parent and self.dash()))
                value = self.block(parent if self.column() > parent else parent - 1) if below else None
                if tag:
                    self.refuse(f"the tag {tag} is not supported here")
                break
        else:
            value = self.scalar(parent, tag)
        if anchor:
            self.anchors[anchor] = value
        return value

    def scalar(self, parent: int, tag: str) -> Value:
        first = self.peek()
        if first == "*":
            value = self.alias(tag)
        elif first in ("[", "{"):
            if tag:
                self.refuse(f"the tag {tag} is not supported here")
            value = self.flow()
        elif first in ("'", '"'):
            value = self.unit(tag, self.quoted()) if tag else self.quoted()
        elif first in ("|", ">"):
            return self.unit(tag, self.literal(parent)) if tag else self.literal(parent)
        elif first in _INDICATORS or (first in ("-", "?") and self.gap()):
            self.refuse(f"`{first}` cannot start a value here")
        else:
            text = self.plain(parent)
            value = self.unit(tag, text) if tag else resolve(text, self.refuse)
        if not self.inline():
            self.refuse(f"`{short(self.text[self.at : self.at + 40], 20)}` is not expected here")
        return value

    def unit(self, tag: str, text: str) -> Value:
        if tag in UNITS:
            try:
                return self.number(text) * UNITS[tag]
            except Fault as fault:  # which knows neither this file nor this line
                self.refuse(f"{tag} {short(text)}: {fault.message}")
        return tagged(tag, text, self.refuse)

    def alias(self, tag: str) -> Value:
        found = _ALIAS.match(self.text, self.at)
        if not found or tag or found[1] not in self.anchors:
            self.refuse(f"the alias `{found[0] if found else '*'}` has no anchor before it")
        self.at = found.end()
        return self.anchors[found[1]]

    def flow(self) -> Value:
        """`[...]` or `{...}`, over as many lines as it takes."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.refuse(f"nested deeper than {MAX_NESTING}")
        opening, closing = self.peek(), {"[": "]", "{": "}"}[self.peek()]
        items: list[Value] = []
        entries, merged = YamlDict(), YamlDict()
        self.at += 1
        while True:
            self.skip()
            if self.peek() == closing:
                break
            key = self.flow_node()
            self.skip()
            if opening == "{":
                value = None
                if self.peek() == ":":
                    self.at += 1
                    self.skip()
                    value = None if self.peek() in (",", "}") else self.flow_node()
                    self.skip()
                if isinstance(key, (list, dict)):
                    self.refuse("keys that are not scalars are not supported")
                if key == "<<":
                    self.merge(merged, value)
                else:
                    entries[key] = value
            else:
                items.append(key)
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != closing:
                self.refuse(f"`,` or `{closing}` is expected")
        self.at += 1
        self.depth -= 1
        return keep(items if opening == "[" else YamlDict({**merged, **entries}), self.budget)

    def flow_node(self) -> Value:
        self.budget.step()
        tag = anchor = ""
        while found := _PROPERTY.match(self.text, self.at):
            tag, anchor = (tag, found[0][1:]) if found[0][0] == "&" else (found[0], anchor)
            self.at = found.end()
            self.skip()
        first = self.peek()
        if first == "*":
            value = self.alias(tag)
        elif first in ("[", "{") and not tag:
            value = self.flow()
        elif first in ("'", '"'):
            value = self.unit(tag, self.quoted()) if tag else self.quoted()
        elif first == "" or first in _INDICATORS or first == ":" or (first in "-?" and self.gap()):
            self.refuse(f"`{first}` cannot start a value here" if first else "the bracket is not closed")
        else:
            end = _FLOW_END.search(self.text, self.at)
            raw = self.text[self.at : end.start() if end else len(self.text)].rstrip(" \n")
            text = fold([line.strip(" ") for line in raw.split("\n")])
            self.at += len(raw)
            if "\t" in text:
                self.refuse("a tab outside quotes; YAML wants blanks")
            value = self.unit(tag, text) if tag else self.flow_scalar(text)
        if anchor:
            self.anchors[anchor] = value
        return value

    def flow_scalar(self, text: str) -> Value:
        return text if text == "<<" else resolve(text, self.refuse)
