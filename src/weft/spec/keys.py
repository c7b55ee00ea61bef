"""Keys of a part that require or exclude each other.

Written in the body of the part: `_key = keys.require_one("by", "function")`. A key counts as given
if its value is not the default. `why` ends the message.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from weft.spec.part import Part

#: Returns what is wrong with the keys that are given: the key, what is wrong, and what to do.
_KeyRule: TypeAlias = Callable[[dict[str, Any]], tuple[str, str, str] | None]


def require_one(*keys: str, why: str = "") -> Any:  # noqa: ANN401 - as pydantic has it
    """Refuse a part that gives none of the keys, or several."""
    return _validator(lambda given: _none_of(keys, given) or _several_of(keys, given), why)


def require_any(*keys: str, why: str = "") -> Any:  # noqa: ANN401
    """Refuse a part that gives none of the keys."""
    return _validator(lambda given: _none_of(keys, given), why)


def allow_one(*keys: str) -> Any:  # noqa: ANN401
    """Refuse a part that gives several of the keys."""
    return _validator(lambda given: _several_of(keys, given))


def require_with(key: str, other: str, *values: str, why: str = "") -> Any:  # noqa: ANN401
    """Refuse a part without a key that these values of another key require."""

    def rule(given: dict[str, Any]) -> tuple[str, str, str] | None:
        if key in given or given.get(other) not in values:
            return None
        fact = f'"{other}": "{given[other]}" requires "{key}"'
        return other, fact, f'add "{key}", or change "{other}"'

    return _validator(rule, why)


def allow_only_with(key: str, other: str, *values: str, why: str = "") -> Any:  # noqa: ANN401
    """Refuse a part with a key that has no effect without another key, or without its values."""
    named = " or ".join(f'"{other}": "{value}"' for value in values) or f'"{other}"'

    def rule(given: dict[str, Any]) -> tuple[str, str, str] | None:
        found = given.get(other)
        if key not in given or (found in values if values else found is not None):
            return None
        fact = f'"{key}" has no effect without {named}'
        return key, fact, f'remove "{key}", or add {named}'

    return _validator(rule, why)


def refuse_with(key: str, other: str, *values: str, why: str = "") -> Any:  # noqa: ANN401
    """Refuse a part with a key that has no effect with these values of another key."""

    def rule(given: dict[str, Any]) -> tuple[str, str, str] | None:
        if key not in given or given.get(other) not in values:
            return None
        return key, f'"{key}" has no effect with "{other}": "{given[other]}"', f'remove "{key}"'

    return _validator(rule, why)


def _none_of(keys: tuple[str, ...], given: dict[str, Any]) -> tuple[str, str, str] | None:
    if not given.keys().isdisjoint(keys):
        return None
    *others, last = (f'"{key}"' for key in keys)
    listed = f"{', '.join(others)} or {last}"
    return "", f"{listed} is missing", f"add {listed}"


def _several_of(keys: tuple[str, ...], given: dict[str, Any]) -> tuple[str, str, str] | None:
    both = [key for key in keys if key in given]
    if len(both) < 2:
        return None
    listed = " and ".join(f'"{key}"' for key in both)
    return both[1], f"{listed} exclude each other", "keep one of them"


def _validator(rule: _KeyRule, why: str = "") -> Any:  # noqa: ANN401
    def check(part: Part) -> Part:
        fields = type(part).model_fields
        refused = rule({name: value for name, value in part if value != fields[name].default})
        if refused:
            key, fact, hint = refused
            # The message comes last: pydantic fills in one name after the other, and the text of
            # the message must not be taken for such a name.
            details = {"key": key, "hint": hint, "message": f"{fact}: {why}" if why else fact}
            raise PydanticCustomError("keys", "{message}", details)
        return part

    return model_validator(mode="after")(check)
