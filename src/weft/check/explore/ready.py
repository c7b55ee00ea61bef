"""Whether a workflow is sound enough to be explored. What is not, other rules report."""

from collections.abc import Iterator

from weft.check.code.facts import path_in
from weft.check.cycles import find_cycles
from weft.check.explore.ground import computations
from weft.check.explore.happenings import automatic_calls
from weft.check.subject import Subject
from weft.ids import FUNCTION_REF, TERMINATE, USER
from weft.spec.conditions import names
from weft.spec.handoffs import Handoff
from weft.spec.sources import ComputedSource, DerivedSource
from weft.spec.triggers import (
    AgentTextTrigger,
    AgentTurnCountTrigger,
    HandoffTrigger,
    LifecycleTrigger,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
)


def obstacle(subject: Subject) -> str | None:
    """Say why nothing can be said about the runs of a workflow, or return None if all is well."""
    found = (*_team(subject), *_owned(subject), *_handoffs(subject), *_variables(subject))
    return found[0] if found else None


def _team(subject: Subject) -> Iterator[str]:
    spec = subject.spec
    if spec.flow or spec.board:
        yield "the workflow is not led by handoffs"
    if len(subject.agents) < len(spec.agents):
        yield "two agents have the same name"
    if not subject.agents.keys().isdisjoint((USER, TERMINATE)):
        yield "an agent is named like the user or the end"
    if spec.orchestrator.initial_agent not in subject.agents:
        yield "the initial agent does not exist"
    if spec.orchestrator.default_target not in _targets(subject):
        yield "the default target does not exist"


def _owned(subject: Subject) -> Iterator[str]:
    """Say what is wrong with what belongs to agents. Of two that collide, a run takes the last."""
    spec = subject.spec
    owned = (*spec.tools, *spec.lifecycle_tools, *spec.hooks)
    if not {None, *subject.agents}.issuperset(part.agent for part in owned):
        yield "a tool or a hook belongs to an agent that does not exist"
    if len({one.agent for one in spec.registry}) < len(spec.registry):
        yield "an agent is bound twice"
    if len({(tool.agent, tool.function) for tool in spec.tools}) < len(spec.tools):
        yield "an agent has a tool twice"
    places = {(it.function, path_in("tools", it.file, subject.code)) for it in spec.tools}
    if len({function for function, _ in places}) < len(places):
        yield "a tool name stands for two functions"
    called = set(automatic_calls(subject))
    # Such a tool is offered to no model, so nothing that waits for its call would happen.
    if any(tool.auto_invoke and (tool.agent, tool.function) not in called for tool in spec.tools):
        yield "a tool with auto_invoke is never called"


def _handoffs(subject: Subject) -> Iterator[str]:
    targets = _targets(subject)
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.source_agent not in subject.agents or handoff.target_agent not in targets:
            yield "a handoff names an agent that does not exist"
        if not _is_complete(handoff) or not _is_read(subject, index, handoff):
            yield "a handoff has no condition that can be read"


def _is_complete(handoff: Handoff) -> bool:
    free = handoff.condition_scope == "post" and handoff.condition_type == "expression"
    return handoff.condition is not None or free


def _is_read(subject: Subject, index: int, handoff: Handoff) -> bool:
    plain = handoff.condition is not None and handoff.condition_type == "expression"
    return index in subject.conditions or not plain


def _variables(subject: Subject) -> Iterator[str]:
    computed = computations(subject)
    conditions = (*subject.conditions.values(), *computed.values())
    mentioned = {name for condition in conditions for name in names(condition)}
    if not subject.variable_names.issuperset(mentioned):
        yield "a condition names a variable that does not exist"
    if any(find_cycles({name: names(condition) for name, condition in computed.items()})):
        yield "a computed variable depends on itself"
    for name, variable in subject.spec.variables.items():
        source = variable.source
        if isinstance(source, ComputedSource):
            if name not in computed and not FUNCTION_REF.match(source.computation):
                yield "a computed variable has no computation that can be read"
        elif isinstance(source, DerivedSource):
            steps = (step.trigger for step in source.transitions if step.trigger)
            if not all(_is_known(subject, trigger) for trigger in (*source.triggers, *steps)):
                yield "a trigger names an agent or a tool that does not exist"


def _is_known(subject: Subject, trigger: Trigger) -> bool:
    """Tell whether all that a trigger names exists."""
    match trigger:
        case AgentTextTrigger(agent=agent) | AgentTurnCountTrigger(agent=agent):
            return agent in subject.agents
        case LifecycleTrigger(agent=agent):
            return agent is None or agent in subject.agents
        case HandoffTrigger(source_agent=source, target_agent=target):
            return {source, target} <= _targets(subject)
        case UiResponseTrigger(tool=tool) | ToolCallTrigger(tool=tool):
            return tool in _called(subject)
        case ToolResponseTrigger(tool=tool):
            return tool in _called(subject)
        case _:
            return True


def _targets(subject: Subject) -> set[str | None]:
    """Return whom the word may pass to; None stands for what is left open."""
    return {*subject.agents, USER, TERMINATE, None}


def _called(subject: Subject) -> set[str]:
    return {*subject.tools, *(tool.function for tool in subject.spec.lifecycle_tools)}
