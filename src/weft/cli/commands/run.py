"""weft run, chat, runs resume and runs answer: start or continue a run, and follow it."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, cast

from cyclopts import Parameter

from weft.cli.chat.conversation import AtTerminal, Session, converse, subscribed, view_for
from weft.cli.chat.follow_run import (
    follow_run,
    interactive_host,
    print_run,
    recorded_events,
    run_session,
)
from weft.cli.chat.person import MANY, Person, stdin_is_terminal, unread_lines
from weft.cli.commands.runs import run_list
from weft.cli.failure import CommandFailed, Exit, failure_of, usage
from weft.cli.hosting import (
    RUN_HELP,
    JournalFile,
    JournalLocation,
    People,
    RunName,
    ServerUrl,
    acting_as,
    find_request,
    find_run,
    hosted,
    is_stopped,
    locate_runs,
)
from weft.cli.options import Output, command
from weft.cli.pages.runs import (
    RunStatus,
    answer_command,
    idle_text,
    outcome_text,
    repeat_turn,
)
from weft.cli.paths import PackageName
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.starting import (
    Given,
    Input,
    ModelName,
    Runnable,
    Seed,
    find_runnable,
    models_line,
    parse_json,
    read_input,
    read_json_file,
    read_message,
    start_run,
    warn_if_changed,
)
from weft.cli.streams import Streams, clean, counted
from weft.engine.events import TurnStarted
from weft.engine.flow.plan import APPROVAL
from weft.engine.rows import RequestRow, RunRow
from weft.errors import WeftError
from weft.findings import Json
from weft.ids import suggestion
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Signal
from weft.runtime.workflow import Workflow

#: How many runs are read at once.
_PAGE: Final = 500

_AS_JSON: Final = "write JSON in single quotes, or leave it out: then a form asks for it"


@command
def run(  # noqa: PLR0913 - the options of a command
    name: PackageName,
    message: str | None = None,
    /,
    *,
    given: Given = (),
    brought: Input = (),
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Run a workflow: replies go to stdout, everything else to stderr.

    Runs of other processes are left alone; continue one with `weft runs resume`. With --json,
    prints one line per event and a last one for the run. Exits with 4 if a request is open and
    stdin is not a terminal.

    Options:
      NAME     The package to run.
      MESSAGE  The first message of the user.

    Examples:
      weft run HelloWorld hello --model sample
      weft run CustomerSupportRouter 'I was charged twice' --set urgency=high
      weft run HelloWorld hello --model openai:gpt-5-mini --json
    """
    if message is not None:
        read_message(message, "write a message, or leave it out")
    input_ = read_input(brought)
    session = Session(streams, locate_runs(streams, journal, server))
    package = find_runnable(streams, name, session.location.server)

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            session.run = await start_run(
                host, streams, package, message=message, given=given, input_=input_, model=model
            )
            return await follow_run(host, session, person)

    return run_session(session, work)


def _end_of_chat(run: RunStatus, streams: Streams) -> Result:
    """Return how a chat ended; that its run does not move was printed before.

    The exit code is 4 if the run does not move, 1 if it failed.
    """
    row, notes = run.row, [idle_text(run.row)] if run.is_idle else []
    outcome = Exit.DONE if run.is_idle else Exit.WAITING
    if row.status == "ended":
        outcome = Exit.DONE if row.outcome in ("completed", "cancelled") else Exit.FAILED
        notes += [streams.paint_error(outcome_text(row), "bold"), f"  inspect: {run.inspect}"]
        if row.outcome == "failed" and row.turns:
            notes.append(f"  {repeat_turn(run.location, row)}")
        if unread := unread_lines():
            lines = f"{counted(unread, 'line')}{' or more' if unread == MANY else ''}"
            was = "was" if unread == 1 else "were"
            notes.append(f"{lines} of the input {was} not used: the run has ended")
    return Result(run.content(), notes=notes, outcome=outcome, is_last_line=True)


