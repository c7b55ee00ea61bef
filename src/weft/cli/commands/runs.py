"""weft runs list, show, tail, cancel and delete."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias, cast

from cyclopts import Parameter

from weft.app.generation import read_generation
from weft.cli.chat.conversation import PATIENCE, not_moving, subscribed
from weft.cli.chat.person import read_line, stdin_is_terminal
from weft.cli.failure import Exit, usage
from weft.cli.hosting import (
    JournalFile,
    JournalLocation,
    Output,
    People,
    RunName,
    ServerUrl,
    acting_as,
    find_run,
    find_server,
    hosted,
    how_to_resume,
    is_asked_of,
    is_stopped,
    locate_journal,
    locate_runs,
)
from weft.cli.pages.events import summary
from weft.cli.pages.runs import (
    ListedRun,
    RunStatus,
    details_page,
    how_to_continue,
    idle_text,
    outcome_text,
    run_table,
    waiting_text,
)
from weft.cli.paths import how_to_start
from weft.cli.promotion import how_to_promote
from weft.cli.results import Result, document
from weft.cli.scope import command_scope, scope_options
from weft.cli.starting import models_line
from weft.cli.streams import (
    Streams,
    at_time,
    clean,
    counted,
    finish,
    shortened,
)
from weft.context.audience import Audience
from weft.engine.events import KIND_NAMES, Event
from weft.engine.rows import OpenRequest, RunRow
from weft.errors import AccessDenied, LinkError, WeftError
from weft.generator.steps import is_generator
from weft.ports.scope import Scope
from weft.ports.store import Pruned
from weft.runtime.host import Host
from weft.runtime.signals import Stop
from weft.runtime.workflow import Workflow
from weft.wire.events import event_data, user_event_data
from weft.wire.rows import run_data

#: How many runs are read at once.
_PAGE: Final = 500

#: Seconds to wait for a run that stops after its turn: no process may be working on it.
_MOMENT: Final = 2.0

#: Spans of time: 30d, 12h, 2w.
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])")

_Status: TypeAlias = Literal["running", "waiting", "ended"]
#: The status of a run, or the outcome of one that ended.
_Filter: TypeAlias = Literal["running", "waiting", "ended", "completed", "failed", "cancelled"]


class _Wanted(NamedTuple):
    """Which runs are listed."""

    status: _Filter | None
    workflow: str | None
    people: Scope
    #: Whether the runs of all tenants and users are listed.
    all_apps: bool = False


def list_runs(
    *,
    status: Annotated[_Filter | None, Parameter(help="Only runs with this status.")] = None,
    workflow: Annotated[
        str | None, Parameter(metavar="NAME", help="Only runs of this workflow.")
    ] = None,
    limit: Annotated[int, Parameter(help="Number of runs, newest first.")] = 20,
    as_: People = (),
    all_apps: Annotated[
        bool, Parameter(help="Runs of all tenants and users: for the operator of the journal.")
    ] = False,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """List runs, newest first."""
    if all_apps and (as_ or scope_options()):
        raise usage("--all-apps lists the runs of everyone", "leave out --as, --app and --user")
    if limit < 1:
        raise usage(f'invalid value "{limit}" for --limit', "use a number above 0")
    location = locate_runs(streams, journal, server, must_exist=journal is not None)
    if all_apps and location.server is not None:
        raise usage("a server lists the runs of one tenant", "leave out --all-apps")
    wanted = _Wanted(status, workflow, acting_as(as_), all_apps=all_apps)
    if location.is_missing:
        return Result({"runs": []}, notes=[f"no runs; {how_to_start(location.workspace)}"])

    async def read() -> Result:
        async with hosted(location, reading=True) as host:
            # One more than is shown, to know whether there are more.
            found, asked = await _find_runs(host, wanted, limit + 1)
            rows = found[:limit]
            if not rows:
                return Result({"runs": []}, notes=[await _no_runs(host, location, wanted)])
            more = f"there are more runs than these {limit}: use --limit N"
            notes = [more] if len(found) > limit else []
            return await run_list(
                host, rows, asked, location, streams, notes=notes, all_apps=all_apps
            )

    return asyncio.run(read())


async def run_list(
    host: Host,
    rows: Sequence[RunRow],
    asked: Sequence[OpenRequest],
    location: JournalLocation,
    streams: Streams,
    *,
    notes: Sequence[str] = (),
    outcome: Exit = Exit.DONE,
    all_apps: bool = False,
) -> Result:
    """Return runs as a list, with their requests and models."""
    listed: list[ListedRun] = []
    for row in rows:
        requests = [request for request in asked if request.run == row.run]
        run = ListedRun(row, requests)
        with suppress(WeftError):  # A damaged package must not prevent the list.
            workflow = await host.workflow(row.run, scope=Scope(row.app, row.user))
            idle = row.status == "waiting" and not requests and workflow.compiled.board is not None
            run = ListedRun(row, requests, await _models(host, row, workflow), idle)
        listed.append(run)
    return Result(
        {"runs": [run_data(row, asked) for row in rows]},
        run_table(listed, streams, all_apps=all_apps) if listed else "",
        [*how_to_continue(rows, location), *notes],
        outcome=outcome,
    )


async def _models(host: Host, row: RunRow, workflow: Workflow) -> str:
    """Return the models of a run."""
    state = await host.state(row.run, scope=Scope(row.app, row.user), at=1)
    line = models_line(workflow, state.model, begins=False)
    return line.partition(": ")[2].partition(" (")[0]


def show(
    run: RunName,
    /,
    *,
    as_: People = (),
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Show one run, its open requests, and the commands that answer them."""
    location = locate_runs(streams, journal, server, must_exist=True)
    people = acting_as(as_)

    async def read() -> Result:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run)
            everything = await host.requests(scope=command_scope(), run=row.run)
            requests = [each for each in everything if not as_ or is_asked_of(each, people)]
            found = RunStatus(row=row, requests=requests, location=location)
            if streams.settings.json:  # The package of the run may be damaged.
                return found
            workflow = await host.workflow(row.run, scope=command_scope())
            promote = ""
            if is_generator(workflow.spec) and location.server is None:
                generation = read_generation(await host.state(row.run, scope=command_scope()))
                promote = how_to_promote(row, generation, location)
            waits_idle = row.status == "waiting" and not everything
            models = await _models(host, row, workflow)
            page = details_page(
                found, workflow, streams, waits_idle=waits_idle, models=models, promote=promote
            )
            return Result(found.content(), page)

    return asyncio.run(read())


