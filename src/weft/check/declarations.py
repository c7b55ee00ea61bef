"""Triggers and automatic tools, collected for rules and the explorer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from weft.check.parts import kinds_in, placed_parts
from weft.check.spelling import agent_meant
from weft.check.subject import Subject, listed_once
from weft.findings import Json, Path
from weft.spec.orchestrator import DatabaseStart, FormStart, WebhookStart
from weft.spec.tools import AgentTool, McpServer, UiTool
from weft.spec.triggers import BringsValue, CustomTrigger, ModelFailedTrigger, Trigger
from weft.spec.variables import DerivedSource, Transition


def serving(subject: Subject, tool: str) -> list[McpServer]:
    """Return the tool servers that may offer a tool of this name."""
    return [
        server
        for server in subject.spec.mcp_servers
        if tool.startswith(f"{server.name}_")
        and (server.allow is None or tool.removeprefix(f"{server.name}_") in server.allow)
    ]


def bound_model(subject: Subject, agent: str) -> str | None:
    """Return the name of the model that an agent's replies must fit, if one is bound."""
    models = (one.model for one in subject.spec.registry if one.agent == agent)
    return next((model for model in models if model is not None), None)


def automatic_tools(subject: Subject, agent: str) -> list[tuple[int, AgentTool | UiTool]]:
    """Return the agent's tools that its structured output calls, with their index."""
    tools = enumerate(subject.spec.tools)
    return [(index, tool) for index, tool in tools if tool.auto_invoke and tool.agent == agent]


def comes_with_start(subject: Subject, name: str) -> bool:
    """Return whether a derived variable may begin with a field of what starts the run."""
    start = subject.spec.orchestrator.trigger
    if isinstance(start, FormStart) and start.form:
        return name in subject.models.get(start.form, {})
    return isinstance(start, FormStart | WebhookStart | DatabaseStart)


def has_trigger(source: DerivedSource) -> bool:
    return bool(source.triggers) or any(step.trigger for step in source.transitions)


def lacks_model(subject: Subject, agent: str) -> bool:
    """Return whether an agent has no model bound to it, not even under a misspelt name."""
    bound = (one.agent for one in subject.spec.registry if one.model is not None)
    return not any(agent_meant(subject, name) == agent for name in bound)


def lacks_automatic_tool(subject: Subject, agent: str) -> bool:
    """Return whether an agent has no automatic tool, not even under a misspelt name."""
    owners = (tool.agent for tool in subject.spec.tools if tool.auto_invoke)
    return not any(agent_meant(subject, name) == agent for name in owners)


@dataclass(frozen=True, slots=True)
class PlacedTrigger:
    """A trigger, the variable it sets, and the transition it belongs to, if any."""

    variable: str
    path: Path
    trigger: Trigger
    transition: Transition | None = None


_TRIGGERS: Final = kinds_in(Trigger)


@listed_once
def placed_triggers(subject: Subject) -> Iterator[PlacedTrigger]:
    for placed in placed_parts(subject, *_TRIGGERS):
        variable, trigger = str(placed.path[1]), cast("Trigger", placed.part)
        yield PlacedTrigger(variable, placed.path, trigger, placed.inside(Transition))


def set_in_turns(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield which agent sets which variable by the triggers of its turns and tools."""
    for placed in placed_triggers(subject):
        trigger = placed.trigger
        agent, name = getattr(trigger, "agent", None), getattr(trigger, "tool", None)
        users = (
            {agent}
            if agent
            else {tool.agent for tool in subject.spec.tools if tool.function == name}
        )
        if not isinstance(trigger, ModelFailedTrigger):
            yield from ((user, placed.variable) for user in sorted(users))


def of_plugins(subject: Subject) -> Iterator[tuple[PlacedTrigger, CustomTrigger]]:
    """Yield the triggers whose kinds are added by plug-ins."""
    for placed in placed_triggers(subject):
        if isinstance(placed.trigger, CustomTrigger) and placed.trigger.name in subject.kinds:
            yield placed, placed.trigger


def taking_key(trigger: Trigger) -> str | None:
    """Return the key by which a trigger takes its value from the event; None if it does not."""
    keys = ("argument", "response_key")
    return next((key for key in keys if getattr(trigger, key, None) is not None), None)


def assigned(placed: PlacedTrigger) -> tuple[Json, Path] | None:
    """Return the fixed value that a trigger sets and its path.

    None if the value comes from the event or from a transition.
    """
    trigger = placed.trigger
    if placed.transition or isinstance(trigger, BringsValue) or taking_key(trigger):
        return None
    # A default value is not written in the file, so the finding points to the trigger itself.
    written = "value" in trigger.model_fields_set
    return trigger.value, (*placed.path, "value") if written else placed.path
