"""Failures as JSON: one problem shape for `--json`, HTTP and WebSocket."""

from dataclasses import dataclass

from weft.findings import Finding, Json
from weft.wire.findings import finding_data


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something could not be done: a code that `weft explain` knows, the fact, what to do."""

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
