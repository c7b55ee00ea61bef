"""JSON of unknown shape, looked at with care."""

from typing import Any, cast

from weft.findings import Json


def as_object(value: Json) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_items(value: Json) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None
