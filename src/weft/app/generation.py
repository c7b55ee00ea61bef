"""A generation: the plans, packages and decisions of a run of the Generator."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic import ValidationError

from weft.check.problems import find_problems
from weft.engine.events import Event, ModelReplied
from weft.engine.state import State
from weft.errors import UsageError
from weft.findings import Finding, Json, Path, Place
from weft.generator.forms.skeleton import open_places
from weft.generator.plans.faults import Fault, fault_finding, path_text, text_path
from weft.generator.plans.plan import make_plan, plan_hash
from weft.generator.plans.rules import plan_faults
from weft.generator.steps import STEP_OF
from weft.packages.text import documents
from weft.spec.patterns import PATTERNS
from weft.spec.plan import ActionPlan
from weft.spec.tools import UiTool
from weft.spec.workflow import WorkflowSpec

#: The package that generates.
GENERATOR: Final = "Generator"

#: The tools whose questions are the interview, the approval of a plan, and the second approval.
INTERVIEW: Final = "interview"
APPROVALS: Final = frozenset({"mermaid_sequence_diagram", "action_plan"})
DOWNLOAD: Final = "download"

#: The decisions on a plan.
ACCEPTED: Final = "accepted"
ADJUST: Final = "adjustments_requested"
EDITED: Final = "edited"

#: The steps of --until, and the parts of a plan that can be commented on.
StepName: TypeAlias = Literal[
    "interview", "pattern", "strategy", "blueprint", "agents", "plan", "files"
]
PlanPart: TypeAlias = Literal["pattern", "strategy", "blueprint", "agents"]

#: The agent whose handoff ends a step; the other two end with a question.
STEP_AGENTS: Final[dict[StepName, str]] = {
    "interview": "InterviewAgent",
    "pattern": "PatternAgent",
    "strategy": "WorkflowStrategyAgent",
    "blueprint": "WorkflowArchitectAgent",
    "agents": "WorkflowImplementationAgent",
}

#: The most errors of a plan in one message.
_MAX_FAULTS: Final = 8

#: Words about the pattern, in a comment.
_OF_PATTERN: Final = re.compile(
    rf"\b(pattern|{'|'.join(pattern.title for pattern in PATTERNS)})\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the plan that was offered, and its hash."""

    number: int
    hash: str
    plan: ActionPlan


@dataclass(frozen=True, slots=True)
class Generation:
    """The variables of a run of the Generator."""

    run: str
    rounds: tuple[Round, ...]
    comments: tuple[Mapping[str, Json], ...]
    acceptance: str
    #: Pieces of a model's work that are not in the packages: file, piece, reason.
    left_out: tuple[Mapping[str, Json], ...]
    promotion: str
    #: Whether the run started with a plan.
    plan_given: bool
    repairs: int
    #: Why the packages are compiled from the plan, though a model was asked.
    compiled_because: str
    #: Packages with their files, the pack if there are several, and their report.
    bundle: Mapping[str, Any]
    _values: Mapping[str, Json]

    @property
    def skeleton(self) -> tuple[str, ...]:
        """Why the plan or its packages are a skeleton; empty if they are not."""
        places = open_places(self.rounds[-1].plan) if self.rounds else ()
        return (*places, *([self.compiled_because] if self.compiled_because else ()))

    @property
    def unanswered(self) -> tuple[Mapping[str, str], ...]:
        """What differs from the plan without a reason: key and text."""
        return tuple(each for each in self.bundle.get("questions") or () if not each["answer"])

    @property
    def is_promotable(self) -> bool:
        """Whether the checks found no error in the packages."""
        return bool(self.bundle.get("promotable", True))

    def is_past(self, step: StepName) -> bool:
        """Return whether a step is done."""
        if step == "plan":
            return self.acceptance == "accepted"
        if step == "files":
            return self.promotion != "open"
        return bool(self._values.get(STEP_OF[STEP_AGENTS[step]].writes))


def read_generation(state: State) -> Generation:
    """Return the generation of a run."""
    values = state.variables
    return Generation(
        run=state.run,
        rounds=tuple(_rounds(values)),
        comments=_entries(values.get("plan_comments")),
        acceptance=str(values.get("action_plan_acceptance") or "pending"),
        left_out=_entries(values.get("left_out")),
        promotion=str(values.get("promotion") or "open"),
        plan_given=values.get("plan_given") is True,
        repairs=cast("int", values.get("repair_round") or 0),
        compiled_because=str(values.get("compiled_because") or ""),
        bundle=cast("dict[str, Any]", values.get("bundle") or {}),
        _values=values,
    )


