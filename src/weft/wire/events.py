"""Events as JSON."""

from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from weft.engine.codec import encode
from weft.engine.events import (
    Event,
    EventData,
    RunStarted,
    VariableSet,
)
from weft.inspect.variables import UNSHOWN, is_secret
from weft.runtime.workflow import Workflow


def event_data(event: Event, workflow: Workflow) -> dict[str, Any]:
    """Return an event as JSON can hold it; the values of secret variables are left out."""
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": type(event.data).__name__,
        "actor": event.actor,
        "cause": event.cause,
        "data": from_json(encode(_without_secrets(event.data, workflow))),
    }


def _without_secrets(data: EventData, workflow: Workflow) -> EventData:
    match data:
        case VariableSet(name=name) if is_secret(workflow, name):
            return replace(data, value=UNSHOWN)
        case RunStarted(values=values):
            kept = {
                name: UNSHOWN if is_secret(workflow, name) else value
                for name, value in values.items()
            }
            return replace(data, values=kept)
        case _:
            return data
