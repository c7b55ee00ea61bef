"""weft runs cancel, resume and answer: let a run go on, or end it."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, cast

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.chat.conversation import AtTerminal, Session
from weft.cli.chat.follow_run import follow_from, interactive_host, run_session
from weft.cli.chat.person import Person, stdin_is_terminal
from weft.cli.chat.subscription import subscribed
from weft.cli.failure import Exit, usage
from weft.cli.formats.documents import document
from weft.cli.hosting import (
    JournalLocation,
    acting_as,
    answer_schemas,
    find_request,
    find_run,
    hosted,
    how_to_resume,
    is_stopped,
    locate_journal,
)
from weft.cli.options import RUN_HELP, JournalFile, People, RunName, Seed
from weft.cli.pages.runs import answer_command, outcome_text, print_list, repeat_turn
from weft.cli.starting import read_message, warn_if_changed
from weft.cli.streams import Streams
from weft.cli.text import clean, counted
from weft.engine.events import Event, TurnStarted
from weft.engine.flow.plan import APPROVAL
from weft.engine.rows import RequestRow, RunRow
from weft.errors import LinkError, WeftError
from weft.findings import Json
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Signal, Stop
from weft.wire.rows import Schemas, run_data, runs_data

#: How many runs are continued at once.
_MANY: Final = 500

#: Seconds to wait for a run that ends after its turn: no process may be working on it.
_MOMENT: Final = 2.0

_AS_JSON: Final = "write it as JSON, in single quotes, or leave it out: then a form asks for it"


def cancel(
    run: RunName,
    /,
    *,
    drain: Annotated[bool, Parameter(help="Let the current turn end first.")] = False,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """End a run."""
    location = locate_journal(streams, journal, must_exist=True)

    async def work() -> tuple[RunRow, Sequence[RequestRow], Schemas]:
        here = await _has_code(location, run)
        async with hosted(location, works=here, reading=not here) as host:
            row = await find_run(host, run)
            await host.deliver(row.run, Stop("after_turn" if drain else "now"), scope=LOCAL)
            try:
                row = await asyncio.wait_for(host.settled(row.run, scope=LOCAL), _MOMENT)
            except TimeoutError:
                row = await host.run(row.run, scope=LOCAL)
            asked = await host.requests(scope=LOCAL, run=row.run)
            return row, asked, await answer_schemas(host, asked)

    row, requests, schemas = asyncio.run(work())
    if streams.settings.json:
        streams.result(document({"run": run_data(row, requests, schemas)}))
    elif row.status == "ended":
        streams.result(outcome_text(row))
    elif row.status == "waiting":
        streams.result(f"run {row.run} ends after the turn that waits for a person")
    else:
        streams.result(f"run {row.run} ends after its turn; {how_to_resume(row, location)}")
    return Exit.DONE


async def _has_code(location: JournalLocation, typed: str) -> bool:
    """Tell whether the code of a run is here; to end a run calls none, unless it undoes steps."""
    async with hosted(location, reading=True) as host:
        row = await find_run(host, typed)
        workflow = await host.workflow(row.run, scope=LOCAL)
        flow = workflow.spec.flow
        if workflow.missing is not None and flow is not None and flow.compensate_on_cancel:
            told = f"ending run {row.run} undoes its steps (compensate_on_cancel)"
            raise LinkError(f"{told}: {workflow.missing}", workflow.missing.findings)
        return workflow.missing is None


def resume(
    run: Annotated[str | None, Parameter(help=RUN_HELP)] = None,
    /,
    *,
    all_: Annotated[
        bool, Parameter(name="--all", help="Every run whose process has died.", negative="")
    ] = False,
    take_over: Annotated[
        bool, Parameter(help="Also a run that another process works on.", negative="")
    ] = False,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Continue a run that had work to do when its process ended, and follow it."""
    location = locate_journal(streams, journal, must_exist=True)
    if all_ and take_over:
        raise usage("--all continues only runs whose processes have died", "leave out --take-over")
    if (run is None) != all_:
        raise usage("name a run, or all of them", "weft runs resume RUN", "weft runs resume --all")
    if run is None:
        return _resume_all(location, streams, seed)
    session = Session(streams, location)

    async def work(person: Person) -> Exit:
        async with interactive_host(session, person, seed) as host:
            row = await find_run(host, run)
            if row.status == "ended":
                look = f"look at it: weft inspect {row.run}{session.location.options}"
                raise usage(outcome_text(row), repeat_turn(session.location, row) or look)
            warn_if_changed(streams, row)
            session.run, session.printed = row.run, await _before_turn(host, row)
            async with subscribed(host, row.run, after=session.printed) as news:
                await host.resume(row.run, scope=LOCAL, take_over=take_over, streamed=True)
                note = f"run {row.run} of {row.workflow} continues"
                streams.note(streams.paint_error(note, "dim"))
                return await follow_from(host, session, person, news)

    return run_session(session, work)


def _resume_all(location: JournalLocation, streams: Streams, seed: int) -> Exit:
    """Take up the runs whose processes have died, and wait until all of them rest."""

    async def settle(host: Host, row: RunRow) -> RunRow | None:
        try:
            await host.resume(row.run, scope=LOCAL)
            return await host.settled(row.run, scope=LOCAL)
        except WeftError as error:  # It is no reason to leave the others.
            streams.problem(clean(f"run {row.run} is not continued: {error}"))
            return None

    async def work() -> tuple[list[RunRow], Sequence[RequestRow], list[dict[str, Any]], bool]:
        async with hosted(location, seed=seed) as host:
            stopped: list[RunRow] = []
            last: str | None = None
            while page := await host.runs(scope=LOCAL, status="running", before=last, limit=_MANY):
                stopped += [it for it in page if is_stopped(it)]
                last = page[-1].run
            streams.note(f"{counted(len(stopped), 'run')} to continue")
            settled = await asyncio.gather(*(settle(host, it) for it in stopped))
            rows = [it for it in settled if it is not None]
            asked = await host.requests(scope=LOCAL)
            page = runs_data(rows, asked, await answer_schemas(host, asked))
            return rows, asked, page, len(rows) == len(stopped)

    rows, asked, page, all_went_on = asyncio.run(work())
    if streams.settings.json:
        streams.result(document({"runs": page}))
    elif rows:
        print_list(rows, streams, asked)
    return Exit.DONE if all_went_on else Exit.FAILED


