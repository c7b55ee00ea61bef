"""Findings and failures as data for programs: JSON, and the commands of GitHub workflows."""

import json
from typing import Final

from weft.cli.failure import Failure
from weft.cli.report import Report
from weft.findings import AppendItem, Edit, Finding, Fix, Json, Remove, RenameKey, SetValue

#: The number of the shape of every JSON document; it changes when a key changes its meaning.
SCHEMA_VERSION: Final = 1


def document(content: dict[str, Json]) -> str:
    """Return the one JSON document of a command."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2)


def document_line(content: dict[str, Json]) -> str:
    """Return one of the JSON documents of a command that prints one in each line."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content})


def finding_data(finding: Finding) -> dict[str, Json]:
    """Return a finding as JSON can hold it."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "file": finding.place.file,
        "line": finding.place.line,
        "column": finding.place.column,
        "length": finding.place.length,
        "cause": list(finding.cause),
        "hint": list(finding.hint),
        "fix": fix_data(finding.fix) if finding.fix else None,
    }


def fix_data(fix: Fix) -> dict[str, Json]:
    """Return a safe fix as JSON can hold it; without a file, its paths lead into the spec."""
    return {"title": fix.title, "file": fix.file, "edits": [edit_data(it) for it in fix.edits]}


def edit_data(edit: Edit) -> dict[str, Json]:
    """Return one edit: its kind, where it applies, and the value or key it puts there."""
    path = list(edit.path)
    match edit:
        case SetValue():
            return {"kind": "set", "path": path, "value": edit.value}
        case AppendItem():
            return {"kind": "append", "path": path, "value": edit.value}
        case RenameKey():
            return {"kind": "rename", "path": path, "value": edit.key}
        case Remove():
            return {"kind": "remove", "path": path, "value": None}


def report_document(report: Report) -> str:
    """Return the result of a check as a JSON document."""
    return document(
        {
            "findings": [finding_data(finding) for finding in report.findings],
            "fixed": [{"file": it.file, "title": it.title} for it in report.mended],
            "summary": {
                "errors": report.errors,
                "warnings": report.warnings,
                "fixable": report.fixable,
                "files": report.files,
                "packages": report.packages,
                "seconds": round(report.seconds, 3),
            },
        }
    )


def failure_document(failure: Failure) -> str:
    """Return a failure as a JSON document."""
    return document({"error": failure_data(failure)})


def failure_data(failure: Failure) -> dict[str, Json]:
    """Return a failure as JSON can hold it."""
    return {
        "code": failure.code,
        "message": failure.message,
        "cause": list(failure.cause),
        "hint": list(failure.hint),
        "findings": [finding_data(finding) for finding in failure.findings],
    }


def github(finding: Finding) -> str:
    """Return a finding as a command that GitHub shows beside the line it is about."""
    place = finding.place
    properties: dict[str, object] = {
        "file": place.file,
        "line": place.line,
        "col": place.column,
        "title": finding.code,
    }
    given = [f"{name}={_property(str(value))}" for name, value in properties.items() if value]
    text = "\n".join([finding.message, *finding.cause, *finding.hint])
    return f"::{finding.severity} {','.join(given)}::{_message(text)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
