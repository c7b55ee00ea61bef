"""Running the rules on a subject, and placing their findings."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Final, Protocol

from weft.catalogue import CATALOGUE
from weft.check.rules import explored
from weft.check.subject import CheckRule, Hit, Mode, Subject, rules_of
from weft.findings import Finding, Path, Place
from weft.spec.workflow import WorkflowSpec

#: The modules with rules, `weft.check.rules.<name>`.
_MODULES: Final = (
    "bindings", "board", "code", "conditions", "environment", "explored",
    "exposure", "flow", "handoffs", "names", "outputs", "references", "secrets",
    "sources", "states", "tools", "triggers", "ui", "usage", "variables", "writes",
)  # fmt: skip

RULES: Final[tuple[CheckRule, ...]] = rules_of(
    *(import_module(f"weft.check.rules.{name}") for name in _MODULES)
)
_EXPLORED: Final = frozenset(map(id, rules_of(explored)))

#: Errors that keep a workflow from being explored, or say already why something never happens.
_BLOCKING: Final = frozenset(
    {"NAME001", "NAME002", "NAME004", "NAME006", "COND001", "COND002", "COND003", "CODE002",
     "CODE004", "BIND004", "BIND005", "BIND007", "OUT005", "TOOL009", "VAR002", "VAR003", "VAR004",
     "VAR008", "STATE001"}
)  # fmt: skip

_EXPLORED_PARTS: Final = frozenset(explored.READS)

#: The code for a workflow without agents.
NO_AGENTS: Final = "BIND011"


class Locate(Protocol):
    """Finds the place in the author's files of a value of the spec."""

    def __call__(self, path: Path, *, at_key: bool = False, offset: int | None = None) -> Place:
        """Return the place of the value at `path`, `offset` characters into it."""
        ...


def nowhere(path: Path, *, at_key: bool = False, offset: int | None = None) -> Place:  # noqa: ARG001
    """Use the path in the spec as place: for specs that were not read from files."""
    return Place(".".join(str(step) for step in path))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The findings of a workflow, and whether the runs of a conversation were explored."""

    findings: tuple[Finding, ...]
    explored: bool


def examine(
    subject: Subject, *, locate: Locate = nowhere, broken: Collection[str] = ()
) -> CheckResult:
    """Apply every rule to a workflow.

    `broken` names the fields of the spec whose files could not be read.
    """
    mode = mode_of(subject.spec, broken)
    # Without agents every reference to one would be reported; one finding replaces them.
    missing = {"agents"} if mode == "conversation" and not subject.spec.agents else set[str]()
    rules = [
        rule
        for rule in RULES
        if rule.reads.isdisjoint(broken)
        and (rule.reads.isdisjoint(missing) or rule.code == NO_AGENTS)
    ]
    hits, explored = find_hits(subject, rules, mode)
    findings = (
        finding for rule, found in hits for finding in findings_of(rule.code, found, locate)
    )
    readable = _EXPLORED_PARTS.isdisjoint({*broken, *missing})
    return CheckResult(sort_findings(findings), explored and readable)


def find_hits(
    subject: Subject, rules: Iterable[CheckRule], mode: Mode
) -> tuple[list[tuple[CheckRule, list[Hit]]], bool]:
    """Apply rules. The second result is False if a conversation could not be explored.

    Runs are explored only if no other error would be reported there a second time.
    """
    plain = [rule for rule in rules if mode in rule.modes and id(rule) not in _EXPLORED]
    hits = [(rule, list(rule.check(subject))) for rule in plain]
    if mode != "conversation":
        return hits, True
    if any(_blocks(rule, found) for rule, found in hits):
        return hits, False
    last = [rule for rule in rules if id(rule) in _EXPLORED]
    return [*hits, *((rule, list(rule.check(subject))) for rule in last)], True


def _blocks(rule: CheckRule, hits: Iterable[Hit]) -> bool:
    if rule.code not in _BLOCKING or not rule.affects_routes:
        return False
    usual = CATALOGUE[rule.code].severity
    about = rule.reads <= _EXPLORED_PARTS | {"flow", "board"}
    return about and any((hit.severity or usual) == "error" for hit in hits)


def is_explorable(subject: Subject) -> bool:
    """Return whether a workflow is a conversation without errors that prevent exploration."""
    if mode_of(subject.spec) != "conversation":
        return False
    blocking = [rule for rule in RULES if rule.code in _BLOCKING and id(rule) not in _EXPLORED]
    return not any(_blocks(rule, rule.check(subject)) for rule in blocking)


def mode_of(spec: WorkflowSpec, broken: Collection[str] = ()) -> Mode:
    """Return the mode of a workflow, which a board or a flow decides even if it is broken."""
    if spec.board is not None or "board" in broken:
        return "board"
    return "flow" if spec.flow is not None or "flow" in broken else "conversation"


def check(
    subject: Subject, *, locate: Locate = nowhere, broken: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Apply every rule to a workflow and return the findings."""
    return examine(subject, locate=locate, broken=broken).findings


def findings_of(code: str, hits: Iterable[Hit], locate: Locate) -> Iterator[Finding]:
    entry = CATALOGUE[code]
    for hit in hits:
        place = hit.place or locate(hit.path, at_key=hit.at_key, offset=hit.offset)
        yield Finding(
            code=code,
            severity=hit.severity or entry.severity,
            message=hit.message,
            place=replace(place, length=hit.length or place.length),
            cause=hit.cause,
            hint=hit.hint,
            fix=hit.fix,
        )


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by file, line, column, then code."""
    return tuple(
        sorted(
            findings,
            key=lambda finding: (
                finding.place.file,
                finding.place.line or 0,
                finding.place.column or 0,
                finding.code,
                finding.message,
            ),
        )
    )
