"""Family TOOL, second part: tools that a structured output calls by itself."""

from collections.abc import Iterator

from weft.check.code.facts import function_at
from weft.check.declarations import automatic_tools, bound_model, lacks_automatic_tool, lacks_model
from weft.check.spelling import did_you_mean, listed
from weft.check.subject import Hit, Subject, rule
from weft.spec.agents import Agent


@rule("TOOL008", "tools", "agents", "models", "registry", "code")
def output_gives_arguments(subject: Subject) -> Iterator[Hit]:
    for agent in subject.agents:
        model = bound_model(subject, agent)
        fields = subject.models.get(model or "")
        if fields is None:
            continue
        for index, tool in automatic_tools(subject, agent):
            function = function_at(subject, "tools", tool.file, tool.function)
            if function is None or function.decorated:
                continue
            lacking = [
                one.name
                for one in function.parameters
                if one.required and not one.injected and one.name not in fields
            ]
            if lacking:
                yield Hit(
                    ("tools", index, "function"),
                    f"{tool.function} is called with the fields of {model}, "
                    f"which has no {listed(lacking)}",
                    cause=(f"the fields of {model} are {listed(fields)}",) if fields else (),
                    hint=did_you_mean(lacking[0], fields)
                    or (f"add the field to {model}, or give the parameter a default value",),
                )


@rule("TOOL009", "tools", "agents", "registry")
def automatic_call_is_complete(subject: Subject) -> Iterator[Hit]:
    # Of two agents with one name, which NAME003 reports, either may be the one that is meant.
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
                f"{name} has auto_tool_mode, but not {listed(lacking)}",
                hint=("add what is missing, or set auto_tool_mode to false",),
                severity=None if tools else "warning",
            )


def _lacking(subject: Subject, agent: Agent) -> list[str]:
    lacking: list[str] = []
    if lacks_automatic_tool(subject, agent.agent_name):
        lacking.append("a tool with auto_invoke")
    # BIND007 speaks about the model of an agent that requires one.
    if lacks_model(subject, agent.agent_name) and not agent.structured_outputs_required:
        lacking.append("a model bound in the registry")
    return lacking


@rule("TOOL012", "tools", "agents")
def one_automatic_tool(subject: Subject) -> Iterator[Hit]:
    for agent in subject.agents:
        tools = automatic_tools(subject, agent)
        for index, tool in tools[1:]:
            first = tools[0][1].function
            if tool.function != first:  # the same tool twice is NAME004's matter
                yield Hit(
                    ("tools", index, "auto_invoke"),
                    f"{agent} has a second tool with auto_invoke: {tool.function}",
                    cause=(f"{first} has it already",),
                    hint=("set auto_invoke to false for one", "or let one tool call the other"),
                )
