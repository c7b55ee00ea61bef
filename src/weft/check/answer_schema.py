"""The JSON Schema of what a UI tool shows or returns: its errors, and the fields it has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from weft.check.values import format_value, value_error
from weft.findings import Json, Path
from weft.spec.part import JsonMap
from weft.spec.types import TypeExpr

TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})

#: The names of Python types, with those of JSON Schema.
OTHER_WORDS: Final = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "bool": "boolean",
    "list": "array", "dict": "object", "none": "null",
}  # fmt: skip

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "null"})
_MAPS: Final = ("properties", "$defs")
_LISTS: Final = ("anyOf", "oneOf", "allOf")
_SINGLES: Final = ("items", "additionalProperties")
#: Keywords that can allow other properties than the listed ones.
_FURTHER: Final = ("$ref", "anyOf", "oneOf", "allOf", "patternProperties", "if")
_MAX_HOPS: Final = 20


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """An error at one place of a schema; `meant` is the correct value if it is certain."""

    path: Path
    fact: str
    hint: str
    meant: str | None = None


def schema_faults(schema: JsonMap) -> Iterator[SchemaFault]:
    """Yield the errors of a JSON Schema that a form is made from."""
    waiting: list[tuple[Path, Json]] = [((), schema)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            part = cast("dict[str, Json]", node)
            yield from _faults(part, path, schema)
            waiting.extend(reversed(list(_inner(part, path))))
        elif not isinstance(node, bool):
            yield SchemaFault(path, "is not a schema", 'write an object such as {"type": "string"}')


def _inner(node: dict[str, Json], path: Path) -> Iterator[tuple[Path, Json]]:
    for key in _MAPS:
        if isinstance(found := node.get(key), dict):
            for name, part in cast("dict[str, Json]", found).items():
                yield (*path, key, name), part
    for key in _LISTS:
        if isinstance(found := node.get(key), list):
            for index, part in enumerate(cast("list[Json]", found)):
                yield (*path, key, index), part
    for key in _SINGLES:
        if key in node:
            yield (*path, key), node[key]


def _faults(node: dict[str, Json], path: Path, root: JsonMap) -> Iterator[SchemaFault]:
    if "type" in node:
        yield from _type_faults(node["type"], (*path, "type"))
    for key in _MAPS:
        if key in node and not isinstance(node[key], dict):
            yield SchemaFault((*path, key), "must be an object", "write one key for each name")
    for key in (*_LISTS, "enum"):
        if key in node and not isinstance(node[key], list):
            yield SchemaFault((*path, key), "must be a list", "put the value in square brackets")
    if "required" in node:
        yield from _required_faults(node, (*path, "required"))
    if "$ref" in node and _target(node["$ref"], root) is None:
        yield SchemaFault((*path, "$ref"), "leads nowhere", 'write it as "#/$defs/Name"')


def _type_faults(value: Json, path: Path) -> Iterator[SchemaFault]:
    named = cast("list[Json]", value) if isinstance(value, list) else [value]
    for index, name in enumerate(named):
        if not isinstance(name, str) or name not in TYPES:
            at = (*path, index) if isinstance(value, list) else path
            word = name.lower() if isinstance(name, str) else ""
            meant = word if word in TYPES else OTHER_WORDS.get(word)
            hint = f"use one of {', '.join(sorted(TYPES))}"
            yield SchemaFault(at, "is not a type of JSON Schema", hint, meant)


def _required_faults(node: dict[str, Json], path: Path) -> Iterator[SchemaFault]:
    listed, known = node["required"], node.get("properties", {})
    if not isinstance(listed, list):
        hint = "list the required properties beside `properties`"
        yield SchemaFault(path, "must be a list of names", hint)
        return
    for index, name in enumerate(cast("list[Json]", listed)):
        if isinstance(known, dict) and str(name) not in known and not _allows_more(node):
            hint = "add it to `properties`, or take it out of the list"
            yield SchemaFault((*path, index), "names no property", hint)


def _allows_more(node: Mapping[str, Json]) -> bool:
    return node.get("additionalProperties", False) is not False or any(
        key in node for key in _FURTHER
    )


def _target(reference: Json, root: JsonMap) -> JsonMap | None:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node: Json = root
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        node = cast("dict[str, Json]", node).get(key) if isinstance(node, dict) else None
    return cast("JsonMap", node) if isinstance(node, dict) else None


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """Where a dotted path leaves the schema: the unknown key, its offset, and the known keys."""

    step: str
    offset: int
    known: tuple[str, ...]


def follow(schema: JsonMap, dotted: str) -> JsonMap | UnknownKey | None:
    """Return the schema at a dotted path; None if the schema allows anything there."""
    node, offset = _resolved(schema, schema), 0
    for step in dotted.split("."):
        if node is None:
            return None
        found = _enter(node, step)
        if found is False:
            known = node.get("properties")
            return UnknownKey(step, offset, tuple(known) if isinstance(known, dict) else ())
        node = _resolved(cast("JsonMap", found), schema) if isinstance(found, dict) else None
        offset += len(step) + 1
    return node


def root_of(schema: JsonMap) -> JsonMap | None:
    """Return a schema with its top-level reference resolved; None if that is not possible."""
    return _resolved(schema, schema)


def _enter(node: JsonMap, step: str) -> Json:
    """Return the schema of a property, None if it may be anything, False if there is none."""
    properties, kinds = node.get("properties"), node.get("type")
    if isinstance(properties, dict) and step in properties:
        return properties[step]
    if kinds == "array":
        return node.get("items") if step.isdecimal() else None
    if _allows_more(node):
        return None
    named = kinds if isinstance(kinds, list) else [kinds]
    scalar = all(isinstance(kind, str) and kind in _SCALARS for kind in named)
    return False if isinstance(properties, dict) or scalar else None


def _resolved(node: JsonMap, root: JsonMap) -> JsonMap | None:
    """Follow references to a schema; None for a cycle of references."""
    for _ in range(_MAX_HOPS):
        if "$ref" not in node:
            return node
        target = _target(node["$ref"], root)
        if target is None:
            return None
        node = target
    return None


#: The types of JSON Schema with sample values, and what to call these in messages.
_SAMPLES: Final[dict[str, tuple[tuple[str, Json], ...]]] = {
    "string": (("any text", "\ue000"),),
    "integer": (("any whole number", -987654321),),
    "number": (("any number", 0.123456789),),
    "boolean": (("false", False), ("true", True)),
    "array": (("a list", []),),
    "object": (("an object", {}),),
    "null": (("null", None),),
}
_COMPOUND: Final = ("anyOf", "oneOf", "allOf", "not", "$ref", "if")


def answers_refused(type_: TypeExpr, schema: JsonMap) -> str | None:
    """Return a value that the schema allows and the type refuses, or None.

    Types that refer to a model are not checked.
    """
    if any(key in schema for key in _COMPOUND):
        return None
    listed, kinds = schema.get("enum"), schema.get("type")
    if isinstance(listed, list):
        allowed = [(format_value("", value), value) for value in cast("list[Json]", listed)]
    else:
        named = cast("list[Json]", kinds) if isinstance(kinds, list) else [kinds]
        allowed = [sample for kind in named for sample in _SAMPLES.get(str(kind), ())]
    return next((words for words, value in allowed if value_error(type_, value, {})), None)
