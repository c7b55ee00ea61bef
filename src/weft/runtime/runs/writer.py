"""Writing a run: decide, append, and verify appends whose acknowledgement was lost."""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from weft.check.values import without_secrets
from weft.engine.events import Event, Joined, RunStarted, VariableSet
from weft.engine.incoming import due_events
from weft.engine.reduce import advance, is_expected, pending
from weft.engine.rows import Batch, Mail, RunRow, batch
from weft.engine.snapshot import take_snapshot
from weft.engine.state import State
from weft.engine.variables.conditions import same
from weft.errors import RunOwned, StoreConflict, StoreError, UnreadMail, UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.scope import Scope
from weft.ports.store import RunKey, Store
from weft.runtime.runs.decision import CallCheck, Decision, Incoming, NewEvent, decide
from weft.runtime.runs.outgoing import Webhooks, with_outgoing
from weft.runtime.runs.ownership import Ownership
from weft.runtime.variables.json_values import MASK
from weft.runtime.workflow import Workflow
from weft.spec.variables import Variable

_store_log: Final = logging.getLogger("weft.runtime")

#: How often a decision is repeated because mail arrived or another process has written.
MAX_CONFLICTS: Final = 10

#: Milliseconds before each retry of a write that failed.
PAUSES: Final = (100, 400, 1600)

#: How much mail is read at once.
MAIL_PAGE: Final = 100

#: How many events a run may have after its last snapshot.
SNAPSHOT_EVENTS: Final = 500


