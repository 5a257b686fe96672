"""The text of a Denavit-Hartenberg table (CSV, TOML or JSON) -> Table. What a table must say, it is made to say.

Columns: joint, type (default revolute), a, alpha, d, theta, and optionally lower and upper. Convention and units stand
in the file (`convention`, `length_unit`, `angle_unit`) or are given by the caller; they are never guessed. `base` and
`tool` are poses; `mimic` says which joints follow others: {follower: {joint, multiplier, offset}}. In CSV all these are
comment lines: `# convention: standard`, `# base: {"xyz": [0, 0, 400], "rpy": [0, 0, 90]}`.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fkd.errors import BundleRefused, InvalidParams, cut, did_you_mean
from fkd.kernel.pose import frame, rotation_of, translation_of
from fkd.load.dhtable import Row, Table
from fkd.load.settings import PER_METRE
from fkd.load.urdf import NUMBER
from fkd.model import IDENTITY, Frame, Limits, Mimic
from fkd.poses import read_matrix, read_parts

CONVENTIONS = ("standard", "modified")
ANGLES = {"rad": 1.0, "deg": math.pi / 180.0}
TYPES = ("revolute", "continuous", "prismatic", "fixed")
COLUMNS = ("joint", "type", "a", "alpha", "d", "theta", "lower", "upper")
ALIASES = {"theta_offset": "theta"}  # what some tables call the constant part of a joint's angle
WORDS = ("convention", "length_unit", "angle_unit", "name")
VALUES = ("base", "tool", "mimic")
# The last three are what the method `dh` says beside the table; they change nothing.
HEAD = (*WORDS, *VALUES, "rows", "residual", "cases", "warnings")
RULE = ("joint", "multiplier", "offset")
MAX_DOUBLE = sys.float_info.max
MAX_ROWS = 1000
MAX_SIZE = 256 << 10  # bytes: a thousand rows of a hundred letters take 100 KiB


@dataclass(frozen=True)
class Stated:
    """What a table means: None where it is still to be said."""

    convention: str | None = None
    length_unit: str | None = None
    angle_unit: str | None = None


def is_table(path: str) -> bool:
    """Whether a model of this name is read as a table."""
    return path.casefold().endswith((".csv", ".toml", ".json"))


def read_table(data: bytes, file: str, given: Stated | None = None) -> Table:
    """Read a table. `given` says what the file leaves out; where both speak, they must agree.

    Raises BundleRefused (`dh-...`) with file and line.
    """
    return _Reader(file, given or Stated()).table(data)


def finite(value: Any) -> bool:
    """Whether a value is a number that a double can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX_DOUBLE


