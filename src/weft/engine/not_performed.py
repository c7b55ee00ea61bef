"""What a spec may declare and this version does not perform. A run that ignored it would lie."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from pydantic import ValidationError

from weft.engine.trigger_kinds import NO_KINDS, TriggerKinds
from weft.findings import Path
from weft.spec.triggers import CUSTOM, CustomTrigger, Trigger
from weft.spec.variables import DerivedSource
from weft.spec.workflow import WorkflowSpec

#: Where something stands in the spec, and what it is.
Left: TypeAlias = tuple[Path, str]

HINT: Final = "take it out, or wait for a version that performs it"


def not_performed(spec: WorkflowSpec, kinds: TriggerKinds = NO_KINDS) -> tuple[Left, ...]:
    """Return everything a workflow declares that would have no effect."""
    return (*_of_orchestrator(spec), *_of_variables(spec, kinds), *_of_others(spec))


def refusal(workflow: str, what: str) -> str:
    """Say that a workflow declares what would have no effect."""
    return f"{workflow} declares {what}, which this version of Weft does not perform"


def _of_orchestrator(spec: WorkflowSpec) -> Iterator[Left]:
    orchestrator = spec.orchestrator
    declared = {
        "budgets": orchestrator.budgets,
        "loop_guard": orchestrator.loop_guard,
        "workflow_dependencies": orchestrator.workflow_dependencies.required_workflows,
    }
    for name, value in declared.items():
        if value:
            yield ("orchestrator", name), name


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
            fault = _custom_fault(trigger, kinds) if isinstance(trigger, CustomTrigger) else None
            if fault:
                yield place, f"a trigger of {name}, {fault}"


def _custom_fault(trigger: CustomTrigger, kinds: TriggerKinds) -> str | None:
    """Say why a trigger of a plug-in cannot be performed here."""
    kind = f"{CUSTOM}{trigger.name}"
    if trigger.name not in kinds:
        return f"{kind}, which no plug-in here adds"
    try:
        kinds[trigger.name].settings.model_validate(trigger.settings)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, it['loc']))}: {it['msg']}" for it in error.errors())
        return f"{kind}, whose settings do not fit ({'; '.join(faults)})"
    return None


def _of_others(spec: WorkflowSpec) -> Iterator[Left]:
    if spec.flow is not None:
        yield ("flow",), "the flow"
