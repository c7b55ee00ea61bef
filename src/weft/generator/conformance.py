"""Conformance: whether a draft does what its plan says.

The checker says whether a package can run; this says whether it is the one that was approved. Every
finding is a question: it can be corrected, or answered with a reason ("meant so, because ..."),
which is shown before the promotion.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Final

from weft.catalogue import CATALOGUE
from weft.check.code.facts import path_in, reachable
from weft.check.subject import Subject
from weft.engine.variables.trigger_index import matcher
from weft.findings import Finding, Place
from weft.generator.data_rules import DOCUMENTS, VARIABLE_KINDS, start_fields
from weft.generator.draft import Draft
from weft.generator.routes import Routes
from weft.generator.stubs import function_texts
from weft.generator.workflow_plan import WorkflowPlan
from weft.ids import join_names
from weft.spec.agents import Agent
from weft.spec.orchestrator import DatabaseStart, FormStart, ScheduleStart, WebhookStart
from weft.spec.plan import PlannedAgent, PlannedComponent, PlannedVariable
from weft.spec.templates import references
from weft.spec.tools import AgentTool, UiTool
from weft.spec.triggers import ToolCallTrigger, ToolFailedTrigger, Trigger, UserTextTrigger
from weft.spec.type_meaning import finite_values
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    DerivedSource,
    EntitySource,
    ExternalSource,
    Source,
    is_call,
)

#: The sources that a kind of variable in a plan may become.
_SOURCES: Final = {
    "config": ("environment", "static"),
    "data_reference": ("database", "entity", "file"),
    "data_entity": ("entity",),
    "computed": ("computed",),
    "state": ("derived", "computed"),
    "external": ("external",),
    "file": ("file", "static"),
}
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
#: A rule counts as said if so much of its longer words is in the prompt.
_ENOUGH: Final = 0.5
_LONG: Final = 4


def conformance(workflow: WorkflowPlan, draft: Draft) -> tuple[Finding, ...]:
    """Return everything in which a draft differs from the plan of its workflow."""
    reading = _Reading(workflow, draft)
    found = (finding for look in _LOOKS for finding in look(reading))
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


class _Reading:
    """A plan and a draft side by side, with what several checks look up."""

    def __init__(self, workflow: WorkflowPlan, draft: Draft) -> None:
        self.workflow, self.draft, self.spec = workflow, draft, draft.spec
        self.subject = Subject(draft.spec, folder=draft.name, code=draft.code)
        self.agents = {agent.agent_name: agent for agent in draft.spec.agents}
        self.planned = {agent.agent_name: agent for agent in workflow.agents}
        self.variables = {
            variable.name: variable for variable in workflow.blueprint.global_context_variables
        }

    def finding(self, code: str, file: str, message: str, *hint: str) -> Finding:
        rule = CATALOGUE[code]
        place = Place(f"{self.draft.name}/{file}")
        return Finding(code, rule.severity, message, place, hint=hint or (rule.fix,))

    @cached_property
    def routes(self) -> Routes:
        """The handoff rules, and what they decide."""
        return Routes(self.workflow, self.spec, self.draft.code)

    @cached_property
    def triggers(self) -> list[tuple[str, Trigger]]:
        """All triggers, each with its variable."""
        sources = [
            (name, variable.source)
            for name, variable in self.spec.variables.items()
            if isinstance(variable.source, DerivedSource)
        ]
        own = [(name, trigger) for name, source in sources for trigger in source.triggers]
        steps = [(name, step.trigger) for name, source in sources for step in source.transitions]
        return [*own, *((name, trigger) for name, trigger in steps if trigger is not None)]

    def tools_of(self, agent: str) -> list[AgentTool | UiTool]:
        return [tool for tool in self.spec.tools if tool.agent == agent]

    def sees(self, agent: str, variable: str) -> bool:
        """Return whether a variable is in the prompt of an agent, or read by its code."""
        return variable in self.spec.exposure.get(agent, ()) or variable in self.code_words(agent)

    def code_words(self, agent: str) -> set[str]:
        """Return the names in quotes in the code of an agent's tools and of the run."""
        owned = [tool for tool in self.spec.lifecycle_tools if tool.agent in (None, agent)]
        found: set[str] = set()
        for entry in (*self.tools_of(agent), *owned):
            found |= self.quoted("tools", entry.file, entry.function)
        for name, variable in self.spec.variables.items():
            source = variable.source
            if isinstance(source, ComputedSource):
                found |= {*source.inputs}
            elif isinstance(source, ExternalSource) and name in found:
                found |= {part.name for part in references(f"{source.url} {source.body}")}
        return found

    def quoted(self, folder: str, file: str, function: str) -> set[str]:
        """Return the texts that a function and its helpers name in quotes."""
        path = path_in(folder, file, self.draft.code) or ""
        names = {function, *(name for name in self.mentions(path, function))}
        text = self.draft.code.get(path, "")
        bodies = (body for name, body in function_texts(text) if name in names)
        return {word for body in bodies for word in re.findall(r"""["']([A-Za-z_]\w*)["']""", body)}

    def mentions(self, path: str, function: str) -> set[str]:
        """Return the names that a function uses, also through its helpers."""
        found = reachable(self.subject, path, function)
        return {name for definition in found for name in definition.mentions}

    def sets(self, agent: str) -> set[str]:
        """Return the variables that the code of an agent's tools sets."""
        found: set[str] = set()
        for tool in (*self.tools_of(agent), *self.spec.lifecycle_tools):
            path = path_in("tools", tool.file, self.draft.code) or ""
            for definition in reachable(self.subject, path, tool.function):
                found |= {write.variable for write in definition.writes if write.variable}
        return found

    def is_visible(self, agent: str) -> bool:
        shown = self.spec.orchestrator.visual_agents
        return shown is None or agent in shown


