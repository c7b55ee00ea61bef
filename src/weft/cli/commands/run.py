"""weft run and weft chat: start a run, or take one up, and follow it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.chat.conversation import AtTerminal, Session, converse, view_for
from weft.cli.chat.follow_run import follow_run, interactive_host, print_run, run_session
from weft.cli.chat.person import MANY, Person, stdin_is_terminal, unread_lines
from weft.cli.chat.subscription import subscribed
from weft.cli.completion import package_names
from weft.cli.failure import Exit, usage
from weft.cli.hosting import answer_schemas, find_run, locate_journal
from weft.cli.models import models_line
from weft.cli.options import Given, Input, JournalFile, ModelName, Seed
from weft.cli.pages.runs import idle_text, is_idle, outcome_text, print_status, repeat_turn
from weft.cli.starting import package_to_run, read_input, read_message, start_run, warn_if_changed
from weft.cli.streams import Streams
from weft.cli.text import clean, counted
from weft.engine.rows import RequestRow, RunRow
from weft.packages.reader import read_package
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.wire.rows import Schemas


def run(
    name: Annotated[str, Parameter(help="The package to run, by name.", completer=package_names)],
    message: Annotated[str | None, Parameter(help="What the user says first.")] = None,
    /,
    *,
    given: Given = (),
    brought: Input = (),
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Start a workflow and follow it."""
    if message is not None:
        read_message(message, "say something, or leave it out and the workflow begins without")
    folder = package_to_run(streams, name)
    input_ = read_input(brought)
    session = Session(streams, locate_journal(streams, journal))

    async def work(person: Person) -> Exit:
        async with interactive_host(session, person, seed) as host:
            session.run = await start_run(
                host, streams, folder, message=message, given=given, input_=input_, model=model
            )
            return await follow_run(host, session, person)

    return run_session(session, work)


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
        Parameter(metavar="RUN", help="Continue this run: its name, the end of it, or last."),
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
    if folder is not None:
        _require_talk(folder)
    session = Session(streams, locate_journal(streams, journal, must_exist=folder is None))

    async def work(person: Person) -> Exit:
        async with interactive_host(session, person, seed) as host:
            if folder is not None:
                session.run = await start_run(host, streams, folder, given=given, model=model)
            else:
                await _go_back_to(host, session, run or "")
            row = await _talk(host, session, person, went_on=folder is None)
            asks = await host.requests(scope=LOCAL, run=row.run)
            schemas = await answer_schemas(host, asks)
        return _closed(session, row, asks, schemas)

    return run_session(session, work)


def _require_talk(folder: Path) -> None:
    """Refuse a flow: its steps work on values, and nobody in it waits for messages."""
    if read_package(folder).spec.flow is not None:
        name = folder.resolve().name
        raise usage(
            f"{name} is a flow, and takes no messages",
            f"run it: weft run {name} --set NAME=VALUE",
            "approve something in a run: weft runs answer RUN",
        )


async def _go_back_to(host: Host, session: Session, typed: str) -> None:
    """Go on with the run a person means, which another process may be working on."""
    row = await find_run(host, typed)
    session.run, session.ours = row.run, False
    state = await host.state(row.run, scope=LOCAL)
    workflow = await host.workflow(row.run, scope=LOCAL)
    models = models_line(workflow, state.model, begins=False)
    if models:
        session.streams.note(session.streams.paint_error(clean(models), "dim"))
    warn_if_changed(session.streams, row)


async def _talk(host: Host, session: Session, person: Person, *, went_on: bool) -> RunRow:
    streams = session.streams
    workflow = await host.workflow(session.run, scope=LOCAL)
    state = await host.state(session.run, scope=LOCAL)
    if stdin_is_terminal():
        streams.note("Ctrl-C leaves, /help lists what else you can do.")
    view = view_for(session, workflow, model=state.model)
    if went_on:
        await _show_again(host, session, workflow)
    answering = AtTerminal(person, streams, workflow, partial(print_run, host, session))
    async with subscribed(host, session.run, after=session.printed) as news:
        return await converse(host, session, news, view, answering)


async def _show_again(host: Host, session: Session, workflow: Workflow) -> None:
    """Show a run from its beginning, with what the user said."""
    view = view_for(session, workflow, echo=True)
    async for item in host.events(session.run, scope=LOCAL):
        view.show(item)
        session.printed += 1


def _closed(
    session: Session, row: RunRow, requests: Sequence[RequestRow], schemas: Schemas
) -> Exit:
    streams = session.streams
    if streams.settings.json:
        print_status(streams, session.location, row, requests, schemas)
    if is_idle(row, requests):
        streams.note(idle_text(row))
        return Exit.DONE
    if row.status != "ended":  # it does not move, which was printed
        return Exit.WAITING
    streams.note(streams.paint_error(outcome_text(row), "bold"))
    streams.note(f"  inspect: weft inspect {row.run}{session.location.options}")
    if row.outcome == "failed" and row.turns:
        streams.note(f"  {repeat_turn(session.location, row)}")
    unread = unread_lines()
    if unread:
        more = " or more" if unread == MANY else ""
        streams.note(f"{counted(unread, 'line')}{more} of the input not used: the run has ended")
    return Exit.DONE if row.outcome in ("completed", "cancelled") else Exit.FAILED
