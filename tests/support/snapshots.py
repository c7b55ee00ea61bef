"""Folding a journal through snapshots: the state is written and read after every event."""

from collections.abc import Sequence

from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import KIND_NAMES, Event
from weft.engine.events.codec import decode, encode
from weft.engine.reduce import advance, fold, pending
from weft.engine.snapshot import dump, load
from weft.engine.state import State


def as_stored(events: Sequence[Event]) -> list[Event]:
    """Return events as a store gives them back."""
    return [
        event._replace(data=decode(KIND_NAMES[type(event.data)], encode(event.data)))
        for event in events
    ]


def expect_snapshots(compiled: CompiledWorkflow, run: str, events: Sequence[Event]) -> None:
    """Expect that a state is the same with and without snapshots, after every event."""
    stored = as_stored(events)
    plain, restored = State(run), State(run)
    for event in stored:
        following = advance(compiled, plain, event)
        restored = load(dump(restored))
        assert advance(compiled, restored, event) == following
        assert restored == plain
        assert list(restored.timers) == list(plain.timers)
        assert list(pending(compiled, load(dump(restored)))) == list(pending(compiled, plain))
    assert load(dump(restored)) == fold(compiled, run, stored)
