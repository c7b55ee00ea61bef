"""The values that a person's answer or a structured output can bring, as far as is declared."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from weft.check.answer_schema import Lost, follow
from weft.check.values import misfit
from weft.engine.conditions import UNKNOWN
from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.type_meaning import Models, finite_values
from weft.spec.types import LiteralOf, OptionalOf, Scalar, TypeExpr

#: What a schema may say without ruling out a value.
_REMARKS: Final = frozenset({"type", "title", "description", "default", "examples"})
#: The types of JSON Schema, and the types of variables of which they leave out no value.
_ALL_OF: Final = {"string": {"str"}, "integer": {"int"}, "number": {"int", "float"}}


@dataclass(frozen=True, slots=True)
class Answer:
    """The values, UNKNOWN for any; `sure` means that each can really come.

    `keeps` means that there may as well be no value that fits.
    """

    values: tuple[Json, ...]
    sure: bool = True
    keeps: bool = True


def answer(schema: JsonMap | None, key: str, type_: TypeExpr) -> Answer:
    """Return what the answer may hold at a dotted path, for a variable of this type."""
    node = follow(schema, key) if schema else None
    if node is None:
        return Answer((UNKNOWN,), sure=not schema)
    if isinstance(node, Lost):
        return Answer((UNKNOWN,), sure=False)
    listed = [node["const"]] if "const" in node else node.get("enum")
    sure = node.keys() <= _REMARKS | {"const", "enum"}
    if isinstance(listed, list):
        return Answer(tuple(cast("list[Json]", listed)), sure=sure)
    kind = node.get("type")
    if kind == "boolean":
        return Answer((False, True), sure=sure)
    wanted = _ALL_OF.get(str(kind), set())
    return Answer((UNKNOWN,), sure=sure and (kind is None or wanted.issuperset(_scalars(type_))))


def output(fields: Mapping[str, TypeExpr], key: str, type_: TypeExpr, models: Models) -> Answer:
    """Return what the field of an output may hold, for a variable of this type."""
    field = fields.get(key)
    if field is None:
        # Deeper than a field it is not known; and what is no field is never there.
        inside = key.partition(".")[0] in fields
        return Answer((UNKNOWN,) if inside else (), sure=False)
    listed = finite_values(field)
    if listed is None:
        alike = field == type_
        return Answer((UNKNOWN,), sure=alike, keeps=not alike or not isinstance(field, Scalar))
    fitting = tuple(it for it in listed if it is not None and not misfit(type_, it, models))
    return Answer(fitting, keeps=len(fitting) < len(listed))


def _scalars(type_: TypeExpr) -> Iterator[str]:
    """Yield what a type consists of; what has no plain name is one of its own."""
    match type_:
        case Scalar(name):
            yield name
        case LiteralOf(values):
            yield from (type(value).__name__ for value in values)
        case OptionalOf(of):
            # An answer without a value sets nothing.
            yield from _scalars(of)
        case _:
            yield "another type"
