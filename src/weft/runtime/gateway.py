"""The gateway: starts runs, lets signals in, and shows what is there. It performs nothing."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal, TypeAlias

from weft.context.audience import Audience
from weft.engine.events import Event, RunStarted
from weft.engine.log import Log
from weft.engine.reduce import fold
from weft.engine.rows import OpenRequest, RequestRow, RunRow
from weft.engine.state import Message, State
from weft.errors import AccessDenied, StoreConflict, UsageError, WeftError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.dispatcher import Dispatcher
from weft.ports.journal import Journal, Pruned
from weft.ports.scope import Scope
from weft.runtime.flow.starting import require_collections, require_state
from weft.runtime.local_dispatch import LocalDispatcher
from weft.runtime.models import reading, require_embeddings
from weft.runtime.perform import ModelSource
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.decision import CallCheck, NewEvent
from weft.runtime.runs.live_stream import Delta, Follower, LiveStream
from weft.runtime.runs.starts import (
    Edits,
    first_events,
    fork,
    require_number,
    require_scope,
    require_text,
    require_user,
    require_values,
    require_way,
    start_input,
    values_of_input,
)
from weft.runtime.runs.writer import Batches, RunWriter
from weft.runtime.signals import (
    Answer,
    Signal,
    Stop,
    expiry_of,
    interpret,
    refuse_answered,
    was_heard,
)
from weft.runtime.tools.code_call import CodePorts
from weft.runtime.variables.values import SecretAnswers, fitting_text, start_values
from weft.runtime.worker import Worker, is_text, no_run
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache, require_completed

#: A run to which something is written: worked on here, or only written to.
OpenRun: TypeAlias = ActiveRun | RunWriter


class Gateway:
    """The way into the runs of a store: it appends, and wakes whoever works on them."""

    def __init__(  # noqa: PLR0913 - its ports, all by name
        self,
        *,
        journal: Journal,
        models: ModelSource,
        clock: Clock,
        workflows: WorkflowCache,
        dispatcher: Dispatcher,
        worker: Worker,
        batches: Batches,
        stream: LiveStream,
        environment: Mapping[str, str],
        secret_answers: SecretAnswers,
        code_ports: CodePorts,
    ) -> None:
        self._journal = journal
        self._models = models
        self._clock = clock
        self._workflows = workflows
        self._dispatcher = dispatcher
        #: Whether this process works on every run, as it does without a dispatcher of its own.
        self._works_on_all = isinstance(dispatcher, LocalDispatcher)
        self._worker = worker
        self._batches = batches
        self._stream = stream
        self._environment = environment
        self._secret_answers = secret_answers
        self._code_ports = code_ports

    async def start(
        self,
        workflow: str,
        *,
        scope: Scope,
        message: str | None = None,
        values: Mapping[str, Json] | None = None,
        input: Mapping[str, Json] | None = None,  # noqa: A002 - what it is
        model: str | None = None,
        run: str | None = None,
        streamed: bool = False,
    ) -> str:
        """Begin a run and return its identity; it goes on whether or not anybody watches.

        `input` is what comes with it where a form, a webhook or a changed document starts it: its
        first agent is told, and fields called like derived variables set these.

        `model` answers for every agent, whatever the package says. A `run` of your own choice may
        be given once. `streamed` keeps the first words for whoever is about to follow the events.
        """
        require_scope(scope)
        require_user(scope)
        require_text(workflow=workflow, model=model)
        require_values(values)
        if run is not None and not is_text(run):
            raise UsageError(f"{run!r} cannot be the identity of a run", hint="name it with a text")
        linked = await self._workflows.named(workflow)
        require_way(linked, message)
        await require_completed(self._journal, linked, scope)
        name = run or self._clock.new_id()
        self._require_models(linked, model, scope)
        require_collections(linked, self._code_ports.retrievers, scope.app)
        brought = start_input(linked, input)
        named = {**values_of_input(linked, brought or {}), **(values or {})}
        given = await self._start_values(linked, scope, named)
        require_state(linked, given)
        new = first_events(
            name, linked, scope, given, fitting_text(message), model, tuple(named), brought
        )
        try:
            await self._begin(scope, linked, name, new, streamed=streamed)
        except StoreConflict as error:  # It is another user's: not even how long it is may show.
            raise _taken(name) from error
        return name

    async def _start_values(
        self, linked: Workflow, scope: Scope, named: Mapping[str, Json]
    ) -> dict[str, Json]:
        if not linked.spec.variables and not named:
            return {}
        return start_values(
            linked,
            environment=self._environment,
            given=named,
            kept=await self._journal.kept(scope, linked.name)
            if linked.compiled.carried_values
            else {},
        )

    async def deliver(self, run: str, signal: Signal, *, scope: Scope) -> None:
        """Let a signal into a run. It returns when the signal is in the journal.

        It may be delivered again, by whoever does not know whether it was: it counts once. A
        message that was heard returns; an answer to what was answered is refused.
        """
        require_scope(scope)
        known = self._worker.in_memory((scope.app, run)) is not None
        opened = await self._open_for(run, signal, scope)
        if was_heard(signal, opened.state):
            return
        if not isinstance(signal, Stop):
            self._require_models(opened.workflow, opened.state.model, scope)
        if isinstance(signal, Answer):  # No process may have been there when its time was over.
            over = expiry_of(opened.state, signal.request, self._clock.now())
            if over is not None:
                await self._write(opened, over, lambda state: signal.request in state.requests)
        before = opened.state.seq
        try:
            await self._let_in(opened, signal, scope)
        except UsageError:
            if not known:
                raise
            # What was in memory may be behind: another process may have written what allows it.
            await self._catch_up(opened)
            if opened.state.seq == before:
                raise
            if not was_heard(signal, opened.state):
                await self._let_in(opened, signal, scope)

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
        workflow = await self._workflows.of_digest(row.app, row.digest)
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
            batches=self._batches,
        )
        self._require_models(workflow, state.model, scope)
        made = self._worker.new_active_run(Scope(row.app, row.user), workflow, State(child))
        if streamed:
            self._stream.reserve(made.key)
        if self._works_on_all or self._dispatcher.mine(made.key):
            await self._worker.hold(made).begin(written, state)
            self._worker.check_due()  # What was due later in the one is in the other as well.
        else:
            unowned = written._replace(row=written.row._replace(owner=""))
            await self._writer(made.scope, workflow, State(child), "").begin(unowned, state)
            await self._dispatcher.wake(made.key)
        return child

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
        asked = dict.fromkeys(it.run for it in await self._journal.requests(scope))
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
        """Return the open questions, oldest first, each with the schema of its answer."""
        require_scope(scope)
        if run is not None and not is_text(run):
            return []
        return [await self._with_schema(it) for it in await self._journal.requests(scope, run=run)]

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
        """Yield the events of a run after a number; with `follow`, go on until it has ended.

        While following, pieces of text come as they are spoken, but none after the whole reply.
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
        """Remove the runs that ended before a time (in milliseconds), or tell what would go."""
        require_scope(scope)
        return await self._journal.prune(scope, ended_before=ended_before, dry_run=dry_run)

    async def _open_for(self, run: str, signal: Signal, scope: Scope) -> OpenRun:
        """Return a run that a signal is for; a question may be asked of others than its user."""
        if isinstance(signal, Answer) and scope.addresses and is_text(run):
            asked = await self._journal.requests(scope, run=run)
            if any(it.id == signal.request and it.addressee in scope.addresses for it in asked):
                return await self._open(run, Scope(scope.app))
        try:
            opened = await self._open(run, scope)
        except AccessDenied:
            if isinstance(signal, Answer) and scope.addresses and is_text(run):
                events = await self._journal.read(Scope(scope.app), run)
                refuse_answered(signal, events, scope.addresses)
            raise
        if isinstance(signal, Answer) and signal.request in opened.state.requests:
            asked_of = opened.state.requests[signal.request].addressee
            if not scope.answers(opened.state.app, opened.state.user, asked_of):
                raise UsageError(
                    f"question {signal.request} is for {asked_of}, not for {scope.user}",
                    hint=f"answer it as {asked_of}",
                )
        return opened

    async def _open(self, run: str, scope: Scope) -> OpenRun:
        """Return a run that something is to be written to."""
        if self._works_on_all or self._dispatcher.mine((scope.app, run)):
            return await self._worker.load(scope, run)
        row = await self._worker.find(scope, run)
        workflow = await self._workflows.of_digest(row.app, row.digest)
        owner = Scope(row.app, row.user)
        events = await self._journal.read(owner, run)
        return self._writer(owner, workflow, fold(workflow.compiled, run, events), row.owner)

    async def _begin(
        self,
        scope: Scope,
        workflow: Workflow,
        run: str,
        new: tuple[NewEvent, ...],
        *,
        streamed: bool,
    ) -> Sequence[Event]:
        if workflow.missing is not None:
            raise workflow.missing
        key = (scope.app, run)
        if streamed:
            self._stream.reserve(key)
        if not (self._works_on_all or self._dispatcher.mine(key)):
            decision = await self._writer(scope, workflow, State(run), "").write(new, _is_new)
            await self._dispatcher.wake(key)
            return () if decision is None else decision.events
        active = self._worker.new_active_run(scope, workflow, State(run))
        if self._worker.hold(active) is not active:
            raise _taken(run)
        return await active.deliver(new, _is_new)

    async def _let_in(self, opened: OpenRun, signal: Signal, scope: Scope) -> None:
        new, check = interpret(signal, opened.workflow, opened.state, scope)
        if isinstance(signal, Answer):
            self._keep_secrets(opened, signal)
        await self._write(opened, new, check)

    def _keep_secrets(self, opened: OpenRun, signal: Answer) -> None:
        """Keep what was typed into secret fields for the tool that asked: no event holds it."""
        form = opened.workflow.forms.get(opened.state.requests[signal.request].tool or "")
        secrets = form.secrets(signal.value) if form else []
        if not secrets:
            return
        if not isinstance(opened, ActiveRun):
            raise UsageError(
                "this answer has a secret field, which is kept nowhere on its way",
                hint="answer it in the process that works on the run",
            )
        self._secret_answers.keep(opened.scope.app, signal.request, signal.value, secrets)

    async def _write(self, opened: OpenRun, new: NewEvent, check: CallCheck) -> None:
        await self._write_all(opened, (new,), check)

    async def _write_all(
        self, opened: OpenRun, new: tuple[NewEvent, ...], check: CallCheck
    ) -> Sequence[Event]:
        """Write events if the check allows them, and return all that was written then."""
        if isinstance(opened, ActiveRun):
            return await self._worker.hold(opened).deliver(new, check)
        decision = await opened.write(new, check)
        await self._dispatcher.wake(opened.key)
        return () if decision is None else decision.events

    async def _catch_up(self, opened: OpenRun) -> None:
        if isinstance(opened, ActiveRun):
            await self._worker.hold(opened).catch_up()
        else:
            await opened.catch_up()

    def _writer(self, scope: Scope, workflow: Workflow, state: State, owner: str) -> RunWriter:
        """Return a run that is only written to: whoever works on it stays its owner."""
        return RunWriter(
            scope=scope,
            workflow=workflow,
            state=state,
            journal=self._journal,
            clock=self._clock,
            batches=self._batches,
            owner=owner,
            works=False,
        )

    def _require_models(self, workflow: Workflow, model: str | None, scope: Scope) -> None:
        """Raise what is wrong with the models of a run now, before anything is written."""
        named = {name for name in workflow.models.values() if name}
        if workflow.needs_default_model:
            named.add("")
        for name in {model} if model else named:
            self._models(name, workflow, scope)
        require_embeddings(workflow, self._code_ports.similarity)


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
        Message(it.role, it.agent, text, it.seq)
        for it in state.messages
        if (text := _shown_text(workflow, audience, it))
    )
    return shown


def _shown_text(workflow: Workflow, audience: Audience, message: Message) -> str:
    if message.role == "user":
        return message.text if audience.sees_user_text(message.text) else ""
    if message.role != "agent" or not audience.hears(message.agent, message.text):
        return ""
    read_as = reading(workflow, message.agent, message.text)
    return (message.text if read_as is None else read_as).strip()


def _taken(run: str) -> UsageError:
    return UsageError(f"run {run} was started before", hint="leave the identity out for a new one")


def _is_new(state: State) -> bool:
    return not state.seq
