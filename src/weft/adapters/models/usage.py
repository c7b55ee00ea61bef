"""What a call took."""

from typing import Final

from weft.adapters.models.json_objects import as_object
from weft.engine.events import NO_USAGE, Usage
from weft.findings import Json

#: What an answer takes that no model was asked for: nothing, and that is known.
FREE: Final = Usage(0, 0, 0, 0.0)


def read_usage(usage: Json) -> Usage:
    """Return what a call took as far as the provider says it understandably."""
    fields = as_object(usage)
    if fields is None:
        return NO_USAGE
    details = as_object(fields.get("prompt_tokens_details")) or {}
    return Usage(
        input_tokens=_count(fields.get("prompt_tokens")),
        output_tokens=_count(fields.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
    )


def _count(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None
