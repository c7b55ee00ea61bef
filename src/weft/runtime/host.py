"""The host: starts runs, lets signals in, shows what happened. Runs depend on no caller."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from weft.engine.events import Event, RequestAnswered, RunStarted, StopAsked
from weft.engine.reduce import fold
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.errors import AccessDenied, UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.ports.tools import ToolLoader
from weft.runtime.active import ActiveRun, Delivery
from weft.runtime.decision import Draft
from weft.runtime.perform import ModelSource, Performer
from weft.runtime.signals import Answer, Signal, Stop, UserMessage
from weft.runtime.values import start_values
from weft.runtime.workflow import Workflow, link, unpack

#: How often a follower looks for events that another process may have written.
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of what a model is saying; superseded by its reply, and not in the journal."""

    run: str
    call_seq: int
    text: str


class Host:
    """Runs workflows. Close it, or use it as an async context manager."""

    def __init__(
        self,
        *,
        journal: Journal,
        models: ModelSource,
        loader: ToolLoader,
        clock: Clock,
        find: Callable[[str], Workflow],
        environment: Mapping[str, str] | None = None,
        production: bool = False,
    ) -> None:
        self._journal = journal
        self._loader = loader
        self._clock = clock
        self._find = find
        self._environment = environment or {}
        self._production = production
        self._active: dict[str, ActiveRun] = {}
        self._loading: dict[str, asyncio.Future[ActiveRun]] = {}
        self._linked: dict[str, Workflow] = {}
        self._followers: dict[str, set[asyncio.Queue[TextDelta | None]]] = {}
        self._performer = Performer(journal, models, clock, self._tell, self._say)

    async def start(
        self,
        workflow: str,
        *,
        scope: Scope,
        message: str | None = None,
        values: Mapping[str, Json] | None = None,
        run: str | None = None,
    ) -> str:
        """Begin a run and return its identity; it goes on whether or not anybody watches."""
        linked = self._find(workflow)
        self._linked[linked.digest] = linked
        given = start_values(
            linked.book,
            environment=self._environment,
            production=self._production,
            given=values or {},
        )
        await self._journal.keep(linked.digest, linked.content)
        name = run or self._clock.new_id()
        begun = RunStarted(linked.name, linked.digest, scope.app, scope.user or "", given, message)
        active = self._activate(scope, linked, State(name))
        await self._post(active, (Draft(f"user:{scope.user}", begun),))
        return name

    async def deliver(self, run: str, signal: Signal, *, scope: Scope) -> None:
        """Let a signal into a run. It returns when the signal is in the journal."""
        active = await self._load(run, scope)
        user = scope.user or scope.app
        drafts, allowed = _interpret(signal, active.state, user)
        await self._post(active, drafts, allowed)

    async def state(self, run: str, *, scope: Scope, at: int | None = None) -> State:
        """Return the state of a run, now or after an earlier event."""
        row = await self._row(run, scope)
        workflow = await self._workflow(row.digest)
        events = await self._journal.read(scope, run, limit=at)
        return fold(workflow.book, run, events)

    async def events(
        self, run: str, *, scope: Scope, after: int = 0, follow: bool = False
    ) -> AsyncIterator[Event | TextDelta]:
        """Yield the events of a run after a number; with `follow`, go on until it has ended.

        While following, pieces of text come as they are spoken.
        """
        with self._following(run) as queue:
            while True:
                row = await self._row(run, scope)
                for event in await self._journal.read(scope, run, after=after):
                    yield event
                    after = event.seq
                if not follow or (row.status == "ended" and after >= row.seq):
                    return
                while after >= row.seq and (delta := await _wait(queue)) is not None:
                    yield delta

    async def settled(self, run: str, *, scope: Scope) -> RunRow:
        """Return when a run waits for a person or has ended."""
        with self._following(run) as queue:
            while (row := await self._row(run, scope)).status == "running":
                await _wait(queue)
            return row

    async def recover(self) -> list[str]:
        """Take up every run that had something to do when its process ended."""
        rows = await self._journal.unfinished()
        for row in rows:
            (await self._load(row.run, Scope(row.app, row.user))).wake()
        return [row.run for row in rows]

    async def close(self) -> None:
        """Let all runs go; they go on from their journals some other time."""
        await asyncio.gather(*(active.leave() for active in list(self._active.values())))
        await self._journal.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _row(self, run: str, scope: Scope) -> RunRow:
        row = await self._journal.run(scope, run)
        if row is None:
            raise AccessDenied(f"there is no run {run}")
        return row

    async def _workflow(self, digest: str) -> Workflow:
        """Find a workflow by its content: a run goes on with the package it was started with."""
        if digest not in self._linked:
            content = await self._journal.kept(digest)
            if content is None:
                raise UsageError(f"the package {digest[:12]} of this run is not kept any more")
            self._linked[digest] = link(*unpack(content), self._loader)
        return self._linked[digest]

    def _activate(self, scope: Scope, workflow: Workflow, state: State) -> ActiveRun:
        active = ActiveRun(
            scope=scope,
            workflow=workflow,
            state=state,
            performer=self._performer,
            on_left=self._left,
        )
        self._active[state.run] = active
        return active

    def _left(self, active: ActiveRun) -> None:
        if self._active.get(active.state.run) is active:
            del self._active[active.state.run]

    async def _load(self, run: str, scope: Scope) -> ActiveRun:
        """Return a run in memory; whoever asks while it is being loaded waits for the same one."""
        row = await self._row(run, scope)
        if run in self._active:
            return self._active[run]
        if run not in self._loading:
            self._loading[run] = asyncio.ensure_future(self._bring(row))
        try:
            return await self._loading[run]
        finally:
            self._loading.pop(run, None)

    async def _bring(self, row: RunRow) -> ActiveRun:
        scope = Scope(row.app, row.user)
        workflow = await self._workflow(row.digest)
        events = await self._journal.read(scope, row.run)
        return self._activate(scope, workflow, fold(workflow.book, row.run, events))

    async def _post(
        self,
        active: ActiveRun,
        drafts: tuple[Draft, ...],
        allowed: Callable[[State], None] | None = None,
    ) -> None:
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A run that was only waiting may have left memory since it was loaded.
        there = self._active.setdefault(active.state.run, active)
        there.post(Delivery(drafts, written, allowed))
        await written

    @contextmanager
    def _following(self, run: str) -> Generator[asyncio.Queue[TextDelta | None]]:
        queue: asyncio.Queue[TextDelta | None] = asyncio.Queue()
        self._followers.setdefault(run, set()).add(queue)
        try:
            yield queue
        finally:
            self._followers[run].discard(queue)
            if not self._followers[run]:
                del self._followers[run]

    def _tell(self, run: str) -> None:
        for queue in self._followers.get(run, ()):
            queue.put_nowait(None)

    def _say(self, run: str, call_seq: int, text: str) -> None:
        for queue in self._followers.get(run, ()):
            queue.put_nowait(TextDelta(run, call_seq, text))


