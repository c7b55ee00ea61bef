"""Family BIND: agents, models and extensions that a run needs; and tools that outputs call."""

from collections.abc import Iterator

from weft.check.declarations import (
    automatic_tools,
    lacks_automatic_tool,
    lacks_model,
    placed_triggers,
)
from weft.check.rules.code import RUN_POINTS
from weft.check.rules.references import Reference, unknown_names
from weft.check.spelling import listed
from weft.check.subject import CONVERSATION, Hit, Subject, rule
from weft.findings import Path, Severity
from weft.spec.agents import Agent
from weft.spec.triggers import LifecycleTrigger


def _at_hook_points(subject: Subject) -> Iterator[tuple[Path, str, str, str]]:
    """Yield what is bound to a hook point of one agent: path, description, hook point, agent."""
    for index, hook in enumerate(subject.spec.hooks):
        if hook.agent is not None:
            what = f"the hook {hook.function} is for"
            yield ("hooks", index, "agent"), what, hook.hook_type, hook.agent
    for index, tool in enumerate(subject.spec.lifecycle_tools):
        if tool.agent is not None:
            what = f"the lifecycle tool {tool.function} is for"
            yield ("lifecycle_tools", index, "agent"), what, tool.trigger, tool.agent
    for placed in placed_triggers(subject):
        agent = getattr(placed.trigger, "agent", None)
        if agent is not None:
            point = placed.trigger.event if isinstance(placed.trigger, LifecycleTrigger) else ""
            yield (*placed.path, "agent"), f"a trigger of {placed.variable} waits for", point, agent


@rule("NAME001", "hooks", "lifecycle_tools", "variables", "agents")
def agent_of_hook_point_exists(subject: Subject) -> Iterator[Hit]:
    return unknown_names(
        subject,
        (
            Reference(path, "agent", agent, what)
            for path, what, point, agent in _at_hook_points(subject)
            if point not in RUN_POINTS
        ),
    )


@rule("BIND004", "hooks", "lifecycle_tools", "variables")
def hook_point_belongs_to_an_agent(subject: Subject) -> Iterator[Hit]:
    for path, what, point, agent in _at_hook_points(subject):
        if point in RUN_POINTS:
            # A trigger for one agent never fires; a function is called for all agents.
            severity: Severity | None = None if path[0] == "variables" else "warning"
            yield Hit(
                path,
                f"{what} {agent}, but {point} is a hook point of the run, not of an agent",
                hint=('remove "agent"', "or use before_agent or after_agent"),
                severity=severity,
            )


@rule("BIND005", "orchestrator", "agents", modes=CONVERSATION)
def initial_agent_is_given(subject: Subject) -> Iterator[Hit]:
    if not subject.spec.orchestrator.initial_agent:
        hint = f'add "initial_agent": "{next(iter(subject.agents), "...")}"'
        yield Hit(("orchestrator",), 'the key "initial_agent" is missing', hint=(hint,))


@rule("BIND011", "agents", modes=CONVERSATION)
def there_are_agents(subject: Subject) -> Iterator[Hit]:
    # Artifacts can be published and read on a board before it has agents.
    if not subject.spec.agents:
        hint = 'add {"agent_name": "..."} to agents.json'
        yield Hit(("agents",), "the workflow has no agents", hint=(hint,))


@rule("BIND007", "agents", "registry", modes=frozenset({"conversation", "flow"}))
def required_model_is_bound(subject: Subject) -> Iterator[Hit]:
    for index, agent in enumerate(subject.spec.agents):
        if agent.structured_outputs_required and lacks_model(subject, agent.agent_name):
            yield Hit(
                ("agents", index, "structured_outputs_required"),
                f"{agent.agent_name} must give structured output, but no model is bound to it",
                hint=(
                    f"bind a model to {agent.agent_name} in the registry of structured_outputs",
                    "or set structured_outputs_required to false",
                ),
            )


# -- tools that a structured output calls


@rule("TOOL009", "tools", "agents", "registry", modes=CONVERSATION)
def automatic_call_is_complete(subject: Subject) -> Iterator[Hit]:
    # NAME002 reports two agents with one name; either may be meant.
    willing = {agent.agent_name for agent in subject.spec.agents if agent.auto_tool_mode}
    for index, agent in enumerate(subject.spec.agents):
        name = agent.agent_name
        tools = automatic_tools(subject, name)
        if name not in willing and tools:
            position, tool = tools[0]
            yield Hit(
                ("tools", position, "auto_invoke"),
                f"{tool.function} has auto_invoke, but its agent {name} has no auto_tool_mode",
                hint=(f"set auto_tool_mode of {name} to true", "or set auto_invoke to false"),
            )
        lacking = _lacking(subject, agent) if agent.auto_tool_mode else []
        if lacking:
            yield Hit(
                ("agents", index, "auto_tool_mode"),
                f"{name} has auto_tool_mode, but lacks {listed(lacking)}",
                hint=("add what is missing, or set auto_tool_mode to false",),
                severity=None if tools else "warning",
            )


def _lacking(subject: Subject, agent: Agent) -> list[str]:
    lacking: list[str] = []
    if lacks_automatic_tool(subject, agent.agent_name):
        lacking.append("a tool with auto_invoke")
    # BIND007 reports an agent that requires a model.
    if lacks_model(subject, agent.agent_name) and not agent.structured_outputs_required:
        lacking.append("a model bound in the registry")
    return lacking


@rule("TOOL012", "tools", "agents", modes=CONVERSATION)
def one_automatic_tool(subject: Subject) -> Iterator[Hit]:
    for agent in subject.agents:
        tools = automatic_tools(subject, agent)
        for index, tool in tools[1:]:
            first = tools[0][1].function
            if tool.function != first:  # NAME002 reports the same tool twice
                yield Hit(
                    ("tools", index, "auto_invoke"),
                    f"{agent} has a second tool with auto_invoke: {tool.function}",
                    cause=(f"{first} has it already",),
                    hint=("set auto_invoke to false for one", "or let one tool call the other"),
                )
