"""Running the rules: a subject in, findings out, each at its place."""

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
    "bindings", "board", "board_waiting", "code", "conditions", "environment", "explored",
    "exposure", "flow", "flow_state", "handoffs", "names", "outputs", "references", "secrets",
    "sources", "states", "tools", "triggers", "ui", "usage", "variables", "writes",
)  # fmt: skip

RULES: Final[tuple[CheckRule, ...]] = rules_of(
    *(import_module(f"weft.check.rules.{name}") for name in _MODULES)
)
_EXPLORED: Final = frozenset(map(id, rules_of(explored)))
_ANSWER_PARTS: Final = frozenset({"variables", "tools"})
_ANSWERS: Final = [rule for rule in RULES if rule.code == "NAME001" and rule.reads == _ANSWER_PARTS]

#: Errors that keep a workflow from being explored, or say already why something never happens.
_BLOCKING: Final = frozenset(
    {"NAME001", "NAME002", "NAME004", "NAME006", "COND001", "COND002", "COND003", "CODE002",
     "CODE004", "BIND004", "BIND005", "BIND007", "OUT005", "TOOL009", "VAR002", "VAR003", "VAR004",
     "VAR008", "STATE001", "HAND017"}
)  # fmt: skip

_EXPLORED_PARTS: Final = frozenset(explored.READS)

#: Says that there are no agents.
NO_AGENTS: Final = "BIND011"


class Locate(Protocol):
    """Tells where in the author's files a value of the spec stands."""

    def __call__(self, path: Path, *, at_key: bool = False, offset: int | None = None) -> Place:
        """Return the place of the value at `path`, `offset` characters into it."""
        ...


def nowhere(path: Path, *, at_key: bool = False, offset: int | None = None) -> Place:  # noqa: ARG001
    """Place a finding by its path in the spec: for specs that were not read from files."""
    return Place(".".join(str(step) for step in path))


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings of a workflow, and whether the runs of a conversation were explored."""

    findings: tuple[Finding, ...]
    explored: bool


def examine(
    subject: Subject, *, locate: Locate = nowhere, broken: Collection[str] = ()
) -> Examination:
    """Apply every rule to a workflow.

    `broken` names the fields of the spec whose files could not be read.
    """
    mode = mode_of(subject.spec)
    # Without any agent every name of one is unknown: one finding says so instead.
    missing = {"agents"} if mode == "conversation" and not subject.spec.agents else set[str]()
    rules = [
        rule
        for rule in RULES
        if rule.reads.isdisjoint(broken)
        and (rule.reads.isdisjoint(missing) or rule.code == NO_AGENTS)
    ]
    hits, explored = find_hits(subject, rules)
    findings = (
        finding for rule, found in hits for finding in findings_of(rule.code, found, locate)
    )
    readable = _EXPLORED_PARTS.isdisjoint({*broken, *missing})
    return Examination(sort_findings(findings), explored and readable)


def find_hits(
    subject: Subject, rules: Iterable[CheckRule] = RULES
) -> tuple[list[tuple[CheckRule, list[Hit]]], bool]:
    """Apply rules; tell also whether exploring was possible, where there is something to explore.

    Runs are explored only when nothing else is wrong that would show there a second time.
    """
    mode = mode_of(subject.spec)
    plain = [rule for rule in rules if mode in rule.modes and id(rule) not in _EXPLORED]
    hits = [(rule, list(rule.check(subject))) for rule in plain]
    if mode != "conversation":
        return hits, True
    if any(_blocks(rule, found) for rule, found in hits):
        return hits, False
    last = [rule for rule in rules if id(rule) in _EXPLORED]
    return [*hits, *((rule, list(rule.check(subject))) for rule in last)], True


def _blocks(rule: CheckRule, hits: Iterable[Hit]) -> bool:
    about = rule.code in _BLOCKING and rule.reads <= _EXPLORED_PARTS | {"flow", "board"}
    # A name that only code or an answer would know changes no route.
    in_code = "code" in rule.reads or rule in _ANSWERS
    about = about and not (rule.code == "NAME001" and in_code)
    usual = CATALOGUE[rule.code].severity
    return about and any((hit.severity or usual) == "error" for hit in hits)


def is_explorable(subject: Subject) -> bool:
    """Tell whether a workflow is a conversation, and sound enough to be explored."""
    if mode_of(subject.spec) != "conversation":
        return False
    blocking = [rule for rule in RULES if rule.code in _BLOCKING and id(rule) not in _EXPLORED]
    return not any(_blocks(rule, rule.check(subject)) for rule in blocking)


def mode_of(spec: WorkflowSpec) -> Mode:
    """Return how the agents of a workflow work together."""
    if spec.board is not None:
        return "board"
    return "conversation" if spec.flow is None else "flow"


def check(
    subject: Subject, *, locate: Locate = nowhere, broken: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Apply every rule to a workflow and return what was found."""
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
    """Order findings as a reader meets them: by file, line, column, then code."""
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