class _Reader:
    def __init__(self, file: str, given: Stated) -> None:
        self.file = file
        self.given = given

    def refuse(self, reason: str, message: str, line: int = 0) -> BundleRefused:
        place = f"{self.file}:{line}" if line else self.file
        return BundleRefused(f"{place}: {message}", reason=f"dh-{reason}", file=self.file, line=line or None)

    def table(self, data: bytes) -> Table:
        if len(data) > MAX_SIZE:
            raise self.refuse("too-long", f"{len(data)} bytes; at most {MAX_SIZE} are taken")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise self.refuse("encoding", "not UTF-8") from None
        kind = self.file.casefold().rpartition(".")[2]
        head, rows = {"csv": self.csv, "toml": self.toml, "json": self.json}[kind](text)
        for key in head:
            if key not in HEAD:
                raise self.refuse("key", f"there is no `{key}` in a DH table{did_you_mean(key, HEAD)}")
        convention = self.stated(head, "convention", CONVENTIONS, self.given.convention)
        length = PER_METRE[self.stated(head, "length_unit", tuple(PER_METRE), self.given.length_unit)]
        angle = ANGLES[self.stated(head, "angle_unit", tuple(ANGLES), self.given.angle_unit)]
        if not rows:
            raise self.refuse("empty", "the table has no rows")
        if len(rows) > MAX_ROWS:
            raise self.refuse("too-long", f"more than {MAX_ROWS} rows")
        read = tuple(self.row(row, line, length, angle) for line, row in rows)
        names: dict[str, int] = {}
        for row in read:
            if row.joint in names:
                raise self.refuse("joint-twice", f"joint `{row.joint}` stands twice (first in line {names[row.joint]})", row.line)
            names[row.joint] = row.line
        read = self.followers(head.get("mimic", {}), read, length, angle)
        base, tool = (self.pose(head.get(key), key, length, angle) for key in ("base", "tool"))
        name = head.get("name", self.file.rpartition("/")[2].rpartition(".")[0])
        if not isinstance(name, str) or not name:
            raise self.refuse("name", "`name` must be a string")
        return Table(name, self.file, convention, read, base, tool)

    def stated(self, head: Mapping[str, Any], key: str, known: Sequence[str], given: str | None) -> str:
        """A word that must be said, in the file or by the caller."""
        said = head.get(key)
        option = "--" + key.replace("_", "-")
        if said is None and given is None:
            raise self.refuse(key.replace("_", "-"), f"the table does not say its {key}; write it in the file ({self.how(key, known[0])}), or turn it into a URDF by `fkctl from-dh` with {option} {'|'.join(known)}")
        for word in (said, given):
            if word is not None and word not in known:
                raise self.refuse(key.replace("_", "-"), f"{key} `{word}` is not one of {', '.join(known)}{did_you_mean(str(word), known)}")
        if said is not None and given is not None and said != given:
            raise self.refuse(key.replace("_", "-"), f"the table says {key} `{said}`, but {option} says `{given}`")
        return str(said if said is not None else given)

    def how(self, key: str, word: str) -> str:
        """How a file of this kind says a word about itself."""
        csv_line, member = f"a line `# {key}: {word}`", f"`{key} = \"{word}\"`"
        return csv_line if self.file.casefold().endswith(".csv") else member.replace(" =", ":") if self.file.endswith("json") else member

    def csv(self, text: str) -> tuple[dict[str, Any], list[tuple[int, dict[str, Any]]]]:
        """Comment lines `# key: value` say convention and units; then a header, then rows."""
        head: dict[str, Any] = {}
        lines: list[tuple[int, str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("#"):
                name, sign, value = line.lstrip(" \t#").partition(":")
                key = name.strip()
                if sign and key in (*WORDS, *VALUES):
                    if key in head:
                        raise self.refuse("key", f"`{key}` is given twice", number)
                    head[key] = value.strip() if key in WORDS else self.value(key, value, number)
            elif line.strip():
                lines.append((number, line))
        if not lines:
            return head, []
        columns = [ALIASES.get(c, c) for c in self.cells(*lines[0])]
        self.columns(columns, lines[0][0])
        rows = []
        for number, line in lines[1:]:
            cells = self.cells(number, line)
            if len(cells) != len(columns):
                raise self.refuse("cells", f"{len(cells)} cells under {len(columns)} columns; a decimal comma?", number)
            rows.append((number, {c: v for c, v in zip(columns, cells, strict=True) if v != ""}))
        return head, rows

    def value(self, key: str, text: str, number: int) -> Any:
        """What a comment line says of base, tool or mimic."""
        try:
            return json.loads(text)
        except (RecursionError, ValueError):
            raise self.refuse("syntax", f"`{key}` in a comment line is JSON: [16 numbers], or {{\"xyz\": ..}} and so on", number) from None

    def cells(self, number: int, line: str) -> list[str]:
        try:
            return [c.strip() for c in next(csv.reader([line], strict=True))]
        except csv.Error as e:
            raise self.refuse("syntax", f"not a CSV row: {e}", number) from None

    def columns(self, columns: Sequence[str], line: int) -> None:
        for column in columns:
            if column not in COLUMNS:
                raise self.refuse("column", f"there is no column `{column}`{did_you_mean(column, COLUMNS)}", line)
            if columns.count(column) > 1:
                raise self.refuse("column", f"the column `{column}` stands twice", line)

    def toml(self, text: str) -> tuple[dict[str, Any], list[tuple[int, dict[str, Any]]]]:
        try:
            return self.tree(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as e:
            raise self.refuse("syntax", f"not valid TOML: {e}") from None

    def json(self, text: str) -> tuple[dict[str, Any], list[tuple[int, dict[str, Any]]]]:
        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name, value in pairs:
                if name in found:
                    raise self.refuse("key", f"`{cut(name)}` is given twice")
                found[name] = value
            return found

        try:
            return self.tree(json.loads(text, object_pairs_hook=once))
        except (RecursionError, ValueError) as e:
            raise self.refuse("syntax", f"not valid JSON: {e}") from None

    def tree(self, found: Any) -> tuple[dict[str, Any], list[tuple[int, dict[str, Any]]]]:
        if not isinstance(found, dict) or not isinstance(found.get("rows"), list):
            raise self.refuse("shape", "expected a table with `rows`, a list of rows")
        rows = []
        for k, row in enumerate(found["rows"], 1):
            if not isinstance(row, dict):
                raise self.refuse("shape", f"row {k} is not a table of {', '.join(COLUMNS)}")
            names = [ALIASES.get(str(name), str(name)) for name in row]
            self.columns(names, 0)
            rows.append((0, dict(zip(names, row.values(), strict=True))))
        return found, rows

    def row(self, cells: Mapping[str, Any], line: int, length: float, angle: float) -> Row:
        name, kind = cells.get("joint"), cells.get("type", "revolute")
        if not isinstance(name, str) or not name.strip():
            raise self.refuse("joint", "a row names no joint", line)
        if kind not in TYPES:
            raise self.refuse("type", f"joint `{name}` has the type `{kind}`; expected one of {', '.join(TYPES)}{did_you_mean(str(kind), TYPES)}", line)
        a, alpha, d, theta = (self.number(cells, key, name, line) for key in ("a", "alpha", "d", "theta"))
        ends = [self.number(cells, key, name, line) if cells.get(key) is not None else None for key in ("lower", "upper")]
        if (ends[0] is None) != (ends[1] is None):
            raise self.refuse("limits", f"joint `{name}` gives one limit without the other", line)
        limits = None
        if ends[0] is not None and ends[1] is not None and kind in ("revolute", "prismatic"):
            lower, upper = ((e / length if kind == "prismatic" else e * angle) for e in ends if e is not None)
            limits = Limits(lower, upper)
        return Row(name, kind, a / length, alpha * angle, d / length, theta * angle, limits, line)

    def followers(self, value: Any, rows: tuple[Row, ...], length: float, angle: float) -> tuple[Row, ...]:
        """The rows, each with the rule that it follows, if it does: multiplier * the value of `joint` + offset."""
        if not isinstance(value, dict):
            raise self.refuse("mimic", "`mimic` is a table of followers, each with joint, multiplier, offset")
        unit = {row.joint: 1.0 / length if row.type == "prismatic" else angle for row in rows if row.type != "fixed"}
        rules = {}
        for name, rule in value.items():
            if name not in unit:
                raise self.refuse("mimic", f"`mimic` names `{cut(name)}`, which is no moving joint of the table{did_you_mean(name, unit)}")
            if not isinstance(rule, dict) or not set(rule) <= set(RULE):
                raise self.refuse("mimic", f"the rule of the follower `{name}` has {', '.join(RULE)}, and nothing else")
            source = rule.get("joint")
            if not isinstance(source, str) or source not in unit:
                near = did_you_mean(source, unit) if isinstance(source, str) else ""
                raise self.refuse("mimic", f"the follower `{name}` names no moving `joint` of the table to follow{near}")
            multiplier, offset = (self.number({"multiplier": 1.0, "offset": 0.0, **rule}, key, name, 0) for key in RULE[1:])
            rules[name] = Mimic(source, multiplier * unit[name] / unit[source], offset * unit[name])
        return tuple(replace(row, mimic=rules.get(row.joint)) for row in rows)

    def number(self, cells: Mapping[str, Any], key: str, joint: str, line: int) -> float:
        value = cells.get(key)
        if value is None:
            raise self.refuse("absent", f"joint `{joint}` has no `{key}`; write 0 if it is 0", line)
        if isinstance(value, str) and NUMBER.fullmatch(value):
            value = float(value)
        if not finite(value):
            hint = "; write a decimal point" if isinstance(value, str) and "," in value else ""
            shown = cut(value) if isinstance(value, str) else "beyond a double" if isinstance(value, int) else str(value)[:40]
            raise self.refuse("number", f"{key} of joint `{joint}` is `{shown}`, which is not a number{hint}", line)
        return float(value)

    def pose(self, value: Any, key: str, length: float, angle: float) -> Frame:
        """base or tool: 16 numbers, 4x4, {matrix}, or {xyz, rpy or quaternion}, in the table's units -> 12 numbers."""
        if value is None:
            return IDENTITY
        if isinstance(value, dict) and list(value) == ["matrix"]:
            value = value["matrix"]
        try:
            if isinstance(value, dict):
                if unknown := [k for k in value if k not in ("xyz", "rpy", "quaternion")]:
                    raise self.refuse("pose", f"`{key}` takes xyz with rpy or quaternion, or a matrix; not `{unknown[0]}`")
                xyz, rpy, quaternion = (self.floats(value.get(k), f"{key}.{k}") for k in ("xyz", "rpy", "quaternion"))
                T = read_parts(xyz, quaternion, None if rpy is None else [r * angle for r in rpy], key)
            else:
                rows = value if isinstance(value, list) else [value]
                T = read_matrix([self.floats(row if isinstance(row, list) else [row], key) for row in rows] if len(rows) == 4 else self.floats(rows, key) or [], key)
        except (InvalidParams, TypeError, ValueError) as e:
            raise self.refuse("pose", f"`{key}` is no pose: {e}") from None
        x, y, z = translation_of(T)
        return frame((x / length, y / length, z / length), rotation_of(T))

    def floats(self, value: Any, key: str) -> list[float] | None:
        """A list of finite numbers, or None."""
        if value is None:
            return None
        if not isinstance(value, list) or not all(map(finite, value)):
            raise self.refuse("pose", f"`{key}` must be a list of finite numbers")
        return [float(x) for x in value]
