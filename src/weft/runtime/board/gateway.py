"""The way onto boards: publishing, looking, and what is collected beyond correlations."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from weakref import WeakValueDictionary

from weft.context.slices import Envelope
from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import JsonDraft
from weft.engine.board.visibility import Identity, denial
from weft.engine.events import ArtifactPublished, BatchesFlushed, Event, RunStarted
from weft.engine.rows import Letter
from weft.engine.state import State
from weft.errors import RunError, StoreConflict, UsageError, WeftError
from weft.findings import Json
from weft.ids import nearest
from weft.ports.board import ArtifactQuery, Consumption, StoredArtifact
from weft.ports.scope import Scope
from weft.runtime.board.collecting import Collector, last_run, open_run
from weft.runtime.board.publish import Offer, Publication, publish_event, validate_offer
from weft.runtime.board.reading import reader_for
from weft.runtime.gateway import Gateway
from weft.runtime.models import require_embeddings
from weft.runtime.run_reader import require_scope, require_text, require_user
from weft.runtime.runs.decision import NewEvent
from weft.runtime.signals import Stop
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import require_completed
from weft.spec.board import Visibility
from weft.spec.providers import FilterConfig

#: How often it is tried to publish where other processes begin and end the same correlation.
MAX_TRIES: Final = 10


class BoardGateway(Gateway):
    """A gateway that knows boards."""

    def __init__(self, **ports: Any) -> None:  # noqa: ANN401 - those of every gateway
        super().__init__(**ports)
        self._collector = Collector(self._journal, self._take_letters)
        self._worker.on_written = self._written
        self._changes: list[asyncio.Future[None]] = []
        #: Held by the task that begins the run of a correlation.
        self._beginning: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @property
    def busy(self) -> bool:
        """Whether something is done here for a run, or a letter is on its way."""
        return self._collector.busy or self._worker.busy

    def new_id(self) -> str:
        """Return a name that no run and no correlation has."""
        return self._clock.new_id()

    def changed(self) -> asyncio.Future[None]:
        """Return what is done when something was written to a board here."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes.append(change)
        return change

    async def quiet(self) -> None:
        """Return when nothing is to be done any more for any run here, letters included."""
        while self.busy:
            await self._collector.settled()
            await self._worker.wait_until_idle()

    async def changed_or_quiet(self, change: asyncio.Future[None]) -> None:
        """Return when there is a change, or nothing is to be done from which one could come."""
        quiet = asyncio.ensure_future(self.quiet())
        try:
            await asyncio.wait((change, quiet), return_when=asyncio.FIRST_COMPLETED)
        finally:
            quiet.cancel()
            await asyncio.gather(quiet, return_exceptions=True)

    def _written(self, app: str, events: Sequence[Event]) -> None:
        self._collector.look(app, events)
        self._tell_changes()

    def _tell_changes(self) -> None:
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
        """Put an artifact on a board and return where it is; it returns when that is written.

        Without a correlation it begins one of its own. An `id` counts once: published again, the
        artifact that is there is returned. `agent` gives it to one agent only; `model`
        answers for every agent of a correlation that begins with it.
        """
        require_scope(scope)
        require_user(scope)
        require_text(workflow=workflow, model=model)
        linked = await self._workflows.named(workflow)
        offer = Offer(type, payload, tags, visibility, correlation, partition, id, agent)
        draft = validate_offer(linked, offer)
        self._require_models(linked, model, scope)
        if not id:
            return await self._publish(linked, offer, draft, scope, model)
        key = (scope.app, f"{linked.name} {id}")
        async with self._beginning.setdefault(key, asyncio.Lock()):  # An id counts once.
            there = await self._named(linked.name, id, scope)
            if there is not None:
                return Publication(id, there.run, there.artifact.correlation)
            return await self._publish(linked, offer, draft, scope, model)

    async def _publish(
        self, linked: Workflow, offer: Offer, draft: JsonDraft, scope: Scope, model: str | None
    ) -> Publication:
        name = offer.correlation or self._clock.new_id()
        offer = offer._replace(id=offer.id or self._clock.new_id())
        for _ in range(MAX_TRIES):
            try:
                # Of many who publish at once, one begins the correlation.
                async with self._beginning.setdefault((scope.app, name), asyncio.Lock()):
                    run, there = await open_run(self._journal, scope.app, name)
                    if not there:
                        await self._begin_board(run, linked, offer, draft, scope, name, model)
                if there:
                    await self._add(run, linked, offer, draft, scope)
            except (StoreConflict, _Begun):  # Another process has begun or ended it meanwhile.
                continue
            return Publication(offer.id, run, name)
        raise RunError(f"the correlation {name} could not be written to; try again")

    async def _begin_board(
        self,
        run: str,
        linked: Workflow,
        offer: Offer,
        draft: JsonDraft,
        scope: Scope,
        correlation: str,
        model: str | None,
    ) -> None:
        user = scope.user or ""
        await require_completed(self._journal, linked, scope)
        made = await self._event_of(linked, offer, draft, scope)
        begun = await self._board_start(linked, scope, model, correlation=correlation)
        actor = f"user:{user}"
        new = (NewEvent(actor, begun), NewEvent(actor, made))
        try:
            events = await self._begin(scope, linked, run, new, streamed=False)
        except UsageError as taken:
            raise _Begun from taken
        self._follow(scope, events, made)

    async def _event_of(
        self, workflow: Workflow, offer: Offer, draft: JsonDraft, scope: Scope
    ) -> ArtifactPublished:
        user = scope.user or ""
        return await publish_event(
            workflow, offer, draft, app=scope.app, user=user, ports=self._code_ports
        )

    async def _board_start(
        self,
        linked: Workflow,
        scope: Scope,
        model: str | None = None,
        *,
        correlation: str,
        collects: str = "",
        schedule: str = "",
    ) -> RunStarted:
        return RunStarted(
            linked.name,
            linked.digest,
            scope.app,
            scope.user or "",
            await self._start_values(linked, scope, {}),
            model=model,
            correlation=correlation,
            collects=collects,
            schedule=schedule,
        )

    async def _add(
        self, run: str, linked: Workflow, offer: Offer, draft: JsonDraft, scope: Scope
    ) -> None:
        """Put an artifact into a run that is there."""
        opened = await self._open(run, Scope(scope.app))
        if opened.workflow.name != linked.name:
            raise UsageError(
                f"the correlation {run} belongs to {opened.workflow.name}, not to {linked.name}",
                hint="choose another correlation",
            )
        # A run keeps the board as it was when it began. A type that is newer is valid as the board
        # has it now, and wakes no agent of the run.
        if opened.workflow is not linked and offer.type in opened.workflow.types.schemas:
            draft = validate_offer(opened.workflow, offer)
        if _is_published(opened.state, offer):
            return
        user = scope.user or ""
        made = await self._event_of(opened.workflow, offer, draft, scope)
        new = (NewEvent(f"user:{user}", made),)
        events = await self._write_all(
            opened, new, lambda state: _is_open(state) and not _is_published(state, offer)
        )
        self._follow(scope, events, made)

    def _follow(self, scope: Scope, events: Sequence[Event], made: ArtifactPublished) -> None:
        """Bring the letters of what was published; raises _Begun if it was not written."""
        if not (self._works_on_all or self._dispatcher.mine((scope.app, ""))):
            self._collector.look(scope.app, events)
        if not any(event.data is made for event in events):
            raise _Begun

    async def flush(self, run: str, *, scope: Scope) -> None:
        """Let everything be handled now that a board has collected for batches in a run."""
        opened = await self._open(run, Scope(scope.app))
        flushed = BatchesFlushed(scope.user or scope.app)
        await self._write(opened, NewEvent(f"user:{scope.user or scope.app}", flushed), _is_open)

    async def start_schedules(self, workflow: str, *, scope: Scope) -> list[str]:
        """Begin the schedules of a board that are not under way, and return their runs."""
        require_scope(scope)
        require_user(scope)
        linked = await self._workflows.named(workflow)
        require_embeddings(linked, self._code_ports.similarity)
        await require_completed(self._journal, linked, scope)
        runs: list[str] = []
        for agent in linked.spec.board.agents if linked.spec.board else ():
            if agent.schedule is None:
                continue
            name = f"{linked.name}~schedule~{agent.agent}"
            last = await last_run(self._journal, scope.app, name)
            if last is not None and last.digest == linked.digest:
                runs.append(last.run)  # Under way, or over: it is not begun again.
                continue
            if last is not None and last.status != "ended":  # Of a board that has changed.
                await self.deliver(last.run, Stop("now"), scope=Scope(scope.app))
            run, _ = await open_run(self._journal, scope.app, name)
            begun = await self._board_start(linked, scope, correlation=run, schedule=agent.agent)
            new = (NewEvent(f"user:{scope.user}", begun),)
            with suppress(UsageError, StoreConflict):  # Another process was quicker.
                await self._begin(scope, linked, run, new, streamed=False)
            runs.append(run)
        return runs

    async def _take_letters(self, to: str, first: Letter, letters: Sequence[NewEvent]) -> None:
        """Write letters to the run that collects them, which is begun if it is not there."""
        scope = Scope(first.app, first.user)
        run, there = await open_run(self._journal, first.app, to)
        if there:
            opened = await self._open(run, Scope(first.app))
            await self._write_all(opened, tuple(letters), _is_open)
            return
        linked = await self._workflows.of_digest(first.app, first.digest)
        collects = first.data.subscription
        begun = await self._board_start(linked, scope, correlation=run, collects=collects)
        new = (NewEvent("letter", begun), *letters)
        try:
            await self._begin(scope, linked, run, new, streamed=False)
        except (StoreConflict, UsageError):  # Another process was quicker: look again.
            return

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
            self._journal,
            app=scope.app,
            board=await self._board_name(workflow),
            reader=identity,
            now=self._clock.now(),
        )
        return await reader.query_artifacts(filters, embed_meta=embed_meta, offset=offset)

    async def artifact(self, workflow: str, artifact: str, *, scope: Scope) -> StoredArtifact:
        """Return an artifact with its visibility and where it stands in the journal."""
        require_scope(scope)
        found = await self._named(await self._board_name(workflow), artifact, scope)
        if found is None:
            raise UsageError(f"there is no artifact {artifact} on the board {workflow}")
        return found

    async def _named(self, board: str, artifact: str, scope: Scope) -> StoredArtifact | None:
        """Return the artifact of a name; a fork has copies of those of the run it comes from."""
        query = ArtifactQuery(scope.app, board, None, self._clock.now(), ids=(artifact,))
        found = (await self._journal.artifacts(query)).items
        for it in found if len(found) > 1 else ():
            row = await self._journal.run(Scope(scope.app), it.run)
            if row is not None and not row.parent:
                return it
        return next(iter(found), None)

    async def _board_name(self, workflow: str) -> str:
        """Return the name of a board, which may be another than that of its folder."""
        try:
            return (await self._workflows.named(workflow)).name
        except WeftError:  # What was published can be read though the package cannot run now.
            return workflow

    async def _identity(self, workflow: str, agent: str, scope: Scope) -> Identity:
        """Return as whom an agent reads. Raises UsageError if the board has no such agent."""
        rules = rules_of((await self._workflows.named(workflow)).compiled)
        if agent not in rules.agents:
            near = nearest(agent, rules.agents)
            known = f"the board has: {', '.join(rules.agents)}"
            raise UsageError(
                f"there is no agent {agent} on the board {workflow}",
                hint=f"did you mean {near}?" if near else known,
            )
        return rules.identity(agent, scope.app)

    async def consumed(
        self, workflow: str, *, scope: Scope, agent: str | None = None, artifact: str | None = None
    ) -> list[Consumption]:
        """Return which artifacts have woken which agents, newest first."""
        require_scope(scope)
        name = await self._board_name(workflow)
        return await self._journal.consumed(scope.app, name, agent=agent, artifact=artifact)

    async def why(self, workflow: str, artifact: str, agent: str, *, scope: Scope) -> str | None:
        """Say why an agent may not see an artifact now, or None if it may."""
        found = await self.artifact(workflow, artifact, scope=scope)
        identity = await self._identity(workflow, agent, scope)
        return denial(found.audience, identity, self._clock.now())


class _Begun(Exception):
    """Another process has begun or ended the run meanwhile."""


def _is_open(state: State) -> bool:
    return state.status != "ended"


def _is_published(state: State, offer: Offer) -> bool:
    return state.board is not None and offer.id in state.board.ids