def _missing(reading: _Reading) -> Iterator[Finding]:
    """Yield the agents, tools, hooks and variables of the plan that are not there."""
    for file, name, message in _absent(reading):
        yield replace(reading.finding("GEN010", file, message), cause=(name,))


def _absent(reading: _Reading) -> Iterator[tuple[str, str, str]]:
    for name, agent in reading.planned.items():
        if name not in reading.agents:
            yield "agents.json", name, f"there is no agent {name}"
            continue
        own = {tool.function for tool in reading.tools_of(name)}
        for tool in agent.agent_tools:
            if tool.name not in own:
                yield "tools.json", tool.name, f"{name} has no tool {tool.name} ({tool.purpose})"
        for hook in agent.system_hooks:
            if not any(hook.name in (own.function, own.hook_type) for own in reading.spec.hooks):
                yield "hooks.json", hook.name, f"there is no hook {hook.name} ({hook.purpose})"
    blueprint = reading.workflow.blueprint
    around = [blueprint.before_chat_lifecycle, blueprint.after_chat_lifecycle]
    owned = [point for agent in reading.workflow.agents for point in agent.lifecycle_tools]
    called = {(tool.function, tool.trigger) for tool in reading.spec.lifecycle_tools}
    called |= {(hook.function, hook.hook_type) for hook in reading.spec.hooks}
    for point in (*filter(None, around), *owned):
        if (point.name, point.trigger) not in called:
            message = f"nothing calls {point.name} at {point.trigger} ({point.purpose})"
            yield "tools.json", point.name, message
    for name, variable in reading.variables.items():
        if name not in reading.spec.variables:
            message = f"there is no variable {name} ({variable.purpose})"
            yield "context_variables.json", name, message


def _addressees(reading: _Reading) -> Iterator[Finding]:
    """Yield the questions that other people answer than the plan says."""
    shown = {
        (component.agent, component.tool): component
        for component in reading.workflow.blueprint.ui_components
    }
    for agent in reading.workflow.agents:
        declared = {tool.function: tool for tool in reading.tools_of(agent.agent_name)}
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
                yield reading.finding("GEN011", "tools.json", message)
                continue
            yield from _addressee(reading, agent, component, tool)


def _approver(agent: PlannedAgent, component: PlannedComponent | None) -> str | None:
    return (component.approver if component else None) or agent.approver


def _addressee(
    reading: _Reading, agent: PlannedAgent, component: PlannedComponent | None, tool: UiTool
) -> Iterator[Finding]:
    wanted = _approver(agent, component)
    asked = tool.for_ or "the user of the run"
    if tool.for_ != wanted:
        message = f"{tool.function} asks {asked}; the plan says {wanted or 'the user of the run'}"
        hint = f'"for": "{wanted}"' if wanted else 'leave "for" out'
        yield reading.finding("GEN011", "tools.json", message, hint)
    schema = tool.response_schema or {}
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    for field in component.fields if component else ():
        if field.name not in known:
            message = f"the answer of {tool.function} has no field {field.name}"
            yield reading.finding("GEN010", "tools.json", message)


