"""weft runs list, show, tail, cancel, delete and backup."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias, cast

from cyclopts import Parameter

from weft.app.backup import backup_journal
from weft.app.folders import LOCAL
from weft.app.generation import read_generation
from weft.cli.chat.conversation import PATIENCE, not_moving, subscribed
from weft.cli.chat.person import read_line, stdin_is_terminal
from weft.cli.failure import Exit, conflict, usage
from weft.cli.generation import how_to_promote
from weft.cli.hosting import (
    JournalFile,
    JournalLocation,
    Output,
    People,
    RunName,
    acting_as,
    answer_schemas,
    find_run,
    hosted,
    how_to_resume,
    is_asked_of,
    is_stopped,
    locate_journal,
)
from weft.cli.pages.events import summary
from weft.cli.pages.runs import (
    RunDetails,
    RunList,
    RunStatus,
    idle_text,
    outcome_text,
    waiting_text,
)
from weft.cli.paths import how_to_start
from weft.cli.results import Message, Printed, Result, document
from weft.cli.starting import models_line
from weft.cli.streams import (
    Streams,
    at_time,
    clean,
    counted,
    finish,
    require_file_path,
    shortened,
)
from weft.context.audience import Audience
from weft.engine.events import KIND_NAMES, Event
from weft.engine.rows import RequestRow, RunRow
from weft.errors import AccessDenied, LinkError, WeftError
from weft.generator.steps import is_generator
from weft.ports.journal import Pruned
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Stop
from weft.runtime.workflow import Workflow
from weft.wire.events import event_data, user_event_data

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

    status: _Filter | None = None
    workflow: str | None = None
    people: Scope = LOCAL


def list_runs(
    *,
    status: Annotated[_Filter | None, Parameter(help="Only runs with this status.")] = None,
    workflow: Annotated[
        str | None, Parameter(metavar="NAME", help="Only runs of this workflow.")
    ] = None,
    limit: Annotated[int, Parameter(help="Number of runs, newest first.")] = 20,
    as_: People = (),
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """List runs, newest first."""
    if limit < 1:
        raise usage(f'invalid value "{limit}" for --limit', "use a number above 0")
    wanted = _Wanted(status, workflow, acting_as(as_))
    location = locate_journal(streams, journal, must_exist=journal is not None)
    if not location.file.is_file():
        note = f"no runs; {how_to_start(location.workspace)}"
        return RunList((), (), {}, location, note=note)

    async def read() -> Result:
        async with hosted(location, reading=True) as host:
            # One more than is shown tells whether there are more.
            found, asked = await _find_runs(host, wanted, limit + 1)
            rows = found[:limit]
            if not rows:
                note = await _no_runs(host, location, wanted)
                return RunList((), (), {}, location, note=note)
            more = f"there are more runs than these {limit}: use --limit N"
            note = more if len(found) > limit else ""
            return await run_list(host, rows, asked, location, note=note)

    return asyncio.run(read())


async def run_list(
    host: Host,
    rows: list[RunRow],
    asked: Sequence[RequestRow],
    location: JournalLocation,
    *,
    note: str = "",
    outcome: Exit = Exit.DONE,
) -> RunList:
    """Return runs as a list, with their requests and models, and which of them are idle."""
    listed = {row.run for row in rows}
    requests = [request for request in asked if request.run in listed]
    asking = {request.run for request in requests}
    idle: set[str] = set()
    models: dict[str, str] = {}
    for row in rows:
        with suppress(WeftError):  # A damaged package must not prevent the list.
            workflow = await host.workflow(row.run, scope=LOCAL)
            if row.status == "waiting" and row.run not in asking and _is_board(workflow):
                idle.add(row.run)
            models[row.run] = await _model(host, row, workflow)
    schemas = await answer_schemas(host, requests)
    return RunList(rows, requests, schemas, location, idle, models, note, outcome)


def _is_board(workflow: Workflow) -> bool:
    return workflow.compiled.board is not None


async def _model(host: Host, row: RunRow, workflow: Workflow) -> str:
    """Return the models of a run."""
    state = await host.state(row.run, scope=LOCAL, at=1)
    line = models_line(workflow, state.model, begins=False)
    return line.partition(": ")[2].partition(" (")[0]


def show(
    run: RunName,
    /,
    *,
    as_: People = (),
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Show one run, its open requests, and the commands that answer them."""
    people = acting_as(as_)
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> Result:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run)
            everything = await host.requests(scope=LOCAL, run=row.run)
            requests = [each for each in everything if not as_ or is_asked_of(each, people)]
            schemas = await answer_schemas(host, requests)
            if streams.settings.json:  # The package of the run may be damaged.
                return RunDetails(row, requests, schemas, location)
            workflow = await host.workflow(row.run, scope=LOCAL)
            promote = ""
            if is_generator(workflow.spec):
                generation = read_generation(await host.state(row.run, scope=LOCAL))
                promote = how_to_promote(row, generation, location)
            return RunDetails(
                row,
                requests,
                schemas,
                location,
                workflow=workflow,
                waits_idle=row.status == "waiting" and not everything,
                model=await _model(host, row, workflow),
                promote=promote,
            )

    return asyncio.run(read())


