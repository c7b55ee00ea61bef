"""Following a run that this process works on, whichever command started or resumed it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from pydantic_core import to_jsonable_python

from weft.app.folders import LOCAL
from weft.cli.chat.conversation import AtTerminal, Session, converse, view_for
from weft.cli.chat.human_model import HumanModel
from weft.cli.chat.person import Person, UserLeft, stdin_is_terminal, with_person
from weft.cli.chat.slash_commands import run_command
from weft.cli.chat.subscription import Subscription, subscribed
from weft.cli.failure import Exit, failure_of
from weft.cli.formats.documents import document_line, failure_data
from weft.cli.hosting import answer_schemas, hosted
from weft.cli.pages.board import waiting_text
from weft.cli.pages.inspect import run_page
from weft.cli.pages.runs import print_outcome, print_status
from weft.cli.text import clean
from weft.engine.events import Event
from weft.errors import WeftError
from weft.inspect.board import waiting
from weft.inspect.flow import failed_turn, shown_values
from weft.inspect.run import inspect_run
from weft.ports.model import ModelRequest
from weft.runtime.host import Host
from weft.runtime.signals import Stop

#: How many of the artifacts that wait are named.
_MOST_WAITING: Final = 5


@asynccontextmanager
async def interactive_host(session: Session, person: Person, seed: int) -> AsyncGenerator[Host]:
    """Open a host on which the person may also answer for models."""

    async def command(text: str) -> None:
        match await run_command(text, session.streams, partial(print_run, host, session)):
            case "stop":
                # What is stopped is the very call that is being answered here.
                await host.deliver(session.run, Stop(), scope=LOCAL)
                await asyncio.Event().wait()
            case "quit":
                await person.leave()
            case "again":
                pass

    replied = -1  # What was written when the person answered last; that answer comes next.

    async def ready(request: ModelRequest) -> None:
        # The key ends with the number of the event that let the agent speak.
        await session.until_printed(max(int(request.key.rpartition(":")[2]), replied + 1))

    async def answered(_request: ModelRequest) -> None:
        nonlocal replied
        # Not what is printed: that may be behind, and then another event would pass for the answer.
        replied = (await host.run(session.run, scope=LOCAL)).seq

    model = HumanModel(person.line, session.streams, command, ready, answered)

    async with hosted(session.location, seed=seed, person=model) as host:
        yield host


async def print_run(host: Host, session: Session) -> None:
    """Print what is known of the run."""
    workflow = await host.workflow(session.run, scope=LOCAL)
    inspection = inspect_run(workflow, session.run, await _events(host, session))
    if session.streams.settings.json:
        session.streams.result(document_line({"inspection": to_jsonable_python(inspection)}))
    else:
        session.streams.result(run_page(inspection, session.streams))


async def _events(host: Host, session: Session) -> list[Event]:
    found = [it async for it in host.events(session.run, scope=LOCAL)]
    return [it for it in found if isinstance(it, Event)]


async def follow_run(host: Host, session: Session, person: Person) -> Exit:
    """Show what happens and ask what is asked, to the end or until no one can be asked."""
    async with subscribed(host, session.run, after=session.printed) as news:
        return await follow_from(host, session, person, news)


async def follow_from(host: Host, session: Session, person: Person, news: Subscription) -> Exit:
    """Do the same for whoever has begun to follow before."""
    streams = session.streams
    state = await host.state(session.run, scope=LOCAL)
    workflow = await host.workflow(session.run, scope=LOCAL)
    there = stdin_is_terminal() and not streams.settings.json
    answering = AtTerminal(person, streams, workflow) if there else None
    view = view_for(session, workflow, model=state.model)
    row = await converse(host, session, news, view, answering)
    if workflow.compiled.board is not None:
        await host.quiet()  # What is collected beyond its correlation is work of other runs.
        await _note_waiting(host, session)
    asks = await host.requests(scope=LOCAL, run=row.run)
    schemas = await answer_schemas(host, asks)
    values = shown_values(workflow, await host.state(session.run, scope=LOCAL))
    failed = values is not None and row.outcome == "failed"
    turn = failed_turn(await _events(host, session), row.reason) if failed else 0
    return print_outcome(streams, session.location, row, asks, schemas, values, turn)


async def _note_waiting(host: Host, session: Session) -> None:
    """Say what is on a board and has not woken anybody yet."""
    board = (await host.state(session.run, scope=LOCAL)).board
    found = list(waiting(board)) if board is not None else []
    for it in found[:_MOST_WAITING]:
        session.streams.note(clean(waiting_text(it)))
    if len(found) > _MOST_WAITING:
        session.streams.note(f"... and {len(found) - _MOST_WAITING} more that wait")


def run_session(session: Session, work: Callable[[Person], Coroutine[Any, Any, Exit]]) -> Exit:
    """Carry work on a run out, and say how to go on with the run when the person leaves it."""
    try:
        return with_person(work)
    except UserLeft as left:
        if not session.run:
            raise KeyboardInterrupt from None
        _print_how_to_continue(session)
        if left.how == "interrupt":
            return Exit.INTERRUPTED
        if session.streams.settings.json:
            asyncio.run(_print_as_left(session))
        # Whoever is there chose to leave a question; lines that are used up leave it unanswered.
        return Exit.DONE if session.asking and stdin_is_terminal() else Exit.WAITING
    except WeftError as error:
        if not (session.streams.settings.json and session.run):
            raise
        # Events were printed a line each, so this is one as well.
        failure = failure_of(error)
        session.streams.result(document_line({"error": failure_data(failure)}))
        return failure.exit


async def _print_as_left(session: Session) -> None:
    """Print the run that a program has nothing more to say to."""
    async with hosted(session.location, reading=True) as host:
        row = await host.run(session.run, scope=LOCAL)
        asks = await host.requests(scope=LOCAL, run=session.run)
        schemas = await answer_schemas(host, asks)
    print_status(session.streams, session.location, row, asks, schemas)


def _print_how_to_continue(session: Session) -> None:
    streams, run = session.streams, session.run
    command = session.command or ("chat --run" if session.asking else "runs resume")
    streams.note("")
    streams.note(f"left run {run}; all recorded events are kept")
    streams.note(f"  continue: weft {command} {run}{session.location.options}")
