"""How a verb ends that worked on a run: what is told of the run, and the exit code."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from shlex import quote
from typing import Any, Final

from weft.app.hosts import LOCAL
from weft.cli.conversing import Session
from weft.cli.exits import Exit, code_of
from weft.cli.failure import CommandFailed, Failure, failure_of
from weft.cli.hosting import Place, hosted
from weft.cli.machine_formats import document_line, failure_data
from weft.cli.person import Left, Person, is_there, with_person
from weft.cli.streams import Streams
from weft.engine.rows import RequestRow, RunRow
from weft.errors import WeftError

#: What an outcome is called where it is told.
_OUTCOMES: Final = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "was stopped",
    "max_turns": "used up its turns",
}


def row_data(row: RunRow, requests: Sequence[RequestRow]) -> dict[str, Any]:
    """Return a run at a glance, and what it asks, as JSON can hold it; no sum that lacks a part."""
    data = {**row._asdict(), "requests": [it._asdict() for it in requests]}
    unknown = ("cost_usd",) if row.unpriced else ()
    uncounted = ("input_tokens", "output_tokens") if row.uncounted else ()
    return {**data, **dict.fromkeys((*unknown, *uncounted))}


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


def concluded(streams: Streams, place: Place, row: RunRow, requests: Sequence[RequestRow]) -> Exit:
    """Tell what a run came to, and return the exit code for it."""
    if streams.settings.json:
        streams.result(document_line({"run": row_data(row, requests)}))
        return _exit_of(row)
    if row.status == "ended":
        return _ended(streams, place, row)
    streams.problem(waiting_text(streams, place, row, requests))
    return Exit.WAITING


def told_how_it_stands(
    streams: Streams, place: Place, row: RunRow, requests: Sequence[RequestRow]
) -> None:
    """Tell what a run has come to so far, to whoever only looks at it."""
    if streams.settings.json:
        streams.result(document_line({"run": row_data(row, requests)}))
        return
    if row.status == "ended":
        fact = outcome_text(row)
        next_step = f"inspect: weft inspect {row.run}{place.options}"
    elif requests:
        fact = f"run {row.run} waits for {waited_for(requests)}"
        next_step = f"answer: {answer_command(place, row, requests[0], len(requests))}"
    else:
        fact = f"run {row.run} is not over, and asks nothing at present"
        next_step = f"if no process works on it: weft runs resume {row.run}{place.options}"
    style = "bold green" if row.outcome == "completed" else "bold"
    streams.note(streams.paint_error(fact, style))
    streams.note(f"  {next_step}")


def outcome_text(row: RunRow) -> str:
    """Say how a run ended."""
    return f"run {row.run} {_OUTCOMES[row.outcome or 'failed']}: {row.reason}"


def take_anew(place: Place, row: RunRow) -> str:
    """Say how to go on from the turn in which a run failed, or from the first; nothing without."""
    if not row.turns:
        return ""
    turn = row.turns if row.outcome == "failed" else 1
    return f"take turn {turn} anew: weft replay {row.run} --fork {turn}{place.options}"


def waiting_text(
    streams: Streams, place: Place, row: RunRow, requests: Sequence[RequestRow]
) -> str:
    """Say what a run waits for, and which commands answer it."""
    paint = streams.paint_error
    head = paint(f"waiting[{code_of(Exit.WAITING)}]", "bold yellow")
    lines = [f"{head}: {paint(f'run {row.run} waits for {waited_for(requests)}', 'bold')}"]
    commands = {
        "answer": answer_command(place, row, requests[0], len(requests)),
        "chat": f"weft chat --run {row.run}{place.options}",
        "more": f"weft explain {code_of(Exit.WAITING)}",
    }
    return "\n".join(
        [*lines, *(f"  {paint(f'{name}:'.ljust(8), 'cyan')}{it}" for name, it in commands.items())]
    )


def waited_for(requests: Sequence[RequestRow]) -> str:
    """Say what is waited for."""
    if any(it.kind == "chat" for it in requests):
        return "a message"
    return f"an answer to {', '.join(dict.fromkeys(it.tool or '' for it in requests))}"


def answer_command(place: Place, row: RunRow, request: RequestRow, asked: int) -> str:
    """Return the command that answers an open question; it is named where there are several."""
    name = f" {quote(request.id)}" if asked > 1 else ""
    value = "TEXT" if request.kind == "chat" else "--json-value JSON"
    return f"weft runs answer {row.run}{name} {value}{place.options}"


def _exit_of(row: RunRow) -> Exit:
    if row.status != "ended":
        return Exit.WAITING
    return Exit.DONE if row.outcome == "completed" else Exit.FAILED


def _ended(streams: Streams, place: Place, row: RunRow) -> Exit:
    inspect = f"weft inspect {row.run}{place.options}"
    if row.outcome != "completed":
        hint = [f"see what happened: {inspect}"]
        if row.outcome == "failed" and row.turns:
            hint.append(take_anew(place, row))
        raise CommandFailed(Failure(Exit.FAILED, outcome_text(row), hint=tuple(hint)))
    streams.note(streams.paint_error(outcome_text(row), "bold green"))
    streams.note(f"  inspect: {inspect}")
    return Exit.DONE


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
