"""weft runs list, show, tail and prune: the runs that are kept."""

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.app.generation import read_generation
from weft.cli.chat.conversation import PATIENCE, not_moving
from weft.cli.chat.person import read_line, stdin_is_terminal
from weft.cli.chat.subscription import subscribed
from weft.cli.failure import Exit, usage
from weft.cli.formats.documents import document, document_line
from weft.cli.generated import how_to_promote
from weft.cli.hosting import (
    JournalLocation,
    acting_as,
    answer_schemas,
    find_run,
    hosted,
    is_asked_of,
    is_stopped,
    locate_journal,
)
from weft.cli.options import JournalFile, People, RunName
from weft.cli.pages.event_lines import summary
from weft.cli.pages.runs import (
    idle_text,
    is_idle,
    note_stalled_runs,
    print_list,
    run_text,
    waiting_text,
)
from weft.cli.paths import how_to_start
from weft.cli.streams import Streams, finish
from weft.cli.text import at_time, clean, counted, shortened
from weft.context.audience import Audience
from weft.engine.events import KIND_NAMES, Event
from weft.engine.rows import RequestRow, RunRow
from weft.errors import AccessDenied
from weft.findings import Json
from weft.generator.steps import is_generator
from weft.ports.journal import Pruned
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.wire.events import event_data, user_event_data
from weft.wire.rows import run_data, runs_data

#: How many runs are looked at for what runs there are.
_MANY: Final = 500

#: Spans of time as people write them: 30d, 12h, 2w.
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])")

_Status: TypeAlias = Literal["running", "waiting", "ended"]


class _Wanted(NamedTuple):
    """Which runs are listed."""

    status: _Status | None
    workflow: str | None
    people: Scope


