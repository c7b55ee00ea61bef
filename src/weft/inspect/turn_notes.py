"""The notes that each event adds to the record of a turn, or of the run itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from weft.inspect.board import BoardNotes
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
from weft.inspect.flow import StepNotes
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


class Page:
    """The notes about a turn, or about the run itself, so far; calls by their id."""

    def __init__(self, workflow: Workflow, event: Event, agent: str = "") -> None:
        self.workflow = workflow
        self.event = event
        self.agent = agent
        self.ended: Event | None = None
        self.calls: dict[int, ModelCall] = {}
        #: Those of tools and those at boundaries.
        self.tools: dict[str, ToolUse] = {}
        self.fetched: list[FetchRecord] = []
        self.documents: list[DocumentRecord] = []
        #: What people were asked, and what they answered.
        self.requests: list[Event] = []
        self.judged: list[Judgement] = []
        self.sent: str | None = None
        self.variables: dict[str, None] = {}
        self.handoffs: list[HandoffRecord] = []
        self.error: str | None = None
        self.group = ""
        self.app = ""
        #: Of an activation on a board, and of the run of a board itself.
        self.board: BoardNotes | None = None
        #: Of an attempt at a step of a flow.
        self.step: StepNotes | None = None

    @property
    def points(self) -> list[ToolUse]:
        """The functions that were called at its boundaries."""
        return [use for use in self.tools.values() if use.at_boundary]

    @property
    def waited_seconds(self) -> float:
        """How long the turn waited for people, up to its end."""
        return waited_seconds(self.requests, self.ended.at) if self.ended else 0.0


def _assembled(page: Page, step: Step, data: ContextAssembled) -> None:
    tokens: Any = data.manifest.get("tokens")
    page.calls[data.call] = ModelCall(data.call, step.event.seq, step.event.at, tokens)
    if page.board is not None:
        page.board.assembled(data.call, data.manifest)


def _replied(page: Page, step: Step, data: ModelReplied) -> None:
    event = step.event
    call = _unanswered(page, data)
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


def _failed(page: Page, step: Step, data: ModelFailed) -> None:
    event = step.event
    call = _unanswered(page, data)
    if call is not None:
        page.calls[data.call] = replace(
            call,
            answered=event.seq,
            seconds=seconds(call.at, event),
            error=data.error,
            attempts=data.attempts,
            retries=tuple(data.retries),
        )


def _unanswered(page: Page, data: ModelReplied | ModelFailed) -> ModelCall | None:
    """Return the call that is answered; None for a late or second answer."""
    call = page.calls.get(data.call)
    late = call is None or call.answered is not None
    return None if late else call


def _refused(page: Page, _step: Step, data: OutputRefused) -> None:
    call = page.calls.get(data.call)
    if call is not None:
        page.calls[data.call] = replace(call, refused=data.fault)


def _tool_called(page: Page, step: Step, data: ToolCalled) -> None:
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


def _tool_returned(page: Page, step: Step, data: ToolReturned) -> None:
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


def _tool_failed(page: Page, step: Step, data: ToolFailed) -> None:
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


def _request(page: Page, step: Step, _data: EventData) -> None:
    page.requests.append(step.event)


def _consulted(page: Page, step: Step, data: ModelConsulted) -> None:
    use = page.tools.get(data.call)
    if use is not None:
        asked = (*use.consulted, consultation_record(step, data))
        page.tools[data.call] = replace(use, consulted=asked)


def _surface_shown(page: Page, step: Step, data: SurfaceShown) -> None:
    use = page.tools.get(data.call)
    if use is not None:
        page.tools[data.call] = replace(use, surfaces=(*use.surfaces, surface_record(step, data)))


def _message_sent(page: Page, _step: Step, data: MessageSent) -> None:
    page.sent = data.text


def _fetched(page: Page, step: Step, data: ContextFetched) -> None:
    found = tuple(fetch_records(page.workflow, step.event, data))
    if page.board is not None:
        page.board.fetched(data)
    # A tool may have read something once more.
    use = next((use for use in page.tools.values() if use.seq == step.event.cause), None)
    if use is None or step.event.actor != f"tool:{use.tool}":
        page.fetched += found
    else:
        page.tools[use.id] = replace(use, fetched=(*use.fetched, *found))


def _document_written(page: Page, step: Step, data: DocumentWritten) -> None:
    event = step.event
    page.documents.append(DocumentRecord(event.seq, event.at, data.name, data.seq, data.fault))


def _variable_set(page: Page, _step: Step, data: VariableSet) -> None:
    page.variables[data.name] = None


def _turn_ended(page: Page, step: Step, _data: TurnEnded) -> None:
    page.ended = step.event


def _turn_failed(page: Page, step: Step, data: TurnFailed) -> None:
    page.error = data.error
    page.ended = step.event if step.event.turn else None  # The run itself continues to its end.


def seconds(since: int, event: Event) -> float:
    return (event.at - since) / 1000


_Note: TypeAlias = Callable[[Page, Step, Any], None]

#: What each kind adds to a page.
NOTES: Final[dict[type[EventData], _Note]] = {
    ContextAssembled: _assembled,
    ModelReplied: _replied,
    ModelFailed: _failed,
    OutputRefused: _refused,
    ToolCalled: _tool_called,
    ToolReturned: _tool_returned,
    ToolFailed: _tool_failed,
    RequestOpened: _request,
    RequestAnswered: _request,
    RequestExpired: _request,
    ModelConsulted: _consulted,
    SurfaceShown: _surface_shown,
    MessageSent: _message_sent,
    ContextFetched: _fetched,
    DocumentWritten: _document_written,
    VariableSet: _variable_set,
    TurnEnded: _turn_ended,
    TurnFailed: _turn_failed,
}
