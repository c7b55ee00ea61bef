"""Running the rules: a subject in, findings out, each at its place."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Final, Protocol

from weft.catalogue import CATALOGUE
from weft.check.subject import CheckRule, Hit, Subject, rules_of
from weft.findings import Finding, Path, Place

#: The modules with rules, `weft.check.rules.<name>`.
_MODULES: Final = (
    "auto", "bind", "board", "board_waiting", "conditions", "environment", "explored", "exposure",
    "flow", "flow_state", "groups", "handoffs", "hooks", "names", "outputs",
    "secrets", "servers", "sources", "start", "states", "tools", "triggers", "ui", "usage",
    "variables", "writes",
)  # fmt: skip

RULES: Final[tuple[CheckRule, ...]] = rules_of(
    *(import_module(f"weft.check.rules.{name}") for name in _MODULES)
)

#: Rules about what boards and flows do not have, beside those about handoffs: fixed targets,
#: groups, replies that call tools. BOARD001 and FLOW001 speak where it is declared all the same.
#: And fields of artifacts may be called like variables, which agents are not shown then.
_OF_CONVERSATIONS: Final = frozenset(
    {"EXPO004", "EXPO005", "NAME008", "NAME010", "TOOL008", "TOOL009", "TOOL012"}
)
#: Replies on a board are artifacts.
_NOT_OF_BOARDS: Final = _OF_CONVERSATIONS | {"BIND007"}


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


def check(
    subject: Subject, *, locate: Locate = nowhere, broken: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Apply every rule to a workflow.

    `broken` names the fields of the spec whose files could not be read.
    """
    # Without any agent every name of one is unknown: one finding says so instead.
    missing = {"agents"} if not subject.spec.agents and subject.spec.flow is None else set[str]()
    readable = [
        rule
        for rule in RULES
        if rule.reads.isdisjoint(broken)
        and (rule.reads.isdisjoint(missing) or rule.code == NO_AGENTS)
        and _applies(rule, subject)
    ]
    return sort_findings(
        finding
        for rule in readable
        for finding in findings_of(rule.code, rule.check(subject), locate)
    )


def _applies(rule: CheckRule, subject: Subject) -> bool:
    spec = subject.spec
    if spec.board is None and spec.flow is None:
        return True
    left_out = _OF_CONVERSATIONS if spec.board is None else _NOT_OF_BOARDS
    return not rule.code.startswith("HAND") and rule.code not in left_out


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
