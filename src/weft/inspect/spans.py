"""Spans of a run: its turns, model calls, tools, context providers and searches, from its events.

Ids are derived from the run and the number of the event that begins a span, so every process
computes the same ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from weft.engine import events as kinds
from weft.engine.events import Event
from weft.inspect.span_facts import (
    OPERATIONS,
    Facts,
    Read,
    SpanKind,
    content_facts,
    model_facts,
    prompt_facts,
    reads,
    reply_facts,
)
from weft.ports.model import ChatMessage

_NO_MODELS: Final[Mapping[str, str | None]] = {}


@dataclass(frozen=True, slots=True)
class Span:
    """A timed operation: its start and duration in milliseconds, and its parent."""

    name: str
    kind: SpanKind
    run: str
    turn: int
    started_at: int
    #: None while it is under way.
    ms: float | None
    #: The name of its parent.
    parent: str = ""
    failed: bool = False
    #: Why it failed, if recorded.
    error: str = ""
    id: str = ""
    #: The id of its parent; empty for a run.
    parent_id: str = ""
    #: Attributes by the OpenTelemetry conventions for generative AI.
    attributes: Facts = field(default_factory=Facts)

    @property
    def title(self) -> str:
        """The operation and what it was about: `execute_tool look_up`."""
        return f"{OPERATIONS[self.kind][0]} {self.name}".strip()


def trace_id(app: str, run: str) -> str:
    """Return the id of the trace of a run, as 32 hexadecimal digits."""
    return blake2b(f"{app}/{run}".encode(), digest_size=16).hexdigest()


def span_id(app: str, run: str, seq: int, part: str = "") -> str:
    """Return the id of a span that begins with an event, as 16 hexadecimal digits.

    `part` distinguishes the spans of one event.
    """
    return blake2b(f"{app}/{run}:{seq}{part}".encode(), digest_size=8).hexdigest()


def spans_of(
    app: str,
    run: str,
    events: Iterable[Event],
    *,
    models: Mapping[str, str | None] = _NO_MODELS,
) -> list[Span]:
    """Return the spans of a run by their start; those under way have no duration.

    `models` are those that the workflow declares, by agent.
    """
    spans = RunSpans(app, run, models=models)
    found: list[Span] = []
    for event in events:
        ended = spans.add(event)
        if isinstance(event.data, kinds.RunForked):
            found.clear()  # They belong to the run that the events were copied from.
        found += ended
    return sorted(
        [*found, *spans.under_way()],
        key=lambda span: (span.started_at, span.turn, span.kind not in ("run", "turn")),
    )


@dataclass(slots=True)
class _Open:
    """A span under way."""

    kind: SpanKind
    name: str
    event: Event
    at: int
    id: str
    parent: "_Open | None"
    facts: Facts
    #: Its questions that people have not answered, since when there are some, and the milliseconds
    #: it waited before.
    asked: set[str] = field(default_factory=set[str])
    asked_at: int = 0
    waited: int = 0
    #: When the last model call of a tool ended.
    consulted_at: int = 0


class _Beginning(NamedTuple):
    key: str
    kind: SpanKind
    name: str
    facts: Facts


class _End(NamedTuple):
    key: str
    facts: Facts
    #: The kind of an error, and its message.
    error: str = ""
    reason: str = ""


#: What ends the span of the run.
_RUN: Final = "run"


class RunSpans:
    """Builds the spans of one run while its events are added in order."""

    def __init__(
        self,
        app: str,
        run: str,
        *,
        models: Mapping[str, str | None] = _NO_MODELS,
        content: bool = False,
    ) -> None:
        """With `content`, spans have what was sent, said, given and returned."""
        self._app = app
        self._run = run
        self._models = models
        self._content = content
        #: The model that answers for all agents.
        self._model = ""
        #: Spans under way by what ends them: the run, a turn, the event of a model call, a call.
        self._open: dict[str, _Open] = {}
        self._last_at = 0

    def add(self, event: Event, prompt: Sequence[ChatMessage] | None = None) -> list[Span]:
        """Add an event and return the spans that end with it.

        `prompt` is what is sent to the model, where the event is its ContextAssembled.
        """
        found: list[Span] = []
        if (beginning := self._beginning(event)) is not None:
            self._begin(event, beginning)
            if prompt is not None and self._content:
                beginning.facts.update(prompt_facts(prompt))
        elif (end := _end_of(event)) is not None:
            found = [*self._drop(event), *self._end(event, end)]
        else:
            found = self._add_other(event)
        self._last_at = event.at
        return found

    def under_way(self) -> list[Span]:
        """Return the spans that have not ended."""
        return [self._span(begun, None) for begun in self._open.values()]

    def _beginning(self, event: Event) -> _Beginning | None:
        match event.data:
            case kinds.ContextAssembled(agent=agent):
                named = model_facts(self._model or self._models.get(agent) or "")
                facts: Facts = {"gen_ai.agent.name": agent, **named}
                name = str(named.get("gen_ai.request.model", ""))
                return _Beginning(f"model {event.seq}", "model", name, facts)
            case kinds.ToolCalled(id=id_, tool=tool, hook=hook):
                facts = {"gen_ai.tool.type": "function", "gen_ai.tool.call.id": id_}
                facts |= {} if hook is None else {"weft.hook": hook}
                return _Beginning(id_, "tool", tool, facts)
            case kinds.TurnStarted(agent=agent, step=step, attempt=attempt):
                facts = {"weft.turn": event.turn}
                facts |= {"weft.step": step, "weft.attempt": attempt} if step else {}
                return _Beginning(_turn(event), "turn", agent, facts)
            case kinds.RunStarted(workflow=workflow, model=model):
                self._model = model or ""
                return _Beginning(_RUN, "run", workflow, {"weft.app": self._app})
            case _:
                return None

    def _begin(self, event: Event, beginning: _Beginning) -> None:
        key, kind, name, facts = beginning
        parent = None if kind == "run" else self._parent(event)
        id_ = span_id(self._app, self._run, event.seq)
        if self._content:
            facts |= content_facts(event.data)
        self._open[key] = _Open(kind, name, event, event.at, id_, parent, facts)

    def _parent(self, event: Event) -> _Open | None:
        """Return the turn of an event; the run, for what belongs to no turn under way."""
        return self._open.get(_turn(event)) or self._open.get(_RUN)

    def _caller(self, event: Event) -> _Open | None:
        """Return the call that an event comes from, or else its turn."""
        causes = (begun for begun in self._open.values() if begun.event.seq == event.cause)
        return next((begun for begun in causes if begun.kind == "tool"), self._parent(event))

    def _end(self, event: Event, end: _End) -> list[Span]:
        begun = self._open.pop(end.key, None)
        if begun is None:
            return []
        begun.facts |= end.facts
        if self._content:
            begun.facts |= content_facts(event.data)
        begun.name = begun.name or str(end.facts.get("gen_ai.response.model", ""))
        return [self._span(begun, event.at, end.error, end.reason)]

    def _drop(self, event: Event) -> list[Span]:
        """End what is under way in a turn or run that ends: it will have no result."""
        match event.data:
            case kinds.TurnEnded() | kinds.TurnFailed():
                of = {key for key, begun in self._open.items() if begun.event.turn == event.turn}
            case kinds.RunEnded():
                of = self._open.keys()
            case _:
                return []
        keys = [key for key in self._open if key in of and key not in (_RUN, _turn(event))]
        return [span for key in keys for span in self._end(event, _End(key, {}, "cancelled"))]

    def _add_other(self, event: Event) -> list[Span]:
        match event.data:
            case kinds.RequestOpened(id=id_, call=call):
                keys = (call or "", _turn(event), _RUN)
                for begun in (self._open[key] for key in keys if key in self._open):
                    begun.asked_at = begun.asked_at if begun.asked else event.at
                    begun.asked.add(id_)
            case kinds.RequestAnswered(id=id_) | kinds.RequestExpired(id=id_):
                for begun in self._open.values():
                    if id_ in begun.asked:
                        begun.asked.remove(id_)
                        begun.waited += 0 if begun.asked else event.at - begun.asked_at
            case kinds.RunForked(parent=parent, model=model):
                self._model = model or self._model
                self._open[_RUN].facts["weft.parent_run"] = parent
                for begun in self._open.values():  # What the copied events have begun.
                    begun.at, begun.waited, begun.asked_at = event.at, 0, event.at
            case kinds.ContextFetched() as data:
                caller = self._caller(event)
                found = enumerate(reads(event, data))
                return [self._past(event, caller, read, f".{number}") for number, read in found]
            case kinds.ModelConsulted(call=call) as data:
                caller = self._open.get(call) or self._parent(event)
                return self._consulted(event, caller, data)
            case kinds.ConditionJudged(scores=scores) as data if not scores and data.model:
                at = self._last_at
                asked = Read("model", data.model, at, event.at - at, reply_facts(data))
                return [self._past(event, self._parent(event), asked)]
            case _:
                pass
        return []

    def _consulted(
        self, event: Event, caller: _Open | None, data: kinds.ModelConsulted
    ) -> list[Span]:
        """Return the call of a model by a tool: from what the tool did before, to the reply."""
        at = event.at if caller is None else max(caller.at, caller.consulted_at)
        if caller is not None:
            caller.consulted_at = event.at
        facts = {**reply_facts(data), **(content_facts(data) if self._content else {})}
        return [self._past(event, caller, Read("model", data.model, at, event.at - at, facts))]

    def _past(self, event: Event, caller: _Open | None, read: Read, part: str = "") -> Span:
        """Return a span that is recorded when it is over."""
        kind, name, at, ms, facts, error = read
        id_ = span_id(self._app, self._run, event.seq, part)
        begun = _Open(kind, name, event, at, id_, caller, facts)
        return self._span(begun, at + ms, kind if error else "", error)

    def _span(self, begun: _Open, end: float | None, error: str = "", reason: str = "") -> Span:
        parent, kind, name = begun.parent, begun.kind, begun.name
        operation, named = OPERATIONS[kind]
        facts: Facts = {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self._run,
            **({named: name} if name else {}),
            **begun.facts,
        }
        if begun.waited:
            facts["weft.waited_ms"] = begun.waited
        if error:
            facts["error.type"] = error
        return Span(
            name=name,
            kind=kind,
            run=self._run,
            turn=begun.event.turn,
            started_at=begun.at,
            ms=None if end is None else round(end - begun.at, 1),
            parent="" if parent is None else parent.name,
            failed=bool(error),
            error=reason,
            id=begun.id,
            parent_id="" if parent is None else parent.id,
            attributes=facts,
        )


def _turn(event: Event) -> str:
    return f"turn {event.turn}"


def _end_of(event: Event) -> _End | None:
    """Return what an event ends, and how."""
    match event.data:
        case kinds.ModelReplied() as data:
            facts: Facts = {"gen_ai.response.finish_reasons": (data.finish_reason or "stop",)}
            return _End(f"model {event.cause}", {**reply_facts(data), **facts})
        case kinds.ModelFailed(error=error, attempts=attempts):
            return _End(f"model {event.cause}", {"weft.attempts": attempts}, "model", error)
        case kinds.ToolReturned(id=id_):
            return _End(id_, {})
        case kinds.ToolFailed(id=id_, error=error, kind=kind):
            return _End(id_, {}, kind, error)
        case kinds.TurnEnded():
            return _End(_turn(event), {})
        case kinds.TurnFailed(error=error, kind=kind):
            return _End(_turn(event), {}, kind, error)
        case kinds.RunEnded(outcome=outcome, reason=reason):
            failed = (outcome, reason) if outcome == "failed" else ()
            return _End(_RUN, {"weft.outcome": outcome}, *failed)
        case _:
            return None
