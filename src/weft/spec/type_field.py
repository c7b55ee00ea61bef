"""Types in files: their text, the object forms of older packages, and models made of fields."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import Field, GetPydanticSchema, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from weft.errors import ExpressionError
from weft.spec.part import Name, Part
from weft.spec.type_parser import (
    Member,
    Null,
    build_container,
    build_literal,
    build_union,
    check_size,
    parse_member,
    parse_type,
    require_type,
    shorten,
    too_deep,
)
from weft.spec.types import MAX_DEPTH, SPELLINGS, TypeExpr, print_type

#: The keys, one at a time, under which an object form holds its inner types or values.
_OBJECT_KEYS: Final = {
    "list": ("items",),
    "dict": ("values",),
    "optional": ("of", "inner", "item"),
    "literal": ("values", "enum"),
    "union": ("variants", "options"),
}


def read_type(value: object) -> TypeExpr:
    """Read a type from its text or from the object form of older packages.

    >>> print_type(read_type({"type": "list", "items": {"type": "string"}}))
    'list[str]'
    """
    return check_size(require_type(_read(value, 0), 0))


def _field_value(value: object) -> TypeExpr:
    """Read a pydantic field; a type built by hand is brought to the normal form."""
    try:
        if isinstance(value, str):
            return parse_type(value)
        if isinstance(value, TypeExpr):
            return parse_type(print_type(value))
    except ExpressionError as error:
        # The message comes last: pydantic fills in one name after the other, and the text of
        # the message must not be taken for such a name.
        details = {"offset": error.offset, "hint": error.hint, "message": str(error)}
        raise PydanticCustomError("type_language", "{message}", details) from None
    details = {"offset": 0, "hint": 'for example "list[str]"'}
    raise PydanticCustomError("type_language", "a type is written as text", details)


_FIELD_SCHEMA: Final = core_schema.no_info_plain_validator_function(
    _field_value,
    serialization=core_schema.plain_serializer_function_ser_schema(
        print_type, return_schema=core_schema.str_schema()
    ),
)

#: A pydantic field that holds a type: text in files, a TypeExpr in Python.
TypeField: TypeAlias = Annotated[
    TypeExpr,
    GetPydanticSchema(lambda _source, _handler: _FIELD_SCHEMA),
    WithJsonSchema(
        {
            "type": "string",
            "description": "str, int, float, bool, any, list[T], dict[T], optional[T], "
            'literal["a", 3, true], A | B, or the name of a model.',
            "examples": ["str", "list[int]", "optional[Invoice]", 'literal["open", "closed"]'],
        }
    ),
]


def _read(value: object, level: int) -> Member:
    if level > MAX_DEPTH:
        raise too_deep()
    if value is None:
        return Null()
    if isinstance(value, str):
        return parse_member(value)
    if isinstance(value, Mapping):
        return _read_object(cast("Mapping[object, object]", value), level)
    raise ExpressionError("a type is written as text", hint='for example "list[str]"')


def _read_under(key: str, value: object, level: int) -> tuple[Member, int]:
    """Read an inner type; what is wrong with it is reported under its key."""
    try:
        return _read(value, level), 0
    except ExpressionError as error:
        message = f"{key}: {error}"
        raise ExpressionError(message, offset=error.offset, hint=error.hint) from None


def _read_object(form: Mapping[object, object], level: int) -> Member:
    kind = form.get("type")
    if not isinstance(kind, str):
        message = "an object that describes a type names it under the key type"
        raise ExpressionError(message, hint='for example {"type": "str"}')
    keys = [key for key in form if key not in ("type", "description")]
    if not keys:
        return parse_member(kind)
    word = SPELLINGS.get(kind.lower(), "")
    if len(keys) > 1 or keys[0] not in _OBJECT_KEYS.get(word, ()):
        message = f"the key {shorten(str(keys[-1]))} does not belong to the type {shorten(kind)}"
        raise ExpressionError(message, hint='write the type as text, for example "list[str]"')
    key, inner = str(keys[0]), form[keys[0]]
    if word in ("list", "dict", "optional"):
        return build_container(word, [_read_under(key, inner, level + 1)])
    if not isinstance(inner, list) or not inner:
        raise ExpressionError(f"{key} must be a list with at least one item")
    items = enumerate(cast("list[object]", inner))
    if word == "literal":
        return build_literal((item, 0) for _, item in items)
    return build_union([_read_under(f"{key}[{index}]", item, level + 1) for index, item in items])


class ModelField(Part):
    """One field of a model."""

    type: TypeField
    description: str = ""


class OutputModel(Part):
    """A named record type."""

    name: Name = Field(description="PascalCase; types refer to the model by it.")
    type: Literal["model"] = "model"
    description: str = ""
    fields: dict[Name, ModelField]


class OutputBinding(Part):
    """Which model an agent's replies fit; null means free text."""

    agent: Name
    model: Name | None
