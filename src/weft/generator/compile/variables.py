"""Transformation 13.2: what is known, where it comes from, and who is shown it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from weft.check.secrets import names_a_key
from weft.generator.compile.services import derived, service_calls, service_variables
from weft.generator.compile.sources import SourceMaker
from weft.generator.compile.texts import line, mentions, words_of
from weft.generator.compile.variable_types import DEFAULTS
from weft.generator.compile.wires import APPROVE, DECISION, OPEN, READY, REJECT, ROUNDS, Wiring
from weft.generator.shapes import ToolShape
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.plan import PlannedAgent
from weft.spec.tools import Hook, LifecycleTool
from weft.spec.triggers import (
    AgentTextTrigger,
    AgentTurnCountTrigger,
    Equals,
    HandoffTrigger,
    ToolCallTrigger,
    Trigger,
    UiResponseTrigger,
)
from weft.spec.type_parser import parse_type
from weft.spec.variables import DerivedSource, ExternalSource, Transition, Variable


def variables(
    workflow: WorkflowPlan,
    wiring: Wiring,
    shapes: Sequence[ToolShape],
    boundaries: Sequence[LifecycleTool | Hook] = (),
) -> dict[str, Variable]:
    """Return every variable: those that control the run, those of the plan, those of services."""
    found = dict(_controls(wiring, shapes))
    maker = SourceMaker(workflow, shapes, found, wiring)
    # What is computed follows from what others are.
    planned = sorted(
        workflow.blueprint.global_context_variables, key=lambda it: it.type == "computed"
    )
    calls = tuple(service_calls(shapes, boundaries))
    secrets = _secrets(workflow, [it.service for it in calls])
    elsewhere = {name for it in calls for name in (it.query, it.answer)} | set(secrets.values())
    for it in planned:
        if it.name not in found and it.name not in elsewhere:
            found |= maker.variables(it)
    for call in calls:
        needed = service_variables(call, secrets.get(call.service))
        found |= {key: it for key, it in needed.items() if key == call.answer or key not in found}
    return found


def _secrets(workflow: WorkflowPlan, services: Sequence[str]) -> dict[str, str]:
    """Return by service the setting of the plan that holds its key: it is named, never read."""
    services = list(dict.fromkeys(services))
    keys = [
        it.name
        for it in workflow.blueprint.global_context_variables
        if it.type in ("config", "environment") and names_a_key(it.name)
    ]
    found: dict[str, str] = {}
    for service in services:
        own = [it for it in keys if set(words_of(service)) & set(words_of(it))]
        if own or (len(services) == 1 and keys):
            found[service] = (own or keys)[0]
    return found


def _controls(wiring: Wiring, shapes: Sequence[ToolShape]) -> Iterator[tuple[str, Variable]]:
    """Yield the variables that handoffs test, set by replies, answers, words and counts."""
    recorded = {it.agent: it.name for it in shapes if it.auto_invoke}
    for name, agents in _owners((it.variable, agent) for agent, it in wiring.decisions.items()):
        decisions = [wiring.decisions[it] for it in agents]
        values = (OPEN, *(option.value for it in decisions for option in it.options))
        told = wiring.planned.get(name) or f"What {', '.join(agents)} decided last."
        calls = {recorded[it.agent]: it.field for it in decisions}
        triggers = [ToolCallTrigger(tool=tool, argument=key) for tool, key in calls.items()]
        yield name, derived(_literal(values), OPEN, told, triggers)
    for name in {it.tasks: None for it in wiring.decisions.values() if it.tasks}:
        writers = {recorded[it.agent] for it in wiring.decisions.values() if it.tasks == name}
        triggers = [ToolCallTrigger(tool=it, argument="open_tasks") for it in sorted(writers)]
        yield name, derived("list[str]", [], "The tasks that are open.", triggers)
    yield from _of_people(wiring, shapes)
    for name, agents in _owners((it.variable, it.agent) for it in wiring.rounds):
        turns = [
            AgentTurnCountTrigger(agent=it.agent, count=it.count)
            for it in wiring.rounds
            if it.variable == name
        ]
        told = f"{', '.join(agents)} had the last round."
        yield name, derived("bool", DEFAULTS["bool"], told, turns)


def _of_people(wiring: Wiring, shapes: Sequence[ToolShape]) -> Iterator[tuple[str, Variable]]:
    """Yield what users and those who approve have said; it begins anew with each turn."""
    for name, agents in _owners((name, agent) for agent, name in wiring.ready.items()):
        said = [
            AgentTextTrigger(agent=it, match=Equals(equals=READY), ui_hidden=True) for it in agents
        ]
        anew = [HandoffTrigger(target_agent=it, value=False) for it in agents]
        told = f"{', '.join(agents)} knows enough of the user."
        yield name, derived("bool", DEFAULTS["bool"], told, [*said, *anew])
    for name, agents in _owners((it.variable, agent) for agent, it in wiring.approvals.items()):
        asked = [it.name for it in shapes if it.agent in agents and _approves(it)]
        anew = [HandoffTrigger(target_agent=it, value=OPEN) for it in agents]
        made = f"What a person said to the work of {', '.join(agents)}."
        told = wiring.planned.get(name) or made
        states = _literal((OPEN, APPROVE, REJECT))
        yield name, derived(states, OPEN, told, [*_answers(asked, DECISION), *anew])
    yield from _approval_rounds(wiring)
    for name, agents in _owners((it.comment, agent) for agent, it in wiring.approvals.items()):
        asked = [it.name for it in shapes if it.agent in agents and _approves(it)]
        told = f"What a person wants changed in the work of {', '.join(agents)}."
        yield name, derived("str", DEFAULTS["str"], told, _answers(asked, "comment"))


def _approval_rounds(wiring: Wiring) -> Iterator[tuple[str, Variable]]:
    """Yield which round it is of work that a person may send back: a refusal begins the next."""
    named = ((it.rounds, agent) for agent, it in wiring.approvals.items() if it.rounds)
    for name, agents in _owners(named):
        changes = [
            Transition.model_validate(
                {
                    "from": before,
                    "to": after,
                    "trigger": HandoffTrigger(
                        source_agent=it, target_agent=wiring.approvals[it].back
                    ),
                }
            )
            for it in agents
            for before, after in pairwise(ROUNDS)
        ]
        yield (
            name,
            Variable(
                type=parse_type(_literal(ROUNDS)),
                description=line(f"In which round {', '.join(agents)} asks for approval."),
                source=DerivedSource(default=ROUNDS[0], transitions=tuple(changes)),
            ),
        )


def _answers(tools: Sequence[str], key: str) -> list[Trigger]:
    return [UiResponseTrigger(tool=it, response_key=key) for it in dict.fromkeys(tools)]


def _owners(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return the agents by the variable that they have, or share."""
    owners: dict[str, list[str]] = {}
    for name, agent in pairs:
        owners.setdefault(name, []).append(agent)
    return list(owners.items())


