"""The orchestrator: how runs start and end, and which agents the user sees."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from weft.generator.compile.agents import is_visible
from weft.generator.compile.texts import line, plain, title
from weft.generator.compile.values import Values
from weft.generator.compile.variables import WATCHED
from weft.generator.compile.wiring import Turn, Way, Wiring
from weft.generator.names import snake_case
from weft.generator.plans.data_rules import start_fields
from weft.ids import TERMINATE
from weft.spec import orchestrator as spec
from weft.spec.agents import Handoff
from weft.spec.patterns import PatternOrDefault
from weft.spec.plan import PlannedStart
from weft.spec.type_field import ModelField, OutputModel

_TURNS_EACH: Final = 10
_LEAST_TURNS: Final = 30
_MOST_TURNS: Final = 500
#: What a plan leaves open about a start.
_CRON: Final = "0 6 * * *"
_CONDITION: Final = "status == 'new'"


def make_orchestrator(values: Values) -> spec.Orchestrator:
    """Return the settings of the workflow as a whole."""
    workflow, wiring = values.workflow, values.wiring
    strategy = workflow.strategy
    mode: spec.StartupMode = "UserDriven" if strategy.initiated_by == "user" else "AgentDriven"
    if strategy.trigger != "chat":
        mode = "BackendOnly"
    turns = max(_LEAST_TURNS, _TURNS_EACH * len(workflow.agents))
    greeting = strategy.greeting or f"{line(workflow.description, 500)} What is it about?"
    seen = tuple(turn.name for turn in wiring.turns if is_visible(values, turn))
    return spec.Orchestrator(
        workflow_name=workflow.name,
        description=plain(workflow.description),
        orchestration_pattern=cast("PatternOrDefault", workflow.pattern.name),
        initial_agent=wiring.entry,
        max_turns=min(turns, _MOST_TURNS),
        human_in_the_loop=strategy.human_in_loop,
        trigger=_start(values),
        initiated_by=strategy.initiated_by,
        startup_mode=mode,
        initial_message_to_user=plain(greeting) if mode == "UserDriven" else None,
        initial_message=None if mode == "UserDriven" else f"Begin. {line(workflow.description)}",
        visual_agents=seen,
        workflow_dependencies=spec.WorkflowDependencies(required_workflows=workflow.requires),
        parallel=wiring.groups,
    )


def _start(values: Values) -> spec.Start:
    """Return how a run begins; what the plan leaves open has a plain default."""
    strategy = values.workflow.strategy
    start = strategy.start or PlannedStart()
    match strategy.trigger:
        case "chat":
            return spec.ChatStart()
        case "form_submit":
            return spec.FormStart(form=next((each.name for each in form_model(values)), None))
        case "schedule":
            return spec.ScheduleStart(cron=start.cron or _CRON, timezone=start.timezone or "UTC")
        case "database_condition":
            collection = start.collection or f"{values.workflow.name}Requests"
            return spec.DatabaseStart(
                collection=collection, condition=start.condition or _CONDITION
            )
        case "webhook":
            path = start.path or snake_case(values.workflow.name, "start").replace("_", "-")
            return spec.WebhookStart(path=path)


def form_model(values: Values) -> tuple[OutputModel, ...]:
    """Return the model of the form that starts a run, if there is one."""
    strategy = values.workflow.strategy
    fields = {
        field.name: ModelField(
            type=field.value_type, description=line(field.description or title(field.name))
        )
        for field in start_fields(strategy)
    }
    if strategy.trigger != "form_submit" or not fields:
        return ()
    name = f"{values.workflow.name}Form"
    return (OutputModel(name=name, description="What is filled in to start.", fields=fields),)


def handoffs(wiring: Wiring) -> Iterator[Handoff]:
    """Yield the rules; those of an agent are evaluated in the order of its ways."""
    for turn in wiring.turns:
        if wiring.watch and turn.name in wiring.interrupted:
            rule = Handoff(source_agent=turn.name, target_agent=wiring.watch, priority=0)
            yield rule.model_copy(update={"condition": WATCHED, "condition_scope": "pre"})
        for place, way in enumerate(turn.ways, 1):
            yield Handoff(
                source_agent=turn.name,
                target_agent=way.target,
                condition=way.condition,
                priority=place,
                reason=_reason(turn, way) if way.target == TERMINATE else None,
            )


def _reason(turn: Turn, way: Way) -> str:
    nothing = "done" if not turn.outcomes else "nothing was decided"
    return line(f"{turn.module.purpose}: {way.when or nothing}")


def notes_on_start(values: Values) -> Sequence[str]:
    """Return what the plan leaves open about the start."""
    start = values.workflow.strategy.start or PlannedStart()
    match values.workflow.strategy.trigger:
        case "schedule" if not start.cron:
            return [f"the plan names no time: the schedule is {_CRON}"]
        case "database_condition" if not (start.collection and start.condition):
            collection = f"{values.workflow.name}Requests"
            return [f"the plan names no documents: a run starts at {_CONDITION} in {collection}"]
        case _:
            return []