def _documents(reading: _Reading) -> Iterator[Finding]:
    """Yield the variables that are read or kept otherwise than the plan says."""
    for name, planned in reading.variables.items():
        variable = reading.spec.variables.get(name)
        if variable is None:
            continue
        kind = VARIABLE_KINDS[planned.type]
        source = variable.source
        if source.type not in _SOURCES[kind]:
            message = f"{name} is {source.type}; the plan says {kind}"
            yield reading.finding("GEN012", "context_variables.json", message)
        elif kind in DOCUMENTS and isinstance(source, EntitySource | DatabaseSource):
            for message in _document(name, planned, source):
                yield reading.finding("GEN012", "context_variables.json", message)
        elif isinstance(source, ExternalSource) and not _is_address(source, planned.url or ""):
            message = f"{name} asks {source.method} {source.url}; the plan says {planned.url}"
            yield reading.finding("GEN012", "context_variables.json", message)
        lacking = {*planned.outcomes}.difference(_texts(finite_values(variable.type, 64)))
        if lacking and finite_values(variable.type, 64) is not None:
            message = f"{name} cannot be {join_names(sorted(lacking))}"
            yield reading.finding("GEN010", "context_variables.json", message)


def _is_address(source: ExternalSource, planned: str) -> bool:
    """Return whether a service is asked at the planned address, with the planned method if any."""
    method, _, url = planned.rpartition(" ")
    return source.url.startswith(url) and method in ("", source.method)


def _texts(values: tuple[object, ...] | None) -> set[str]:
    return {value for value in values or () if isinstance(value, str)}


def _document(
    name: str, planned: PlannedVariable, source: EntitySource | DatabaseSource
) -> Iterator[str]:
    keys = _keys_of(source)
    if planned.key and planned.key not in keys and (planned.key != "app_id" or keys):
        found = join_names(sorted(keys)) or "nothing"
        yield f"{name} is found by {found}; the plan says {planned.key}"
    elif not planned.key and planned.shared and keys & {"user_id", "chat_id"}:
        yield f"{name} is found by {join_names(sorted(keys))}; in the plan all users share it"
    elif not planned.key and planned.shared is False and keys <= {"app_id"}:
        yield f"{name} is one document for all users; the plan says that it is not shared"
    if planned.collection and planned.collection != source.collection:
        yield f"{name} is in {source.collection}; the plan says {planned.collection}"
    known = _fields_of(source)
    lacking = [field.name for field in planned.fields if field.name not in known]
    if known and lacking:
        yield f"{name} lacks {join_names(lacking)}"


def _keys_of(source: EntitySource | DatabaseSource) -> set[str]:
    """Return the variables by which a document is found."""
    if source.search_by:
        return {source.search_by}
    template = str(source.query_template) if isinstance(source, DatabaseSource) else ""
    return {reference.name for reference in references(template)}


def _fields_of(source: EntitySource | DatabaseSource) -> set[str]:
    """Return the fields that are declared of a document; none if it is taken as a whole."""
    if isinstance(source, EntitySource):
        return {*source.document}
    single = {source.field.partition(".")[0]} if source.field else set[str]()
    return single | {field.partition(".")[0] for field in source.fields}


def _outcomes(reading: _Reading) -> Iterator[Finding]:
    """Yield the outcomes that cannot happen, and those that lead elsewhere than planned."""
    for message in reading.routes.impossible():
        yield reading.finding("GEN010", "structured_outputs.json", message)
    for message in reading.routes.astray():
        yield reading.finding("GEN013", "handoffs.json", message)


def _telling(reading: _Reading) -> Iterator[Finding]:
    """Yield what the user of the run must hear and does not."""
    strategy = reading.workflow.strategy
    for name, agent in reading.planned.items():
        if name not in reading.agents or reading.is_visible(name):
            continue
        says = any(isinstance(tool, UiTool) and tool.tell for tool in reading.tools_of(name))
        if agent.tell and not says:
            message = f"{name} must tell the user and is not in visual_agents"
            hint = f'add {name} to visual_agents, or "tell" to its UI tool'
            yield reading.finding("GEN014", "orchestrator.json", message, hint)
        elif agent.human_interaction in ("context", "feedback"):
            message = f"{name} talks with the user and is not in visual_agents"
            yield reading.finding("GEN014", "orchestrator.json", message)
    if strategy.greeting and not reading.spec.orchestrator.initial_message_to_user:
        message = "the greeting of the plan is missing"
        hint = f'"initial_message_to_user": "{strategy.greeting}"'
        yield reading.finding("GEN014", "orchestrator.json", message, hint)


