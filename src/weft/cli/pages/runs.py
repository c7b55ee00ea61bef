"""Runs in a list, one run at a glance, and what a run came to or waits for."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from shlex import quote
from typing import Final, cast

from weft.app.folders import LOCAL
from weft.cli.failure import CommandFailed, Exit, Failure, code_of
from weft.cli.formats.documents import document_line
from weft.cli.hosting import JournalLocation, how_to_resume, is_asked_of, is_stopped, short
from weft.cli.pages.flow_lines import fields_of
from weft.cli.pages.page import Page
from weft.cli.streams import Streams, finish
from weft.cli.text import at_time, clean, shortened, value_text
from weft.engine.events import Spent
from weft.engine.flow.plan import APPROVAL
from weft.engine.rows import RequestRow, RunRow
from weft.findings import Json
from weft.inspect.run import spending
from weft.runtime.workflow import Workflow
from weft.wire.rows import Schemas, run_data

#: Below this width a run takes two lines.
_NARROW: Final = 72

#: The first words are cut to what room there is, but never to less than this.
_LEAST_WORDS: Final = 12

_HEAD: Final = ("RUN", "STATUS", "WORKFLOW", "STARTED", "TURNS", "FIRST WORDS")


def print_list(
    rows: Sequence[RunRow], streams: Streams, requests: Sequence[RequestRow] | None = None
) -> None:
    """Print runs: with tabs and whole for programs, to the width of the terminal for people.

    `requests` are the open ones: a run that waits and asks nothing is a board that is idle.
    """
    asking = {row.run for row in rows} if requests is None else {it.run for it in requests}
    cells = partial(_cells, asking)
    if not streams.settings.terminal:
        streams.rows([(row.run, *cells(row, "%Y-%m-%dT%H:%M:%S%z")) for row in rows])
    elif streams.settings.columns < _NARROW:
        for row in rows:
            status, workflow, started, _, words = cells(row, "%m-%d %H:%M")
            streams.result(f"{short(row.run)}  {status}  {started}")
            second = clean(f"  {workflow}: {words}" if words else f"  {workflow}")
            streams.result(shortened(second, streams.settings.columns))
    else:
        table = [(short(row.run), *cells(row, "%m-%d %H:%M")) for row in rows]
        taken = max(sum(len(cell) + 2 for cell in row[:-1]) for row in (_HEAD, *table))
        room = max(streams.settings.columns - taken - 8, _LEAST_WORDS)
        cut = [(*row[:-1], shortened(clean(row[-1]), room)) for row in table]
        streams.rows([_HEAD, *cut])


def run_text(
    row: RunRow,
    requests: Sequence[RequestRow],
    workflow: Workflow,
    location: JournalLocation,
    streams: Streams,
    *,
    idle: bool = False,
) -> str:
    """Return one run at a glance, with its open questions and how they are answered."""
    page = Page(streams)
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
        "status": _idle_status(workflow) if idle else _whole_status(row),
        "started": at_time(row.started_at),
        "changed": at_time(row.changed_at),
        "events": str(row.seq),
        "turns": str(row.turns),
        "calls": f"{row.calls}, {spent.tokens}",
        "cost": spent.cost,
        "parent": row.parent,
        "words": row.preview,
    }
    page.lines(f"{name:<9} {value}" for name, value in facts.items() if value)
    if is_stopped(row):
        page.text(f"resume    weft runs resume {row.run}{location.options}", 2)
    for request in requests:
        _put_question(page, request, workflow)
        page.text(f"answer    {answer_command(location, row, request, len(requests))}", 2)
    return str(page)


def _idle_status(workflow: Workflow) -> str:
    if workflow.compiled.flow is not None:
        return "waiting: for the next attempt at a step"
    return "idle: it waits for artifacts"


def _put_question(page: Page, request: RequestRow, workflow: Workflow) -> None:
    """Put an open question on a page: who asks, until when, what is shown and what is taken."""
    whom = f" {request.addressee}" if request.addressee else ""
    what = "waits for a message" if request.kind == "chat" else f"{request.tool} asks{whom}"
    page.title(f"{request.agent}: {what}")
    page.line(f"question  {request.id}")
    if request.expires_at is not None:
        page.line(f"expires   {at_time(request.expires_at)}")
    if request.kind == "ui":
        page.text(f"shows     {value_text(request.payload)}", 2)
        form = workflow.forms.get(request.tool or "")
        if form and form.answer_schema is not None:
            page.text(f"takes     {value_text(form.answer_schema)}", 2)


def note_stalled_runs(rows: Sequence[RunRow], location: JournalLocation, streams: Streams) -> None:
    """Name the command that continues the runs whose processes have died."""
    dead = [row.run for row in rows if is_stopped(row)]
    if dead:
        what = f"run {short(dead[0])} has" if len(dead) == 1 else f"{len(dead)} runs have"
        which = dead[0] if len(dead) == 1 else "--all"
        streams.note(f"{what} no process; continue: weft runs resume {which}{location.options}")


def _cells(asking: AbstractSet[str], row: RunRow, form: str) -> tuple[str, ...]:
    return (
        "idle" if row.status == "waiting" and row.run not in asking else _status(row),
        row.workflow,
        at_time(row.started_at, form),
        str(row.turns),
        " ".join(row.preview.split()),
    )


def _status(row: RunRow) -> str:
    return row.outcome or ("stopped" if is_stopped(row) else row.status)


def _whole_status(row: RunRow) -> str:
    if is_stopped(row):
        last = max(row.heartbeat, row.changed_at)
        return f"stopped: no process has worked on it since {at_time(last)}"
    return f"{_status(row)}: {row.reason}" if row.reason else _status(row)


#: What an outcome is called in messages.
_OUTCOMES: Final = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "was stopped",
    "max_turns": "used up its turns",
}


def print_outcome(
    streams: Streams,
    location: JournalLocation,
    row: RunRow,
    requests: Sequence[RequestRow],
    schemas: Schemas,
    values: Mapping[str, Json] | None = None,
    failed: int = 0,
) -> Exit:
    """Print what a run came to, and return the exit code for it.

    Of a flow, with the values of its state; `failed` is the turn in which it failed.
    """
    if streams.settings.json:
        shown = {} if values is None else {"values": values}
        streams.result(document_line({"run": run_data(row, requests, schemas), **shown}))
        return _exit_of(row, requests)
    if row.status == "ended":
        for name, value in (values or {}).items():
            streams.result(clean(f"{name} = {value_text(value)}"))
        finish()
        return _ended(streams, location, row, failed)
    if is_idle(row, requests):
        streams.note(streams.paint_error(idle_text(row), "bold green"))
        streams.note(f"  inspect: weft inspect {row.run}{location.options}")
        return Exit.DONE
    streams.problem(waiting_text(streams, location, row, requests))
    return Exit.WAITING


def print_status(
    streams: Streams,
    location: JournalLocation,
    row: RunRow,
    requests: Sequence[RequestRow],
    schemas: Schemas,
) -> None:
    """Print what a run has come to so far."""
    if streams.settings.json:
        streams.result(document_line({"run": run_data(row, requests, schemas)}))
        return
    if row.status == "ended":
        fact = outcome_text(row)
        next_step = f"inspect: weft inspect {row.run}{location.options}"
    elif requests:
        fact = f"run {row.run} waits for {waited_for(requests)}"
        next_step = f"answer: {answer_command(location, row, requests[0], len(requests))}"
    elif is_idle(row, requests):
        fact = idle_text(row)
        next_step = f"inspect: weft inspect {row.run}{location.options}"
    else:
        fact = f"run {row.run} is not over, and asks nothing at present"
        next_step = how_to_resume(row, location)
    style = "bold green" if row.outcome == "completed" else "bold"
    streams.note(streams.paint_error(fact, style))
    streams.note(f"  {next_step}")


def is_idle(row: RunRow, requests: Sequence[RequestRow]) -> bool:
    """Tell whether a run is a board on which nothing is to be done: it waits, and asks nobody."""
    return row.status == "waiting" and not requests


def idle_text(row: RunRow, *, flow: bool = False) -> str:
    """Say that a board has nothing to do, and how it gets something; or a flow until a retry."""
    if flow:
        return f"run {row.run} waits for its next attempt at a step"
    return f"run {row.run} is idle: it waits for artifacts, or for the clock"


def outcome_text(row: RunRow) -> str:
    """Say how a run ended."""
    return f"run {row.run} {_OUTCOMES[row.outcome or 'failed']}: {row.reason}"


def repeat_turn(location: JournalLocation, row: RunRow, failed: int = 0) -> str:
    """Say how to go on from the turn in which a run failed, or from the first; nothing without.

    `failed` is that turn where it is not the last: of a flow, what was done is undone afterwards.
    """
    if not row.turns:
        return ""
    turn = (failed or row.turns) if row.outcome == "failed" else 1
    return f"repeat turn {turn}: weft replay {row.run} --fork {turn}{location.options}"


def waiting_text(
    streams: Streams, location: JournalLocation, row: RunRow, requests: Sequence[RequestRow]
) -> str:
    """Say what a run waits for, and which commands answer it."""
    paint = streams.paint_error
    head = paint(f"waiting[{code_of(Exit.WAITING)}]", "bold yellow")
    lines = [f"{head}: {paint(f'run {row.run} waits for {waited_for(requests)}', 'bold')}"]
    commands = {
        "answer": answer_command(location, row, requests[0], len(requests)),
        "chat": f"weft chat --run {row.run}{location.options}",
        "more": f"weft explain {code_of(Exit.WAITING)}",
    }
    return "\n".join(
        [*lines, *(f"  {paint(f'{name}:'.ljust(8), 'cyan')}{it}" for name, it in commands.items())]
    )


def waited_for(requests: Sequence[RequestRow]) -> str:
    if any(it.kind == "chat" for it in requests):
        return "a message"
    return f"an answer to {', '.join(dict.fromkeys(map(_asking, requests)))}"


def _asking(request: RequestRow) -> str:
    return f"{request.tool or ''}{f' of {request.addressee}' if request.addressee else ''}"


def answer_command(location: JournalLocation, row: RunRow, request: RequestRow, asked: int) -> str:
    """Return the command that answers an open question; it is named where there are several."""
    name = f" {quote(request.id)}" if asked > 1 else ""
    value = "TEXT" if request.kind == "chat" else "--json-value JSON"
    if (request.tool or "").startswith(APPROVAL):
        value = quote(next(iter(approval_options(request.payload)), "TEXT"))
    whom = "" if is_asked_of(request, LOCAL) else f" --as {quote(request.addressee)}"
    return f"weft runs answer {row.run}{name} {value}{whom}{location.options}"


def approval_options(payload: Json) -> list[str]:
    """Return the decisions that a person may take who is asked for approval."""
    return [str(it) for it in cast("list[Json]", fields_of(payload).get("options") or [])]


def _exit_of(row: RunRow, requests: Sequence[RequestRow]) -> Exit:
    if is_idle(row, requests):
        return Exit.DONE
    if row.status != "ended":
        return Exit.WAITING
    return Exit.DONE if row.outcome == "completed" else Exit.FAILED


def _ended(streams: Streams, location: JournalLocation, row: RunRow, failed: int) -> Exit:
    inspect = f"weft inspect {row.run}{location.options}"
    if row.outcome != "completed":
        hint = [f"see what happened: {inspect}"]
        if row.outcome == "failed" and row.turns:
            hint.append(repeat_turn(location, row, failed))
        raise CommandFailed(Failure(Exit.FAILED, outcome_text(row), hint=tuple(hint)))
    streams.note(streams.paint_error(outcome_text(row), "bold green"))
    streams.note(f"  inspect: {inspect}")
    return Exit.DONE
