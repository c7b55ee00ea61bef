"""A run and a person: events are shown, requests are answered, until the run ends."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast

from weft.cli.chat.form import ask_form, shown_payload
from weft.cli.chat.person import (
    Inspecting,
    Person,
    UserLeft,
    is_command,
    message_of,
    run_command,
    stdin_is_terminal,
)
from weft.cli.chat.terminal_view import JsonLines, RunView, TerminalView
from weft.cli.hosting import JournalLocation, how_to_resume, is_asked_of, is_stopped
from weft.cli.pages.flow import fields_of
from weft.cli.pages.runs import answer_command
from weft.cli.scope import command_scope
from weft.cli.streams import Streams, clean, clean_lines
from weft.engine.events import Event
from weft.engine.flow.plan import APPROVAL
from weft.engine.reduce import reduce
from weft.engine.rows import RequestRow, RunRow, request_row
from weft.engine.state import State
from weft.errors import UsageError
from weft.ports.live import Delta
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Signal, Stop
from weft.runtime.workflow import Workflow

#: Seconds after which a run of another process is reported as not moving.
PATIENCE: Final = 3.0

#: Seconds between two updates of the line that shows how long a model has been silent.
_TICK: Final = 1.0

_Events: TypeAlias = AsyncGenerator[Event | Delta]


class Subscription:
    """The events and live text of a run, one after the other.

    The next item is awaited at all times, even while a person is asked: a host streams the text of
    a model only to those who already follow when it begins.
    """

    def __init__(self, events: _Events) -> None:
        self._events = events
        self._next = asyncio.create_task(self._take())

    async def item(self) -> Event | Delta | None:
        """Return the next item; None after the end of the run."""
        # Shielded: a cancelled waiter leaves the item for the next one.
        item = await asyncio.shield(self._next)
        self._next = asyncio.create_task(self._take())
        return item

    async def arrives_within(self, seconds: float) -> bool:
        """Return whether an item arrives in time; it stays for the next call of `item`."""
        return bool((await asyncio.wait({self._next}, timeout=seconds))[0])

    async def close(self) -> None:
        """Stop following."""
        self._next.cancel()
        # An error was already raised by `item`.
        await asyncio.gather(self._next, return_exceptions=True)

    async def _take(self) -> Event | Delta | None:
        return await anext(self._events, None)


@asynccontextmanager
async def subscribed(host: Host, run: str, *, after: int = 0) -> AsyncGenerator[Subscription]:
    """Follow a run; no event after the call is missed."""
    events = cast("_Events", host.events(run, scope=command_scope(), after=after, follow=True))
    async with aclosing(events):
        news = Subscription(events)
        try:
            # One step of the event loop, in which following begins.
            await asyncio.sleep(0)
            yield news
        finally:
            await news.close()


@dataclass
class Session:
    """The run of a command, and what must be known when the person leaves it."""

    streams: Streams
    location: JournalLocation
    run: str = ""
    #: The kind of the request that is being answered: the run waits for it.
    asking: Literal["", "chat", "ui"] = ""
    #: Whether this process works on the run; another one may, or none.
    ours: bool = True
    #: The last event that was printed.
    printed: int = 0
    #: The command that continues the run, without the run; empty: the usual one.
    command: str = ""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def mark_printed(self, seq: int) -> None:
        """Record that all events up to a number are printed."""
        self.printed = seq
        self._news.set()

    async def until_printed(self, seq: int) -> None:
        """Wait until all events up to a number are printed."""
        while self.printed < seq:
            self._news.clear()
            await self._news.wait()


class _FormLeft(Exception):
    """The person gave a slash command in the middle of a form."""

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
        """Ask for the answer to a request."""
        if request.kind != "ui":
            return await self._message(request)
        try:
            return Answer(request.id, await self._form(request))
        except _FormLeft as left:
            return left.signal

    async def _form(self, request: RequestRow) -> object:
        tell = self.streams.problem
        heading, *shown = _request_lines(request)
        tell(self.streams.paint_error(heading, "bold"))
        for line in shown:
            tell(f"  {line}")
        form = self.workflow.forms.get(request.tool or "")
        if form is None:
            return await ask_form(None, self._field, tell, lambda _: None, lambda _name, _: None)
        error, field_error = form.answer_error, form.field_error
        return await ask_form(form.answer_schema, self._field, tell, error, field_error)

    async def _field(self, prompt: str, *, secret: bool) -> str:
        """Read the value of a form field; in a chat, run slash commands before it."""
        if secret:  # A password may begin with a slash.
            return await self.person.line(prompt, secret=True)
        line = await self.person.line(prompt)
        if self.inspect is None:
            return line
        while is_command(line):
            signal = await self._command(line, self.inspect)
            if signal is not None:
                raise _FormLeft(signal)
            line = await self.person.line(prompt)
        return message_of(line)

    async def _message(self, request: RequestRow) -> Signal | None:
        # An answer to this request: a late one must not become the answer to the next.
        text = (await self._text()).strip()
        if not stdin_is_terminal():
            self.streams.note(f"you: {clean(text)}")
        if self.inspect is not None and is_command(text):
            return await self._command(text, self.inspect)
        return Answer(request.id, message_of(text)) if text else None

    async def _text(self) -> str:
        """Read a message: one line, or several where a backslash ends all but the last."""
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
        """Read lines although nothing is asked, so that the person can leave, until cancelled."""
        while True:
            await self.person.unasked_line()
            self.streams.problem("the run has no open request at present; Ctrl-C leaves")


async def converse(
    host: Host,
    session: Session,
    news: Subscription,
    view: RunView,
    answering: AtTerminal | None,
) -> RunRow:
    """Follow a run until it ends, or until it waits and there is no person to ask.

    A run of another process, or one that asks others, is only waited for at a terminal.
    """
    workflow = await host.workflow(session.run, scope=command_scope())
    state = await host.state(session.run, scope=command_scope(), at=session.printed)
    known: set[str] = set()
    while True:
        row, state = await _until_idle(host, session, news, view, answering, workflow, state)
        if row.status != "waiting" or answering is None:
            return row
        open_ = [request_row(state, request) for request in state.requests.values()]
        if not open_:  # A board is idle.
            return row
        asked = next((request for request in open_ if is_asked_of(request, command_scope())), None)
        if asked is None:
            _tell_who_is_asked(session, row, [one for one in open_ if one.id not in known])
            known.update(request.id for request in open_)
            item = await _item(news, view, answering) if stdin_is_terminal() else None
            if item is None:
                return await host.run(session.run, scope=command_scope())
            session.ours = False  # The process of the one who answers works on it.
            state = _show(session, view, workflow, state, item)
            continue
        session.asking = asked.kind
        signal = await answering(asked)
        session.asking = ""
        if signal is not None:
            await _deliver(host, session, signal)


async def _until_idle(
    host: Host,
    session: Session,
    news: Subscription,
    view: RunView,
    answering: AtTerminal | None,
    workflow: Workflow,
    state: State,
) -> tuple[RunRow, State]:
    """Show the events of a run until it waits for a person, ends, or does not move.

    The status is folded from the events shown; the store is asked when the run seems to be idle.
    """
    listener: AtTerminal | None = None
    while True:
        if state.status != "running":
            row = await host.run(session.run, scope=command_scope())
            # A timer repeats a step of a flow.
            is_timed = state.flow is not None and state.timers and not state.requests
            if row.status != "running" and row.seq <= session.printed and not is_timed:
                return row, state
        if not session.ours and listener is None and not await news.arrives_within(PATIENCE):
            row = await host.run(session.run, scope=command_scope())
            session.streams.problem(not_moving(row, session.location))
            if answering is None or not stdin_is_terminal():
                break
            listener = answering
        item = await _item(news, view, listener)
        if item is None:
            break
        state = _show(session, view, workflow, state, item)
    return await host.run(session.run, scope=command_scope()), state


def _show(
    session: Session, view: RunView, workflow: Workflow, state: State, item: Event | Delta
) -> State:
    """Show an item, and return the state after it."""
    view.show(item)
    if isinstance(item, Event):
        state, _ = reduce(workflow.compiled, state, item)
        session.mark_printed(item.seq)
    return state


def _request_lines(request: RequestRow) -> list[str]:
    """Return a request as lines: a heading, and what is shown."""
    tool = request.tool or ""
    if not tool.startswith(APPROVAL):
        return [f"{request.agent} asks you ({tool}):", *shown_payload(request.payload)]
    text = str(fields_of(request.payload).get("text") or "")
    heading = f"approval {tool.removeprefix(APPROVAL)}:"
    return [heading, *(clean_lines(text).splitlines() if text else ())]


def _tell_who_is_asked(session: Session, row: RunRow, asked: Sequence[RequestRow]) -> None:
    """Print who else is asked, and the command with which they answer."""
    for request in asked:
        text = f"{request.agent} asks {request.addressee} ({request.tool}); that person answers:"
        session.streams.problem(session.streams.paint_error(clean(text), "bold"))
        session.streams.problem(f"  {answer_command(session.location, row, request, len(asked))}")


async def _item(
    news: Subscription, view: RunView, listener: AtTerminal | None
) -> Event | Delta | None:
    """Wait for the next item; the person may leave meanwhile if `listener` reads lines."""
    if listener is None:
        while not await news.arrives_within(_TICK):
            view.tick()
        return await news.item()
    listening = asyncio.create_task(listener.listen())
    try:
        return await news.item()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def not_moving(row: RunRow, location: JournalLocation) -> str:
    """Return that a run does not move, and whether its worker is alive or what to do about it."""
    if is_stopped(row):
        return f"run {row.run} is not moving: {how_to_resume(row, location)}"
    alive = f"; worker {row.owner} is alive" if row.owner else ""
    return f"no event of run {row.run} for {PATIENCE:g} s{alive}"


async def _deliver(host: Host, session: Session, signal: Signal) -> None:
    """Deliver an answer; a late one is rejected, and the run continues."""
    try:
        await host.deliver(session.run, signal, scope=command_scope())
        session.ours = True
    except UsageError as error:
        session.streams.problem(clean(f"rejected: {error}"))


def view_for(
    session: Session, workflow: Workflow, *, model: str | None = None, echo: bool = False
) -> RunView:
    """Return the view for --json, or for a person."""
    if session.streams.settings.json:
        return JsonLines(session.streams, workflow, session.run)
    return TerminalView(session.streams, workflow, model=model or "", echo=echo)
