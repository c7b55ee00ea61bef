"""Going along with a run that this process works on, from whichever verb it was taken up."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from pydantic_core import to_jsonable_python

from weft.app.hosts import LOCAL
from weft.cli.chat.conversation import AtTerminal, Session, converse, narrator_for
from weft.cli.chat.human_model import ModelPerson
from weft.cli.chat.person import Left, Person, is_there, with_person
from weft.cli.chat.slash_commands import obey
from weft.cli.chat.subscription import Following, following
from weft.cli.failure import Exit, failure_of
from weft.cli.formats.documents import document_line, failure_data
from weft.cli.hosting import hosted
from weft.cli.pages.inspect import run_page
from weft.cli.pages.runs import concluded, told_how_it_stands
from weft.engine.events import Event
from weft.errors import WeftError
from weft.inspect.run import inspect_run
from weft.ports.model import ModelReply, ModelRequest
from weft.runtime.host import Host
from weft.runtime.signals import Stop


@asynccontextmanager
async def host_for(session: Session, person: Person, seed: int) -> AsyncGenerator[Host]:
    """Open a host on which the person may also answer for models."""

    async def command(text: str) -> None:
        match await obey(text, session.streams, partial(print_run, host, session)):
            case "stop":
                # What is stopped is the very call that is being answered here.
                await host.deliver(session.run, Stop(), scope=LOCAL)
                await asyncio.Event().wait()
            case "quit":
                await person.leave()
            case "again":
                pass

    model = ModelPerson(person.line, session.streams, command)

    async def ask(request: ModelRequest) -> ModelReply:
        # The key ends with the number of the event that let the agent speak.
        await session.has_told(int(request.key.rpartition(":")[2]))
        return await model(request)

    async with hosted(session.place, seed=seed, person=ask) as host:
        yield host


async def print_run(host: Host, session: Session) -> None:
    """Print what is known of the run."""
    workflow = await host.workflow(session.run, scope=LOCAL)
    events = [it async for it in host.events(session.run, scope=LOCAL)]
    told = inspect_run(workflow, session.run, [it for it in events if isinstance(it, Event)])
    if session.streams.settings.json:
        session.streams.result(document_line({"inspection": to_jsonable_python(told)}))
    else:
        session.streams.result(run_page(told, session.streams))


async def go_along(host: Host, session: Session, person: Person) -> Exit:
    """Tell what happens and ask what is asked, to the end or to where nobody can be asked."""
    async with following(host, session.run, after=session.told) as news:
        return await go_along_with(host, session, person, news)


async def go_along_with(host: Host, session: Session, person: Person, news: Following) -> Exit:
    """Do the same for whoever has begun to follow before."""
    streams = session.streams
    state = await host.state(session.run, scope=LOCAL)
    workflow = await host.workflow(session.run, scope=LOCAL)
    there = is_there() and not streams.settings.json
    answering = AtTerminal(person, streams, workflow) if there else None
    narrator = narrator_for(streams, workflow, model=state.model)
    row = await converse(host, session, news, narrator, answering)
    asks = await host.requests(scope=LOCAL, run=row.run)
    return concluded(streams, session.place, row, asks)


def work_on(session: Session, work: Callable[[Person], Coroutine[Any, Any, Exit]]) -> Exit:
    """Carry work on a run out, and say how to go on with the run when the person leaves it."""
    try:
        return with_person(work)
    except Left as left:
        if not session.run:
            raise KeyboardInterrupt from None
        _told_how_to_go_on(session)
        if left.how == "interrupt":
            return Exit.INTERRUPTED
        if session.streams.settings.json:
            asyncio.run(_told_as_it_was_left(session))
        # Whoever is there chose to leave a question; lines that are used up leave it unanswered.
        return Exit.DONE if session.asking and is_there() else Exit.WAITING
    except WeftError as error:
        if not (session.streams.settings.json and session.run):
            raise
        # Events were printed a line each, so this is one as well.
        failure = failure_of(error)
        session.streams.result(document_line({"error": failure_data(failure)}))
        return failure.exit


async def _told_as_it_was_left(session: Session) -> None:
    """Print the run that a program has nothing more to say to."""
    async with hosted(session.place) as host:
        row = await host.run(session.run, scope=LOCAL)
        asks = await host.requests(scope=LOCAL, run=session.run)
    told_how_it_stands(session.streams, session.place, row, asks)


def _told_how_to_go_on(session: Session) -> None:
    streams, run = session.streams, session.run
    verb = "chat --run" if session.asking else "runs resume"
    streams.note("")
    streams.note(f"left run {run}; everything that happened is kept")
    streams.note(f"  go on: weft {verb} {run}{session.place.options}")
