"""The steps of a run, taken again from its journal: before each event, after it, what followed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.engine.commands import Command
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    RunEnded,
    RunForked,
)
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
    """Yield the steps of a run. What a fork copied was written under the name of its parent."""
    names = [it.data.parent for it in events if isinstance(it.data, RunForked)]
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
    """Return the events of a run up to its end: what came after it had no effect."""
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
