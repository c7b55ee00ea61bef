"""Conformance: whether a draft does what its plan says.

The checker says whether a package can run; this says whether it is the one that was approved. Every
finding is a question: it can be corrected, or answered with a reason ("meant so, because ..."),
which is shown before the promotion.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Final

from weft.catalogue import CATALOGUE
from weft.check.code.facts import path_in
from weft.engine.variables.trigger_index import matcher
from weft.findings import Finding, Place
from weft.generator.code_check.allowed import NAMES
from weft.generator.code_check.import_effects import FunctionNode
from weft.generator.draft import Draft
from weft.generator.judge.comparison import Comparison
from weft.generator.judge.document_conformance import document_findings
from weft.generator.plans.data_rules import start_fields
from weft.generator.plans.workflow_plan import WorkflowPlan
from weft.ids import join_names
from weft.spec.agents import Agent
from weft.spec.orchestrator import DatabaseStart, FormStart, ScheduleStart, WebhookStart
from weft.spec.plan import PlannedAgent, PlannedComponent
from weft.spec.tools import AgentTool, UiTool
from weft.spec.triggers import ToolCallTrigger, ToolFailedTrigger, UserTextTrigger
from weft.spec.variables import (
    EntitySource,
    ExternalSource,
    Source,
    is_call,
)

#: How the purpose of a tool begins that changes nothing at its service.
_READING: Final = re.compile(
    "(ask|calculat|check|compar|comput|count|determin|estimat|fetch|find|get|inspect|judg|list|load|"
    "look|query|read|retriev|scor|search|see|show|validat|verif|view)"
)
#: Hooks that have an effect only by what they return, or by the agent they are given.
_RETURNING: Final = frozenset(
    {
        "process_message_before_send",
        "process_last_received_message",
        "process_all_messages_before_reply",
    }
)


def conformance(workflow: WorkflowPlan, draft: Draft) -> tuple[Finding, ...]:
    """Return everything in which a draft differs from the plan of its workflow."""
    compared = Comparison(workflow, draft)
    found = (finding for look in _LOOKS for finding in look(compared))
    return tuple({question_key(finding): finding for finding in found}.values())


def question_key(finding: Finding) -> str:
    """Return the key under which a finding is answered: the same while the fact is the same."""
    digest = sha256(f"{finding.place.file} {finding.message}".encode()).hexdigest()
    return f"{finding.code}-{digest[:6]}"


def scenario_finding(package: str, name: str, differences: tuple[str, ...]) -> Finding:
    """Return the finding of a scenario that did not go as the plan expects."""
    rule = CATALOGUE["GEN022"]
    place = Place(f"{package}/tests/{name}.yaml")
    message = f"the scenario {name} differs: {'; '.join(differences)}"
    return Finding(rule.code, rule.severity, message, place, hint=(rule.fix,))


def _missing(compared: Comparison) -> Iterator[Finding]:
    """Yield the agents, tools, hooks and variables of the plan that are not there."""
    for file, name, message in _absent(compared):
        yield replace(compared.finding("GEN010", file, message), cause=(name,))


def _absent(compared: Comparison) -> Iterator[tuple[str, str, str]]:
    for name, agent in compared.planned.items():
        if name not in compared.agents:
            yield "agents.json", name, f"there is no agent {name}"
            continue
        own = {tool.function for tool in compared.tools_of(name)}
        for tool in agent.agent_tools:
            if tool.name not in own:
                yield "tools.json", tool.name, f"{name} has no tool {tool.name} ({tool.purpose})"
        for hook in agent.system_hooks:
            if not any(hook.name in (own.function, own.hook_type) for own in compared.spec.hooks):
                yield "hooks.json", hook.name, f"there is no hook {hook.name} ({hook.purpose})"
    blueprint = compared.workflow.blueprint
    around = [blueprint.before_chat_lifecycle, blueprint.after_chat_lifecycle]
    owned = [point for agent in compared.workflow.agents for point in agent.lifecycle_tools]
    called = {(tool.function, tool.trigger) for tool in compared.spec.lifecycle_tools}
    called |= {(hook.function, hook.hook_type) for hook in compared.spec.hooks}
    for point in (*filter(None, around), *owned):
        if (point.name, point.trigger) not in called:
            message = f"nothing calls {point.name} at {point.trigger} ({point.purpose})"
            yield "tools.json", point.name, message
    for name, variable in compared.variables.items():
        if name not in compared.spec.variables:
            message = f"there is no variable {name} ({variable.purpose})"
            yield "context_variables.json", name, message


def _addressees(compared: Comparison) -> Iterator[Finding]:
    """Yield the questions that other people answer than the plan says."""
    shown = {
        (component.agent, component.tool): component
        for component in compared.workflow.blueprint.ui_components
    }
    for agent in compared.workflow.agents:
        declared = {tool.function: tool for tool in compared.tools_of(agent.agent_name)}
        for planned in agent.agent_tools:
            tool, component = (
                declared.get(planned.name),
                shown.get((agent.agent_name, planned.name)),
            )
            if planned.interaction_mode == "none" or tool is None:
                continue
            if not isinstance(tool, UiTool):
                who = _approver(agent, component) or "the user of the run"
                message = f"{planned.name} must ask {who} and is no UI tool"
                yield compared.finding("GEN011", "tools.json", message)
                continue
            yield from _addressee(compared, agent, component, tool)


def _approver(agent: PlannedAgent, component: PlannedComponent | None) -> str | None:
    return (component.approver if component else None) or agent.approver


def _addressee(
    compared: Comparison, agent: PlannedAgent, component: PlannedComponent | None, tool: UiTool
) -> Iterator[Finding]:
    wanted = _approver(agent, component)
    asked = tool.for_ or "the user of the run"
    if tool.for_ != wanted:
        message = f"{tool.function} asks {asked}; the plan says {wanted or 'the user of the run'}"
        hint = f'"for": "{wanted}"' if wanted else 'leave "for" out'
        yield compared.finding("GEN011", "tools.json", message, hint)
    schema = tool.response_schema or {}
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    for field in component.fields if component else ():
        if field.name not in known:
            message = f"the answer of {tool.function} has no field {field.name}"
            yield compared.finding("GEN010", "tools.json", message)


def _outcomes(compared: Comparison) -> Iterator[Finding]:
    """Yield the outcomes that cannot happen, and those that lead elsewhere than planned."""
    for message in compared.routes.impossible():
        yield compared.finding("GEN010", "structured_outputs.json", message)
    for message in compared.routes.astray():
        yield compared.finding("GEN013", "handoffs.json", message)


def _telling(compared: Comparison) -> Iterator[Finding]:
    """Yield what the user of the run must hear and does not."""
    strategy, groups = compared.workflow.strategy, compared.spec.orchestrator.parallel
    members = {member for group in groups for member in group.members}  # No user answers them.
    for name, agent in compared.planned.items():
        if name not in compared.agents or compared.is_visible(name) or name in members:
            continue
        says = any(
            isinstance(tool, UiTool) and (tool.tell or tool.tell_asked)
            for tool in compared.tools_of(name)
        )
        if agent.tell and not says:
            message = f"{name} must tell the user and is not in visual_agents"
            hint = f'add {name} to visual_agents, or "tell" to its UI tool'
            yield compared.finding("GEN014", "orchestrator.json", message, hint)
        elif agent.human_interaction in ("context", "feedback"):
            message = f"{name} talks with the user and is not in visual_agents"
            yield compared.finding("GEN014", "orchestrator.json", message)
    if strategy.greeting and not compared.spec.orchestrator.initial_message_to_user:
        message = "the greeting of the plan is missing"
        hint = f'"initial_message_to_user": "{strategy.greeting}"'
        yield compared.finding("GEN014", "orchestrator.json", message, hint)


def _start(compared: Comparison) -> Iterator[Finding]:
    """Yield how the start differs from the planned one."""
    strategy, orchestrator = compared.workflow.strategy, compared.spec.orchestrator
    trigger, planned = orchestrator.trigger, strategy.start
    facts = [("trigger", trigger.type, strategy.trigger)]
    facts.append(("initiated_by", orchestrator.initiated_by, strategy.initiated_by))
    if planned and trigger.type == strategy.trigger:
        match trigger:
            case ScheduleStart(cron=cron, timezone=timezone):
                facts.append(("cron", " ".join(cron.split()), planned.cron or cron))
                facts.append(("timezone", timezone, planned.timezone or timezone))
            case WebhookStart(path=path):
                facts.append(("path", path or "", planned.path or path or ""))
            case DatabaseStart(collection=collection, condition=condition):
                facts.append(("collection", collection, planned.collection or collection))
                facts.append(("condition", condition, planned.condition or condition))
            case _:
                pass
    for name, found, wanted in facts:
        if found != wanted:
            message = f"{name} of the start is {found or 'missing'}; the plan says {wanted}"
            yield compared.finding("GEN015", "orchestrator.json", message)
    if isinstance(trigger, FormStart):
        asked = compared.subject.models.get(trigger.form or "", {})
        for field in start_fields(strategy):
            if field.name not in asked:
                message = f"the form of the start does not ask for {field.name}"
                yield compared.finding("GEN015", "structured_outputs.json", message)


def _watch(compared: Comparison) -> Iterator[Finding]:
    """Yield the watched words that are not heard, and where they lead elsewhere."""
    watch = compared.workflow.strategy.watch
    for word in watch.words if watch else ():
        heard = {
            name: trigger.value
            for name, trigger in compared.triggers
            if isinstance(trigger, UserTextTrigger) and matcher(trigger.match)(f"I say {word} now.")
        }
        if not heard:
            message = f'no trigger matches a message of the user with "{word}"'
            yield compared.finding("GEN016", "context_variables.json", message)
            continue
        for agent in compared.routes.astray_after(heard, watch.to if watch else ""):
            message = f'{agent} does not hand off to {watch.to if watch else ""} after "{word}"'
            yield compared.finding("GEN016", "handoffs.json", message)


def _prompts(compared: Comparison) -> Iterator[Finding]:
    """Yield what prompts do not say: their tools, and what must never happen."""
    for name in compared.planned.keys() & compared.agents.keys():
        agent = compared.agents[name]
        text = _prompt(agent)
        automatic = agent.auto_tool_mode
        for tool in compared.tools_of(name):
            if not (automatic and tool.auto_invoke) and tool.function not in text:
                message = f"the prompt of {name} does not mention {tool.function}"
                yield compared.finding("GEN017", "agents.json", message)
        for rule in compared.workflow.strategy.never if compared.is_visible(name) else ():
            if not _says(text, rule):
                message = f'the prompt of {name} does not say "{rule}"'
                yield compared.finding("GEN018", "agents.json", message)


def _prompt(agent: Agent) -> str:
    return "\n".join(section.content for section in agent.prompt_sections)


def _says(text: str, rule: str) -> bool:
    """Return whether a text contains a sentence, case and whitespace apart."""
    return _plain(rule).rstrip(".") in _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.replace("{{", "{").replace("}}", "}").lower().split())


def _code(compared: Comparison) -> Iterator[Finding]:
    """Yield code that does not do what the plan says."""
    for name, agent in compared.planned.items():
        if name in compared.agents:
            yield from _data_flow(compared, agent)
    for hook in compared.spec.hooks:
        path = path_in("hooks", hook.file, compared.draft.code) or ""
        function = _function(compared.draft.code.get(path, ""), hook.function)
        if hook.hook_type in _RETURNING and function and (returned := _unchanged(function)):
            message = f"{hook.function} returns {returned}, so it changes nothing"
            yield compared.finding("GEN019", path, message)
    for name, trigger in compared.triggers:
        tool = (
            compared.subject.tools.get(trigger.tool)
            if isinstance(trigger, ToolCallTrigger)
            else None
        )
        path = path_in("tools", tool.file, compared.draft.code) or "" if tool else ""
        if tool and compared.mentions(path, tool.function) & {"RetryModel", "Refuse"}:
            message = f"{name} is set when {tool.function} is called, also if it then refuses"
            hint = 'use the trigger "tool_response"'
            yield compared.finding("GEN019", "context_variables.json", message, hint)


def _function(code: str, name: str) -> FunctionNode | None:
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next((node for node in found if node.name == name), None)


def _unchanged(function: FunctionNode) -> str:
    """Return what a function returns that changes nothing: nothing, or a parameter as it is."""
    nodes = [*ast.walk(function)]
    found = [node.value for node in nodes if isinstance(node, ast.Return)]
    values = [node for node in found if node is not None and not _is_none(node)]
    if not values:
        return "nothing"
    names = {node.id for node in values if isinstance(node, ast.Name)}
    given = {node.arg for node in nodes if isinstance(node, ast.arg)}
    plain = len(values) == sum(isinstance(node, ast.Name) for node in values) and names <= given
    # Also in place: by an assignment to a part of it, or by a method such as append.
    changed = any(
        isinstance(node, ast.Subscript | ast.Name)
        and isinstance(node.ctx, ast.Store)
        and (isinstance(node, ast.Subscript) or node.id in names)
        for node in nodes
    ) or any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and not _is_module(node.value.func.value)
        for node in nodes
    )
    return "" if changed or not plain else f"{join_names(sorted(names))} as it is"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in NAMES


def _data_flow(compared: Comparison, agent: PlannedAgent) -> Iterator[Finding]:
    """Yield what an agent reads or writes in the plan, and neither its prompt nor its code does."""
    name, variables = agent.agent_name, compared.spec.variables
    owners: dict[str, list[str]] = {}
    for variable in compared.variables.values():
        for field in variable.fields:
            owners.setdefault(field.name, []).append(variable.name)

    def kept_in(value: str) -> list[str]:
        found = [value] if value in variables else owners.get(value, [])
        return [each for each in found if each in variables]

    for value in agent.reads:
        kept = kept_in(value)
        if kept and not any(compared.sees(name, variable) for variable in kept):
            message = f"{name} reads {value} in the plan, and neither its prompt nor its tools do"
            yield compared.finding("GEN019", "context_variables.json", message)
    for value in agent.writes:
        kept = [each for each in kept_in(value) if variables[each].source.type == "entity"]
        if kept and not any(variable in compared.sets(name) for variable in kept):
            message = f"{name} writes {value} in the plan, and none of its tools sets {kept[0]}"
            yield compared.finding("GEN019", "tools.json", message)


def _effects(compared: Comparison) -> Iterator[Finding]:
    """Yield what acts and is not in the plan, and services that are called wrongly."""
    agents = compared.workflow.agents
    services = {tool.integration for agent in agents for tool in agent.agent_tools}
    collections = {variable.collection for variable in compared.variables.values()}
    for name, variable in compared.spec.variables.items():
        source: Source = variable.source
        if name in compared.variables:
            continue
        if isinstance(source, ExternalSource) and source.service not in services:
            message = f"{name} asks {source.service}, which is not in the plan"
            yield compared.finding("GEN020", "context_variables.json", message)
        if isinstance(source, EntitySource) and source.collection not in collections:
            message = f"{name} writes to {source.collection}, which is not in the plan"
            yield compared.finding("GEN020", "context_variables.json", message)
    allowed = {_approver(agent, None) for agent in agents}
    allowed |= {component.approver for component in compared.workflow.blueprint.ui_components}
    for tool in compared.spec.tools:
        if isinstance(tool, UiTool) and tool.for_ and tool.for_ not in allowed:
            message = f"{tool.function} asks {tool.for_}, who is not in the plan"
            yield compared.finding("GEN020", "tools.json", message)
    yield from _settings(compared)
    yield from _calls(compared)


def _settings(compared: Comparison) -> Iterator[Finding]:
    """Yield agents and settings that a plan does not have."""
    for name, agent in compared.agents.items():
        if name not in compared.planned:
            message = f"{name} is not in the plan"
            yield compared.finding("GEN020", "agents.json", message)
        elif agent.model:
            message = f"{name} names the model {agent.model}: the deployment chooses models"
            yield compared.finding("GEN020", "agents.json", message)
    orchestrator = compared.spec.orchestrator
    for extension in orchestrator.runtime_extensions:
        message = f"{extension.entrypoint} is mounted by the server, which is not in the plan"
        yield compared.finding("GEN020", "orchestrator.json", message)
    if orchestrator.model:
        message = f"it names the model {orchestrator.model}: the deployment chooses models"
        yield compared.finding("GEN020", "orchestrator.json", message)


def _calls(compared: Comparison) -> Iterator[Finding]:
    """Yield tools that only read where they must act, and those whose failure is lost."""
    failures = {
        trigger.tool for _, trigger in compared.triggers if isinstance(trigger, ToolFailedTrigger)
    }
    for agent in compared.workflow.agents:
        declared = {tool.function: tool for tool in compared.tools_of(agent.agent_name)}
        for planned in agent.agent_tools:
            tool = declared.get(planned.name)
            if not isinstance(tool, AgentTool) or not planned.integration:
                continue
            words = compared.quoted("tools", tool.file, tool.function)
            used = [
                compared.spec.variables[word].source for word in words & {*compared.spec.variables}
            ]
            asked = [source for source in used if isinstance(source, ExternalSource)]
            if (
                asked
                and not _READING.match(planned.purpose.lower())
                and not any(map(is_call, asked))
            ):
                message = (
                    f"{tool.function} ({planned.purpose}) calls {planned.integration} with GET only"
                )
                yield compared.finding("GEN021", "context_variables.json", message)
            lost = tool.on_error == "tell" and failures.isdisjoint((None, tool.function))
            if any(map(is_call, asked)) and lost:
                message = f"the run continues as usual when {tool.function} fails"
                yield compared.finding("GEN021", "tools.json", message)


_LOOKS: Final[tuple[Callable[[Comparison], Iterator[Finding]], ...]] = (
    _missing, _addressees, document_findings, _outcomes, _telling, _start, _watch, _prompts, _code,
    _effects,
)  # fmt: skip
