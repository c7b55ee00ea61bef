"""Findings, their fixes, and failures as JSON: one shape for `--json`, HTTP and WebSocket."""

from dataclasses import dataclass

from weft.findings import AppendItem, Edit, Finding, Fix, Json, Remove, RenameKey, SetValue


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
    return {"title": fix.title, "file": fix.file, "edits": [edit_data(edit) for edit in fix.edits]}


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


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure: a code for `weft explain`, the message, its causes and what to do."""

    code: str
    message: str
    cause: tuple[str, ...] = ()
    hint: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    #: The run that stopped, where it is one.
    run: str = ""


def problem_data(problem: Problem) -> dict[str, Json]:
    """Return `{code, message, cause[], hint[], findings[], run?}`."""
    run = {"run": problem.run} if problem.run else {}
    return {
        "code": problem.code,
        "message": problem.message,
        "cause": list(problem.cause),
        "hint": list(problem.hint),
        "findings": [finding_data(finding) for finding in problem.findings],
        **run,
    }