class RunWriter:
    """The state of a run in this process, and the only way to change it."""

    def __init__(  # noqa: PLR0913 - its ports, all by name
        self,
        *,
        scope: Scope,
        workflow: Workflow,
        state: State,
        store: Store,
        clock: Clock,
        ownership: Ownership,
        webhooks: Webhooks,
        start: NewEvent | None = None,
        snapshot: int = 0,
        works: bool = True,
    ) -> None:
        """`start` is the first event of a run that was begun by mail.

        Without `works`, the effects of the run are left to another process.
        """
        #: The tenant and the run.
        self.key: Final[RunKey] = (scope.app, state.run)
        self.scope = scope
        self.workflow = workflow
        self.state = state
        self.start = start
        #: The summary of the run as this process wrote it last.
        self.row: RunRow | None = None
        #: The owner under which this process holds the run in the store; empty if it does not.
        self.held_by = ""
        #: Whether the run has unread mail.
        self.has_mail = False
        self._store = store
        self._clock = clock
        self._ownership = ownership
        self._webhooks = webhooks
        self._works = works
        #: What was written, in order, until the owner of this writer has followed it.
        self.decisions: list[Decision] = []
        #: After which event a snapshot is to be saved.
        self.snapshot_at = snapshot + SNAPSHOT_EVENTS

    async def write(
        self, new: tuple[NewEvent, ...], check: CallCheck | None = None, *, busy: bool = False
    ) -> None:
        """Write events if the run accepts them, and before them the unread mail.

        With `busy` or effects that follow, this process holds the run afterwards. Raises UsageError
        if the check does not allow the events, and RunOwned if another process holds the run.
        """
        compiled, last = self.workflow.compiled, new[-1]
        is_direct = check is not None
        check = check or partial(is_expected, compiled, turn=last.turn, data=last.data)
        for _ in range(MAX_CONFLICTS):
            if not await self._allows(check):
                return
            decision = decide(self.workflow, self.state, new, self._clock.now())
            try:
                await self._append(decision, busy=busy, direct=is_direct)
            except UnreadMail:
                await self.take_mail(busy=True)
                busy = True  # Effects that the mail asks for have not begun yet.
            except StoreConflict as error:
                # A run that exists already is another one, perhaps of another user.
                if isinstance(error, RunOwned) or not self.state.seq:
                    raise
                await self.catch_up()
            else:
                return
        raise self._disturbed()

    async def take_mail(self, *, busy: bool = False) -> None:
        """Write the unread mail and the events that are due."""
        conflicts, limit = 0, MAIL_PAGE
        while conflicts < MAX_CONFLICTS:
            mail = await self._store.pending(*self.key, limit=limit)
            now = self._clock.now()
            incoming: list[NewEvent | Incoming] = []
            if not self.state.seq and self.start is not None:
                incoming.append(self.start)
            incoming += (Incoming(each.actor, each.data) for each in mail)
            incoming += (Incoming("clock", due.data) for due in due_events(self.state, now))
            decision = decide(self.workflow, self.state, incoming, now)
            if not mail and not decision.events:
                self.has_mail = False
                return
            try:
                await self._append(decision, taken=mail, busy=busy)
            except RunOwned:
                raise
            except UnreadMail:  # The run ends: no mail may be left.
                limit *= 10
            except StoreConflict:
                conflicts += 1
                await self.catch_up()
            else:
                busy = busy or bool(decision.effects)  # They have not begun yet.
                if not self.has_mail:
                    return
        raise self._disturbed()

    async def continue_run(self) -> Decision:
        """Write the pending commands of the run; return the decision with its effects."""
        while True:
            commands = tuple(pending(self.workflow.compiled, self.state))
            decision = decide(self.workflow, self.state, (), self._clock.now(), commands)
            try:
                if decision.events:
                    await self._append(decision, busy=bool(decision.effects))
                    self.decisions.pop()
            except UnreadMail:  # The run would end.
                await self.take_mail(busy=True)
                continue
            return decision

    async def let_go(self) -> None:
        """Release the run, unless it has unread mail: then this process still owns it."""
        try:
            await self._append(Decision([], self.state, [], {}), busy=False)
        except UnreadMail:
            raise
        except StoreConflict:  # It was free already: another process has written since.
            self.held_by = ""
            await self.catch_up()

    async def keep(self) -> None:
        """Note in the store that this process works on the run."""
        await self._append(Decision([], self.state, [], {}), busy=True, is_needed=True)

    async def begin(self, written: Batch, state: State) -> None:
        """Write the first events of the run."""
        await self._write(written)
        self.state, self.row = state, written.row

    async def catch_up(self) -> bool:
        """Read the events of another process; return whether there were any."""
        news = await self._store.read(self.scope, self.state.run, after=self.state.seq)
        if not news:
            return False
        state = self.state.copy()
        for event in news:
            advance(self.workflow.compiled, state, event)
        self.state, self.row = state, None
        return True

    async def last_owner(self) -> str:
        """Return the worker that wrote the run last; empty if none has yet."""
        row = await self._store.run(self.scope, self.state.run)
        return "" if row is None else row.batch.rpartition(".")[0]

    async def save_snapshot(self) -> None:
        """Save the state, so that it need not be computed from all events."""
        state = self.state
        self.snapshot_at = state.seq + SNAPSHOT_EVENTS
        if state.status == "ended":
            return
        try:
            await self._store.save_snapshot(*self.key, take_snapshot(state))
        except StoreError as error:  # It is a cache: the events are there.
            _store_log.warning("no snapshot of run %s was saved: %s", state.run, error)

    async def _allows(self, check: CallCheck) -> bool:
        try:
            return check(self.state)
        except UsageError:
            # Another process may have written what would allow it.
            if not self.state.seq or self.held_by or not await self.catch_up():
                raise
            return check(self.state)

    async def _append(
        self,
        decision: Decision,
        *,
        busy: bool,
        taken: Sequence[Mail] = (),
        direct: bool = False,
        is_needed: bool = False,
    ) -> None:
        """Append a batch and take over its state. Raises StoreConflict if it is refused."""
        lets_go = bool(self.held_by) and not busy
        if not (decision.events or taken or lets_go or is_needed):
            return
        written = batch(
            self.state,
            decision.state,
            decision.events,
            # Of a worker, it names its owner.
            id=self._ownership.new_batch() if self._works else self._clock.new_id(),
            at=None if decision.events else self._changed_at,
            package=None if self.state.seq else self.workflow.package,
            taken=taken,
            held=self._works and (busy or bool(decision.effects)),
            direct=direct,
        )
        await self._write(written)
        if _log.isEnabledFor(logging.DEBUG):
            declared = self.workflow.compiled.variables
            log_changes(declared, self.state, decision.state, decision.events)
        self.state, self.row = decision.state, written.row
        self.decisions.append(decision)

    @property
    def _changed_at(self) -> int:
        return self._clock.now() if self.row is None else self.row.changed_at

    async def _write(self, written: Batch) -> None:
        """Append a batch, and note whether the run has mail and whether this process holds it.

        If the outcome is uncertain, it is written again, which has no second effect.
        """
        if written.held:  # Before it is written: from then on the owner must be alive.
            self._ownership.begin()
        owner, is_certain, pauses = self._ownership.owner, True, iter(PAUSES)
        while True:
            try:
                if time.monotonic() >= self._webhooks.outdated_at:
                    await self._webhooks.keep_current()
                webhooks = self._webhooks.by_app.get(self.scope.app)
                sent = with_outgoing(written, webhooks) if webhooks else written
                self.has_mail = await self._store.append(sent, owner=owner)
                break
            except StoreConflict as error:
                if not is_certain and await self._is_written(written):
                    self.has_mail = False
                    break
                if not isinstance(error, RunOwned) or owner == await self._ownership.current():
                    raise
                owner, is_certain = self._ownership.owner, False  # It has a new id meanwhile.
            except StoreError as error:
                pause = next(pauses, None)
                if not error.retryable or pause is None:
                    raise
                is_certain = is_certain and not error.uncertain
                await self._clock.sleep_until(self._clock.now() + pause)
        self.held_by = ""
        if written.held or self.has_mail:
            if not written.held:
                self._ownership.begin()
            is_same = is_certain and owner == self._ownership.owner
            self.held_by = owner if is_same else await self._find_holder()

    async def _find_holder(self) -> str:
        """Ask the store whether this process holds the run: another may have taken it over.

        Returns the id of this process, or nothing.
        """
        while True:
            owner = await self._ownership.current()
            row = await self._store.run(self.scope, self.state.run)
            if owner == await self._ownership.current():  # Else the store may mean either id.
                return owner if row is not None and row.owner == owner else ""

    async def _is_written(self, written: Batch) -> bool:
        """Return whether a batch was written whose acknowledgement was lost."""
        there = await self._store.read(
            self.scope, written.run, after=written.expected, limit=len(written.events)
        )
        return bool(there) and there == list(written.events)

    def _disturbed(self) -> StoreConflict:
        return StoreConflict(f"run {self.state.run} is written by another process")


