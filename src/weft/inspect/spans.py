"""Spans: what took how long in a run, as a tree, from its events alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from weft.engine.events import (
    ContextAssembled,
    ContextFetched,
    Event,
    ModelFailed,
    ModelReplied,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)


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
            case ContextFetched(found=fetched):
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
    return sorted(found, key=lambda it: (it.started_at, it.turn, it.kind != "turn"))


def _span(
    run: str, name: str, kind: str, begun: Event, ended: Event, parent: str = "", *, failed: bool
) -> Span:
    return Span(name, kind, run, begun.turn, begun.at, float(ended.at - begun.at), parent, failed)


def _providers(run: str, event: Event, parent: str, fetched: dict[str, Any]) -> list[Span]:
    board = cast("dict[str, Any]", fetched.get("board") or {})
    return [
        Span(it["provider"], "provider", run, event.turn, it["started_at"], it["ms"], parent)
        for it in board.get("slices", ())
    ]
