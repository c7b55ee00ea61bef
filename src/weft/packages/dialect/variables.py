"""Older spellings of context_variables: other kinds, lists by kind, bare lists per agent."""

from typing import Final

from weft.errors import ExpressionError
from weft.packages.edit.rewrite import Change, List, Map, Rewrite, is_list, is_map, maps_in
from weft.spec.type_field import read_type
from weft.spec.types import print_type

_WRAPPER: Final = "context_variables"

#: Lists of variables by kind, as older files have them, and the source each entry gets.
_LISTS: Final = {
    "derived_variables": "derived",
    "environment_variables": "environment",
    "static_variables": "static",
    "declarative_variables": "static",
    "database_variables": "database",
    "defined_variables": "database",
    "runtime_variables": "derived",
}
_SOURCE_TYPES: Final = {
    "config": "environment",
    "data_reference": "database",
    "data_entity": "entity",
    "state": "derived",
    "defined": "database",
    "runtime": "derived",
}
_SOURCE_KEYS: Final = (
    ("default_value", "default"),
    ("initial", "default"),
    ("database_name", "database"),
)

#: Keys of a list entry that belong to the variable; all others belong to its source.
_VARIABLE_KEYS: Final = ("type", "description", "routing", "secret", "readers", "writers", "merge")
_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    list: "list",
    dict: "dict",
}
_TYPE_KEYS: Final = ("items", "values", "enum", "variants", "options", "of", "inner", "item")


def read_context_variables(rewrite: Rewrite) -> None:
    """Bring any of the older shapes to definitions by name and exposure by agent."""
    if not is_map(rewrite.data):
        return
    _wrap(rewrite, rewrite.data)
    variables = rewrite.data[_WRAPPER] if is_map(rewrite.data) else None
    if not is_map(variables):
        return
    for key in ("variables", "exposures"):
        if key in variables:
            rewrite.drop(variables, key, f"{key} has no meaning any more and is not read")
    _definitions_by_name(rewrite, variables)
    _lists_by_kind(rewrite, variables)
    for definition in maps_in(variables.get("definitions")):
        _definition(rewrite, definition)
    _exposure(rewrite, variables.get("agents"))


def _wrap(rewrite: Rewrite, data: Map) -> None:
    rewrite.rename(
        data, "ContextVariablesPlan", _WRAPPER, f"ContextVariablesPlan is now {_WRAPPER}"
    )
    if _WRAPPER not in data:
        if data:
            rewrite.changes.append(Change((), f"everything now stands under {_WRAPPER}"))
        wrapped: Map = {_WRAPPER: data}
        rewrite.place(wrapped, ())
        rewrite.data = wrapped


def _definitions_by_name(rewrite: Rewrite, variables: Map) -> None:
    definitions = variables.get("definitions")
    if not is_list(definitions):
        return
    named = _by_name(rewrite, definitions)
    if named is not None:
        rewrite.replace(variables, "definitions", named, "definitions is now a map by name")


def _by_name(rewrite: Rewrite, entries: List) -> dict[str, Map] | None:
    """Turn a list of named entries into a map; None if an entry has no name of its own."""
    named: dict[str, Map] = {}
    for entry in entries:
        name = entry.get("name") if is_map(entry) else None
        if not is_map(entry) or not isinstance(name, str) or name in named:
            return None
        named[name] = entry
    for entry in maps_in(entries):
        rewrite.drop(entry, "name", None)
    return named


def _lists_by_kind(rewrite: Rewrite, variables: Map) -> None:
    for key, kind in _LISTS.items():
        entries = variables.get(key)
        named = _by_name(rewrite, entries) if is_list(entries) else None
        if named is None:
            continue
        definitions = variables.setdefault("definitions", {})
        if not is_map(definitions) or named.keys() & definitions.keys():
            continue
        rewrite.drop(variables, key, f"{key} is now part of definitions")
        for name, entry in named.items():
            _split(rewrite, entry, kind)
            definitions[name] = entry


def _split(rewrite: Rewrite, entry: Map, kind: str) -> None:
    """Divide a flat entry into the variable and its source; one that has its source stays."""
    if "source" in entry:
        return
    source: Map = {"type": kind}
    for key in [key for key in entry if key not in _VARIABLE_KEYS]:
        source[key] = entry.pop(key)
    rewrite.place(source, rewrite.origin.get(id(entry), ()))
    entry["source"] = source
    for trigger in maps_in(source.get("triggers")):
        match = trigger.get("match")
        if is_map(match):  # in these lists the text is matched to the letter
            rewrite.rename(match, "equals", "exact", "equals in derived_variables is now exact")


def _definition(rewrite: Rewrite, definition: Map) -> None:
    source = definition.get("source")
    if is_map(source):
        _source(rewrite, source)
        if "type" not in definition:
            start = source.get("value", source.get("default"))
            definition["type"] = _TYPE_NAMES.get(type(start), "any")
    read_type_object(rewrite, definition)


def _source(rewrite: Rewrite, source: Map) -> None:
    kind = source.get("type")
    if isinstance(kind, str) and kind in _SOURCE_TYPES:
        present = _SOURCE_TYPES[kind]
        rewrite.replace(source, "type", present, f'source "{kind}" is now "{present}"')
    for old, new in _SOURCE_KEYS:
        rewrite.rename(source, old, new, f"{old} is now {new}")
    _single_trigger(rewrite, source)
    _transitions(rewrite, source)
    read_fields(rewrite, source.get("schema"))
    for key, inner in (("cache", "ttl_seconds"), ("retry", "attempts")):
        value = source.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            rewrite.replace(source, key, {inner: value}, f'{key} is now {{"{inner}": {value}}}')


def _single_trigger(rewrite: Rewrite, source: Map) -> None:
    trigger = source.get("trigger", ...)
    if trigger is None:
        rewrite.drop(source, "trigger", None)
    elif is_map(trigger) and "triggers" not in source:
        rewrite.rename(source, "trigger", "triggers", "trigger is now the list triggers")
        rewrite.replace(source, "triggers", [trigger], None)


def _transitions(rewrite: Rewrite, source: Map) -> None:
    transitions = source.get("transitions", ...)
    if transitions is None:
        rewrite.drop(source, "transitions", None)
    elif is_map(transitions) and all(is_list(after) for after in transitions.values()):
        pairs: List = [
            {"from": before, "to": state}
            for before, after in transitions.items()
            if is_list(after)
            for state in after
        ]
        rewrite.replace(source, "transitions", pairs, "transitions is now a list of from and to")


def _exposure(rewrite: Rewrite, agents: object) -> None:
    if not is_map(agents):
        return
    for name, listed in list(agents.items()):
        if is_list(listed):
            rewrite.replace(
                agents,
                name,
                {"variables": listed},
                f"{name} now lists its variables under variables",
            )


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
