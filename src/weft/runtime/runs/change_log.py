"""Every change of a variable as a line of the log, for whoever wants to see how a run comes about.

The logger `weft.context` has them at DEBUG. Where nobody asks for that, nothing is worked out.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.check.values import without_secrets
from weft.engine.events import Event, Joined, RunStarted, VariableSet
from weft.engine.state import State
from weft.engine.variables.conditions import same
from weft.findings import Json
from weft.runtime.variables.masking import MASK
from weft.spec.variables import Variable

_log: Final = logging.getLogger("weft.context")

#: How many characters of a value are told.
_MOST: Final = 300


def log_changes(
    variables: Mapping[str, Variable], before: State, after: State, events: Sequence[Event]
) -> None:
    """Log what events that were written have changed, with what it was before."""
    if not _log.isEnabledFor(logging.DEBUG):
        return
    for name, old, new, writer, event in _changes(before, after, events):
        secret = name in variables and variables[name].secret
        told = [MASK if secret else _told(name, it) for it in (old, new)]
        where = f"run {after.run}, event {event.seq}" + (f", turn {event.turn}" * bool(event.turn))
        _log.debug("%s: %s -> %s (%s; %s)", name, *told, writer, where)


def _changes(
    before: State, after: State, events: Sequence[Event]
) -> Iterator[tuple[str, Json, Json, str, Event]]:
    held: dict[int, dict[str, Json]] = {}
    for event in events:
        data = event.data
        values = held.setdefault(event.turn, dict(before.values_of(event.turn)))
        match data:
            case VariableSet(name=name, value=value, writer=writer):
                yield name, values.get(name), value, writer, event
                values[name] = value
            case RunStarted(values=given):
                for name, value in given.items():
                    if value is not None:
                        yield name, None, value, "start", event
                values |= given
            case Joined(name=group):
                # What its members have set for themselves counts for all from here on.
                for name, value in after.variables.items():
                    if not same(values.get(name), value) and not _is_set_later(name, event, events):
                        yield name, values.get(name), value, f"group {group}", event
            case _:
                pass


def _is_set_later(name: str, joined: Event, events: Sequence[Event]) -> bool:
    """Tell whether an event after a group has joined sets a variable: that is told there."""
    return any(
        isinstance(it.data, VariableSet) and it.data.name == name and it.seq > joined.seq
        for it in events
    )


def _told(name: str, value: Json) -> str:
    text = json.dumps(without_secrets(name, value, MASK), ensure_ascii=False)
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."
