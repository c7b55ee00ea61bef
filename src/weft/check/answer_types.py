"""Whether a variable takes what the schema of an answer allows, where both are simple."""

from collections.abc import Iterable
from typing import Final, cast

from weft.check.values import misfit, told
from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.type_meaning import Models
from weft.spec.types import DictOf, ListOf, OptionalOf, Ref, Scalar, TypeExpr, UnionOf

#: The types of JSON Schema that have few values, with all of them.
_FINITE: Final[dict[str, tuple[Json, ...]]] = {"boolean": (False, True), "null": (None,)}
#: The others in words.
_ENDLESS: Final = {
    "string": "any text",
    "integer": "any whole number",
    "number": "any number",
    "array": "a list",
    "object": "an object",
}
_TAKERS: Final = {"string": {"str"}, "integer": {"int", "float"}, "number": {"float"}}
_COMPOUND: Final = ("anyOf", "oneOf", "allOf", "not", "$ref", "if")


def answers_refused(type_: TypeExpr, schema: JsonMap, models: Models) -> str | None:
    """Name something that the schema allows and the type does not, or None if there is nothing."""
    if any(key in schema for key in _COMPOUND):
        return None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return _value_refused(type_, values, models)
    kinds = schema.get("type")
    for kind in cast("list[Json]", kinds) if isinstance(kinds, list) else [kinds]:
        refused = None
        if isinstance(kind, str) and kind in _FINITE:
            refused = _value_refused(type_, _FINITE[kind], models)
        elif isinstance(kind, str) and kind in _ENDLESS and not _takes(type_, kind):
            refused = _ENDLESS[kind]
        if refused:
            return refused
    return None


def _value_refused(type_: TypeExpr, values: Iterable[Json], models: Models) -> str | None:
    refused = (value for value in values if misfit(type_, value, models))
    return next((told("", value) for value in refused), None)


def _takes(type_: TypeExpr, kind: str) -> bool:
    """Tell whether a type takes all values of a kind, what is inside of them left aside."""
    match type_:
        case Scalar(name):
            return name == "any" or name in _TAKERS.get(kind, ())
        case OptionalOf(of):
            return _takes(of, kind)
        case UnionOf(members):
            return any(_takes(member, kind) for member in members)
        case ListOf():
            return kind == "array"
        case DictOf() | Ref():
            return kind == "object"
        case _:
            return False