async def _before_turn(host: Host, row: RunRow) -> int:
    """Return the event before the current turn, which is shown from its beginning."""
    state = await host.state(row.run, scope=LOCAL)
    turns = [it for it in state.active if it]  # 0 is the run itself.
    if not turns:
        return row.seq
    first = min(turns)  # Of those side by side, the one that began first.
    events = [it async for it in host.events(row.run, scope=LOCAL)]
    return next(
        it.seq - 1
        for it in events
        if isinstance(it, Event) and isinstance(it.data, TurnStarted) and it.turn == first
    )


def answer(
    run: RunName,
    /,
    *text: Annotated[
        str, Parameter(help="The answer; QUESTION before it names one if there are several.")
    ],
    json_value: Annotated[
        str | None,
        Parameter(metavar="JSON", help="The answer as JSON, or @FILE with it."),
    ] = None,
    as_: People = (),
    as_text: Annotated[
        bool, Parameter(name="--text", help="It is text, even if it reads as JSON.", negative="")
    ] = False,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Answer a question of a run, and follow it; without an answer, a form asks for it."""
    session = Session(streams, locate_journal(streams, journal, must_exist=True))
    question, value = _read_words(text, json_value)
    people = acting_as(as_)
    if as_text:
        if not isinstance(value, str):
            raise usage("--text goes with an answer in words", "weft runs answer RUN TEXT --text")
        value = _AsGiven(value)

    async def work(person: Person) -> Exit:
        async with interactive_host(session, person, seed) as host:
            row = await find_run(host, run)
            request = await find_request(host, row, question, session.location, people)
            warn_if_changed(streams, row)
            session.run, session.printed, session.asking = row.run, row.seq, request.kind
            signal = await _answer(host, session, person, request, value)
            async with subscribed(host, row.run, after=row.seq) as news:
                await host.deliver(row.run, signal, scope=people)
                session.asking = ""
                return await follow_from(host, session, person, news)

    return run_session(session, work)


def _read_words(words: tuple[str, ...], json_value: str | None) -> tuple[str | None, Json]:
    """Tell the name of a question from the answer; the answer may be a text, JSON, or missing."""
    if len(words) > 2 or (len(words) == 2 and json_value is not None):
        raise usage("there is more than a question and an answer", "put quotes around the answer")
    if json_value is not None:
        return (words[0] if words else None), _AsGiven(_read_json(json_value))
    if len(words) == 2:
        return words[0], words[1]
    return None, words[0] if words else None


class _AsGiven:
    """An answer that is handed over as it is: nobody has to find out what it means."""

    def __init__(self, value: Json) -> None:
        self.value = value


def _json_or_text(streams: Streams, text: str) -> Json:
    """Read an answer that may be anything: an object or a list is meant as such."""
    try:
        value = cast("Json", json.loads(text))
    except ValueError:
        return text
    if text.lstrip()[0] not in "{[":
        return text
    streams.note("the answer is handed over as JSON; as text: --text")
    return value


def _read_json(text: str) -> Json:
    try:
        raw = Path(text[1:]).read_text(encoding="utf-8-sig") if text.startswith("@") else text
        return json.loads(raw)
    except UnicodeDecodeError as error:
        raise usage(f"{text[1:]} is not UTF-8 text", "save the file as UTF-8") from error
    except ValueError as error:
        raise usage(f"the answer is not JSON: {error}", _AS_JSON) from error


async def _answer(
    host: Host, session: Session, person: Person, request: RequestRow, value: Json
) -> Signal:
    """Return what is to be let into the run: the given answer, or one that a form asks for."""
    workflow = await host.workflow(session.run, scope=LOCAL)
    if value is None:
        if not stdin_is_terminal() or session.streams.settings.json:
            raise usage("an answer is missing", "weft runs answer RUN TEXT, or --json-value JSON")
        signal = None
        while signal is None:
            signal = await AtTerminal(person, session.streams, workflow)(request)
        return signal
    if request.kind == "chat" and isinstance(value, str):
        return Answer(request.id, read_message(value, "say something, or leave it: it waits"))
    form = workflow.forms.get(request.tool or "")
    schema = (form.answer_schema if form else None) or {}
    if isinstance(value, _AsGiven):
        value = value.value
    elif not schema:
        value = _json_or_text(session.streams, str(value))
    elif (request.tool or "").startswith(APPROVAL) and not str(value).lstrip().startswith("{"):
        value = {"decision": value}
    elif schema.get("type") != "string":
        value = _read_json(str(value))
    fault = form.answer_error(value) if form else None
    if form and fault and form.options:
        row = await host.run(session.run, scope=LOCAL)
        asked = len(await host.requests(scope=LOCAL, run=session.run))
        raise usage(fault, f"answer: {answer_command(session.location, row, request, asked)}")
    if fault:
        raise usage(
            f"the answer does not fit what {request.tool} asks for: {fault}",
            f"see what it takes: weft runs show {session.run}{session.location.options}",
        )
    return Answer(request.id, value)
