"""Older spellings of package files, read as the one that is written.

Every function takes a document and rewrites what it knows. What it does not know it leaves as it
is: the model refuses it afterwards, at its place and with the nearest valid name.
"""

from typing import Final

from weft.errors import ExpressionError
from weft.ids import TERMINATE, USER, slug
from weft.packages.edit.rewrite import Change, Dialect, List, Map, Rewrite, is_list, is_map, maps_in
from weft.spec.type_field import read_type
from weft.spec.types import print_type

_TARGETS: Final = {
    "user": USER,
    "reverttouser": USER,
    "reverttousertarget": USER,
    "terminate": TERMINATE,
    "terminatetarget": TERMINATE,
    "end": TERMINATE,
}


def read_orchestrator(rewrite: Rewrite) -> None:
    """`human_in_loop`, and a start given by its name alone."""
    orchestrator = rewrite.data
    if not is_map(orchestrator):
        return
    rewrite.rename(orchestrator, "human_in_loop", "human_in_the_loop")
    trigger = orchestrator.get("trigger")
    if isinstance(trigger, str):
        rewrite.replace(
            orchestrator, "trigger", {"type": trigger}, f'trigger is now {{"type": "{trigger}"}}'
        )


def read_agents(rewrite: Rewrite) -> None:
    """Agents as a map by name; that they make text, which all do."""
    agents = rewrite.data
    if not is_map(agents):
        return
    _list_of_map(rewrite, agents, "agents", "agent_name")
    for agent in maps_in(agents.get("agents")):
        if agent.get("generation_mode", ...) in (None, "text"):
            rewrite.drop(agent, "generation_mode", None)


def read_handoffs(rewrite: Rewrite) -> None:
    """`handoffs` for `handoff_rules`, other words for the user and the end, empty conditions."""
    _unwrap(rewrite, "handoffs", "handoff_rules")
    handoffs = rewrite.data
    if not is_map(handoffs):
        return
    rewrite.rename(handoffs, "handoffs", "handoff_rules")
    for rule in maps_in(handoffs.get("handoff_rules")):
        _target(rewrite, rule)
        if rule.get("condition") == "":
            rewrite.drop(rule, "condition", "no condition is written by leaving it out")
        for key in ("condition_scope", "condition_type", "priority"):
            if key in rule and rule[key] is None:
                rewrite.drop(rule, key, None)


def _target(rewrite: Rewrite, rule: Map) -> None:
    target = rule.get("target_agent")
    if isinstance(target, str):
        word = _TARGETS.get(slug(target))
        if word is not None and word != target:
            rewrite.replace(rule, "target_agent", word, f'target "{target}" is now "{word}"')


def read_tools(rewrite: Rewrite) -> None:
    """Empty `ui` blocks, `auto_invoke: null`, lifecycle tools among the others."""
    tools = rewrite.data
    if not is_map(tools):
        return
    for key in ("tools", "lifecycle_tools"):
        for tool in maps_in(tools.get(key)):
            _tool(rewrite, tool, "Lifecycle_Tool" if key == "lifecycle_tools" else None)
    _move_lifecycle(rewrite, tools)


def _tool(rewrite: Rewrite, tool: Map, kind: str | None) -> None:
    if tool.get("auto_invoke", ...) is None:
        rewrite.drop(tool, "auto_invoke", None)
    ui = tool.get("ui", ...)
    if is_map(ui):
        rewrite.rename(ui, "display", "mode", "ui.display is now ui.mode")
        if not any(ui.values()):
            rewrite.drop(tool, "ui", None)
    elif ui is None:
        rewrite.drop(tool, "ui", None)
    if "tool_type" not in tool:
        tool["tool_type"] = kind or ("UI_Tool" if "ui" in tool else "Agent_Tool")


def _move_lifecycle(rewrite: Rewrite, tools: Map) -> None:
    listed = tools.get("tools")
    moved = [tool for tool in maps_in(listed) if tool.get("tool_type") == "Lifecycle_Tool"]
    lifecycle = tools.setdefault("lifecycle_tools", []) if moved else None
    if not is_list(listed) or not is_list(lifecycle):
        return
    for tool in moved:
        rewrite.note(tool, "tool_type", "a Lifecycle_Tool is now under lifecycle_tools")
        lifecycle.append(tool)
    kept = [tool for tool in listed if not any(tool is other for other in moved)]
    rewrite.replace(tools, "tools", kept, None)


def read_hooks(rewrite: Rewrite) -> None:
    """Hook files named with their folder."""
    hooks = rewrite.data.get("hooks") if is_map(rewrite.data) else None
    for hook in maps_in(hooks):
        rewrite.rename(hook, "filename", "file")
        rewrite.rename(hook, "trigger", "hook_type")
        file = hook.get("file")
        if isinstance(file, str) and file.startswith("hooks/"):
            rewrite.replace(hook, "file", file.removeprefix("hooks/"), None)


def read_structured_outputs(rewrite: Rewrite) -> None:
    """Models and registry as maps, fields given by their type alone, types given as objects."""
    _unwrap(rewrite, "structured_outputs", "models")
    outputs = rewrite.data
    if not is_map(outputs):
        return
    _list_of_map(rewrite, outputs, "models", "name")
    _registry(rewrite, outputs)
    for model in maps_in(outputs.get("models")):
        read_fields(rewrite, model.get("fields"))


def _registry(rewrite: Rewrite, outputs: Map) -> None:
    registry = outputs.get("registry")
    if not is_map(registry):
        return
    base = rewrite.origin_of_entry(outputs, "registry")
    bindings: List = []
    for agent, model in registry.items():
        binding: Map = {"agent": agent, "model": model}
        rewrite.place(binding, (*base, agent))
        bindings.append(binding)
    rewrite.replace(outputs, "registry", bindings, "registry is now a list of agent and model")


def _list_of_map(rewrite: Rewrite, container: Map, key: str, name_key: str) -> None:
    """Read a map by name as the list it is now, each entry carrying its name.

    An entry that has another name than its key is not guessed at: one of the two would be lost.
    """
    value = container.get(key)
    if not is_map(value):
        return
    for name, entry in value.items():
        own = entry.setdefault(name_key, name) if is_map(entry) else name
        if isinstance(own, str) and own != name:
            at = (*rewrite.origin_of_entry(container, key), name, name_key)
            fact = f'{key}.{name}: the key is "{name}", but {name_key} is "{own}"'
            rewrite.contradictions.append(Change(at, fact))
    entries: List = list(value.values())
    rewrite.replace(container, key, entries, f"{key} is now a list; each entry has its {name_key}")


def _unwrap(rewrite: Rewrite, wrapper: str, inner: str) -> None:
    """Take a wrapper away that holds the file's own keys; beside other keys it is refused."""
    data = rewrite.data
    value = data.get(wrapper) if is_map(data) and len(data) == 1 else None
    if is_map(value) and inner in value:
        rewrite.note(data, wrapper, f"the wrapper {wrapper} is not written any more")
        rewrite.data = value


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
    rewrite.rename(data, "ContextVariablesPlan", _WRAPPER)
    if _WRAPPER not in data:
        if data:
            rewrite.changes.append(Change((), f"everything is now under {_WRAPPER}"))
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
        rewrite.rename(source, old, new)
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


DIALECTS: Final[dict[str, Dialect]] = {
    "orchestrator": read_orchestrator,
    "agents": read_agents,
    "context_variables": read_context_variables,
    "handoffs": read_handoffs,
    "tools": read_tools,
    "hooks": read_hooks,
    "structured_outputs": read_structured_outputs,
}
