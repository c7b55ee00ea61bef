"""weft inspect and weft replay: what happened in a run, and whether it would again."""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from pydantic_core import to_jsonable_python

from weft.app.folders import LOCAL
from weft.cli.chat.conversation import Session, view_for
from weft.cli.chat.follow_run import follow_run, interactive_host, run_session
from weft.cli.chat.person import Person
from weft.cli.failure import CommandFailed, Exit, Failure, usage
from weft.cli.formats.documents import document
from weft.cli.hosting import JournalLocation, answer_schemas, find_run, hosted, locate_journal
from weft.cli.models import models_line
from weft.cli.options import Given, JournalFile, ModelName, Seed
from weft.cli.pages.inspect import comparison_page, run_page, turn_page
from weft.cli.pages.runs import print_status
from weft.cli.starting import model_name, read_values, warn_if_changed
from weft.cli.streams import Streams
from weft.cli.text import clean, counted
from weft.engine.events import Event, RunForked
from weft.findings import Json
from weft.inspect.replay import Mismatch, check_replay
from weft.inspect.run import inspect_run
from weft.inspect.turn import compare_turns, inspect_turn
from weft.runtime.host import Host
from weft.runtime.workflow import NoTools, Workflow


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run, all of its events and its workflow."""

    run: str
    events: list[Event]
    workflow: Workflow


async def read_recorded(host: Host, typed: str) -> Recorded:
    """Read the run a person means."""
    row = await find_run(host, typed)
    workflow = await host.workflow(row.run, scope=LOCAL)
    events = [it async for it in host.events(row.run, scope=LOCAL)]
    return Recorded(row.run, [it for it in events if isinstance(it, Event)], workflow)


def inspect(
    run: Annotated[
        str,
        Parameter(help="A run: its name, a unique beginning or end of it, or last; @N is a turn."),
    ],
    /,
    *,
    against: Annotated[
        int | None,
        Parameter(metavar="TURN", help="Compare the turn with this one, which is the earlier one."),
    ] = None,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Say what happened in a run, or show exactly what an agent was sent in a turn."""
    name, at, turn = run.partition("@")
    if at and not turn.isdecimal():
        raise usage(f'"{turn}" is not the number of a turn', "write RUN@1 for the first turn")
    if against is not None and not at:
        raise usage("--against compares two turns", f"name the other one: {name}@2 --against 1")
    location = locate_journal(streams, journal, must_exist=True)
    recorded = asyncio.run(_read(location, name))
    if not at:
        return _print_run(recorded, location, streams)
    return _print_turn(recorded, int(turn), against, streams)


async def _read(location: JournalLocation, name: str) -> Recorded:
    async with hosted(location, reading=True) as host:
        return await read_recorded(host, name)


def _print_run(recorded: Recorded, location: JournalLocation, streams: Streams) -> Exit:
    inspection = inspect_run(recorded.workflow, recorded.run, recorded.events)
    if streams.settings.json:
        streams.result(document({"inspection": to_jsonable_python(inspection)}))
    else:
        streams.result(run_page(inspection, streams))
        if inspection.turns:
            what = "see what an agent was sent" if inspection.flow is None else "see one step"
            command = f"weft inspect {recorded.run}@1{location.options}"
            streams.note(f"\n{what}: {command}")
    return Exit.DONE


def _print_turn(recorded: Recorded, turn: int, against: int | None, streams: Streams) -> Exit:
    inspection = inspect_turn(recorded.workflow, recorded.run, recorded.events, turn)
    if against is None:
        if streams.settings.json:
            streams.result(document({"turn": to_jsonable_python(inspection)}))
        else:
            streams.result(turn_page(inspection, streams))
        return Exit.DONE
    other = inspect_turn(recorded.workflow, recorded.run, recorded.events, against)
    compared = compare_turns(other, inspection)
    if streams.settings.json:
        streams.result(document({"comparison": to_jsonable_python(compared)}))
    else:
        streams.result(comparison_page(compared, streams))
    return Exit.DONE


def replay(
    run: Annotated[
        str, Parameter(help="A run: its name, a unique beginning or end of it, or last.")
    ],
    /,
    *,
    check: Annotated[
        bool,
        Parameter(help="Look whether everything would be decided as it was; nothing is called."),
    ] = False,
    fork: Annotated[
        int | None,
        Parameter(metavar="TURN", help="Repeat this turn, as a run of its own."),
    ] = None,
    given: Given = (),
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Show a run again, check it, or fork it."""
    if fork is None and (given or model):
        raise usage(
            "--set and --model go with --fork", "weft replay RUN --fork TURN --set NAME=VALUE"
        )
    if fork is not None and check:
        raise usage("--check and --fork cannot be asked for at once", "keep one of them")
    location = locate_journal(streams, journal, must_exist=True)
    if fork is not None:
        return _fork(Session(streams, location), run, fork, given, model, seed)
    if check:
        return _check(asyncio.run(_read(location, run)), location, streams)
    asyncio.run(_show(run, location, streams))
    return Exit.DONE


async def _show(name: str, location: JournalLocation, streams: Streams) -> None:
    async with hosted(location, reading=True) as host:
        recorded = await read_recorded(host, name)
        session = Session(streams, location, recorded.run)
        view = view_for(session, recorded.workflow, echo=True)
        for event in recorded.events:
            view.show(event)
        row = await host.run(recorded.run, scope=LOCAL)
        asks = await host.requests(scope=LOCAL, run=row.run)
        print_status(streams, location, row, asks, await answer_schemas(host, asks))


def _check(recorded: Recorded, location: JournalLocation, streams: Streams) -> Exit:
    if isinstance(recorded.workflow.tools, NoTools) and recorded.workflow.missing is not None:
        raise recorded.workflow.missing  # Agents are told of tools as their code describes them.
    found = check_replay(recorded.workflow, recorded.run, recorded.events)
    events = len(recorded.events)
    if streams.settings.json:
        content: dict[str, Json] = {"run": recorded.run, "events": events}
        streams.result(document({**content, "mismatches": to_jsonable_python(found)}))
        return Exit.FAILED if found else Exit.DONE
    if not found:
        streams.result(f"run {recorded.run}: {counted(events, 'event')}, decided again the same")
        return Exit.DONE
    for mismatch in found:
        _print(mismatch, streams)
    fact = f"run {recorded.run} would go another way now, from event {found[0].seq} on"
    hint = f"look at it: weft inspect {recorded.run}{location.options}"
    raise CommandFailed(Failure(Exit.FAILED, fact, hint=(hint,)))


def _print(mismatch: Mismatch, streams: Streams) -> None:
    streams.result(clean(f"event {mismatch.seq}: {mismatch.what}"))
    for label, value in (("recorded", mismatch.found), ("now     ", mismatch.expected)):
        text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
        streams.result(clean(f"  {label}: {text}"))


def _fork(
    session: Session, typed: str, turn: int, given: Given, model: str | None, seed: int
) -> Exit:
    async def work(person: Person) -> Exit:
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
            begun = f"run {session.run} continues from turn {turn} of {parent.run}"
            for note in filter(None, (begun, models)):
                session.streams.note(session.streams.paint_error(note, "dim"))
            session.printed = await _copied(host, session.run)
            return await follow_run(host, session, person)

    return run_session(session, work)


async def _copied(host: Host, child: str) -> int:
    """Return how many events of a fork are those of the run it comes from."""
    events = [it async for it in host.events(child, scope=LOCAL)]
    forks = [it.seq for it in events if isinstance(it, Event) and isinstance(it.data, RunForked)]
    return max(forks) - 1
