"""weft run and weft chat: start a run, or take one up, and follow it."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from weft.app.hosts import LOCAL
from weft.cli.chat.conversation import AtTerminal, Session, converse, narrator_for
from weft.cli.chat.follow_run import go_along, host_for, print_run, work_on
from weft.cli.chat.person import MANY, Person, is_there, unread_lines
from weft.cli.chat.subscription import following
from weft.cli.completion import package_names
from weft.cli.failure import Exit, usage
from weft.cli.hosting import find_run, place_of
from weft.cli.models import models_line
from weft.cli.options import Given, JournalFile, ModelName, Seed
from weft.cli.pages.runs import outcome_text, take_anew, told_how_it_stands
from weft.cli.starting import package_to_run, read_message, start_run, tell_if_changed
from weft.cli.streams import Streams
from weft.cli.text import clean, counted
from weft.engine.rows import RequestRow, RunRow
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow


def run(
    name: Annotated[str, Parameter(help="The package to run, by name.", completer=package_names)],
    message: Annotated[str | None, Parameter(help="What the user says first.")] = None,
    /,
    *,
    given: Given = (),
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Start a workflow and go along with it."""
    if message is not None:
        read_message(message, "say something, or leave it out and the workflow begins without")
    folder = package_to_run(streams, name)
    session = Session(streams, place_of(streams, journal))

    async def work(person: Person) -> Exit:
        async with host_for(session, person, seed) as host:
            session.run = await start_run(
                host, streams, folder, message=message, given=given, model=model
            )
            return await go_along(host, session, person)

    return work_on(session, work)


def chat(
    name: Annotated[
        str | None, Parameter(help="The package to talk with, by name.", completer=package_names)
    ] = None,
    /,
    *,
    given: Given = (),
    model: ModelName = None,
    run: Annotated[
        str | None,
        Parameter(metavar="RUN", help="Go on with this run: its name, the end of it, or last."),
    ] = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Talk with a workflow; without a terminal, every line of stdin is a message."""
    if (name is None) == (run is None):
        raise usage("name a package, or a run with --run", "weft chat HelloWorld")
    if run is not None and (given or model):
        raise usage(
            "--set and --model are for a run that begins",
            "change a run from a turn on: weft replay RUN --fork TURN",
        )
    folder = None if name is None else package_to_run(streams, name)
    session = Session(streams, place_of(streams, journal, must_exist=folder is None))

    async def work(person: Person) -> Exit:
        async with host_for(session, person, seed) as host:
            if folder is not None:
                session.run = await start_run(host, streams, folder, given=given, model=model)
            else:
                await _go_back_to(host, session, run or "")
            row = await _talk(host, session, person, went_on=folder is None)
            asks = await host.requests(scope=LOCAL, run=row.run)
        return _closed(session, row, asks)

    return work_on(session, work)


async def _go_back_to(host: Host, session: Session, typed: str) -> None:
    """Go on with the run a person means, which another process may be working on."""
    row = await find_run(host, typed)
    session.run, session.ours = row.run, False
    state = await host.state(row.run, scope=LOCAL)
    workflow = await host.workflow(row.run, scope=LOCAL)
    models = models_line(workflow, state.model, begins=False)
    session.streams.note(session.streams.paint_error(clean(models), "dim"))
    tell_if_changed(session.streams, row)


async def _talk(host: Host, session: Session, person: Person, *, went_on: bool) -> RunRow:
    streams = session.streams
    workflow = await host.workflow(session.run, scope=LOCAL)
    state = await host.state(session.run, scope=LOCAL)
    if is_there():
        streams.note("Ctrl-C leaves, /help lists what else you can do.")
    narrator = narrator_for(streams, workflow, model=state.model)
    if went_on:
        await _tell_again(host, session, workflow)
    answering = AtTerminal(person, streams, workflow, partial(print_run, host, session))
    async with following(host, session.run, after=session.told) as news:
        return await converse(host, session, news, narrator, answering)


async def _tell_again(host: Host, session: Session, workflow: Workflow) -> None:
    """Tell a run from its beginning, with what the user said."""
    teller = narrator_for(session.streams, workflow, echo=True)
    async for item in host.events(session.run, scope=LOCAL):
        teller.tell(item)
        session.told += 1


def _closed(session: Session, row: RunRow, requests: Sequence[RequestRow]) -> Exit:
    streams = session.streams
    if streams.settings.json:
        told_how_it_stands(streams, session.place, row, requests)
    if row.status != "ended":  # it does not move, which was told
        return Exit.WAITING
    streams.note(streams.paint_error(outcome_text(row), "bold"))
    streams.note(f"  inspect: weft inspect {row.run}{session.place.options}")
    if row.outcome == "failed" and row.turns:
        streams.note(f"  {take_anew(session.place, row)}")
    unread = unread_lines()
    if unread:
        more = " or more" if unread == MANY else ""
        streams.note(f"{counted(unread, 'line')}{more} of the input not used: the run has ended")
    return Exit.DONE if row.outcome in ("completed", "cancelled") else Exit.FAILED
