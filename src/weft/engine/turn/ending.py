"""The end of a run: what is called and written before it, and what is left then."""

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import Event, Outcome, RunEnded, RunEnding
from weft.engine.state import State


def end_run(compiled: CompiledWorkflow, outcome: Outcome, reason: str) -> Command:
    """End a run: at once, or when all is done that its package wants done before."""
    last = last_event(compiled, outcome, reason)
    # The end of a run that has nothing to do before it has always stood in its last turn.
    return Record(last, turn=0 if isinstance(last, RunEnding) else None)


def last_event(compiled: CompiledWorkflow, outcome: Outcome, reason: str) -> RunEnding | RunEnded:
    """Return the event that begins the end of a run."""
    kind = RunEnding if compiled.finishes else RunEnded
    return kind(outcome, reason)


def let_go(state: State) -> None:
    """Nothing is open any more: neither turns nor questions nor timers."""
    state.active, state.calls, state.groups, state.threads, state.own = {}, {}, {}, {}, {}
    state.requests, state.timers, state.dirty, state.judging = {}, {}, {}, None
    state.flow = None


def on_run_ended(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: RunEnded
) -> list[Command]:
    """Nothing is open any more."""
    let_go(state)
    state.status = "ended"
    state.unwritten, state.writing, state.ending = {}, {}, None
    state.outcome, state.reason = data.outcome, data.reason
    return []
