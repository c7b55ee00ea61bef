"""Documents of entity variables: written when their strategy says so, one after the other."""

from collections.abc import Iterable

from weft.engine.commands import Command, WriteDocument
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import DocumentWritten
from weft.engine.state import State, without
from weft.spec.variables import WriteStrategy


def changed(compiled: CompiledWorkflow, state: State, names: Iterable[str]) -> list[Command]:
    """Remember that documents are behind; write those that are written at once."""
    behind = [name for name in names if name in compiled.entities]
    if not behind:
        return []
    state.unwritten = {**state.unwritten, **dict.fromkeys(behind, state.seq)}
    return write(compiled, state, "immediate")


def write(
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


def note(state: State, data: DocumentWritten) -> None:
    """Take note that a document was written, unless it was set again meanwhile."""
    state.writing = without(state.writing, data.name)
    if not data.fault and state.unwritten.get(data.name, 0) <= data.seq:
        state.unwritten = without(state.unwritten, data.name)
