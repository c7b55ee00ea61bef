"""Runs as results: a list, one run with its open requests, and the outcome of a followed run."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from shlex import quote
from typing import Any, Final, NamedTuple, Self, cast

from weft.cli.failure import Exit, Failure, code_of
from weft.cli.hosting import JournalLocation, how_to_resume, is_asked_of, is_stopped, short
from weft.cli.pages.flow import fields_of
from weft.cli.results import Page, Result
from weft.cli.scope import command_scope, scope_options
from weft.cli.streams import Streams, at_time, clean, shortened, value_text
from weft.engine.flow.plan import APPROVAL
from weft.engine.rows import OpenRequest, RequestRow, RunRow
from weft.engine.state import Spent
from weft.engine.timers import NEVER
from weft.findings import Json
from weft.inspect.run import spending
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.wire.rows import run_data

#: In a narrower terminal a run takes two lines.
_NARROW: Final = 80

#: The first words of a run are cut to the width of the terminal, but never below this.
_LEAST_WORDS: Final = 12

_HEAD: Final = (
    "RUN", "STATUS", "WORKFLOW", "STARTED", "OWNER", "WAITS FOR", "MODEL", "FIRST WORDS",
)  # fmt: skip

#: The length of a short owner: its end, because ids begin with the time.
_SHORT_OWNER: Final = 5

_STYLES: Final = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "max_turns": "red",
    "stopped": "red",
    "queued": "yellow",
    "waiting": "yellow",
    "running": "cyan",
}


class ListedRun(NamedTuple):
    """A run in a list."""

    row: RunRow
    requests: Sequence[OpenRequest] = ()
    models: str = ""
    #: Whether it is an idle board: it waits, and has no open request.
    is_idle: bool = False


def run_table(runs: Sequence[ListedRun], streams: Streams, *, all_apps: bool = False) -> str:
    """Return runs as a table; for programs whole and with tabs, for people as wide as the terminal.

    With `all_apps`, the tenants are named.
    """
    columns, is_terminal = streams.settings.columns, streams.settings.terminal
    time_format = "%m-%d %H:%M" if is_terminal else "%Y-%m-%dT%H:%M:%S%z"
    table = [(run.row.run, *_cells(run, time_format, all_apps=all_apps)) for run in runs]
    if not is_terminal:
        return streams.table(table)
    table = [(short(run), *cells) for run, *cells in table]
    if columns < _NARROW:
        return "\n".join(line for cells in table for line in _two_lines(cells, streams))
    used = [*map(any, zip(*(row[:-1] for row in table), strict=True)), True]
    head, *shown = [tuple(compress(row, used)) for row in (_HEAD, *table)]
    return streams.table(shown, head=head, styles=_STYLES, least=_LEAST_WORDS)


def _two_lines(cells: tuple[str, ...], streams: Streams) -> Iterator[str]:
    """Yield a run as two lines of a narrow terminal."""
    columns = streams.settings.columns
    run, status, workflow, *facts, words = cells
    painted = streams.paint(status, _STYLES.get(status, ""))
    shown = clean("  ".join(filter(None, facts)))
    yield f"{run}  {painted}  {shortened(shown, columns - len(f'{run}  {status}  '))}"
    yield shortened(clean(f"  {workflow}: {words}" if words else f"  {workflow}"), columns)


def _cells(run: ListedRun, time_format: str, *, all_apps: bool) -> tuple[str, ...]:
    row = run.row
    fork = f"(fork of {short(row.parent)})" if row.parent else ""
    return (
        "idle" if run.is_idle else _status(row),
        f"{row.workflow} ({row.app}/{row.user})" if all_apps else row.workflow,
        at_time(row.started_at, time_format),
        f"{row.owner[-_SHORT_OWNER:]} {_age(row)}s" if row.owner else "",
        _waits_for(run, time_format),
        run.models,
        " ".join([fork, *row.preview.split()]).strip(),
    )


def _waits_for(run: ListedRun, time_format: str) -> str:
    """Return what a run waits for; empty if it has ended or a process works on it."""
    row = run.row
    if row.status == "ended" or (row.status == "running" and row.owner):
        return ""
    if run.requests:
        return ", ".join(dict.fromkeys(each.addressee or "person" for each in run.requests))
    if row.status == "running":
        return "worker"
    return "mail" if row.due_at >= NEVER else f"timer at {at_time(row.due_at, time_format)}"


def how_to_continue(rows: Sequence[RunRow], location: JournalLocation) -> list[str]:
    """Return the command that continues the runs that no process works on."""
    stopped = [row for row in rows if is_stopped(row)]
    if len(stopped) == 1:
        row = stopped[0]
        options = location.places + scope_options(Scope(row.app, row.user))
        resume = f"weft runs resume {row.run}{options}"
        return [f"run {short(row.run)} waits for a worker; continue it here: {resume}"]
    worker = f"weft worker{location.places}"
    return [f"{len(stopped)} runs wait for a worker; start one: {worker}"] if stopped else []


@dataclass(frozen=True, kw_only=True)
class RunStatus(Result):
    """The status of one run with its open requests."""

    row: RunRow
    requests: Sequence[OpenRequest]
    location: JournalLocation

    @classmethod
    async def read(cls, host: Host, run: str, location: JournalLocation, **more: Any) -> Self:  # noqa: ANN401 - further fields
        """Read a run with its open requests."""
        row = await host.run(run, scope=command_scope())
        requests = await host.requests(scope=command_scope(), run=run)
        return cls(row=row, requests=requests, location=location, **more)

    def content(self) -> dict[str, Json]:
        """Return the run with its requests."""
        return {"run": run_data(self.row, self.requests)}

    @property
    def is_idle(self) -> bool:
        """Whether the run waits without an open request: an idle board, or a flow that retries."""
        return self.row.status == "waiting" and not self.requests

    @property
    def inspect(self) -> str:
        """The command that inspects the run."""
        return f"weft inspect {self.row.run}{self.location.options}"


def status_result(run: RunStatus, streams: Streams) -> Result:
    """Return the status of a run, and the next command."""
    row = run.row
    if row.status == "ended" or run.is_idle:
        status = outcome_text(row) if row.status == "ended" else idle_text(row)
        command = f"inspect: {run.inspect}"
    elif run.requests:
        status = f"run {row.run} waits for {waited_for(run.requests)}"
        count = len(run.requests)
        command = f"answer: {answer_command(run.location, row, run.requests[0], count)}"
    else:
        status = f"run {row.run} is unfinished and has no open request"
        command = how_to_resume(row, run.location)
    style = "bold green" if row.outcome == "completed" else "bold"
    notes = [streams.paint_error(status, style), f"  {command}"]
    return Result(run.content(), notes=notes, is_last_line=True)


def outcome_result(
    run: RunStatus,
    streams: Streams,
    *,
    values: Mapping[str, Json] | None = None,
    failed_turn: int = 0,
) -> Result:
    """Return the outcome of a run that was followed to its end, or until it waits.

    `values` are those of a flow, `failed_turn` is the turn that failed, where it is not the last.
    The exit code is 0 for a completed run and an idle board, 4 for one that waits.
    """
    row, data = run.row, run.content() | ({} if values is None else {"values": values})
    waits = partial(Result, data, outcome=Exit.WAITING, is_last_line=True)
    if run.requests and row.status != "ended":
        return waits(problems=[waiting_text(streams, run.location, row, run.requests)])
    if row.status not in ("ended", "waiting"):
        resume = how_to_resume(row, run.location)
        return waits(problems=[f"run {row.run} is unfinished: {resume}"])
    shown = (values or {}).items() if row.status == "ended" else ()
    text = "\n".join(clean(f"{name} = {value_text(value)}") for name, value in shown)
    ends = partial(Result, data, text, is_last_line=True)
    if row.outcome in ("failed", "max_turns"):
        hints = [f"see what happened: {run.inspect}"]
        if row.outcome == "failed" and row.turns:
            hints.append(repeat_turn(run.location, row, failed_turn))
        return ends(failure=Failure(Exit.FAILED, outcome_text(row), hint=tuple(hints)))
    # A stop that was asked for is not an error.
    style = "bold yellow" if row.outcome == "cancelled" else "bold green"
    status = outcome_text(row) if row.status == "ended" else idle_text(row)
    outcome = Exit.FAILED if row.outcome == "cancelled" else Exit.DONE
    notes = [streams.paint_error(status, style), f"  inspect: {run.inspect}"]
    return ends(notes=notes, outcome=outcome)


def details_page(
    run: RunStatus,
    workflow: Workflow,
    streams: Streams,
    *,
    waits_idle: bool = False,
    models: str = "",
    promote: str = "",
) -> str:
    """Return one run with its facts, its open requests and the commands that answer them.

    `waits_idle` says whether it waits without any open request, shown or not; `promote` is the
    command that promotes a generated package.
    """
    row, page = run.row, Page(streams)
    page.title(f"run {row.run}")
    spent = spending(Spent(**{name: getattr(row, name) for name in Spent._fields}))
    facts = {
        "workflow": f"{row.workflow} {row.digest[:12]}",
        "about": " ".join(workflow.spec.orchestrator.description.split()),
        "status": _long_status(row, workflow, waits_idle=waits_idle),
        "model": models,
        "owner": f"{row.owner}, heartbeat {_age(row)} s ago" if row.owner else "",
        "started": at_time(row.started_at),
        "changed": at_time(row.changed_at),
        "events": str(row.seq),
        "turns": str(row.turns),
        "calls": f"{row.calls}, {spent.tokens}",
        "cost": spent.cost,
        "fork of": row.parent,
        "words": row.preview,
    }
    page.lines(f"{name:<9} {value}" for name, value in facts.items() if value)
    if is_stopped(row):
        page.text(f"resume    weft runs resume {row.run}{run.location.options}", 2)
    for request in run.requests:
        _add_request(page, request)
        command = answer_command(run.location, row, request, len(run.requests))
        page.text(f"answer    {command}", 2)
    if promote:
        page.text(f"promote   {promote}", 0)
    return str(page)


def _long_status(row: RunRow, workflow: Workflow, *, waits_idle: bool) -> str:
    if waits_idle and workflow.compiled.flow is not None:
        return "waiting: for the next attempt at a step"
    if waits_idle:
        return "idle: it waits for artifacts"
    if is_stopped(row) and not row.owner:
        return "queued: it waits for a worker"
    if is_stopped(row):
        last = max(row.heartbeat, row.changed_at)
        return f"stopped: no process has worked on it since {at_time(last)}"
    return f"{_status(row)}: {row.reason}" if row.reason else _status(row)


def _add_request(page: Page, request: OpenRequest) -> None:
    whom = f" {request.addressee}" if request.addressee else ""
    what = "waits for a message" if request.kind == "chat" else f"{request.tool} asks{whom}"
    page.title(f"{request.agent}: {what}")
    page.line(f"request   {request.id}")
    if request.expires_at is not None:
        page.line(f"expires   {at_time(request.expires_at)}")
    if request.kind == "ui":
        page.text(f"shows     {value_text(request.payload)}", 2)
        if request.response_schema is not None:
            page.text(f"takes     {value_text(dict(request.response_schema))}", 2)


def _age(row: RunRow) -> int:
    return max(time.time_ns() // 1_000_000 - row.heartbeat, 0) // 1000


def _status(row: RunRow) -> str:
    if is_stopped(row):
        return "stopped" if row.owner else "queued"
    return row.outcome or row.status


#: Outcomes in messages.
_OUTCOMES: Final = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "was stopped",
    "max_turns": "reached its limit of turns",
}


def idle_text(row: RunRow, *, flow: bool = False) -> str:
    """Return what an idle board waits for, or a flow between two attempts."""
    if flow:
        return f"run {row.run} waits for its next attempt at a step"
    return f"run {row.run} is idle: it waits for artifacts or a schedule"


def outcome_text(row: RunRow) -> str:
    """Return how a run ended."""
    return f"run {row.run} {_OUTCOMES[row.outcome or 'failed']}: {row.reason}"


def repeat_turn(location: JournalLocation, row: RunRow, failed: int = 0) -> str:
    """Return the command that repeats the failed turn of a run, or its first; empty if none.

    `failed` is the failed turn if it is not the last one: a flow undoes its steps afterwards.
    """
    if not row.turns:
        return ""
    turn = (failed or row.turns) if row.outcome == "failed" else 1
    return f"repeat turn {turn}: weft replay {row.run} --fork {turn}{location.options}"


def waiting_text(
    streams: Streams, location: JournalLocation, row: RunRow, requests: Sequence[RequestRow]
) -> str:
    """Return what a run waits for, and the commands that answer it."""
    paint = streams.paint_error
    head = paint(f"waiting[{code_of(Exit.WAITING)}]", "bold yellow")
    commands = {
        "answer": answer_command(location, row, requests[0], len(requests)),
        "chat": f"weft chat --run {row.run}{location.options}",
        "more": f"weft explain {code_of(Exit.WAITING)}",
    }
    lines = [f"  {paint(f'{name}:'.ljust(8), 'cyan')}{text}" for name, text in commands.items()]
    status = paint(f"run {row.run} waits for {waited_for(requests)}", "bold")
    return "\n".join([f"{head}: {status}", *lines])


def waited_for(requests: Sequence[RequestRow]) -> str:
    """Return what open requests ask for."""
    if any(request.kind == "chat" for request in requests):
        return "a message"
    asked = [
        f"{request.tool or ''}{f' from {request.addressee}' if request.addressee else ''}"
        for request in requests
    ]
    return f"an answer to {', '.join(dict.fromkeys(asked))}"


def answer_command(location: JournalLocation, row: RunRow, request: RequestRow, count: int) -> str:
    """Return the command that answers a request; of several, it names the request."""
    name = f" {quote(request.id)}" if count > 1 else ""
    value = "TEXT" if request.kind == "chat" else "--json-value JSON"
    if (request.tool or "").startswith(APPROVAL):
        options = cast("list[Json]", fields_of(request.payload).get("options") or ["TEXT"])
        value = quote(str(options[0]))
    is_ours = location.server is not None or is_asked_of(request, command_scope())
    whom = "" if is_ours else f" --as {quote(request.addressee)}"
    return f"weft runs answer {row.run}{name} {value}{whom}{location.options}"
