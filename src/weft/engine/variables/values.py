"""Setting variables, and writing the documents of entity variables."""

from collections.abc import Iterable, Mapping
from typing import Final, cast

from weft.engine.commands import Command, Record, WriteDocument
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import DocumentWritten, Event, VariableRefused, VariableSet
from weft.engine.state import OwnValues, State, without
from weft.engine.variables.access import value_error
from weft.engine.variables.computed import WRITER, mark, recompute
from weft.engine.variables.conditions import same
from weft.findings import Json
from weft.spec.variables import WriteStrategy

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
        commands += queue_documents(compiled, state, (data.name,))
    return commands


def _computed(
    compiled: CompiledWorkflow, state: State, turn: int, data: VariableSet
) -> list[Command]:
    """Compute what depends on the variable, and put it into the document that persists it."""
    rules = compiled.computed
    mark(rules, state, turn, (data.name,))
    followed = recompute(rules, state.values_of(turn), data.name)
    # First what is known: what follows finds it in the document and adds to it.
    kept = persist_computed(compiled, state, turn, (data.name,))
    return [*kept, *(Record(write, turn) for write in followed)]


def persist_computed(
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
        Record(_document_write(compiled, values, entity, document), turn)
        for entity, document in changed.items()
        if not same(values.get(entity), document)
    ]


def _document_write(
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


# -- documents of entity variables


def queue_documents(
    compiled: CompiledWorkflow, state: State, names: Iterable[str]
) -> list[Command]:
    """Remember that documents are behind; write those that are written at once."""
    behind = [name for name in names if name in compiled.entities]
    if not behind:
        return []
    state.unwritten = {**state.unwritten, **dict.fromkeys(behind, state.seq)}
    return write_documents(compiled, state, "immediate")


def write_documents(
    compiled: CompiledWorkflow, state: State, strategy: WriteStrategy | None = None
) -> list[Command]:
    """Write the documents of a strategy that are behind, or all of them; each once at a time."""
    due = {
        name: seq
        for name, seq in state.unwritten.items()
        if name not in state.writing and strategy in (None, compiled.entities[name])
    }
    if not due:
        return []
    state.writing = {**state.writing, **due}
    return [WriteDocument(name, seq) for name, seq in due.items()]


def note_written(state: State, data: DocumentWritten) -> None:
    """Take note that a document was written, unless it was set again meanwhile."""
    state.writing = without(state.writing, data.name)
    if not data.fault and state.unwritten.get(data.name, 0) <= data.seq:
        state.unwritten = without(state.unwritten, data.name)
