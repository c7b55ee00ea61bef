"""Who owns what: the automatic tools of an agent, and the model its replies must fit.

A misspelt agent is reported where it is misspelt. Whether something is missing is judged as if it
were spelt right, so that one mistake does not come back as three.
"""

from weft.check.spelling import agent_meant
from weft.check.subject import Subject
from weft.spec.tools import AgentTool, McpServer, UiTool


def serving(subject: Subject, tool: str) -> list[McpServer]:
    """Return the tool servers that may offer a tool of this name."""
    return [
        it
        for it in subject.spec.mcp_servers
        if tool.startswith(f"{it.name}_")
        and (it.allow is None or tool.removeprefix(f"{it.name}_") in it.allow)
    ]


def bound_model(subject: Subject, agent: str) -> str | None:
    """Return the name of the model that an agent's replies must fit, if one is bound."""
    models = (one.model for one in subject.spec.registry if one.agent == agent)
    return next((model for model in models if model is not None), None)


def automatic_tools(subject: Subject, agent: str) -> list[tuple[int, AgentTool | UiTool]]:
    """Return the agent's tools that its structured output calls, with their index."""
    tools = enumerate(subject.spec.tools)
    return [(index, tool) for index, tool in tools if tool.auto_invoke and tool.agent == agent]


def lacks_model(subject: Subject, agent: str) -> bool:
    """Tell whether no model is bound to an agent, not even under a misspelt name."""
    bound = (one.agent for one in subject.spec.registry if one.model is not None)
    return not any(agent_meant(subject, name) == agent for name in bound)


def lacks_automatic_tool(subject: Subject, agent: str) -> bool:
    """Tell whether an agent has no automatic tool, not even under a misspelt name."""
    owners = (tool.agent for tool in subject.spec.tools if tool.auto_invoke)
    return not any(agent_meant(subject, name) == agent for name in owners)
