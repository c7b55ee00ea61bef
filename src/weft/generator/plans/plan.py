"""The action plan as a record: made of its parts, named by its content, compared, and read."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias, cast

from weft.diagrams.nodes import short_label
from weft.generator.names import unique
from weft.generator.plans.diagram import plan_diagram
from weft.generator.plans.rules import module_of
from weft.spec.part import JsonMap, JsonValue, Part
from weft.spec.plan import (
    ActionPlan,
    ModuleAgents,
    PatternSelection,
    PlannedAgent,
    PlannedLifecycle,
    PlannedTool,
    TechnicalBlueprint,
    WorkflowStrategy,
)
from weft.spec.workflow import plain

_Fields: TypeAlias = dict[str, JsonValue]

#: How much of a text is shown in a line.
_LINE: Final = 2_000
_DIAGRAM: Final = "MermaidSequenceDiagram"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs between two plans; None where it is not there."""

    path: str
    before: JsonValue
    after: JsonValue


def make_plan(
    version: int,
    selection: PatternSelection,
    strategy: WorkflowStrategy,
    blueprint: TechnicalBlueprint,
    modules: Sequence[ModuleAgents],
) -> ActionPlan:
    """Put the parts together as one record, with the diagram drawn from them."""
    return ActionPlan(
        version=version,
        PatternSelection=selection,
        WorkflowStrategy=strategy,
        TechnicalBlueprint=blueprint,
        ModuleAgents=tuple(modules),
        MermaidSequenceDiagram=plan_diagram(strategy, blueprint, modules, selection),
    )


def plan_hash(plan: ActionPlan) -> str:
    """Name a plan by its five parts, whichever round of the design made it."""
    parts = {key: value for key, value in plain(plan).items() if key != "version"}
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()


def compare_plans(old: ActionPlan, new: ActionPlan) -> tuple[Change, ...]:
    """Return what changed; things that have a name are matched by it and not by their place.

    The diagram follows from the rest, and counts only where nothing else differs.
    """
    before, after = _by_name(old), _by_name(new)
    diagrams = (cast("_Fields", before.pop(_DIAGRAM)), cast("_Fields", after.pop(_DIAGRAM)))
    changes = tuple(_changes("", before, after))
    return changes or tuple(_changes(_DIAGRAM, *diagrams))


class _Named(dict[str, JsonValue]):
    """Things by their names, in the order in which they stand in the plan."""


#: What entries of lists are named by; the first that all entries have counts.
_NAMES: Final = (("agent", "tool"), ("module_name",), ("agent_name",), ("name",), ("when",))


def _by_name(plan: ActionPlan) -> _Fields:
    """Return a plan as data, with named entries under their names instead of in lists."""
    data = plain(plan)
    data.pop("version", None)
    purposes = [_purpose(module.module_name) for module in plan.strategy.modules]
    blueprint = cast("_Fields", data["TechnicalBlueprint"])
    strategy = cast("_Fields", data["WorkflowStrategy"])
    for entry in (*_entries(strategy["modules"]), *_entries(blueprint.get("ui_components", []))):
        # The number is the place, which says nothing about what the module is.
        entry["module_name"] = _purpose(str(entry["module_name"]))
        entry.pop("module_index", None)
    data["ModuleAgents"] = [
        cast("JsonValue", {"module": purposes[index] if index < len(purposes) else index, **agent})
        for module in _entries(data["ModuleAgents"])
        for index in [cast("int", module["module_index"])]
        for agent in _entries(module["agents"])
    ]
    return cast("_Fields", _named(data))


def _entries(value: JsonValue) -> list[_Fields]:
    return cast("list[_Fields]", value)


def _named(value: JsonValue) -> JsonValue:
    """Put the entries of lists under their names, if they have any."""
    if isinstance(value, dict):
        return {key: _named(inner) for key, inner in value.items()}
    items = value if isinstance(value, list) else []
    if not (items and all(isinstance(item, dict) for item in items)):
        return value
    entries = _entries(items)
    keys = next((keys for keys in _NAMES if all(set(keys) <= {*each} for each in entries)), ())
    found = _Named()
    for entry in entries if keys else ():
        rest = {key: inner for key, inner in entry.items() if key not in keys}
        found[unique(".".join(str(entry[key]) for key in keys), found)] = _named(rest)
    return found or value


