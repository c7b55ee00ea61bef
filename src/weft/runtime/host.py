"""The host: starts runs, lets signals in, shows what happened. Runs depend on no caller."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Final, Literal, Self

from weft.engine.events import Event, ModelFailed, ModelReplied, RequestExpired, RunStarted
from weft.engine.reduce import fold
from weft.engine.rows import RequestRow, RunRow
from weft.engine.state import State
from weft.errors import AccessDenied, StoreConflict, UsageError, WeftError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.journal import Journal, Pruned
from weft.ports.scope import Scope
from weft.ports.tools import ToolLoader
from weft.runtime.active import ActiveRun
from weft.runtime.active_runs import ActiveRuns
from weft.runtime.arguments import (
    require_number,
    require_scope,
    require_text,
    require_user,
    require_values,
)
from weft.runtime.decision import CallCheck, Decision, NewEvent
from weft.runtime.expiry import Expiry
from weft.runtime.followers import Followers, TextDelta, next_delta
from weft.runtime.forking import Edits, fork
from weft.runtime.perform import ModelSource, Performer
from weft.runtime.secrets import secret_values
from weft.runtime.signals import Answer, Signal, Stop, interpret, is_open, was_heard
from weft.runtime.values import fitting_text, start_values
from weft.runtime.workflow import Workflow
from weft.runtime.workflows import FindWorkflow, WorkflowCache

_log: Final = logging.getLogger("weft.runtime")


class Host:
    """Runs workflows. Close it, or use it as an async context manager."""

    def __init__(
        self,
        *,
        journal: Journal,
        models: ModelSource,
        loader: ToolLoader,
        clock: Clock,
        find: FindWorkflow,
        environment: Mapping[str, str] | None = None,
        production: bool = False,
    ) -> None:
        self._journal = journal
        self._models = models
        self._loader = loader
        self._clock = clock
        self._environment = environment or {}
        self._production = production
        self._workflows = WorkflowCache(journal, loader, find)
        self._followers = Followers()
        self._expiry = Expiry(journal, clock, self._expire)
        self._performer = Performer(
            journal, models, clock, self._written, self._followers.listener, self._secrets_of
        )
        self._active = ActiveRuns(journal, self._workflows, self._performer, self._left)

    async def start(
        self,
        workflow: str,
        *,
        scope: Scope,
        message: str | None = None,
        values: Mapping[str, Json] | None = None,
        model: str | None = None,
        run: str | None = None,
        streamed: bool = False,
    ) -> str:
        """Begin a run and return its identity; it goes on whether or not anybody watches.

        `model` answers for every agent, whatever the package says. A `run` of your own choice may
        be given once; a second start with it is refused. `streamed` keeps the first words as they
        are spoken for whoever is about to follow the events.
        """
        require_scope(scope)
        require_user(scope)
        require_text(workflow=workflow, model=model)
        require_values(values)
        linked = self._workflows.named(workflow)
        if run is not None and not _is_text(run):
            raise UsageError(f"{run!r} cannot be the identity of a run", hint="name it with a text")
        name = run or self._clock.new_id()
        self._require_models(linked, model, scope)
        given = start_values(
            linked.compiled,
            environment=self._environment,
            production=self._production,
            given=values or {},
        )
        user = scope.user or ""
        begun = RunStarted(
            linked.name, linked.digest, scope.app, user, given, fitting_text(message), model
        )
        active = self._active.made(scope, linked, State(name))
        if self._active.put(active) is not active:
            raise _taken(name)
        if streamed:
            self._followers.expect(name)
        try:
            await active.deliver(NewEvent(f"user:{user}", begun), _is_new)
        except StoreConflict as error:  # It is somebody else's: not even how long it is may show.
            raise _taken(name) from error
        return name

    async def deliver(self, run: str, signal: Signal, *, scope: Scope) -> None:
        """Let a signal into a run. It returns when the signal is in the journal.

        It may be delivered again, by whoever does not know whether it was: it counts once. A
        message that was heard returns; an answer to what was answered is refused.
        """
        active = await self._active.load(await self.run(run, scope=scope))
        if was_heard(signal, active.state):
            return
        if not isinstance(signal, Stop):
            self._require_models(active.workflow, active.state.model, scope)
        if isinstance(signal, Answer):
            await self._expire_if_over(active, signal.request)
        user = scope.user or scope.app
        await self._post(active, *interpret(signal, active.workflow, active.state, user))

    async def fork(
        self,
        run: str,
        *,
        scope: Scope,
        turn: int,
        values: Mapping[str, Json] | None = None,
        model: str | None = None,
        streamed: bool = False,
    ) -> str:
        """Let a turn of a run be taken anew, with other values or another model, as a new run."""
        require_number(turn=turn)
        require_text(model=model)
        require_values(values)
        row = await self.run(run, scope=scope)
        workflow = await self._workflows.of_digest(row.digest)
        child = self._clock.new_id()
        written, state = fork(
            workflow,
            await self._journal.read(scope, run),
            parent=run,
            child=child,
            turn=turn,
            edits=Edits(values or {}, model),
            user=scope.user or scope.app,
            now=self._clock.now(),
        )
        self._require_models(workflow, state.model, scope)
        active = self._active.put(self._active.made(Scope(row.app, row.user), workflow, state))
        if streamed:
            self._followers.expect(child)
        await active.begin(written)
        return child

    async def run(self, run: str, *, scope: Scope) -> RunRow:
        """Return a run at a glance. Raises AccessDenied if there is none in the scope."""
        require_scope(scope)
        row = await self._journal.run(scope, run) if _is_text(run) else None
        if row is None:
            raise _no_run(run)
        return row

    async def runs(
        self,
        *,
        scope: Scope,
        status: Literal["running", "waiting", "ended"] | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        """Return runs, newest first; `before` goes on after the last run of a page."""
        require_scope(scope)
        require_number(limit=limit)
        return await self._journal.runs(
            scope, status=status, workflow=workflow, before=before, limit=limit
        )

    async def requests(self, *, scope: Scope, run: str | None = None) -> list[RequestRow]:
        """Return the open questions, oldest first."""
        require_scope(scope)
        if run is not None and not _is_text(run):
            return []
        return await self._journal.requests(scope, run=run)

    async def workflow(self, run: str, *, scope: Scope) -> Workflow:
        """Return the workflow a run was started with."""
        return await self._workflows.of_digest((await self.run(run, scope=scope)).digest)

    async def state(self, run: str, *, scope: Scope, at: int | None = None) -> State:
        """Return the state of a run, now or after an earlier event."""
        require_scope(scope)
        require_number(at=at)
        events = await self._journal.read(scope, run, limit=at or None) if _is_text(run) else []
        if not events or not isinstance(begun := events[0].data, RunStarted):
            raise _no_run(run)
        kept = [] if at == 0 else events
        return fold((await self._workflows.of_digest(begun.digest)).compiled, run, kept)

    async def events(
        self, run: str, *, scope: Scope, after: int = 0, follow: bool = False
    ) -> AsyncIterator[Event | TextDelta]:
        """Yield the events of a run after a number; with `follow`, go on until it has ended.

        While following, pieces of text come as they are spoken, but none after the whole reply.
        """
        require_number(after=after)
        if not follow:
            await self.run(run, scope=scope)
            for event in await self._journal.read(scope, run, after=after):
                yield event
            return
        self._expiry.look()
        replied = 0
        with self._followers.following(run) as news:
            while True:
                row = await self.run(run, scope=scope)
                for event in await self._journal.read(scope, run, after=after):
                    if isinstance(event.data, ModelReplied | ModelFailed):
                        replied = event.cause
                    yield event
                    after = event.seq
                if row.status == "ended" and after >= row.seq:
                    return
                self._active.raise_if_given_up(run)
                while after >= row.seq and (delta := await next_delta(news)) is not None:
                    if delta.call > replied:
                        yield delta

    async def settled(self, run: str, *, scope: Scope) -> RunRow:
        """Return when a run waits for a person or has ended.

        Raises RunError if nobody works on it any more because something could not be written.
        """
        require_scope(scope)
        while True:
            active = self._active.get(run)
            row = None if active is None else await self._rested(active, scope)
            row = row or await self.run(run, scope=scope)
            if row.status != "running":
                return row
            self._active.raise_if_given_up(run)
            # Others may be working on it.
            if active is None or active.held or active.state.seq < row.seq:
                with self._followers.following(run) as news:
                    await next_delta(news)

    async def _rested(self, active: ActiveRun, scope: Scope) -> RunRow | None:
        """Wait until a run rests, and return its row if this process has just written it."""
        await active.rest()
        row = None if active.held else active.row
        return row if row is not None and scope.covers(row.app, row.user) else None

    async def resume(self, run: str, *, scope: Scope, streamed: bool = False) -> None:
        """Take up a run that had something to do when its process ended.

        `streamed` keeps the first words for whoever is about to follow the events.
        """
        active = await self._active.load(await self.run(run, scope=scope))
        self._require_models(active.workflow, active.state.model, scope)
        if streamed:
            self._followers.expect(run)
        self._active.take_up(active)

    async def recover(self) -> list[str]:
        """Take up every run that had something to do, and wait for what will expire.

        Call it once after the start of the only process that works on a journal.
        """
        rows = await self._journal.unfinished()
        taken: list[str] = []
        for row in rows:
            try:
                self._active.take_up(await self._active.load(row))
            except WeftError as fault:  # That one is damaged is no reason to leave the others.
                _log.exception("run %s cannot be taken up", row.run)
                self._active.give_up(row.run, fault)
            else:
                taken.append(row.run)
        self._expiry.look()
        return taken

    async def prune(self, *, scope: Scope, ended_before: int, dry_run: bool) -> Pruned:
        """Remove the runs that ended before a time (in milliseconds), or tell what would go."""
        require_scope(scope)
        return await self._journal.prune(scope, ended_before=ended_before, dry_run=dry_run)

    async def close(self) -> None:
        """Let all runs go; they go on from their journals some other time."""
        async with AsyncExitStack() as stack:  # What one cannot close is no reason to leave others.
            stack.callback(self._loader.close)
            stack.push_async_callback(self._journal.close)
            stack.push_async_callback(self._models.close)
            stack.push_async_callback(self._active.close)
            stack.push_async_callback(self._expiry.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _post(self, active: ActiveRun, draft: NewEvent, allowed: CallCheck) -> None:
        await self._active.put(active).deliver(draft, allowed)

    def _require_models(self, workflow: Workflow, model: str | None, scope: Scope) -> None:
        """Raise what is wrong with the models of a run now, before anything is written."""
        for name in {model} if model else set(workflow.models.values()):
            self._models(name or "", workflow, scope)

    def _left(self, run: str) -> None:
        self._followers.forget(run)
        self._followers.tell(run)

    def _written(self, decision: Decision) -> None:
        self._followers.tell(decision.state.run)
        if any(it.expires_at is not None for it in decision.state.requests.values()):
            self._expiry.look()

    def _secrets_of(self, workflow: Workflow) -> Mapping[str, Json]:
        return secret_values(workflow.compiled, self._environment)

    async def _expire(self, row: RequestRow) -> None:
        scope = Scope(row.app, row.user)
        active = await self._active.load(await self.run(row.run, scope=scope))
        await self._expire_if_over(active, row.id)

    async def _expire_if_over(self, active: ActiveRun, request: str) -> None:
        """Let a question expire whose time is over: there may have been nobody to do it then."""
        asked = active.state.requests.get(request)
        if asked is None or asked.expires_at is None or asked.expires_at > self._clock.now():
            return
        # That it was answered meanwhile, or that another process was quicker, is no fault.
        with suppress(UsageError):
            await self._post(active, NewEvent("clock", RequestExpired(request)), is_open(request))


def _is_text(run: str) -> bool:
    """Tell whether something can be the identity of a run at all: some strings are no text."""
    try:
        run.encode()
    except (UnicodeEncodeError, AttributeError):
        return False
    return True


def _no_run(run: str) -> AccessDenied:
    return AccessDenied(f"there is no run {run}")


def _taken(run: str) -> UsageError:
    return UsageError(
        f"run {run} was started before", hint="leave the identity out to get a new one"
    )


def _is_new(state: State) -> bool:
    return not state.seq
