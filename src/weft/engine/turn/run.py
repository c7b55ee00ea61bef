"""The run itself, which is turn 0: its start, its preparation, its timers and its end."""

from collections.abc import Mapping
from typing import Final

from pydantic_core import to_json

from weft.engine.commands import Command, Fetch, Record
from weft.engine.compiled import BEFORE_RUN, CompiledWorkflow, Values
from weft.engine.events import (
    ContextFetched,
    DocumentWritten,
    Event,
    MessageShown,
    Outcome,
    RunEnded,
    RunEnding,
    RunForked,
    RunStarted,
    StopRequested,
    TimerFired,
    TimerSet,
    ToolFailed,
    ToolReturned,
    TurnFailed,
    VariableSet,
)
from weft.engine.events.kinds import HookPoint
from weft.engine.message import Message
from weft.engine.state import Activation, Ending, OpenCall, Spent, State, without
from weft.engine.timers import Timer, Timers
from weft.engine.turn.hook_points import HookFunction, hooks_at, open_hook
from weft.engine.turn.hooks import (
    HookFailure,
    call_computed,
    close_hook,
    failure_of,
    resume_hook,
    take_result,
)
from weft.engine.variables import computed
from weft.engine.variables.triggers import fire, lifecycle
from weft.engine.variables.values import (
    note_written,
    persist_computed,
    queue_documents,
    write_documents,
)

#: The hook points of runs with these outcomes.
_AT_OUTCOME: Final[Mapping[Outcome, tuple[HookPoint, ...]]] = {
    "completed": ("on_complete",),
    "failed": ("on_fail",),
}

# -- start


def on_run_started(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunStarted
) -> list[Command]:
    """Set the first values, greet the user, set timers; the mode starts the first turn."""
    state.workflow, state.digest = data.workflow, data.digest
    state.app, state.user, state.started_at = data.app, data.user, event.at
    state.name = data.name or data.correlation
    state.model = data.model
    state.carried_values = compiled.carried_values
    state.variables = {**compiled.start_values, **data.values}
    greeting = compiled.orchestrator.initial_message_to_user
    commands: list[Command] = [Record(MessageShown(greeting))] if greeting else []
    if compiled.orchestrator.initial_message is not None:
        text = compiled.orchestrator.initial_message
        state.add_message(Message("user", "", text, event.seq))
    if data.input is not None:
        text = f"Started by {compiled.orchestrator.trigger.type}: {to_json(data.input).decode()}"
        state.add_message(Message("user", "", text, event.seq))
    fired, values = fire(compiled, state, 0, lifecycle(compiled, "before_chat"))
    commands += fired
    rules = compiled.computed
    conditions = computed.all_conditions(rules, values) if rules.conditions else []
    commands += map(Record, conditions)
    for name, rule in compiled.triggers.timers.items():
        due = event.at + round(rule.seconds * 1000)
        commands.append(Record(TimerSet(name, due, "trigger")))
    known = {write.name: write.value for write in conditions if isinstance(write, VariableSet)}
    return [*commands, *compiled.mode.start_run(compiled, state, event, data, {**values, **known})]


def on_run_forked(
    _compiled: CompiledWorkflow, state: State, event: Event, data: RunForked
) -> list[Command]:
    """Continue the copied turn. The cost so far belongs to the other run."""
    state.forked_from = data.parent
    state.name = ""  # The other run keeps it.
    state.model = data.model or state.model
    state.started_at = event.at
    state.spent = Spent()
    # The parent run writes the documents of earlier values.
    state.unwritten, state.writing = {}, {}
    return []


def on_message_shown(
    _compiled: CompiledWorkflow, _state: State, _event: Event, _data: MessageShown
) -> list[Command]:
    """Do nothing: agents do not see it."""
    return []


# -- preparation: fetch, compute, call the hooks that come before the chat


