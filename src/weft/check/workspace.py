"""Family PACK: whether the workflows and packs of a workspace fit together."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

from weft.check.run import Locate, findings_of, nowhere, sort_findings
from weft.check.spelling import did_you_mean
from weft.check.subject import Hit, find_cycles
from weft.findings import Finding
from weft.ids import nearest
from weft.spec.workflow import Pack, WorkflowSpec

#: Finding similar names is slow: with more unknown names than this there are no suggestions.
_MOST_SUGGESTIONS: Final = 20


@dataclass(frozen=True)
class WorkspaceSubject:
    """The workflows of a workspace by name, and its packs by file name."""

    workflows: Mapping[str, WorkflowSpec]
    packs: Mapping[str, Pack] = field(default_factory=dict[str, Pack])

    @cached_property
    def requirements(self) -> dict[str, tuple[str, ...]]:
        return {
            name: spec.orchestrator.workflow_dependencies.required_workflows
            for name, spec in self.workflows.items()
        }

    @cached_property
    def suggestions(self) -> dict[str, tuple[str, ...]]:
        named = [other for listed in self.requirements.values() for other in listed]
        named += [member.name for pack in self.packs.values() for member in pack.workflows]
        unknown = [name for name in dict.fromkeys(named) if name not in self.workflows]
        return {name: did_you_mean(name, self.workflows) for name in unknown[:_MOST_SUGGESTIONS]}


WorkspaceCheck: TypeAlias = Callable[[WorkspaceSubject], Iterable[Hit]]


def check_workspace(subject: WorkspaceSubject, *, locate: Locate = nowhere) -> tuple[Finding, ...]:
    """Apply the rules about several packages at once.

    Paths of the findings start with the name of a workflow or the file name of a pack.
    """
    return sort_findings(
        finding
        for code, check in WORKSPACE_RULES.items()
        for finding in findings_of(code, check(subject), locate)
    )


def required_exists(subject: WorkspaceSubject) -> Iterator[Hit]:
    """PACK001: a required workflow is in the workspace."""
    for name, required in subject.requirements.items():
        for index, other in enumerate(required):
            if other not in subject.workflows:
                yield Hit(
                    (name, *_REQUIRED, index),
                    f'{name} requires unknown workflow "{other}"',
                    hint=subject.suggestions.get(other) or ("add the workflow to the workspace",),
                )


def dependencies_end(subject: WorkspaceSubject) -> Iterator[Hit]:
    """PACK002: no workflow waits for itself."""
    for cycle in find_cycles(subject.requirements):
        first, second = cycle[0], (*cycle, cycle[0])[1]
        yield Hit(
            (first, *_REQUIRED, subject.requirements[first].index(second)),
            f"no run of {first} could ever start: {' -> '.join((*cycle, first))}",
            cause=("each of these workflows requires the next one",),
            hint=("take one of these requirements away",),
        )


_REQUIRED: Final = ("orchestrator", "workflow_dependencies", "required_workflows")


def member_exists(subject: WorkspaceSubject) -> Iterator[Hit]:
    """PACK003: the members of a pack are in the workspace."""
    for file, pack in subject.packs.items():
        for index, member in enumerate(pack.workflows):
            if member.name not in subject.workflows:
                yield Hit(
                    (file, "workflows", index, "name"),
                    f'the pack {pack.pack_name} has unknown workflow "{member.name}"',
                    hint=subject.suggestions.get(member.name)
                    or ("add the workflow to the workspace, or take it out of the pack",),
                )


def one_primary(subject: WorkspaceSubject) -> Iterator[Hit]:
    """PACK004: a pack has exactly one primary workflow."""
    for file, pack in subject.packs.items():
        primary = [member.name for member in pack.workflows if member.role == "primary"]
        if len(primary) == 1:
            continue
        found = f"{len(primary)} primary workflows: {', '.join(primary[:5])}"
        yield Hit(
            (file, "workflows"),
            f"the pack {pack.pack_name} has {found if primary else 'no primary workflow'}",
            hint=('give exactly one of its workflows the role "primary"',),
        )


def journey_stays_inside(subject: WorkspaceSubject) -> Iterator[Hit]:
    """PACK005: a journey leads through members of its pack."""
    for file, pack in subject.packs.items():
        members = frozenset(member.name for member in pack.workflows)
        for number, journey in enumerate(pack.journeys):
            for step, side_by_side in enumerate(journey.steps):
                for index, name in enumerate(side_by_side):
                    if not _is_inside(subject, members, name):
                        yield Hit(
                            (file, "journeys", number, "steps", step, index),
                            f'the journey {journey.name} leads to "{name}", '
                            f"which is not in the pack {pack.pack_name}",
                            hint=did_you_mean(name, members)
                            or (f'add "{name}" to the workflows of the pack',),
                        )


def _is_inside(subject: WorkspaceSubject, members: frozenset[str], name: str) -> bool:
    """Return whether a workflow is in a pack, also if misspelt there (PACK003 reports that)."""
    misspelt = members - subject.workflows.keys()
    return name in members or (name in subject.workflows and nearest(name, misspelt) is not None)


WORKSPACE_RULES: Final[dict[str, WorkspaceCheck]] = {
    "PACK001": required_exists,
    "PACK002": dependencies_end,
    "PACK003": member_exists,
    "PACK004": one_primary,
    "PACK005": journey_stays_inside,
}
