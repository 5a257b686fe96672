"""Bytes -> a plain element tree that remembers file and line. Knows nothing of URDF or xacro.

Expat without name-space processing: real files use undeclared prefixes, which strict parsers refuse. Document
type declarations and entities are refused, because no robot description needs them and nested entities make
megabytes out of a hundred bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from fkd.errors import BundleRefused

# Limits, each some ten times what the largest public description uses.
MAX_ELEMENTS = 500_000
MAX_DEPTH = 200
MAX_ATTRIBUTES = 200
MAX_VALUE = 1 << 20  # characters in one attribute, bytes of UTF-8 in one run of text

# A common misspelling that other readers take; expat would take it for an encoding of 8 bits a character.
UTF8 = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml\s[^>]*\bencoding\s*=\s*["']utf_?8["']""", re.IGNORECASE)


@dataclass(slots=True)
class Text:
    """A run of character data, whole; `line` is where it ends."""

    value: str
    line: int


@dataclass(slots=True)
class Comment:
    """A comment; kept because an expander hands it through untouched."""

    value: str
    line: int


@dataclass(slots=True)
class Element:
    """One element: its tag as written (prefix and all), attributes in document order, and its children."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element | Text | Comment] = field(default_factory=list)
    called_from: tuple[tuple[str, int], ...] = ()  # the macro calls that made it (file, line), innermost first

    def elements(self) -> list[Element]:
        """The child elements, in document order."""
        return [c for c in self.children if isinstance(c, Element)]


def parse_xml(data: bytes, file: str) -> Element:
    """Read one XML document.

    data: the file's bytes, in any encoding that XML can declare -> the root element.
    Raises BundleRefused (`xml-malformed`, `xml-doctype`, `xml-too-big`) with file and line.
    Source: XML 1.0, sections 2.8 (document type) and 4.3.3 (encodings).
    """
    parser = expat.ParserCreate("UTF-8" if UTF8.match(data) else None)
    parser.ordered_attributes = True
    parser.buffer_text, parser.buffer_size = True, MAX_VALUE  # a run comes in one piece, unless it is longer
    root: list[Element] = []
    stack: list[Element] = []
    count = 0

    def refuse(reason: str, message: str) -> BundleRefused:
        line = parser.CurrentLineNumber
        return BundleRefused(f"{file}:{line}: {message}", reason=reason, file=file, line=line)

    def start(tag: str, attributes: list[str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS:
            raise refuse("xml-too-big", f"more than {MAX_ELEMENTS} elements")
        if len(stack) >= MAX_DEPTH:
            raise refuse("xml-too-big", f"elements nested deeper than {MAX_DEPTH}")
        if len(attributes) > 2 * MAX_ATTRIBUTES:
            raise refuse("xml-too-big", f"more than {MAX_ATTRIBUTES} attributes on <{tag}>")
        if any(len(v) > MAX_VALUE for v in attributes):
            raise refuse("xml-too-big", f"an attribute of <{tag}> is longer than {MAX_VALUE} characters")
        pairs = dict(zip(attributes[::2], attributes[1::2], strict=True))
        element = Element(tag, pairs, file, parser.CurrentLineNumber)
        if stack:
            stack[-1].children.append(element)
        else:
            root.append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def text(value: str) -> None:
        children = stack[-1].children
        if len(value) > MAX_VALUE or (children and isinstance(children[-1], Text)):
            raise refuse("xml-too-big", f"a text is longer than {MAX_VALUE} bytes")
        children.append(Text(value, parser.CurrentLineNumber))

    def comment(value: str) -> None:
        if stack:
            stack[-1].children.append(Comment(value, parser.CurrentLineNumber))

    def doctype(*_: object) -> None:
        raise refuse("xml-doctype", "a document type declaration (<!DOCTYPE ...>) is not allowed; remove it")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.CommentHandler = comment
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as e:
        what = expat.ErrorString(e.code) or "malformed"
        raise BundleRefused(
            f"{file}:{e.lineno}: not well-formed XML: {what} at column {e.offset + 1}",
            reason="xml-malformed", file=file, line=e.lineno,
        ) from None
    except (LookupError, UnicodeError, ValueError) as e:  # an encoding that Python does not know, or cannot map
        line = parser.CurrentLineNumber
        raise BundleRefused(
            f"{file}:{line}: the declared encoding cannot be read: {e}", reason="xml-malformed", file=file, line=line
        ) from None
    return root[0]
