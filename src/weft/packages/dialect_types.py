"""Types given as objects, or fields given by their type alone."""

from typing import Final

from weft.errors import ExpressionError
from weft.packages.rewrite import Map, Rewrite, is_map
from weft.spec.type_field import read_type
from weft.spec.types import print_type

_TYPE_KEYS: Final = ("items", "values", "enum", "variants", "options", "of", "inner", "item")


def read_fields(rewrite: Rewrite, fields: object) -> None:
    """Bring the fields of a model to `{"type": ..., "description": ...}`."""
    if not is_map(fields):
        return
    for name, value in list(fields.items()):
        if isinstance(value, str):
            rewrite.replace(fields, name, {"type": value}, None)
        elif is_map(value):
            read_type_object(rewrite, value)


def read_type_object(rewrite: Rewrite, entry: Map) -> None:
    """Fold a type spread over several keys into the one string it is written as."""
    spread = {key: entry[key] for key in _TYPE_KEYS if key in entry}
    if not spread and not is_map(entry.get("type")):
        return
    whole = {"type": entry.get("type"), **spread} if spread else entry["type"]
    try:
        text = print_type(read_type(whole))
    except ExpressionError:
        return  # left as it is: the model refuses it at its place
    rewrite.replace(entry, "type", text, f'the type is now written "{text}"')
    for key in spread:
        rewrite.drop(entry, key, None)
