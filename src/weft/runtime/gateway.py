"""The gateway: starts runs, delivers signals, and reads runs. It performs no effects."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from weft.engine.events import Event
from weft.engine.reduce import fold
from weft.engine.state import State
from weft.errors import AccessDenied, StoreConflict, UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.dispatcher import Dispatcher
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.flow.starting import require_collections, require_state
from weft.runtime.models import require_embeddings
from weft.runtime.perform import ModelSource
from weft.runtime.run_reader import (
    RunReader,
    require_number,
    require_scope,
    require_text,
    require_user,
    require_values,
)
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.decision import CallCheck, NewEvent
from weft.runtime.runs.live_stream import LiveStream
from weft.runtime.runs.starts import (
    Edits,
    first_events,
    fork,
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
from weft.runtime.worker import Worker, is_text
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache, require_completed

#: A run to write to: one that this process works on, or only writes to.
OpenRun: TypeAlias = ActiveRun | RunWriter


class Gateway(RunReader):
    """Starts runs, delivers signals to them and reads them; a worker performs them."""

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
        super().__init__(
            journal=journal,
            workflows=workflows,
            dispatcher=dispatcher,
            worker=worker,
            stream=stream,
        )
        self._models = models
        self._clock = clock
        self._batches = batches
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
        """Start a run and return its id; the run continues in the background.

        `input` is what comes with it where a form, a webhook or a changed document starts it: its
        first agent is told, and fields called like derived variables set these.

        `model` answers for every agent, whatever the package says. A `run` of your own choice may
        be given once. `streamed` buffers streamed text for a follower who is about to subscribe.
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
        except (
            StoreConflict
        ) as error:  # It belongs to another user: not even its length may be revealed.
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
        """Deliver a signal to a run; return when it is durable.

        Retrying is safe: a message with a known id has no effect, and an answer to a request that
        is already answered raises UsageError.
        """
        require_scope(scope)
        known = self._worker.in_memory((scope.app, run)) is not None
        opened = await self._open_for(run, signal, scope)
        if was_heard(signal, opened.state):
            return
        if not isinstance(signal, Stop):
            self._require_models(opened.workflow, opened.state.model, scope)
        if isinstance(signal, Answer):  # It may have expired while no process was running.
            over = expiry_of(opened.state, signal.request, self._clock.now())
            if over is not None:
                await self._write(opened, over, lambda state: signal.request in state.requests)
        before = opened.state.seq
        try:
            await self._let_in(opened, signal, scope)
        except UsageError:
            if not known:
                raise
            # The state in memory may be behind: another process may have written what allows it.
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
        """Repeat a turn of a run, with other values or another model, as a new run."""
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

    async def _open_for(self, run: str, signal: Signal, scope: Scope) -> OpenRun:
        """Return the run for a signal; its request may be addressed to others than its user."""
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
        """Return a run to write to."""
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
        """Keep the values of secret fields in memory for the tool that asked."""
        form = opened.workflow.forms.get(opened.state.requests[signal.request].tool or "")
        secrets = form.secrets(signal.value) if form else []
        if not secrets:
            return
        if not isinstance(opened, ActiveRun):
            raise UsageError(
                "this answer has a secret field, which cannot be sent to another process",
                hint="answer it in the process that works on the run",
            )
        self._secret_answers.keep(opened.scope.app, signal.request, signal.value, secrets)

    async def _write(self, opened: OpenRun, new: NewEvent, check: CallCheck) -> None:
        await self._write_all(opened, (new,), check)

    async def _write_all(
        self, opened: OpenRun, new: tuple[NewEvent, ...], check: CallCheck
    ) -> Sequence[Event]:
        """Write events if the check allows them, and return all events that were written."""
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
        """Return a run that is only written to: its owner stays the same."""
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


def _taken(run: str) -> UsageError:
    return UsageError(f"run {run} was started before", hint="leave the identity out for a new one")


def _is_new(state: State) -> bool:
    return not state.seq