_log: Final = logging.getLogger("weft.context")

#: How many characters of a value are shown.
_MOST: Final = 300


def log_changes(
    variables: Mapping[str, Variable], before: State, after: State, events: Sequence[Event]
) -> None:
    """Log the variables that written events have changed, with their old values."""
    for name, old, new, writer, event in _changes(before, after, events):
        secret = name in variables and variables[name].secret
        told = [MASK if secret else _value_text(name, value) for value in (old, new)]
        where = f"run {after.run}, event {event.seq}" + (f", turn {event.turn}" * bool(event.turn))
        _log.debug("%s: %s -> %s (%s; %s)", name, *told, writer, where)


def _changes(
    before: State, after: State, events: Sequence[Event]
) -> Iterator[tuple[str, Json, Json, str, Event]]:
    held: dict[int, dict[str, Json]] = {}
    for event in events:
        data = event.data
        values = held.setdefault(event.turn, dict(before.values_of(event.turn)))
        match data:
            case VariableSet(name=name, value=value, writer=writer):
                yield name, values.get(name), value, writer, event
                values[name] = value
            case RunStarted(values=given):
                for name, value in given.items():
                    if value is not None:
                        yield name, None, value, "start", event
                values |= given
            case Joined(name=group):
                # The values of its members are merged here.
                for name, value in after.variables.items():
                    if not same(values.get(name), value) and not _is_set_later(name, event, events):
                        yield name, values.get(name), value, f"group {group}", event
            case _:
                pass


def _is_set_later(name: str, joined: Event, events: Sequence[Event]) -> bool:
    """Return whether an event sets a variable after a group has joined, which reports it itself."""
    return any(
        isinstance(event.data, VariableSet) and event.data.name == name and event.seq > joined.seq
        for event in events
    )


def _value_text(name: str, value: Json) -> str:
    text = json.dumps(without_secrets(name, value, MASK), ensure_ascii=False)
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."
