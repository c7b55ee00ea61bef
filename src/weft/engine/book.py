"""The rulebook: what the engine needs to know of a workflow, worked out once for all its runs."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from weft.engine.defaults import reply_limit, startup_mode
from weft.engine.routing import Routing, link_routing
from weft.findings import Json
from weft.spec.orchestrator import Orchestrator, StartupMode
from weft.spec.sources import DerivedSource
from weft.spec.tools import AgentTool, UiTool
from weft.spec.triggers import (
    AgentTextTrigger,
    Contains,
    Equals,
    Exact,
    Match,
    ToolCallTrigger,
    UiResponseTrigger,
)
from weft.spec.types import Ref, TypeExpr
from weft.spec.variables import Variable
from weft.spec.workflow import WorkflowSpec

Matches: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class TextRule:
    """A variable that an agent sets by what it says."""

    variable: str
    matches: Matches
    value: Json


@dataclass(frozen=True, slots=True)
class CallRule:
    """A variable that a tool call sets: to a value, or to what stands at an argument."""

    variable: str
    argument: tuple[str, ...] | None
    value: Json


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """A variable that a person's answer sets, from a dotted path into it."""

    variable: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """An agent as the engine sees it."""

    limit: int
    tools: Mapping[str, AgentTool | UiTool]
    #: The model its replies must fit, and the tool that is called with the fields of a reply.
    output: TypeExpr | None
    auto_tool: str | None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """A workflow, sorted for quick look-up."""

    orchestrator: Orchestrator
    startup: StartupMode
    parts: Mapping[str, Part]
    routing: Routing
    variables: Mapping[str, Variable]
    models: Mapping[str, Mapping[str, TypeExpr]]
    text_rules: Mapping[str, tuple[TextRule, ...]]
    call_rules: Mapping[str, tuple[CallRule, ...]]
    answer_rules: Mapping[str, tuple[AnswerRule, ...]]
    start_values: Mapping[str, Json]
    #: Why a run ends, by the index of the handoff that ends it.
    reasons: Mapping[int, str]


def write_rulebook(spec: WorkflowSpec) -> Rulebook:
    """Work out everything about a workflow that does not change while it runs."""
    text: dict[str, list[TextRule]] = {}
    calls: dict[str, list[CallRule]] = {}
    answers: dict[str, list[AnswerRule]] = {}
    for name, variable in spec.variables.items():
        source = variable.source
        for trigger in source.triggers if isinstance(source, DerivedSource) else ():
            match trigger:
                case AgentTextTrigger(agent=agent, match=match_, value=value):
                    text.setdefault(agent, []).append(TextRule(name, _matcher(match_), value))
                case ToolCallTrigger(tool=tool, argument=argument, value=value):
                    path = tuple(argument.split(".")) if argument else None
                    calls.setdefault(tool, []).append(CallRule(name, path, value))
                case UiResponseTrigger(tool=tool, response_key=key):
                    answers.setdefault(tool, []).append(AnswerRule(name, tuple(key.split("."))))
                case _:
                    continue
    return Rulebook(
        orchestrator=spec.orchestrator,
        startup=startup_mode(spec.orchestrator),
        parts=_parts(spec),
        routing=link_routing(spec),
        variables=spec.variables,
        models={it.name: {f: e.type for f, e in it.fields.items()} for it in spec.models},
        text_rules={agent: tuple(rules) for agent, rules in text.items()},
        call_rules={tool: tuple(rules) for tool, rules in calls.items()},
        answer_rules={tool: tuple(rules) for tool, rules in answers.items()},
        start_values=_start_values(spec),
        reasons={index: it.reason for index, it in enumerate(spec.handoffs) if it.reason},
    )


def _parts(spec: WorkflowSpec) -> dict[str, Part]:
    bound = {binding.agent: binding.model for binding in spec.registry}
    parts: dict[str, Part] = {}
    for agent in spec.agents:
        name = agent.agent_name
        tools = {tool.function: tool for tool in spec.tools if tool.agent == name}
        auto = next((it.function for it in tools.values() if it.auto_invoke), None)
        model = bound.get(name)
        parts[name] = Part(
            limit=reply_limit(agent),
            tools={it: tool for it, tool in tools.items() if not tool.auto_invoke},
            output=Ref(model) if model else None,
            auto_tool=auto if agent.auto_tool_mode else None,
        )
    return parts


def _start_values(spec: WorkflowSpec) -> dict[str, Json]:
    """The values that need nothing from outside; the shell adds those that do."""
    values: dict[str, Json] = {}
    for name, variable in spec.variables.items():
        match variable.source:
            case DerivedSource(default=default):
                values[name] = default
            case source if source.type == "static":
                values[name] = source.value
            case _:
                values[name] = None
    return values


def _matcher(match_: Match) -> Matches:
    match match_:
        case Equals(equals=wanted):
            folded = wanted.strip().casefold()
            return lambda text: text.strip().casefold() == folded
        case Exact(exact=wanted):
            return wanted.__eq__
        case Contains(contains=wanted):
            part = wanted.casefold()
            return lambda text: part in text.casefold()
        case _:
            found = re.compile(match_.regex)
            return lambda text: found.search(text) is not None