def _purpose(module_name: str) -> str:
    return re.sub(r"^Module \d+: ", "", module_name)


def _changes(path: str, before: JsonValue, after: JsonValue) -> Iterator[Change]:
    if isinstance(before, _Named) or isinstance(after, _Named):
        yield from _named_changes(
            path, cast("_Named", before or _Named()), cast("_Named", after or _Named())
        )
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{path}.{key}" if path else key
            yield from _changes(inner, before.get(key), after.get(key))
    elif before != after:
        yield Change(path, before, after)


def _named_changes(path: str, before: _Named, after: _Named) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        yield from _changes(f"{path}[{name}]", before.get(name), after.get(name))
    was: list[JsonValue] = [name for name in before if name in after]
    now: list[JsonValue] = [name for name in after if name in before]
    if was != now:
        yield Change(f"{path} in order", was, now)


def change_lines(changes: Sequence[Change]) -> list[str]:
    """Write changes for a terminal: + is new, - is gone, ~ is different."""
    return [_change_line(change) for change in changes]


def _change_line(change: Change) -> str:
    path = short_label(change.path, _LINE)
    if change.before is None:
        return f"+ {path}: {_value(change.after)}"
    if change.after is None:
        return f"- {path}: {_value(change.before)}"
    return f"~ {path}: {_value(change.before)} -> {_value(change.after)}"


def _value(value: JsonValue) -> str:
    return short_label(json.dumps(value, ensure_ascii=False), _LINE)


def plan_lines(plan: ActionPlan) -> list[str]:
    """Write a plan for a terminal, as lines of any width."""
    strategy = plan.strategy
    person = "a person takes part" if strategy.human_in_loop else "no person takes part"
    lines = [
        f"{_said(strategy.workflow_name)}   (plan {plan.version}, {plan_hash(plan)[:12]})",
        f"  {_said(strategy.workflow_description)}",
        f"  trigger: {strategy.trigger}, initiated by {strategy.initiated_by}; {person}",
        *_start_lines(strategy),
        *_workflow_lines(plan.selection),
    ]
    for module in strategy.modules:
        owner = f", {_said(module.workflow)}" if module.workflow else ""
        lines += ["", f"{_said(module.module_name)}   ({module.pattern_name}{owner})"]
        lines.append(f"  {_said(module.module_description)}")
        for agent in module_of(plan.modules, module.module_index):
            lines += _agent_lines(agent, plan.blueprint)
        for way in module.leads_to:
            reason = f" ({_said(way.reason)})" if way.reason else ""
            lines.append(f"  {_said(way.when)} -> {_said(way.to)}{reason}")
    return lines + _blueprint_lines(plan.blueprint) + _rule_lines(strategy)


def _start_lines(strategy: WorkflowStrategy) -> Iterator[str]:
    if strategy.start:
        fields = (f"{name}: {_value(value)}" for name, value in plain(strategy.start).items())
        yield f"  start: {', '.join(fields)}"
    if strategy.greeting:
        yield f"  greeting: {_said(strategy.greeting)}"
    if strategy.watch:
        words = _said(", ".join(strategy.watch.words))
        yield f"  whenever the user says {words}: -> {_said(strategy.watch.to)}"


def _rule_lines(strategy: WorkflowStrategy) -> list[str]:
    """Return what must never happen, how to try the workflow, and what was assumed."""
    tried = [
        f"  {_steps(scenario.says)} => {_steps(scenario.expect)}" for scenario in strategy.scenarios
    ]
    listed = {
        "Never": [f"  {_said(rule)}" for rule in strategy.never],
        "Scenarios": tried,
        "Assumed": [f"  {_said(assumed)}" for assumed in strategy.assumptions],
    }
    return [line for title, lines in listed.items() if lines for line in ("", title, *lines)]


def _steps(steps: Sequence[str | JsonMap]) -> str:
    return "; ".join(_said(step) if isinstance(step, str) else _value(step) for step in steps)