def tail(
    run: RunName,
    /,
    *,
    after: Annotated[int, Parameter(metavar="N", help="Start after this event.")] = 0,
    as_user: Annotated[bool, Parameter(help="Only what an end user may see, as JSON.")] = False,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Print the events of a run, and follow it until it ends."""
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> Result:
        async with hosted(location, reading=True) as host:
            row = await find_run(host, run)
            workflow = await host.workflow(row.run, scope=LOCAL)
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
                            return Printed(left)
                        known = reason
                        continue
                    item, known = await news.item(), ""
                    if item is None:
                        return Printed(Exit.DONE)
                    if isinstance(item, Event):
                        _print_event(item, row.run, workflow, streams, audience)

    return asyncio.run(read())


async def _why_idle(
    host: Host, run: str, location: JournalLocation, streams: Streams
) -> tuple[str, Exit | None]:
    """Return why a run does not move, and the exit code if only a person can change that."""
    row = await host.run(run, scope=LOCAL)
    if row.status == "running":
        stopped = is_stopped(row)  # Before the text, which must not be older.
        return not_moving(row, location), Exit.WAITING if stopped else None
    asked = await host.requests(scope=LOCAL, run=run)
    if asked:
        return waiting_text(streams, location, row, asked), Exit.WAITING
    flow = (await host.workflow(run, scope=LOCAL)).compiled.flow is not None
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


@dataclass(frozen=True)
class Cancelled(RunStatus):
    """A run that was asked to stop."""

    is_last_line = False

    def show(self, streams: Streams) -> None:
        """Print how it ended, or when it will."""
        row = self.row
        if row.status == "ended":
            streams.result(outcome_text(row))
        elif row.status == "waiting":
            streams.result(f"run {row.run} stops after the turn that waits for a person")
        else:
            resume = how_to_resume(row, self.location)
            streams.result(f"run {row.run} stops after its turn; {resume}")


def cancel(
    run: RunName,
    /,
    *,
    drain: Annotated[bool, Parameter(help="Finish the current turn first.")] = False,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Stop a run now, or after its current turn."""
    location = locate_journal(streams, journal, must_exist=True)

    async def work() -> Result:
        has_code = await _has_code(location, run)
        async with hosted(location, works=has_code, reading=not has_code) as host:
            row = await find_run(host, run)
            await host.deliver(row.run, Stop("after_turn" if drain else "now"), scope=LOCAL)
            with suppress(TimeoutError):
                await asyncio.wait_for(host.settled(row.run, scope=LOCAL), _MOMENT)
            return await Cancelled.read(host, row.run, location)

    return asyncio.run(work())


async def _has_code(location: JournalLocation, typed: str) -> bool:
    """Tell whether the code of a run is available; a stop needs it only to undo steps."""
    async with hosted(location, reading=True) as host:
        row = await find_run(host, typed)
        workflow = await host.workflow(row.run, scope=LOCAL)
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
    location = locate_journal(streams, journal, must_exist=True)
    before = time.time_ns() // 1_000_000 - milliseconds(older_than)

    async def work(*, dry: bool) -> Pruned:
        async with hosted(location, reading=True) as host:
            return await host.prune(scope=LOCAL, ended_before=before, dry_run=dry)

    found = asyncio.run(work(dry=True))
    wanted = found.runs > 0 and not dry_run
    deletes = wanted and _confirm(found, streams, yes=yes)
    if deletes:
        found = asyncio.run(work(dry=False))
    text = f"{'deleted' if deletes else 'to delete'}: {_counts(found)}"
    notes = ["the journal file keeps its size; later runs reuse the free space"] if deletes else []
    data = {"runs": found.runs, "events": found.events, "bytes": found.bytes, "deleted": deletes}
    return Message(data, "nothing deleted" if wanted and not deletes else text, notes)


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


def backup(
    file: Annotated[Path, Parameter(help="The file to write; it must not exist.")],
    /,
    *,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Copy the journal to a file, with the runs in progress."""
    location = locate_journal(streams, journal, must_exist=True)
    require_file_path(file, example="runs.db")
    if file.exists():
        raise conflict(f"{file} already exists", "name another file")
    size = backup_journal(location.file, file)
    notes = [clean(f"  read it: weft runs list --journal {file}")]
    return Message(
        {"file": str(file), "bytes": size}, clean(f"wrote {file} ({size:,} bytes)"), notes
    )


async def _no_runs(host: Host, location: JournalLocation, wanted: _Wanted) -> str:
    """Return that no run matches, and which runs there are."""
    everything = await host.runs(scope=LOCAL, limit=_PAGE)
    if not everything:
        return f"no runs; {how_to_start(location.workspace)}"
    kind = " ".join(["no", *([wanted.status] if wanted.status else []), "runs"])
    if wanted.people != LOCAL:
        kind += f" with requests for {' or '.join(wanted.people.addresses)}"
    if wanted.workflow is None:
        return f"{kind}; list all: weft runs list"
    names = ", ".join(sorted({row.workflow for row in everything}))
    return f"{kind} of {wanted.workflow}; there are runs of: {names}"


async def _find_runs(
    host: Host, wanted: _Wanted, limit: int
) -> tuple[list[RunRow], Sequence[RequestRow]]:
    """Return runs and open requests: of everyone, or of those that --as names."""
    if wanted.people == LOCAL:
        rows: list[RunRow] = []
        async for row in _all_runs(host, wanted):
            rows.append(row)
            if len(rows) == limit:
                break
        return rows, await host.requests(scope=Scope(LOCAL.app))
    requests = await host.requests(scope=wanted.people)
    asked = [request for request in requests if is_asked_of(request, wanted.people)]
    rows = []
    for run in {request.run for request in asked}:
        with suppress(AccessDenied):  # The run of another user.
            rows.append(await host.run(run, scope=LOCAL))
    rows = [row for row in rows if _matches(row, wanted)]
    return sorted(rows, key=lambda row: (row.started_at, row.run), reverse=True)[:limit], asked


async def _all_runs(host: Host, wanted: _Wanted) -> AsyncIterator[RunRow]:
    """Yield the runs that match, newest first."""
    is_status = wanted.status in (None, "running", "waiting", "ended")
    status = cast("_Status | None", wanted.status) if is_status else "ended"
    before: str | None = None
    while page := await host.runs(
        scope=LOCAL, status=status, workflow=wanted.workflow, before=before, limit=_PAGE
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
