"""What a spec may declare and this version does not perform. A run that ignored it would lie."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pydantic import ValidationError

from weft.engine.compiled import AFTER_RUN, BEFORE_RUN
from weft.engine.turn.hook_points import function_triggers, is_function
from weft.engine.variables.trigger_kinds import NO_KINDS, TriggerKinds
from weft.findings import Path
from weft.spec.triggers import CUSTOM, CustomTrigger, Trigger
from weft.spec.variables import ComputedSource, DerivedSource
from weft.spec.workflow import WorkflowSpec

_NOT_YET: Final = "which this version of Weft does not perform"
_ON_BOARDS: Final = ("which a board does not call", "write a component in its place")
_IN_FLOWS: Final = ("which a flow does not call", "write a step in its place")

#: The boundaries of a run itself, which every way has.
_RUN_POINTS: Final = (*BEFORE_RUN, *AFTER_RUN)
_WAIT: Final = "take it out, or wait for a version that performs it"


class Left(NamedTuple):
    """Something that would have no effect: where it stands in the spec, what it is, and why."""

    path: Path
    what: str
    why: str = _NOT_YET
    hint: str = _WAIT


def not_performed(spec: WorkflowSpec, kinds: TriggerKinds = NO_KINDS) -> tuple[Left, ...]:
    """Return everything a workflow declares that would have no effect."""
    return (
        *_of_orchestrator(spec),
        *_of_variables(spec, kinds),
        *_of_steps(spec),
    )


def refusal(workflow: str, left: Left) -> str:
    """Say that a workflow declares what would have no effect."""
    return f"{workflow} declares {left.what}, {left.why}"


def _of_orchestrator(spec: WorkflowSpec) -> Iterator[Left]:
    orchestrator = spec.orchestrator
    declared = {
        "budgets": orchestrator.budgets,
        "loop_guard": orchestrator.loop_guard,
    }
    for name, value in declared.items():
        if value:
            yield Left(("orchestrator", name), name)


def _of_variables(spec: WorkflowSpec, kinds: TriggerKinds) -> Iterator[Left]:
    for name, variable in spec.variables.items():
        source = variable.source
        if not isinstance(source, DerivedSource):
            continue
        path: Path = ("variables", name, "source")
        placed: list[tuple[Path, Trigger | None]] = [
            *(((*path, "triggers", at), it) for at, it in enumerate(source.triggers)),
            *(
                ((*path, "transitions", at, "trigger"), it.trigger)
                for at, it in enumerate(source.transitions)
            ),
        ]
        for place, trigger in placed:
            if not isinstance(trigger, CustomTrigger):
                continue
            fault = _custom_fault(trigger, kinds)
            if fault:
                yield Left(place, f"a trigger of {name}, {CUSTOM}{trigger.name}", *fault)


def _custom_fault(trigger: CustomTrigger, kinds: TriggerKinds) -> tuple[str, str] | None:
    """Say why a trigger of a plug-in cannot be performed here, and what to do."""
    if trigger.name not in kinds:
        there = ", ".join(f"{CUSTOM}{it}" for it in sorted(kinds)) or "none"
        hint = f"install the plug-in that adds it, or correct the name; installed: {there}"
        return "which no installed plug-in adds", hint
    try:
        kinds[trigger.name].settings.model_validate(trigger.settings)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, it['loc']))}: {it['msg']}" for it in error.errors())
        return f"whose settings do not fit ({'; '.join(faults)})", "correct them"
    return None


def _of_steps(spec: WorkflowSpec) -> Iterator[Left]:
    """Yield what is called around turns: on a board components do that, in a flow steps."""
    if spec.board is None and spec.flow is None:
        return
    why = _IN_FLOWS if spec.board is None else _ON_BOARDS
    for index, agent in enumerate(spec.agents):
        if agent.auto_tool_mode and spec.board is None:
            told = f"the automatic tool of {agent.agent_name}"
            yield Left(("agents", index, "auto_tool_mode"), told, *why)
    for index, hook in enumerate(spec.hooks):
        if hook.hook_type not in _RUN_POINTS:
            yield Left(("hooks", index), f"the hook {hook.function}", *why)
    for index, tool in enumerate(spec.lifecycle_tools):
        if tool.trigger not in _RUN_POINTS:
            what = f"the lifecycle tool {tool.function}"
            yield Left(("lifecycle_tools", index), what, *why)
    for call in function_triggers(spec.variables):
        name = call.variable
        yield Left(("variables", name), f"a function trigger of {name}", *why)
    for name, variable in spec.variables.items():
        source = variable.source
        if isinstance(source, ComputedSource) and is_function(source.computation):
            what = f"{name}, computed by a function"
            yield Left(("variables", name, "source"), what, *why)
