"""Events as JSON and back. What an earlier version wrote must stay readable for ever."""

import re
from dataclasses import fields
from typing import Any, Final, get_args, get_origin, get_type_hints

from pydantic_core import from_json, to_json

from weft.engine.events import KINDS, EventData, ModelReplied, ToolRequest, Usage
from weft.findings import Json


def _is_tuple(hint: object) -> bool:
    return tuple in (get_origin(each_hint) for each_hint in (hint, *get_args(hint)))


#: The fields of each kind, and which of them are tuples: JSON gives lists for these.
_FIELDS: Final = {kind: frozenset(field.name for field in fields(kind)) for kind in KINDS.values()}
_TUPLES: Final = {
    kind: [each_name for each_name, hint in get_type_hints(kind).items() if _is_tuple(hint)]
    for kind in KINDS.values()
}

#: An event wraps a value in a few levels; a value from outside must also be readable inside one.
_ROOM: Final = 16

#: The fence that models put around JSON; fences of other languages and longer ones are left alone.
_FENCE: Final = "```"
_OPENING: Final = re.compile(r"```(?:json)?(?![\w`])", re.IGNORECASE)
_FENCED_LINE: Final = re.compile(r"^[ \t]*```", re.MULTILINE)


def encode(data: EventData) -> bytes:
    """Return the data of an event as JSON."""
    return to_json(data)


def decode(kind: str, raw: bytes | str) -> EventData:
    """Return the data of an event that was written as JSON.

    Fields that a later version added are ignored.
    """
    found: dict[str, Any] = from_json(raw)
    model = KINDS[kind]
    if not found.keys() <= _FIELDS[model]:
        found = {name: value for name, value in found.items() if name in _FIELDS[model]}
    if "usage" in found:
        found["usage"] = Usage(**found["usage"])
    if model is ModelReplied:
        found["tool_requests"] = [ToolRequest(**entry) for entry in found["tool_requests"]]
    for name in _TUPLES[model]:
        if found.get(name) is not None:
            found[name] = tuple(found[name])
    return model(**found)


def read_json(raw: bytes) -> Json:
    """Parse JSON from outside; raises ValueError if an event could not hold the value."""
    try:
        value: Any = from_json(b"[" * _ROOM + raw + b"]" * _ROOM, allow_inf_nan=False)
        for _ in range(_ROOM):
            (value,) = value
    except ValueError as error:
        # Parsed alone, the text gives an error with the right position.
        from_json(raw, allow_inf_nan=False)
        raise ValueError("it is nested too deeply") from error
    return value


def unfenced(text: str) -> str:
    """Return a reply without the one ```json or ``` fence around it; any other text unchanged.

    JSON has no raw line breaks in its texts, so a fence at the beginning of a line inside means
    that there are several blocks; such a reply is left unchanged.

    >>> unfenced('```json\\n{"a": 1}\\n```')
    '{"a": 1}'
    """
    bare = text.strip()
    opening = _OPENING.match(bare)
    if opening is None or not bare.endswith(_FENCE, opening.end()):
        return text
    inner = bare[opening.end() : -len(_FENCE)]
    return text if _FENCED_LINE.search(inner) else inner.strip()


def parse_reply(text: str) -> Json:
    """Return the JSON of a model's reply; raises ValueError if it is not JSON."""
    return read_json(unfenced(text).encode())