def _rounds(values: Mapping[str, Json]) -> Iterator[Round]:
    """Return the plan of every round; the current one may not be stored yet."""
    number, last = 0, ""
    for number, entry in enumerate(_entries(values.get("plan_rounds")), start=1):
        last = str(entry["hash"])
        yield Round(number, last, ActionPlan.model_validate(entry["plan"]))
    if values.get("action_plan"):
        plan = ActionPlan.model_validate(values["action_plan"])
        if plan_hash(plan) != last:
            yield Round(number + 1, plan_hash(plan), plan)


def _entries(value: Json) -> tuple[Mapping[str, Json], ...]:
    return tuple(cast("list[dict[str, Json]]", value or []))


def answer_fields(spec: WorkflowSpec) -> dict[str, Mapping[str, Any]]:
    """Return the fields that can be answered beforehand, with their schemas.

    The hash of a plan and an edited plan are not: both are unknown before the plan exists.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for tool in spec.tools:
        if isinstance(tool, UiTool) and tool.response_schema:
            found |= cast("Mapping[str, Any]", tool.response_schema.get("properties") or {})
    return {name: schema for name, schema in found.items() if name not in ("plan", "plan_hash")}


@dataclass(frozen=True, slots=True)
class PartOrigin:
    """The model that made the part of an agent, its replies, and the model it replaced."""

    agent: str
    answerer: str
    model: str
    replies: int
    instead_of: str = ""


def part_makers(events: Iterable[Event]) -> tuple[PartOrigin, ...]:
    """Return the maker of each part; for repeated parts, the last one."""
    made: dict[str, PartOrigin] = {}
    for event in events:
        agent = event.actor.removeprefix("agent:")
        if isinstance(data := event.data, ModelReplied) and agent in STEP_OF:
            replies = made[agent].replies + 1 if agent in made else 1
            made[agent] = PartOrigin(agent, data.answerer, data.model, replies, data.instead_of)
    return tuple(made[agent] for agent in STEP_OF if agent in made)


def read_plan(file: str, text: str) -> ActionPlan:
    """Read a plan from a file; raises UsageError with all errors at their places."""
    document, name = documents.read(file, text.encode()), f"the plan in {file}"
    if not document.ok:
        faults = [f"{finding.place}: {finding.message}" for finding in document.findings]
        raise _plan_error(name, faults, document.findings)
    return read_plan_data(document.data, name=name, place=document.place)


def read_plan_data(
    data: Json,
    *,
    name: str = "the plan",
    version: int | None = None,
    place: Callable[[Path], Place] | None = None,
) -> ActionPlan:
    """Read a plan; raises UsageError with all errors.

    The diagram is drawn again from the plan, so that it need not be edited. `place` returns the
    place of a path in the text of the plan; without a text, findings name the path.
    """
    if not isinstance(data, dict):
        raise _plan_error(name, ["it is not an object"])

    def refuse(faults: Sequence[Fault]) -> UsageError:
        found = tuple(
            fault_finding(fault, place(text_path(fault.path)) if place else Place(fault.path))
            for fault in faults
        )
        return _plan_error(name, list(map(str, faults)), found)

    # An edited plan may lack the diagram.
    drawn: Json = {"workflow_name": "-", "mermaid_diagram": "-"}
    try:
        given = ActionPlan.model_validate({"MermaidSequenceDiagram": drawn, **data})
    except ValidationError as error:
        problems = find_problems(error, ActionPlan)
        raise refuse(
            [
                Fault(path_text(problem.path), problem.message, "; ".join(problem.hint))
                for problem in problems
            ]
        ) from error
    number = given.version if version is None else version
    plan = make_plan(number, given.selection, given.strategy, given.blueprint, given.modules)
    if faults := plan_faults(plan):
        raise refuse(faults)
    return plan


def _plan_error(name: str, faults: list[str], findings: tuple[Finding, ...] = ()) -> UsageError:
    more = [f"and {len(faults) - _MAX_FAULTS} more"] if len(faults) > _MAX_FAULTS else []
    return UsageError(
        f"{name} is invalid: {'; '.join([*faults[:_MAX_FAULTS], *more])}",
        hint="correct it, then try again",
        findings=findings,
    )


def plan_text(plan: ActionPlan) -> str:
    """Return a plan as YAML to edit, without the diagram, which is drawn from the rest."""
    data = plan.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data.pop("MermaidSequenceDiagram", None)
    return documents.dump(data, "yaml")


def commented_part(text: str, about: PlanPart | None) -> PlanPart:
    """Return the part that a comment is about."""
    return about or ("pattern" if _OF_PATTERN.search(text) else "strategy")


def plan_values(plan: ActionPlan) -> dict[str, Json]:
    """Return the initial values of a run that starts with a plan."""
    return {"action_plan": plan.model_dump(mode="json", by_alias=True)}
