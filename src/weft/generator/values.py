"""Values as models write them: what is no object, and null for what they do not need."""

from typing import Final, cast

from weft.findings import Json

#: Keys whose null has a meaning, and keys that hold any JSON.
_NULLABLE: Final = frozenset({"value", "from", "to", "model"})
_DATA: Final = frozenset(
    {"payload_schema", "response_schema", "body", "query_template", "default", "initial", "value"}
)


def mapping(value: Json) -> dict[str, Json]:
    """Return a copy of an object; empty for any other value."""
    return dict(cast("dict[str, Json]", value)) if isinstance(value, dict) else {}


def without_nulls(value: Json) -> Json:
    """Return a value without the keys that are null: many models write those they do not need."""
    if isinstance(value, list):
        return [without_nulls(inner) for inner in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    return {
        key: inner if key in _DATA else without_nulls(inner)
        for key, inner in mapping(cast("Json", value)).items()
        if inner is not None or key in _NULLABLE
    }
