"""Bytes -> Model: slow, careful, once. Every refusal names the file, the line and the way out."""

from __future__ import annotations

from pathlib import Path

from fkd.errors import BundleRefused, Finding
from fkd.load.build import Choices, build_model
from fkd.load.bundle import Bundle
from fkd.load.check import check_description, refuse_errors
from fkd.load.settings import Settings, parse_settings
from fkd.load.source import Source, find_model, open_source
from fkd.load.urdf import Description, read_urdf
from fkd.load.xml import parse_xml
from fkd.model import Model

SETTINGS = "bundle.toml"
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}


def load_model(
    path: str | Path, *, tip: str | None = None, base: str | None = None, allow_unhashed: bool = False
) -> tuple[Model, list[Finding]]:
    """Open, verify, read, check and build what lies at `path`.

    tip, base: links that override the bundle's own. Returns the model and all findings (none of them errors).
    Raises BundleRefused.
    """
    source = open_source(path, allow_unhashed=allow_unhashed)
    settings = read_settings(source)
    description = describe(source, settings)
    findings = check_description(description)
    refuse_errors(findings, source.name)
    trust = ("hashed" if source.hashed else "unhashed") if isinstance(source, Bundle) else "unbundled"
    return build_model(
        description, choose(settings, tip, base), digest=source.digest, trust=trust, source=source.name
    ), findings


def choose(settings: Settings, tip: str | None = None, base: str | None = None) -> Choices:
    """What the bundle says beyond its description, overruled by the operator's tip and base."""
    return Choices(
        tip=tip or settings.tip, base=base or settings.base, joints=settings.joints,
        scale=UNITS[settings.length_unit], calibration=settings.calibration,
    )  # fmt: skip


def read_settings(source: Source) -> Settings:
    """The bundle's own bundle.toml, or the defaults where it has none."""
    return parse_settings(source.read(SETTINGS), SETTINGS) if SETTINGS in source else Settings()


def describe(source: Source, settings: Settings) -> Description:
    """The records of the model that a source holds, errors and all."""
    entry = find_model(source, settings)
    return read_urdf(parse_xml(source.read(entry), entry))


def examine(path: str | Path) -> list[Finding]:
    """Every finding about what lies at `path`, errors too, in one pass. Raises nothing for a bad bundle or file."""
    try:
        source = open_source(path)
        settings = read_settings(source)
        description = describe(source, settings)
        findings = check_description(description)
        if not any(f.severity == "error" for f in findings):
            build_model(description, choose(settings), digest=source.digest, trust="", source=source.name)
    except BundleRefused as e:
        file = str(e.data.get("file") or e.data.get("member") or path)
        message = e.message.removeprefix(f"{file}:{e.data.get('line', 0)}: ").removeprefix(f"{file}: ")
        return [Finding(e.reason, "error", file, e.data.get("line", 0), message)]
    return findings
