"""Fields of a state that would be lost: the state is kept as JSON, and they are not written."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Final, cast, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

_SECRETS: Final = (Secret, SecretBytes, SecretStr)


def lost_fields(kind: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class, and of those inside, that JSON does not have; and why."""
    yield from _of_model(kind, "", {kind})


def _of_model(kind: type[BaseModel], place: str, seen: set[type]) -> Iterator[tuple[str, str]]:
    for name, field in kind.model_fields.items():
        if field.exclude or getattr(field, "exclude_if", None):  # The latter since pydantic 2.12.
            yield f"{place}{name}", "is left out where it is written (exclude)"
        yield from _of_type(field.annotation, f"{place}{name}", seen)


def _of_type(annotation: object, place: str, seen: set[type]) -> Iterator[tuple[str, str]]:
    named = getattr(annotation, "__value__", None)  # What `type X = ...` stands for.
    for part in (*get_args(annotation), *([] if named is None else [named])):
        yield from _of_type(part, place, seen)
    if not isinstance(get_origin(annotation) or annotation, type):
        return
    kind = cast("type[Any]", get_origin(annotation) or annotation)
    if kind in seen:
        return
    if issubclass(kind, _SECRETS):
        yield place, f"is a {kind.__name__}, which is written as asterisks"
    elif issubclass(kind, BaseModel):
        yield from _of_model(kind, f"{place}.", {*seen, kind})
    elif is_dataclass(kind) or is_typeddict(kind):
        for name, hint in _hints(kind).items():
            yield from _of_type(hint, f"{place}.{name}", {*seen, kind})


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # A name that only its function knows: pydantic has resolved it, we cannot.
        return {}
