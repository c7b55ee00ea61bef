"""The events of a run with the states before and after each, and how long things took."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.engine.commands import Command
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    ContextAssembled,
    ContextFetched,
    Event,
    ModelFailed,
    ModelReplied,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    RunEnded,
    RunForked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from weft.engine.events.kinds import BoardInput
from weft.engine.reduce import reduce
from weft.engine.state import State


@dataclass(frozen=True, slots=True)
class Step:
    """One event, the states on both sides of it, and what the engine wants done after it."""

    before: State
    event: Event
    after: State
    commands: list[Command]


def steps(compiled: CompiledWorkflow, run: str, events: Sequence[Event]) -> Iterator[Step]:
    """Yield the steps of a run. Events copied by a fork have the name of the parent run."""
    names = [event.data.parent for event in events if isinstance(event.data, RunForked)]
    names = [*names, run][::-1]
    state = State(names.pop())
    for event in events:
        if isinstance(event.data, RunForked):
            state = state.copy()
            state.run = names.pop()
        after, commands = reduce(compiled, state, event)
        yield Step(state, event, after, commands)
        state = after


def until_end(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of a run up to its end; later events had no effect."""
    for number, event in enumerate(events, start=1):
        if isinstance(event.data, RunEnded):
            return events[:number]
    return events


def waited_seconds(events: Iterable[Event], until: int, call: str | None = None) -> float:
    """Return how long requests were open, of one call or of all; overlapping time counts once."""
    asked: set[str] = set()
    since = total = 0
    for event in events:
        match event.data:
            case RequestOpened(id=id_) as opened if call in (None, opened.call):
                since = since if asked else event.at
                asked.add(id_)
            case RequestAnswered(id=id_) | RequestExpired(id=id_) if id_ in asked:
                asked.remove(id_)
                total += 0 if asked else event.at - since
            case _:
                continue
    return (total + (until - since if asked else 0)) / 1000


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time: milliseconds, and what it was part of."""

    name: str
    kind: str
    run: str
    turn: int
    started_at: int
    ms: float
    parent: str = ""
    failed: bool = False
    #: Why it failed, where that is recorded with it.
    error: str = ""


def spans_of(run: str, events: Iterable[Event]) -> list[Span]:
    """Return the turns of a run, and what providers, models and tools did in them, in order."""
    found: list[Span] = []
    turns: dict[int, tuple[Event, str]] = {}
    models: dict[int, Event] = {}
    tools: dict[str, tuple[Event, str]] = {}
    for event in events:
        parent = turns[event.turn][1] if event.turn in turns else ""
        match event.data:
            case TurnStarted(agent=agent):
                turns[event.turn] = event, agent
            case TurnEnded() | TurnFailed() if event.turn in turns:
                begun, agent = turns.pop(event.turn)
                failed = isinstance(event.data, TurnFailed)
                found.append(_span(run, agent, "turn", begun, event, failed=failed))
            case ContextFetched(board=fetched) if fetched is not None:
                found += _providers(run, event, parent, fetched)
            case ContextAssembled():
                models[event.turn] = event
            case ModelReplied() | ModelFailed() if event.turn in models:
                failed = isinstance(event.data, ModelFailed)
                begun = models.pop(event.turn)
                found.append(_span(run, "model", "model", begun, event, parent, failed=failed))
            case ToolCalled(id=id_, tool=tool):
                tools[id_] = event, tool
            case ToolReturned(id=id_) | ToolFailed(id=id_) if id_ in tools:
                begun, tool = tools.pop(id_)
                failed = isinstance(event.data, ToolFailed)
                found.append(_span(run, tool, "tool", begun, event, parent, failed=failed))
            case _:
                pass
    return sorted(found, key=lambda span: (span.started_at, span.turn, span.kind != "turn"))


def _span(
    run: str, name: str, kind: str, begun: Event, ended: Event, parent: str = "", *, failed: bool
) -> Span:
    return Span(name, kind, run, begun.turn, begun.at, float(ended.at - begun.at), parent, failed)


def _providers(run: str, event: Event, parent: str, fetched: BoardInput) -> list[Span]:
    return [_provider_span(run, event, parent, record) for record in fetched.get("slices", ())]


def _provider_span(run: str, event: Event, parent: str, record: dict[str, Any]) -> Span:
    # A fallback has the error of the provider it replaces, and did not fail itself.
    error = "" if "instead_of" in record else record.get("error", "")
    name, begun, ms = record["provider"], record["started_at"], record["ms"]
    return Span(name, "provider", run, event.turn, begun, ms, parent, bool(error), error)
