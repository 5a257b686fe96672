"""bundle.toml: what an integrator says about a description that the description itself does not say."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from fkd.errors import BundleRefused, nearest
from fkd.load.paths import path_fault, show

LengthUnit = Literal["m", "mm", "cm"]
Vector = tuple[float, float, float]

SETTINGS = "bundle.toml"
PER_METRE = {"m": 1.0, "mm": 1000.0, "cm": 100.0}  # to divide by: 9 / 1000 is rounded right, 9 * 0.001 is not
_MAX_SIZE = 64 << 10  # bytes; a hundred calibrated joints take about 12 KiB
_MAX_DOTS = 400  # in a line (sixty joints calibrated in one); tomllib's memory is quadratic in the parts of a key
_MAX_INTEGER = 1 << 63  # TOML promises 64 bits
_TYPES = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "an array", dict: "a table"}


class Calibration(NamedTuple):
    """The measured origin of one unit's joint, in place of the nominal one: xyz (3,) m, rpy (3,) rad, in the parent."""

    xyz: Vector
    rpy: Vector


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole of bundle.toml; None or empty where it says nothing.

    length_unit: that of the description, not of `calibration`. joints: the order of q. xacro_args: as text.
    """

    model: str | None = None
    tip: str | None = None
    base: str | None = None
    length_unit: LengthUnit = "m"
    joints: tuple[str, ...] | None = None
    calibration: Mapping[str, Calibration] = field(default_factory=dict)
    xacro_args: Mapping[str, str] = field(default_factory=dict)


def parse_settings(data: bytes, file: str) -> Settings:
    """Read a bundle.toml.

    Values of [xacro.args] that are no strings become the text that the same value has in TOML's shortest form:
    `true`, `2`, `0.1`, `1e-05`. Quote a value that must keep its spelling, such as "0.10".
    Raises BundleRefused (`settings-...`) with the file and, where it can be found, the line.
    Source: TOML 1.0.0.
    """
    if len(data) > _MAX_SIZE:
        raise _refusal(file, None, "settings-too-big", f"{len(data)} bytes; at most {_MAX_SIZE} are allowed")
    try:
        text = data.decode("utf-8-sig")  # editors on Windows write the mark
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise _refusal(file, line, "settings-encoding", "not UTF-8") from None
    for number, line_text in enumerate(text.split("\n"), 1):
        if line_text.count(".") > _MAX_DOTS:
            raise _refusal(file, number, "settings-syntax", f"more than {_MAX_DOTS} dots in one line; break it up")
    try:
        table = tomllib.loads(text)
    except ValueError as e:  # also of numbers with too many digits
        found = re.search(r" \(at line (\d+), (column \d+)\)", str(e))
        line = int(found[1]) if found else text.count("\n") + 1
        message = str(e).replace(found[0], f" at {found[2]}") if found else str(e)
        raise _refusal(file, line, "settings-syntax", f"not valid TOML: {message}") from None
    except RecursionError:
        raise _refusal(file, None, "settings-syntax", "nested too deep") from None
    return _Reader(text, file).settings(table)


def format_settings(settings: Settings) -> bytes:
    """The bytes of a bundle.toml that reads back as `settings`; the same bytes for equal settings.

    Raises BundleRefused (`settings-...`) where the settings are such as no bundle.toml may hold.
    """
    lines = [f"{key} = {_quote(v)}" for key in ("model", "tip", "base") if (v := getattr(settings, key)) is not None]
    if settings.length_unit != "m":
        lines.append(f"length_unit = {_quote(settings.length_unit)}")
    if settings.joints is not None:
        lines.append(f"joints = [{', '.join(map(_quote, settings.joints))}]")
    for joint, origin in sorted(settings.calibration.items()):
        lines += ["", f"[calibration.{_quote(joint)}]"]
        lines += [f"{key} = [{', '.join(repr(float(v)) for v in vector)}]" for key, vector in origin._asdict().items()]
    if settings.xacro_args:
        lines += ["", "[xacro.args]"]
        lines += [f"{_quote(key)} = {_quote(value)}" for key, value in sorted(settings.xacro_args.items())]
    try:
        data = "".join(line + "\n" for line in lines).lstrip("\n").encode()
    except UnicodeEncodeError:  # a surrogate, from an argument of the command line that is not UTF-8
        raise _refusal("bundle.toml", None, "settings-encoding", "a name that is not UTF-8") from None
    parse_settings(data, "bundle.toml")
    return data


def _quote(text: str) -> str:
    """A TOML basic string (or quoted key)."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", plain) + '"'