def _said(text: str) -> str:
    return short_label(text, _LINE)


def _workflow_lines(selection: PatternSelection) -> Iterator[str]:
    for workflow in selection.workflows:
        described = f"{workflow.role}, {workflow.pattern_name}: {_said(workflow.description)}"
        yield f"  workflow {_said(workflow.name)}, {described}"
    if selection.decomposition_reason:
        yield f"  several workflows: {_said(selection.decomposition_reason)}"


def _agent_lines(agent: PlannedAgent, blueprint: TechnicalBlueprint) -> Iterator[str]:
    limit = agent.max_consecutive_auto_reply
    way = f"{agent.agent_type}, interaction {agent.human_interaction}, {limit} replies"
    made = f", makes {agent.generation_mode}" if agent.generation_mode else ""
    yield f"  {_said(agent.agent_name)} ({way}{made}): {_said(agent.objective)}"
    texts = {
        "asks": agent.approver,
        "reads": ", ".join(agent.reads),
        "writes": ", ".join(agent.writes),
        "comes to": ", ".join(agent.outcomes),
        "tells the user:": agent.tell,
    }
    facts = [f"{name} {_said(value)}" for name, value in texts.items() if value]
    if facts:
        yield f"    {'; '.join(facts)}"
    for tool in agent.agent_tools:
        yield f"    tool {_tool_words(agent, tool, blueprint)}: {_said(tool.purpose)}"
    for tool in agent.lifecycle_tools:
        yield f"    {tool.trigger}: {_lifecycle_words(tool)}"
    for hook in agent.system_hooks:
        yield f"    hook {_said(hook.name)}: {_said(hook.purpose)}"


def _tool_words(agent: PlannedAgent, tool: PlannedTool, blueprint: TechnicalBlueprint) -> str:
    notes = [f"with {_said(tool.integration)}"] if tool.integration else []
    notes += [
        f'{component.display} {_said(component.component)}, "{_said(component.label)}"'
        for component in blueprint.ui_components
        if (component.agent, component.tool) == (agent.agent_name, tool.name)
    ]
    return _said(tool.name) + (f" ({'; '.join(notes)})" if notes else "")


def _lifecycle_words(lifecycle: PlannedLifecycle) -> str:
    service = f" (with {_said(lifecycle.integration)})" if lifecycle.integration else ""
    return f"{_said(lifecycle.name)}{service}: {_said(lifecycle.purpose)}"


def _blueprint_lines(blueprint: TechnicalBlueprint) -> list[str]:
    lines = ["", "Variables"] if blueprint.global_context_variables else []
    for variable in blueprint.global_context_variables:
        hint = f"; {_said(variable.trigger_hint)}" if variable.trigger_hint else ""
        lines.append(f"  {_said(variable.name)} ({variable.type}): {_said(variable.purpose)}{hint}")
        lines += _facts(variable, "name", "type", "purpose", "trigger_hint")
    if blueprint.ui_components:
        lines += ["", "Shown to people"]
    for component in blueprint.ui_components:
        asked = f" asks {_said(component.approver)}" if component.approver else ""
        shows = f"{_said(component.agent)}{asked} by {_said(component.tool)}, {component.display}"
        lines.append(f"  {_said(component.component)} ({shows}): {_said(component.summary)}")
        seed = ("module_name", "agent", "tool", "label", "component", "display", "summary")
        lines += _facts(component, *seed, "approver")
    around = [blueprint.before_chat_lifecycle, blueprint.after_chat_lifecycle]
    called = [
        f"  {lifecycle.trigger}: {_lifecycle_words(lifecycle)}" for lifecycle in around if lifecycle
    ]
    lines += ["", "Around the run", *called] if called else []
    required = blueprint.workflow_dependencies.required_workflows
    lines += ["", f"Completed before: {_said(', '.join(required))}"] if required else []
    return lines


def _facts(part: Part, *shown: str) -> Iterator[str]:
    """Yield in one line what a part says besides the fields that are shown already."""
    facts = [f"{name}: {_value(value)}" for name, value in plain(part).items() if name not in shown]
    if facts:
        yield f"    {', '.join(facts)}"
