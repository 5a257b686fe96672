"""An element tree -> well-formed XML text."""

from __future__ import annotations

import re

from fkd.load.xml import Comment, Element, Text

_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_VALUE = {**_TEXT, '"': "&quot;", "\t": "&#9;", "\n": "&#10;"}  # a parser would make blanks of the last two


def _escape(value: str, table: dict[str, str]) -> str:
    return re.sub("[&<>\"\r\n\t]", lambda found: table.get(found[0], found[0]), value)


def to_text(root: Element) -> str:
    """Write a tree as an XML document, two blanks a level; where an element holds text, its content stays as it is.

    Reading the result gives the same elements, attributes, text and order.
    Source: XML 1.0, sections 2.4 (character data) and 3.3.3 (attribute values).
    """
    parts = ['<?xml version="1.0" encoding="utf-8"?>\n']
    # The trees of deep descriptions are deeper than Python's own recursion should go: a stack of what is to be written.
    stack: list[tuple[Element | Text | Comment | str, int]] = [(root, 0)]
    while stack:
        node, level = stack.pop()
        indent = "  " * level if level >= 0 else ""  # level -1: inside text, where blanks count
        end = "\n" if level >= 0 else ""
        if isinstance(node, str):
            parts.append(f"{indent}{node}{end}")
        elif isinstance(node, Text):
            parts.append(_escape(node.value, _TEXT))
        elif isinstance(node, Comment):
            parts.append(f"{indent}<!--{node.value}-->{end}")
        else:
            head = f"{indent}<{node.tag}" + "".join(f' {n}="{_escape(v, _VALUE)}"' for n, v in node.attributes.items())
            mixed = any(isinstance(c, Text) and c.value.strip() for c in node.children)
            children = node.children if mixed or level < 0 else [c for c in node.children if not isinstance(c, Text)]
            if not children:
                parts.append(f"{head}/>{end}")
                continue
            inside = -1 if mixed or level < 0 else level + 1
            parts.append(f"{head}>" + (end if inside >= 0 else ""))
            if inside < 0:
                stack.append((f"</{node.tag}>{end}", -1))
            else:
                stack.append((f"</{node.tag}>", level))
            stack.extend((child, inside) for child in reversed(children))
    return "".join(parts)
