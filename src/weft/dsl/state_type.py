"""The class of a state, converted to variables and models of the spec."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind, models_json_schema
from pydantic_core import PydanticSerializationError, to_jsonable_python

from weft.check.spelling import pascal_case
from weft.dsl.parts import flow_part, refusal
from weft.spec import variables as spec
from weft.spec.type_field import ModelField, OutputModel
from weft.spec.types import is_model_name

_SCALARS: Final = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "null",
    "object": "dict",
}  # fmt: skip
_PLAIN: Final = "keep text, numbers, lists, dicts and pydantic classes in the state"
_Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reducer:
    """How values set by parallel steps are merged, and what a step returns for the field."""

    kind: spec.Merge


#: For lists: a step returns what it adds.
Append: Final = Reducer("append")
#: For dicts: a step returns the keys it sets.
Merge: Final = Reducer("merge")


def require_class(value: object, what: str) -> type[BaseModel]:
    """Return a pydantic class, or refuse another value."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value
    raise refusal("FLOW034", f"{what} is {value!r}", "give a class of pydantic.BaseModel")


class _Silent(GenerateJsonSchema):
    """Omits defaults: those that JSON cannot express are refused where they are read."""

    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        *GenerateJsonSchema.ignored_warning_kinds,
        "non-serializable-default",
    }


class StateTypes:
    """The types of state classes: their fields, and models for nested classes."""

    def __init__(self, classes: Iterable[type[BaseModel]]) -> None:
        roots = list(dict.fromkeys(classes))
        try:
            found, whole = models_json_schema(
                [(root, "validation") for root in roots], by_alias=False, schema_generator=_Silent
            )
        except PydanticUserError as error:
            fact = str(error).partition("\n")[0]
            raise refusal(
                "FLOW034", f"a class cannot be written as JSON: {fact}", _PLAIN
            ) from error
        self._definitions = cast("dict[str, _Schema]", whole.get("$defs", {}))
        self._keys = {root: _key(found[root, "validation"]) for root in roots}
        #: The models in use, in the order of first use.
        self._used: dict[str, None] = {}

    def name(self, model: type[BaseModel]) -> str:
        """Return the name of the model of a class, and add the model to the workflow."""
        return self._model(self._keys[model])

    def variables(self, state: type[BaseModel]) -> dict[str, spec.Variable]:
        """Return the fields of a state as variables."""
        properties = self._definitions[self._keys[state]].get("properties", {})
        return {
            name: flow_part(
                spec.Variable,
                type=self._type(properties[name]),
                description=field.description or "",
                source=spec.DerivedSource(default=_default(name, field)),
                merge=next(
                    (
                        annotation.kind
                        for annotation in field.metadata
                        if isinstance(annotation, Reducer)
                    ),
                    None,
                ),
            )
            for name, field in state.model_fields.items()
        }

    def models(self) -> Iterator[OutputModel]:
        """Yield the models in use, and those nested in them."""
        done: set[str] = set()
        while left := [key for key in self._used if key not in done]:
            for key in left:
                done.add(key)
                yield self._declared(key)

    def _declared(self, key: str) -> OutputModel:
        schema = self._definitions[key]
        properties = cast("dict[str, _Schema]", schema["properties"])
        fields = {
            name: flow_part(
                ModelField, type=self._type(inner), description=inner.get("description", "")
            )
            for name, inner in properties.items()
        }
        about = schema.get("description", "")
        return flow_part(OutputModel, name=_name(key), description=about, fields=fields)

    def _model(self, key: str) -> str:
        self._used[key] = None
        return _name(key)

    def _type(self, schema: _Schema) -> str:
        written = self._text(schema, ())
        return "any" if written == "null" else written  # `null` alone is not a type.

    def _text(self, schema: _Schema, inside: tuple[str, ...]) -> str:
        """Convert a JSON Schema to the text of a type."""
        match schema:
            case {"$ref": str()}:
                return self._referred(_key(schema), inside)
            case {"const": _} | {"enum": _}:
                return _literal(schema["enum"] if "enum" in schema else [schema["const"]])
            case {"anyOf": members} | {"oneOf": members} | {"allOf": members}:
                return _either(self._text(member, inside) for member in members)
            case {"type": "array", "prefixItems": items}:
                return f"list[{_either(self._text(item, inside) for item in items)}]"
            case {"type": "array"}:
                return f"list[{self._text(schema.get('items', {}), inside)}]"
            case {"type": "object", "additionalProperties": dict()}:
                return f"dict[{self._text(schema['additionalProperties'], inside)}]"
            case _:
                return _SCALARS.get(schema.get("type", ""), "any")

    def _referred(self, key: str, inside: tuple[str, ...]) -> str:
        if "properties" in self._definitions[key]:
            return self._model(key)
        # An enum or a named type: expanded, unless it is recursive.
        return "any" if key in inside else self._text(self._definitions[key], (*inside, key))


def _key(schema: _Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _name(key: str) -> str:
    return key if is_model_name(key) else pascal_case(key)


def _either(members: Iterable[str]) -> str:
    known = list(dict.fromkeys(members))
    return "any" if "any" in known or not known else " | ".join(known)


def _literal(values: Iterable[object]) -> str:
    """Return the type of listed values: literals, float for fractions, optional for null."""
    listed = list(values)
    plain = [json.dumps(value) for value in listed if isinstance(value, str | int)]
    others = ["float"] if any(isinstance(value, float) for value in listed) else []
    others += ["null"] if None in listed else []
    return _either([*([f"literal[{', '.join(plain)}]"] if plain else []), *others])


def _default(name: str, field: FieldInfo) -> Any:  # noqa: ANN401 - of any type
    """Return the initial value of a field; None if the class has no default."""
    if field.is_required() or field.default_factory_takes_validated_data:
        return None
    try:
        value, again = (
            to_jsonable_python(field.get_default(call_default_factory=True), by_alias=False)
            for _ in range(2)
        )
    except PydanticSerializationError as error:
        fact = f"the default of {name} cannot be written as JSON"
        raise refusal("FLOW034", fact, _PLAIN) from error
    if value != again:
        fact = f"the default of {name} is another one each time"
        raise refusal("FLOW034", fact, "leave the default out, and let the first step set it")
    return value
