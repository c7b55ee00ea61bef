"""The notes that each event adds to the record of a turn, or of the run itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from weft.engine.events import (
    NO_USAGE,
    ContextAssembled,
    ContextFetched,
    DocumentWritten,
    Event,
    EventData,
    MessageSent,
    ModelConsulted,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    SurfaceShown,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    Usage,
    VariableSet,
)
from weft.inspect.board import BoardRun, BoardTurn
from weft.inspect.calls import (
    DocumentRecord,
    FetchRecord,
    ToolUse,
    consultation_record,
    fetch_records,
    hook_edits,
    run_continues,
    surface_record,
)
from weft.inspect.flow import StepTurn
from weft.inspect.handoffs import HandoffRecord, Judgement
from weft.inspect.steps import Step, waited_seconds
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model. `answered` is the event of its answer; None while there is none."""

    call: int
    seq: int
    at: int
    #: About how many tokens were sent.
    sent_tokens: int | None
    answered: int | None = None
    seconds: float | None = None
    text: str = ""
    tools: tuple[str, ...] = ()
    model: str = ""
    answerer: str = ""
    #: Why the reply ends where it ends; empty where it was simply done.
    finish: str = ""
    #: Of a fallback: which model was to answer and why it did not.
    instead_of: str = ""
    #: Tokens and cost; None where the provider did not report them.
    usage: Usage = NO_USAGE
    error: str | None = None
    attempts: int = 1
    #: Why the reply was not taken.
    refused: str | None = None
    #: What a person reads of a structured reply, and why earlier attempts gave no answer.
    shown: str | None = None
    retries: tuple[str, ...] = ()


@dataclass(slots=True)
class TurnRecord:
    """One turn. What was judged, and handed off, is that between its end and the next turn.

    It is filled while the events of the run are read.
    """

    number: int
    agent: str
    seq: int
    at: int
    #: The event that ended it; None while it is under way, or if the run ended in it.
    ended: int | None = None
    #: From its beginning to its end, without the time it waited for people to answer.
    seconds: float | None = None
    waited_seconds: float = 0.0
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    tools: list[ToolUse] = field(default_factory=list[ToolUse])
    #: The functions that were called at its boundaries: before it, around its replies, after it.
    points: list[ToolUse] = field(default_factory=list[ToolUse])
    #: The variables that were set, in the order of their first values.
    variables: list[str] = field(default_factory=list[str])
    handoffs: list[HandoffRecord] = field(default_factory=list[HandoffRecord])
    #: Why it came to no end of its own, if it did not, and the group it was a member of.
    error: str | None = None
    group: str = ""
    #: What is sent to its model beside the context: settings by name, the seed as a number.
    #: Turns copied by a fork had the seed of another run: they show the declared seed.
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fetched: list[FetchRecord] = field(default_factory=list[FetchRecord])
    #: What the agent said after its hooks, if it has any that see its replies.
    sent: str | None = None
    judged: list[Judgement] = field(default_factory=list[Judgement])
    #: On a board: what woke the agent, what it was shown, and what it published.
    board: BoardTurn | None = None
    #: Of a flow: which step it was, which attempt, and what it was shown.
    step: StepTurn | None = None


@dataclass(slots=True)
class Page:
    """The record of a turn, or of the run itself, while its events are read."""

    workflow: Workflow
    record: TurnRecord
    #: Of an activation on a board, and of the run of a board itself.
    board: BoardTurn | BoardRun | None = None
    app: str = ""
    calls: dict[int, ModelCall] = field(default_factory=dict[int, ModelCall])
    #: The calls of tools and those at boundaries.
    tools: dict[str, ToolUse] = field(default_factory=dict[str, ToolUse])
    #: What was written to documents.
    documents: list[DocumentRecord] = field(default_factory=list[DocumentRecord])
    #: What people were asked, and what they answered.
    requests: list[Event] = field(default_factory=list[Event])

    def end(self, event: Event) -> None:
        """Record when the turn ended."""
        record = self.record
        record.ended = event.seq
        record.waited_seconds = waited_seconds(self.requests, event.at)
        record.seconds = seconds(record.at, event) - record.waited_seconds

    def finish(self) -> None:
        """Add the calls to the record."""
        self.record.calls = list(self.calls.values())
        for use in self.tools.values():
            (self.record.points if use.at_boundary else self.record.tools).append(use)


def _add_call(page: Page, step: Step, data: ContextAssembled) -> None:
    tokens: Any = data.manifest.get("tokens")
    page.calls[data.call] = ModelCall(data.call, step.event.seq, step.event.at, tokens)
    if page.record.board is not None:
        page.record.board.add_left_out(data.call, data.manifest)


def _add_reply(page: Page, step: Step, data: ModelReplied) -> None:
    event = step.event
    call = _open_call(page, data)
    if call is None:
        return
    page.calls[data.call] = replace(
        call,
        answered=event.seq,
        seconds=seconds(call.at, event),
        text=data.text,
        tools=tuple(request.tool for request in data.tool_requests),
        model=data.model,
        answerer=data.answerer,
        finish=data.finish,
        instead_of=data.instead_of,
        usage=data.usage,
        shown=data.shown,
        retries=tuple(data.retries),
    )
    for request in data.tool_requests:
        page.tools[request.id] = ToolUse(
            request.id, request.tool, request.arguments, seq=event.seq, at=event.at
        )


