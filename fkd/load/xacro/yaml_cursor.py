"""A cursor over the text of a YAML document: blanks and comments, and the scalars that span lines."""

from __future__ import annotations

import re
from typing import NoReturn

from fkd.load.xacro.budget import Budget, Fault
from fkd.load.xacro.yaml_scalars import escape, fold

_BLANK_LINES = re.compile(r"(?: *+\n)++")
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_HEADER = re.compile(r"([|>])(?:([1-9])([+-]?)|([+-]?))[ \t]*(?:(?<=[ \t])#[^\n]*)?(?:\n|$)")


class Cursor:
    """The position `at` in `text`. A node's indentation is the column of its first character."""

    def __init__(self, text: str, file: str, budget: Budget) -> None:
        self.text, self.file, self.budget = text, file, budget
        self.at = 0
        if found := _UNPRINTABLE.search(text):
            self.at = found.start()
            self.refuse("a control character, or a line break that is none in other files")

    def refuse(self, message: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        raise Fault("xacro-yaml", message, self.file, line)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def column(self) -> int:
        return self.at - (self.text.rfind("\n", 0, self.at) + 1)

    def gap(self, offset: int = 1) -> bool:
        """Whether the character at `offset` is white space or the end."""
        return self.text[self.at + offset : self.at + offset + 1] in ("", " ", "\t", "\n")

    def dash(self) -> bool:
        return self.peek() == "-" and self.gap()

    def marker(self) -> bool:
        """Whether the document ends here."""
        here = self.text[self.at : self.at + 3]
        return here == "" or (here in ("---", "...") and self.gap(3) and self.column() == 0)

    def inline(self) -> bool:
        """Skip blanks and a comment on this line; whether the line ends here."""
        start = self.at
        while self.peek() == " ":
            self.at += 1
        if self.peek() == "\t":
            self.refuse("a tab outside quotes; YAML wants blanks")
        if self.peek() == "#" and (self.at > start or self.column() == 0):
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        return self.peek() in ("", "\n")

    def skip(self) -> None:
        """Skip to the next character that is neither blank nor comment, on whatever line."""
        while self.inline() and self.peek():
            self.budget.step()
            found = _BLANK_LINES.match(self.text, self.at)
            self.at = found.end() if found else self.at + 1

    def quoted(self) -> str:
        quote, start = self.peek(), self.at
        end = start + 1
        while True:
            self.budget.step()
            end = self.text.find(quote, end)
            if end < 0:
                self.refuse("a quote is not closed")
            if quote == "'" and self.text[end + 1 : end + 2] == "'":
                end += 2
                continue
            if quote == '"':
                slash = end
                while self.text[slash - 1] == "\\":
                    slash -= 1
                if (end - slash) % 2:
                    end += 1
                    continue
            break
        inside = self.text[start + 1 : end]
        self.at = end + 1
        if quote == "'":
            return fold(inside.split("\n"), quoted=True).replace("''", "'")
        return escape(inside, self.refuse)

    def plain(self, parent: int) -> str:
        """A plain scalar, with its continuation lines, which are indented deeper than `parent`."""
        lines: list[str] = []
        while True:
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            comment = self.text.find(" #", self.at, end)
            line = self.text[self.at : end if comment < 0 else comment].rstrip(" ")
            if ": " in line or line.endswith(":"):
                self.refuse("a mapping cannot start here; quote the text")
            if "\t" in line:
                self.refuse("a tab outside quotes; YAML wants blanks")
            lines.append(line)
            self.at += len(line)
            stop = self.at
            if comment >= 0 or not self.inline():
                break
            self.skip()
            if self.marker() or self.column() <= parent or self.peek() == "#" or "#" in self.text[stop : self.at]:
                self.at = stop
                break
            lines.extend([""] * (self.text.count("\n", stop, self.at) - 1))
        return fold(lines)

    def literal(self, parent: int) -> str:
        """A block scalar: `|` keeps its lines, `>` folds them."""
        header = _HEADER.match(self.text, self.at)
        if not header:
            self.refuse("the header of a block scalar is not understood")
        style, chomp = header[1], header[3] or header[4] or ""
        self.at = header.end()
        indent = max(parent, 0) + int(header[2]) if header[2] else -1
        lines: list[str] = []
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            if self.marker() and self.column() == 0:
                break
            spaces = len(line) - len(line.lstrip(" "))
            if spaces < len(line):
                if indent < 0:
                    indent = spaces
                if spaces < indent or spaces <= max(parent, 0):
                    break
            lines.append(line[indent:] if indent >= 0 else "")
            self.at = min(end + 1, len(self.text))
        kept = len(lines)
        while kept and not lines[kept - 1]:
            kept -= 1
        if style == ">" and any(line[:1] in (" ", "\t") for line in lines[:kept]):
            self.refuse("a folded block with indented lines is not supported")
        lead = next((i for i, line in enumerate(lines) if line), 0)
        body = "\n".join(lines[:kept]) if style == "|" else "\n" * lead + fold(lines[lead:kept])
        ended = "" if len(lines) == kept and self.text[-1] != "\n" and self.at == len(self.text) else "\n"
        tail = {"": ended if kept else "", "-": "", "+": "\n" * (len(lines) - kept) + (ended if kept else "")}
        return body + tail[chomp]
