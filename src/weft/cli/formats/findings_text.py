"""Findings and failures as text for people."""

from collections.abc import Iterable
from typing import Final

from weft.cli.failure import Failure
from weft.cli.formats.frames import WIDEST, SourceLines, frame
from weft.cli.formats.report import AppliedFix, Report
from weft.cli.streams import Paint
from weft.cli.text import counted
from weft.findings import Finding

_STYLES: Final = {"error": "bold red", "warning": "bold yellow"}
#: More hints than this are not read.
_MOST_HINTS: Final = 2


_UNEXPLORED: Final = (
    "Not checked yet: which agents a run reaches and whether it can end. Fix the errors first."
)


def full(findings: Iterable[Finding], paint: Paint, columns: int = WIDEST) -> str:
    """Return findings with frame, causes and hints, a blank line between two."""
    lines = SourceLines()
    return "\n\n".join(_one_in_full(finding, lines, paint, columns) for finding in findings)


def concise(findings: Iterable[Finding], paint: Paint) -> str:
    """Return one line for each finding."""
    return "\n".join(
        f"{paint(str(finding.place), 'bold')}: {_head(finding, paint)}"
        + (" [*]" if finding.fix else "")
        for finding in findings
    )


def fixed_lines(fixed: Iterable[AppliedFix], paint: Paint) -> list[str]:
    """Say what was fixed, one line for each fix."""
    return [f"{paint('fixed', 'bold green')} {it.file}: {paint(it.title, '')}" for it in fixed]


def summary(report: Report) -> str:
    """Return the line that closes a check."""
    files = counted(report.files, "file")
    took = f"({report.seconds:.2f} s)"
    if not report.findings:
        return f"No findings in {files} of {counted(report.packages, 'package')} {took}."
    kinds = ((report.errors, "error"), (report.warnings, "warning"))
    found = ", ".join(counted(number, noun) for number, noun in kinds if number)
    fixable = f" {report.fixable} fixable." if report.fixable else ""
    later = f"\n{_UNEXPLORED}" if report.unexplored else ""
    return f"Found {found} in {files} {took}.{fixable}{later}"


def failure_text(failure: Failure, paint: Paint, columns: int = WIDEST) -> str:
    """Return a failure: the findings behind it, the fact, its causes, what to do."""
    findings = [full(failure.findings, paint, columns) + "\n"] if failure.findings else []
    head = f"{paint(f'error[{failure.code}]', _STYLES['error'])}: {paint(failure.message, 'bold')}"
    more = failure.more or f"weft explain {failure.code}"
    tail = _tail(failure.cause, failure.hint[:_MOST_HINTS], more, paint)
    return "\n".join([*findings, head, *tail])


def _one_in_full(finding: Finding, lines: SourceLines, paint: Paint, columns: int) -> str:
    where = f"  {paint('-->', 'blue')} {paint(str(finding.place), '')}"
    hints = finding.hint
    if finding.fix:
        hints = (f"run `weft check --fix` to {finding.fix.title}      [*] safe fix", *hints)
    more = f"weft explain {finding.code}"
    tail = _tail(finding.cause, hints[:_MOST_HINTS], more, paint)
    shown = frame(finding, lines, paint, columns)
    return "\n".join([_head(finding, paint), where, *shown, *tail])


def _head(finding: Finding, paint: Paint) -> str:
    label = paint(f"{finding.severity}[{finding.code}]", _STYLES[finding.severity])
    return f"{label}: {paint(finding.message, 'bold')}"


def _tail(cause: Iterable[str], hint: Iterable[str], more: str, paint: Paint) -> list[str]:
    return [
        *(f"  {paint('cause:', 'cyan')} {paint(text, '')}" for text in cause),
        *(f"  {paint('hint:', 'cyan')}  {paint(text, '')}" for text in hint),
        f"  {paint('more:', 'cyan')}  {paint(more, '')}",
    ]
