"""JSON Schema in the form that providers can enforce.

Strict structured output wants every object closed, every property required, every schema with a
type, and an object at the root. Types of Weft come close: what may be missing may also be null.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

_ANNOTATIONS: Final = frozenset({"$schema", "default", "title", "examples"})

_TYPE_NAMES: Final[dict[type, str]] = {
    str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null",
}  # fmt: skip

_Schema = dict[str, Any]


def strict_schema(schema: Mapping[str, Any]) -> tuple[_Schema, bool]:
    """Return a schema ready to send, and whether a provider can enforce it strictly.

    A schema with a part that strict form cannot say (values of any type, free keys) is sent as it
    is: then the reply is guided, and checked when it comes.
    """
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    rooted = _with_root(plain)
    closed = _close(rooted)
    return (rooted, False) if closed is None else (closed, closed.get("type") == "object")


def _with_root(schema: _Schema) -> _Schema:
    """Write the model a root refers to in its place: a root that only refers is refused."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    models: _Schema = schema.get("$defs", {})
    return {**models[name], "$defs": models} if name in models else schema


def _close(schema: _Schema) -> _Schema | None:
    """Close a schema and all in it, or None where that cannot be done."""
    closed: _Schema = {}
    for key, value in schema.items():
        if key in _ANNOTATIONS:
            continue
        close = _INNER.get(key)
        closed[key] = value if close is None else close(value)
        if close is not None and closed[key] is None:
            return None
    return _with_type(closed)


def _close_all(schemas: list[_Schema]) -> list[_Schema] | None:
    closed = [_close(schema) for schema in schemas]
    whole = [schema for schema in closed if schema is not None]
    return whole if len(whole) == len(closed) else None


def _close_each(schemas: Mapping[str, _Schema]) -> _Schema | None:
    closed = _close_all(list(schemas.values()))
    return None if closed is None else dict(zip(schemas, closed, strict=True))


#: The keys that contain schemas, and the function that closes each.
_INNER: Final[dict[str, Callable[[Any], Any]]] = {
    "properties": _close_each,
    "$defs": _close_each,
    "anyOf": _close_all,
    "items": _close,
}


def _with_type(schema: _Schema) -> _Schema | None:
    """Add the type of a schema and require all its properties."""
    if "enum" in schema and "type" not in schema:
        values: list[object] = schema["enum"]
        names = {_TYPE_NAMES.get(type(value), "") for value in values}
        if "" in names:
            return None
        schema["type"] = names.pop() if len(names) == 1 else sorted(names)
    match schema.get("type"):
        case "object":
            if "properties" not in schema or schema.get("additionalProperties", False) is not False:
                return None
            schema["additionalProperties"] = False
            schema["required"] = list(schema["properties"])
        case "array" if "items" not in schema:
            return None
        case _:
            pass
    return schema if schema.keys() & {"type", "anyOf", "$ref"} else None
