"""Variables taking their values."""

from weft.engine.commands import Command
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import Event, VariableRefused, VariableSet
from weft.engine.state import OwnValues, State


def on_variable_set(
    _compiled: CompiledWorkflow, state: State, event: Event, data: VariableSet
) -> list[Command]:
    """The variable has its new value: for all, or for a member of a group until that joins."""
    own = state.own.get(event.turn)
    if own is not None:
        values, set_by = own
        own = OwnValues({**values, data.name: data.value}, {**set_by, data.name: event.seq})
        state.own = {**state.own, event.turn: own}
        return []
    state.variables = {**state.variables, data.name: data.value}
    state.set_by = {**state.set_by, data.name: event.seq}
    return []


def on_variable_refused(
    _compiled: CompiledWorkflow, _state: State, _event: Event, _data: VariableRefused
) -> list[Command]:
    """The variable keeps its value."""
    return []
