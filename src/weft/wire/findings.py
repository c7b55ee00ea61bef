"""Findings and their fixes as JSON."""

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