def prepare(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Prepare the first turn: fetch, compute, call the hooks that come before the chat."""
    computed.mark_all(compiled.computed, state)
    active = Activation("", 0, stage="fetching", seq=state.seq)
    fetch = fetch_of(compiled, active)
    if not fetch.names and not fetch.servers:
        return _proceed(compiled, state, active, state.variables)
    state.update(active)
    return [fetch]


def fetch_of(compiled: CompiledWorkflow, active: Activation) -> Fetch:
    """Return what a run needs from outside before its first turn."""
    return Fetch("", 0, compiled.once, bool(compiled.servers), active.seq)


def on_context_fetched(
    compiled: CompiledWorkflow, state: State, event: Event, data: ContextFetched
) -> list[Command]:
    """Continue with what was fetched; fail the turn if a variable without a default is missing."""
    active = state.active[event.turn]
    if data.tools is not None:
        state.offered = data.tools
    error = _missing_value(compiled, data)
    if event.turn:
        if error is None:
            return compiled.mode.on_fetched(compiled, state, event, active, data)
        return compiled.mode.on_fetch_failed(state, active, data, error)
    if error is not None:
        return [Record(TurnFailed("", error, "source"))]
    following = _proceed(compiled, state, active, state.variables)
    return [*persist_computed(compiled, state, 0, compiled.computed.persist_to), *following]


def _missing_value(compiled: CompiledWorkflow, data: ContextFetched) -> str | None:
    """Return the error of the first origin that could not be read and has no default."""
    for origin, error in data.errors.items():
        variable = compiled.variables.get(origin)
        if variable is None or getattr(variable.source, "default", None) is None:
            return f"{origin} could not be read: {error}"
    return data.error or None


def _proceed(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Continue the stage of turn 0, or begin the next one."""
    match active.stage:
        case "fetching" | "computing":
            computing = call_computed(compiled, state, active.replace(stage="computing"))
            if computing is not None:
                return computing
            return _next_hook(compiled, state, active.replace(stage="before", hook_index=0), values)
        case "settling":
            return _settle(compiled, state, active, values)
        case _:
            return _next_hook(compiled, state, active, values)


def _next_hook(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Call the next function of the hook point; after the last, compute what has changed."""
    hooks = _hooks(compiled, state)
    if active.hook_index < len(hooks):
        return open_hook(state, active, hooks[active.hook_index])
    return _settle(compiled, state, active.replace(stage="settling"), values)


def _hooks(compiled: CompiledWorkflow, state: State) -> tuple[HookFunction, ...]:
    """Return the functions that are called before a run, or at its end."""
    if state.ending is None:
        return hooks_at(compiled.hooks, None, *BEFORE_RUN)
    return hooks_at(compiled.hooks, None, "after_chat", *_AT_OUTCOME.get(state.ending.outcome, ()))


def _settle(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Compute dependent variables; then start the first turn, or end the run."""
    computing = call_computed(compiled, state, active) if state.dirty else None
    if computing is not None:
        return computing
    if state.ending is not None:
        state.update(active.replace(stage="flushing"))
        # The document gets the last computed value when its event is written.
        behind = computed.outdated_documents(compiled.computed, values)
        return [*queue_documents(compiled, state, behind), *_flush(compiled, state)]
    state.close_turns(0)
    if state.stopping:
        return [stop_after_turn(compiled)]
    return compiled.mode.start_turns(compiled, state, values, active.next_agent)


def on_hook_returned(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolReturned
) -> list[Command]:
    """Take the result of a function at a hook point of the run, and continue."""
    result = take_result(compiled, state, event, call, data)
    if result.error:
        return _fail(compiled, state, result.active, HookFailure(result.error, "source"))
    return [*result.commands, *_proceed(compiled, state, result.active, result.values)]


def on_hook_failed(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolFailed
) -> list[Command]:
    """Continue without a function, or fail with it, as is declared."""
    active = close_hook(state, event, call)
    failure = failure_of(call, _hooks(compiled, state), active.hook_index, data)
    if failure is not None:
        return _fail(compiled, state, active, failure)
    return _proceed(
        compiled, state, active.replace(hook_index=active.hook_index + 1), state.variables
    )


def _fail(
    compiled: CompiledWorkflow, state: State, active: Activation, failure: HookFailure
) -> list[Command]:
    """Fail a run; if it is ending already, continue with the functions of a failed run."""
    begun = state.ending
    if begun is None:
        return [Record(TurnFailed("", failure.error, failure.kind))]
    state.ending = Ending("failed", f"{begun.reason}; {failure.error}")
    if active.stage == "settling":
        state.update(active.replace(stage="flushing"))
        return _flush(compiled, state)
    first = len(hooks_at(compiled.hooks, None, "after_chat"))
    at = max(active.hook_index + 1, first) if begun.outcome == "failed" else first
    return _next_hook(compiled, state, active.replace(hook_index=at), state.variables)


def resume_run(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Return the call that turn 0 waits for, if the journal ends before it."""
    return resume_hook(compiled, state, active, _hooks(compiled, state))


# -- timers


def on_timer_set(
    _compiled: CompiledWorkflow, state: State, event: Event, data: TimerSet
) -> list[Command]:
    """Store the timer; it belongs to the group that set it, or to the run."""
    owner = event.cause if data.why == "deadline" else 0
    if owner and owner not in state.groups:
        return []
    state.timers = state.timers.added(Timer(data.id, data.at, owner))
    return []


def on_timer_fired(
    compiled: CompiledWorkflow, state: State, event: Event, data: TimerFired
) -> list[Command]:
    """Set the variable whose trigger waited for this time; other timers are the mode's."""
    timer = state.timers[data.id]
    state.timers = state.timers.removed(data.id)
    rule = compiled.triggers.timers.get(data.id)
    if rule is None:
        return compiled.mode.on_timer(compiled, state, event, timer)
    fired, _ = fire(compiled, state, 0, [rule.setting])
    return fired


# -- the end


def end_run(compiled: CompiledWorkflow, outcome: Outcome, reason: str) -> Command:
    """End a run: at once, or after its last hooks and documents."""
    last = last_event(compiled, outcome, reason)
    # The end of a run that has nothing to do before it has always stood in its last turn.
    return Record(last, turn=0 if isinstance(last, RunEnding) else None)


def last_event(compiled: CompiledWorkflow, outcome: Outcome, reason: str) -> RunEnding | RunEnded:
    """Return the event that begins the end of a run."""
    kind = RunEnding if compiled.finishes else RunEnded
    return kind(outcome, reason)


def stop_after_turn(compiled: CompiledWorkflow) -> Command:
    """End a run that was asked to stop after the turn under way."""
    return end_run(compiled, "cancelled", "stopped on request after the turn")


def on_stop_asked(
    compiled: CompiledWorkflow, state: State, _event: Event, data: StopRequested
) -> list[Command]:
    """Stop now, or after the turn under way. A run that is ending continues to its end."""
    if state.ending is not None:
        return _skip_hooks(compiled, state) if data.mode == "now" else []
    if data.mode == "after_turn" and (_has_working_turn(state) or state.judging):
        state.stopping = True
        return []
    return compiled.mode.stop(compiled, state, data.user)


def _has_working_turn(state: State) -> bool:
    """Return whether a turn is under way that does not wait for a person."""
    return any(active.stage != "approval" for active in state.active.values())


def _skip_hooks(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Call no more functions before the end of a run; documents are still written."""
    active = state.active.get(0)
    if active is None or active.stage not in ("after", "settling"):
        return []
    state.close_turns(0)
    state.update(active.replace(stage="flushing", missing=frozenset()))
    return _flush(compiled, state)


def on_turn_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnFailed
) -> list[Command]:
    """Let the mode decide what follows; a run whose preparation failed has failed."""
    if not event.turn:
        return [end_run(compiled, "failed", data.error)]
    return compiled.mode.on_turn_failed(compiled, state, event, state.active[event.turn], data)


def on_run_ending(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunEnding
) -> list[Command]:
    """Cancel the turns under way, call the functions after the chat, write documents."""
    close_all(state)
    state.ending = Ending(data.outcome, data.reason)
    fired, seen = fire(compiled, state, 0, lifecycle(compiled, "after_chat"))
    active = Activation("", 0, stage="after", seq=event.seq)
    return [*fired, *_next_hook(compiled, state, active, seen)]


def on_document_written(
    compiled: CompiledWorkflow, state: State, _event: Event, data: DocumentWritten
) -> list[Command]:
    """Write later values. A document that cannot be written fails the run if it is declared so."""
    failed = bool(data.error) and compiled.entities[data.name].on_error == "fail"
    note_written(state, data, failed=failed)
    error = f"the document of {data.name} could not be written: {data.error}" if failed else ""
    if state.ending is None:
        if error:
            return [end_run(compiled, "failed", error)]
        return write_documents(compiled, state, "immediate")
    if error:
        state.unwritten = without(state.unwritten, data.name)
        if error not in state.ending.reason:
            state.ending = Ending("failed", f"{state.ending.reason}; {error}")
    return _flush(compiled, state)


def _flush(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Write the documents that are behind once all functions were called; then end the run."""
    last = state.active.get(0)
    if state.ending is None or last is None or last.stage != "flushing":
        return []
    commands = write_documents(compiled, state)
    if commands or state.writing:
        return commands
    return [Record(RunEnded(state.ending.outcome, state.ending.reason), turn=0)]


def on_run_ended(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: RunEnded
) -> list[Command]:
    """Close everything."""
    close_all(state)
    state.status = "ended"
    state.unwritten, state.writing, state.ending = {}, {}, None
    state.outcome, state.reason = data.outcome, data.reason
    return []


def close_all(state: State) -> None:
    """Close all turns, questions and timers."""
    state.active, state.calls, state.groups, state.threads, state.own = {}, {}, {}, {}, {}
    state.requests, state.timers, state.dirty, state.judging = {}, Timers(), {}, None
    state.flow = None
