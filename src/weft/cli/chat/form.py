"""Requests of UI tools as a form in the terminal, made from the schema of the answer."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, cast

from weft.cli.streams import clean, clean_lines, json_or_text, value_text
from weft.findings import Json
from weft.runtime.tools.forms import resolved, secret_fields

#: Asks for one line.
AskLine: TypeAlias = Callable[[str], Awaitable[str]]


class AskField(Protocol):
    """Asks for the value of a field; a secret one is not shown while it is typed."""

    async def __call__(self, prompt: str, *, secret: bool) -> str: ...


#: Shows a line.
Show: TypeAlias = Callable[[str], None]

#: Returns what is wrong with an answer, and with the value of a field; None if it is valid.
Validate: TypeAlias = Callable[[Json], str | None]
ValidateField: TypeAlias = Callable[[str, Json], str | None]

_YES: Final = frozenset({"y", "yes", "true", "1"})
_NO: Final = frozenset({"n", "no", "false", "0"})


class _Invalid(Exception):
    """The typed value is invalid; the text says what is expected."""


#: A value that was left out.
_NOTHING: Final = object()


def shown_payload(payload: Json) -> list[str]:
    """Return the payload of a UI tool as lines."""
    if isinstance(payload, dict):
        parts = cast("dict[str, Json]", payload)
        return [line for name, value in parts.items() for line in _named_value(name, value)]
    return clean_lines(_text(payload)).splitlines() if payload is not None else []


async def ask_form(
    schema: Mapping[str, Any] | None,
    ask: AskField,
    show: Show,
    error: Validate,
    field_error: ValidateField,
) -> Json:
    """Ask until the answer is valid: field by field, and again for all if the whole is not.

    A first line that begins with a brace is the whole answer as JSON, unless it has secrets.
    """
    while True:
        answer = await _ask_once(schema or {}, ask, show, field_error)
        wrong = error(answer)
        if wrong is None:
            return answer
        show(f"invalid answer: {clean(wrong)}")


async def _ask_once(
    schema: Mapping[str, Any], ask: AskField, show: Show, field_error: ValidateField
) -> Json:
    root = resolved(schema, schema)
    properties: Mapping[str, Any] = root.get("properties") or {}
    secret = {path[0] if path else "" for path in secret_fields(schema)}
    if not properties:
        hidden = partial(ask, secret=bool(secret))
        return await _ask_value("answer", root, hidden, show, required=True)
    required: Sequence[str] = root.get("required") or ()
    answer: dict[str, Json] = {}
    for name, part in properties.items():
        value = await _ask_value(
            name,
            resolved(part, schema),
            partial(ask, secret=name in secret),
            show,
            required=name in required,
            whole=not answer and not secret,
            error=partial(field_error, name),
        )
        if isinstance(value, _Whole):
            return value.answer
        if value is not _NOTHING:
            answer[name] = value
    return answer


class _Whole:
    """The whole answer, typed at once."""

    def __init__(self, answer: Json) -> None:
        self.answer = answer


async def _ask_value(
    name: str,
    schema: Mapping[str, Any],
    ask: AskLine,
    show: Show,
    *,
    required: bool,
    whole: bool = False,
    error: Validate | None = None,
) -> Any:  # noqa: ANN401 - JSON, or _NOTHING
    choices: Sequence[Json] = schema.get("enum") or ()
    if schema.get("description"):
        show(clean(str(schema["description"])))
    for number, choice in enumerate(choices, start=1):
        show(f"  {number}  {clean(_text(choice))}")
    prompt = _prompt(name, schema, required=required)
    while True:
        typed = await ask(prompt)
        try:
            if whole and typed.lstrip().startswith("{"):
                return _Whole(_json(typed))
            if not typed.strip() and ("default" in schema or not required):
                return schema.get("default", _NOTHING)
            value = _value(typed, schema, choices)
            wrong = error(value) if error else None
            if wrong is None:
                return value
            show(clean(f"{name}: {wrong}"))
        except _Invalid as invalid:
            show(f"{clean(name)}: {invalid}")


def _prompt(name: str, schema: Mapping[str, Any], *, required: bool) -> str:
    title = str(schema.get("title") or name)
    kind = schema.get("type")
    notes: list[str] = []
    if schema.get("enum"):
        notes.append("number or value")
    elif kind == "boolean":
        notes.append("y/n")
    elif kind in ("object", "array") or not isinstance(kind, str):
        notes.append("JSON")
    elif kind != "string":
        notes.append(str(kind))
    if "default" in schema:
        default = schema["default"]
        shown = {True: "y", False: "n"}[default] if isinstance(default, bool) else _text(default)
        notes.append(f"Enter for {shown}")
    elif not required:
        notes.append("may be empty")
    return clean(f"{title} ({', '.join(notes)}): " if notes else f"{title}: ")


def _value(typed: str, schema: Mapping[str, Any], choices: Sequence[Json]) -> Json:
    text = typed.strip()
    if choices:
        return _choice(text, choices)
    match schema.get("type"):
        case "string":
            return typed
        case "boolean":
            if text.lower() in _YES or text.lower() in _NO:
                return text.lower() in _YES
            raise _Invalid("write y or n")
        case "integer" | "number" as kind:
            return _number(text, whole=kind == "integer")
        case "object" | "array" as kind:
            value = _json(typed)
            if type(value) is (dict if kind == "object" else list):
                return cast("Json", value)
            example = '{"name": "value"}' if kind == "object" else '["value"]'
            raise _Invalid(f"write JSON, for example {example}")
        case _:
            return json_or_text(typed)


def _choice(text: str, choices: Sequence[Json]) -> Json:
    for choice in choices:
        if text == _text(choice):
            return choice
    if text.isdecimal() and 0 < int(text) <= len(choices):
        return choices[int(text) - 1]
    raise _Invalid(f"write a number from 1 to {len(choices)}, or the value itself")


def _number(text: str, *, whole: bool) -> int | float:
    try:
        return int(text) if whole or text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise _Invalid("write a whole number" if whole else "write a number") from None


def _json(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _Invalid(f"invalid JSON: {error}") from None


def _named_value(name: str, value: Json) -> list[str]:
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return (
            [f"{clean(name)}:", *(f"  - {clean(_text(item))}" for item in items)] if items else []
        )
    if isinstance(value, dict):
        return [f"{clean(name)}:", *(f"  {line}" for line in shown_payload(cast("Json", value)))]
    first, *rest = clean_lines(_text(value)).split("\n")
    return [f"{clean(name)}: {first}", *(f"  {line}" for line in rest)]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else value_text(value)
