"""Triggers: which variables an event sets. Each is a pure function of the event and the state.

Of several that fire at once the last one counts; each is tested with the value before the event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    HandedOff,
    ToolFailed,
    VariableRefused,
    VariableSet,
)
from weft.engine.state import OpenCall, State
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


#: The records of the triggers that fired, and the values after them, for decisions of the same
#: event. The state itself changes when the records are written.
Fired: TypeAlias = tuple[list[Command], Mapping[str, Json]]

Settings: TypeAlias = Sequence[Setting]


def agent_text(compiled: CompiledWorkflow, agent: str, text: str) -> Settings:
    """Return the settings of triggers that match the message of an agent."""
    rules = compiled.triggers.agent_text.get(agent)
    return [rule.setting for rule in rules if rule.matches(text)] if rules else ()


def user_text(compiled: CompiledWorkflow, text: str) -> Settings:
    """Return the settings of triggers that match the message of the user."""
    rules = compiled.triggers.user_text
    return [rule.setting for rule in rules if rule.matches(text)] if rules else ()


def handoff(compiled: CompiledWorkflow, data: HandedOff) -> Settings:
    """Return the settings of a handoff."""
    rules = compiled.triggers.handoff
    if not rules:
        return ()
    return [
        rule.setting
        for rule in rules
        if rule.source in (None, data.source) and rule.target in (None, data.target)
    ]


def lifecycle(compiled: CompiledWorkflow, event: str, agent: str | None = None) -> Settings:
    """Return the settings of a lifecycle point of the run or of a turn."""
    index = compiled.triggers.lifecycle
    if not index:
        return ()
    return [*index.get((event, None), ()), *(index.get((event, agent), ()) if agent else ())]


def model_failed(compiled: CompiledWorkflow, agent: str) -> Settings:
    """Return the settings of the failure of an agent's model."""
    rules = compiled.triggers.model_failed
    return [rule.setting for rule in rules if rule.of in (None, agent)]


def custom(compiled: CompiledWorkflow, state: State, event: Event) -> Fired:
    """Return the settings of the triggers of plug-ins; one that fails sets nothing.

    Triggers ignore what triggers have set, which would otherwise fire them without end.
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
    writes = _set(compiled, state.values_of(event.turn), settings, None)
    return record(compiled, state, event.turn, [*writes, *failed])


def function_result(
    compiled: CompiledWorkflow, values: Mapping[str, Json], name: str, function: str, value: Json
) -> Writes:
    """Return the write from the result of a trigger's function; None sets nothing.

    A transition with a function is made when that returns true.
    """
    said = compiled.triggers.functions[name, function]
    fitting = [
        setting
        for setting in said
        if value is not None and (setting.origin is None or value is True)
    ]
    return _set(compiled, values, [_brought(setting, value) for setting in fitting], None)


def _brought(setting: Setting, value: Json) -> Setting:
    """Set the value of the event; a transition has its own value."""
    return setting if setting.origin is not None else replace(setting, value=value)


def fire(
    compiled: CompiledWorkflow,
    state: State,
    turn: int,
    settings: Settings,
    found: Json = None,
    seen: Mapping[str, Json] | None = None,
) -> Fired:
    """Collect the writes of triggers, and of the computed variables that depend on them.

    `found` is what the event brings, and `seen` the values if others have fired before.
    """
    values = state.values_of(turn)
    if not settings:
        return [], values
    return record(compiled, state, turn, _set(compiled, seen or values, settings, found))


def fire_tool_response(
    compiled: CompiledWorkflow, state: State, call: OpenCall, value: Json
) -> Fired:
    """Collect the writes of the result of a tool."""
    settings = compiled.triggers.tool_response.get(call.tool, ())
    found = {"arguments": call.arguments, "result": value}
    return fire(compiled, state, call.turn, settings, found)


def fire_tool_failed(
    compiled: CompiledWorkflow, state: State, turn: int, tool: str, failed: ToolFailed
) -> Fired:
    """Collect the writes of the failure of a tool."""
    settings = [
        rule.setting
        for rule in compiled.triggers.tool_failed
        if rule.of in (None, tool) and rule.kind in (None, failed.kind)
    ]
    return fire(compiled, state, turn, settings, {"kind": failed.kind, "message": failed.error})


def record(compiled: CompiledWorkflow, state: State, turn: int, writes: Writes) -> Fired:
    """Collect writes, and those of the computed variables that depend on them."""
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
    settings: Settings,
    found: Json,
) -> Writes:
    """Return the writes of the triggers that fire; unchanged values are not written."""
    news: dict[str, Json] = {}
    refused: list[VariableRefused] = []
    for setting in settings:
        name = setting.variable
        held = values.get(name)
        if setting.origin is not None and not same(held, setting.origin[0]):
            continue
        value = setting.value if setting.path is None else dig(found, setting.path)
        if value is None and setting.path is not None:
            continue  # The event has no value; a null in the declaration is a value.
        if same(held, value):
            news.pop(name, None)
            continue
        fault = write_error(compiled, values, name, value, BY_TRIGGER)
        if fault is None:
            news[name] = value
        else:
            refused.append(VariableRefused(name, BY, fault))
    return [*(VariableSet(name, value, BY) for name, value in news.items()), *refused]
