"""The history of each variable in a run: its values, who set them, and the causes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.context.segment import shown
from weft.engine.events import KIND_NAMES, Event, RunStarted, VariableRefused, VariableSet
from weft.engine.state import State
from weft.engine.variables.conditions import same
from weft.findings import Json
from weft.inspect.steps import record_of
from weft.runtime.workflow import Workflow
from weft.spec.types import print_type
from weft.spec.variables import EnvironmentSource, StaticSource

#: Shown instead of the value of a secret variable.
HIDDEN_VALUE: Final = "(secret)"
NOT_SET: Final = "(not set)"

#: Type and source of a variable that the package does not declare (any more).
UNDECLARED: Final = "not declared"


@dataclass(frozen=True, slots=True)
class Cause:
    """One event of the chain from an event back to its external cause."""

    seq: int
    kind: str
    actor: str


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A value that a variable was set to.

    For an initial value, `writer` is `start` (given with the run), `environment NAME`, `default`,
    or `package` for a constant.
    """

    name: str
    value: Json
    shown: str
    seq: int
    at: int
    actor: str
    writer: str
    cause: int


@dataclass(frozen=True, slots=True)
class ValueRefused:
    """A value that was refused."""

    seq: int
    at: int
    actor: str
    writer: str
    error: str


@dataclass(frozen=True, slots=True)
class VariableRecord:
    """A variable of a run. The values of a secret are None, here and in its history."""

    name: str
    type: str
    source: str
    secret: bool
    value: Json
    shown: str
    #: The chain from the event that set it back to its external cause; empty if never set.
    causes: tuple[Cause, ...]
    history: tuple[ValueSet, ...]
    refused: tuple[ValueRefused, ...]
    #: The inputs of a computed variable.
    inputs: tuple[str, ...] = ()


def variable_records(
    workflow: Workflow, state: State, events: Sequence[Event]
) -> tuple[VariableRecord, ...]:
    """Return the history of every variable, in the order of their declarations."""
    names = (*workflow.spec.variables, *state.variables)
    values: dict[str, list[ValueSet]] = {name: [] for name in names}
    refused: dict[str, list[ValueRefused]] = {}
    for event in events:
        match event.data:
            case VariableSet(name=name):
                values.setdefault(name, []).append(value_set(workflow, event, event.data))
            case VariableRefused(name=name, error=error):
                refused.setdefault(name, []).append(record_of(ValueRefused, event, error=error))
            case RunStarted() as begun:
                for first in _first_values(workflow, begun):
                    actor = event.actor if first.writer == "start" else first.writer
                    one = value_set(workflow, event._replace(actor=actor), first)
                    values.setdefault(first.name, []).append(one)
            case _:
                continue
    return tuple(
        _record(workflow, state, name, events, history, refused.get(name, ()))
        for name, history in values.items()
    )


def value_set(workflow: Workflow, event: Event, data: VariableSet) -> ValueSet:
    """Return the record of a value that an event set."""
    secret = is_secret(workflow, data.name)
    text = HIDDEN_VALUE if secret else shown(data.value)
    value = None if secret else data.value
    return record_of(ValueSet, event._replace(data=data), value=value, shown=text)


def is_secret(workflow: Workflow, name: str) -> bool:
    """Return whether the values of a variable are secret."""
    variable = workflow.spec.variables.get(name)
    return variable is not None and variable.secret


def causes(events: Sequence[Event], seq: int) -> tuple[Cause, ...]:
    """Return the causes of an event: from the event itself back to the external one.

    `events` are all of a run from its first one on.
    """
    chain: list[Cause] = []
    while 0 < seq <= len(events):
        event = events[seq - 1]
        chain.append(Cause(event.seq, KIND_NAMES[type(event.data)], event.actor))
        # A cause is older than its effect; anything else could be an endless loop.
        seq = event.cause if event.cause < seq else 0
    return tuple(chain)


def _first_values(workflow: Workflow, begun: RunStarted) -> Iterator[VariableSet]:
    declared = workflow.spec.variables
    for name, value in begun.values.items():
        source = declared[name].source if name in declared else None
        if not isinstance(source, EnvironmentSource) or name in begun.given:
            yield VariableSet(name, value, "start")
        elif is_secret(workflow, name) or not same(value, source.default):
            yield VariableSet(name, value, f"environment {source.env_var}")
        elif value is not None:
            yield VariableSet(name, value, "default")
    for name, value in workflow.compiled.start_values.items():
        if name not in begun.values and value is not None:
            static = isinstance(declared[name].source, StaticSource)
            yield VariableSet(name, value, "package" if static else "default")


def _record(
    workflow: Workflow,
    state: State,
    name: str,
    events: Sequence[Event],
    history: list[ValueSet],
    refused: Sequence[ValueRefused],
) -> VariableRecord:
    variable = workflow.spec.variables.get(name)
    # For a group only the merged value counts; the last event may be another member's.
    set_by = state.set_by.get(name, 0)
    last = next(
        (value for value in history if value.seq == set_by), history[0] if history else None
    )
    secret = is_secret(workflow, name)
    # Not the value of the last event: parallel members may have added to it.
    value = None if secret else state.variables.get(name)
    return VariableRecord(
        name=name,
        type=print_type(variable.type) if variable else UNDECLARED,
        source=variable.source.type if variable else UNDECLARED,
        secret=secret,
        value=value,
        shown=(HIDDEN_VALUE if last else NOT_SET) if secret else shown(value),
        causes=causes(events, last.seq) if last else (),
        history=tuple(history),
        refused=tuple(refused),
        inputs=getattr(variable.source, "inputs", ()) if variable else (),
    )
