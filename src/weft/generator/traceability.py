"""Traceability: which agent used an element of the plan, and which lines came of it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from weft.findings import Json
from weft.generator.names import pascal_case
from weft.generator.plan import plan_hash
from weft.generator.steps import STEPS
from weft.ids import USER
from weft.packages.layout import SUFFIXES
from weft.spec.plan import ActionPlan, PlannedAgent

#: The agents that work after the approval, and the files that are no code.
_ALL_AGENTS: Final = tuple(step.agent for step in STEPS[6:])
_CONFIG_FILES: Final = (
    "agents.json", "context_variables.json", "handoffs.json", "hooks.json", "orchestrator.json",
    "structured_outputs.json", "tools.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of element: who uses it, and in which files it shows."""

    element: str
    agents: tuple[str, ...]
    files: tuple[str, ...]


MATRIX: Final = (
    Row("workflow_name", _ALL_AGENTS, _CONFIG_FILES),
    Row(
        "modules[].module_name",
        ("AgentsAgent", "OrchestratorAgent"),
        ("agents.json", "orchestrator.json"),
    ),
    Row("modules[].pattern_id", ("HandoffsAgent",), ("handoffs.json",)),
    Row(
        "agents[].agent_name",
        ("AgentsAgent", "HandoffsAgent", "ToolsManagerAgent"),
        ("agents.json", "handoffs.json", "tools.json"),
    ),
    Row("agents[].agent_type", ("AgentsAgent",), ("agents.json",)),
    Row("agents[].objective", ("AgentsAgent",), ("agents.json",)),
    Row(
        "agents[].agent_tools[]",
        ("ToolsManagerAgent", "AgentToolsFileGenerator"),
        ("tools.json", "tools/*.py"),
    ),
    Row("agents[].lifecycle_tools[]", ("HookAgent",), ("hooks/*.py",)),
    Row(
        "agents[].human_interaction",
        ("AgentsAgent", "HandoffsAgent"),
        ("agents.json", "handoffs.json"),
    ),
    Row("global_context_variables[]", ("ContextVariablesAgent",), ("context_variables.json",)),
    Row(
        "ui_components[]",
        ("ToolsManagerAgent", "UIFileGenerator"),
        ("tools.json", "tools/*.jsx"),
    ),
    Row("before_chat_lifecycle", ("HookAgent",), ("hooks/before_chat.py",)),
    Row("after_chat_lifecycle", ("HookAgent",), ("hooks/after_chat.py",)),
    Row("trigger", ("OrchestratorAgent",), ("orchestrator.json",)),
    Row("initiated_by", ("OrchestratorAgent",), ("orchestrator.json",)),
    Row(
        "human_in_loop",
        ("OrchestratorAgent", "AgentsAgent"),
        ("orchestrator.json", "agents.json"),
    ),
)
_ROWS: Final = {row.element: row for row in MATRIX}


@dataclass(frozen=True, slots=True)
class _Element:
    """One element of a plan, and what to look for."""

    kind: str
    path: str
    value: str | int | bool
    #: Patterns of which one is found in a line it produced.
    sought: tuple[str, ...]
    #: The agent in whose entries alone they count.
    owner: str | None = None


def traceability(plan: ActionPlan, files: Mapping[str, str]) -> dict[str, Json]:
    """Map every element of a plan to agents and lines, for `traceability.json`."""
    return {
        "plan": plan_hash(plan),
        "elements": [_traced(element, files) for element in _elements(plan)],
    }


def _traced(element: _Element, files: Mapping[str, str]) -> dict[str, Json]:
    row = _ROWS[element.kind]
    named = [path for path in sorted(files) if any(_is_named(path, it) for it in row.files)]
    lines = {path: list(_lines(element, files[path])) for path in named}
    return {
        "element": element.kind,
        "path": element.path,
        "value": element.value,
        "agents": list(row.agents),
        "lines": [{"file": path, "lines": found} for path, found in lines.items() if found],
    }


def _is_named(path: str, pattern: str) -> bool:
    """Tell whether the matrix means a file; what it calls .json may be written as YAML."""
    file = PurePosixPath(path)
    if file.suffix in SUFFIXES:
        file = file.with_suffix(".json")
    return file.match(pattern)


def _lines(element: _Element, text: str) -> Iterator[int]:
    """Return the numbers of the lines an element produced."""
    sought = re.compile(rf"(?<!\w)(?:{'|'.join(element.sought)})(?!\w)")
    owner = None
    for number, line in enumerate(text.split("\n"), start=1):
        named = _OWNER.search(line)
        owner = named[1] if named else owner
        if sought.search(line) and element.owner in (None, owner):
            yield number


#: What begins an entry that belongs to an agent, in JSON or YAML.
_OWNER: Final = re.compile(r'\b(?:agent_name|source_agent)"?\s*:\s*"?(\w+)')


