"""Triggers: which variables an event sets. Each is a pure function of the event and the state.

Of all that fire at once the last one counts, and each is judged by the value before the event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    HandedOff,
    ToolCalled,
    ToolFailed,
    VariableRefused,
    VariableSet,
)
from weft.engine.state import State
from weft.engine.variables.access import BY_TRIGGER, write_error
from weft.engine.variables.computed import WRITER, mark, preview_values
from weft.engine.variables.conditions import same
from weft.engine.variables.trigger_index import Setting
from weft.findings import Json
from weft.spec.triggers import CUSTOM

Writes: TypeAlias = Sequence[VariableSet | VariableRefused]

#: The writer of what triggers set, and the writers of what follows from events without a plug-in.
BY: Final = "trigger"
_FOLLOWS: Final = (BY, WRITER)


#: What triggers want recorded, and the values there will be then: what is decided sees them. The
#: state itself changes when the records do: it is a fold of what was written, whatever an engine of
#: today makes of the events that led to it.
Fired: TypeAlias = tuple[list[Command], Mapping[str, Json]]


def agent_text(
    compiled: CompiledWorkflow, values: Mapping[str, Json], agent: str, text: str
) -> Writes:
    """Yield what an agent sets by what it says."""
    rules = compiled.triggers.agent_text.get(agent, ())
    return _set(compiled, values, [rule.setting for rule in rules if rule.matches(text)])


def user_text(compiled: CompiledWorkflow, values: Mapping[str, Json], text: str) -> Writes:
    """Yield what the user sets by what they say."""
    return _set(
        compiled,
        values,
        [rule.setting for rule in compiled.triggers.user_text if rule.matches(text)],
    )


def tool_call(compiled: CompiledWorkflow, values: Mapping[str, Json], data: ToolCalled) -> Writes:
    """Yield what a tool call sets."""
    return _set(compiled, values, compiled.triggers.tool_call.get(data.tool, ()), data.arguments)


def tool_response(
    compiled: CompiledWorkflow, values: Mapping[str, Json], tool: str, value: Json
) -> Writes:
    """Yield what the result of a tool sets."""
    return _set(compiled, values, compiled.triggers.tool_response.get(tool, ()), value)


def ui_response(
    compiled: CompiledWorkflow, values: Mapping[str, Json], tool: str, value: Json
) -> Writes:
    """Yield what a person's answer to a tool sets."""
    return _set(compiled, values, compiled.triggers.ui_response.get(tool, ()), value)


def handoff(compiled: CompiledWorkflow, values: Mapping[str, Json], data: HandedOff) -> Writes:
    """Yield what a handoff sets."""
    rules = compiled.triggers.handoff
    return _set(
        compiled,
        values,
        [
            rule.setting
            for rule in rules
            if rule.source in (None, data.source) and rule.target in (None, data.target)
        ],
    )


def agent_turn_count(
    compiled: CompiledWorkflow, values: Mapping[str, Json], agent: str, count: int
) -> Writes:
    """Yield what an agent's having had so many turns sets."""
    turns = compiled.triggers.agent_turn_count
    return _set(compiled, values, turns.get((agent, count), ()) if turns else ())


def lifecycle(
    compiled: CompiledWorkflow, values: Mapping[str, Json], event: str, agent: str | None = None
) -> Writes:
    """Yield what a boundary of the run, or of the turn of an agent, sets."""
    index = compiled.triggers.lifecycle
    if not index:
        return ()
    settings = [*index.get((event, None), ()), *(index.get((event, agent), ()) if agent else ())]
    return _set(compiled, values, settings)


def tool_failed(
    compiled: CompiledWorkflow, values: Mapping[str, Json], tool: str, failed: ToolFailed
) -> Writes:
    """Yield what the failure of a tool sets."""
    rules = compiled.triggers.tool_failed
    fitting = [
        rule.setting
        for rule in rules
        if rule.of in (None, tool) and rule.kind in (None, failed.kind)
    ]
    return _set(compiled, values, fitting, {"kind": failed.kind, "message": failed.error})


