"""weft board publish and flush: what a board is given, and what comes of it."""

import asyncio
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.boards import (
    BoardName,
    find_board,
    find_board_run,
    read_payload,
    read_visibility,
    require_known,
)
from weft.cli.chat.conversation import Session
from weft.cli.chat.follow_run import follow_from, follow_run, interactive_host, run_session
from weft.cli.chat.person import Person
from weft.cli.chat.subscription import subscribed
from weft.cli.failure import Exit, usage
from weft.cli.formats.documents import document, document_line
from weft.cli.hosting import hosted, locate_journal
from weft.cli.models import models_line
from weft.cli.options import JournalFile, ModelName, RunName, Seed
from weft.cli.starting import model_name, placed_findings
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.engine.events import ArtifactPublished, Event
from weft.runtime.board.publish import Publication
from weft.runtime.host import Host

Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]

#: The event of the artifact that a run begins with: after its start, and the time it may end.
_FIRST: Final = 3


def publish(  # noqa: PLR0913 - what is published, by name
    name: BoardName,
    type_: Annotated[str, Parameter(name="TYPE", help="The type of the artifact.")],
    /,
    *fields: Annotated[
        str,
        Parameter(name="FIELD", help="The payload: key=value for each field, or one JSON text."),
    ],
    input_: Annotated[
        Path | None, Parameter(name="--input", metavar="FILE", help="The payload, as JSON.")
    ] = None,
    tag: Annotated[
        tuple[str, ...],
        Parameter(help="A tag; may be repeated.", consume_multiple=False, negative=""),
    ] = (),
    correlation: Annotated[
        str | None, Parameter(metavar="ID", help="What it belongs to; else it begins a run.")
    ] = None,
    partition: Annotated[str, Parameter(help="The part of the board it belongs to.")] = "",
    visibility: Annotated[
        str | None, Parameter(metavar="WORD|JSON", help="Who sees it: public, tenant, or JSON.")
    ] = None,
    to: Annotated[
        str, Parameter(metavar="AGENT", help="Give it to this agent, and to nobody else.")
    ] = "",
    id_: Annotated[
        str, Parameter(name="--id", metavar="ID", help="Its name; published again, it counts once.")
    ] = "",
    no_wait: Annotated[
        bool, Parameter(help="Only write it; another process works on it.", negative="")
    ] = False,
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Output,
) -> Exit:
    """Publish an artifact and follow its run until that is idle."""
    board = find_board(streams, name)
    payload = read_payload(board, type_, fields, input_)
    if to:
        require_known("agent", to, board.agents)
    seen = read_visibility(visibility)
    session = Session(streams, locate_journal(streams, journal))

    async def put(host: Host) -> Publication:
        with placed_findings(board.folder):
            made = await host.publish(
                board.name, type_, payload,
                scope=LOCAL, tags=tag, visibility=seen, correlation=correlation,
                partition=partition, id=id_, agent=to, model=await model_name(host, model),
            )  # fmt: skip
        session.run = made.run
        return made

    async def write() -> Exit:
        async with hosted(session.location, works=False) as host:
            made = await put(host)
            await host.quiet()
        _say_written(made, type_, session)
        return Exit.DONE

    async def follow(person: Person) -> Exit:
        async with interactive_host(session, person, seed) as host:
            made = await put(host)
            session.printed = await _before(host, made)
            await _say_begun(host, made, type_, session)
            return await follow_run(host, session, person)

    return asyncio.run(write()) if no_wait else run_session(session, follow)


def _say_written(made: Publication, type_: str, session: Session) -> None:
    streams = session.streams
    if streams.settings.json:
        streams.result(document({"published": made._asdict()}))
        return
    streams.result(clean(f"{type_} {made.id} is on the board, in run {made.run}"))
    streams.note(f"  work on it: weft runs resume {made.run}{session.location.options}")


async def _say_begun(host: Host, made: Publication, type_: str, session: Session) -> None:
    streams = session.streams
    if streams.settings.json:
        streams.result(document_line({"published": made._asdict()}))
        return
    workflow = await host.workflow(made.run, scope=LOCAL)
    state = await host.state(made.run, scope=LOCAL)
    models = models_line(workflow, state.model, begins=not session.printed)
    for line in (f"{type_} {made.id} is on the board, in run {made.run}", models):
        streams.note(streams.paint_error(clean(line), "dim"))


async def _before(host: Host, made: Publication) -> int:
    """Return the event after which a run is shown: the first of it, or what was published."""
    async for event in host.events(made.run, scope=LOCAL):
        if (
            isinstance(event, Event)
            and isinstance(event.data, ArtifactPublished)
            and event.data.id == made.id
        ):
            return event.seq - 1 if event.seq > _FIRST else 0
    return 0


def flush(
    name: BoardName,
    run: RunName,
    /,
    *,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Output,
) -> Exit:
    """Let everything be handled now that was collected for batches, and follow the run."""
    board = find_board(streams, name)
    session = Session(streams, locate_journal(streams, journal, must_exist=True))

    async def work(person: Person) -> Exit:
        async with interactive_host(session, person, seed) as host:
            session.run = await find_board_run(host, board, run)
            row = await host.run(session.run, scope=LOCAL)
            if row.status == "ended":
                look = f"look at it: weft inspect {row.run}{session.location.options}"
                raise usage(f"run {row.run} has ended, and collects nothing any more", look)
            session.printed = row.seq
            async with subscribed(host, row.run, after=row.seq) as news:
                await host.flush(row.run, scope=LOCAL)
                return await follow_from(host, session, person, news)

    return run_session(session, work)
