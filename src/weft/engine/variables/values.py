"""Setting variables, and writing the documents of entity variables."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from weft.engine.commands import Command, Record, WriteDocument
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import DocumentWritten, Event, VariableRefused, VariableSet
from weft.engine.state import OwnValues, State, without
from weft.engine.variables.access import value_error
from weft.engine.variables.computed import WRITER, mark, recompute
from weft.engine.variables.conditions import same
from weft.findings import Json
from weft.spec.variables import Merge, WriteStrategy

#: The writer of what was read from a document: it is not written back.
READ: Final = "source:entity"


def on_variable_set(
    compiled: CompiledWorkflow, state: State, event: Event, data: VariableSet
) -> list[Command]:
    """Set the value: for the run, or only for a member of a group until the group joins."""
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
    """Compute the variables that depend on this one, and store them in their documents."""
    rules = compiled.computed
    mark(rules, state, turn, (data.name,))
    followed = recompute(rules, state.values_of(turn), data.name)
    # The known values first: the next ones are added to the same document.
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
    """Do nothing: the variable keeps its value."""
    return []


# -- documents of entity variables


def queue_documents(
    compiled: CompiledWorkflow, state: State, names: Iterable[str]
) -> list[Command]:
    """Mark documents as outdated; write those with the strategy `immediate`."""
    behind = [name for name in names if name in compiled.entities]
    if not behind:
        return []
    state.unwritten = {**state.unwritten, **dict.fromkeys(behind, state.seq)}
    return write_documents(compiled, state, "immediate")


def write_documents(
    compiled: CompiledWorkflow, state: State, strategy: WriteStrategy | None = None
) -> list[Command]:
    """Write the outdated documents of a strategy, or all of them; each once at a time."""
    due = {
        name: seq
        for name, seq in state.unwritten.items()
        if name not in state.writing and strategy in (None, compiled.entities[name].write_strategy)
    }
    if not due:
        return []
    state.writing = {**state.writing, **due}
    return [WriteDocument(name, seq) for name, seq in due.items()]


def note_written(state: State, data: DocumentWritten, *, failed: bool) -> None:
    """Mark a document as written, unless it failed or its variable was set again meanwhile."""
    state.writing = without(state.writing, data.name)
    if not failed and state.unwritten.get(data.name, 0) <= data.seq:
        state.unwritten = without(state.unwritten, data.name)


# -- values that several writers add to


def with_part(merge: Merge | None, held: Any, part: Any) -> Any:  # noqa: ANN401 - JSON, or objects
    """Return a value with a part added as `merge` declares; without it the part replaces it."""
    if merge == "append" and isinstance(part, list | tuple):
        return [*(held or ()), *cast("list[Any]", part)]
    if merge == "merge" and isinstance(part, Mapping):
        return {**cast("Mapping[Any, Any]", held or {}), **cast("Mapping[Any, Any]", part)}
    return part


def added_part(merge: Merge | None, before: Json, value: Json) -> tuple[Json, str]:
    """Return what a value adds to an earlier one, or why `merge` does not allow the change."""
    if merge == "append":
        old = cast("list[Json]", before or [])
        items = cast("list[Json]", value) if isinstance(value, list) else []
        if not isinstance(value, list) or not same(items[: len(old)], old):
            return None, "the list was changed, not extended"
        return items[len(old) :], ""
    if merge == "merge":
        known = cast("dict[str, Json]", before or {})
        entries = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
        gone = [key for key in known if key not in entries]
        if gone or not isinstance(value, dict):
            return None, f"{', '.join(gone) or 'the object'} was removed"
        return {
            key: part
            for key, part in entries.items()
            if key not in known or not same(known[key], part)
        }, ""
    return value, ""
