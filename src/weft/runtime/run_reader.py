"""Reading runs: summaries, states, events and open requests; and checks of what programs pass."""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Literal

from weft.context.audience import Audience
from weft.engine.events import Event, RunStarted
from weft.engine.log import Log
from weft.engine.reduce import fold
from weft.engine.rows import OpenRequest, RequestRow, RunRow
from weft.engine.state import Message, State
from weft.errors import AccessDenied, UsageError, WeftError
from weft.ports.dispatcher import Dispatcher
from weft.ports.journal import Journal, Pruned
from weft.ports.scope import Scope
from weft.runtime.local_dispatch import LocalDispatcher
from weft.runtime.models import reading
from weft.runtime.runs.live_stream import Delta, Follower, LiveStream
from weft.runtime.worker import Worker, is_text, no_run
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache


class RunReader:
    """Reads the runs of a store."""

    def __init__(
        self,
        *,
        journal: Journal,
        workflows: WorkflowCache,
        dispatcher: Dispatcher,
        worker: Worker,
        stream: LiveStream,
    ) -> None:
        self._journal = journal
        self._workflows = workflows
        self._dispatcher = dispatcher
        #: Whether this process works on every run, as it does without a dispatcher of its own.
        self._works_on_all = isinstance(dispatcher, LocalDispatcher)
        self._worker = worker
        self._stream = stream

    async def run(self, run: str, *, scope: Scope) -> RunRow:
        """Return the summary of a run: one of the scope, or one that asks this person something.

        Raises AccessDenied if there is none.
        """
        require_scope(scope)
        try:
            return await self._worker.find(scope, run)
        except AccessDenied:
            if not await self._is_asked(run, scope):
                raise
            return await self._worker.find(Scope(scope.app), run)

    async def _is_asked(self, run: str, scope: Scope) -> bool:
        """Tell whether a run has an open request for a person of the scope."""
        if not scope.addresses or not is_text(run):
            return False
        asked = await self._journal.requests(scope, run=run)
        return any(request.addressee in scope.addresses for request in asked)

    async def runs(
        self,
        *,
        scope: Scope,
        status: Literal["running", "waiting", "ended"] | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        """Return runs, newest first; `before` continues after the last run of a page.

        The first page of a person also has the runs of others that ask this person something.
        """
        require_scope(scope)
        require_number(limit=limit)
        own = await self._journal.runs(
            scope, status=status, workflow=workflow, before=before, limit=limit
        )
        if before is not None or scope.user is None:
            return own
        known = {row.run for row in own}
        asked = dict.fromkeys(request.run for request in await self._journal.requests(scope))
        others = [await self._worker.find(Scope(scope.app), it) for it in asked if it not in known]
        own += (
            row
            for row in others
            if row.user != scope.user
            and status in (None, row.status)
            and workflow in (None, row.workflow)
        )
        if len(own) > len(known):
            own.sort(key=lambda row: row.started_at, reverse=True)
        return own[:limit]

    async def requests(self, *, scope: Scope, run: str | None = None) -> list[OpenRequest]:
        """Return the open requests, oldest first, each with the schema of its answer."""
        require_scope(scope)
        if run is not None and not is_text(run):
            return []
        return [
            await self._with_schema(request)
            for request in await self._journal.requests(scope, run=run)
        ]

    async def _with_schema(self, row: RequestRow) -> OpenRequest:
        request = OpenRequest(*row)
        if row.tool is not None:
            with suppress(WeftError):  # The others are listed though one package is damaged.
                workflow = await self.workflow(row.run, scope=Scope(row.app))
                form = workflow.forms.get(row.tool)
                request.response_schema = form.answer_schema if form else None
        return request

    async def workflow(self, run: str, *, scope: Scope) -> Workflow:
        """Return the workflow a run was started with."""
        row = await self.run(run, scope=scope)
        return await self._workflows.of_digest(row.app, row.digest)

    async def state(self, run: str, *, scope: Scope, at: int | None = None) -> State:
        """Return the state of a run, now or after an earlier event.

        A person whom the run of another asks something gets its messages and these requests.
        """
        require_scope(scope)
        require_number(at=at)
        events = await self._journal.read(scope, run, limit=at or None) if is_text(run) else []
        if not events and await self._is_asked(run, scope):
            whole = await self.state(run, scope=Scope(scope.app), at=at)
            workflow = await self._workflows.of_digest(scope.app, whole.digest)
            return _shown_state(whole, workflow, scope)
        if not events or not isinstance(begun := events[0].data, RunStarted):
            raise no_run(run)
        kept = [] if at == 0 else events
        workflow = await self._workflows.of_digest(scope.app, begun.digest)
        return fold(workflow.compiled, run, kept)

    async def events(
        self, run: str, *, scope: Scope, after: int = 0, follow: bool = False
    ) -> AsyncIterator[Event | Delta]:
        """Yield the events of a run after a number; with `follow`, until the run has ended.

        While following, streamed text is yielded as it arrives, and none after the whole reply.
        """
        require_number(after=after)
        require_scope(scope)
        await self._worker.find(scope, run)
        if not follow:
            for event in await self._journal.read(scope, run, after=after):
                yield event
            return
        if self._works_on_all or self._dispatcher.mine((scope.app, run)):
            self._worker.check_due()
        follower = Follower(self._journal, self._worker, self._stream)
        async for item in follower.follow(run, scope, after):
            yield item

    async def prune(self, *, scope: Scope, ended_before: int, dry_run: bool) -> Pruned:
        """Remove the runs that ended before a time (in milliseconds), or count them."""
        require_scope(scope)
        return await self._journal.prune(scope, ended_before=ended_before, dry_run=dry_run)


def _shown_state(state: State, workflow: Workflow, scope: Scope) -> State:
    """Return what the addressee of a request sees of a run: what is said, and the request."""
    audience = Audience(workflow.spec, scope.user or "", scope.addresses)
    shown = State(
        state.run,
        seq=state.seq,
        status=state.status,
        workflow=state.workflow,
        digest=state.digest,
        app=state.app,
        user=state.user,
        started_at=state.started_at,
        requests={id_: it for id_, it in state.requests.items() if it.addressee in scope.addresses},
    )
    shown.messages = Log(
        Message(message.role, message.agent, text, message.seq)
        for message in state.messages
        if (text := _shown_text(workflow, audience, message))
    )
    return shown


def _shown_text(workflow: Workflow, audience: Audience, message: Message) -> str:
    if message.role == "user":
        return message.text if audience.sees_user_text(message.text) else ""
    if message.role != "agent" or not audience.hears(message.agent, message.text):
        return ""
    read_as = reading(workflow, message.agent, message.text)
    return (message.text if read_as is None else read_as).strip()


def require_scope(scope: object) -> None:
    """Refuse what cannot say whose data it is."""
    if not isinstance(scope, Scope):
        raise UsageError(
            f"scope is a Scope, not {scope!r}", hint='make one: weft.Scope("my-app", "ada")'
        )


def require_user(scope: Scope) -> None:
    """Refuse to begin something for an empty name: all who forgot theirs would share it."""
    for what, name in (("tenant", scope.app), ("user", scope.user)):
        if name == "":
            raise UsageError(f"the {what} of the scope is empty", hint=f"name the {what}")


def require_text(**given: object) -> None:
    """Refuse what is there and is no text."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} is a text, not {value!r}")


def require_number(**given: object) -> None:
    """Refuse what is there and is no number one can count to."""
    for name, value in given.items():
        counts = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if value is not None and not counts:
            raise UsageError(f"{name} is a number from 0 on, not {value!r}")


def require_values(values: object) -> None:
    """Refuse what gives no values to variables."""
    if values is not None and not isinstance(values, Mapping):
        raise UsageError(
            f"values are given by variable, not as {values!r}",
            hint='write values={"variable": value}',
        )
