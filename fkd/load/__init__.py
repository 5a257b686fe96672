"""Bytes -> Model: slow, careful, once. Every refusal names the file, the line and the way out."""

from __future__ import annotations

from pathlib import Path

from fkd.errors import BundleRefused, Finding
from fkd.load.build import Choices, build_model
from fkd.load.bundle import Bundle
from fkd.load.check import calibrated, check_description, refuse_errors
from fkd.load.dhread import Stated, is_table, read_table
from fkd.load.dhtable import describe_table
from fkd.load.settings import PER_METRE, SETTINGS, Settings
from fkd.load.source import Source, find_model, open_source, read_settings
from fkd.load.urdf import Description, read_urdf
from fkd.load.xacro import expand
from fkd.model import Model


def load_model(
    path: str | Path, *, tip: str | None = None, base: str | None = None, allow_unhashed: bool = False
) -> tuple[Model, list[Finding]]:
    """Open, verify, read, check and build what lies at `path`.

    tip, base: links that override the bundle's own. Returns the model and all findings (none of them errors).
    Raises BundleRefused.
    """
    source = open_source(path, allow_unhashed=allow_unhashed)
    settings, description, findings = judged(source)
    refuse_errors(findings, source.name)
    trust = ("hashed" if source.hashed else "unhashed") if isinstance(source, Bundle) else "unbundled"
    choices = choose(settings, tip, base)
    return build_model(description, choices, digest=source.digest, trust=trust, source=source.name), findings


def judged(source: Source) -> tuple[Settings, Description, list[Finding]]:
    """What a source says of itself, the records of its model, and all findings about them, errors too."""
    settings = read_settings(source)
    description = describe(source, settings)
    return settings, description, findings_of(description, settings)


def findings_of(description: Description, settings: Settings) -> list[Finding]:
    """All findings about a description as the settings take it."""
    scale = 1.0 / PER_METRE[settings.length_unit]
    return check_description(description, scale) + calibrated(description, settings.calibration, scale)


def model_of(description: Description, settings: Settings, source: str) -> Model:
    """Check and build a description that did not come from a source. Raises BundleRefused."""
    refuse_errors(findings_of(description, settings), source)
    return build_model(description, choose(settings), digest="", trust="unbundled", source=source)


def table_of(source: Source, entry: str, settings: Settings, given: Stated | None = None) -> Description:
    """The records of a DH table, which says its own units: a length unit in bundle.toml would count twice."""
    if settings.length_unit != "m":
        raise BundleRefused(
            f"{SETTINGS}: `length_unit` does not go with a DH table, which says its own; take it out, or convert the table",
            reason="settings-length-unit", member=SETTINGS,
        )
    return describe_table(read_table(source.read(entry), entry, given))


def choose(settings: Settings, tip: str | None = None, base: str | None = None) -> Choices:
    """What the bundle says beyond its description, overruled by the operator's tip and base."""
    return Choices(
        tip=settings.tip if tip is None else tip, base=settings.base if base is None else base, joints=settings.joints,
        per_metre=PER_METRE[settings.length_unit], calibration=settings.calibration,
    )  # fmt: skip


def describe(source: Source, settings: Settings) -> Description:
    """The records of the model that a source holds, errors and all: URDF, xacro or DH table."""
    entry = find_model(source, settings)
    if is_table(entry):
        return table_of(source, entry, settings)
    expansion = expand(source, entry, settings.xacro_args)
    description = read_urdf(expansion.root)
    description.findings.extend(expansion.findings)
    return description


def examine(path: str | Path) -> list[Finding]:
    """Every finding about what lies at `path`, errors too, in one pass. Raises nothing for a bad bundle or file."""
    try:
        source = open_source(path)
        settings, description, findings = judged(source)
        if not any(f.severity == "error" for f in findings):
            build_model(description, choose(settings), digest=source.digest, trust="", source=source.name)
    except BundleRefused as e:
        file, line = str(e.data.get("file") or e.data.get("member") or path), e.data.get("line") or 0
        message = e.message
        for place in (f"{Path(path).name}: ", f"{file}:{line}: ", f"{file}: "):  # the finding says the place itself
            message = message.removeprefix(place)
        return [Finding(e.reason, "error", file, line, message)]
    return findings
