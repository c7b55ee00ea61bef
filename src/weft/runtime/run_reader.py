"""Reading runs: summaries, states, events and open requests; and checks of arguments."""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Literal

from weft.context.audience import Audience
from weft.engine.events import Event, RunStarted
from weft.engine.message import Message
from weft.engine.persistent import Log
from weft.engine.reduce import fold
from weft.engine.rows import OpenRequest, RequestRow, RunRow
from weft.engine.state import State
from weft.errors import AccessDenied, NotFoundError, UsageError, WeftError
from weft.ports.live import Delta
from weft.ports.scope import Scope
from weft.ports.store import Pruned, Store
from weft.runtime.board.change_log import note_pruned
from weft.runtime.models import reading
from weft.runtime.runs.live_stream import Follower, Followers
from weft.runtime.runs.memory import is_text, no_run
from weft.runtime.runs.ownership import StoreClock
from weft.runtime.worker import Worker
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache


class RunReader:
    """Reads the runs of a store."""

    def __init__(
        self,
        *,
        store: Store,
        clock: StoreClock,
        workflows: WorkflowCache,
        worker: Worker,
        followers: Followers,
    ) -> None:
        self._store = store
        self._clock = clock
        self._workflows = workflows
        self._worker = worker
        self._followers = followers

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
            return await self._worker.find(Scope.operator(scope.app), run)

    async def _is_asked(self, run: str, scope: Scope) -> bool:
        """Return whether a run has an open request for a person of the scope."""
        if not scope.addresses or not is_text(run):
            return False
        asked = await self._store.requests(scope, run=run)
        return any(request.addressee in scope.addresses for request in asked)

    async def apps(self) -> list[str]:
        """Return the tenants that have runs, in order; only for operators."""
        return await self._store.apps()

    async def runs(
        self,
        *,
        scope: Scope,
        status: Literal["running", "waiting", "ended"] | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
        only_own: bool = False,
    ) -> list[RunRow]:
        """Return runs, newest first; `before` continues after the last run of a page.

        The first page of a person also has the runs of others that ask this person something,
        unless `only_own` is set.
        """
        require_scope(scope)
        require_number(limit=limit)
        own = await self._store.runs(
            scope, status=status, workflow=workflow, before=before, limit=limit
        )
        if before is not None or scope.user is None or only_own:
            return own
        known = {row.run for row in own}
        asked = dict.fromkeys(request.run for request in await self._store.requests(scope))
        others = [
            await self._worker.find(Scope.operator(scope.app), run)
            for run in asked
            if run not in known
        ]
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

    async def requests(
        self,
        *,
        scope: Scope,
        run: str | None = None,
        after: tuple[int, str, str] | None = None,
        limit: int | None = None,
    ) -> list[OpenRequest]:
        """Return the open requests, oldest first, each with the schema of its answer.

        `after` is the time, run and id of the last one of a page.
        """
        require_scope(scope)
        require_number(limit=limit)
        if run is not None and not is_text(run):
            return []
        now = self._clock.now()
        found: list[RequestRow] = []
        while True:
            page = await self._store.requests(scope, run=run, after=after, limit=limit)
            found += (each for each in page if each.expires_at is None or each.expires_at > now)
            if limit is None or len(page) < limit or len(found) >= limit:
                return [await self._with_schema(request) for request in found[:limit]]
            after = (page[-1].opened_at, page[-1].run, page[-1].id)

    async def _with_schema(self, row: RequestRow) -> OpenRequest:
        request = OpenRequest(*row)
        if row.tool is not None:
            with suppress(WeftError):  # A damaged package must not hide the requests of others.
                workflow = await self.workflow(row.run, scope=Scope.operator(row.app))
                form = workflow.forms.get(row.tool)
                request.response_schema = form.answer_schema if form else None
        return request

    async def workflow(self, run: str, *, scope: Scope) -> Workflow:
        """Return the workflow a run was started with."""
        row = await self.run(run, scope=scope)
        return await self._workflows.of_digest(row.app, row.digest)

    async def package(self, digest: str, *, app: str) -> bytes:
        """Return a package that runs of a tenant were started with, packed; `unpack` reads it.

        Raises NotFoundError if no run was.
        """
        found = await self._store.package(app, digest) if is_text(digest) else None
        if found is None:
            raise NotFoundError(f"no run was started with the package {digest}")
        return found

    async def packed_workflow(self, package: bytes) -> Workflow:
        """Return the workflow of a packed package, even if it has no runs."""
        return await self._workflows.of_package(package)

    async def current_workflow(self, name: str, *, app: str) -> Workflow:
        """Return the workflow that a tenant knows by a name, as its package is now.

        Raises NotFoundError, CheckFailed or LinkError.
        """
        return await self._workflows.named(app, name)

    async def state(self, run: str, *, scope: Scope, at: int | None = None) -> State:
        """Return the state of a run, now or after an earlier event.

        The addressee of a request in another user's run gets its messages and these requests.
        """
        require_scope(scope)
        require_number(at=at)
        if at is None and (known := await self._state_in_memory(run, scope)) is not None:
            return known
        events = await self._store.read(scope, run, limit=at or None) if is_text(run) else []
        if not events and await self._is_asked(run, scope):
            whole = await self.state(run, scope=Scope.operator(scope.app), at=at)
            workflow = await self._workflows.of_digest(scope.app, whole.digest)
            return _shown_state(whole, workflow, scope)
        if not events or not isinstance(begun := events[0].data, RunStarted):
            raise no_run(run)
        kept = [] if at == 0 else events
        workflow = await self._workflows.of_digest(scope.app, begun.digest)
        return fold(workflow.compiled, run, kept)

    async def _state_in_memory(self, run: str, scope: Scope) -> State | None:
        """Return the state that this process has in memory, unless another one has written."""
        active = self._worker.in_memory((scope.app, run)) if is_text(run) else None
        if active is None or not active.state.seq:
            return None
        row = await self._store.run(scope, run)
        return active.state.copy() if row is not None and row.seq == active.state.seq else None

    async def events(
        self,
        run: str,
        *,
        scope: Scope,
        after: int = 0,
        limit: int | None = None,
        follow: bool = False,
    ) -> AsyncIterator[Event | Delta]:
        """Yield the events of a run after a number; with `follow`, until the run has ended.

        While following, streamed text is yielded as it arrives, and none after the whole reply.
        `limit` applies without `follow`.
        """
        require_number(after=after, limit=limit)
        require_scope(scope)
        await self._worker.find(scope, run)
        if not follow:
            for event in await self._store.read(scope, run, after=after, limit=limit):
                yield event
            return
        follower = Follower(self._store, self._worker.failures, self._followers)
        async for item in follower.follow(run, scope, after):
            yield item

    async def prune(self, *, scope: Scope, ended_before: int, dry_run: bool) -> Pruned:
        """Remove the runs that ended before a time (in milliseconds), or count them."""
        require_scope(scope)
        pruned = await self._store.prune(scope, ended_before=ended_before, dry_run=dry_run)
        if pruned.runs and not dry_run:
            await note_pruned(self._store, scope.app, ended_before)
        return pruned


