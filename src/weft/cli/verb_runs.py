"""weft runs: the runs that are kept. Looking at them; the verbs that change them stand beside."""

import asyncio
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter

from weft.app.hosts import LOCAL
from weft.cli.columns import shortened
from weft.cli.conversing import PATIENCE, not_moving
from weft.cli.event_lines import at_time, event_data, summary
from weft.cli.exits import Exit
from weft.cli.failure import usage
from weft.cli.following import following
from weft.cli.hosting import JournalFile, Place, hosted, place_of
from weft.cli.machine_formats import document, document_line
from weft.cli.person import is_there
from weft.cli.places import how_to_start
from weft.cli.run_end import row_data, waiting_text
from weft.cli.run_names import find_run
from weft.cli.runs_page import print_list, run_text, tell_of_still_runs
from weft.cli.streams import Streams, clean, finish
from weft.engine.events import Event
from weft.engine.rows import RequestRow, RunRow
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow

#: How many runs are looked at for what runs there are.
_MANY: Final = 500

_Status: TypeAlias = Literal["running", "waiting", "ended"]

RunName = Annotated[
    str, Parameter(help="A run: its name, a unique beginning or end of it, or last.")
]


def list_runs(
    *,
    status: Annotated[_Status | None, Parameter(help="Only these.")] = None,
    workflow: Annotated[
        str | None, Parameter(metavar="NAME", help="Only the runs of this workflow.")
    ] = None,
    limit: Annotated[int, Parameter(help="How many, the newest first.")] = 20,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """List runs, newest first."""
    if limit < 1:
        raise usage(f"--limit {limit} would show nothing", "give a number above 0")
    place = place_of(streams, journal, must_exist=journal is not None)
    if streams.settings.json:
        kept = place.file.is_file()
        runs = asyncio.run(_rows_with_requests(place, status, workflow, limit)) if kept else []
        streams.result(document({"runs": [row_data(row, asked) for row, asked in runs]}))
        return Exit.DONE
    # One more than is shown tells whether there are more.
    found = asyncio.run(_rows(place, status, workflow, limit + 1)) if place.file.is_file() else []
    rows = found[:limit]
    if rows:
        print_list(rows, streams)
        tell_of_still_runs(rows, place, streams)
    else:
        streams.note(_no_runs(place, status, workflow))
    if len(found) > limit:
        streams.note(f"there are more runs than these {limit}: --limit N shows more")
    return Exit.DONE


def show(
    run: RunName,
    /,
    *,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Show one run at a glance, and the questions it asks."""
    place = place_of(streams, journal, must_exist=True)

    async def read() -> str:
        async with hosted(place) as host:
            row = await find_run(host, run)
            requests = await host.requests(scope=LOCAL, run=row.run)
            if streams.settings.json:
                return document({"run": row_data(row, requests)})
            workflow = await host.workflow(row.run, scope=LOCAL)
            return run_text(row, requests, workflow, place, streams)

    streams.result(asyncio.run(read()))
    return Exit.DONE


def tail(
    run: RunName,
    /,
    *,
    after: Annotated[int, Parameter(metavar="N", help="Begin after this event.")] = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Print the events of a run, and go on as they come until it has ended."""
    place = place_of(streams, journal, must_exist=True)

    async def read() -> Exit:
        async with hosted(place) as host:
            row = await find_run(host, run)
            workflow = await host.workflow(row.run, scope=LOCAL)
            leaves = partial(_leaves, host, row.run, place, streams)
            async with following(host, row.run, after=after) as news:
                while await news.soon(PATIENCE) or not await leaves():
                    item = await news.item()
                    if item is None:
                        return Exit.DONE
                    if isinstance(item, Event):
                        _print(item, workflow, streams)
            return Exit.WAITING

    return asyncio.run(read())


async def _leaves(host: Host, run: str, place: Place, streams: Streams) -> bool:
    """Say why a run does not go on; tell whether it cannot, and nobody is there to see it wait."""
    row = await host.run(run, scope=LOCAL)
    if row.status == "running":
        streams.problem(not_moving(run, place))
        return False
    asked = await host.requests(scope=LOCAL, run=run)
    if asked:
        streams.problem(waiting_text(streams, place, row, asked))
    return bool(asked) and not is_there()


def _no_runs(place: Place, status: str | None, workflow: str | None) -> str:
    """Say that there are no runs of the kind that was asked for, and of what there are."""
    everything = asyncio.run(_rows(place, None, None, _MANY)) if place.file.is_file() else []
    if not everything:
        return f"no runs; {how_to_start(place.workspace)}"
    kind = " ".join(["no", *([status] if status else []), "runs"])
    if workflow is None:
        return f"{kind}; see all: weft runs list"
    names = ", ".join(sorted({row.workflow for row in everything}))
    return f"{kind} of {workflow}; there are runs of: {names}"


def _print(event: Event, workflow: Workflow, streams: Streams) -> None:
    if streams.settings.json:
        streams.result(document_line({"event": event_data(event, workflow)}))
    else:
        kind = type(event.data).__name__
        told = clean(f"{event.seq:>4}  {at_time(event.at, '%H:%M:%S')}  {kind:<16}  ")
        line = told + clean(summary(event, workflow))
        terminal = streams.settings.terminal
        streams.result((shortened(line, streams.settings.columns) if terminal else line).rstrip())
    finish()


async def _rows(
    place: Place,
    status: _Status | None,
    workflow: str | None,
    limit: int,
) -> list[RunRow]:
    async with hosted(place) as host:
        return await host.runs(scope=LOCAL, status=status, workflow=workflow, limit=limit)


async def _rows_with_requests(
    place: Place, status: _Status | None, workflow: str | None, limit: int
) -> list[tuple[RunRow, list[RequestRow]]]:
    async with hosted(place) as host:
        rows = await host.runs(scope=LOCAL, status=status, workflow=workflow, limit=limit)
        return [(row, await _asked(host, row)) for row in rows]


async def _asked(host: Host, row: RunRow) -> list[RequestRow]:
    """Return what a run asks; one that has ended asks nothing, and is not looked up."""
    return [] if row.status == "ended" else await host.requests(scope=LOCAL, run=row.run)