def list_runs(
    *,
    status: Annotated[_Status | None, Parameter(help="Only these.")] = None,
    workflow: Annotated[
        str | None, Parameter(metavar="NAME", help="Only the runs of this workflow.")
    ] = None,
    limit: Annotated[int, Parameter(help="How many, the newest first.")] = 20,
    as_: People = (),
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """List runs, newest first."""
    if limit < 1:
        raise usage(f"--limit {limit} would show nothing", "give a number above 0")
    people = acting_as(as_)
    location = locate_journal(streams, journal, must_exist=journal is not None)
    wanted = _Wanted(status, workflow, people)
    kept = location.file.is_file()
    if streams.settings.json:
        page = asyncio.run(_page(location, wanted, limit)) if kept else []
        streams.result(document({"runs": page}))
        return Exit.DONE
    # One more than is shown tells whether there are more.
    found, asked = asyncio.run(_rows(location, wanted, limit + 1)) if kept else ([], ())
    rows = found[:limit]
    if rows:
        print_list(rows, streams, asked)
        note_stalled_runs(rows, location, streams)
    else:
        streams.note(_no_runs(location, wanted))
    if len(found) > limit:
        streams.note(f"there are more runs than these {limit}: --limit N shows more")
    return Exit.DONE


def show(
    run: RunName,
    /,
    *,
    as_: People = (),
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Show one run at a glance, and the questions it asks."""
    people = acting_as(as_)
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> str:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run)
            requests = await host.requests(scope=LOCAL, run=row.run)
            idle = is_idle(row, requests)
            if as_:
                requests = [it for it in requests if is_asked_of(it, people)]
            if streams.settings.json:
                schemas = await answer_schemas(host, requests)
                return document({"run": run_data(row, requests, schemas)})
            workflow = await host.workflow(row.run, scope=LOCAL)
            text = run_text(row, requests, workflow, location, streams, idle=idle)
            if is_generator(workflow.spec):
                generation = read_generation(await host.state(row.run, scope=LOCAL))
                command = how_to_promote(row, generation, location)
                text += f"\npromote   {command}" if command else ""
            return text

    streams.result(asyncio.run(read()))
    return Exit.DONE


def tail(
    run: RunName,
    /,
    *,
    after: Annotated[int, Parameter(metavar="N", help="Begin after this event.")] = 0,
    as_user: Annotated[
        bool, Parameter(help="Only what an end user may see, as JSON.", negative="")
    ] = False,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Print the events of a run, and go on as they come until it has ended."""
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> Exit:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run)
            workflow = await host.workflow(row.run, scope=LOCAL)
            audience = Audience(workflow.spec, row.user) if as_user else None
            told = ""
            async with subscribed(host, row.run, after=after) as news:
                while True:
                    # Looked at again and again: whoever works on it may die later.
                    if not await news.soon(PATIENCE):
                        why, left = await _at_rest(host, row.run, location, streams)
                        if why not in ("", told):
                            streams.problem(why)
                        if left is not None and not stdin_is_terminal():
                            return left
                        told = why
                        continue
                    item, told = await news.item(), ""
                    if item is None:
                        return Exit.DONE
                    if isinstance(item, Event):
                        _print(item, row.run, workflow, streams, audience)

    return asyncio.run(read())


def prune(
    *,
    older_than: Annotated[
        str, Parameter(metavar="SPAN", help="Runs that ended longer ago than this: 30d, 12h, 2w.")
    ],
    dry_run: Annotated[
        bool, Parameter(help="Show what would be removed, and remove nothing.")
    ] = False,
    yes: Annotated[bool, Parameter(help="Do not ask before removing.")] = False,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Remove runs that ended long ago, with everything that belongs to them alone."""
    location = locate_journal(streams, journal, must_exist=True)
    before = time.time_ns() // 1_000_000 - milliseconds(older_than)

    async def work(*, dry: bool) -> Pruned:
        async with hosted(location, reading=True) as host:
            return await host.prune(scope=LOCAL, ended_before=before, dry_run=dry)

    found = asyncio.run(work(dry=True))
    wanted = found.runs > 0 and not dry_run
    removed = wanted and _agreed(found, streams, yes=yes)
    if removed:
        found = asyncio.run(work(dry=False))
    if streams.settings.json:
        counts: dict[str, Json] = {"runs": found.runs, "events": found.events, "bytes": found.bytes}
        streams.result(document({**counts, "removed": removed}))
    elif wanted and not removed:
        streams.result("nothing removed")
    else:
        streams.result(f"{'removed' if removed else 'to be removed'}: {_counts(found)}")
    return Exit.DONE


async def _at_rest(
    host: Host, run: str, location: JournalLocation, streams: Streams
) -> tuple[str, Exit | None]:
    """Return why a run does not move, and how to leave if it will not until somebody acts."""
    row = await host.run(run, scope=LOCAL)
    if row.status == "running":
        stopped = is_stopped(row)  # Asked first: what is said of it then is no earlier.
        return not_moving(row, location), Exit.WAITING if stopped else None
    asked = await host.requests(scope=LOCAL, run=run)
    if asked:
        return waiting_text(streams, location, row, asked), Exit.WAITING
    flow = (await host.workflow(run, scope=LOCAL)).compiled.flow is not None
    return (idle_text(row, flow=flow), Exit.DONE) if row.status == "waiting" else ("", None)


def _no_runs(location: JournalLocation, wanted: _Wanted) -> str:
    """Say that there are no runs of the kind that was asked for, and of what there are."""
    anything = _Wanted(None, None, LOCAL)
    kept = location.file.is_file()
    everything = asyncio.run(_rows(location, anything, _MANY))[0] if kept else []
    if not everything:
        return f"no runs; {how_to_start(location.workspace)}"
    kind = " ".join(["no", *([wanted.status] if wanted.status else []), "runs"])
    if wanted.people != LOCAL:
        kind += f" that ask {' or '.join(wanted.people.addresses)}"
    if wanted.workflow is None:
        return f"{kind}; see all: weft runs list"
    names = ", ".join(sorted({row.workflow for row in everything}))
    return f"{kind} of {wanted.workflow}; there are runs of: {names}"


def _print(
    event: Event, run: str, workflow: Workflow, streams: Streams, audience: Audience | None
) -> None:
    if audience is not None:
        seen = user_event_data(event, run, workflow, audience)
        if seen is not None:
            streams.result(document_line({"event": seen}))
    elif streams.settings.json:
        streams.result(document_line({"event": event_data(event, run, workflow)}))
    else:
        kind = KIND_NAMES[type(event.data)]
        head = clean(f"{event.seq:>4}  {at_time(event.at, '%H:%M:%S')}  {kind:<17}  ")
        line = head + clean(summary(event, workflow))
        terminal = streams.settings.terminal
        streams.result((shortened(line, streams.settings.columns) if terminal else line).rstrip())
    finish()


async def _rows(
    location: JournalLocation, wanted: _Wanted, limit: int
) -> tuple[list[RunRow], Sequence[RequestRow]]:
    async with hosted(location, reading=True) as host:
        return await _found(host, wanted, limit)


async def _page(location: JournalLocation, wanted: _Wanted, limit: int) -> list[dict[str, Any]]:
    """Return runs with what each of them asks."""
    async with hosted(location, reading=True) as host:
        rows, asked = await _found(host, wanted, limit)
        listed = {row.run for row in rows}
        asked = [it for it in asked if it.run in listed]
        return runs_data(rows, asked, await answer_schemas(host, asked))


async def _found(
    host: Host, wanted: _Wanted, limit: int
) -> tuple[list[RunRow], Sequence[RequestRow]]:
    """Return runs and open questions: those of all, or of whom somebody acts as."""
    status, workflow, people = wanted
    if people == LOCAL:
        rows = await host.runs(scope=LOCAL, status=status, workflow=workflow, limit=limit)
        return rows, await host.requests(scope=Scope(LOCAL.app))
    asked = [it for it in await host.requests(scope=people) if is_asked_of(it, people)]
    rows: list[RunRow] = []
    for run in {it.run for it in asked}:
        with suppress(AccessDenied):  # It is the run of somebody else.
            rows.append(await host.run(run, scope=LOCAL))
    rows = [it for it in rows if status in (None, it.status) and workflow in (None, it.workflow)]
    return sorted(rows, key=lambda it: (it.started_at, it.run), reverse=True)[:limit], asked


def milliseconds(text: str) -> int:
    """Read a span of time."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise usage(f'"{text}" is no span of time', "write a number and s, m, h, d or w: 30d")
    return round(float(found[1]) * _SECONDS[found[2]] * 1000)


def _agreed(found: Pruned, streams: Streams, *, yes: bool) -> bool:
    if yes:
        return True
    if not stdin_is_terminal() or streams.settings.json:
        raise usage("removing runs cannot be undone", "look first: --dry-run", "then: --yes")
    try:
        typed = read_line(f"Remove {_counts(found)}? (y/n): ")
    except EOFError:
        return False
    return typed.strip().lower() in {"y", "yes"}


def _counts(found: Pruned) -> str:
    runs, events = counted(found.runs, "run"), counted(found.events, "event")
    return f"{runs}, {events}, {found.bytes:,} bytes"
