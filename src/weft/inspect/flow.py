"""What happened in a flow: attempts at steps, what they were shown, and where branches led."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from weft.engine.events import (
    Branched,
    ContextFetched,
    Event,
    Forked,
    Joined,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    TimerSet,
    ToolReturned,
    TurnFailed,
    TurnStarted,
    Values,
    VariableSet,
)
from weft.engine.events.kinds import STEP_HOOKS
from weft.engine.flow.failure import RETRY
from weft.engine.flow.plan import ApprovalPlan, BranchPlan, StepPlan, nodes_of
from weft.engine.state import State
from weft.findings import Json
from weft.inspect.steps import Step
from weft.inspect.variables import HIDDEN_VALUE, ValueSet, value_set
from weft.runtime.workflow import Workflow
from weft.spec.agents import estimate_tokens
from weft.spec.flow import Flow, Fork
from weft.spec.variables import DerivedSource

StepKind: TypeAlias = Literal["step", "approval", "compensation"]


@dataclass(frozen=True, slots=True)
class HitRecord:
    """A passage that was found: how well it fits, and where it comes from."""

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
    """Where a flow went on, and why: `why` as in the event."""

    seq: int
    at: int
    source: str
    target: str
    why: str
    #: The path of a fork in which that was.
    path: str
    #: Of a branch, the case; of a loop, how often it was gone through before.
    case: str = ""
    iterations: int = 0


@dataclass(frozen=True, slots=True)
class ForkRecord:
    """Paths side by side, and how each ended; None while they are not joined."""

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
    """Return how often a step is tried at most."""
    plan = workflow.compiled.flow
    node = plan.nodes.get(name) if plan else None
    retry = node.step.retry if isinstance(node, StepPlan) else None
    return retry.attempts if retry is not None else 1


def step_kind(workflow: Workflow, data: TurnStarted) -> StepKind:
    if data.undoes:
        return "compensation"
    plan = workflow.compiled.flow
    node = plan.nodes.get(data.step) if plan else None
    return "approval" if isinstance(node, ApprovalPlan) else "step"


def case_of(workflow: Workflow, data: Branched) -> str:
    """Return the value that led where a branch led; all of them where several lead there."""
    plan = workflow.compiled.flow
    node = plan.nodes.get(data.source) if plan else None
    if data.why != "case" or not isinstance(node, BranchPlan):
        return "otherwise" if data.why == "otherwise" else ""
    return " or ".join(_word(value) for value, target in node.cases if target == data.target)


def _word(value: Json) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


@dataclass(slots=True)
class StepTurn:
    """One attempt at a step, a question for approval, or what undoes a step.

    It is filled while the events of the run are read.
    """

    step: str
    kind: StepKind
    #: The path of a fork that contains it; empty on the main line.
    path: str
    attempt: int
    #: How many attempts there are at most.
    attempts: int
    #: Of a compensation: the turn that it undoes.
    undoes: int
    #: What it set; of an attempt that failed, nothing.
    sets: list[ValueSet] = field(default_factory=list[ValueSet])
    confidence: float | None = None
    segments: tuple[SegmentRecord, ...] = ()
    left_out: tuple[Values, ...] = ()
    asked: list[AskedRecord] = field(default_factory=list[AskedRecord])
    #: Of a failure: attempt, type, message, stack, and a hash of what the step was given.
    failure: Values | None = None
    #: How long it waited then for the next attempt.
    retry_seconds: float | None = None

    def add(self, workflow: Workflow, event: Event) -> None:
        """Record what happened in the attempt."""
        match event.data:
            case ContextFetched(step=given) if given is not None:
                context = cast("Mapping[str, Any]", given.get("context") or {})
                self.segments = tuple(map(_segment, context.get("segments", ())))
                self.left_out = tuple(context.get("left_out", ()))
            case ToolReturned(id=id_, value=value) if _is_step(id_):
                self.confidence = cast("Mapping[str, Any]", value).get("confidence")
            case VariableSet() as data:
                self.sets.append(value_set(workflow, event, data))
            case TurnFailed(error=error, kind=kind, failure=failure):
                known: Values = {"step": self.step, "attempt": self.attempt}
                self.failure = failure or {**known, "type": kind, "message": error}
                self.sets.clear()
            case RequestOpened(addressee=addressee, expires_at=until):
                self.asked.append(AskedRecord(event.seq, event.at, addressee, until))
            case RequestAnswered(value=value, user=user):
                given = cast("Any", value)
                decision = str(given.get("decision")) if isinstance(value, dict) else ""
                self._close_request("answered", user, decision)
            case RequestExpired():
                self._close_request("expired")
            case _:
                pass

    def _close_request(
        self, outcome: Literal["answered", "expired"], user: str = "", decision: str = ""
    ) -> None:
        last = self.asked[-1]
        self.asked[-1] = replace(last, outcome=outcome, user=user, decision=decision)


def step_turn(workflow: Workflow, data: TurnStarted) -> StepTurn:
    """Return the record of an attempt that begins."""
    return StepTurn(
        step=data.step,
        kind=step_kind(workflow, data),
        path=path_of(workflow, data.step),
        attempt=data.attempt,
        attempts=attempts_of(workflow, data.step),
        undoes=data.undoes,
    )


def _is_step(call: str) -> bool:
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
    """A flow beside its steps; filled while the events of the run are read."""

    branches: list[BranchRecord] = field(default_factory=list[BranchRecord])
    forks: list[ForkRecord] = field(default_factory=list[ForkRecord])

    def add(self, workflow: Workflow, step: Step) -> None:
        """Record where the flow continues."""
        event = step.event
        match event.data:
            case Branched() as data:
                self.branches.append(_branch(workflow, step, data))
            case Forked(name=name, members=members):
                self.forks.append(ForkRecord(event.seq, event.at, name, tuple(members)))
            case Joined(fork=fork, results=results):
                self.forks = [
                    replace(record, joined=event.seq, results=results)
                    if record.seq == fork
                    else record
                    for record in self.forks
                ]
            case _:
                pass


def _branch(workflow: Workflow, step: Step, data: Branched) -> BranchRecord:
    return BranchRecord(
        seq=step.event.seq,
        at=step.event.at,
        source=data.source,
        target=data.target,
        why=data.why,
        path=_lane_path(step.before, data.lane),
        case=case_of(workflow, data),
        iterations=_iterations(step.before, data),
    )


def _lane_path(state: State, key: str) -> str:
    lane = state.flow.lanes.get(key) if state.flow is not None else None
    return lane.path if lane is not None else ""


def _iterations(state: State, data: Branched) -> int:
    lane = state.flow.lanes.get(data.lane) if state.flow is not None else None
    return lane.loops.get(data.source, 0) if lane is not None else 0


def retry_delay(event: Event) -> tuple[int, float] | None:
    """Return the turn whose attempt is made again by a timer, and in how many seconds."""
    data = event.data
    if not isinstance(data, TimerSet) or data.why != "flow" or not data.id.startswith(RETRY):
        return None
    return int(data.id.removeprefix(RETRY)), (data.at - event.at) / 1000


def failed_turn(events: Iterable[Event], reason: str) -> int:
    """Return the turn for which a flow has failed, as it said; 0 where it was for none."""
    failed = (
        event
        for event in events
        if isinstance(event.data, TurnFailed) and event.data.error == reason
    )
    return max((event.turn for event in failed), default=0)


def shown_values(workflow: Workflow, state: State) -> dict[str, Json] | None:
    """Return the state of a flow as a person may see it; None for any other run."""
    if workflow.compiled.flow is None:
        return None
    return {
        name: HIDDEN_VALUE if variable.secret else state.variables.get(name)
        for name, variable in workflow.spec.variables.items()
        if isinstance(variable.source, DerivedSource)
    }