def _start(reading: _Reading) -> Iterator[Finding]:
    """Yield how the start differs from the planned one."""
    strategy, orchestrator = reading.workflow.strategy, reading.spec.orchestrator
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
            yield reading.finding("GEN015", "orchestrator.json", message)
    if isinstance(trigger, FormStart):
        asked = reading.subject.models.get(trigger.form or "", {})
        for field in start_fields(strategy):
            if field.name not in asked:
                message = f"the form of the start does not ask for {field.name}"
                yield reading.finding("GEN015", "structured_outputs.json", message)


def _watch(reading: _Reading) -> Iterator[Finding]:
    """Yield the watched words that are not heard, and where they lead elsewhere."""
    watch = reading.workflow.strategy.watch
    for word in watch.words if watch else ():
        heard = {
            name: trigger.value
            for name, trigger in reading.triggers
            if isinstance(trigger, UserTextTrigger) and matcher(trigger.match)(f"I say {word} now.")
        }
        if not heard:
            message = f'no trigger matches a message of the user with "{word}"'
            yield reading.finding("GEN016", "context_variables.json", message)
            continue
        for agent in reading.routes.astray_after(heard, watch.to if watch else ""):
            message = f'{agent} does not hand off to {watch.to if watch else ""} after "{word}"'
            yield reading.finding("GEN016", "handoffs.json", message)


def _prompts(reading: _Reading) -> Iterator[Finding]:
    """Yield what prompts do not say: their tools, and what must never happen."""
    for name in reading.planned.keys() & reading.agents.keys():
        agent = reading.agents[name]
        text = _prompt(agent)
        automatic = agent.auto_tool_mode
        for tool in reading.tools_of(name):
            if not (automatic and tool.auto_invoke) and tool.function not in text:
                message = f"the prompt of {name} does not mention {tool.function}"
                yield reading.finding("GEN017", "agents.json", message)
        for rule in reading.workflow.strategy.never if reading.is_visible(name) else ():
            if not _says(text, rule):
                message = f'the prompt of {name} does not say "{rule}"'
                yield reading.finding("GEN018", "agents.json", message)


def _prompt(agent: Agent) -> str:
    return "\n".join(section.content for section in agent.prompt_sections)


def _says(text: str, rule: str) -> bool:
    """Return whether a text says about the same: most longer words of the rule are in it."""
    words = {word[:6] for word in re.findall(r"\w+", rule.lower()) if len(word) >= _LONG}
    return not words or sum(word in text.lower() for word in words) >= _ENOUGH * len(words)


def _code(reading: _Reading) -> Iterator[Finding]:
    """Yield code that does not do what the plan says."""
    for name, agent in reading.planned.items():
        if name in reading.agents:
            yield from _data_flow(reading, agent)
    for hook in reading.spec.hooks:
        path = path_in("hooks", hook.file, reading.draft.code) or ""
        body = dict(function_texts(reading.draft.code.get(path, ""))).get(hook.function)
        returns = body is None or re.search(r"\breturn[ (]+(?!None\b)\S", body)
        if hook.hook_type in _RETURNING and not returns:
            message = f"{hook.function} returns nothing, so it changes nothing"
            yield reading.finding("GEN019", path, message)
    for name, trigger in reading.triggers:
        tool = (
            reading.subject.tools.get(trigger.tool)
            if isinstance(trigger, ToolCallTrigger)
            else None
        )
        path = path_in("tools", tool.file, reading.draft.code) or "" if tool else ""
        if tool and reading.mentions(path, tool.function) & {"RetryModel", "Refuse"}:
            message = f"{name} is set when {tool.function} is called, also if it then refuses"
            hint = 'use the trigger "tool_response"'
            yield reading.finding("GEN019", "context_variables.json", message, hint)