def _said(*texts: str) -> tuple[str, ...]:
    """Look for texts: as they are, as JSON writes them, or as prompts do."""
    prompts = [text.replace("{", "{{").replace("}", "}}") for text in texts]
    forms = (*texts, *prompts)
    quoted = [json.dumps(it, ensure_ascii=plain)[1:-1] for it in forms for plain in (True, False)]
    found = dict.fromkeys((*forms, *quoted))
    return tuple(re.escape(text) for text in found if text.strip()) or ("(?!)",)


def _keys(*keys: str) -> tuple[str, ...]:
    """Look for keys, whatever their values."""
    return tuple(rf'{key}(?="?\s*:)' for key in keys)


def _entry(key: str, value: str) -> str:
    """Look for a key with its value."""
    return rf'{key}"?\s*:\s*"?{value}'


def _elements(plan: ActionPlan) -> Iterator[_Element]:
    """Return every element of a plan that the matrix knows, in its order."""
    found = [*_strategy(plan), *_blueprint(plan)]
    for place, module in enumerate(plan.modules):
        for number, agent in enumerate(module.agents):
            found += _agent(f"ModuleAgents[{place}].agents[{number}]", agent)
    order = [row.element for row in MATRIX]
    yield from sorted(found, key=lambda it: order.index(it.kind))


def _strategy(plan: ActionPlan) -> Iterator[_Element]:
    strategy, at = plan.strategy, "WorkflowStrategy"
    name = strategy.workflow_name
    names = (name, pascal_case(name, name), *(it.name for it in plan.selection.workflows))
    yield _Element("workflow_name", f"{at}.workflow_name", name, _said(*names))
    for place, module in enumerate(strategy.modules):
        path, title = f"{at}.modules[{place}]", module.module_name
        purpose = title.partition(": ")[2]
        yield _Element("modules[].module_name", f"{path}.module_name", title, _said(title, purpose))
        # A pattern shows in who hands off to whom.
        staff = [it for one in plan.modules if one.module_index == place for it in one.agents]
        members = tuple(it.agent_name for it in staff) or module.agents_needed
        pattern = module.pattern_id
        yield _Element("modules[].pattern_id", f"{path}.pattern_id", pattern, _said(*members))
    starts = _keys("trigger", "startup_mode")
    yield _Element("trigger", f"{at}.trigger", strategy.trigger, starts)
    by = _keys("initiated_by", "startup_mode")
    yield _Element("initiated_by", f"{at}.initiated_by", strategy.initiated_by, by)
    person = _keys("human_in_the_loop", "human_interaction")
    yield _Element("human_in_loop", f"{at}.human_in_loop", strategy.human_in_loop, person)


def _blueprint(plan: ActionPlan) -> Iterator[_Element]:
    blueprint, at = plan.blueprint, "TechnicalBlueprint"
    for place, variable in enumerate(blueprint.global_context_variables):
        kind, name = "global_context_variables[]", variable.name
        yield _Element(kind, f"{at}.{kind[:-2]}[{place}]", name, _said(name))
    for place, it in enumerate(blueprint.ui_components):
        path = f"{at}.ui_components[{place}]"
        yield _Element("ui_components[]", path, it.component, _said(it.component))
    before, after = blueprint.before_chat_lifecycle, blueprint.after_chat_lifecycle
    for kind, lifecycle in (("before_chat_lifecycle", before), ("after_chat_lifecycle", after)):
        if lifecycle:
            yield _Element(kind, f"{at}.{kind}", lifecycle.name, _said(lifecycle.name))


def _agent(path: str, agent: PlannedAgent) -> Iterator[_Element]:
    name, kind, way = agent.agent_name, agent.agent_type, agent.human_interaction
    yield _Element("agents[].agent_name", f"{path}.agent_name", name, _said(name))
    role = (_entry("agent_type", kind), _entry("id", "role"))
    yield _Element("agents[].agent_type", f"{path}.agent_type", kind, role, name)
    objective = agent.objective
    yield _Element("agents[].objective", f"{path}.objective", objective, _said(objective), name)
    for place, tool in enumerate(agent.agent_tools):
        where = f"{path}.agent_tools[{place}]"
        yield _Element("agents[].agent_tools[]", where, tool.name, _said(tool.name))
    for place, it in enumerate(agent.lifecycle_tools):
        where = f"{path}.lifecycle_tools[{place}]"
        yield _Element("agents[].lifecycle_tools[]", where, it.name, _said(it.name))
    limits = (
        *_keys("human_interaction", "max_consecutive_auto_reply"),
        _entry("target_agent", USER),
    )
    yield _Element("agents[].human_interaction", f"{path}.human_interaction", way, limits, name)
