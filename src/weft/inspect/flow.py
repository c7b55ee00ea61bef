"""Records of a flow: attempts at steps, their contexts, branches and forks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from weft.engine import events as kinds
from weft.engine.events import Event, Values
from weft.engine.events.kinds import STEP_HOOKS
from weft.engine.flow.failure import RETRY
from weft.engine.flow.plan import ApprovalPlan, BranchPlan, StepPlan, nodes_of
from weft.engine.state import State
from weft.findings import Json
from weft.inspect.steps import Step, record_of
from weft.inspect.variables import HIDDEN_VALUE, ValueSet, value_set
from weft.runtime.workflow import Workflow
from weft.spec.agents import estimate_tokens
from weft.spec.flow import Flow, Fork
from weft.spec.variables import DerivedSource

StepKind: TypeAlias = Literal["step", "approval", "compensation"]


@dataclass(frozen=True, slots=True)
class HitRecord:
    """A retrieved passage: its relevance and its source."""

    score: float
    source: str | None
    content: str
    metadata: Values | None = None


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """One piece of the context of a step."""

    kind: str
    name: str
    text: str
    tokens: int
    #: Of a collection: the passages, the best first. Of a board: the artifacts.
    hits: tuple[HitRecord, ...] = ()
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedRecord:
    """One person, role or group that was asked for approval, and the result."""

    seq: int
    at: int
    addressee: str
    expires_at: int | None
    outcome: Literal["open", "answered", "expired"] = "open"
    user: str = ""
    decision: str = ""


@dataclass(frozen=True, slots=True)
class BranchRecord:
    """Where a flow continued, and why; `why` as in the event."""

    seq: int
    at: int
    source: str
    target: str
    why: str
    #: The path of the fork that contains it.
    path: str
    #: Of a branch, the case; of a loop, the number of completed iterations.
    case: str = ""
    iterations: int = 0


@dataclass(frozen=True, slots=True)
class ForkRecord:
    """Parallel paths, and the result of each; None until they are joined."""

    seq: int
    at: int
    name: str
    paths: tuple[str, ...]
    joined: int | None = None
    results: Mapping[str, str] | None = None


def paths_by_name(flow: Flow) -> dict[str, str]:
    """Return the innermost fork path of each node; nodes on the main line have none."""
    found: dict[str, str] = {}
    for fork in nodes_of(flow):
        for path in fork.paths if isinstance(fork, Fork) else ():
            within = Flow.model_construct(steps=path.steps, on_failure=path.on_failure)
            found |= {node.name: path.name for node in nodes_of(within)}
    return found


def path_of(workflow: Workflow, name: str) -> str:
    flow = workflow.spec.flow
    return paths_by_name(flow).get(name, "") if flow is not None else ""


def attempts_of(workflow: Workflow, name: str) -> int:
    """Return the largest number of attempts of a step."""
    plan = workflow.compiled.flow
    node = plan.nodes.get(name) if plan else None
    retry = node.step.retry if isinstance(node, StepPlan) else None
    return retry.attempts if retry is not None else 1


def _step_kind(workflow: Workflow, data: kinds.TurnStarted) -> StepKind:
    if data.undoes:
        return "compensation"
    plan = workflow.compiled.flow
    node = plan.nodes.get(data.step) if plan else None
    return "approval" if isinstance(node, ApprovalPlan) else "step"


def case_of(workflow: Workflow, data: kinds.Branched) -> str:
    """Return the value for which a branch chose its path; all values that lead to this path."""
    plan = workflow.compiled.flow
    node = plan.nodes.get(data.source) if plan else None
    if data.why != "case" or not isinstance(node, BranchPlan):
        return "otherwise" if data.why == "otherwise" else ""
    return " or ".join(_word(value) for value, target in node.cases if target == data.target)


def _word(value: Json) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


@dataclass(slots=True)
class StepTurn:
    """One attempt at a step, a request for approval, or a compensation.

    It is filled while the events of the run are read.
    """

    step: str
    kind: StepKind
    #: The path of a fork that contains it; empty on the main line.
    path: str
    attempt: int
    #: The largest number of attempts.
    attempts: int
    #: Of a compensation: the turn it undoes.
    undoes: int
    #: The fields it set; none for a failed attempt.
    sets: list[ValueSet] = field(default_factory=list[ValueSet])
    confidence: float | None = None
    segments: tuple[SegmentRecord, ...] = ()
    left_out: tuple[Values, ...] = ()
    asked: list[AskedRecord] = field(default_factory=list[AskedRecord])
    #: Of a failure: attempt, type, message, stack, and the hash of the input state.
    failure: Values | None = None
    #: The delay before the next attempt.
    retry_seconds: float | None = None

    def add(self, workflow: Workflow, event: Event) -> None:
        """Record what happened in the attempt."""
        match event.data:
            case kinds.ContextFetched(step=given) if given is not None:
                context = cast("Mapping[str, Any]", given.get("context") or {})
                self.segments = tuple(map(_segment, context.get("segments", ())))
                self.left_out = tuple(context.get("left_out", ()))
            case kinds.ToolReturned(id=id_, value=value) if is_step_call(id_):
                self.confidence = cast("Mapping[str, Any]", value).get("confidence")
            case kinds.VariableSet() as data:
                self.sets.append(value_set(workflow, event, data))
            case kinds.TurnFailed(error=error, kind=kind, failure=failure):
                known: Values = {"step": self.step, "attempt": self.attempt}
                self.failure = failure or {**known, "type": kind, "message": error}
                self.sets.clear()
            case kinds.RequestOpened():
                self.asked.append(record_of(AskedRecord, event))
            case kinds.RequestAnswered(value=value, user=user):
                given = cast("Any", value)
                decision = str(given.get("decision")) if isinstance(value, dict) else ""
                self._close_request("answered", user, decision)
            case kinds.RequestExpired():
                self._close_request("expired")
            case _:
                pass

    def _close_request(
        self, outcome: Literal["answered", "expired"], user: str = "", decision: str = ""
    ) -> None:
        last = self.asked[-1]
        self.asked[-1] = replace(last, outcome=outcome, user=user, decision=decision)


def step_turn(workflow: Workflow, data: kinds.TurnStarted) -> StepTurn:
    """Return the record of an attempt that begins."""
    kind, path = _step_kind(workflow, data), path_of(workflow, data.step)
    attempts = attempts_of(workflow, data.step)
    return StepTurn(data.step, kind, path, data.attempt, attempts, data.undoes)


def is_step_call(call: str) -> bool:
    """Return whether a call is one of the code of a step."""
    return call.partition("-")[0] in STEP_HOOKS


def _segment(given: Mapping[str, Any]) -> SegmentRecord:
    hits = given.get("hits", ())
    items = given.get("artifacts", ())
    return SegmentRecord(
        kind=given["kind"],
        name=given["name"],
        text=given["text"],
        tokens=estimate_tokens(given["text"]),
        hits=tuple(
            HitRecord(hit["score"], hit.get("source_id"), hit["content"], hit.get("metadata"))
            for hit in hits
        ),
        artifacts=tuple(f"{item.get('type')} {item.get('id') or ''}".strip() for item in items),
    )


@dataclass(slots=True)
class FlowRun:
    """The events of a flow outside its steps; filled while the run is read."""

    branches: list[BranchRecord] = field(default_factory=list[BranchRecord])
    forks: list[ForkRecord] = field(default_factory=list[ForkRecord])

    def add(self, workflow: Workflow, step: Step) -> None:
        """Record where the flow continues."""
        event = step.event
        match event.data:
            case kinds.Branched(source=source, lane=key) as data:
                lane = step.before.flow.lanes.get(key) if step.before.flow is not None else None
                branch = record_of(
                    BranchRecord,
                    event,
                    path=lane.path if lane is not None else "",
                    case=case_of(workflow, data),
                    iterations=lane.loops.get(source, 0) if lane is not None else 0,
                )
                self.branches.append(branch)
            case kinds.Forked(members=members):
                self.forks.append(record_of(ForkRecord, event, paths=tuple(members)))
            case kinds.Joined(fork=fork, results=results):
                self.forks = [
                    replace(record, joined=event.seq, results=results)
                    if record.seq == fork
                    else record
                    for record in self.forks
                ]
            case _:
                pass


def retry_delay(event: Event) -> tuple[int, float] | None:
    """Return the turn that a timer will retry, and the delay in seconds."""
    data = event.data
    if not isinstance(data, kinds.TimerSet) or data.why != "flow" or not data.id.startswith(RETRY):
        return None
    return int(data.id.removeprefix(RETRY)), (data.at - event.at) / 1000


def failed_turn(events: Iterable[Event], reason: str) -> int:
    """Return the turn that made a flow fail; 0 if it was none."""
    failed = (
        event
        for event in events
        if isinstance(event.data, kinds.TurnFailed) and event.data.error == reason
    )
    return max((event.turn for event in failed), default=0)


def shown_values(workflow: Workflow, state: State) -> dict[str, Json] | None:
    """Return the state of a flow without secrets; None for any other run."""
    if workflow.compiled.flow is None:
        return None
    return {
        name: HIDDEN_VALUE if variable.secret else state.variables.get(name)
        for name, variable in workflow.spec.variables.items()
        if isinstance(variable.source, DerivedSource)
    }
