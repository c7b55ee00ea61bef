"""What happened in each turn of a run: model calls, tools, and handoffs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from weft.engine.events import (
    NO_USAGE,
    ContextAssembled,
    Event,
    EventData,
    HandedOff,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    Usage,
    Values,
    VariableSet,
)
from weft.findings import Json
from weft.inspect.handoffs import HandoffRecord, handoff_record
from weft.inspect.steps import steps
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
    #: Tokens and cost; None where nobody said.
    usage: Usage = NO_USAGE
    error: str | None = None
    attempts: int = 1
    #: Why the reply was not taken.
    refused: str | None = None
    #: What a person reads of a structured reply, and why earlier attempts gave no answer.
    shown: str | None = None
    retries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool. `outcome` is open, returned, or the kind of its failure."""

    id: str
    tool: str
    arguments: Values
    seq: int
    at: int
    auto: bool = False
    outcome: str = "open"
    #: From the call to the result, people's time to answer included.
    seconds: float | None = None
    value: Json = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn. `handoffs` are those between its end and the next turn."""

    number: int
    agent: str
    seq: int
    at: int
    #: The event that ended it; None while it is under way, or if the run ended in it.
    ended: int | None
    seconds: float | None
    calls: tuple[ModelCall, ...]
    tools: tuple[ToolUse, ...]
    #: The variables that were set, in the order of their first values.
    variables: tuple[str, ...]
    handoffs: tuple[HandoffRecord, ...]
    #: Why it came to no end of its own, if it did not, and the group it was a member of.
    error: str | None = None
    group: str = ""


class _Page:
    """What is known of a turn so far: its calls and tools by what names them."""

    def __init__(self, event: Event, data: TurnStarted) -> None:
        self.event = event
        self.data = data
        self.ended: Event | None = None
        self.calls: dict[int, ModelCall] = {}
        self.tools: dict[str, ToolUse] = {}
        self.variables: dict[str, None] = {}
        self.handoffs: list[HandoffRecord] = []
        self.error: str | None = None
        self.group = ""

    def record(self) -> TurnRecord:
        return TurnRecord(
            number=self.event.turn,
            agent=self.data.agent,
            seq=self.event.seq,
            at=self.event.at,
            ended=self.ended.seq if self.ended else None,
            seconds=_seconds(self.event.at, self.ended) if self.ended else None,
            calls=tuple(self.calls.values()),
            tools=tuple(self.tools.values()),
            variables=tuple(self.variables),
            handoffs=tuple(self.handoffs),
            error=self.error,
            group=self.group,
        )


def turn_records(workflow: Workflow, run: str, events: Sequence[Event]) -> tuple[TurnRecord, ...]:
    """Return what happened in each turn."""
    pages: dict[int, _Page] = {}
    for step in steps(workflow.compiled, run, events):
        event = step.event
        if isinstance(event.data, TurnStarted):
            page = pages[event.turn] = _Page(event, event.data)
            group = step.after.groups.get(event.data.fork)
            page.group = group.name if group else ""
            continue
        if pages and isinstance(event.data, HandedOff):
            page = pages.get(event.turn) or pages[max(pages)]
            page.handoffs.append(handoff_record(workflow, step, event.data))
            continue
        page = pages.get(event.turn)
        note = _NOTES.get(type(event.data))
        if page is not None and page.ended is None and note is not None:
            note(page, event, event.data)
    return tuple(page.record() for page in pages.values())


def _assembled(page: _Page, event: Event, data: ContextAssembled) -> None:
    tokens: Any = data.manifest.get("tokens")
    page.calls[data.call] = ModelCall(data.call, event.seq, event.at, tokens)


def _replied(page: _Page, event: Event, data: ModelReplied) -> None:
    call = _unanswered(page, data)
    if call is None:
        return
    page.calls[data.call] = replace(
        call,
        answered=event.seq,
        seconds=_seconds(call.at, event),
        text=data.text,
        tools=tuple(it.tool for it in data.tool_requests),
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


def _failed(page: _Page, event: Event, data: ModelFailed) -> None:
    call = _unanswered(page, data)
    if call is not None:
        page.calls[data.call] = replace(
            call,
            answered=event.seq,
            seconds=_seconds(call.at, event),
            error=data.error,
            attempts=data.attempts,
            retries=tuple(data.retries),
        )


def _unanswered(page: _Page, data: ModelReplied | ModelFailed) -> ModelCall | None:
    """Return the call that is answered; what comes late or twice answers none."""
    call = page.calls.get(data.call)
    late = call is None or call.answered is not None
    return None if late else call


def _refused(page: _Page, _event: Event, data: OutputRefused) -> None:
    call = page.calls.get(data.call)
    if call is not None:
        page.calls[data.call] = replace(call, refused=data.fault)


def _tool_called(page: _Page, event: Event, data: ToolCalled) -> None:
    page.tools[data.id] = ToolUse(
        data.id, data.tool, data.arguments, auto=data.auto, seq=event.seq, at=event.at
    )


def _tool_returned(page: _Page, event: Event, data: ToolReturned) -> None:
    use = page.tools.get(data.id)
    if use is not None and use.outcome == "open":
        page.tools[data.id] = replace(
            use, outcome="returned", seconds=_seconds(use.at, event), value=data.value
        )


def _tool_failed(page: _Page, event: Event, data: ToolFailed) -> None:
    use = page.tools.get(data.id)
    if use is not None and use.outcome == "open":
        page.tools[data.id] = replace(
            use, outcome=data.kind, seconds=_seconds(use.at, event), error=data.error
        )


def _variable_set(page: _Page, _event: Event, data: VariableSet) -> None:
    page.variables[data.name] = None


def _turn_ended(page: _Page, event: Event, _data: TurnEnded) -> None:
    page.ended = event


def _turn_failed(page: _Page, event: Event, data: TurnFailed) -> None:
    page.ended, page.error = event, data.error


def _seconds(since: int, event: Event) -> float:
    return (event.at - since) / 1000


_Note: TypeAlias = Callable[[_Page, Event, Any], None]

_NOTES: Final[dict[type[EventData], _Note]] = {
    ContextAssembled: _assembled,
    ModelReplied: _replied,
    ModelFailed: _failed,
    OutputRefused: _refused,
    ToolCalled: _tool_called,
    ToolReturned: _tool_returned,
    ToolFailed: _tool_failed,
    VariableSet: _variable_set,
    TurnEnded: _turn_ended,
    TurnFailed: _turn_failed,
}
