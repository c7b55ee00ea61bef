"""The gateway of boards: publishing, reading, and collections across correlations."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypedDict, Unpack
from weakref import WeakValueDictionary

from weft.context.slices import Envelope
from weft.engine.board.publishing import JsonDraft
from weft.engine.board.state import run_name
from weft.engine.board.visibility import Identity, denial
from weft.engine.events import ArtifactPublished, BatchesFlushed, Event, RunStarted
from weft.engine.rows import Mail, RunRow
from weft.engine.state import State
from weft.errors import (
    AccessDenied,
    NameTaken,
    NotFoundError,
    RunError,
    RunOwned,
    StoreConflict,
    WeftError,
)
from weft.findings import Json
from weft.ports.board import ArtifactPage, ArtifactQuery, Consumption, Place, StoredArtifact
from weft.ports.scope import Scope
from weft.runtime.board.change_log import BoardLog, BoardView, ChangePage
from weft.runtime.board.publish import (
    BoardStart,
    Offer,
    Publication,
    correlation_of,
    publish_event,
    require_agent,
    validate_offer,
)
from weft.runtime.board.reading import owner_of, owners_of, reader_for, require_board_access
from weft.runtime.gateway import Gateway
from weft.runtime.run_reader import require_scope, require_text, require_user
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.decision import NewEvent
from weft.runtime.signals import Stop
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import require_completed
from weft.spec.board import Visibility
from weft.spec.providers import FilterConfig

#: How often publishing is tried while other processes begin and end the same correlation.
MAX_TRIES: Final = 10


class ArtifactFilters(TypedDict, total=False):
    """Which artifacts are meant, as in `ArtifactQuery`."""

    types: tuple[str, ...]
    tags: tuple[str, ...]
    producers: tuple[str, ...]
    correlation: str | None
    partition: str | None
    since: int | None
    text: str | None
    after: Place | None


class BoardGateway(Gateway):
    """A gateway that knows boards."""

    def __init__(self, **ports: Any) -> None:  # noqa: ANN401 - those of every gateway
        super().__init__(**ports)
        self._worker.on_written = self._finish_changes
        self._changes: list[asyncio.Future[None]] = []
        self._board_log = BoardLog(self._store, self._clock)
        #: Held by the task that begins the run of a correlation.
        self._beginning: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @property
    def busy(self) -> bool:
        """Whether this process works on a run, or mail is on its way."""
        return self._worker.busy

    def new_id(self) -> str:
        """Return a new unique name."""
        return self._clock.new_id()

    def changed(self) -> asyncio.Future[None]:
        """Return a future that is done with the next change to a board in this process."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes.append(change)
        return change

    async def quiet(self) -> None:
        """Return when this process has no more work for any run, including mail."""
        await self._worker.wait_until_idle()

    async def changed_or_quiet(self, change: asyncio.Future[None]) -> None:
        """Return when there is a change, or no work that could lead to one."""
        quiet = asyncio.ensure_future(self.quiet())
        try:
            await asyncio.wait((change, quiet), return_when=asyncio.FIRST_COMPLETED)
        finally:
            quiet.cancel()
            await asyncio.gather(quiet, return_exceptions=True)

    def _finish_changes(self, _app: str, _events: Sequence[Event]) -> None:
        changes, self._changes = self._changes, []
        for change in changes:
            if not change.done():
                change.set_result(None)

    async def publish(  # noqa: PLR0913 - what is published, by name
        self,
        workflow: str,
        type: str,  # noqa: A002 - what it is
        payload: object,
        *,
        scope: Scope,
        tags: Iterable[str] = (),
        visibility: Visibility | Mapping[str, Json] | None = None,
        correlation: str | None = None,
        partition: str = "",
        id: str = "",  # noqa: A002 - what it is
        agent: str = "",
        model: str | None = None,
    ) -> Publication:
        """Publish an artifact, and return its place when it is durable.

        Without a correlation it begins a new one. Publishing the same `id` again returns the
        existing artifact. `agent` gives it to one agent only; `model` answers for every agent of
        a correlation that begins with it.
        """
        require_scope(scope)
        require_user(scope)
        require_text(workflow=workflow, model=model)
        linked = await self._workflows.named(scope.app, workflow)
        offer = Offer(type, payload, tags, visibility, correlation, partition, id, agent)
        draft = validate_offer(linked, offer)
        self._require_models(linked, model, scope)
        if id:
            there = await self._find_artifact(linked.name, id, scope)
            if there is not None:
                return Publication(id, there.run, there.artifact.correlation)
        return await self._publish(linked, offer, draft, scope, model)

    async def _publish(
        self, linked: Workflow, offer: Offer, draft: JsonDraft, scope: Scope, model: str | None
    ) -> Publication:
        # The store accepts mail with an id once, whichever processes send it.
        is_once = bool(offer.id)
        new_id = self._clock.new_id()
        offer = offer._replace(id=offer.id or self._clock.new_id())
        owner = owner_of(linked, scope)
        correlation = offer.correlation or (
            correlation_of(linked.name, owner, offer.id) if is_once else new_id
        )
        begin = BoardStart(linked, model, correlation, run_name(linked.name, owner, correlation))
        is_new = not offer.correlation and not is_once
        for _ in range(MAX_TRIES):
            try:
                if is_new:
                    run = await self._begin_or_send(begin, offer, draft, scope, new_id)
                else:
                    # Of many that publish at once, one begins the correlation.
                    lock = self._beginning.setdefault((scope.app, begin.name), asyncio.Lock())
                    async with lock:
                        run = await self._send(begin, offer, draft, scope, is_once=is_once)
            except StoreConflict:  # Another process has begun, taken or ended it meanwhile.
                continue
            if run is not None:
                return Publication(offer.id, run, correlation)
        raise RunError(f"the correlation {correlation} could not be written to; try again")

    async def _begin_or_send(
        self, begin: BoardStart, offer: Offer, draft: JsonDraft, scope: Scope, run: str
    ) -> str:
        """Begin a correlation with an artifact."""
        if self._works:
            return await self._begin_board(run, begin, offer, draft, scope)
        return await self._publish_by_mail(begin, offer, draft, scope, None)

    async def _send(
        self, begin: BoardStart, offer: Offer, draft: JsonDraft, scope: Scope, *, is_once: bool
    ) -> str | None:
        """Put an artifact into the run of its correlation; None if that has just ended."""
        active, row = self._worker.named(scope.app, begin.name), None
        if active is None:
            row = await self._store.named(scope.app, begin.name)
            row = row if row is not None and row.status != "ended" else None
        if is_once or not self._can_write(active, row):
            if active is not None:
                row = active.row
            return await self._publish_by_mail(begin, offer, draft, scope, row)
        if active is None and row is None:
            return await self._begin_board(self._clock.new_id(), begin, offer, draft, scope)
        try:
            return await self._add(begin, active, row, offer, draft, scope)
        except RunOwned:  # The run in memory is outdated: another process owns it now.
            row = await self._store.named(scope.app, begin.name)
            return await self._publish_by_mail(begin, offer, draft, scope, row)

    def _can_write(self, active: ActiveRun | None, row: RunRow | None) -> bool:
        """Return whether this process may write to a run, or begin it."""
        if active is not None or row is None:
            return self._works
        return self._works and row.owner in ("", self._worker.ownership.owner)

    async def _begin_board(
        self, run: str, begin: BoardStart, offer: Offer, draft: JsonDraft, scope: Scope
    ) -> str:
        await require_completed(self._store, begin.workflow, scope)
        made = await self._event_of(begin.workflow, offer, draft, scope)
        actor = f"user:{scope.user or ''}"
        new = (NewEvent(actor, await self._board_start(begin, scope)), NewEvent(actor, made))
        await self._begin(scope, begin.workflow, run, new)
        return run

    async def _publish_by_mail(
        self,
        begin: BoardStart,
        offer: Offer,
        draft: JsonDraft,
        scope: Scope,
        row: RunRow | None,
    ) -> str:
        """Send an artifact to the run of its correlation, which begins if it is not open."""
        workflow = begin.workflow
        if row is None:
            await require_completed(self._store, workflow, scope)
        else:
            workflow = await self._workflows.of_digest(row.app, row.digest)
            draft = self._draft_for(workflow, begin.workflow, offer, draft)
        made = await self._event_of(workflow, offer, draft, scope)
        start = await self._board_start(begin, scope)
        mail = Mail(scope.app, begin.name, offer.id, f"user:{scope.user or ''}", made, start)
        run = await self._put(mail, begin.workflow.package)
        if self._works:
            await self._worker.attend((scope.app, run))
        return run

    async def _event_of(
        self, workflow: Workflow, offer: Offer, draft: JsonDraft, scope: Scope
    ) -> ArtifactPublished:
        user = scope.user or ""
        return await publish_event(
            workflow, offer, draft, app=scope.app, user=user, ports=self._code_ports
        )

    async def _board_start(
        self, begin: BoardStart, scope: Scope, *, schedule: str = ""
    ) -> RunStarted:
        return RunStarted(
            begin.workflow.name,
            begin.workflow.digest,
            scope.app,
            scope.user or "",
            await self._start_values(begin.workflow, scope),
            model=begin.model,
            correlation=begin.correlation,
            schedule=schedule,
            name=begin.name,
        )

    def _draft_for(
        self, workflow: Workflow, linked: Workflow, offer: Offer, draft: JsonDraft
    ) -> JsonDraft:
        """Return a draft for a run, which uses the board of the package it started with.

        A type that is newer is valid as the board has it now, and wakes no agent of the run.
        """
        if workflow is not linked and offer.type in workflow.types.schemas:
            return validate_offer(workflow, offer)
        return draft

    async def _add(
        self,
        begin: BoardStart,
        active: ActiveRun | None,
        row: RunRow | None,
        offer: Offer,
        draft: JsonDraft,
        scope: Scope,
    ) -> str | None:
        """Put an artifact into a run that is open; None if it has ended meanwhile."""
        if active is None and row is not None:
            active = await self._worker.load(Scope.operator(scope.app), row.run)
        if active is None:
            return None
        if active.workflow.missing is not None:
            raise active.workflow.missing
        draft = self._draft_for(active.workflow, begin.workflow, offer, draft)
        made = await self._event_of(active.workflow, offer, draft, scope)
        events = await self._worker.hold(active).deliver(
            (NewEvent(f"user:{scope.user or ''}", made),), _is_open
        )
        return active.key[1] if any(event.data is made for event in events) else None

    async def run_of(self, workflow: str, correlation: str, *, scope: Scope) -> str:
        """Return the run of a correlation: the open one, or the newest that has ended.

        Raises AccessDenied if the scope has none.
        """
        require_scope(scope)
        linked = await self._workflows.named(scope.app, workflow)
        name = run_name(linked.name, owner_of(linked, scope), correlation)
        row = await self._store.named(scope.app, name)
        if row is None:
            raise AccessDenied(f"there is no correlation {correlation} on the board {workflow}")
        return row.run

    async def flush(self, run: str, *, scope: Scope) -> None:
        """Let everything be handled now that a board has collected for batches in a run."""
        require_scope(scope)
        operator = Scope.operator(scope.app)
        row = await self._worker.find(operator, run)
        require_board_access(row, await self._workflows.of_digest(row.app, row.digest), scope)
        user = scope.actor
        new = NewEvent(f"user:{user}", BatchesFlushed(user))
        if self._can_write(self._worker.in_memory((row.app, run)), row):
            active = await self._worker.load(operator, run)
            try:
                await self._worker.hold(active).deliver((new,), _is_open)
            except RunOwned:  # The run in memory is outdated: another process owns it now.
                pass
            else:
                return
        await self._put(Mail(row.app, run, self._clock.new_id(), new.actor, new.data))
        if self._works:
            self._worker.look_at((row.app, run))

    async def start_schedules(self, workflow: str, *, scope: Scope) -> list[str]:
        """Begin the schedules of a board that are not under way, and return their runs."""
        require_scope(scope)
        require_user(scope)
        linked = await self._workflows.named(scope.app, workflow)
        self._require_models(linked, None, scope)
        await require_completed(self._store, linked, scope)
        runs: list[str] = []
        for agent in linked.spec.board.agents if linked.spec.board else ():
            if agent.schedule is None:
                continue
            name = f"{linked.name}~schedule~{agent.agent}"
            owned = run_name(linked.name, owner_of(linked, scope), name)
            last = await self._store.named(scope.app, owned)
            if last is not None and last.digest == linked.digest:
                runs.append(last.run)  # Under way, or over: it is not begun again.
                continue
            if last is not None and last.status != "ended":  # Of a board that has changed.
                await self.deliver(last.run, Stop("now"), scope=Scope.operator(scope.app))
            run = self._clock.new_id()
            begin = BoardStart(linked, None, name, owned)
            begun = await self._board_start(begin, scope, schedule=agent.agent)
            try:
                await self._begin(scope, linked, run, (NewEvent(f"user:{scope.user}", begun),))
            except NameTaken:  # Another process was quicker.
                run = await self._store.open_run(scope.app, owned) or run
            runs.append(run)
        return runs

    async def artifacts(
        self,
        workflow: str,
        filters: FilterConfig | None = None,
        *,
        scope: Scope,
        agent: str | None = None,
        embed_meta: bool = False,
        offset: int = 0,
    ) -> tuple[list[Envelope], int]:
        """Return artifacts of a board, and how many there are in all.

        An operator sees everything of the tenant; `agent` shows only what that agent may see.
        `embed_meta` says of each which agents it has woken; `offset` leaves out so many of the
        first.
        """
        require_scope(scope)
        identity = None if agent is None else await self._identity(workflow, agent, scope)
        reader = reader_for(
            self._store,
            app=scope.app,
            board=await self._board_name(workflow, scope),
            reader=identity,
            owners=owners_of(scope),
            now=self._clock.now(),
        )
        return await reader.query_artifacts(filters, embed_meta=embed_meta, offset=offset)

    async def artifact_page(
        self,
        workflow: str,
        *,
        scope: Scope,
        reader: Identity | None,
        limit: int,
        agent: str | None = None,
        count: bool = False,
        **filters: Unpack[ArtifactFilters],
    ) -> ArtifactPage:
        """Return artifacts that a reader may see, newest first; filters are those of a query.

        With `agent`, that agent is the reader.
        """
        if agent is not None:
            reader = await self._identity(workflow, agent, scope)
        app, board, reader, owners = await self._view(workflow, scope, reader)
        now = self._clock.now()
        query = ArtifactQuery(app, board, reader, now, owners, **filters, limit=limit)
        return await self._store.artifacts(query, count=count)

    def newest_change(self) -> Place:
        """Return the place after which what appears from now on comes."""
        return self._board_log.end()

    async def board_changes(
        self,
        workflow: str,
        *,
        scope: Scope,
        reader: Identity | None,
        after: Place | None,
        limit: int,
    ) -> ChangePage:
        """Return what has appeared to a reader after a place, in order."""
        return await self._board_log.page(await self._view(workflow, scope, reader), after, limit)

    async def follow_board(
        self, workflow: str, *, scope: Scope, reader: Identity | None, after: Place | None
    ) -> AsyncGenerator[ChangePage]:
        """Yield what appears to a reader after a place, for ever."""
        view = await self._view(workflow, scope, reader)
        async with aclosing(self._board_log.follow(view, after)) as pages:
            async for page in pages:
                yield page

    async def _view(self, workflow: str, scope: Scope, reader: Identity | None) -> BoardView:
        require_scope(scope)
        board = await self._board_name(workflow, scope)
        return BoardView(scope.app, board, reader, owners_of(scope))

    async def artifact(
        self, workflow: str, artifact: str, *, scope: Scope, reader: Identity | None = None
    ) -> StoredArtifact:
        """Return an artifact with its visibility and where it stands in the journal.

        One that a reader may not see is as if it were not there.
        """
        require_scope(scope)
        board = await self._board_name(workflow, scope)
        found = await self._find_artifact(board, artifact, scope, reader)
        if found is None:
            raise NotFoundError(f"there is no artifact {artifact} on the board {workflow}")
        return found

    async def _find_artifact(
        self, board: str, artifact: str, scope: Scope, reader: Identity | None = None
    ) -> StoredArtifact | None:
        """Return the artifact of a name; a fork has copies of those of the run it comes from."""
        query = ArtifactQuery(
            scope.app, board, reader, self._clock.now(), owners_of(scope), ids=(artifact,)
        )
        found = (await self._store.artifacts(query)).items
        for artifact_copy in found if len(found) > 1 else ():
            row = await self._store.run(Scope.operator(scope.app), artifact_copy.run)
            if row is not None and not row.parent:
                return artifact_copy
        return next(iter(found), None)

    async def _board_name(self, workflow: str, scope: Scope) -> str:
        """Return the name of a board, which may be another than that of its folder."""
        try:
            return (await self._workflows.named(scope.app, workflow)).name
        except WeftError:  # What was published can be read though the package cannot run now.
            return workflow

    async def _identity(self, workflow: str, agent: str, scope: Scope) -> Identity:
        """Return the identity with which an agent reads; raises UsageError for unknown agents."""
        linked = await self._workflows.named(scope.app, workflow)
        return Identity(agent, require_agent(linked, agent).agents[agent].labels, scope.app)

    async def consumed(
        self, workflow: str, *, scope: Scope, agent: str | None = None, artifact: str | None = None
    ) -> list[Consumption]:
        """Return which artifacts have woken which agents, newest first."""
        require_scope(scope)
        name = await self._board_name(workflow, scope)
        return await self._store.consumed(
            scope.app, name, owners=owners_of(scope), agent=agent, artifact=artifact
        )

    async def why(self, workflow: str, artifact: str, agent: str, *, scope: Scope) -> str | None:
        """Say why an agent may not see an artifact now, or None if it may."""
        found = await self.artifact(workflow, artifact, scope=scope)
        identity = await self._identity(workflow, agent, scope)
        return denial(found.audience, identity, self._clock.now())


def _is_open(state: State) -> bool:
    return state.status != "ended"
