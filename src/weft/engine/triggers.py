"""Triggers: which variables an event sets. Each is a pure function of the event and the state.

Of all that fire at once the last one counts, and each is judged by the value before the event.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conditions import same
from weft.engine.events import HandedOff, ToolCalled, VariableRefused, VariableSet
from weft.engine.trigger_index import Setting
from weft.engine.writes import BY_TRIGGER, write_error
from weft.findings import Json

Writes: TypeAlias = Sequence[VariableSet | VariableRefused]


def agent_text(
    compiled: CompiledWorkflow, values: Mapping[str, Json], agent: str, text: str
) -> Writes:
    """Yield what an agent sets by what it says."""
    rules = compiled.triggers.agent_text.get(agent, ())
    return _set(compiled, values, [it.setting for it in rules if it.matches(text)])


def user_text(compiled: CompiledWorkflow, values: Mapping[str, Json], text: str) -> Writes:
    """Yield what the user sets by what they say."""
    return _set(
        compiled, values, [it.setting for it in compiled.triggers.user_text if it.matches(text)]
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
            it.setting
            for it in rules
            if it.source in (None, data.source) and it.target in (None, data.target)
        ],
    )


def agent_turn_count(
    compiled: CompiledWorkflow, values: Mapping[str, Json], agent: str, count: int
) -> Writes:
    """Yield what an agent's having had so many turns sets."""
    turns = compiled.triggers.agent_turn_count
    return _set(compiled, values, turns.get((agent, count), ()) if turns else ())


class Fired(NamedTuple):
    """What triggers want recorded, and the values there will be then: what is decided sees them.

    The state itself changes when the records do: it is a fold of what was written, whatever an
    engine of today makes of the events that led to it.
    """

    records: list[Command]
    values: Mapping[str, Json]


def fire(values: Mapping[str, Json], writes: Writes) -> Fired:
    """Collect what triggers set."""
    if not writes:
        return Fired([], values)
    found = {it.name: it.value for it in writes if isinstance(it, VariableSet)}
    return Fired([Record(it) for it in writes], {**values, **found})


def dig(value: Json, path: tuple[str, ...]) -> Json:
    """Return what stands at a dotted path, or None."""
    for key in path:
        value = cast("dict[str, Json]", value).get(key) if isinstance(value, dict) else None
    return value


def _set(
    compiled: CompiledWorkflow,
    values: Mapping[str, Json],
    settings: Sequence[Setting],
    found: Json = None,
) -> Writes:
    """Return what fires comes to. A value the variable has already is no news, but it counts."""
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
        if value is None:
            continue
        if same(held, value):
            news.pop(name, None)
            continue
        fault = write_error(compiled, values, name, value, BY_TRIGGER)
        if fault is None:
            news[name] = value
        else:
            refused.append(VariableRefused(name, "trigger", fault))
    return [*(VariableSet(name, value, "trigger") for name, value in news.items()), *refused]
