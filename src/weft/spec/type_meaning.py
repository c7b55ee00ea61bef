"""What the types mean: validation, the values of finite types, values from text, JSON Schema.

Values are JSON. A number without a fraction is whole however it is written, so 1.0 fits `int` and
`literal[1]`, as JSON Schema has it; true and false are never numbers.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Final, TypeAlias, TypeGuard, cast

from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import nearest
from weft.spec.types import (
    ANY,
    MAX_DIGITS,
    DictOf,
    ListOf,
    LiteralOf,
    LiteralValue,
    OptionalOf,
    Ref,
    Scalar,
    TypeExpr,
    UnionOf,
    print_type,
)

#: Model name -> field name -> type. A field is required unless its type is optional.
Models: TypeAlias = Mapping[str, Mapping[str, TypeExpr]]

#: A part of a value: its key or index, its expected type, and the part.
_Inner: TypeAlias = tuple[str | int, TypeExpr, Json]

NO_MODELS: Final[Models] = MappingProxyType({})
MAX_VALUE_DEPTH: Final = 100

_BOOL_TEXTS: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off", ""), False),
}
_INT_TEXT: Final = re.compile(rf"[+-]?[0-9]{{1,{MAX_DIGITS}}}\Z")
_FLOAT_TEXT: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_]\w*\Z")


def validation_error(type_: TypeExpr, value: Json, models: Models) -> str | None:
    """Return one sentence that says why a value is not of a type, or None if it is.

    >>> validation_error(ListOf(Scalar("int")), [1, "x"], {})
    'expected int, got "x" at [1]'
    """
    error = _Validation(models, {}).error(type_, value, 0)
    if error is None:
        return None
    place = "".join(_print_step(step) for step in error.path).removeprefix(".")
    return f"{error.text} at {_shorten(place, 80)}" if place else error.text


def finite_values(type_: TypeExpr, limit: int = 16) -> tuple[Json, ...] | None:
    """List every value of a type, or return None when there are more than `limit`.

    >>> finite_values(OptionalOf(Scalar("bool")))
    (None, False, True)
    """
    listed = _values(type_)
    if listed is None:
        return None
    # Keyed by the written form: 1 and true are different values.
    distinct = {json.dumps(value): value for value in listed}
    return tuple(distinct.values()) if len(distinct) <= limit else None


def references(type_: TypeExpr) -> tuple[str, ...]:
    """Return the models a type names, in order of first use."""
    return tuple(dict.fromkeys(_referenced_names(type_)))


def coerce_text(type_: TypeExpr, text: str, *, models: Models = NO_MODELS) -> Json:
    """Read a value from the text of an environment variable; raise ExpressionError if none fits.

    The text itself never appears in the message, as it may be a secret.
    """
    if isinstance(type_, OptionalOf):
        return None if text == "" else coerce_text(type_.of, text, models=models)
    match type_:
        case Scalar("str"):
            return text
        case Scalar("bool") if text.strip().lower() in _BOOL_TEXTS:
            return _BOOL_TEXTS[text.strip().lower()]
        case Scalar("bool"):
            raise _text_error(type_, "true or false")
        case Scalar("int") if _INT_TEXT.match(text.strip()):
            return int(text)
        case Scalar("float") if _FLOAT_TEXT.match(text.strip()) and math.isfinite(float(text)):
            return float(text)
        case Scalar("int" | "float"):
            raise _text_error(type_, "a number, for example 30")
        case _:
            return _coerce_json(type_, text, models)


def _coerce_json(type_: TypeExpr, text: str, models: Models) -> Json:
    try:
        value = json.loads(text, parse_float=_parse_finite, parse_constant=_parse_finite)
    except (ValueError, RecursionError):
        value = text
        if type_ == ANY:
            raise _text_error(type_, "the value as JSON") from None
    for candidate in (value, text):
        if validation_error(type_, candidate, models) is None:
            return candidate
    listed = isinstance(type_, LiteralOf)
    raise _text_error(type_, "one of the listed values" if listed else "the value as JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _text_error(type_: TypeExpr, form: str) -> ExpressionError:
    message = f"the text is not a valid {_shorten(print_type(type_), 80)}"
    return ExpressionError(message, hint=f"write {form}")


@dataclass(frozen=True, slots=True)
class _Error:
    """What does not fit, and where, seen from the value that was looked at."""

    text: str
    path: Path = ()

    def under(self, step: str | int) -> "_Error":
        return _Error(self.text, (step, *self.path))


@dataclass(frozen=True, slots=True)
class _Validation:
    """One comparison of a value with a type."""

    models: Models
    #: Unions already looked at. Without it, a union of models that hold the same union again
    #: would be tried in every combination.
    seen: dict[tuple[UnionOf, int], _Error | None]

    def error(self, type_: TypeExpr, value: Json, depth: int) -> _Error | None:
        if depth > MAX_VALUE_DEPTH:
            return _Error(f"nested more than {MAX_VALUE_DEPTH} levels deep")
        match type_:
            case Scalar() | LiteralOf():
                return None if _is_valid_scalar(type_, value) else _type_error(type_, value)
            case OptionalOf(of):
                return None if value is None else self.error(of, value, depth)
            case UnionOf():
                key = (type_, id(value))
                if key not in self.seen:
                    self.seen[key] = self.union(type_, value, depth)
                return self.seen[key]
            case _:
                inner = self.inner(type_, value)
        if isinstance(inner, _Error):
            return inner
        for step, of, item in inner:
            if error := self.error(of, item, depth + 1):
                return error.under(step)
        return None

    def inner(self, type_: ListOf | DictOf | Ref, value: Json) -> _Error | Iterator[_Inner]:
        """Return the parts of a list or an object, each with the type it should have."""
        match type_:
            case ListOf(of) if isinstance(value, list):
                return ((at, of, item) for at, item in enumerate(cast("list[Json]", value)))
            case DictOf(of) if isinstance(value, dict):
                return ((key, of, item) for key, item in cast("dict[str, Json]", value).items())
            case Ref(name) if name not in self.models:
                return _Error(f"the model {name} is not declared")
            case Ref(name) if isinstance(value, dict):
                return _field_values(self.models[name], cast("dict[str, Json]", value))
            case _:
                return _type_error(type_, value)

    def union(self, type_: UnionOf, value: Json, depth: int) -> _Error | None:
        """Report the member that comes closest: the one whose error lies deepest inside."""
        close: list[_Error] = []
        for member in type_.members:
            error = self.error(member, value, depth)
            if error is None:
                return None
            if error != _type_error(member, value):
                close.append(error)
        return max(close, key=lambda error: len(error.path), default=_type_error(type_, value))


def _field_values(
    fields: Mapping[str, TypeExpr], value: dict[str, Json]
) -> _Error | Iterator[_Inner]:
    for key in value:
        if key not in fields:
            near = nearest(str(key), fields)
            hint = f", did you mean {near}?" if near else ""
            return _Error(f"unknown field {_shorten(str(key))}{hint}")
    for name, of in fields.items():
        if name not in value and not isinstance(of, OptionalOf):
            return _Error(f"the field {name} is missing")
    return ((key, fields[key], item) for key, item in value.items())


def _is_valid_scalar(type_: Scalar | LiteralOf, value: Json) -> bool:
    """Compare a value that has no parts."""
    match type_:
        case LiteralOf(values):
            return any(_same(value, listed) for listed in values)
        case Scalar("any"):
            return True
        case Scalar("str"):
            return isinstance(value, str)
        case Scalar("bool"):
            return isinstance(value, bool)
        case Scalar("int"):
            return _is_number(value) and value == int(value)
        case _:
            return _is_number(value)


def _is_number(value: Json) -> TypeGuard[int | float]:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _same(value: Json, listed: LiteralValue) -> bool:
    return value == listed and isinstance(value, bool) == isinstance(listed, bool)


def _type_error(type_: TypeExpr, value: Json) -> _Error:
    return _Error(f"expected {_shorten(print_type(type_), 80)}, got {_show(value)}")


def _show(value: Json) -> str:
    match value:
        case None | bool() | float() | str():
            return _shorten(json.dumps(value, ensure_ascii=False))
        case int():
            return str(value) if abs(value) < 10**MAX_DIGITS else "a very long number"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}, which JSON cannot hold"


def _shorten(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _print_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_KEY.match(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def _referenced_names(type_: TypeExpr) -> Iterator[str]:
    match type_:
        case Ref(name):
            yield name
        case ListOf(of) | DictOf(of) | OptionalOf(of):
            yield from _referenced_names(of)
        case UnionOf(members):
            for member in members:
                yield from _referenced_names(member)
        case _:
            pass


def _values(type_: TypeExpr) -> list[Json] | None:
    match type_:
        case Scalar("bool"):
            return [False, True]
        case LiteralOf(values):
            return list(values)
        case OptionalOf(of):
            inner = _values(of)
            return None if inner is None else [None, *inner]
        case UnionOf(members):
            parts = [_values(member) for member in members]
            known = [part for part in parts if part is not None]
            return list(chain.from_iterable(known)) if len(known) == len(parts) else None
        case _:
            return None


_SCHEMA_URI: Final = "https://json-schema.org/draft/2020-12/schema"
_SCALAR_SCHEMAS: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def json_schema(type_: TypeExpr, models: Models) -> dict[str, object]:
    """Return a type as JSON Schema 2020-12, with the models it needs under $defs."""
    schema: dict[str, object] = {"$schema": _SCHEMA_URI, **_schema(type_)}
    reached = _reachable_models(type_, models)
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


def _reachable_models(type_: TypeExpr, models: Models) -> set[str]:
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
