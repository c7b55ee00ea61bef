"""Who owns what: which agent a name means, and which model its replies must fit.

A misspelt agent is reported where it is misspelt. What depends on it is judged as if it were
spelt right, so that one mistake does not come back as three.
"""

from weft.check.subject import Subject
from weft.ids import nearest
from weft.spec.tools import AgentTool, UiTool


def agent_meant(subject: Subject, name: str) -> str | None:
    """Return the agent that a name means, also when it is misspelt."""
    return name if name in subject.agents else nearest(name, subject.agents)


def bound_model(subject: Subject, agent: str) -> str | None:
    """Return the name of the model that an agent's replies must fit, if one is bound."""
    for binding in subject.spec.registry:
        if binding.model is not None and agent_meant(subject, binding.agent) == agent:
            return binding.model
    return None


def automatic_tools(subject: Subject, agent: str) -> list[tuple[int, AgentTool | UiTool]]:
    """Return the agent's tools that its structured output calls, with their index."""
    return [
        (index, tool)
        for index, tool in enumerate(subject.spec.tools)
        if tool.auto_invoke and agent_meant(subject, tool.agent) == agent
    ]
