"""Events as JSON and back. What an earlier version wrote must stay readable for ever."""

from typing import Any, Final

from pydantic_core import from_json, to_json

from weft.engine.events import KINDS, EventData, ModelReplied, ToolRequest, Usage
from weft.findings import Json

#: An event wraps a value in a few levels; what is read from outside must be readable inside one.
_ROOM: Final = 16


def encode(data: EventData) -> bytes:
    """Return the data of an event as JSON."""
    return to_json(data)


def decode(kind: str, raw: bytes | str) -> EventData:
    """Return the data of an event that was written as JSON."""
    fields: dict[str, Any] = from_json(raw)
    model = KINDS[kind]
    if model is ModelReplied:
        fields["usage"] = Usage(**fields.get("usage", {}))
        fields["tool_requests"] = tuple(ToolRequest(**it) for it in fields["tool_requests"])
    return model(**fields)


def read_json(raw: bytes) -> Json:
    """Return what JSON from outside says; raises ValueError if an event could not hold it."""
    try:
        value: Any = from_json(b"[" * _ROOM + raw + b"]" * _ROOM, allow_inf_nan=False)
        for _ in range(_ROOM):
            (value,) = value
    except ValueError as error:
        # Only the text alone tells where in it something is wrong.
        from_json(raw, allow_inf_nan=False)
        raise ValueError("it is nested too deeply") from error
    return value
