"""JSON of unknown shape, looked at with care."""

from typing import Any, cast

from weft.findings import Json


def as_object(value: Json) -> dict[str, Any] | None:
    """Return a value if it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_items(value: Json) -> list[Any] | None:
    """Return a value if it is a JSON array."""
    return cast("list[Any]", value) if isinstance(value, list) else None
