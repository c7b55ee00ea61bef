"""Types written as JSON Schema."""

from collections.abc import Mapping
from typing import Final

from weft.errors import ExpressionError
from weft.ids import nearest
from weft.spec.type_meaning import Models, references
from weft.spec.types import DictOf, ListOf, LiteralOf, OptionalOf, Scalar, TypeExpr, UnionOf

_SCHEMA_URI: Final = "https://json-schema.org/draft/2020-12/schema"
_SCALAR_SCHEMAS: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def json_schema(type_: TypeExpr, models: Models) -> dict[str, object]:
    """Write a type as JSON Schema 2020-12; the models it reaches stand under $defs, by name."""
    schema: dict[str, object] = {"$schema": _SCHEMA_URI, **_schema(type_)}
    reached = _reached(type_, models)
    if reached:
        schema["$defs"] = {name: _model_schema(models[name]) for name in sorted(reached)}
    return schema


def _schema(type_: TypeExpr) -> dict[str, object]:
    match type_:
        case Scalar("any"):
            return {}
        case Scalar(name):
            return {"type": _SCALAR_SCHEMAS[name]}
        case ListOf(of):
            return {"type": "array", "items": _schema(of)}
        case DictOf(of):
            return {"type": "object", "additionalProperties": _schema(of)}
        case OptionalOf(of):
            return {"anyOf": [_schema(of), {"type": "null"}]}
        case LiteralOf(values):
            return {"enum": list(values)}
        case UnionOf(members):
            return {"anyOf": [_schema(member) for member in members]}
        case _:
            return {"$ref": f"#/$defs/{type_.name}"}


def _model_schema(fields: Mapping[str, TypeExpr]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {name: _schema(of) for name, of in fields.items()},
        "required": [name for name, of in fields.items() if not isinstance(of, OptionalOf)],
        "additionalProperties": False,
    }


def _reached(type_: TypeExpr, models: Models) -> set[str]:
    """Collect the models a type needs, also through other models."""
    reached: set[str] = set()
    waiting = list(references(type_))
    while waiting:
        name = waiting.pop()
        if name not in models:
            near = nearest(name, models)
            hint = f"did you mean {near}?" if near else "declare it among the models"
            raise ExpressionError(f"the model {name} is not declared", hint=hint)
        if name not in reached:
            reached.add(name)
            waiting += [inner for of in models[name].values() for inner in references(of)]
    return reached
