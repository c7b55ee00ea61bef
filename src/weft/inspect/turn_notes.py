"""The notes that each event adds to the record of a turn, or of the run itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.engine import events
from weft.engine.events import NO_USAGE, Event, Usage
from weft.inspect.board import BoardRun, BoardTurn
from weft.inspect.calls import (
    Consultation,
    DocumentRecord,
    FetchRecord,
    SurfaceRecord,
    ToolUse,
    fetch_records,
    hook_edits,
    run_continues,
)
from weft.inspect.flow import StepTurn
from weft.inspect.handoffs import HandoffRecord, Judgement
from weft.inspect.steps import Step, record_of, waited_seconds
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
    #: Why the reply ended; empty for a normal end.
    finish_reason: str = ""
    #: Of a fallback: the model it replaced, and why.
    instead_of: str = ""
    #: Tokens and cost; None where the provider did not report them.
    usage: Usage = NO_USAGE
    error: str | None = None
    attempts: int = 1
    #: Why the reply was refused.
    refused: str | None = None
    #: The readable text of a structured reply, and the errors of earlier attempts.
    shown: str | None = None
    retries: tuple[str, ...] = ()


@dataclass(slots=True)
class TurnRecord:
    """One turn. Its judgements and handoff are those between its end and the next turn.

    It is filled while the events of the run are read.
    """

    number: int
    agent: str
    seq: int
    at: int
    #: The event that ended it; None while it is under way, or if the run ended in it.
    ended: int | None = None
    #: Its duration without the time it waited for answers of people.
    seconds: float | None = None
    waited_seconds: float = 0.0
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    tools: list[ToolUse] = field(default_factory=list[ToolUse])
    #: The hook functions called before it, around its replies, and after it.
    points: list[ToolUse] = field(default_factory=list[ToolUse])
    #: The variables that were set, in the order of their first values.
    variables: list[str] = field(default_factory=list[str])
    handoffs: list[HandoffRecord] = field(default_factory=list[HandoffRecord])
    #: Why it did not end normally, and the group it was a member of.
    error: str | None = None
    group: str = ""
    #: The model settings by name, with the seed as a number.
    #: Turns copied by a fork had the seed of another run: they show the declared seed.
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fetched: list[FetchRecord] = field(default_factory=list[FetchRecord])
    #: The reply after hooks, if the agent has hooks for replies.
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
    #: The calls of tools and hooks.
    tools: dict[str, ToolUse] = field(default_factory=dict[str, ToolUse])
    #: The documents that were written.
    documents: list[DocumentRecord] = field(default_factory=list[DocumentRecord])
    #: The requests to people and their answers.
    requests: list[Event] = field(default_factory=list[Event])

    def add(self, step: Step) -> None:
        """Record an event."""
        event, record = step.event, self.record
        self._add_tool_event(step)
        match event.data:
            case events.ContextAssembled(call=number, manifest=manifest):
                tokens: Any = manifest.get("tokens")
                self.calls[number] = ModelCall(number, event.seq, event.at, tokens)
                if record.board is not None:
                    record.board.add_left_out(number, manifest)
            case events.ModelReplied() | events.ModelFailed() as data:
                self._end_call(event, data)
            case events.OutputRefused(call=number, error=error) if number in self.calls:
                self.calls[number] = replace(self.calls[number], refused=error)
            case events.RequestOpened() | events.RequestAnswered() | events.RequestExpired():
                self.requests.append(event)
            case events.MessageSent(text=text) if self._has_hooks:
                record.sent = text
            case events.ContextFetched() as data:
                self._add_fetched(event, data)
            case events.DocumentWritten(seq=value, error=error):
                self.documents.append(record_of(DocumentRecord, event, value=value, error=error))
            case events.VariableSet(name=name) if name not in record.variables:
                record.variables.append(name)
            case events.TurnEnded() | events.TurnFailed() as data:
                self._end(event, data)
            case _:
                pass

    @property
    def _has_hooks(self) -> bool:
        """Whether hooks may change the replies of the agent."""
        return bool(self.workflow.compiled.agents[self.record.agent].send)

    def _end_call(self, event: Event, data: events.ModelReplied | events.ModelFailed) -> None:
        """Record the answer to a model call, unless it is a late or second one."""
        call = self.calls.get(data.call)
        if call is None or call.answered is not None:
            return
        took = (event.at - call.at) / 1000
        known = {"sent_tokens": call.sent_tokens, "answered": event.seq, "seconds": took}
        known |= {"seq": call.seq, "at": call.at}
        if isinstance(data, events.ModelFailed):
            self.calls[data.call] = record_of(ModelCall, event, **known)
            return
        tools = tuple(request.tool for request in data.tool_requests)
        self.calls[data.call] = record_of(ModelCall, event, **known, tools=tools)
        for request in data.tool_requests:
            self.tools[request.id] = ToolUse(
                request.id, request.tool, request.arguments, event.seq, event.at
            )

    def _add_fetched(self, event: Event, data: events.ContextFetched) -> None:
        found = tuple(fetch_records(self.workflow, event, data))
        if self.record.board is not None:
            self.record.board.add_fetched(data)
        # A tool may have refreshed it.
        use = next((use for use in self.tools.values() if use.seq == event.cause), None)
        if use is None or event.actor != f"tool:{use.tool}":
            self.record.fetched += found
        else:
            self.tools[use.id] = replace(use, fetched=(*use.fetched, *found))

    def _add_tool_event(self, step: Step) -> None:
        """Record a call of a tool or hook, or what a call did."""
        event = step.event
        match event.data:
            case events.ToolCalled(id=call):
                self.tools[call] = record_of(ToolUse, event)
            case events.ToolReturned(id=call) as data if self._is_open(call):
                use = self._ended(call, event)
                edits = hook_edits(self.workflow, step, data) if use.at_boundary else ()
                self.tools[call] = replace(
                    use,
                    outcome="returned",
                    value=data.value,
                    progress=data.progress,
                    abandoned_by=data.abandoned_by,
                    edits=edits,
                )
            case events.ToolFailed(id=call, kind=kind, error=error) as data if self._is_open(call):
                self.tools[call] = replace(
                    self._ended(call, event),
                    outcome=kind,
                    error=error,
                    abandoned_by=data.abandoned_by,
                    went_on=run_continues(step),
                )
            case events.ModelConsulted(call=call, digest=digest) if call in self.tools:
                use, asked = self.tools[call], record_of(Consultation, event, question=digest)
                self.tools[call] = replace(use, consulted=(*use.consulted, asked))
            case events.SurfaceShown(call=call) if call in self.tools:
                use, shown = self.tools[call], record_of(SurfaceRecord, event)
                self.tools[call] = replace(use, surfaces=(*use.surfaces, shown))
            case _:
                pass

    def _is_open(self, call: str) -> bool:
        return call in self.tools and self.tools[call].outcome == "open"

    def _ended(self, call: str, event: Event) -> ToolUse:
        """Return a call with how long it worked, and how long it waited for people."""
        use = self.tools[call]
        waited = waited_seconds(self.requests, event.at, call)
        return replace(use, seconds=(event.at - use.at) / 1000 - waited, waited_seconds=waited)

    def _end(self, event: Event, data: events.TurnEnded | events.TurnFailed) -> None:
        """Record when and how the turn ended."""
        record = self.record
        if isinstance(data, events.TurnFailed):
            record.error = data.error
            if not event.turn:
                return  # The run itself continues to its end.
        record.ended = event.seq
        record.waited_seconds = waited_seconds(self.requests, event.at)
        record.seconds = (event.at - record.at) / 1000 - record.waited_seconds

    def finish(self) -> None:
        """Add the calls to the record."""
        self.record.calls = list(self.calls.values())
        for use in self.tools.values():
            (self.record.points if use.at_boundary else self.record.tools).append(use)
