"""Transformation 13.5: how a run of the workflow starts, how long it may take, and who is seen."""

import re
from typing import Final, cast

from weft.generator.compile.models import form_name
from weft.generator.compile.sources import collection_of
from weft.generator.compile.texts import line, plain, words_of
from weft.generator.compile.wires import Wiring
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.orchestrator import Orchestrator, StartupMode, WorkflowDependencies
from weft.spec.patterns import PatternOrDefault
from weft.spec.plan import Trigger
from weft.spec.starts import (
    ChatStart,
    DatabaseStart,
    FormStart,
    InitiatedBy,
    ScheduleStart,
    Start,
    WebhookStart,
)

#: The turns each agent may take on average, and the least and the most of a run.
_TURNS_EACH: Final = 10
_LEAST_TURNS: Final = 30
_MOST_TURNS: Final = 500

#: Words of a brief that say when, the first that is found counts.
_TIMES: Final = (
    (r"\bhourly\b|\bevery hour\b", "0 * * * *"),
    (r"\bweekdays?\b|\bworking days?\b|\bworkdays?\b", "0 6 * * MON-FRI"),
    (r"\bmonthly\b|\bevery month\b", "0 6 1 * *"),
    (r"\bmondays?\b|\bweekly\b|\bevery week\b", "0 6 * * MON"),
    (r"\bfridays?\b", "0 6 * * FRI"),
    (r"\bnightly\b|\bevery night\b", "0 1 * * *"),
)
_DAILY: Final = "0 6 * * *"


def orchestrator(workflow: WorkflowPlan, wiring: Wiring) -> Orchestrator:
    """Return the settings of the workflow as a whole."""
    strategy = workflow.strategy
    mode = startup_mode(strategy.trigger, strategy.initiated_by)
    everybody = tuple(it.agent_name for it in workflow.agents)
    seen = tuple(it.agent_name for it in workflow.agents if it.human_interaction != "none")
    told = line(workflow.description, 500)
    turns = max(_LEAST_TURNS, _TURNS_EACH * len(workflow.agents))
    return Orchestrator(
        workflow_name=workflow.name,
        description=plain(workflow.description),
        orchestration_pattern=cast("PatternOrDefault", workflow.pattern.name),
        initial_agent=wiring.entry,
        max_turns=min(turns, _MOST_TURNS),
        human_in_the_loop=strategy.human_in_loop,
        trigger=_start(workflow),
        initiated_by=strategy.initiated_by,
        startup_mode=mode,
        initial_message_to_user=_greeting(workflow) if mode == "UserDriven" else None,
        initial_message=None if mode == "UserDriven" else f"Begin. {told}",
        visual_agents=seen or everybody,
        workflow_dependencies=WorkflowDependencies(required_workflows=workflow.requires),
        parallel=wiring.groups,
    )


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


def _start(workflow: WorkflowPlan) -> Start:
    match workflow.strategy.trigger:
        case "chat":
            return ChatStart()
        case "form_submit":
            return FormStart(form=form_name(workflow))
        case "schedule":
            return ScheduleStart(cron=cron_of(_said(workflow)))
        case "database_condition":
            return DatabaseStart(collection=_watched(workflow), condition="status == 'new'")
        case "webhook":
            return WebhookStart(path="-".join(words_of(workflow.name)))


def cron_of(text: str) -> str:
    """Return the schedule that a text speaks of; every day at six where it speaks of none.

    >>> cron_of("A weekly report")
    '0 6 * * MON'
    """
    for pattern, cron in _TIMES:
        if re.search(pattern, text, re.IGNORECASE):
            return cron
    return _DAILY


def _said(workflow: WorkflowPlan) -> str:
    modules = (f"{it.purpose} {it.description}" for it in workflow.modules)
    return "\n".join((workflow.description, workflow.strategy.workflow_description, *modules))


def _watched(workflow: WorkflowPlan) -> str:
    """Return the collection whose documents start a run: the first that the plan reads."""
    kinds = ("data_entity", "entity", "data_reference", "database")
    for it in workflow.blueprint.global_context_variables:
        if it.type in kinds:
            return collection_of(it)
    return f"{workflow.name}Requests"
