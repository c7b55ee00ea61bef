"""The six contracts of seed 003, section 16.7, asserted on the plain files of a package.

Nothing of the reader or the checker is used: a mistake of theirs would not be seen by them.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Where a handoff may lead beside agents and groups.
ENDS = {"user", "terminate"}
#: What every run has without declaring it.
BUILT_IN = {"app_id", "user_id", "chat_id", "workflow_name", "artifact", "artifacts"}
#: Patterns that say who is next where no rule does.
DEFAULTS = {"Pipeline", "Redundant", "FeedbackLoop", "Star"}


def load(folder: Path, stem: str) -> dict[str, Any]:
    """Return what a declared file says; nothing if there is none."""
    file = folder / f"{stem}.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def agents_of(folder: Path) -> list[dict[str, Any]]:
    return load(folder, "agents")["agents"]


def names_of(folder: Path) -> set[str]:
    return {agent["agent_name"] for agent in agents_of(folder)}


def variables_of(folder: Path) -> dict[str, Any]:
    return load(folder, "context_variables").get("context_variables", {}).get("definitions", {})


def tools_are_registered(folder: Path) -> None:
    """Every tool of tools.json has its function in a file under tools/, and UI its component."""
    declared = load(folder, "tools")
    for tool in (*declared.get("tools", ()), *declared.get("lifecycle_tools", ())):
        if tool["file"] == "weft":  # Comes with Weft.
            continue
        assert_function(folder / "tools" / tool["file"], tool["function"])
        if tool.get("tool_type") == "UI_Tool":
            component = folder / "tools" / f"{tool['ui']['component']}.jsx"
            assert component.is_file(), f"{tool['function']} has no {component.name}"


def agents_own_tools(folder: Path) -> None:
    """Every tool belongs to an agent of agents.json."""
    names = names_of(folder)
    declared = load(folder, "tools")
    for tool in declared.get("tools", ()):
        assert tool["agent"] in names, f"{tool['function']} belongs to {tool['agent']}: no agent"
    for tool in declared.get("lifecycle_tools", ()):
        owner = tool.get("agent")
        assert owner is None or owner in names, f"{tool['function']} belongs to {owner}: no agent"
    for server in declared.get("mcp_servers", ()):
        strange = set(server.get("agents", ())) - names
        assert not strange, f"{server['name']} is for {strange}: no agents"


def handoffs_are_complete(folder: Path) -> None:
    """Rules join what there is, every agent is reached, and every agent leads on."""
    orchestrator = load(folder, "orchestrator")
    rules = load(folder, "handoffs").get("handoff_rules", [])
    pattern = orchestrator.get("orchestration_pattern", "DefaultPattern")
    groups = {entry["name"]: entry for entry in orchestrator.get("parallel", ())}
    order = [agent["agent_name"] for agent in agents_of(folder)]
    targets = {*order, *groups, *ENDS}
    leads: dict[str, set[str]] = {name: set() for name in (*order, *groups)}
    for rule in rules:
        source, target = rule["source_agent"], rule["target_agent"]
        assert source in order, f"a handoff begins with {source}: no agent"
        assert target in targets, f"a handoff leads to {target}: nobody"
        leads[source].add(target)
    for name, group in groups.items():
        leads[name] |= {*group["members"], group.get("next") or "user"}
    for at, name in enumerate(order):
        if pattern == "Star":
            leads[name].add(orchestrator["initial_agent"])
        elif pattern in DEFAULTS and at + 1 < len(order):
            leads[name].add(order[at + 1])
    members = {member for group in groups.values() for member in group["members"]}
    for name in order:
        has_default = name in members or orchestrator.get("default_target") or pattern in DEFAULTS
        assert leads[name] or has_default, f"nothing leads on from {name}"
    reached, waiting = set(), [orchestrator["initial_agent"]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += leads.get(name, ())
    lost = set(order) - reached
    assert not lost, f"no run comes to {sorted(lost)}"
    assert reached & ENDS, "nothing leads to an end"


def variables_are_exposed(folder: Path) -> None:
    """Every variable that a prompt puts in is declared, and stands in the agent's mapping."""
    declared = variables_of(folder)
    exposure = load(folder, "context_variables").get("context_variables", {}).get("agents", {})
    for name, shown in exposure.items():
        assert name in names_of(folder), f"variables are exposed to {name}: no agent"
        strange = set(shown["variables"]) - set(declared) - BUILT_IN
        assert not strange, f"{name} is exposed {strange}, which are not declared"
    for agent in agents_of(folder):
        name = agent["agent_name"]
        shown = {*exposure.get(name, {}).get("variables", ()), *BUILT_IN}
        for section in agent.get("prompt_sections", ()):
            needed = set(insertions(section["content"])) & set(declared)
            assert needed <= shown, f"{name} needs {sorted(needed - shown)} and is not shown it"


def states_are_valid(folder: Path) -> None:
    """Every state is reached from the first, and changes join states of the type."""
    for name, variable in variables_of(folder).items():
        source = variable["source"]
        changes = source.get("transitions", ())
        if source["type"] != "derived" or not changes:
            continue
        states = {*listed(variable["type"]), *(item for item in (source.get("default"),) if item)}
        reached = {source.get("default")}
        for _ in changes:  # As often as there are changes is often enough.
            reached |= {change["to"] for change in changes if change["from"] in reached}
        for change in changes:
            ends = {change["from"], change["to"]}
            assert not states or ends <= states, f"{name} changes to none of its states: {ends}"
        orphans = states - reached
        assert not orphans, f"{name} never comes to {sorted(orphans)}"


def hooks_are_bound(folder: Path) -> None:
    """Every hook has its function in a file under hooks/, and an agent if it names one."""
    for hook in load(folder, "hooks").get("hooks", ()):
        assert_function(folder / "hooks" / hook["file"], hook["function"])
        owner = hook.get("agent")
        assert owner is None or owner in names_of(folder), f"a hook is of {owner}: no agent"


CONTRACTS = (
    tools_are_registered,
    agents_own_tools,
    handoffs_are_complete,
    variables_are_exposed,
    states_are_valid,
    hooks_are_bound,
)


def assert_function(file: Path, name: str) -> None:
    assert file.is_file(), f"{name} has no file {file.name}"
    defined = ast.parse(file.read_text()).body
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [part for part in defined if isinstance(part, functions) and part.name == name]
    assert found, f"{file.name} does not define {name}"


def insertions(text: str) -> Iterator[str]:
    """Yield the names that a prompt puts in; doubled braces are meant literally."""
    plain = re.sub(r"\{\{\w+\}\}", "", text)
    return (found[1] for found in re.finditer(r"\{([A-Za-z_]\w*)\}", plain))


def listed(type_: str) -> list[str]:
    """Return the values that a type lists; none if it lists none."""
    inside = re.fullmatch(r"literal\[(.*)\]", type_, re.DOTALL)
    return json.loads(f"[{inside[1]}]") if inside else []
