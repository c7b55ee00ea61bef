"""What to write instead of a value that a model refuses, or where one is missing."""

import json
from types import NoneType
from typing import Annotated, Final, Literal, get_args, get_origin

from weft.packages.rewrite import is_list, is_map

_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})
#: Longer texts are not repeated.
_LONGEST: Final = 60
_SAMPLES: Final = {str: '"..."', bool: "true", int: "1", float: "1.0", NoneType: "null"}
_CONTAINERS: Final = {tuple: "[]", list: "[]", dict: "{}"}


def add_key(key: str, annotation: object) -> str:
    """Say what to add for a key that is missing.

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
    """Say how to write a value of the wanted kind, where what was meant can be seen."""
    match wanted:
        case "text":
            return _as_text(found)
        case "true or false":
            return _as_truth(found)
        case "a whole number" | "a number" if _is_number(found):
            return (f"write it without quotes: {found}",)
        case "a list" if isinstance(found, str) and len(found) <= _LONGEST:
            return (f"put it in brackets: [{json.dumps(found, ensure_ascii=False)}]",)
        case _:
            return ()


def _as_text(found: object) -> tuple[str, ...]:
    if isinstance(found, bool | int | float):
        return (f'put it in quotes: "{json.dumps(found)}"',)
    if is_list(found):
        return ("write one text in quotes",)
    if is_map(found) and found and all(value is None for value in found.values()):
        # What YAML makes of {name}: a key without a value.
        text = f"{{{', '.join(map(str, found))}}}"
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
