"""What the method `dh` answers -> the text of a table (CSV, TOML or JSON) that `dhread` reads, in m and rad."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from fkd.errors import BundleRefused, FkdError
from fkd.load.dhread import COLUMNS, VALUES, read_table

KINDS = ("csv", "toml", "json")


def write_table(found: Mapping[str, Any], file: str) -> str:
    """The table for a file of this name, whose ending says its form. Every number reads back to the last bit.

    Raises FkdError for another ending, a chain without joints, a follower of a joint outside the chain, and names that
    the form cannot hold.
    """
    kind = file.casefold().rpartition(".")[2]
    if kind not in KINDS:
        raise FkdError(f"a table is written as .csv, .toml or .json, so not as {file}")
    rows = found["rows"]
    names = [row["joint"] for row in rows]
    for name, rule in found.get("mimic", {}).items():
        if rule["joint"] not in names:
            raise FkdError(f"joint `{name}` follows `{rule['joint']}`, which is not in this chain, so no table file can say where it is")
    head = {"convention": found["convention"], "length_unit": "m", "angle_unit": "rad"}
    head |= {key: found[key] for key in (*VALUES, "residual") if key in found}
    text = {"csv": _csv, "toml": _toml, "json": _json}[kind](head, rows)
    try:
        read = [row.joint for row in read_table(text.encode(), file).rows]
    except BundleRefused as e:
        raise FkdError(f"this chain makes no table file: {e}") from None
    if read != names:
        raise FkdError(f"the names of these joints cannot stand in a .{kind} file; write .json")
    return text


def _csv(head: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    for key, value in head.items():
        out.write(f"# {key}: {value if isinstance(value, str) else json.dumps(value)}\n")
    columns = [c for c in COLUMNS if any(c in row for row in rows)]
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()


def _toml(head: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> str:
    lines = [f"{key} = {_toml_value(value)}" for key, value in head.items()]
    return "\n".join([*lines, "rows = [", *(f"  {_toml_value(row)}," for row in rows), "]", ""])


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        keys = [k if k.isascii() and k.isidentifier() else _toml_value(k) for k in value]
        return "{ " + ", ".join(f"{k} = {_toml_value(v)}" for k, v in zip(keys, value.values(), strict=True)) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _json(head: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> str:
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    table = ",\n    ".join(json.dumps(row) for row in rows)
    return "{\n  " + ",\n  ".join([*lines, f'"rows": [\n    {table}\n  ]']) + "\n}\n"
