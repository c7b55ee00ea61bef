"""The events of a run with the states before and after each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from weft.engine import events as kinds
from weft.engine.commands import Command
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import Event
from weft.engine.reduce import reduce
from weft.engine.state import State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """One event, the states before and after it, and the commands that follow."""

    before: State
    event: Event
    after: State
    commands: list[Command]


def steps(compiled: CompiledWorkflow, run: str, events: Sequence[Event]) -> Iterator[Step]:
    """Yield the steps of a run. Events copied by a fork have the name of the parent run."""
    names = [event.data.parent for event in events if isinstance(event.data, kinds.RunForked)]
    names = [*names, run][::-1]
    state = State(names.pop())
    for event in events:
        if isinstance(event.data, kinds.RunForked):
            state = state.copy()
            state.run = names.pop()
        after, commands = reduce(compiled, state, event)
        yield Step(state, event, after, commands)
        state = after


def record_of(record: type[T], event: Event, **more: object) -> T:
    """Return a record; fields that are not given are those of the event, or of its data."""
    names = {field.name for field in fields(cast("Any", record))}
    data: dict[str, Any] = {
        field.name: getattr(event.data, field.name) for field in fields(event.data)
    }
    values = {**data, **event._asdict(), **more}
    return record(
        **{
            name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
            for name, value in values.items()
            if name in names
        }
    )


def until_end(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of a run up to its end; later events had no effect."""
    for number, event in enumerate(events, start=1):
        if isinstance(event.data, kinds.RunEnded):
            return events[:number]
    return events


def waited_seconds(events: Iterable[Event], until: int, call: str | None = None) -> float:
    """Return how long requests of one call, or of all, were open; overlaps count once."""
    asked: set[str] = set()
    since = total = 0
    for event in events:
        match event.data:
            case kinds.RequestOpened(id=id_) as opened if call in (None, opened.call):
                since = since if asked else event.at
                asked.add(id_)
            case kinds.RequestAnswered(id=id_) | kinds.RequestExpired(id=id_) if id_ in asked:
                asked.remove(id_)
                total += 0 if asked else event.at - since
            case _:
                continue
    return (total + (until - since if asked else 0)) / 1000
