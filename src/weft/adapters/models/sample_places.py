"""Values at places: dotted paths into arguments, replies and answers that were made up."""

from collections.abc import Mapping
from typing import Any

from weft.adapters.models.json_objects import as_object
from weft.adapters.models.sample_moves import Places
from weft.engine.conditions import same
from weft.engine.triggers import dig
from weft.findings import Json


def put_at(value: dict[str, Json], places: Places) -> None:
    """Write values to their places; what stands in the way is written over."""
    for path, wanted in places:
        *above, last = path
        inner = value
        for key in above:
            below = as_object(inner.get(key))
            if below is None:
                below = inner[key] = {}
            inner = below
        inner[last] = wanted


def found_at(value: Json, places: Places) -> bool:
    """Whether all values stand at their places."""
    return as_object(value) is not None and all(
        same(dig(value, path), wanted) for path, wanted in places
    )


def allowed_at(schema: Mapping[str, Any], places: Places) -> bool:
    """Whether a schema has the places and, where it lists values, these among them."""
    return all(_allowed(schema, schema, path, wanted) for path, wanted in places)


def _allowed(
    root: Mapping[str, Any], node: Mapping[str, Any], path: tuple[str, ...], wanted: Json
) -> bool:
    node = _resolved(root, node)
    choices: list[Mapping[str, Any]] = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if choices:
        return any(_allowed(root, choice, path, wanted) for choice in choices)
    if path:
        properties: Mapping[str, Any] | None = node.get("properties")
        if properties is None:
            return node.get("type", "object") == "object"
        key, *deeper = path
        return key in properties and _allowed(root, properties[key], tuple(deeper), wanted)
    if "const" in node:
        return same(node["const"], wanted)
    return "enum" not in node or any(same(value, wanted) for value in node["enum"])


def _resolved(root: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to the model it names."""
    name = str(node.get("$ref", "")).rpartition("/")[2]
    models: Mapping[str, Any] = {**root.get("definitions", {}), **root.get("$defs", {})}
    return models.get(name, node)
