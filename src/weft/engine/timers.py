"""Timers: set, due, and gone with what they belong to."""

from weft.engine.board import correlation as board
from weft.engine.commands import Command
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.groups import overdue
from weft.engine.events import Event, TimerFired, TimerSet
from weft.engine.flow import order as flow
from weft.engine.state import State, Timer, without
from weft.engine.variables.triggers import fire, timer_expired


def on_timer_set(
    _compiled: CompiledWorkflow, state: State, event: Event, data: TimerSet
) -> list[Command]:
    """Remember what is due; it goes with the group that set it, or with the run."""
    owner = event.cause if data.why == "deadline" else 0
    state.timers = {**state.timers, data.id: Timer(data.id, data.at, owner)}
    return []


def on_timer_fired(
    compiled: CompiledWorkflow, state: State, event: Event, data: TimerFired
) -> list[Command]:
    """Set what the time sets, or let the members of a group fail that are not done."""
    timer = state.timers[data.id]
    state.timers = without(state.timers, data.id)
    if timer.owner:
        return overdue(compiled, state, timer)
    if state.board is not None and data.id not in compiled.triggers.timers:
        return board.fired(compiled, state, event, timer)
    if state.flow is not None and data.id not in compiled.triggers.timers:
        return flow.late(compiled, state, timer)
    fired, _ = fire(compiled, state, 0, timer_expired(compiled, state.variables, data.id))
    return fired
