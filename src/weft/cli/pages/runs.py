"""Runs as results: a list, one run with its open requests, and the outcome of a followed run."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from shlex import quote
from typing import ClassVar, Final, Self, cast

from weft.app.folders import LOCAL
from weft.cli.failure import Exit, Failure, code_of
from weft.cli.hosting import (
    JournalLocation,
    answer_schemas,
    how_to_resume,
    is_asked_of,
    is_stopped,
    short,
)
from weft.cli.pages.flow import fields_of
from weft.cli.results import Hidden, Page, Result, print_failure
from weft.cli.streams import Streams, at_time, clean, finish, shortened, value_text
from weft.engine.events import Spent
from weft.engine.flow.plan import APPROVAL
from weft.engine.rows import RequestRow, RunRow
from weft.findings import Json
from weft.inspect.run import spending
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.wire.rows import Schemas, run_data, runs_data

#: In a narrower terminal a run takes two lines.
_NARROW: Final = 80

#: The first words of a run are cut to the width of the terminal, but never below this.
_LEAST_WORDS: Final = 12

_HEAD: Final = ("RUN", "STATUS", "WORKFLOW", "STARTED", "TURNS", "MODEL", "FIRST WORDS")

_STYLES: Final = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "max_turns": "red",
    "stopped": "red",
    "waiting": "yellow",
    "running": "cyan",
}


@dataclass(frozen=True)
class RunList(Result):
    """Runs, each with its open requests."""

    rows: Hidden[Sequence[RunRow]]
    requests: Hidden[Sequence[RequestRow]]
    schemas: Hidden[Schemas]
    location: Hidden[JournalLocation]
    #: The idle boards: they wait, and have no open request.
    idle: Hidden[AbstractSet[str]] = frozenset()
    #: The models that were chosen for runs, by run.
    models: Hidden[Mapping[str, str]] = field(default_factory=dict[str, str])
    #: Printed after the list, or in place of an empty one.
    note: Hidden[str] = ""
    outcome: Hidden[Exit] = Exit.DONE

    @property
    def exit(self) -> Exit:
        """The exit code of the command."""
        return self.outcome

    def content(self) -> dict[str, Json]:
        """Return the runs, each with its own requests."""
        return {"runs": runs_data(self.rows, self.requests, self.schemas)}

    def show(self, streams: Streams) -> None:
        """Print a table; for programs whole and with tabs, for people as wide as the terminal."""
        if self.rows:
            self._print(streams)
            self._note_stopped(streams)
        if self.note:
            streams.note(self.note)

    def _print(self, streams: Streams) -> None:
        columns = streams.settings.columns
        if not streams.settings.terminal:
            streams.rows([(row.run, *self._cells(row, "%Y-%m-%dT%H:%M:%S%z")) for row in self.rows])
        elif columns < _NARROW:
            for row in self.rows:
                status, workflow, started, _, model, words = self._cells(row, "%m-%d %H:%M")
                painted = streams.paint(status, _STYLES.get(status, ""))
                streams.result(f"{short(row.run)}  {painted}  {started}  {clean(model)}".rstrip())
                second = clean(f"  {workflow}: {words}" if words else f"  {workflow}")
                streams.result(shortened(second, columns))
        else:
            table = [(short(row.run), *self._cells(row, "%m-%d %H:%M")) for row in self.rows]
            streams.rows([_HEAD, *table], styles=_STYLES, columns=columns, least_last=_LEAST_WORDS)

    def _cells(self, row: RunRow, time_format: str) -> tuple[str, ...]:
        fork = f"(fork of {short(row.parent)})" if row.parent else ""
        return (
            "idle" if row.run in self.idle else _status(row),
            row.workflow,
            at_time(row.started_at, time_format),
            str(row.turns),
            self.models.get(row.run, ""),
            " ".join([fork, *row.preview.split()]).strip(),
        )

    def _note_stopped(self, streams: Streams) -> None:
        """Name the command that continues the runs whose processes have died."""
        dead = [row.run for row in self.rows if is_stopped(row)]
        if dead:
            what = f"run {short(dead[0])} has" if len(dead) == 1 else f"{len(dead)} runs have"
            which = dead[0] if len(dead) == 1 else "--all"
            options = self.location.options
            streams.note(f"{what} no process; continue: weft runs resume {which}{options}")


@dataclass(frozen=True)
class RunStatus(Result):
    """The status of one run; printed for people as a note."""

    is_last_line: ClassVar[bool] = True

    row: Hidden[RunRow]
    requests: Hidden[Sequence[RequestRow]]
    schemas: Hidden[Schemas]
    location: Hidden[JournalLocation]
    #: The values of a flow.
    values: Hidden[Mapping[str, Json] | None] = None

    @classmethod
    async def read(cls, host: Host, run: str, location: JournalLocation, **more: object) -> Self:
        """Read a run with its open requests."""
        row = await host.run(run, scope=LOCAL)
        requests = await host.requests(scope=LOCAL, run=run)
        schemas = await answer_schemas(host, requests)
        return cls(row, requests, schemas, location, **more)  # pyright: ignore[reportArgumentType]

    def content(self) -> dict[str, Json]:
        """Return the run with its requests, and the values of a flow."""
        values = {} if self.values is None else {"values": self.values}
        return {"run": run_data(self.row, self.requests, self.schemas), **values}

    @property
    def is_idle(self) -> bool:
        """Whether the run waits without an open request: an idle board, or a flow that retries."""
        return self.row.status == "waiting" and not self.requests

    @property
    def inspect(self) -> str:
        """The command that inspects the run."""
        return f"weft inspect {self.row.run}{self.location.options}"

    def show(self, streams: Streams) -> None:
        """Print the status, and the next command."""
        row = self.row
        if row.status == "ended" or self.is_idle:
            status = outcome_text(row) if row.status == "ended" else idle_text(row)
            command = f"inspect: {self.inspect}"
        elif self.requests:
            status = f"run {row.run} waits for {waited_for(self.requests)}"
            count = len(self.requests)
            command = f"answer: {answer_command(self.location, row, self.requests[0], count)}"
        else:
            status = f"run {row.run} is unfinished and has no open request"
            command = how_to_resume(row, self.location)
        style = "bold green" if row.outcome == "completed" else "bold"
        streams.note(streams.paint_error(status, style))
        streams.note(f"  {command}")


@dataclass(frozen=True)
class RunOutcome(RunStatus):
    """The outcome of a run that was followed to its end, or until it waits."""

    #: The turn that failed, where it is not the last one.
    failed_turn: Hidden[int] = 0

    @property
    def exit(self) -> Exit:
        """The exit code: 0 for a completed run and an idle board, 4 for one that waits."""
        if self.is_idle:
            return Exit.DONE
        if self.row.status != "ended":
            return Exit.WAITING
        return Exit.DONE if self.row.outcome == "completed" else Exit.FAILED

    def show(self, streams: Streams) -> None:
        """Print the values of a flow, and how the run ended or what it waits for."""
        row = self.row
        if self.requests and row.status != "ended":
            streams.problem(waiting_text(streams, self.location, row, self.requests))
            return
        if row.status not in ("ended", "waiting"):
            streams.problem(f"run {row.run} is unfinished: {how_to_resume(row, self.location)}")
            return
        if row.status == "ended":
            for name, value in (self.values or {}).items():
                streams.result(clean(f"{name} = {value_text(value)}"))
            finish()
        if row.outcome in ("failed", "max_turns"):
            hint = (f"see what happened: {self.inspect}", self._repeat)
            failure = Failure(Exit.FAILED, outcome_text(row), hint=tuple(filter(None, hint)))
            print_failure(failure, streams)
            return
        # A stop that was asked for is not an error.
        style = "bold yellow" if row.outcome == "cancelled" else "bold green"
        status = outcome_text(row) if row.status == "ended" else idle_text(row)
        streams.note(streams.paint_error(status, style))
        streams.note(f"  inspect: {self.inspect}")

    @property
    def _repeat(self) -> str:
        return repeat_turn(self.location, self.row, self.failed_turn) if self.is_failed else ""

    @property
    def is_failed(self) -> bool:
        """Whether the run failed in a turn that can be repeated."""
        return self.row.outcome == "failed" and bool(self.row.turns)


@dataclass(frozen=True)
class RunDetails(RunStatus):
    """One run with its facts, its open requests and the commands that answer them."""

    is_last_line: ClassVar[bool] = False

    workflow: Hidden[Workflow | None] = None
    #: Whether the run waits without any open request, shown or not.
    waits_idle: Hidden[bool] = False
    model: Hidden[str] = ""
    #: The command that promotes a generated package.
    promote: Hidden[str] = ""

    def show(self, streams: Streams) -> None:
        """Print the page of the run."""
        row, page, workflow = self.row, Page(streams), cast("Workflow", self.workflow)
        page.title(f"run {row.run}")
        spent = spending(
            Spent(
                calls=row.calls,
                input_tokens=row.input_tokens,
                output_tokens=row.output_tokens,
                cost_usd=row.cost_usd,
                unpriced=row.unpriced,
                uncounted=row.uncounted,
            )
        )
        facts = {
            "workflow": f"{row.workflow} {row.digest[:12]}",
            "about": " ".join(workflow.spec.orchestrator.description.split()),
            "status": _idle_status(workflow) if self.waits_idle else _long_status(row),
            "model": self.model,
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
            page.text(f"resume    weft runs resume {row.run}{self.location.options}", 2)
        for request in self.requests:
            _add_request(page, request, workflow)
            command = answer_command(self.location, row, request, len(self.requests))
            page.text(f"answer    {command}", 2)
        if self.promote:
            page.text(f"promote   {self.promote}", 0)
        streams.result(str(page))


def _idle_status(workflow: Workflow) -> str:
    if workflow.compiled.flow is not None:
        return "waiting: for the next attempt at a step"
    return "idle: it waits for artifacts"


def _add_request(page: Page, request: RequestRow, workflow: Workflow) -> None:
    whom = f" {request.addressee}" if request.addressee else ""
    what = "waits for a message" if request.kind == "chat" else f"{request.tool} asks{whom}"
    page.title(f"{request.agent}: {what}")
    page.line(f"request   {request.id}")
    if request.expires_at is not None:
        page.line(f"expires   {at_time(request.expires_at)}")
    if request.kind == "ui":
        page.text(f"shows     {value_text(request.payload)}", 2)
        form = workflow.forms.get(request.tool or "")
        if form and form.answer_schema is not None:
            page.text(f"takes     {value_text(form.answer_schema)}", 2)


def _status(row: RunRow) -> str:
    return row.outcome or ("stopped" if is_stopped(row) else row.status)


def _long_status(row: RunRow) -> str:
    if is_stopped(row):
        last = max(row.heartbeat, row.changed_at)
        return f"stopped: no process has worked on it since {at_time(last)}"
    return f"{_status(row)}: {row.reason}" if row.reason else _status(row)


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
    return f"an answer to {', '.join(dict.fromkeys(map(_asking, requests)))}"


def _asking(request: RequestRow) -> str:
    return f"{request.tool or ''}{f' from {request.addressee}' if request.addressee else ''}"


def answer_command(location: JournalLocation, row: RunRow, request: RequestRow, count: int) -> str:
    """Return the command that answers a request; of several, it names the request."""
    name = f" {quote(request.id)}" if count > 1 else ""
    value = "TEXT" if request.kind == "chat" else "--json-value JSON"
    if (request.tool or "").startswith(APPROVAL):
        value = quote(next(iter(_approval_options(request.payload)), "TEXT"))
    whom = "" if is_asked_of(request, LOCAL) else f" --as {quote(request.addressee)}"
    return f"weft runs answer {row.run}{name} {value}{whom}{location.options}"


def _approval_options(payload: Json) -> list[str]:
    options = cast("list[Json]", fields_of(payload).get("options") or [])
    return [str(option) for option in options]
