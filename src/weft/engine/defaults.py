"""What follows from a declaration when the author leaves it open."""

from weft.spec.agents import REPLY_LIMITS, Agent
from weft.spec.orchestrator import Orchestrator, StartupMode
from weft.spec.variables import Variable


def reply_limit(agent: Agent) -> int:
    """How many replies in a row the agent may give."""
    return agent.max_consecutive_auto_reply or REPLY_LIMITS[agent.human_interaction]


def startup_mode(orchestrator: Orchestrator) -> StartupMode:
    """Who opens the run: the user, an agent, or nobody a person talks to."""
    if orchestrator.startup_mode:
        return orchestrator.startup_mode
    if orchestrator.trigger.type != "chat":
        return "BackendOnly"
    return "UserDriven" if orchestrator.initiated_by == "user" else "AgentDriven"


def may_route(variable: Variable) -> bool:
    """Whether handoff conditions may use the variable."""
    if variable.routing is not None:
        return variable.routing
    return variable.source.type in {"environment", "derived"}
