"""Older spellings of package files, read as the one that is written.

Every function takes a document and rewrites what it knows. What it does not know it leaves as it
is: the model refuses it afterwards, at its place and with the nearest valid name.
"""

from typing import Final

from weft.ids import TERMINATE, USER, slug
from weft.packages.dialect.variables import read_context_variables, read_fields
from weft.packages.edit.rewrite import Change, Dialect, List, Map, Rewrite, is_list, is_map, maps_in

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
    rewrite.rename(
        orchestrator, "human_in_loop", "human_in_the_loop", "human_in_loop is now human_in_the_loop"
    )
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
    rewrite.rename(handoffs, "handoffs", "handoff_rules", "handoffs is now handoff_rules")
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
        rewrite.note(tool, "tool_type", "a Lifecycle_Tool now stands under lifecycle_tools")
        lifecycle.append(tool)
    kept = [tool for tool in listed if not any(tool is other for other in moved)]
    rewrite.replace(tools, "tools", kept, None)


def read_hooks(rewrite: Rewrite) -> None:
    """Hook files named with their folder."""
    hooks = rewrite.data.get("hooks") if is_map(rewrite.data) else None
    for hook in maps_in(hooks):
        rewrite.rename(hook, "filename", "file", "filename is now file")
        rewrite.rename(hook, "trigger", "hook_type", "trigger is now hook_type")
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
    base = rewrite.stood_at(outputs, "registry")
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
            at = (*rewrite.stood_at(container, key), name, name_key)
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


DIALECTS: Final[dict[str, Dialect]] = {
    "orchestrator": read_orchestrator,
    "agents": read_agents,
    "context_variables": read_context_variables,
    "handoffs": read_handoffs,
    "tools": read_tools,
    "hooks": read_hooks,
    "structured_outputs": read_structured_outputs,
}
