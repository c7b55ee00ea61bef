"""Transformation 13.5: how a run of the workflow starts, how long it may take, and who is seen."""

from typing import Final, cast

from weft.generator.compile.starts import start_of
from weft.generator.compile.texts import line, plain, words_of
from weft.generator.compile.wires import Wiring
from weft.generator.workflow_plan import WorkflowPlan
from weft.ids import TERMINATE
from weft.spec.orchestrator import InitiatedBy, Orchestrator, StartupMode, WorkflowDependencies
from weft.spec.patterns import PatternOrDefault
from weft.spec.plan import Trigger

#: The turns each agent may take on average, and the least and the most of a run.
_TURNS_EACH: Final = 10
_LEAST_TURNS: Final = 30
_MOST_TURNS: Final = 500


def orchestrator(workflow: WorkflowPlan, wiring: Wiring) -> Orchestrator:
    """Return the settings of the workflow as a whole."""
    strategy = workflow.strategy
    mode = startup_mode(strategy.trigger, strategy.initiated_by)
    everybody = tuple(it.agent_name for it in workflow.agents)
    meeting = {it.agent_name for it in workflow.agents if it.human_interaction != "none"}
    # Whoever ends a chat gives the last answer.
    last = _last(wiring) if meeting and strategy.trigger == "chat" else meeting
    seen = tuple(it for it in everybody if it in meeting | last)
    told = line(workflow.description, 500)
    turns = max(_LEAST_TURNS, _TURNS_EACH * len(workflow.agents))
    return Orchestrator(
        workflow_name=workflow.name,
        description=plain(workflow.description),
        orchestration_pattern=cast("PatternOrDefault", workflow.pattern.name),
        initial_agent=wiring.entry,
        max_turns=min(turns, _MOST_TURNS),
        human_in_the_loop=strategy.human_in_loop,
        trigger=start_of(workflow),
        initiated_by=strategy.initiated_by,
        startup_mode=mode,
        initial_message_to_user=_greeting(workflow) if mode == "UserDriven" else None,
        initial_message=None if mode == "UserDriven" else f"Begin. {told}",
        visual_agents=seen or everybody,
        workflow_dependencies=WorkflowDependencies(required_workflows=workflow.requires),
        parallel=wiring.groups,
    )


def _last(wiring: Wiring) -> set[str]:
    """Return the agents after which the run may end."""
    groups = {it for one in wiring.groups if one.next == TERMINATE for it in one.members}
    return groups | {it.source for it in wiring.ways if it.target == TERMINATE}


def _greeting(workflow: WorkflowPlan) -> str:
    """Say what the user has opened, and ask."""
    title = " ".join(it.capitalize() for it in words_of(workflow.name))
    return f"This is {title}. What is it about?"


def startup_mode(trigger: Trigger, initiated_by: InitiatedBy) -> StartupMode:
    """Return who opens a run: a chat is begun by the user or by an agent, all else by nobody.

    >>> startup_mode("chat", "user")
    'UserDriven'
    """
    if trigger != "chat":
        return "BackendOnly"
    return "UserDriven" if initiated_by == "user" else "AgentDriven"
