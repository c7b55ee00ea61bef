"""Writing a run: decide, append, and verify appends whose acknowledgement was lost."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final

from weft.check.values import without_secrets
from weft.engine.commands import Command
from weft.engine.events import Event, Joined, RunStarted, VariableSet
from weft.engine.reduce import advance, is_expected, pending
from weft.engine.rows import Batch, RunRow, batch
from weft.engine.state import State
from weft.engine.variables.conditions import same
from weft.errors import StoreConflict, StoreError, UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.dispatcher import RunKey
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.runs.decision import CallCheck, Decision, NewEvent, decide
from weft.runtime.variables.json_values import MASK
from weft.runtime.workflow import Workflow
from weft.spec.variables import Variable

#: How often a step is decided anew because another process has written in between.
MAX_CONFLICTS: Final = 10

#: Milliseconds before a write that failed is tried again, and again.
PAUSES: Final = (100, 400, 1600)


class Batches:
    """The names of the batches that one process writes, and its own name as the owner of runs."""

    def __init__(self, owner: str) -> None:
        self.owner: Final = owner
        self._numbers = count(1)

    def new_id(self) -> str:
        """Return a name that no other batch has."""
        return f"{self.owner}.{next(self._numbers)}"


class RunWriter:
    """The state of a run as this process knows it, and the one way to change it."""

    def __init__(
        self,
        *,
        scope: Scope,
        workflow: Workflow,
        state: State,
        journal: Journal,
        clock: Clock,
        batches: Batches,
        owner: str | None = None,
        works: bool = True,
    ) -> None:
        """Write to a run: as its owner, unless it is named who is.

        A worker becomes the owner of a run when there is work to do for it here.
        """
        #: The tenant and the run.
        self.key: Final[RunKey] = (scope.app, state.run)
        self.scope = scope
        self.workflow = workflow
        self.state = state
        #: The summary of the run as this process wrote it last.
        self.row: RunRow | None = None
        self._journal = journal
        self._clock = clock
        self._batches = batches
        self._owner = batches.owner if owner is None else owner
        self._works = works

    async def write(
        self, new: tuple[NewEvent, ...], check: CallCheck | None = None
    ) -> Decision | None:
        """Write events if they are wanted, as things stand then; None if they are not.

        Raises UsageError if the check does not allow them.
        """
        compiled, last = self.workflow.compiled, new[-1]
        check = check or partial(is_expected, compiled, turn=last.turn, data=last.data)
        return await self._write(lambda: (new, ()), check)

    async def continue_run(self) -> Decision | None:
        """Return what is still to be done for the run, after writing what that takes."""
        await self.catch_up()
        self._own()
        return await self._write(
            lambda: ((), tuple(pending(self.workflow.compiled, self.state))), lambda _: True
        )

    async def begin(self, written: Batch, state: State) -> None:
        """Write the events that have led to where the run stands."""
        if not await self._append(written):
            raise StoreConflict(f"run {written.run} was begun before")
        self.state, self.row = state, written.row

    async def catch_up(self) -> bool:
        """Take in what another process has written; tell whether there was anything."""
        news = await self._journal.read(self.scope, self.state.run, after=self.state.seq)
        if not news:
            return False
        state = self.state.copy()
        for event in news:
            advance(self.workflow.compiled, state, event)
        self.state, self.row = state, None
        return True

    async def _write(
        self,
        wanted: Callable[[], tuple[Iterable[NewEvent], Iterable[Command]]],
        check: CallCheck,
    ) -> Decision | None:
        conflicts = 0
        while await self._allows(check):
            new, commands = wanted()
            now = self._clock.now()
            decision = decide(self.workflow, self.state, new, now, commands)
            if not decision.events or await self._append(self._batch(decision)):
                declared = self.workflow.compiled.variables
                log_changes(declared, self.state, decision.state, decision.events)
                self.state = decision.state
                return decision
            conflicts += 1
            # What is there before a run has begun is another run, perhaps of another user.
            if conflicts > MAX_CONFLICTS or not self.state.seq:
                raise StoreConflict(f"run {self.state.run} is written by another process")
            await self.catch_up()
        return None

    async def _allows(self, check: CallCheck) -> bool:
        try:
            return check(self.state)
        except UsageError:
            # Another process may have written what would allow it.
            if not self.state.seq or not await self.catch_up():
                raise
            return check(self.state)

    def _own(self) -> None:
        if self._works:
            self._owner = self._batches.owner

    def _batch(self, decision: Decision) -> Batch:
        if decision.effects:
            self._own()
        return batch(
            self.state,
            decision.state,
            decision.events,
            id=self._batches.new_id(),
            owner=self._owner,
            package=None if self.state.seq else self.workflow.package,
        )

    async def _append(self, written: Batch) -> bool:
        """Append a batch; False if another process has written. What is uncertain is looked up."""
        uncertain = False
        for pause in (*PAUSES, None):
            try:
                await self._journal.append(written)
            except StoreConflict:
                if not (uncertain and await self._is_written(written)):
                    return False
            except StoreError as error:
                if not error.retryable or pause is None:
                    raise
                uncertain = uncertain or error.uncertain
                await self._clock.sleep_until(self._clock.now() + pause)
                continue
            self.row = written.row
            return True
        raise AssertionError("the last attempt returns or raises")

    async def _is_written(self, written: Batch) -> bool:
        """Tell whether a batch whose acknowledgement was lost is there."""
        row = await self._journal.run(self.scope, written.run)
        if row is None or row.batch == written.id:
            return row is not None
        # Another process may have written after it.
        there = await self._journal.read(
            self.scope, written.run, after=written.expected, limit=len(written.events)
        )
        return there == list(written.events)


_log: Final = logging.getLogger("weft.context")

#: How many characters of a value are told.
_MOST: Final = 300


def log_changes(
    variables: Mapping[str, Variable], before: State, after: State, events: Sequence[Event]
) -> None:
    """Log what events that were written have changed, with what it was before."""
    if not _log.isEnabledFor(logging.DEBUG):
        return
    for name, old, new, writer, event in _changes(before, after, events):
        secret = name in variables and variables[name].secret
        told = [MASK if secret else _told(name, it) for it in (old, new)]
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
                # What its members have set for themselves counts for all from here on.
                for name, value in after.variables.items():
                    if not same(values.get(name), value) and not _is_set_later(name, event, events):
                        yield name, values.get(name), value, f"group {group}", event
            case _:
                pass


def _is_set_later(name: str, joined: Event, events: Sequence[Event]) -> bool:
    """Tell whether an event after a group has joined sets a variable: that is told there."""
    return any(
        isinstance(event.data, VariableSet) and event.data.name == name and event.seq > joined.seq
        for event in events
    )


def _told(name: str, value: Json) -> str:
    text = json.dumps(without_secrets(name, value, MASK), ensure_ascii=False)
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."
