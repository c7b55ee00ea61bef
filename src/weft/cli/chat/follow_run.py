"""Following a run that this process works on, whichever command started or resumed it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pydantic_core import to_jsonable_python

from weft.cli.chat.conversation import (
    AtTerminal,
    Session,
    Subscription,
    converse,
    subscribed,
    view_for,
)
from weft.cli.chat.human_model import HumanModel
from weft.cli.chat.person import Person, UserLeft, run_command, stdin_is_terminal, with_person
from weft.cli.failure import CommandFailed, Exit, failure_of
from weft.cli.hosting import hosted
from weft.cli.pages.board import pending_text
from weft.cli.pages.inspect import run_page
from weft.cli.pages.runs import RunStatus, outcome_result
from weft.cli.results import Result, document
from weft.cli.scope import command_scope
from weft.cli.streams import clean
from weft.engine.events import Event
from weft.errors import WeftError
from weft.findings import Json
from weft.inspect.board import waiting
from weft.inspect.flow import failed_turn, shown_values
from weft.inspect.run import inspect_run
from weft.ports.model import ModelRequest
from weft.runtime.host import Host
from weft.runtime.signals import Stop

#: At most so many pending deliveries are printed.
_MAX_PENDING: Final = 5


@asynccontextmanager
async def interactive_host(session: Session, person: Person, seed: int) -> AsyncGenerator[Host]:
    """Open a host on which the person may answer in place of models."""

    async def command(text: str) -> None:
        match await run_command(text, session.streams, partial(print_run, host, session)):
            case "stop":
                # This stops the very call that is being answered here.
                await host.deliver(session.run, Stop(), scope=command_scope())
                await asyncio.Event().wait()
            case "quit":
                await person.leave()
            case "again":
                pass

    replied = -1  # The last event when the person answered; the answer is the next event.

    async def ready(request: ModelRequest) -> None:
        # The key ends with the number of the event that started the call.
        await session.until_printed(max(int(request.key.rpartition(":")[2]), replied + 1))

    async def answered(_request: ModelRequest) -> None:
        nonlocal replied
        # Not `session.printed`, which may be behind: another event would pass for the answer.
        replied = (await host.run(session.run, scope=command_scope())).seq

    model = HumanModel(person.line, session.streams, command, ready, answered)

    async with hosted(session.location, seed=seed, person=model) as host:
        yield host


async def print_run(host: Host, session: Session) -> None:
    """Print the inspection of the run."""
    workflow = await host.workflow(session.run, scope=command_scope())
    inspection = inspect_run(workflow, session.run, await recorded_events(host, session.run))
    if session.streams.settings.json:
        data = {"inspection": to_jsonable_python(inspection)}
        session.streams.result(document(data, line=True))
    else:
        session.streams.result(run_page(inspection, session.streams))


async def recorded_events(host: Host, run: str) -> list[Event]:
    """Return the events of a run."""
    items = [item async for item in host.events(run, scope=command_scope())]
    return [item for item in items if isinstance(item, Event)]


async def follow_run(
    host: Host, session: Session, person: Person, news: Subscription | None = None
) -> Result:
    """Show events and answer requests until the run ends, or until no person can be asked."""
    if news is None:
        async with subscribed(host, session.run, after=session.printed) as subscription:
            return await follow_run(host, session, person, subscription)
    streams = session.streams
    state = await host.state(session.run, scope=command_scope())
    workflow = await host.workflow(session.run, scope=command_scope())
    is_asked = stdin_is_terminal() and not streams.settings.json
    answering = AtTerminal(person, streams, workflow) if is_asked else None
    view = view_for(session, workflow, model=state.model)
    row = await converse(host, session, news, view, answering)
    if workflow.compiled.board is not None:
        await host.quiet()  # Artifacts collected beyond their correlation are work of other runs.
        await _note_pending(host, session)
    values = shown_values(workflow, await host.state(session.run, scope=command_scope()))
    failed = values is not None and row.outcome == "failed"
    turn = failed_turn(await recorded_events(host, session.run), row.reason) if failed else 0
    run = await RunStatus.read(host, session.run, session.location)
    return outcome_result(run, streams, values=values, failed_turn=turn)


async def _note_pending(host: Host, session: Session) -> None:
    """Print which artifacts on a board have not woken an agent yet."""
    board = (await host.state(session.run, scope=command_scope())).board
    found = list(waiting(board)) if board is not None else []
    for record in found[:_MAX_PENDING]:
        session.streams.note(clean(pending_text(record)))
    if len(found) > _MAX_PENDING:
        session.streams.note(f"... and {len(found) - _MAX_PENDING} more pending deliveries")


def run_session(session: Session, work: Callable[[Person], Coroutine[Any, Any, Result]]) -> Result:
    """Perform work on a run; if the person leaves, the result is how to continue the run."""
    try:
        return with_person(work)
    except UserLeft as left:
        if not session.run:
            raise KeyboardInterrupt from None
        return _run_left(session, left)
    except WeftError as error:
        if not (session.streams.settings.json and session.run):
            raise
        raise CommandFailed(replace(failure_of(error), after_events=True)) from error


def _run_left(session: Session, left: UserLeft) -> Result:
    """Return how to continue a run that the person left; for a program, also its status."""
    verb = session.command or ("chat --run" if session.asking else "runs resume")
    command = f"weft {verb} {session.run}{session.location.options}"
    notes = ["", f"left run {session.run}; all recorded events are kept", f"  continue: {command}"]
    if left.how != "end":  # Ctrl-C may not wait for the status.
        outcome = Exit.TERMINATED if left.how == "terminate" else Exit.INTERRUPTED
        return Result(notes=notes, outcome=outcome, is_last_line=True)
    # A person at a terminal chose to leave a request; the end of a pipe leaves it open.
    outcome = Exit.DONE if session.asking and stdin_is_terminal() else Exit.WAITING
    data: Mapping[str, Json] = {}
    if session.streams.settings.json:
        data = asyncio.run(_read_status(session))
    return Result(data, notes=notes, outcome=outcome, is_last_line=True)


async def _read_status(session: Session) -> Mapping[str, Json]:
    async with hosted(session.location, reading=True) as host:
        return (await RunStatus.read(host, session.run, session.location)).content()
