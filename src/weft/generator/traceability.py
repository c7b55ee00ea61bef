"""Traceability: the agents that use an element of the plan, and the lines it led to."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from weft.findings import Json
from weft.generator.names import pascal_case
from weft.generator.plans.plan import plan_hash
from weft.generator.plans.rules import module_of
from weft.generator.steps import DOWNLOADER, MAKERS
from weft.ids import USER
from weft.packages.layout import SUFFIXES
from weft.spec.plan import ActionPlan, PlannedAgent

#: The agents that work after the approval, and the files that are no code.
_ALL_AGENTS: Final = (*MAKERS, DOWNLOADER)
_CONFIG_FILES: Final = (
    "agents.json", "context_variables.json", "handoffs.json", "hooks.json", "orchestrator.json",
    "structured_outputs.json", "tools.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of element: the agents that use it, and the files in which it shows."""

    element: str
    agents: tuple[str, ...]
    files: tuple[str, ...]


#: Section 14 of the design: element, agents, files.
_MATRIX: Final = """
modules[].module_name | AgentsAgent OrchestratorAgent | agents.json orchestrator.json
modules[].pattern_id | HandoffsAgent | handoffs.json
agents[].agent_name | AgentsAgent HandoffsAgent ToolsManagerAgent \
| agents.json handoffs.json tools.json
agents[].agent_type | AgentsAgent | agents.json
agents[].objective | AgentsAgent | agents.json
agents[].agent_tools[] | ToolsManagerAgent AgentToolsFileGenerator | tools.json tools/*.py
agents[].lifecycle_tools[] | HookAgent | hooks/*.py
agents[].human_interaction | AgentsAgent HandoffsAgent | agents.json handoffs.json
global_context_variables[] | ContextVariablesAgent | context_variables.json
ui_components[] | ToolsManagerAgent UIFileGenerator | tools.json tools/*.jsx
before_chat_lifecycle | HookAgent | hooks/before_chat.py
after_chat_lifecycle | HookAgent | hooks/after_chat.py
trigger | OrchestratorAgent | orchestrator.json
initiated_by | OrchestratorAgent | orchestrator.json
human_in_loop | OrchestratorAgent AgentsAgent | orchestrator.json agents.json
"""


def _row(line: str) -> Row:
    element, agents, files = line.split(" | ")
    return Row(element, tuple(agents.split()), tuple(files.split()))


MATRIX: Final = (
    Row("workflow_name", _ALL_AGENTS, _CONFIG_FILES),
    *map(_row, _MATRIX.strip().split("\n")),
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
    """Map every element of a plan to agents and lines, and every file to the elements in it."""
    elements = list(_elements(plan))
    lines = {element.path: _files(element, files) for element in elements}
    depends: dict[str, list[Json]] = {}
    for path, found in lines.items():
        for file in found:
            depends.setdefault(file, []).append(path)
    return {
        "plan": plan_hash(plan),
        "elements": [_traced(element, lines[element.path]) for element in elements],
        "files": {file: depends[file] for file in sorted(depends)},
    }


def _files(element: _Element, files: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the lines of each file that an element shows in."""
    patterns = _ROWS[element.kind].files
    named = [path for path in sorted(files) if any(_is_named(path, each) for each in patterns)]
    lines = {path: list(_lines(element, files[path])) for path in named}
    return {path: numbers for path, numbers in lines.items() if numbers}


def _traced(element: _Element, lines: Mapping[str, list[int]]) -> dict[str, Json]:
    return {
        "element": element.kind,
        "path": element.path,
        "value": element.value,
        "agents": list(_ROWS[element.kind].agents),
        "lines": [{"file": path, "lines": list(numbers)} for path, numbers in lines.items()],
    }


def _is_named(path: str, pattern: str) -> bool:
    """Return whether the matrix means a file; what it calls .json may be written as YAML."""
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
    quoted = [
        json.dumps(form, ensure_ascii=ascii_)[1:-1] for form in forms for ascii_ in (True, False)
    ]
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
    yield from sorted(found, key=lambda element: order.index(element.kind))


def _strategy(plan: ActionPlan) -> Iterator[_Element]:
    strategy, at = plan.strategy, "WorkflowStrategy"
    name = strategy.workflow_name
    names = (
        name,
        pascal_case(name, name),
        *(workflow.name for workflow in plan.selection.workflows),
    )
    yield _Element("workflow_name", f"{at}.workflow_name", name, _said(*names))
    for place, module in enumerate(strategy.modules):
        path, title = f"{at}.modules[{place}]", module.module_name
        purpose = title.partition(": ")[2]
        yield _Element("modules[].module_name", f"{path}.module_name", title, _said(title, purpose))
        # A pattern shows in who hands off to whom.
        staff = module_of(plan.modules, place)
        members = tuple(agent.agent_name for agent in staff) or module.agents_needed
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
    for place, component in enumerate(blueprint.ui_components):
        path, name = f"{at}.ui_components[{place}]", component.component
        yield _Element("ui_components[]", path, name, _said(name))
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
    for place, point in enumerate(agent.lifecycle_tools):
        where = f"{path}.lifecycle_tools[{place}]"
        yield _Element("agents[].lifecycle_tools[]", where, point.name, _said(point.name))
    limits = (
        *_keys("human_interaction", "max_consecutive_auto_reply"),
        _entry("target_agent", USER),
    )
    yield _Element("agents[].human_interaction", f"{path}.human_interaction", way, limits, name)
