"""The gateway: starts runs, delivers signals, and reads runs. It performs no effects."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from weft.engine.events import Event, RequestAnswered, RequestExpired, RequestOpened
from weft.engine.reduce import fold
from weft.engine.rows import Mail, RequestRow, RunRow, batch
from weft.engine.state import Request, State
from weft.errors import (
    AlreadyAnswered,
    ConflictError,
    RequestNotOpen,
    RunHasEnded,
    RunOwned,
    StoreConflict,
    StoreError,
    UsageError,
)
from weft.findings import Json
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.ports.vault import SecretAnswer, Vault
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
from weft.runtime.runs.decision import NewEvent
from weft.runtime.runs.live_stream import Followers
from weft.runtime.runs.memory import is_text, no_run
from weft.runtime.runs.ownership import StoreClock, is_alive
from weft.runtime.runs.starts import (
    Edits,
    first_events,
    fork,
    require_way,
    start_input,
    values_of_input,
)
from weft.runtime.runs.writer import PAUSES, RunWriter
from weft.runtime.signals import (
    CLOSES,
    Answer,
    CancelRequest,
    Signal,
    Stop,
    UserMessage,
    expiry_of,
    interpret,
    not_open,
    refuse_answered,
    require_addressee,
    require_message,
    was_heard,
)
from weft.runtime.tools.code_call import CodePorts
from weft.runtime.variables.values import start_values
from weft.runtime.worker import Worker
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache, require_completed


class Gateway(RunReader):
    """Starts runs, delivers signals to them and reads them; a worker performs them.

    A signal is written directly to a run that this process works on, or that is free if this
    process `works`. It is sent as mail to every other run.
    """

    def __init__(  # noqa: PLR0913 - its ports, all by name
        self,
        *,
        store: Store,
        models: ModelSource,
        clock: StoreClock,
        workflows: WorkflowCache,
        worker: Worker,
        followers: Followers,
        outside: ExternalPorts,
        vault: Vault,
        code_ports: CodePorts,
        works: bool,
    ) -> None:
        super().__init__(
            store=store, clock=clock, workflows=workflows, worker=worker, followers=followers
        )
        self._models = models
        self._outside = outside
        self._vault = vault
        self._code_ports = code_ports
        self._works = works
        worker.loader.start_values = self._start_values
        worker.require_models = self._require_models

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

        `input` is the form, the body of a webhook or the changed document that starts it. The
        first agent sees it, and its fields set derived variables of the same name.

        `model` answers for every agent, whatever the package says. A `run` of your own choice may
        be given once. `streamed` buffers streamed text for a follower who is about to subscribe.
        """
        require_scope(scope)
        require_user(scope)
        require_text(workflow=workflow, model=model)
        require_values(values)
        if message is not None:
            require_message(message, "write a message, or leave it out to start without one")
        if run is not None and not is_text(run):
            raise UsageError(f"{run!r} cannot be the identity of a run", hint="name it with a text")
        linked = await self._workflows.named(scope.app, workflow)
        require_way(linked, message)
        await require_completed(self._store, linked, scope)
        name = run or self._clock.new_id()
        self._require_models(linked, model, scope)
        require_collections(linked, self._code_ports.retrievers, scope.app)
        brought = start_input(linked, input)
        named = {**values_of_input(linked, brought or {}), **(values or {})}
        given = await self._start_values(linked, scope, named)
        require_state(linked, given)
        new = first_events(name, linked, scope, given, message, model, tuple(named), brought)
        try:
            await self._begin(scope, linked, name, new, streamed=streamed)
        except StoreConflict as error:
            # It may belong to another user: not even its length may be revealed.
            raise _taken(name) from error
        return name

    async def _start_values(
        self, linked: Workflow, scope: Scope, named: Mapping[str, Json] | None = None
    ) -> dict[str, Json]:
        if not linked.spec.variables and not named:
            return {}
        return start_values(
            linked,
            environment=self._outside.for_app(scope.app).environment,
            given=named or {},
            kept=await self._store.carried(scope, linked.name)
            if linked.compiled.carried_values
            else {},
        )

    async def deliver(self, run: str, signal: Signal, *, scope: Scope) -> None:
        """Deliver a signal to a run; return when it is durable.

        Retrying is safe: a message with a known id has no effect, and an answer to a request that
        is already answered raises UsageError.
        """
        require_scope(scope)
        known = self._worker.in_memory((scope.app, run))
        with suppress(RunOwned):  # Another process has taken it in the meantime.
            active = await self._load_for(run, signal, scope, known)
            if active is not None:
                await self._deliver_here(active, signal, scope, known=known is not None)
                return
        await self._deliver_by_mail(run, signal, scope)

    async def fork(
        self,
        run: str,
        *,
        scope: Scope,
        turn: int,
        values: Mapping[str, Json] | None = None,
        message: str | None = None,
        model: str | None = None,
        child: str | None = None,
        streamed: bool = False,
    ) -> str:
        """Repeat a turn of a run, with other values or another model, as a new run.

        `message` replaces what the user said before the turn. A `child` id of your own choice may
        be given once.
        """
        require_number(turn=turn)
        require_text(message=message, model=model, child=child)
        require_values(values)
        require_scope(scope)
        row = await self._worker.find(scope, run)
        workflow = await self._workflows.of_digest(row.app, row.digest)
        child = child or self._clock.new_id()
        written, state = fork(
            workflow,
            await self._store.read(scope, run),
            parent=run,
            child=child,
            turn=turn,
            edits=Edits(values or {}, model, message),
            user=scope.actor,
            now=self._clock.now(),
            batch_id=self._worker.ownership.new_batch() if self._works else self._clock.new_id(),
            held=self._works,
        )
        self._require_models(workflow, state.model, scope)
        made = self._worker.new_active_run(Scope(row.app, row.user), workflow, State(child))
        if streamed:
            self._followers.reserve(made.key)
        try:
            if self._works:
                await self._worker.hold(made).begin(written, state)
            else:
                await self._writer(made.scope, workflow, State(child)).begin(written, state)
        except StoreConflict as error:
            raise _taken(child) from error
        return child

    async def add_ended(
        self, workflow: Workflow, run: str, events: Sequence[Event], *, scope: Scope
    ) -> None:
        """Add the events of a run that has ended elsewhere; nothing is performed."""
        require_scope(scope)
        require_user(scope)
        state = fold(workflow.compiled, run, events)
        if state.status != "ended":
            raise UsageError(f"run {run} has not ended", hint="only ended runs can be added")
        if not scope.covers(state.app, state.user):
            raise UsageError(f"the events of run {run} are those of another tenant or user")
        batch_id = self._clock.new_id()
        written = batch(State(run), state, events, id=batch_id, package=workflow.package)
        try:
            await self._store.append(written, owner=self._worker.ownership.owner)
        except StoreConflict as error:
            raise _taken(run) from error

    async def wake(self, run: str, *, scope: Scope) -> None:
        """Continue a run now if it has stopped: here if this process works, else in a worker."""
        require_scope(scope)
        row = await self._worker.find(scope, run)
        key, owner = (row.app, row.run), self._worker.ownership.owner
        is_left = bool(row.owner) and not is_alive(row, self._clock.now())
        if self._works:
            await self._worker.attend(key, force=is_left)
        elif await self._store.take(owner, *key, force=is_left):
            await self._store.release(owner, [key])

    async def was_closed(self, run: str, signal: Answer | CancelRequest, *, scope: Scope) -> bool:
        """Return whether the same person has closed a request before, with the same answer.

        The answer may be mail that is not in the journal yet.
        """
        operator = Scope.operator(scope.app)
        mail = await self._store.pending(scope.app, run)
        told = [(event.actor, event.data) for event in await self._store.read(operator, run)]
        told += ((each.actor, each.data) for each in mail)
        tool = ""
        for actor, data in told:
            is_own = actor == f"user:{scope.actor}"
            match data:
                case RequestOpened(id=signal.request):
                    tool = data.tool or ""
                case RequestExpired(id=signal.request):
                    return is_own and isinstance(signal, CancelRequest)
                case RequestAnswered(id=signal.request):
                    if not is_own or not isinstance(signal, Answer):
                        return False
                    form = (await self.workflow(run, scope=operator)).forms.get(tool)
                    return data.value == (form.mask_secrets(signal.value) if form else signal.value)
                case _:
                    pass
        return False

    # -- a run that this process writes to

    async def _load_for(
        self, run: str, signal: Signal, scope: Scope, active: ActiveRun | None
    ) -> ActiveRun | None:
        """Return the run for a signal, if this process may write to it.

        The sender may be another addressee than the user of the run.
        """
        if active is None or not active.state.seq:
            row = await self._row_for(run, signal, scope)
            is_left = bool(row.owner) and not is_alive(row, self._clock.now())
            if self._works and is_left and row.status != "ended":
                await self._worker.attend(
                    (scope.app, run), force=True
                )  # The process that owned it has died.
                row = row._replace(owner="")
            if not self._works or row.owner not in ("", self._worker.ownership.owner):
                return None
            active = await self._worker.load(Scope.operator(scope.app), run)
        elif isinstance(signal, CLOSES) and signal.request not in active.state.requests:
            await self._row_for(run, signal, scope)
            await self._worker.hold(active).catch_up()  # Another process may have asked it.
        require_addressee(active.state, signal, scope)
        return active

    async def _row_for(self, run: str, signal: Signal, scope: Scope) -> RunRow:
        """Return the row of a run that a signal may be for; raises AccessDenied."""
        row = await self._store.run(scope, run) if is_text(run) else None
        if row is not None:
            return row
        if not isinstance(signal, CLOSES) or not scope.addresses or not is_text(run):
            raise no_run(run)
        operator = Scope.operator(scope.app)
        asked = await self._store.requests(scope, run=run)
        if not any(each.id == signal.request for each in asked):
            refuse_answered(signal, await self._store.read(operator, run), scope.addresses)
            raise no_run(run)
        return await self._worker.find(operator, run)

    async def _deliver_here(
        self, active: ActiveRun, signal: Signal, scope: Scope, *, known: bool
    ) -> None:
        state = active.state
        if was_heard(signal, state):
            return
        if not isinstance(signal, Stop):  # A run can be stopped without its code.
            self._require_models(active.workflow, state.model, scope)
        if isinstance(signal, Answer):  # It may have expired while no process was running.
            over = expiry_of(state, signal.request, self._clock.now())
            if over is not None:
                await self._worker.hold(active).deliver(
                    (over,), lambda state: signal.request in state.requests
                )
        before = active.state.seq
        try:
            await self._write(active, signal, scope)
        except UsageError:
            if not known:
                raise
            # The state in memory may be outdated: another process may have written what allows it.
            await self._worker.hold(active).catch_up()
            if active.state.seq == before:
                raise
            if not was_heard(signal, active.state):
                await self._write(active, signal, scope)

    async def _write(self, active: ActiveRun, signal: Signal, scope: Scope) -> None:
        new, check = interpret(signal, active.workflow, active.state, scope)
        if isinstance(signal, Answer):
            await self._put_secrets(active.workflow, active.state, signal)
        await self._worker.hold(active).deliver((new,), check)

    async def _put_secrets(self, workflow: Workflow, state: State, signal: Answer) -> None:
        """Put the values of secret fields into the vault, for the tool that asked."""
        form = workflow.forms.get(state.requests[signal.request].tool or "")
        secrets = form.secrets(signal.value) if form else []
        if secrets:
            answer = SecretAnswer(signal.value, tuple(secrets))
            await self._vault.put((state.app, state.run), signal.request, answer)

    async def _begin(
        self,
        scope: Scope,
        workflow: Workflow,
        run: str,
        new: tuple[NewEvent, ...],
        *,
        streamed: bool = False,
    ) -> Sequence[Event]:
        if streamed:
            self._followers.reserve((scope.app, run))
        if not self._works:
            writer = self._writer(scope, workflow, State(run))
            await writer.write(new, _is_new)
            return [event for made in writer.decisions for event in made.events]
        active = self._worker.new_active_run(scope, workflow, State(run))
        if self._worker.hold(active) is not active:
            raise _taken(run)
        return await active.deliver(new, _is_new)

    def _writer(self, scope: Scope, workflow: Workflow, state: State) -> RunWriter:
        """Return a run that begins here and is performed by another process."""
        return RunWriter(
            scope=scope,
            workflow=workflow,
            state=state,
            store=self._store,
            clock=self._clock,
            ownership=self._worker.ownership,
            webhooks=self._worker.webhooks,
            works=False,
        )

    # -- a run of another process

    async def _deliver_by_mail(self, run: str, signal: Signal, scope: Scope) -> None:
        """Send a signal as mail, after checking what the rows of the run show."""
        row = await self._row_for(run, signal, scope)
        try:
            await self._send_signal(row, signal, scope)
        except UsageError:
            # Also if the same message was accepted between the check and the mail.
            if not isinstance(signal, UserMessage) or not await self._was_sent(row, signal):
                raise

    async def _send_signal(self, row: RunRow, signal: Signal, scope: Scope) -> None:
        workflow = await self._workflows.of_digest(row.app, row.digest)
        state = await self._shown_state(row)
        require_addressee(state, signal, scope)
        new, _ = interpret(signal, workflow, state, scope)
        request = new.data.id if isinstance(new.data, RequestAnswered | RequestExpired) else ""
        named = new.data.message_id if isinstance(new.data, RequestAnswered) else ""
        id_ = named or self._clock.new_id()
        if isinstance(signal, Answer):
            if self._vault.is_local and _has_secrets(workflow, state, signal):
                raise UsageError(
                    "this answer has a secret field, which cannot be sent to another process",
                    hint="set WEFT_VAULT_KEY in all processes, or answer it where the run works",
                )
            await self._put_secrets(workflow, state, signal)
        await self._put(Mail(row.app, row.run, id_, new.actor, new.data, request=request))
        if self._works:  # Its owner may have released it just now.
            self._worker.look_at((row.app, row.run))

    async def _shown_state(self, row: RunRow) -> State:
        """Return the state that the rows of a run show: its status and its open requests."""
        rows = await self._store.requests(Scope.operator(row.app), run=row.run)
        now = self._clock.now()
        asked = (entry for entry in rows if entry.expires_at is None or entry.expires_at > now)
        return State(
            row.run,
            seq=row.seq,
            status=row.status,
            app=row.app,
            user=row.user,
            requests={entry.id: _request(entry) for entry in asked},
        )

    async def _was_sent(self, row: RunRow, signal: UserMessage) -> bool:
        """Return whether a message is refused only because it was delivered before."""
        try:  # The store knows the ids of mail, and refuses other mail to a request that is not.
            again = Mail(row.app, row.run, signal.id, "", RequestAnswered("", "", ""), request="-")
            await self._store.put(again)
        except (RequestNotOpen, RunHasEnded):
            pass
        else:
            return True
        events = await self._store.read(Scope.operator(row.app), row.run)
        return any(
            isinstance(event.data, RequestAnswered) and event.data.message_id == signal.id
            for event in events
        )

    async def _put(self, mail: Mail, package: bytes | None = None) -> str:
        """Send mail; if the outcome is uncertain it is sent again, which has no second effect."""
        for pause in (*PAUSES, None):
            try:
                return await self._store.put(mail, package=package)
            except (RequestNotOpen, AlreadyAnswered) as error:
                raise not_open(mail.request, mail.to) from error
            except RunHasEnded as error:
                raise ConflictError(f"run {mail.to} has ended already") from error
            except StoreError as error:
                if not error.retryable or pause is None:
                    raise
                await self._clock.sleep_until(self._clock.now() + pause)
        raise AssertionError("the last attempt returns or raises")

    def _require_models(self, workflow: Workflow, model: str | None, scope: Scope) -> None:
        """Raise the errors of the code and models of a run now, before anything is written."""
        if workflow.missing is not None:
            raise workflow.missing
        for name in (model,) if model else workflow.needed_models:
            self._models(name, workflow, scope)
        if workflow.compares:
            require_embeddings(workflow, self._code_ports.similarity)


def _taken(run: str) -> ConflictError:
    return ConflictError(f"run {run} was started before", hint="leave the id out for a new one")


def _is_new(state: State) -> bool:
    return not state.seq


def _request(row: RequestRow) -> Request:
    """Return an open request as far as its row shows it."""
    return Request(
        row.id, row.kind, row.agent, row.tool, None, 0, row.payload, "", row.expires_at, None, 0,
        row.opened_at, row.sets, row.component, row.mode, row.addressee,
    )  # fmt: skip


def _has_secrets(workflow: Workflow, state: State, signal: Answer) -> bool:
    form = workflow.forms.get(state.requests[signal.request].tool or "")
    return form is not None and bool(form.secrets(signal.value))