def _approves(shape: ToolShape) -> bool:
    return any(it.name == DECISION for it in shape.result)


def _literal(values: Sequence[str]) -> str:
    listed = ", ".join(f'"{it}"' for it in dict.fromkeys(values))
    return f"literal[{listed}]"


def exposure(
    workflow: WorkflowPlan,
    wiring: Wiring,
    shapes: Sequence[ToolShape],
    known: Mapping[str, Variable],
) -> dict[str, tuple[str, ...]]:
    """Return which agent is shown which variables: those it or its tools speak of."""
    shown: dict[str, list[str]] = {}
    for module in workflow.modules:
        for agent in module.agents:
            name = agent.agent_name
            tasks = {
                wiring.decisions[it.agent_name].tasks
                for it in module.agents
                if it.agent_name in wiring.decisions
            }
            used = {
                it
                for shape in shapes
                if shape.agent == name and shape.kind != "external"
                for it in shape.variables
            }
            used |= {*_comments(name, wiring), *_untested(name, wiring)}
            around = (workflow.description, module.purpose, module.description)
            said = "\n".join((*around, *_words(agent, wiring)))
            for variable, it in known.items():
                wanted = variable in tasks or variable in used or mentions(said, variable)
                if wanted and _may_be_shown(it):
                    shown.setdefault(name, []).append(variable)
    for variable, agent in _left_over(workflow, shapes, known, shown):
        shown.setdefault(agent, []).append(variable)
    order = list(known)
    return {
        agent: tuple(sorted(set(names), key=order.index))
        for agent in (it.agent_name for it in workflow.agents)
        if (names := shown.get(agent))
    }


def _untested(agent: str, wiring: Wiring) -> Iterator[str]:
    """Yield what an agent decided that no rule looks at, since all of it leads to one place."""
    decision = wiring.decisions.get(agent)
    if decision and len({it.target for it in decision.options}) == 1:
        yield decision.variable


def _comments(agent: str, wiring: Wiring) -> Iterator[str]:
    """Yield what people want changed that an agent must know: it gets the work back."""
    groups = {it.name: it.members for it in wiring.groups}
    for owner, it in wiring.approvals.items():
        if agent in (owner, it.back, *groups.get(it.back or "", ())):
            yield it.comment


def _words(agent: PlannedAgent, wiring: Wiring) -> Iterator[str]:
    """Yield what an agent is told about itself, its tools and its decisions."""
    yield agent.objective
    for it in agent.agent_tools:
        yield " ".join(words_of(it.name))
        yield it.purpose
    if decision := wiring.decisions.get(agent.agent_name):
        yield from (it.meaning for it in decision.options)


def _may_be_shown(variable: Variable) -> bool:
    """What is asked of a service when a tool wants it is not there before a turn."""
    asked = isinstance(variable.source, ExternalSource) and variable.source.default is None
    return not variable.secret and not asked


def _left_over(
    workflow: WorkflowPlan,
    shapes: Sequence[ToolShape],
    known: Mapping[str, Variable],
    shown: Mapping[str, Sequence[str]],
) -> Iterator[tuple[str, str]]:
    """Yield the variables of the plan that nobody speaks of, with who is shown them."""
    seen = {it for names in shown.values() for it in names}
    seen |= {it for shape in shapes for it in shape.variables}
    first = workflow.agents[0].agent_name
    for it in workflow.blueprint.global_context_variables:
        if it.name in known and it.name not in seen and _may_be_shown(known[it.name]):
            hint = f"{it.trigger_hint or ''} {it.purpose}"
            named = [one.agent_name for one in workflow.agents if mentions(hint, one.agent_name)]
            yield it.name, (*named, first)[0]
