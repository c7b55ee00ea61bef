"""Variables taking their values."""

from collections.abc import Iterable, Mapping
from typing import Final, cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import Event, VariableRefused, VariableSet
from weft.engine.state import OwnValues, State
from weft.engine.variables import documents
from weft.engine.variables.access import value_error
from weft.engine.variables.computed import WRITER, follow, mark
from weft.engine.variables.conditions import same
from weft.findings import Json

#: The writer of what was read from a document: it is not written back.
READ: Final = "source:entity"


def on_variable_set(
    compiled: CompiledWorkflow, state: State, event: Event, data: VariableSet
) -> list[Command]:
    """The variable has its new value: for all, or for a member of a group until that joins."""
    own = state.own.get(event.turn)
    if own is not None:
        values, set_by = own
        own = OwnValues({**values, data.name: data.value}, {**set_by, data.name: event.seq})
        state.own = {**state.own, event.turn: own}
    else:
        state.variables = {**state.variables, data.name: data.value}
        state.set_by = {**state.set_by, data.name: event.seq}
    commands: list[Command] = []
    if compiled.computed.dependents or compiled.computed.persist_to:
        commands += _computed(compiled, state, event.turn, data)
    if own is None and data.name in compiled.entities and data.writer != READ:
        commands += documents.changed(compiled, state, (data.name,))
    return commands


def _computed(
    compiled: CompiledWorkflow, state: State, turn: int, data: VariableSet
) -> list[Command]:
    """Work out what depends on the variable, and put it into the document that keeps it."""
    rules = compiled.computed
    mark(rules, state, turn, (data.name,))
    followed = follow(rules, state.values_of(turn), data.name)
    # First what is known: what follows finds it in the document and adds to it.
    kept = persisted(compiled, state, turn, (data.name,))
    return [*kept, *(Record(it, turn) for it in followed)]


def persisted(
    compiled: CompiledWorkflow, state: State, turn: int, names: Iterable[str]
) -> list[Command]:
    """Put computed values into the documents that keep them, once these were read."""
    run = state.active.get(0)
    if run is not None and run.stage == "fetching":
        return []
    values = state.values_of(turn)
    changed: dict[str, dict[str, Json]] = {}
    for name in names:
        entity = compiled.computed.persist_to.get(name)
        if entity is not None and values.get(name) is not None:
            held = changed.get(entity) or values.get(entity)
            before = cast("dict[str, Json]", held) if isinstance(held, dict) else {}
            changed[entity] = {**before, name: values[name]}
    return [
        Record(_kept(compiled, values, entity, document), turn)
        for entity, document in changed.items()
        if not same(values.get(entity), document)
    ]


def _kept(
    compiled: CompiledWorkflow, values: Mapping[str, Json], entity: str, document: Json
) -> VariableSet | VariableRefused:
    fault = value_error(compiled, values, entity, document)
    if fault is not None:
        return VariableRefused(entity, WRITER, fault)
    return VariableSet(entity, document, WRITER)


def on_variable_refused(
    _compiled: CompiledWorkflow, _state: State, _event: Event, _data: VariableRefused
) -> list[Command]:
    """The variable keeps its value."""
    return []
