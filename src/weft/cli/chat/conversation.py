"""A run and a person: what happens is shown, what is asked is answered, until it ends."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from weft.app.folders import LOCAL
from weft.cli.chat.form import ask_form, shown_payload
from weft.cli.chat.person import Person, UserLeft, stdin_is_terminal
from weft.cli.chat.slash_commands import Inspecting, is_command, run_command, said
from weft.cli.chat.subscription import Subscription
from weft.cli.chat.terminal_view import JsonLines, RunView, TerminalView
from weft.cli.hosting import JournalLocation, how_to_resume, is_asked_of
from weft.cli.pages.flow_lines import fields_of
from weft.cli.pages.runs import answer_command
from weft.cli.streams import Streams
from weft.cli.text import clean, clean_lines
from weft.engine.events import Event
from weft.engine.flow.plan import APPROVAL
from weft.engine.reduce import reduce
from weft.engine.rows import RequestRow, RunRow, request_row
from weft.engine.state import State
from weft.errors import UsageError
from weft.runtime.host import Host
from weft.runtime.runs.live_stream import Delta
from weft.runtime.signals import Answer, Signal, Stop
from weft.runtime.workflow import Workflow

#: Seconds after which a run that this process does not work on is said not to move.
PATIENCE: Final = 3.0


@dataclass
class Session:
    """The run a command works on, and what is to be known of it when the person leaves."""

    streams: Streams
    location: JournalLocation
    run: str = ""
    #: What kind of question of the run is being answered, so that the run waits.
    asking: Literal["", "chat", "ui"] = ""
    #: Whether this process works on the run; another one may be at it, or none.
    ours: bool = True
    #: The last event that was printed.
    printed: int = 0
    #: The command that continues the run, with the name of the run missing; empty: the usual one.
    command: str = ""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def mark_printed(self, seq: int) -> None:
        """Note that everything up to an event is printed."""
        self.printed = seq
        self._news.set()

    async def until_printed(self, seq: int) -> None:
        """Return when everything up to an event is printed, so that what follows is understood."""
        while self.printed < seq:
            self._news.clear()
            await self._news.wait()


class _Stopped(Exception):
    """In the middle of a form the person has asked for something else."""

    def __init__(self, signal: Signal) -> None:
        super().__init__()
        self.signal = signal


@dataclass(frozen=True)
class AtTerminal:
    """Asks the person at the terminal; in a chat, lines with a slash are commands."""

    person: Person
    streams: Streams
    workflow: Workflow
    inspect: Inspecting | None = None

    async def __call__(self, request: RequestRow) -> Signal | None:
        """Ask for what a run waits for."""
        if request.kind != "ui":
            return await self._message(request)
        try:
            return Answer(request.id, await self._form(request))
        except _Stopped as stopped:
            return stopped.signal

    async def _form(self, request: RequestRow) -> object:
        tell = self.streams.problem
        heading, *shown = _question(request)
        tell(self.streams.paint_error(heading, "bold"))
        for line in shown:
            tell(f"  {line}")
        form = self.workflow.forms.get(request.tool or "")
        if form is None:
            return await ask_form(None, self._field, tell, _anything, _any_field)
        fault, field_error = form.answer_error, form.field_error
        return await ask_form(form.answer_schema, self._field, tell, fault, field_error)

    async def _field(self, prompt: str, *, secret: bool) -> str:
        """Read the value of a form field; in a chat, carry out commands on the way."""
        if secret:  # A password may begin with anything.
            return await self.person.line(prompt, secret=True)
        line = await self.person.line(prompt)
        if self.inspect is None:
            return line
        while is_command(line):
            signal = await self._command(line, self.inspect)
            if signal is not None:
                raise _Stopped(signal)
            line = await self.person.line(prompt)
        return said(line)

    async def _message(self, request: RequestRow) -> Signal | None:
        # An answer to this question: one that comes too late must not be taken for the next.
        text = (await self._text()).strip()
        if not stdin_is_terminal():
            self.streams.note(f"you: {clean(text)}")
        if self.inspect is not None and is_command(text):
            return await self._command(text, self.inspect)
        return Answer(request.id, said(text)) if text else None

    async def _text(self) -> str:
        """Read what a person says: a line, or several where a backslash ends all but the last."""
        text = await self.person.line("you: ")
        while text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1] + "\n" + await self.person.line("...  ")
        return text

    async def _command(self, text: str, inspect: Inspecting) -> Signal | None:
        match await run_command(text, self.streams, inspect):
            case "stop":
                return Stop()
            case "quit":
                raise UserLeft("end")
            case "again":
                return None

    async def listen(self) -> None:
        """Read though nothing is asked, so that the person can leave, until cancelled."""
        while True:
            await self.person.unasked_line()
            self.streams.problem("the run asks nothing at present; Ctrl-C leaves")


async def converse(
    host: Host,
    session: Session,
    news: Subscription,
    view: RunView,
    answering: AtTerminal | None,
) -> RunRow:
    """Follow a run until it has ended, or waits and there is no person to ask.

    A run that no process seems to work on, or that asks others, is waited for only at a terminal.
    """
    workflow = await host.workflow(session.run, scope=LOCAL)
    state = await host.state(session.run, scope=LOCAL, at=session.printed)
    told: set[str] = set()
    while True:
        row, state = await _until_rest(host, session, news, view, answering, workflow, state)
        if row.status != "waiting" or answering is None:
            return row
        open_ = [request_row(state, it) for it in state.requests.values()]
        if not open_:  # A board is idle.
            return row
        asked = next((it for it in open_ if is_asked_of(it, LOCAL)), None)
        if asked is None:
            _tell_who_is_asked(session, row, [it for it in open_ if it.id not in told])
            told.update(it.id for it in open_)
            item = await _item(news, answering) if stdin_is_terminal() else None
            if item is None:
                return await host.run(session.run, scope=LOCAL)
            session.ours = False  # Whoever answers works on it.
            state = _shown(session, view, workflow, state, item)
            continue
        session.asking = asked.kind
        signal = await answering(asked)
        session.asking = ""
        if signal is not None:
            await _deliver(host, session, signal)


async def _until_rest(
    host: Host,
    session: Session,
    news: Subscription,
    view: RunView,
    answering: AtTerminal | None,
    workflow: Workflow,
    state: State,
) -> tuple[RunRow, State]:
    """Show what happens in a run until it waits for a person, has ended, or does not move.

    What the run waits for is folded from what is shown; the store is asked when it seems to rest.
    """
    listener: AtTerminal | None = None
    while True:
        if state.status != "running":
            row = await host.run(session.run, scope=LOCAL)
            if row.status != "running" and row.seq <= session.printed and not _is_timed(state):
                return row, state
        if not session.ours and listener is None and not await news.soon(PATIENCE):
            row = await host.run(session.run, scope=LOCAL)
            session.streams.problem(not_moving(row, session.location))
            if answering is None or not stdin_is_terminal():
                break
            listener = answering
        item = await _item(news, listener)
        if item is None:
            break
        state = _shown(session, view, workflow, state, item)
    return await host.run(session.run, scope=LOCAL), state


def _is_timed(state: State) -> bool:
    """Tell whether a flow goes on by itself when its time has come: a step is tried again then."""
    return state.flow is not None and bool(state.timers) and not state.requests


def _shown(
    session: Session, view: RunView, workflow: Workflow, state: State, item: Event | Delta
) -> State:
    """Show what has happened, and return the run as it is then."""
    view.show(item)
    if isinstance(item, Event):
        state, _ = reduce(workflow.compiled, state, item)
        session.mark_printed(item.seq)
    return state


def _question(request: RequestRow) -> list[str]:
    """Return what a person is asked: a heading, and what is shown."""
    tool = request.tool or ""
    if not tool.startswith(APPROVAL):
        return [f"{request.agent} asks you ({tool}):", *shown_payload(request.payload)]
    text = str(fields_of(request.payload).get("text") or "")
    heading = f"approval {tool.removeprefix(APPROVAL)}:"
    return [heading, *(clean_lines(text).splitlines() if text else ())]


def _tell_who_is_asked(session: Session, row: RunRow, asked: Sequence[RequestRow]) -> None:
    """Say whom a run waits for who is not at this terminal, and how they answer."""
    for request in asked:
        told = f"{request.agent} asks {request.addressee} ({request.tool}); that person answers:"
        session.streams.problem(session.streams.paint_error(clean(told), "bold"))
        session.streams.problem(f"  {answer_command(session.location, row, request, len(asked))}")


async def _item(news: Subscription, listener: AtTerminal | None) -> Event | Delta | None:
    """Wait for what comes next; where the person listens as well, the person can leave."""
    if listener is None:
        return await news.item()
    listening = asyncio.create_task(listener.listen())
    try:
        return await news.item()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def not_moving(row: RunRow, location: JournalLocation) -> str:
    """Say that a run does not move, and what to do about it."""
    return f"run {row.run} is not moving: {how_to_resume(row, location)}"


async def _deliver(host: Host, session: Session, signal: Signal) -> None:
    """Deliver an answer; one that comes too late is rejected, and the run continues."""
    try:
        await host.deliver(session.run, signal, scope=LOCAL)
        session.ours = True
    except UsageError as error:
        session.streams.problem(clean(f"rejected: {error}"))


def view_for(
    session: Session, workflow: Workflow, *, model: str | None = None, echo: bool = False
) -> RunView:
    """Return the view for a program, or for a person."""
    if session.streams.settings.json:
        return JsonLines(session.streams, workflow, session.run)
    return TerminalView(session.streams, workflow, model=model or "", echo=echo)


def _anything(_value: object) -> str | None:
    return None


def _any_field(_name: str, _value: object) -> str | None:
    return None