def _refusal(file: str, line: int | None, reason: str, message: str, **data: Any) -> BundleRefused:
    place = file if line is None else f"{file}:{line}"
    return BundleRefused(f"{place}: {message}", reason=reason, file=file, line=line, **data)


class _Reader:
    """The checks of one file; every refusal says which key it means, and on which line."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file

    def settings(self, table: dict[str, Any]) -> Settings:
        self._known(table, ("model", "tip", "base", "length_unit", "joints", "calibration", "xacro"))
        xacro = self._table(table, ("xacro",))
        self._known(xacro, ("args",), "xacro")
        calibration = self._table(table, ("calibration",))
        args = self._table(xacro, ("xacro", "args"))
        return Settings(
            model=self._model(table),
            tip=self._name(table["tip"], ("tip",)) if "tip" in table else None,
            base=self._name(table["base"], ("base",)) if "base" in table else None,
            length_unit=self._unit(table),
            joints=self._joints(table),
            calibration={self._name(j, ("calibration",)): self._calibration(calibration, j) for j in calibration},
            xacro_args={self._name(k, ("xacro", "args")): self._arg(v, k) for k, v in args.items()},
        )

    def _refuse(self, reason: str, keys: tuple[str, ...], message: str, **data: Any) -> BundleRefused:
        line = _line_of(self._text, keys)
        return _refusal(self._file, line, reason, f"`{show('.'.join(keys))}` {message}", **data)

    def _wrong_type(self, value: object, keys: tuple[str, ...], expected: str, verb: str = "is") -> BundleRefused:
        got = f'"{show(value)}"' if isinstance(value, str) else _TYPES.get(type(value), "a date or time")
        return self._refuse("settings-type", keys, f"must be {expected}; it {verb} {got}", expected=expected)

    def _known(self, table: Mapping[str, Any], names: tuple[str, ...], *above: str) -> None:
        for key in table:
            if key not in names:
                near = nearest(key, names)
                mean = f"did you mean `{near}`?" if near else f"the keys here are {', '.join(names)}"
                raise self._refuse("settings-unknown-key", (*above, key), f"is not known; {mean}", did_you_mean=near)

    def _table(self, parent: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
        value = parent.get(keys[-1], {})
        if not isinstance(value, dict):
            raise self._wrong_type(value, keys, f"a table: [{'.'.join(keys)}]")
        return value

    def _name(self, value: object, keys: tuple[str, ...]) -> str:
        if not isinstance(value, str):
            raise self._wrong_type(value, keys, "a string")
        if not value.strip() or any(ord(c) < 32 for c in value):
            raise self._refuse("settings-value", keys, f"holds `{show(value)}`, which cannot be a name")
        return value

    def _model(self, table: Mapping[str, Any]) -> str | None:
        if "model" not in table:
            return None
        path = self._name(table["model"], ("model",))
        if fault := path_fault(path):
            raise self._refuse("settings-value", ("model",), f"names the path `{show(path)}`, which {fault.text}")
        return path

    def _unit(self, table: Mapping[str, Any]) -> LengthUnit:
        unit = table.get("length_unit", "m")
        expected = " or ".join(f'"{u}"' for u in PER_METRE)
        if not isinstance(unit, str):
            raise self._wrong_type(unit, ("length_unit",), expected)
        if unit not in PER_METRE:
            near = nearest(unit, PER_METRE)
            mean = f'; did you mean "{near}"?' if near else ""
            message = f"must be {expected}, not `{show(unit)}`{mean}"
            raise self._refuse("settings-value", ("length_unit",), message, expected=expected, did_you_mean=near)
        return cast(LengthUnit, unit)

    def _joints(self, table: Mapping[str, Any]) -> tuple[str, ...] | None:
        if "joints" not in table:
            return None
        value = table["joints"]
        if not isinstance(value, list):
            raise self._wrong_type(value, ("joints",), "an array of joint names")
        seen: set[str] = set()
        for item in value:
            if not isinstance(item, str):
                raise self._wrong_type(item, ("joints",), "an array of joint names", "holds")
            if (name := self._name(item, ("joints",))) in seen:
                raise self._refuse("settings-duplicate", ("joints",), f"names `{show(name)}` twice")
            seen.add(name)
        return tuple(value)

    def _calibration(self, calibration: Mapping[str, Any], joint: str) -> Calibration:
        keys = ("calibration", joint)
        origin = self._table(calibration, keys)
        self._known(origin, ("xyz", "rpy"), *keys)
        for key in ("xyz", "rpy"):
            if key not in origin:  # a guess at the other half would be a silent change of the arm
                message = f"lacks `{key}`; it stands in for the whole origin, so give xyz (m) and rpy (rad)"
                raise self._refuse("settings-missing", keys, message)
        return Calibration(*(self._vector(origin[key], (*keys, key)) for key in ("xyz", "rpy")))

    def _vector(self, value: object, keys: tuple[str, ...]) -> Vector:
        expected = "an array of 3 finite numbers"
        if not isinstance(value, list):
            raise self._wrong_type(value, keys, expected)
        if len(value) != 3:
            message = f"must be {expected}, not of {len(value)}"
            raise self._refuse("settings-value", keys, message, expected=expected)
        x, y, z = (self._number(v, keys, expected) for v in value)
        return (x, y, z)

    def _number(self, value: object, keys: tuple[str, ...], expected: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong_type(value, keys, expected, "holds")
        if not (abs(value) < _MAX_INTEGER if isinstance(value, int) else math.isfinite(value)):
            what = "an integer over 64 bits" if isinstance(value, int) else str(value)
            raise self._refuse("settings-value", keys, f"must be {expected}; it holds {what}", expected=expected)
        return float(value)

    def _arg(self, value: object, key: str) -> str:
        keys = ("xacro", "args", key)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            self._number(value, keys, "a string or a finite number")
            return repr(value)
        if not isinstance(value, str):
            raise self._wrong_type(value, keys, "a string, a number, true or false")
        return value


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """The line where `keys` is set, or the nearest table or key above it; None if it cannot be found."""
    best, line = 0, None
    table: tuple[str, ...] = ()
    for number, content in enumerate(text.split("\n"), 1):
        content = content.strip()
        header = re.match(r"\[\[?([^\[\]]+)\]", content)
        match = header or re.match(r"([^=#]+)=", content)
        if match is None or (not header and keys[-1] not in content and keys[0] not in content):
            continue  # the second test only spares time
        here = _dotted(match[1]) if header else (*table, *_dotted(match[1]))
        if header:
            table = here
        common = min(len(here), len(keys))
        if common > best and here[:common] == keys[:common]:
            best, line = common, number
    return line


def _dotted(key: str) -> tuple[str, ...]:
    """`a."b c".d` -> its parts; nothing if it is not a key."""
    try:
        value: Any = tomllib.loads(f"{key}=0")
    except (ValueError, RecursionError):
        return ()
    parts = []
    while isinstance(value, dict) and len(value) == 1:
        part, value = next(iter(value.items()))
        parts.append(part)
    return tuple(parts)