def tail(
    run: RunName,
    /,
    *,
    after: Annotated[int, Parameter(metavar="N", help="Start after this event.")] = 0,
    as_user: Annotated[bool, Parameter(help="Only what an end user may see, as JSON.")] = False,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Print the events of a run, and follow it until it ends."""
    location = locate_runs(streams, journal, server, must_exist=True)

    async def read() -> Result:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run)
            workflow = await host.workflow(row.run, scope=command_scope())
            audience = Audience(workflow.spec, row.user) if as_user else None
            known = ""
            async with subscribed(host, row.run, after=after) as news:
                while True:
                    # Checked again and again: the process that works on it may die later.
                    if not await news.arrives_within(PATIENCE):
                        reason, left = await _why_idle(host, row.run, location, streams)
                        if reason not in ("", known):
                            streams.problem(reason)
                        if left is not None and not stdin_is_terminal():
                            return Result(outcome=left)
                        known = reason
                        continue
                    item, known = await news.item(), ""
                    if item is None:
                        return Result()
                    if isinstance(item, Event):
                        _print_event(item, row.run, workflow, streams, audience)

    return asyncio.run(read())


async def _why_idle(
    host: Host, run: str, location: JournalLocation, streams: Streams
) -> tuple[str, Exit | None]:
    """Return why a run does not move, and the exit code if only a person can change that."""
    row = await host.run(run, scope=command_scope())
    if row.status == "running":
        stopped = is_stopped(row)  # Before the text, which must not be older.
        return not_moving(row, location), Exit.WAITING if stopped else None
    asked = await host.requests(scope=command_scope(), run=run)
    if asked:
        return waiting_text(streams, location, row, asked), Exit.WAITING
    flow = (await host.workflow(run, scope=command_scope())).compiled.flow is not None
    return (idle_text(row, flow=flow), Exit.DONE) if row.status == "waiting" else ("", None)


def _print_event(
    event: Event, run: str, workflow: Workflow, streams: Streams, audience: Audience | None
) -> None:
    if audience is not None:
        seen = user_event_data(event, run, workflow, audience)
        if seen is not None:
            streams.result(document({"event": seen}, line=True))
    elif streams.settings.json:
        streams.result(document({"event": event_data(event, run, workflow)}, line=True))
    else:
        kind = KIND_NAMES[type(event.data)]
        head = clean(f"{event.seq:>4}  {at_time(event.at, '%H:%M:%S')}  {kind:<17}  ")
        line = head + clean(summary(event, workflow))
        terminal = streams.settings.terminal
        streams.result((shortened(line, streams.settings.columns) if terminal else line).rstrip())
    finish()


def cancel(
    run: RunName,
    /,
    *,
    drain: Annotated[bool, Parameter(help="Finish the current turn first.")] = False,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Stop a run now, or after its current turn."""
    location = locate_runs(streams, journal, server, must_exist=True)

    async def work() -> Result:
        has_code = await _has_code(location, run)
        async with hosted(location, reading=not has_code) as host:
            row = await find_run(host, run)
            await host.deliver(
                row.run, Stop("after_turn" if drain else "now"), scope=command_scope()
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(host.settled(row.run, scope=command_scope()), _MOMENT)
            stopped = await RunStatus.read(host, row.run, location)
            return Result(stopped.content(), _when_it_stops(stopped.row, location))

    return asyncio.run(work())


def _when_it_stops(row: RunRow, location: JournalLocation) -> str:
    """Return how a run that was asked to stop has ended, or when it will."""
    if row.status == "ended":
        return outcome_text(row)
    if row.status == "waiting":
        return f"run {row.run} stops after the turn that waits for a person"
    return f"run {row.run} stops after its turn; {how_to_resume(row, location)}"


async def _has_code(location: JournalLocation, typed: str) -> bool:
    """Tell whether the code of a run is available; a stop needs it only to undo steps."""
    async with hosted(location, reading=True) as host:
        row = await find_run(host, typed)
        workflow = await host.workflow(row.run, scope=command_scope())
        flow = workflow.spec.flow
        if workflow.missing is not None and flow is not None and flow.compensate_on_cancel:
            message = f"stopping run {row.run} undoes its steps (compensate_on_cancel)"
            raise LinkError(f"{message}: {workflow.missing}", workflow.missing.findings)
        return workflow.missing is None


def delete(
    *,
    older_than: Annotated[
        str, Parameter(metavar="SPAN", help="Runs that ended longer ago than this: 30d, 12h, 2w.")
    ],
    dry_run: Annotated[
        bool, Parameter(help="Print what would be deleted, delete nothing.")
    ] = False,
    yes: Annotated[bool, Parameter(help="Delete without asking.")] = False,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Delete runs that ended long ago, with everything that belongs to them alone."""
    if find_server(streams.settings.workspace, journal, None) is not None:
        raise usage(
            "WEFT_SERVER names a server, and runs are deleted only in their store",
            "where the store is, name it: --journal FILE",
        )
    location = locate_journal(streams, journal, must_exist=True)
    before = time.time_ns() // 1_000_000 - milliseconds(older_than)

    async def work(*, dry: bool) -> Pruned:
        async with hosted(location, reading=True) as host:
            return await host.prune(scope=command_scope(), ended_before=before, dry_run=dry)

    found = asyncio.run(work(dry=True))
    wanted = found.runs > 0 and not dry_run
    deletes = wanted and _confirm(found, streams, yes=yes)
    if deletes:
        found = asyncio.run(work(dry=False))
    text = f"{'deleted' if deletes else 'to delete'}: {_counts(found)}"
    notes = ["the journal file keeps its size; later runs reuse the free space"] if deletes else []
    data = {"runs": found.runs, "events": found.events, "bytes": found.bytes, "deleted": deletes}
    return Result(data, "nothing deleted" if wanted and not deletes else text, notes)


def _confirm(found: Pruned, streams: Streams, *, yes: bool) -> bool:
    if yes:
        return True
    if not stdin_is_terminal() or streams.settings.json:
        raise usage("deleting runs cannot be undone", "look first: --dry-run", "then: --yes")
    try:
        typed = read_line(f"Delete {_counts(found)}? (y/n): ")
    except EOFError:
        return False
    return typed.strip().lower() in {"y", "yes"}


def _counts(found: Pruned) -> str:
    runs, events = counted(found.runs, "run"), counted(found.events, "event")
    return f"{runs}, {events}, {found.bytes:,} bytes"


async def _no_runs(host: Host, location: JournalLocation, wanted: _Wanted) -> str:
    """Return that no run matches, and which runs there are."""
    every = _Wanted(None, None, command_scope(), all_apps=wanted.all_apps)
    everything, _ = await _find_runs(host, every, _PAGE)
    if not everything and location.server is not None:
        return f"no runs; start one: weft run NAME hello{location.options}"
    if not everything:
        return f"no runs; {how_to_start(location.workspace)}"
    kind = " ".join(["no", *([wanted.status] if wanted.status else []), "runs"])
    if wanted.people != command_scope():
        kind += f" with requests for {' or '.join(wanted.people.addresses)}"
    if wanted.workflow is None:
        every_app = " --all-apps" if wanted.all_apps else ""
        return f"{kind}; list all: weft runs list{every_app}{location.options}"
    names = ", ".join(sorted({row.workflow for row in everything}))
    return f"{kind} of {wanted.workflow}; there are runs of: {names}"


async def _find_runs(
    host: Host, wanted: _Wanted, limit: int
) -> tuple[list[RunRow], Sequence[OpenRequest]]:
    """Return runs and open requests: of everyone, or of those that --as names."""
    if wanted.all_apps:
        return await _runs_of_all(host, wanted, limit)
    if wanted.people == command_scope():
        rows = await _newest(host, wanted, command_scope(), limit)
        return rows, await host.requests(scope=Scope.operator(command_scope().app))
    requests = await host.requests(scope=wanted.people)
    asked = [request for request in requests if is_asked_of(request, wanted.people)]
    rows = list[RunRow]()
    for run in {request.run for request in asked}:
        with suppress(AccessDenied):  # The run of another user.
            rows.append(await host.run(run, scope=command_scope()))
    rows = [row for row in rows if _matches(row, wanted)]
    return sorted(rows, key=lambda row: (row.started_at, row.run), reverse=True)[:limit], asked


async def _runs_of_all(
    host: Host, wanted: _Wanted, limit: int
) -> tuple[list[RunRow], Sequence[OpenRequest]]:
    """Return the newest runs of all tenants, and the open requests of these tenants."""
    rows: list[RunRow] = []
    asked: list[OpenRequest] = []
    for app in await host.apps():
        everyone = Scope.operator(app)
        rows += await _newest(host, wanted, everyone, limit)
        asked += await host.requests(scope=everyone)
    return sorted(rows, key=lambda row: (row.started_at, row.run), reverse=True)[:limit], asked


async def _newest(host: Host, wanted: _Wanted, scope: Scope, limit: int) -> list[RunRow]:
    """Return the newest runs of a scope that match."""
    rows: list[RunRow] = []
    async for row in _all_runs(host, wanted, scope):
        rows.append(row)
        if len(rows) == limit:
            break
    return rows


async def _all_runs(host: Host, wanted: _Wanted, scope: Scope) -> AsyncIterator[RunRow]:
    """Yield the runs that match, newest first."""
    is_status = wanted.status in (None, "running", "waiting", "ended")
    status = cast("_Status | None", wanted.status) if is_status else "ended"
    before: str | None = None
    while page := await host.runs(
        scope=scope, status=status, workflow=wanted.workflow, before=before, limit=_PAGE
    ):
        for row in page:
            if _matches(row, wanted):
                yield row
        before = page[-1].run


def _matches(row: RunRow, wanted: _Wanted) -> bool:
    is_status = wanted.status in (None, row.status, row.outcome)
    return is_status and wanted.workflow in (None, row.workflow)


def milliseconds(text: str) -> int:
    """Return a span of time in milliseconds."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise usage(
            f'invalid span of time "{text}"', "write a number and s, m, h, d or w, such as 30d"
        )
    return round(float(found[1]) * _SECONDS[found[2]] * 1000)