def _data_flow(reading: _Reading, agent: PlannedAgent) -> Iterator[Finding]:
    """Yield what an agent reads or writes in the plan, and neither its prompt nor its code does."""
    name = agent.agent_name
    owners = {
        field.name: variable.name
        for variable in reading.variables.values()
        for field in variable.fields
    }
    for value in agent.reads:
        variable = owners.get(value, value) if value not in reading.spec.variables else value
        if variable in reading.spec.variables and not reading.sees(name, variable):
            message = f"{name} reads {value} in the plan, and neither its prompt nor its tools do"
            yield reading.finding("GEN019", "context_variables.json", message)
    for value in agent.writes:
        variable = owners.get(value, value) if value not in reading.spec.variables else value
        source = (
            reading.spec.variables[variable].source if variable in reading.spec.variables else None
        )
        if isinstance(source, EntitySource) and variable not in reading.sets(name):
            message = f"{name} writes {value} in the plan, and none of its tools sets {variable}"
            yield reading.finding("GEN019", "tools.json", message)


def _effects(reading: _Reading) -> Iterator[Finding]:
    """Yield what acts and is not in the plan, and services that are called wrongly."""
    services = {tool.integration for agent in reading.workflow.agents for tool in agent.agent_tools}
    collections = {variable.collection for variable in reading.variables.values()}
    for name, variable in reading.spec.variables.items():
        source: Source = variable.source
        if name in reading.variables:
            continue
        if isinstance(source, ExternalSource) and source.service not in services:
            message = f"{name} asks {source.service}, which is not in the plan"
            yield reading.finding("GEN020", "context_variables.json", message)
        if isinstance(source, EntitySource) and source.collection not in collections:
            message = f"{name} writes to {source.collection}, which is not in the plan"
            yield reading.finding("GEN020", "context_variables.json", message)
    allowed = {_approver(agent, None) for agent in reading.workflow.agents}
    allowed |= {component.approver for component in reading.workflow.blueprint.ui_components}
    for tool in reading.spec.tools:
        if isinstance(tool, UiTool) and tool.for_ and tool.for_ not in allowed:
            message = f"{tool.function} asks {tool.for_}, who is not in the plan"
            yield reading.finding("GEN020", "tools.json", message)
    yield from _settings(reading)
    yield from _calls(reading)


def _settings(reading: _Reading) -> Iterator[Finding]:
    """Yield agents and settings that a plan does not have."""
    for name, agent in reading.agents.items():
        if name not in reading.planned:
            message = f"{name} is not in the plan"
            yield reading.finding("GEN020", "agents.json", message)
        elif agent.model:
            message = f"{name} names the model {agent.model}: the deployment chooses models"
            yield reading.finding("GEN020", "agents.json", message)
    orchestrator = reading.spec.orchestrator
    for extension in orchestrator.runtime_extensions:
        message = f"{extension.entrypoint} is mounted by the server, which is not in the plan"
        yield reading.finding("GEN020", "orchestrator.json", message)
    if orchestrator.model:
        message = f"it names the model {orchestrator.model}: the deployment chooses models"
        yield reading.finding("GEN020", "orchestrator.json", message)


def _calls(reading: _Reading) -> Iterator[Finding]:
    """Yield tools that only read where they must act, and those whose failure is lost."""
    failures = {
        trigger.tool for _, trigger in reading.triggers if isinstance(trigger, ToolFailedTrigger)
    }
    for agent in reading.workflow.agents:
        declared = {tool.function: tool for tool in reading.tools_of(agent.agent_name)}
        for planned in agent.agent_tools:
            tool = declared.get(planned.name)
            if not isinstance(tool, AgentTool) or not planned.integration:
                continue
            words = reading.quoted("tools", tool.file, tool.function)
            used = [
                reading.spec.variables[word].source for word in words & {*reading.spec.variables}
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
                yield reading.finding("GEN021", "context_variables.json", message)
            lost = tool.on_error == "tell" and failures.isdisjoint((None, tool.function))
            if any(map(is_call, asked)) and lost:
                message = f"the run continues as usual when {tool.function} fails"
                yield reading.finding("GEN021", "tools.json", message)


_LOOKS: Final[tuple[Callable[[_Reading], Iterator[Finding]], ...]] = (
    _missing, _addressees, _documents, _outcomes, _telling, _start, _watch, _prompts, _code,
    _effects,
)  # fmt: skip
