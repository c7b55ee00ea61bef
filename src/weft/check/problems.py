"""Validation errors of pydantic as problems: what is wrong, where, and what to do."""

import json
import types
from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Final, Literal, TypeAlias, Union, cast, get_args, get_origin

from pydantic import Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from weft.findings import Path
from weft.ids import FUNCTION_NAME, OBJECT_NAME, nearest
from weft.spec.board import TIME_OF_DAY
from weft.spec.flow import STEP_NAME
from weft.spec.part import Part
from weft.spec.scenario import ASKED

_EXPECTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "text_or_object": "text or an object",
    "datetime_type": "a date and a time",
    "datetime_parsing": "a date and a time",
    "datetime_from_date_parsing": "a date and a time",
    "timezone_aware": "a time with its zone",
}

#: Error types of a number outside its range.
_BOUNDS: Final = frozenset({"greater_than", "greater_than_equal", "less_than_equal"})

#: What a text must look like to match a pattern, and how to write it.
_FORMS: Final = {
    f"^{OBJECT_NAME}$": ("not a reference to code", "write module:name: tools.news:is_local"),
    f"^{FUNCTION_NAME}$": (
        "not a reference to a function",
        "write module:name: tools.news:sum_up",
    ),
    r"\S": ("blank", "write a text, or leave the key out"),
    STEP_NAME: ("not a name of a step", "write a name without /"),
    TIME_OF_DAY: ("not a time of day", "write hours and minutes: 09:30"),
    ASKED: ("not an addressee", "write user, user:NAME, role:NAME or group:NAME"),
}
_Loc: TypeAlias = tuple[int | str, ...]
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})

#: Keys of other systems that Weft does not support: why, and what to do.
_NOT_HERE: Final = {
    "generation_mode": (
        "agents make text only in this version",
        "remove the key; let a tool of the agent create other content than text",
    )
}

#: The longest text that a message repeats.
_LONGEST: Final = 60
_SAMPLES: Final = {str: '"..."', bool: "true", int: "1", float: "1.0", NoneType: "null"}
_TIME: Final = "write it with its zone, such as 2026-01-31T09:00:00Z"
_CONTAINERS: Final = {tuple: "[]", list: "[]", dict: "{}"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One validation error, at a path in the data."""

    code: str
    path: Path
    message: str
    hint: tuple[str, ...] = ()
    at_key: bool = False
    offset: int | None = None
    #: For an unknown key that is a known key in another spelling: the known one.
    rename: str | None = None


def path_text(path: Path) -> str:
    """Write a path as in a message: `steps[0].retry`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).lstrip(".")


def find_problems(error: ValidationError, model: type[Part]) -> Iterator[Problem]:
    """Return all problems of a validation error; a misspelt key is not also a missing one."""
    details = error.errors(include_url=False)
    unknown = [_unknown_key(detail, model) for detail in details if _is_unknown(detail)]
    meant = {(*problem.path[:-1], problem.rename) for problem in unknown if problem.rename}
    yield from unknown
    for detail in details:
        if not _is_unknown(detail) and not _is_consequence(detail, details):
            problem = _problem(detail, model)
            if problem.path not in meant:
                yield problem


