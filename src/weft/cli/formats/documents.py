"""JSON documents, and the commands of GitHub workflows."""

import json
from typing import Final

from weft.cli.failure import Failure
from weft.cli.formats.report import Report
from weft.findings import Finding, Json
from weft.wire.findings import Problem, finding_data, problem_data

#: The number of the shape of every JSON document; it changes when a key changes its meaning.
SCHEMA_VERSION: Final = 1


def document(content: dict[str, Json]) -> str:
    """Return the one JSON document of a command."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2)


def document_line(content: dict[str, Json]) -> str:
    """Return one of the JSON documents of a command that prints one in each line."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content})


def report_document(report: Report) -> str:
    """Return the result of a check as a JSON document."""
    return document(
        {
            "findings": [finding_data(finding) for finding in report.findings],
            "fixed": [{"file": it.file, "title": it.title} for it in report.fixed],
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


def failure_data(failure: Failure) -> dict[str, Json]:
    """Return a failure as JSON can hold it."""
    return problem_data(
        Problem(
            failure.code,
            failure.message,
            cause=failure.cause,
            hint=failure.hint,
            findings=failure.findings,
            run=failure.run,
        )
    )


def failure_document(failure: Failure) -> str:
    """Return a failure as a JSON document."""
    return document({"error": failure_data(failure)})


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
