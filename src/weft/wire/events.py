"""Events as JSON: `{v, seq, ts, run, turn, kind, actor, cause, data}`, for each audience."""

from dataclasses import fields, replace
from typing import Any, Final

from pydantic_core import from_json, to_json

from weft.context.audience import Audience
from weft.engine.events import (
    KIND_NAMES,
    Event,
    EventData,
    Joined,
    MessageSent,
    MessageShown,
    ModelReplied,
    RequestAnswered,
    RequestOpened,
    RunStarted,
    SurfaceShown,
    TurnEnded,
    TurnStarted,
    VariableSet,
)
from weft.engine.events.codec import encode
from weft.inspect.variables import HIDDEN_VALUE, is_secret
from weft.ports.live import ToolProgress
from weft.runtime.models import reading
from weft.runtime.workflow import Workflow

#: The version of this shape; it changes when a key changes its meaning.
VERSION: Final = 1

#: The kinds of events that end users see, with the visible fields; operators see all. A new field
#: of an event is hidden until it is listed here.
USER_FIELDS: Final[dict[str, frozenset[str]]] = {
    "RunStarted": frozenset({"workflow"}),
    "MessageShown": frozenset({"text"}),
    "TurnStarted": frozenset({"agent"}),
    "ModelReplied": frozenset({"call", "text", "answerer"}),
    "MessageSent": frozenset({"agent", "text"}),
    "SurfaceShown": frozenset({"tool", "component", "mode", "payload"}),
    "TurnEnded": frozenset({"agent"}),
    "Joined": frozenset({"name", "text"}),
    "RequestOpened": frozenset(
        {"id", "kind", "agent", "tool", "payload", "expires_at", "component", "mode", "addressee"}
    ),
    "RequestAnswered": frozenset({"id", "value", "user"}),
    "RequestExpired": frozenset({"id"}),
    "StopRequested": frozenset({"mode", "user"}),
    "RunEnded": frozenset({"outcome"}),
}

#: What is said or shown, besides the replies of agents.
_FOR_PARTICIPANTS: Final = (MessageShown, SurfaceShown, Joined)


def event_data(event: Event, run: str, workflow: Workflow) -> dict[str, Any]:
    """Return an event for an operator: all of it but the values of secret variables."""
    return from_json(event_bytes(event, run, workflow))


def event_bytes(event: Event, run: str, workflow: Workflow) -> bytes:
    """Return an event for an operator as JSON text."""
    return _envelope(event, run, encode(_without_secrets(event.data, workflow)))


def user_event_data(
    event: Event, run: str, workflow: Workflow, audience: Audience
) -> dict[str, Any] | None:
    """Return an event for an end user; None if it is not for them."""
    found = user_event_bytes(event, run, workflow, audience)
    return None if found is None else from_json(found)


def user_event_bytes(
    event: Event, run: str, workflow: Workflow, audience: Audience
) -> bytes | None:
    """Return an event for an end user as JSON text; None if it is not for them."""
    allowed = USER_FIELDS.get(KIND_NAMES[type(event.data)])
    is_hidden = not audience.takes_part and isinstance(event.data, _FOR_PARTICIPANTS)
    # A reply that its automatic tool has still to accept.
    is_hidden |= isinstance(event.data, ModelReplied | MessageSent) and event.data.held
    data = _for_user(event, workflow, audience) if allowed and not is_hidden else None
    if allowed is None or data is None:
        return None
    shown = _without_secrets(data, workflow)
    names = [field.name for field in fields(shown) if field.name in allowed]
    return _envelope(event, run, to_json({name: getattr(shown, name) for name in names}))


def _for_user(event: Event, workflow: Workflow, audience: Audience) -> EventData | None:
    """Return what users see of an event; None if it is hidden from them."""
    match event.data:
        case TurnStarted(agent=agent) | TurnEnded(agent=agent):
            return event.data if audience.sees_agent(agent) else None
        case ModelReplied(text=text, shown=shown) as reply:
            agent = event.actor.removeprefix("agent:")
            words = text if shown is None else shown
            heard = words.strip() and audience.hears(agent, text)
            return replace(reply, text=words) if heard else None
        case MessageSent(agent=agent, text=text) as sent:
            words = readable_text(workflow, agent, text)
            return replace(sent, text=words) if words and audience.hears(agent, text) else None
        case Joined(name=name, text=text):
            # What members said is shown as they say it; only a function says something of its own.
            group = workflow.compiled.groups.get(name)
            merged = text is not None and group is not None and group.merge == "custom"
            return event.data if merged and audience.sees_agent(name) else None
        case RequestOpened(addressee=addressee) as asked:
            return asked if audience.is_addressed(addressee) else replace(asked, payload=None)
        case RequestAnswered(user=user) as answer if user != audience.user:
            return replace(answer, value=None)
        case RequestAnswered(value=str(text)):
            return event.data if audience.sees_user_text(text) else None
        case _:
            return event.data


def readable_text(workflow: Workflow, agent: str, text: str) -> str:
    """Return the readable text of an agent's message after its hooks; empty if there is none."""
    words = reading(workflow, agent, text)
    words = text if words is None else words
    return words if words.strip() else ""


def progress_data(progress: ToolProgress) -> dict[str, Any]:
    """Return the progress of a tool, which is not an event; every follower may see it."""
    return {
        "run": progress.run,
        "call": progress.call,
        "tool": progress.tool,
        "share": progress.share,
        "text": progress.text,
    }


def _envelope(event: Event, run: str, data: bytes) -> bytes:
    head = {
        "v": VERSION,
        "seq": event.seq,
        "ts": event.at,
        "run": run,
        "turn": event.turn,
        "kind": KIND_NAMES[type(event.data)],
        "actor": event.actor,
        "cause": event.cause,
    }
    return to_json(head)[:-1] + b',"data":' + data + b"}"


def _without_secrets(data: EventData, workflow: Workflow) -> EventData:
    match data:
        case VariableSet(name=name) if is_secret(workflow, name):
            return replace(data, value=HIDDEN_VALUE)
        case RunStarted(values=values):
            kept = {
                name: HIDDEN_VALUE if is_secret(workflow, name) else value
                for name, value in values.items()
            }
            return replace(data, values=kept)
        case _:
            return data