def _is_consequence(detail: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """Return whether a list counts as too short only because what is in it was refused."""
    loc = detail["loc"]
    return detail["type"] == "too_short" and any(
        len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in details
    )


def _is_unknown(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden"


def _unknown_key(detail: ErrorDetails, model: type[Part]) -> Problem:
    *parent, key = detail["loc"]
    path = (*_path(tuple(parent), model), key)
    key = str(key)
    if key in _NOT_HERE:
        fact, hint = _NOT_HERE[key]
        message = f"{key} is {describe(detail['input'])}, but {fact}"
        return Problem("SCHEMA008", path, message, hint=(hint,), at_key=True)
    known = _known_keys(tuple(parent), model)
    meant = nearest(key, known)
    return Problem(
        "SCHEMA008",
        path,
        f'unknown key "{key}"',
        hint=(f'did you mean "{meant}"?',) if meant else (f"known here: {', '.join(known)}",),
        at_key=True,
        rename=meant,
    )


def _problem(detail: ErrorDetails, model: type[Part]) -> Problem:
    path = _path(detail["loc"], model)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        hint = add_key(str(path[-1]), _annotation(detail["loc"], model))
        return Problem("SCHEMA009", path, f'the key "{path[-1]}" is missing', hint=(hint,))
    if kind == "union_tag_not_found":
        key = str(context["discriminator"]).strip("'")
        return Problem(
            "SCHEMA009",
            (*path, key),
            f'the key "{key}" is missing; it says which kind this is',
            hint=("weft schema NAME prints the kinds there are",),
        )
    if kind == "union_tag_invalid":
        key = str(context["discriminator"]).strip("'")
        choices = _choices(str(context["expected_tags"]))
        return _not_among((*path, key), str(context["tag"]), choices)
    if kind == "literal_error":
        return _not_among(path, detail["input"], _choices(str(context["expected"])))
    if kind == "type_language":
        hint = context.get("hint")
        return Problem(
            "SCHEMA007",
            path,
            detail["msg"],
            hint=(str(hint),) if hint else (),
            offset=int(context.get("offset", 0)),
        )
    if kind == "keys":
        at = (*path, str(context["key"])) if context["key"] else path
        return Problem("SCHEMA014", at, str(context["message"]), hint=(str(context["hint"]),))
    if kind in _EXPECTED:
        wanted, found = _EXPECTED[kind], detail["input"]
        message = f"expected {wanted}, found {describe(found)}"
        hint = _as_kind(detail, model) or rewrite_as(wanted, found)
        return Problem("SCHEMA007", path, message, hint=hint)
    return Problem("SCHEMA007", path, *_describe_refusal(detail, model))


def _describe_refusal(detail: ErrorDetails, model: type[Part]) -> tuple[str, tuple[str, ...]]:
    """Return what is wrong with a value of the right kind, and what to do."""
    kind, context = detail["type"], detail.get("ctx", {})
    pattern = str(context.get("pattern"))
    if kind == "string_pattern_mismatch" and pattern in _FORMS:
        fact, hint = _FORMS[pattern]
        return f"{describe(detail['input'])} is {fact}", _as_kind(detail, model) or (hint,)
    if kind == "too_short":
        least, found = context["min_length"], context["actual_length"]
        return f"expected at least {least} in the list, found {found}", ("add what is missing",)
    if kind == "string_too_short":
        return "the text is empty", ("write one, or leave the key out",)
    if kind in _BOUNDS:
        allowed = _range(detail["loc"], model)
        return f"expected a number {allowed}, found {describe(detail['input'])}", ()
    message, remedy = detail["msg"], context.get("hint")
    return message[:1].lower() + message[1:], (str(remedy),) if remedy else ()


def _range(loc: _Loc, model: type[Part]) -> str:
    """Return the range of numbers that a field allows, in words."""
    bounds = {
        name: getattr(bound, name)
        for bound in _metadata(_field(loc, model))
        for name in ("ge", "gt", "le")
        if hasattr(bound, name)
    }
    low = f"of {bounds['ge']} or more" if "ge" in bounds else ""
    low = f"greater than {bounds['gt']}" if "gt" in bounds else low
    high = f"at most {bounds['le']}" if "le" in bounds else ""
    return " and ".join(filter(None, (low, high)))


def _metadata(field: FieldInfo | None) -> Iterator[object]:
    """Yield the constraints of a field, those of an optional type too."""
    waiting: list[object] = [field.annotation] if field else []
    yield from field.metadata if field else ()
    while waiting:
        annotation = waiting.pop()
        if get_origin(annotation) is Annotated:
            for found in get_args(annotation)[1:]:
                yield from found.metadata if isinstance(found, FieldInfo) else (found,)
        waiting += get_args(annotation) if get_origin(annotation) is not Literal else ()


def _as_kind(detail: ErrorDetails, model: type[Part]) -> tuple[str, ...]:
    """Return how to write an object when only its kind is given as a word."""
    found, loc = detail["input"], detail["loc"]
    if not isinstance(found, str):
        return ()
    # The last step may be the tag of a union, which is not in the data.
    kinds = _kinds(_annotation(loc, model)) or _kinds(_annotation(loc[:-1], model))
    near = nearest(found, kinds)
    return (f'write {{"{kinds[near]}": "{near}"}}, and what else belongs to it',) if near else ()


def _kinds(annotation: object) -> dict[str, str]:
    """Return the tags of the members of a union, each with its key."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return {word: key for key, word in _single_value_fields(annotation)}
    return {word: key for member in get_args(annotation) for word, key in _kinds(member).items()}


def _not_among(path: Path, found: object, choices: list[str]) -> Problem:
    meant = nearest(found, choices) if isinstance(found, str) else None
    return Problem(
        "SCHEMA007",
        path,
        f"{describe(found)} is not one of {', '.join(choices)}",
        hint=(f'did you mean "{meant}"?',) if meant else ("write one of them",),
    )


def _choices(listed: str) -> list[str]:
    return listed.split("'")[1::2]


def describe(value: object) -> str:
    """Return the kind of a value in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"' if len(value) <= 60 else "a long text"
        case int() | float():
            return str(value)
        case _:
            return "a list" if isinstance(value, list) else "an object"


def _path(loc: _Loc, model: type[Part]) -> Path:
    """Return a location as a path in the data: without the tags of unions."""
    return _walk(model, loc)[0]


def _known_keys(loc: _Loc, model: type[Part]) -> list[str]:
    found = _walk(model, loc)[1]
    return [field.alias or name for name, field in _fields(found).items()] if found else []


def _annotation(loc: _Loc, model: type[Part]) -> object:
    """Return the type of the field a location ends in, or None where no model declares it."""
    field = _field(loc, model)
    return field.annotation if field else None


def _field(loc: _Loc, model: type[Part]) -> FieldInfo | None:
    """Return the field a location ends in, or None where no model declares it."""
    parent = _walk(model, loc[:-1])[1] if loc else None
    fields = _fields(parent).items() if parent else ()
    return next((field for name, field in fields if loc[-1] in {name, field.alias}), None)


def _walk(annotation: object, loc: _Loc) -> tuple[Path, type[Part] | None]:
    """Follow a location through the models: the path in the data, and the model it ends in."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return _walk_model(annotation, loc)
    if origin is Annotated:
        return _walk(arguments[0], loc)
    if origin in {Union, types.UnionType}:
        return _walk_union(arguments, loc)
    if origin in {tuple, list, dict} and loc:
        path, model = _walk(arguments[1] if origin is dict else arguments[0], loc[1:])
        return (loc[0], *path), model
    return loc, None


def _walk_model(model: type[Part], loc: _Loc) -> tuple[Path, type[Part] | None]:
    if not loc:
        return (), model
    for name, field in _fields(model).items():
        if loc[0] in {name, field.alias}:
            path, found = _walk(field.annotation, loc[1:])
            return (loc[0], *path), found
    return loc, None


def _walk_union(members: tuple[object, ...], loc: _Loc) -> tuple[Path, type[Part] | None]:
    """Follow a location into a tagged union, whose tag is in the location but not in the data."""
    for member in members:
        if loc and loc[0] in _tags(member):
            return _walk(member, loc[1:])
    walks = [_walk(member, loc) for member in members]
    # A walk that is shorter has met its tag further in: a union inside an optional one.
    return next((walk for walk in walks if walk[1] or len(walk[0]) < len(loc)), (loc, None))


def _tags(member: object) -> set[str]:
    """The words by which a location may name a member of a union."""
    if get_origin(member) is Annotated:
        return {entry.tag for entry in get_args(member)[1:] if isinstance(entry, Tag)}
    if isinstance(member, type) and issubclass(member, Part):
        return {word for _, word in _single_value_fields(member)}
    return set()


def _single_value_fields(model: type[Part]) -> Iterator[tuple[str, str]]:
    """Yield the fields with one possible value, and that value."""
    for name, field in model.model_fields.items():
        if _single(field.annotation):
            yield name, get_args(field.annotation)[0]


def _fields(model: type[Part]) -> dict[str, FieldInfo]:
    """Return the fields of a model; one that may contain itself knows them once it is built."""
    model.model_rebuild()
    return model.model_fields


def _single(annotation: object) -> bool:
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


def add_key(key: str, annotation: object) -> str:
    """Return what to add for a missing key.

    >>> add_key("hooks", tuple[str, ...]), add_key("role", Literal["primary", "dependent"])
    ('add "hooks": []', 'add "role": "primary"')
    """
    return f'add "{key}": {_sample(annotation)}'


def _sample(annotation: object) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _sample(arguments[0])
    if origin is Literal:
        return json.dumps(arguments[0])
    if isinstance(origin, type) and origin in _CONTAINERS:
        return _CONTAINERS[origin]
    return _SAMPLES.get(annotation, "...") if isinstance(annotation, type) else "..."


def rewrite_as(wanted: str, found: object) -> tuple[str, ...]:
    """Return how to write a value as the expected kind, if the intention is clear."""
    match wanted:
        case "text":
            return _as_text(found)
        case "true or false":
            return _as_truth(found)
        case "a whole number" | "a number" if _is_number(found):
            return (f"write it without quotes: {found}",)
        case "a list" if isinstance(found, str) and len(found) <= _LONGEST:
            return (f"put it in brackets: [{json.dumps(found, ensure_ascii=False)}]",)
        case "a date and a time" | "a time with its zone":
            return (_TIME,)
        case _:
            return ()


def _as_text(found: object) -> tuple[str, ...]:
    if isinstance(found, bool | int | float):
        return (f'put it in quotes: "{json.dumps(found)}"',)
    if isinstance(found, list):
        return ("write one text in quotes",)
    entries = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    if entries and all(value is None for value in entries.values()):
        # YAML parses {name} as a key without a value.
        text = f"{{{', '.join(entries)}}}"
        return (f'put it in quotes, since a text in YAML cannot begin with {{: "{text}"',)
    return ("write a text in quotes",)


def _as_truth(found: object) -> tuple[str, ...]:
    word = str(found).lower()
    if word in _TRUE | _FALSE:
        return (f"write {'true' if word in _TRUE else 'false'}, without quotes",)
    return ()


def _is_number(found: object) -> bool:
    if not isinstance(found, str):
        return False
    digits = found.removeprefix("-")
    return digits.isascii() and digits.isdigit()