def model_failed(
    compiled: CompiledWorkflow, values: Mapping[str, Json], agent: str, error: str
) -> Writes:
    """Yield what the failure of the model of an agent sets."""
    rules = compiled.triggers.model_failed
    fitting = [rule.setting for rule in rules if rule.of in (None, agent)]
    return _set(compiled, values, fitting, {"message": error})


def timer_expired(compiled: CompiledWorkflow, values: Mapping[str, Json], timer: str) -> Writes:
    """Yield what a time after the start of the run sets."""
    return _set(compiled, values, [compiled.triggers.timers[timer].setting])


def custom(compiled: CompiledWorkflow, state: State, event: Event) -> Fired:
    """Return what triggers of plug-ins set by an event; one that fails sets nothing.

    What triggers have set is no event for them: they would go round for ever.
    """
    if isinstance(event.data, VariableSet | VariableRefused) and event.data.writer in _FOLLOWS:
        return [], state.values_of(event.turn)
    settings: list[Setting] = []
    failed: list[VariableRefused] = []
    for rule in compiled.triggers.custom:
        try:
            fires = rule.kind.fires(rule.settings, event, state)
            if fires is not None:
                settings.append(_brought(rule.setting, fires.value))
        except Exception as error:  # noqa: BLE001 - what is wrong with a plug-in becomes an event
            told = f"the trigger {CUSTOM}{rule.name} failed: {type(error).__name__}: {error}"
            failed.append(VariableRefused(rule.setting.variable, BY, told))
    writes = _set(compiled, state.values_of(event.turn), settings)
    return fire(compiled, state, event.turn, [*writes, *failed])


def function_result(
    compiled: CompiledWorkflow, values: Mapping[str, Json], name: str, function: str, value: Json
) -> Writes:
    """Yield what the function of a trigger says a variable is; None says nothing.

    A transition that waits for a function is made when that says true.
    """
    said = compiled.triggers.functions[name, function]
    fitting = [
        setting
        for setting in said
        if value is not None and (setting.origin is None or value is True)
    ]
    return _set(compiled, values, [_brought(setting, value) for setting in fitting])


def _brought(setting: Setting, value: Json) -> Setting:
    """Set the value of the event; a transition has its own value."""
    return setting if setting.origin is not None else replace(setting, value=value)


def fire(compiled: CompiledWorkflow, state: State, turn: int, writes: Writes) -> Fired:
    """Collect what triggers set, and what follows from that for computed variables."""
    values = state.values_of(turn)
    if not writes:
        return [], values
    found = {write.name: write.value for write in writes if isinstance(write, VariableSet)}
    values = {**values, **found}
    if compiled.computed.dependents:
        values = preview_values(compiled.computed, values, found)
        mark(compiled.computed, state, turn, found)
    return [Record(write, turn) for write in writes], values


def dig(value: Json, path: tuple[str, ...]) -> Json:
    """Return the value at a dotted path, or None."""
    for key in path:
        value = cast("dict[str, Json]", value).get(key) if isinstance(value, dict) else None
    return value


def _set(
    compiled: CompiledWorkflow,
    values: Mapping[str, Json],
    settings: Sequence[Setting],
    found: Json = None,
) -> Writes:
    """Return the writes of the triggers that fire; unchanged values are not written."""
    if not settings:
        return ()
    news: dict[str, Json] = {}
    refused: list[VariableRefused] = []
    for setting in settings:
        name = setting.variable
        held = values.get(name)
        if setting.origin is not None and not same(held, setting.origin[0]):
            continue
        value = setting.value if setting.path is None else dig(found, setting.path)
        if value is None and setting.path is not None:
            continue  # the event brings nothing; a null that is written down is a value
        if same(held, value):
            news.pop(name, None)
            continue
        fault = write_error(compiled, values, name, value, BY_TRIGGER)
        if fault is None:
            news[name] = value
        else:
            refused.append(VariableRefused(name, BY, fault))
    return [*(VariableSet(name, value, BY) for name, value in news.items()), *refused]
