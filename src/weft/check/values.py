"""Values in declarations, and whether they fit the declared types."""

import json
from collections.abc import Iterator
from typing import Final, cast

from weft.check.secrets import secret_in
from weft.check.spelling import short
from weft.check.subject import Subject
from weft.findings import Json, Path
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.type_meaning import Models, references, validation_error
from weft.spec.types import Scalar, TypeExpr, print_type
from weft.spec.variables import ComputedSource, StaticSource, Variable

_TEXT: Final = Scalar("str")
_SHOWING: Final = frozenset({"static", "derived", "computed", "entity"})


def variable_types(subject: Subject) -> dict[str, TypeExpr]:
    """Return the types of all variables, except those that refer to an undeclared model."""
    types: dict[str, TypeExpr] = dict.fromkeys(BUILT_IN_VARIABLES, _TEXT)
    types |= {name: variable.type for name, variable in subject.spec.variables.items()}
    return {name: type_ for name, type_ in types.items() if is_complete(type_, subject.models)}


def is_complete(type_: TypeExpr, models: Models) -> bool:
    """Return whether every model a type needs is declared; NAME001 reports those that are not."""
    waiting, met = list(references(type_)), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in models:
            return False
        if name not in met:
            met.add(name)
            waiting += [inner for field in models[name].values() for inner in references(field)]
    return True


def value_error(type_: TypeExpr, value: Json, models: Models) -> str | None:
    """Return why a value does not fit a type, or None; incomplete types accept every value."""
    return validation_error(type_, value, models) if is_complete(type_, models) else None


def is_open_secret(variable: Variable) -> bool:
    """Return whether a secret variable has a source that shows its value (VAR020 reports it)."""
    return variable.secret and variable.source.type in _SHOWING


def shown_value_error(name: str, variable: Variable, value: Json, models: Models) -> str | None:
    """Return why a value does not fit a variable, without repeating a possible secret."""
    fault = value_error(variable.type, value, models)
    if fault and (variable.secret or holds_secret(name, value)):
        return f"expected {short(print_type(variable.type))}; what may be a secret is not shown"
    return fault


def format_value(name: str, value: Json) -> str:
    """Format the value of a variable for a message; possible secrets are masked."""
    if holds_secret(name, value):
        return "(not shown)"
    return short(json.dumps(value, ensure_ascii=False, sort_keys=True))


def key_of(value: Json) -> str:
    """Return a key by which conditions compare a value: 1 differs from true, but equals 1.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def holds_secret(name: str, value: Json) -> bool:
    """Return whether a text in a value looks like a secret, judging also by the name."""
    return any(secret_in(label_of(name, at), text) for at, text in texts_in(value, ()))


def without_secrets(name: str, value: Json, instead: str) -> Json:
    """Return a value in which each text that looks like a secret is replaced."""
    if isinstance(value, dict):
        entries = cast("dict[str, Json]", value).items()
        return {key: without_secrets(key, inner, instead) for key, inner in entries}
    if isinstance(value, list):
        return [without_secrets(name, inner, instead) for inner in cast("list[Json]", value)]
    return instead if isinstance(value, str) and secret_in(name, value) else value


def label_of(name: str, path: Path) -> str:
    """Return the last key on the way into a value: items of a list go by the name of the list."""
    return next((step for step in reversed(path) if isinstance(step, str)), name)


def declared_values(subject: Subject) -> Iterator[tuple[str, Path, Json]]:
    """Yield the constant or default of each variable that has one, with its place."""
    for name, variable in subject.spec.variables.items():
        source = variable.source
        if isinstance(source, StaticSource):
            yield name, ("variables", name, "source", "value"), source.value
        elif not isinstance(source, ComputedSource) and source.default is not None:
            yield name, ("variables", name, "source", "default"), source.default


def texts_in(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield every text inside a value with its place; keys of objects are in the places."""
    waiting: list[tuple[Path, Json]] = [(path, value)]
    while waiting:
        at, part = waiting.pop()
        if isinstance(part, str):
            yield at, part
        elif isinstance(part, dict):
            entries = cast("dict[str, Json]", part).items()
            waiting += [((*at, key), inner) for key, inner in entries]
        elif isinstance(part, list):
            items = enumerate(cast("list[Json]", part))
            waiting += [((*at, index), inner) for index, inner in items]
