"""weft inspect and weft replay: what happened in a run, and whether replay agrees."""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.chat.conversation import Session, view_for
from weft.cli.chat.follow_run import follow_run, interactive_host, recorded_events, run_session
from weft.cli.chat.person import Person
from weft.cli.failure import Exit, Failure, usage
from weft.cli.hosting import (
    JournalFile,
    JournalLocation,
    Output,
    RunName,
    find_run,
    hosted,
    locate_journal,
)
from weft.cli.pages.inspect import comparison_page, run_page, turn_page
from weft.cli.pages.runs import RunStatus
from weft.cli.results import Hidden, Message, Result, print_failure
from weft.cli.starting import (
    Given,
    ModelName,
    Seed,
    model_name,
    models_line,
    read_values,
    warn_if_changed,
)
from weft.cli.streams import Streams, clean, counted
from weft.engine.events import Event, RunForked
from weft.inspect.replay import Mismatch, check_replay
from weft.inspect.run import inspect_run
from weft.inspect.turn import compare_turns, inspect_turn
from weft.runtime.host import Host
from weft.runtime.workflow import NoTools, Workflow


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run with its events and its workflow."""

    run: str
    events: list[Event]
    workflow: Workflow


async def read_recorded(host: Host, typed: str) -> Recorded:
    """Return the run that a person names."""
    row = await find_run(host, typed)
    workflow = await host.workflow(row.run, scope=LOCAL)
    return Recorded(row.run, await recorded_events(host, row.run), workflow)


@dataclass(frozen=True)
class CheckedReplay(Result):
    """Where a replay of a run decides differently than recorded."""

    run: str
    events: int
    mismatches: list[Mismatch]
    location: Hidden[JournalLocation]

    @property
    def exit(self) -> Exit:
        """The exit code: 1 if the replay differs."""
        return Exit.FAILED if self.mismatches else Exit.DONE

    def show(self, streams: Streams) -> None:
        """Print every difference."""
        if not self.mismatches:
            streams.result(f"run {self.run}: {counted(self.events, 'event')}, replay is identical")
            return
        for mismatch in self.mismatches:
            streams.result(clean(f"event {mismatch.seq}: {mismatch.what}"))
            for label, value in (("recorded", mismatch.found), ("now     ", mismatch.expected)):
                text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
                streams.result(clean(f"  {label}: {text}"))
        message = f"replay of run {self.run} differs from event {self.mismatches[0].seq} on"
        hint = f"inspect it: weft inspect {self.run}{self.location.options}"
        print_failure(Failure(Exit.FAILED, message, hint=(hint,)), streams)


def inspect(
    run: Annotated[
        str,
        Parameter(help="A run: its id, a unique beginning or end of it, or last; @N is a turn."),
    ],
    /,
    *,
    against: Annotated[
        int | None, Parameter(metavar="TURN", help="Compare the turn with this earlier one.")
    ] = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Show what happened in a run, or exactly what an agent was sent in a turn."""
    name, at, turn = run.partition("@")
    if at and not turn.isdecimal():
        raise usage(f'invalid turn "{turn}"', "write RUN@1 for the first turn")
    if against is not None and not at:
        raise usage("--against compares two turns", f"name the other turn: {name}@2 --against 1")
    location = locate_journal(streams, journal, must_exist=True)
    found = asyncio.run(_read(location, name))
    if not at:
        inspection = inspect_run(found.workflow, found.run, found.events)
        what = "see what an agent was sent" if inspection.flow is None else "see one step"
        note = f"\n{what}: weft inspect {found.run}@1{location.options}"
        notes = [note] if inspection.turns else []
        return Message({"inspection": inspection}, run_page(inspection, streams), notes)
    inspection = inspect_turn(found.workflow, found.run, found.events, int(turn))
    if against is None:
        return Message({"turn": inspection}, turn_page(inspection, streams))
    other = inspect_turn(found.workflow, found.run, found.events, against)
    compared = compare_turns(other, inspection)
    return Message({"comparison": compared}, comparison_page(compared, streams))


async def _read(location: JournalLocation, name: str) -> Recorded:
    async with hosted(location, reading=True) as host:
        return await read_recorded(host, name)


def replay(
    run: RunName,
    /,
    *,
    check: Annotated[
        bool, Parameter(help="Verify that replay makes the same decisions; nothing is called.")
    ] = False,
    fork: Annotated[
        int | None, Parameter(metavar="TURN", help="Repeat this turn in a new run.")
    ] = None,
    given: Given = (),
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Show a run again, verify it, or fork it."""
    if fork is None and (given or model):
        raise usage("--set and --model need --fork", "weft replay RUN --fork TURN --set NAME=VALUE")
    if fork is not None and check:
        raise usage("--check and --fork exclude each other", "keep one of them")
    location = locate_journal(streams, journal, must_exist=True)
    if fork is not None:
        return _fork(Session(streams, location), run, fork, given, model, seed)
    if check:
        return _check(asyncio.run(_read(location, run)), location)
    return asyncio.run(_show(run, location, streams))


async def _show(name: str, location: JournalLocation, streams: Streams) -> Result:
    async with hosted(location, reading=True) as host:
        recorded = await read_recorded(host, name)
        session = Session(streams, location, recorded.run)
        view = view_for(session, recorded.workflow, echo=True)
        for event in recorded.events:
            view.show(event)
        return await RunStatus.read(host, recorded.run, location)


def _check(recorded: Recorded, location: JournalLocation) -> Result:
    if isinstance(recorded.workflow.tools, NoTools) and recorded.workflow.missing is not None:
        raise recorded.workflow.missing  # The prompts describe tools as their code does.
    found = check_replay(recorded.workflow, recorded.run, recorded.events)
    return CheckedReplay(recorded.run, len(recorded.events), list(found), location)


def _fork(
    session: Session, typed: str, turn: int, given: Given, model: str | None, seed: int
) -> Result:
    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            parent = await find_run(host, typed)
            workflow = await host.workflow(parent.run, scope=LOCAL)
            warn_if_changed(session.streams, parent)
            session.run = await host.fork(
                parent.run,
                scope=LOCAL,
                turn=turn,
                values=read_values(workflow.compiled, given),
                model=await model_name(host, model),
                streamed=True,
            )
            state = await host.state(session.run, scope=LOCAL)
            models = models_line(workflow, state.model, begins=True)
            started = f"run {session.run} continues from turn {turn} of {parent.run}"
            for note in filter(None, (started, models)):
                session.streams.note(session.streams.paint_error(note, "dim"))
            session.printed = await _copied(host, session.run)
            return await follow_run(host, session, person)

    return run_session(session, work)


async def _copied(host: Host, child: str) -> int:
    """Return how many events of a fork were copied from its parent."""
    events = await recorded_events(host, child)
    return max(event.seq for event in events if isinstance(event.data, RunForked)) - 1
