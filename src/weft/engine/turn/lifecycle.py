"""The boundaries of turns and runs: what is fetched, called and asked before a reply and after it.

A stage that has nothing to do is passed over, so a turn without any goes straight to its model.
Functions of one boundary are called one after the other: what the first sets, the second sees.
"""

from collections.abc import Mapping
from typing import Literal, cast

from weft.engine.board import correlation as board
from weft.engine.commands import Assemble, Command, Fetch, Record
from weft.engine.compiled import BEFORE_RUN, CompiledWorkflow
from weft.engine.conversation.handoffs import pre_route, start_turn, stopped, unanswerable
from weft.engine.events import (
    ContextFetched,
    DocumentWritten,
    Event,
    MessageSent,
    RunEnded,
    RunEnding,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
)
from weft.engine.flow import order as flow
from weft.engine.modes import FETCHED, POINTS, role_of, steps_of, unprepared
from weft.engine.state import Activation, Ending, OpenCall, State, without
from weft.engine.turn.ending import end_run, let_go
from weft.engine.turn.hook_points import COMPUTED, TRIGGER, PointCall, at_point, called, open_point
from weft.engine.variables import computed, documents
from weft.engine.variables.access import value_error
from weft.engine.variables.triggers import Writes, answered, fire, lifecycle
from weft.engine.variables.values import persisted
from weft.errors import ExpressionError
from weft.findings import Json

Values = Mapping[str, Json]


