"""weft inspect and weft replay: what happened in a run, and whether replay agrees."""

import asyncio
from typing import NamedTuple

from weft.cli.chat.conversation import Session, view_for
from weft.cli.chat.follow_run import follow_run, interactive_host, recorded_events, run_session
from weft.cli.chat.person import Person
from weft.cli.failure import Exit, Failure, usage
from weft.cli.hosting import (
    JournalFile,
    JournalLocation,
    RunName,
    ServerUrl,
    find_run,
    hosted,
    locate_runs,
)
from weft.cli.options import Output, command
from weft.cli.pages.inspect import comparison_page, run_page, spans_page, turn_page
from weft.cli.pages.runs import RunStatus, status_result
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.starting import (
    Given,
    ModelName,
    Seed,
    model_name,
    models_line,
    read_values,
    warn_if_changed,
)
from weft.cli.streams import Streams, clean, counted, value_text
from weft.engine.events import Event, RunForked
from weft.inspect.replay import check_replay
from weft.inspect.run import inspect_run
from weft.inspect.spans import spans_of, trace_id
from weft.inspect.turn import compare_turns, inspect_turn
from weft.runtime.host import Host
from weft.runtime.workflow import NoTools, Workflow


class Recorded(NamedTuple):
    """A run with its events and its workflow."""

    run: str
    events: list[Event]
    workflow: Workflow


async def read_recorded(host: Host, typed: str) -> Recorded:
    """Return the run that a person names."""
    row = await find_run(host, typed)
    workflow = await host.workflow(row.run, scope=command_scope())
    return Recorded(row.run, await recorded_events(host, row.run), workflow)


@command
def inspect(
    run: str,
    /,
    *,
    against: int | None = None,
    spans: bool = False,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Show what happened in a run and why, or what an agent was sent in a turn.

    Options:
      RUN             A run: its id, a unique beginning or end of it, or last; @N is a turn.
      --against TURN  Compare the turn with this earlier one.
      --spans         Show how long turns, models, tools and sources took: the spans of its trace.

    Examples:
      weft inspect last
      weft inspect last@2
      weft inspect last@3 --against 2
      weft inspect last --spans
    """
    name, at, turn = run.partition("@")
    if at and not turn.isdecimal():
        raise usage(f'invalid turn "{turn}"', "write RUN@1 for the first turn")
    if against is not None and not at:
        raise usage("--against compares two turns", f"name the other turn: {name}@2 --against 1")
    if at and spans:
        raise usage("--spans shows a whole run", f"leave out the turn: weft inspect {name} --spans")
    location = locate_runs(streams, journal, server, must_exist=True)
    run, events, workflow = asyncio.run(_read(location, name))
    if spans:
        app = command_scope().app
        trace, found = trace_id(app, run), spans_of(app, run, events, models=workflow.models)
        text = spans_page(run, trace, found, streams)
        return Result({"run": run, "trace": trace, "spans": found}, text)
    if not at:
        inspection = inspect_run(workflow, run, events)
        what = "see what an agent was sent" if inspection.flow is None else "see one step"
        notes = [f"\n{what}: weft inspect {run}@1{location.options}"] if inspection.turns else []
        return Result({"inspection": inspection}, run_page(inspection, streams), notes)
    inspection = inspect_turn(workflow, run, events, int(turn))
    if against is None:
        return Result({"turn": inspection}, turn_page(inspection, streams))
    compared = compare_turns(inspect_turn(workflow, run, events, against), inspection)
    return Result({"comparison": compared}, comparison_page(compared, streams))


async def _read(location: JournalLocation, typed: str) -> Recorded:
    async with hosted(location, reading=True) as host:
        return await read_recorded(host, typed)


@command
def replay(  # noqa: PLR0913 - the options of a command
    run: RunName,
    /,
    *,
    check: bool = False,
    fork: int | None = None,
    given: Given = (),
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Show a run again from its journal, verify it, or repeat a turn as a fork.

    Options:
      --check      Verify that replay makes the same decisions; nothing is called.
      --fork TURN  Repeat this turn in a new run.

    Examples:
      weft replay last
      weft replay last --check
      weft replay last --fork 2 --set urgency=high --model sample
    """
    if fork is None and (given or model):
        raise usage("--set and --model need --fork", "weft replay RUN --fork TURN --set NAME=VALUE")
    if fork is not None and check:
        raise usage("--check and --fork exclude each other", "keep one of them")
    location = locate_runs(streams, journal, server, must_exist=True)
    if fork is not None:
        return _fork(Session(streams, location), run, fork, given, model, seed)
    return asyncio.run((_check if check else _show)(run, location, streams))


async def _show(name: str, location: JournalLocation, streams: Streams) -> Result:
    async with hosted(location, reading=True) as host:
        run, events, workflow = await read_recorded(host, name)
        view = view_for(Session(streams, location, run), workflow, echo=True)
        for event in events:
            view.show(event)
        return status_result(await RunStatus.read(host, run, location), streams)


async def _check(name: str, location: JournalLocation, _streams: Streams) -> Result:
    """Verify that a replay of a run decides as recorded."""
    run, events, workflow = await _read(location, name)
    if isinstance(workflow.tools, NoTools) and workflow.missing is not None:
        raise workflow.missing  # The prompts describe tools as their code does.
    found = check_replay(workflow, run, events)
    data = {"run": run, "events": len(events), "mismatches": found}
    if not found:
        return Result(data, f"run {run}: {counted(len(events), 'event')}, replay is identical")
    lines: list[str] = []
    for mismatch in found:
        lines.append(f"event {mismatch.seq}: {mismatch.what}")
        for label, value in (("recorded", mismatch.found), ("now     ", mismatch.expected)):
            lines.append(f"  {label}: {'nothing' if value is None else value_text(value)}")
    failure = Failure(
        Exit.FAILED,
        f"replay of run {run} differs from event {found[0].seq} on",
        hint=(f"inspect it: weft inspect {run}{location.options}",),
    )
    return Result(data, "\n".join(map(clean, lines)), failure=failure)


def _fork(
    session: Session, typed: str, turn: int, given: Given, model: str | None, seed: int
) -> Result:
    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            parent = await find_run(host, typed)
            workflow = await host.workflow(parent.run, scope=command_scope())
            warn_if_changed(session.streams, parent)
            session.run = await host.fork(
                parent.run,
                scope=command_scope(),
                turn=turn,
                values=read_values(workflow.compiled, given),
                model=await model_name(host, model),
                streamed=True,
            )
            state = await host.state(session.run, scope=command_scope())
            models = models_line(workflow, state.model, begins=True)
            started = f"run {session.run} continues from turn {turn} of {parent.run}"
            session.streams.aside(started, models)
            session.printed = await _copied(host, session.run)
            return await follow_run(host, session, person)

    return run_session(session, work)


async def _copied(host: Host, child: str) -> int:
    """Return how many events of a fork were copied from its parent."""
    events = await recorded_events(host, child)
    return max(event.seq for event in events if isinstance(event.data, RunForked)) - 1
