"""Findings as SARIF 2.1.0, the format code-scanning services read."""

import json
from os import fsencode
from pathlib import Path
from typing import Final
from urllib.parse import quote

import weft
from weft.cli.codes import CODES
from weft.findings import Finding, Json, Place, Rule

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: tuple[Finding, ...]) -> str:
    """Return a SARIF log with one run: the rules that spoke, and what they said."""
    codes = sorted({finding.code for finding in findings})
    driver = {
        "name": "weft",
        "version": weft.__version__,
        "rules": [_rule(CODES[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code)) for finding in findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(entry: Rule) -> dict[str, Json]:
    return {
        "id": entry.code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": entry.fix},
        "defaultConfiguration": {"level": entry.severity},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Json]:
    text = "\n".join([finding.message, *finding.cause, *finding.hint])
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(finding)}],
    }


def _location(finding: Finding) -> dict[str, Json]:
    place = finding.place
    location: dict[str, Json] = {"artifactLocation": {"uri": _uri(place)}}
    if place.line:
        region = {"startLine": place.line}
        if place.column:
            region["startColumn"] = place.column
            region["endColumn"] = place.column + place.length
        location["region"] = region
    return location


def _uri(place: Place) -> str:
    """Return the address of a file, relative to the current folder wherever that is possible."""
    path, here = Path(place.file), Path.cwd()
    if path.is_absolute() and not path.is_relative_to(here):
        return path.as_uri()
    relative = path.relative_to(here) if path.is_absolute() else path
    # By its bytes: a name need not be text.
    return quote(fsencode(relative.as_posix()))