def prepare(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Get ready for the first turn: fetch, compute, call what comes before the chat."""
    computed.mark_all(compiled.computed, state)
    return _fetch(compiled, state, Activation("", 0), state.variables)


def arrive(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Begin a turn: call what comes before it, get what it needs, then go on to its reply."""
    rules = compiled.agents[active.agent]
    if rules.plain and not compiled.per_phase:
        return reply(compiled, state, active, values)
    if rules.before:
        return _next_point(compiled, state, active.changed(stage="before", at=0), values)
    return _fetch(compiled, state, active, values)


def reply(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Let a model speak, unless a rule hands off before: compute, ask the rules, call hooks."""
    diverted = _divert(compiled, state, active, values, "computing")
    if diverted is not None:
        return diverted
    if values is not active.asked:
        active = active.changed(asked=values)
    rules = compiled.agents[active.agent]
    if rules.reply:
        return _next_point(compiled, state, active.changed(stage="reply", at=0, edits=()), values)
    return _assemble(compiled, state, active)


def finish(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """End a turn whose automatic tool is done; first ask the rules, as before a reply."""
    diverted = _divert(compiled, state, active, values, "finishing")
    return leave(compiled, state, active, values) if diverted is None else diverted


def _divert(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    values: Values,
    stage: Literal["computing", "finishing"],
) -> list[Command] | None:
    """Return the function to call first, or the handoff, if a change of values demands one."""
    if state.dirty:
        due = computed.next_function(compiled.computed, state, active.number)
        if due is not None:
            return open_point(state, active.changed(stage=stage), due[1])
    if values is active.asked or active.fork:
        return None
    try:
        route = pre_route(compiled, active.agent, values)
    except ExpressionError as error:
        return [unanswerable(compiled, active.agent, error)]
    return route and leave(compiled, state, active.changed(route=route), values)


def send(compiled: CompiledWorkflow, state: State, active: Activation, text: str) -> list[Command]:
    """Let hooks have what an agent is about to say."""
    active = active.changed(stage="sending", at=0, edits=(), result=text, shown=None)
    return _next_point(compiled, state, active, state.values_of(active.number))


def leave(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """End a turn: call what comes after it, compute what has changed."""
    plain = not (compiled.triggers.lifecycle or state.dirty or compiled.agents[active.agent].after)
    if plain:
        return _end(state, active)
    fired, seen = fire(
        compiled, state, active.number, lifecycle(compiled, values, "after_agent", active.agent)
    )
    active = active.changed(stage="after", at=0, shown=None, edits=())
    return [*fired, *_next_point(compiled, state, active, seen)]


def on_run_ending(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunEnding
) -> list[Command]:
    """Break off what is under way; call what comes after the chat; write documents."""
    let_go(state)
    state.ending = Ending(data.outcome, data.reason)
    fired, seen = fire(compiled, state, 0, lifecycle(compiled, state.variables, "after_chat"))
    active = Activation("", 0, stage="after", seq=event.seq)
    return [*fired, *_next_point(compiled, state, active, seen)]


def on_context_fetched(
    compiled: CompiledWorkflow, state: State, event: Event, data: ContextFetched
) -> list[Command]:
    """Go on with what was fetched; without what has no default, the turn has failed."""
    active = state.active[event.turn]
    if data.tools is not None:
        state.offered = data.tools
    failing = _unread(compiled, data)
    if failing is not None:
        return [unprepared(state, active, data.found, failing)]
    if active.step:
        return steps_of(compiled).fetched(compiled, state, event, data.found)
    going_on = _proceed(compiled, state, active, state.values_of(event.turn))
    if active.agent or not compiled.computed.persist_to:
        return going_on
    return [*persisted(compiled, state, 0, compiled.computed.persist_to), *going_on]


def _unread(compiled: CompiledWorkflow, data: ContextFetched) -> str | None:
    """Say what could not be read and has no default."""
    for origin, fault in data.faults.items():
        variable = compiled.variables.get(origin)
        if variable is None or getattr(variable.source, "default", None) is None:
            # What providers, components and the code of steps say names them already.
            return fault if origin in FETCHED else f"{origin} could not be read: {fault}"
    return None


def on_document_written(
    compiled: CompiledWorkflow, state: State, _event: Event, data: DocumentWritten
) -> list[Command]:
    """Write what was set meanwhile. A run whose document cannot be written has failed."""
    documents.note(state, data)
    if state.ending is None:
        if data.fault:
            reason = f"the document of {data.name} could not be written: {data.fault}"
            return [end_run(compiled, "failed", reason)]
        return documents.write(compiled, state, "immediate")
    if data.fault:
        state.unwritten = without(state.unwritten, data.name)
        told = f"the document of {data.name} could not be written: {data.fault}"
        if told not in state.ending.reason:
            state.ending = Ending("failed", f"{state.ending.reason}; {told}")
    return _flush(compiled, state)


def point_returned(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolReturned
) -> list[Command]:
    """Take what a function at a boundary returned, and go on with the next."""
    active = _done(state, event, call)
    if call.point in POINTS:
        way = steps_of(compiled)
        return way.returned(compiled, state, active, call.point, data.value, event)
    values = state.values_of(event.turn)
    writes: Writes = ()
    if call.point.startswith(COMPUTED):
        name = call.point.removeprefix(COMPUTED)
        computed.clear(state, event.turn, name)
        fault = value_error(compiled, values, name, data.value)
        if fault is not None:
            return _fail(compiled, state, active, f"{call.tool}: {fault}", "source")
        writes = computed.result(values, name, data.value)
    elif call.point.startswith(TRIGGER):
        name = call.point.removeprefix(TRIGGER)
        writes = answered(compiled, values, name, call.tool, data.value)
    elif data.value is not None and active.stage in ("reply", "sending"):
        edit = cast("Mapping[str, Json]", data.value)
        active = active.changed(edits=(*active.edits, {**edit, "by": call.tool}))
    fired, seen = fire(compiled, state, event.turn, writes)
    active = active.changed(at=active.at + 1)
    return [*fired, *_proceed(compiled, state, active, seen)]


def point_failed(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolFailed
) -> list[Command]:
    """Go on without a function, or let the turn fail with it, as is declared."""
    active = _done(state, event, call)
    if call.point in POINTS:
        return steps_of(compiled).call_failed(compiled, state, active, call.point, data)
    stops = call.point.startswith(COMPUTED) or _points(compiled, state, active)[active.at].stops
    if not stops:
        return _proceed(
            compiled, state, active.changed(at=active.at + 1), state.values_of(event.turn)
        )
    error = f"{call.tool} ({call.point}) failed: {data.error}"
    kind = "source" if call.point.startswith(COMPUTED) else "hook"
    return _fail(compiled, state, active, error, kind)


def _fail(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    error: str,
    kind: Literal["source", "hook"],
) -> list[Command]:
    """Let a turn fail; in a run that is ending, call now what is called when it fails."""
    begun = state.ending
    if begun is None:
        return [Record(TurnFailed(active.agent, error, kind))]
    state.ending = Ending("failed", f"{begun.reason}; {error}")
    if active.stage == "settling":
        state.put(active.changed(stage="flushing"))
        return _flush(compiled, state)
    first = len(at_point(compiled.points, None, "after_chat"))
    at = max(active.at + 1, first) if begun.outcome == "failed" else first
    return _next_point(compiled, state, active.changed(at=at), state.variables)


def cut_short(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Call nothing more before the end of a run; documents are written all the same."""
    active = state.active.get(0)
    if active is None or active.stage not in ("after", "settling"):
        return []
    state.drop(0)
    state.put(active.changed(stage="flushing", missing=frozenset()))
    return _flush(compiled, state)


def _done(state: State, event: Event, call: OpenCall) -> Activation:
    state.calls = without(state.calls, call.id)
    if call.asks:
        state.requests = without(state.requests, call.asks)
    active = state.active[event.turn].changed(missing=frozenset())
    state.put(active)
    return active


def _proceed(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Go on where a stage is, or with the next."""
    match active.stage:
        case "fetching" | "computing":
            return (reply if active.agent else _compute)(compiled, state, active, values)
        case "finishing":
            return finish(compiled, state, active, values)
        case "settling":
            return _settle(compiled, state, active, values)
        case _:
            return _next_point(compiled, state, active, values)


def _next_point(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Call the next function of a boundary; after the last, go on to what follows it."""
    points = _points(compiled, state, active)
    if active.at < len(points):
        return open_point(state, active, points[active.at])
    match active.stage:
        case "before" if active.agent:
            return _fetch(compiled, state, active, values)
        case "reply":
            return _assemble(compiled, state, active)
        case "sending":
            state.put(active)
            return [Record(MessageSent(active.agent, _sent(active)), active.number)]
        case _:
            return _settle(compiled, state, active.changed(stage="settling"), values)


def reopened(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Return what is to be recorded next where a fork was cut before it: a call, or the end."""
    if active.stage == "ending":
        return [Record(TurnEnded(active.agent), active.number)]
    waiting = [it for it in active.missing if it not in state.calls]
    if active.step:
        return steps_of(compiled).reopened(compiled, active, waiting)
    if not waiting or active.stage == "tools":
        return []
    if active.stage in ("computing", "finishing", "settling"):
        due = computed.next_function(compiled.computed, state, active.number)
        points = () if due is None else (due[1],)
    else:
        points = _points(compiled, state, active)[active.at :]
    return [called(waiting[0], it, active.number) for it in points[:1]]


def _points(compiled: CompiledWorkflow, state: State, active: Activation) -> tuple[PointCall, ...]:
    """Return the functions of the boundary an activation is at."""
    if active.agent:
        rules = compiled.agents[active.agent]
        match active.stage:
            case "before":
                return rules.before
            case "reply":
                return rules.reply
            case "sending":
                return rules.send
            case _:
                return rules.after
    if state.ending is None:
        return at_point(compiled.points, None, *BEFORE_RUN)
    outcome = {"completed": "on_complete", "failed": "on_fail"}.get(state.ending.outcome)
    return at_point(compiled.points, None, "after_chat", *([outcome] if outcome else []))


def _fetch(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Get from outside what an activation needs; what was recorded is not asked for again."""
    active = active.changed(stage="fetching", seq=state.seq)
    need = needed(compiled, active)
    if not need.names and not need.servers:
        return _proceed(compiled, state, active, values)
    state.put(active)
    return [need]


def needed(compiled: CompiledWorkflow, active: Activation) -> Fetch:
    """Return what an activation needs from outside."""
    if active.step:
        return steps_of(compiled).fetch_of(compiled, active)
    if not active.agent:
        return Fetch("", 0, compiled.once, bool(compiled.servers), active.seq)
    phased = compiled.per_phase if active.phase else ()
    names = (*phased, *compiled.agents[active.agent].on_demand)
    return Fetch(active.agent, active.number, names, servers=False, seq=active.seq)


def _compute(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Compute what depends on what was fetched for the run, before its first functions."""
    due = computed.next_function(compiled.computed, state, 0)
    if due is not None:
        return open_point(state, active.changed(stage="computing"), due[1])
    return _next_point(compiled, state, active.changed(stage="before", at=0), values)


def _settle(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Compute what the last functions of a boundary have changed; then it is over."""
    due = computed.next_function(compiled.computed, state, active.number) if state.dirty else None
    if due is not None:
        return open_point(state, active, due[1])
    if active.agent:
        return _end(state, active)
    if state.ending is not None:
        state.put(active.changed(stage="flushing"))
        # What was computed last stands in its document only when its record is written.
        behind = computed.behind(compiled.computed, values)
        return [*documents.changed(compiled, state, behind), *_flush(compiled, state)]
    state.drop(0)
    return _begin(compiled, state, active, values)


def _end(state: State, active: Activation) -> list[Command]:
    state.put(active.changed(stage="ending", shown=None))
    return [Record(TurnEnded(active.agent), active.number)]


def _begin(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Let the first agent begin, unless a person is to say something first."""
    if state.stopping:
        return [stopped(compiled)]
    if compiled.board is not None:
        return board.start_next(compiled, state)
    if compiled.flow is not None:
        return flow.begin(compiled, state)
    if state.requests:
        return []
    agent = active.result if isinstance(active.result, str) else None
    return [start_turn(compiled, state, agent or compiled.orchestrator.initial_agent, values)]


def _flush(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Write what is behind, when all was called that comes before; then the run is over."""
    last = state.active.get(0)
    if state.ending is None or last is None or last.stage != "flushing":
        return []
    commands = documents.write(compiled, state)
    if commands or state.writing:
        return commands
    return [Record(RunEnded(state.ending.outcome, state.ending.reason), turn=0)]


def _assemble(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    state.put(active if active.stage == "assembling" else active.changed(stage="assembling"))
    return [Assemble(role_of(compiled, active), active.number, active.call)]


def _sent(active: Activation) -> str:
    """Return what is left of a reply after its hooks."""
    said = [it["message"] for it in active.edits if "message" in it]
    return str(said[-1] if said else active.result)