@command
def chat(
    name: PackageName | None = None,
    /,
    *,
    given: Given = (),
    model: ModelName = None,
    run: str | None = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Chat with a workflow; without a terminal, every line of stdin is a message.

    A backslash at the end of a line continues it in the next. Requests of UI tools are asked as a
    form; the answer may be one line of JSON. Ctrl-C leaves: the run waits and can be continued with
    --run. With --json, prints one line per event and a last one for the run.

    Options:
      NAME       The package to chat with.
      --run RUN  Continue this run: its id, its end, or last.

    Examples:
      weft chat HelloWorld --model sample
      weft chat HelloWorld --model you      you answer in place of the model
      weft chat --run last
      printf 'hello\\nbye\\n' | weft chat HelloWorld
    """
    if (name is None) == (run is None):
        raise usage("name a package, or a run with --run", "weft chat HelloWorld")
    if run is not None and (given or model):
        raise usage(
            "--set and --model apply to new runs only",
            "change a run from a turn on: weft replay RUN --fork TURN",
        )
    location = locate_runs(streams, journal, server, must_exist=name is None)
    session = Session(streams, location)
    package = None if name is None else find_runnable(streams, name, location.server)
    if package is not None:
        _refuse_flow(package)

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            if package is not None:
                session.run = await start_run(host, streams, package, given=given, model=model)
            else:
                await _reopen(host, session, run or "")
            await _talk(host, session, person, shows_past=package is None)
            end = await RunStatus.read(host, session.run, session.location)
        return _end_of_chat(end, streams)

    return run_session(session, work)


def _refuse_flow(package: Runnable) -> None:
    """Refuse a flow: its steps work on values, and none of them waits for messages."""
    if package.spec.flow is not None:
        raise usage(
            f"{package.name} is a flow and takes no messages",
            f"run it: weft run {package.name} --set NAME=VALUE",
            "approve a step of a run: weft runs answer RUN",
        )


async def _reopen(host: Host, session: Session, typed: str) -> None:
    """Continue the chat of a run, which another process may be working on."""
    row = await find_run(host, typed)
    session.run, session.ours = row.run, False
    state = await host.state(row.run, scope=command_scope())
    workflow = await host.workflow(row.run, scope=command_scope())
    session.streams.aside(models_line(workflow, state.model, begins=False))
    warn_if_changed(session.streams, row)


async def _talk(host: Host, session: Session, person: Person, *, shows_past: bool) -> None:
    streams = session.streams
    workflow = await host.workflow(session.run, scope=command_scope())
    state = await host.state(session.run, scope=command_scope())
    if stdin_is_terminal():
        streams.note("Ctrl-C leaves, /help lists the commands.")
    view = view_for(session, workflow, model=state.model)
    if shows_past:
        await _show_past(host, session, workflow)
    answering = AtTerminal(person, streams, workflow, partial(print_run, host, session))
    async with subscribed(host, session.run, after=session.printed) as news:
        await converse(host, session, news, view, answering)


async def _show_past(host: Host, session: Session, workflow: Workflow) -> None:
    """Show a run from its beginning, with the messages of the user."""
    view = view_for(session, workflow, echo=True)
    async for item in host.events(session.run, scope=command_scope()):
        view.show(item)
        session.printed += 1


@command
def resume(
    run: Annotated[str | None, Parameter(help=RUN_HELP)] = None,
    /,
    *,
    all_: bool = False,
    take_over: bool = False,
    seed: Seed = 0,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Continue a run whose process ended before the run did.

    Without workers, Weft does not resume runs by itself. A run that another process works on is
    refused unless you add --take-over.

    Options:
      --all        Every run whose process died.
      --take-over  Also a run that another process works on.

    Examples:
      weft runs resume last
      weft runs resume --all
    """
    location = locate_runs(streams, journal, server, must_exist=True)
    if all_ and take_over:
        raise usage("--all continues only runs whose processes died", "leave out --take-over")
    if take_over and location.server is not None:
        raise usage("a server takes over runs itself", "leave out --take-over")
    if (run is None) != all_:
        raise usage("name a run, or --all", "weft runs resume RUN", "weft runs resume --all")
    if run is None:
        return _resume_all(location, streams, seed)
    session = Session(streams, location)

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            row = await find_run(host, run)
            if row.status == "ended":
                look = f"inspect it: weft inspect {row.run}{session.location.options}"
                raise usage(outcome_text(row), repeat_turn(session.location, row) or look)
            warn_if_changed(streams, row)
            session.run, session.printed = row.run, await _event_before_turn(host, row)
            async with subscribed(host, row.run, after=session.printed) as news:
                await host.resume(
                    row.run, scope=command_scope(), take_over=take_over, streamed=True
                )
                verb = "waits" if row.status == "waiting" else "continues"
                streams.aside(f"run {row.run} of {row.workflow} {verb}")
                return await follow_run(host, session, person, news)

    return run_session(session, work)


def _resume_all(location: JournalLocation, streams: Streams, seed: int) -> Result:
    """Resume the runs whose processes died, and wait until all of them are idle."""

    async def settle(host: Host, row: RunRow) -> RunRow | None:
        try:
            await host.resume(row.run, scope=command_scope())
            return await host.settled(row.run, scope=command_scope())
        except WeftError as error:  # The others are resumed nevertheless.
            why = "; ".join((str(error), *failure_of(error).hint))
            streams.problem(clean(f"cannot resume run {row.run}: {why}"))
            return None

    async def work() -> Result:
        async with hosted(location, seed=seed) as host:
            stopped: list[RunRow] = []
            last: str | None = None
            while page := await host.runs(
                scope=command_scope(), status="running", before=last, limit=_PAGE
            ):
                stopped += [row for row in page if is_stopped(row)]
                last = page[-1].run
            streams.note(f"{counted(len(stopped), 'run')} to resume")
            settled = await asyncio.gather(*(settle(host, row) for row in stopped))
            rows = [row for row in settled if row is not None]
            outcome = Exit.DONE if len(rows) == len(stopped) else Exit.FAILED
            asked = await host.requests(scope=Scope.operator(command_scope().app))
            return await run_list(host, rows, asked, location, streams, outcome=outcome)

    return asyncio.run(work())


async def _event_before_turn(host: Host, row: RunRow) -> int:
    """Return the event before the current turn, which is shown from its beginning."""
    state = await host.state(row.run, scope=command_scope())
    turns = [turn for turn in state.active if turn]  # 0 is the run itself.
    if not turns:
        return row.seq
    first = min(turns)  # Of parallel turns, the one that began first.
    return next(
        event.seq - 1
        for event in await recorded_events(host, row.run)
        if isinstance(event.data, TurnStarted) and event.turn == first
    )


@command
def answer(
    run: RunName,
    /,
    *words: str,
    json_value: str | None = None,
    as_: People = (),
    text: bool = False,
    seed: Seed = 0,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Answer an open request of a run, and follow the run.

    Without an answer, a form asks for it. With several open requests, name one before the answer:
    weft runs answer RUN REQUEST TEXT.

    Options:
      ANSWER             The answer; of several requests, REQUEST before it.
      --json-value JSON  The answer as JSON, or @FILE.
      --text             The answer is text, even if it is valid JSON.

    Examples:
      weft runs answer last 'My invoice is wrong'
      weft runs answer last --json-value '{"approved": true}'
      weft runs answer last      asks with a form
    """
    session = Session(streams, locate_runs(streams, journal, server, must_exist=True))
    request_name, value = _read_words(words, json_value)
    people = acting_as(as_)
    if text:
        if not isinstance(value, str):
            raise usage("--text needs an answer in words", "weft runs answer RUN TEXT --text")
        value = _Literal(value)

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            row = await find_run(host, run)
            request = await find_request(host, row, request_name, session.location, people)
            warn_if_changed(streams, row)
            session.run, session.printed, session.asking = row.run, row.seq, request.kind
            signal = await _signal(host, session, person, request, value)
            async with subscribed(host, row.run, after=row.seq) as news:
                await host.deliver(row.run, signal, scope=people)
                session.asking = ""
                return await follow_run(host, session, person, news)

    return run_session(session, work)


class _Literal:
    """An answer that is delivered unchanged."""

    def __init__(self, value: Json) -> None:
        self.value = value


def _read_words(words: Sequence[str], json_value: str | None) -> tuple[str | None, Json]:
    """Return the name of the request and the answer, which may be text, JSON or missing."""
    if len(words) > 2 or (len(words) == 2 and json_value is not None):
        raise usage("too many arguments", "put quotes around the answer")
    if json_value is not None:
        return (words[0] if words else None), _Literal(_read_json(json_value))
    if len(words) == 2:
        return words[0], words[1]
    return None, words[0] if words else None


def _json_or_text(streams: Streams, text: str) -> Json:
    """Return an answer of any type: an object or a list is JSON, everything else text."""
    try:
        value = cast("Json", json.loads(text))
    except ValueError:
        return text
    if text.lstrip()[0] not in "{[":
        return text
    streams.note("the answer is delivered as JSON; as text: --text")
    return value


def _read_json(text: str) -> Json:
    if text.startswith("@"):
        return read_json_file(Path(text[1:]), _AS_JSON)
    return parse_json(text, "the answer", _AS_JSON)


def _takes(schema: Mapping[str, Any]) -> list[str]:
    """Return what an answer with fields takes: each with its values or its type."""
    fields = cast("dict[str, dict[str, Any]]", schema.get("properties") or {})
    listed = [
        f"{name} ({', '.join(map(str, field['enum']))})" if "enum" in field else name
        for name, field in fields.items()
    ]
    return [f"it takes: {', '.join(listed)}"] if listed else []


def _misspelled(schema: Mapping[str, Any], value: Json) -> list[str]:
    """Return what is probably meant by the unknown keys of an answer."""
    fields = cast("dict[str, Any]", schema.get("properties") or {})
    given = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
    unknown = [name for name in given if name not in fields] if fields else []
    return [f'unknown key "{name}": {suggestion(name, fields)}' for name in unknown]


async def _signal(
    host: Host, session: Session, person: Person, request: RequestRow, value: Json
) -> Signal:
    """Return the signal for an answer: the given one, or one that a form asks for."""
    workflow = await host.workflow(session.run, scope=command_scope())
    if value is None:
        if not stdin_is_terminal() or session.streams.settings.json:
            raise usage("the answer is missing", "weft runs answer RUN TEXT, or --json-value JSON")
        signal = None
        while signal is None:
            signal = await AtTerminal(person, session.streams, workflow)(request)
        return signal
    if request.kind == "chat" and isinstance(value, str):
        return Answer(request.id, read_message(value, "write a message; the run waits for it"))
    form = workflow.forms.get(request.tool or "")
    schema = (form.answer_schema if form else None) or {}
    if isinstance(value, _Literal):
        value = value.value
    elif not schema:
        value = _json_or_text(session.streams, str(value))
    elif (request.tool or "").startswith(APPROVAL) and not str(value).lstrip().startswith("{"):
        value = {"decision": value}
    elif schema.get("type") != "string":
        try:
            value = _read_json(str(value))
        except CommandFailed as error:
            hints = (*_takes(schema), *error.failure.hint)
            raise CommandFailed(replace(error.failure, hint=hints)) from error
    error = form.answer_error(value) if form else None
    if form and error and form.options:
        row = await host.run(session.run, scope=command_scope())
        count = len(await host.requests(scope=command_scope(), run=session.run))
        raise usage(error, f"answer: {answer_command(session.location, row, request, count)}")
    if error:
        raise usage(
            f"invalid answer to {request.tool}: {error}",
            *_misspelled(schema, value),
            *_takes(schema),
            f"see what it takes: weft runs show {session.run}{session.location.options}",
        )
    return Answer(request.id, value)
