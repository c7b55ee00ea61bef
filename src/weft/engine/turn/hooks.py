"""Calling functions at hook points in order: each sees what the one before has set."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from weft.engine.commands import Command
from weft.engine.compiled import CompiledWorkflow, Values
from weft.engine.events import Event, ToolFailed, ToolReturned
from weft.engine.state import Activation, OpenCall, State
from weft.engine.turn.hook_points import HookFunction, hook_label, open_hook, record_hook
from weft.engine.variables import computed
from weft.engine.variables.access import value_error
from weft.engine.variables.triggers import Writes, function_result, record
from weft.findings import Json


class HookResult(NamedTuple):
    """The consequences of a function's result: writes, the values after them, or an error."""

    active: Activation
    commands: list[Command]
    values: Values
    error: str = ""


class HookFailure(NamedTuple):
    """Why a turn fails with a function that was called at a hook point."""

    error: str
    kind: Literal["source", "hook"]


def close_hook(state: State, event: Event, call: OpenCall) -> Activation:
    """Close a call at a hook point, and return the turn that no longer waits for it."""
    state.close_call(call)
    active = state.active[event.turn].replace(missing=frozenset())
    state.update(active)
    return active


def take_result(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolReturned
) -> HookResult:
    """Close a call at a hook point, and return what follows from its result."""
    active = close_hook(state, event, call)
    values = state.values_of(event.turn)
    writes: Writes = ()
    name = call.variable
    if call.hook == "computed":
        computed.unmark(state, event.turn, name)
        error = value_error(compiled, values, name, data.value)
        if error is not None:
            return HookResult(active, [], values, f"{call.tool}: {error}")
        writes = computed.computed_write(values, name, data.value)
    elif call.hook == "trigger":
        writes = function_result(compiled, values, name, call.tool, data.value)
    elif data.value is not None and active.stage in ("reply", "sending"):
        edit = cast("Mapping[str, Json]", data.value)
        active = active.replace(edits=(*active.edits, {**edit, "by": call.tool}))
    fired, seen = record(compiled, state, event.turn, writes)
    return HookResult(active.replace(hook_index=active.hook_index + 1), fired, seen)


def failure_of(
    call: OpenCall, hooks: tuple[HookFunction, ...], at: int, data: ToolFailed
) -> HookFailure | None:
    """Return the failure of a turn whose function has failed; None if the turn continues."""
    is_computed = call.hook == "computed"
    if not (is_computed or hooks[at].stops):
        return None
    error = f"{call.tool} ({hook_label(call.hook, call.variable)}) failed: {data.error}"
    return HookFailure(error, "source" if is_computed else "hook")


def call_computed(
    compiled: CompiledWorkflow, state: State, active: Activation
) -> list[Command] | None:
    """Call the next function of a variable whose inputs have changed; None if there is none."""
    due = computed.next_function(compiled.computed, state, active.number)
    return None if due is None else open_hook(state, active, due[1])


def resume_hook(
    compiled: CompiledWorkflow, state: State, active: Activation, hooks: tuple[HookFunction, ...]
) -> list[Command]:
    """Return the call that a turn waits for, where a journal was cut before it."""
    waiting = [id_ for id_ in active.missing if id_ not in state.calls]
    if not waiting or active.stage == "tools":
        return []
    if active.stage in ("computing", "finishing", "settling"):
        due = computed.next_function(compiled.computed, state, active.number)
        hooks = () if due is None else (due[1],)
    else:
        hooks = hooks[active.hook_index :]
    return [record_hook(waiting[0], hook, active.number) for hook in hooks[:1]]