def _shown_state(state: State, workflow: Workflow, scope: Scope) -> State:
    """Return the state that the addressee of a request sees: the messages and the request."""
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
        requests={
            id_: request
            for id_, request in state.requests.items()
            if request.addressee in scope.addresses
        },
    )
    shown.messages = Log(
        Message(message.role, message.agent, text, message.seq)
        for message in _not_refused(state.messages)
        if (text := _shown_text(workflow, audience, message))
    )
    return shown


def _not_refused(messages: Log[Message]) -> list[Message]:
    """Return a conversation without the replies that were refused and sent back to their agents."""
    found: list[Message] = []
    corrected = ""
    for message in reversed(messages):
        corrected = message.to or corrected
        if message.role == "agent" and message.agent == corrected:
            corrected = ""
        else:
            found.append(message)
    return found[::-1]


def _shown_text(workflow: Workflow, audience: Audience, message: Message) -> str:
    if message.role == "user":
        return message.text if audience.sees_user_text(message.text) else ""
    if message.role != "agent" or not audience.hears(message.agent, message.text):
        return ""
    read_as = reading(workflow, message.agent, message.text)
    return (message.text if read_as is None else read_as).strip()


def require_scope(scope: object) -> None:
    """Raise UsageError unless the scope is a Scope."""
    if not isinstance(scope, Scope):
        raise UsageError(
            f"scope is a Scope, not {scope!r}", hint='make one: weft.Scope("my-app", "ada")'
        )


def require_user(scope: Scope) -> None:
    """Raise UsageError if the scope has an empty user or tenant: callers would share it."""
    for what, name in (("tenant", scope.app), ("user", scope.user)):
        if name == "":
            raise UsageError(f"the {what} of the scope is empty", hint=f"name the {what}")


def require_text(**given: object) -> None:
    """Raise UsageError for values that are given and are not text."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} is a text, not {value!r}")


def require_number(**given: object) -> None:
    """Raise UsageError for values that are given and are not whole numbers from 0 on."""
    for name, value in given.items():
        counts = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if value is not None and not counts:
            raise UsageError(f"{name} must be a number from 0 on, not {value!r}")


def require_values(values: object) -> None:
    """Raise UsageError unless values are a mapping by variable."""
    if values is not None and not isinstance(values, Mapping):
        raise UsageError(
            f"values are given by variable, not as {values!r}",
            hint='write values={"variable": value}',
        )
