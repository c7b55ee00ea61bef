"""Steering from one agent to the next, for workflows that are too large to be explored.

It looks at one handoff at a time, and does not know what was set before.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from weft.adapters.models.sample_moves import Move, Steering, Step, steps_of
from weft.adapters.models.sample_values import Places
from weft.engine.compiled import CompiledWorkflow
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import TERMINATE
from weft.spec.condition_parser import parse_condition
from weft.spec.workflow import WorkflowSpec


class _Hop(NamedTuple):
    """From an agent or group to who is next; without a rule it needs nothing."""

    source: str
    target: str
    rule: int | None = None


def near_steering(spec: WorkflowSpec, compiled: CompiledWorkflow, goal: int | None) -> Steering:
    """Lead along the fewest handoffs to one, by its index, or to the end."""
    steps = steps_of(compiled, None)
    everywhere = list(_hops(spec, compiled))
    # Ways that one step opens come first: others need what must have been set before.
    near = [it for it in everywhere if _is_open(spec, compiled, it, steps.get(it.source, ()))]
    hops = {**_hops_to(spec, everywhere, goal), **_hops_to(spec, near, goal)}
    ways: dict[str, tuple[tuple[Move, ...], ...]] = {}
    answers: dict[str, list[Places]] = {}
    for agent, hop in hops.items():
        fitting = [it for it in steps.get(agent, ()) if _leads(spec, compiled, hop, it)]
        if fitting:
            ways[agent] = (tuple(dict.fromkeys(it.move for it in fitting)),)
        for step in fitting:
            answers.setdefault(step.move.what, []).extend([step.answer] if step.answer else [])
    return Steering(
        moves={agent: tuple(dict.fromkeys(it.move for it in own)) for agent, own in steps.items()},
        ways=ways,
        answers={tool: tuple(known) for tool, known in answers.items()},
    )


def _is_open(
    spec: WorkflowSpec, compiled: CompiledWorkflow, hop: _Hop, steps: Sequence[Step]
) -> bool:
    free = hop.rule is None or spec.handoffs[hop.rule].condition is None
    return free or any(_leads(spec, compiled, hop, it) for it in steps)


def _hops_to(spec: WorkflowSpec, hops: Sequence[_Hop], goal: int | None) -> dict[str, _Hop]:
    """Return which way each agent takes to come nearest to the goal."""
    if goal is None:
        nearest, waiting = dict[str, _Hop](), [TERMINATE]
    else:
        handoff = spec.handoffs[goal]
        source = handoff.source_agent
        nearest, waiting = {source: _Hop(source, handoff.target_agent, goal)}, [source]
    for target in waiting:
        for hop in hops:
            if hop.target == target and hop.source not in nearest:
                nearest[hop.source] = hop
                waiting.append(hop.source)
    return nearest


def _hops(spec: WorkflowSpec, compiled: CompiledWorkflow) -> Iterator[_Hop]:
    for index, handoff in enumerate(spec.handoffs):
        yield _Hop(handoff.source_agent, handoff.target_agent, index)
    for agent, route in compiled.routing.otherwise.items():
        yield _Hop(agent, route.target)
    for name, group in compiled.routing.groups.items():
        yield _Hop(name, group.next)


def _leads(spec: WorkflowSpec, compiled: CompiledWorkflow, hop: _Hop, step: Step) -> bool:
    """Tell whether a step makes the condition of a way hold, or all others of the agent not.

    What else was set before is unknown: values are taken to be as at the start.
    """
    values = {**compiled.start_values, **{it.variable: it.value for it in step.settings}}
    condition = None if hop.rule is None else spec.handoffs[hop.rule].condition
    if condition is not None:
        return _holds(condition, values)
    found = [it.condition for it in spec.handoffs if it.source_agent == hop.source]
    others = [it for it in found if it is not None]
    needed = any(_holds(it, compiled.start_values) for it in others)
    return needed and not any(_holds(it, values) for it in others)


def _holds(condition: str, values: Mapping[str, Json]) -> bool:
    try:
        return bool(evaluate(parse_condition(condition), values))
    except ExpressionError:
        return False