def _add_model_error(page: Page, step: Step, data: ModelFailed) -> None:
    event = step.event
    call = _open_call(page, data)
    if call is not None:
        page.calls[data.call] = replace(
            call,
            answered=event.seq,
            seconds=seconds(call.at, event),
            error=data.error,
            attempts=data.attempts,
            retries=tuple(data.retries),
        )


def _open_call(page: Page, data: ModelReplied | ModelFailed) -> ModelCall | None:
    """Return the call that is answered; None for a late or second answer."""
    call = page.calls.get(data.call)
    late = call is None or call.answered is not None
    return None if late else call


def _add_refusal(page: Page, _step: Step, data: OutputRefused) -> None:
    call = page.calls.get(data.call)
    if call is not None:
        page.calls[data.call] = replace(call, refused=data.fault)


def _add_tool_call(page: Page, step: Step, data: ToolCalled) -> None:
    page.tools[data.id] = ToolUse(
        data.id,
        data.tool,
        data.arguments,
        seq=step.event.seq,
        at=step.event.at,
        auto=data.auto,
        hook=data.hook,
        variable=data.variable,
    )


def _add_tool_result(page: Page, step: Step, data: ToolReturned) -> None:
    use = page.tools.get(data.id)
    if use is not None and use.outcome == "open":
        page.tools[data.id] = replace(
            use,
            outcome="returned",
            **_durations(page, use, step.event),
            value=data.value,
            progress=data.progress,
            edits=hook_edits(page.workflow, step, data) if use.at_boundary else (),
        )


def _add_tool_error(page: Page, step: Step, data: ToolFailed) -> None:
    use = page.tools.get(data.id)
    if use is not None and use.outcome == "open":
        page.tools[data.id] = replace(
            use,
            outcome=data.kind,
            **_durations(page, use, step.event),
            error=data.error,
            went_on=run_continues(step),
        )


def _durations(page: Page, use: ToolUse, ended: Event) -> dict[str, float]:
    """Return how long a call worked, and how long it waited for people."""
    waited = waited_seconds(page.requests, ended.at, use.id)
    return {"seconds": seconds(use.at, ended) - waited, "waited_seconds": waited}


def _add_request(page: Page, step: Step, _data: EventData) -> None:
    page.requests.append(step.event)


def _add_consultation(page: Page, step: Step, data: ModelConsulted) -> None:
    use = page.tools.get(data.call)
    if use is not None:
        asked = (*use.consulted, consultation_record(step, data))
        page.tools[data.call] = replace(use, consulted=asked)


def _add_surface(page: Page, step: Step, data: SurfaceShown) -> None:
    use = page.tools.get(data.call)
    if use is not None:
        page.tools[data.call] = replace(use, surfaces=(*use.surfaces, surface_record(step, data)))


def _add_message(page: Page, _step: Step, data: MessageSent) -> None:
    page.record.sent = data.text


def _add_fetched(page: Page, step: Step, data: ContextFetched) -> None:
    found = tuple(fetch_records(page.workflow, step.event, data))
    if page.record.board is not None:
        page.record.board.add_fetched(data)
    # A tool may have read something once more.
    use = next((use for use in page.tools.values() if use.seq == step.event.cause), None)
    if use is None or step.event.actor != f"tool:{use.tool}":
        page.record.fetched += found
    else:
        page.tools[use.id] = replace(use, fetched=(*use.fetched, *found))


def _add_document(page: Page, step: Step, data: DocumentWritten) -> None:
    event = step.event
    page.documents.append(DocumentRecord(event.seq, event.at, data.name, data.seq, data.fault))


def _add_variable(page: Page, _step: Step, data: VariableSet) -> None:
    if data.name not in page.record.variables:
        page.record.variables.append(data.name)


def _end_turn(page: Page, step: Step, _data: TurnEnded) -> None:
    page.end(step.event)


def _fail_turn(page: Page, step: Step, data: TurnFailed) -> None:
    page.record.error = data.error
    if step.event.turn:  # The run itself continues to its end.
        page.end(step.event)


def seconds(since: int, event: Event) -> float:
    return (event.at - since) / 1000


_Note: TypeAlias = Callable[[Page, Step, Any], None]

#: What each kind adds to a page.
NOTES: Final[dict[type[EventData], _Note]] = {
    ContextAssembled: _add_call,
    ModelReplied: _add_reply,
    ModelFailed: _add_model_error,
    OutputRefused: _add_refusal,
    ToolCalled: _add_tool_call,
    ToolReturned: _add_tool_result,
    ToolFailed: _add_tool_error,
    RequestOpened: _add_request,
    RequestAnswered: _add_request,
    RequestExpired: _add_request,
    ModelConsulted: _add_consultation,
    SurfaceShown: _add_surface,
    MessageSent: _add_message,
    ContextFetched: _add_fetched,
    DocumentWritten: _add_document,
    VariableSet: _add_variable,
    TurnEnded: _end_turn,
    TurnFailed: _fail_turn,
}