async def _wait(queue: asyncio.Queue[TextDelta | None]) -> TextDelta | None:
    """Return the next piece of text, or None when it is time to look into the journal."""
    try:
        return await asyncio.wait_for(queue.get(), POLL_SECONDS)
    except TimeoutError:
        return None


def _interpret(
    signal: Signal, state: State, user: str
) -> tuple[tuple[Draft, ...], Callable[[State], None]]:
    """Say what a signal means for a run, and what must hold for it to be let in."""
    match signal:
        case Stop(mode=mode):
            return (Draft(f"user:{user}", StopAsked(mode, user)),), _not_ended
        case Answer(request=request, value=value):
            return (Draft(f"user:{user}", RequestAnswered(request, value, user)),), _open(request)
        case UserMessage(text=text):
            chats = [it.id for it in state.requests.values() if it.kind == "chat"]
            if not chats:
                raise UsageError(
                    f"run {state.run} does not wait for a message",
                    hint="wait until it does: weft runs show",
                )
            return (Draft(f"user:{user}", RequestAnswered(chats[0], text, user)),), _open(chats[0])


def _not_ended(state: State) -> None:
    if state.status == "ended":
        raise UsageError(f"run {state.run} has ended already")


def _open(request: str) -> Callable[[State], None]:
    def check(state: State) -> None:
        if request not in state.requests:
            raise UsageError(
                f"question {request} is not open: it was answered, has expired, or never was",
                hint=f"see what is open: weft runs show {state.run}",
            )

    return check
