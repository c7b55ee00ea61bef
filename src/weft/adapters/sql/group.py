"""Group commit: batches and mail that come while a transaction is under way share the next one."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, TypeAlias

from weft.adapters.sql.statements import Transaction
from weft.adapters.sql.write import Append, Deferred, Outcome, Put
from weft.adapters.store_rules import UNFIT

#: How many share one transaction at most.
MOST_ITEMS: Final = 500

Items: TypeAlias = Sequence[Append | Put]
#: Receives the outcomes of a group, or the error that kept it from being written.
Then: TypeAlias = Callable[["list[Outcome] | None", "BaseException | None"], None]


class _Waiting(NamedTuple):
    """An item, and what its sender waits for."""

    item: Append | Put
    done: "asyncio.Future[bool | str]"

    @property
    def key(self) -> Hashable:
        """What no two items of one transaction may have in common: the run, or the id of mail."""
        if isinstance(self.item, Append):
            return self.item.written.key
        return (*self.item.parcel.key, self.item.parcel.mail.id)


class GroupCommit:
    """Collects items, and writes them in groups, one group after the other.

    `perform` runs a transaction and hands its result or its error to a function, in the event loop
    that this object belongs to; `make` makes the transaction of a group.
    """

    def __init__(
        self,
        make: Callable[[Items], Transaction[list[Outcome]]],
        perform: Callable[[Transaction[list[Outcome]], Then], None],
        on_written: Callable[[Append], None],
    ) -> None:
        self._make = make
        self._perform = perform
        self._on_written = on_written
        self._waiting: list[_Waiting] = []
        self._is_busy = False
        #: How many items came and how many have their answer, and who waits for which count.
        self._submitted = 0
        self._answered = 0
        self._flushing: list[tuple[int, asyncio.Future[None]]] = []
        #: Whether several items shared the last transaction.
        self._is_crowded = False
        #: How many of those that wait are written on their own.
        self._alone = 0

    def submit(self, item: Append | Put) -> "asyncio.Future[bool | str]":
        """Write an item with all others that wait; the future has the answer."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool | str] = loop.create_future()
        self._waiting.append(_Waiting(item, done))
        self._submitted += 1
        if not self._is_busy:
            self._is_busy = True
            if self._is_crowded:
                # Others are likely to be ready in this round with items for the same transaction.
                loop.call_soon(self._begin)
            else:
                self._begin()
        return done

    async def flush(self) -> None:
        """Return when everything that was submitted before has been written."""
        if self._is_busy:
            flushed = asyncio.get_running_loop().create_future()
            self._flushing.append((self._submitted, flushed))
            await flushed

    def _begin(self) -> None:
        if len(self._waiting) == 1:
            group, self._waiting = self._waiting, []
            self._is_crowded = False
            self._alone = 0
            self._write(group)
            return
        most = 1 if self._alone else MOST_ITEMS
        self._alone = max(0, self._alone - 1)
        chosen: dict[Hashable, _Waiting] = {}
        rest: list[_Waiting] = []
        for waiting in self._waiting:
            key = waiting.key
            if len(chosen) >= most or key in chosen:
                rest.append(waiting)
            else:
                chosen[key] = waiting
        self._waiting = rest
        self._is_crowded = len(chosen) > 1
        self._write(list(chosen.values()))

    def _write(self, group: list[_Waiting]) -> None:
        transaction = self._make([waiting.item for waiting in group])
        self._perform(transaction, lambda outcomes, error: self._settle(group, outcomes, error))

    def _settle(
        self, group: list[_Waiting], outcomes: list[Outcome] | None, error: BaseException | None
    ) -> None:
        if outcomes is None and len(group) > 1 and isinstance(error, UNFIT):
            # One of them is to blame: each is written on its own.
            self._alone = len(group)
            self._waiting = group + self._waiting
            self._begin()
            return
        again: list[_Waiting] = []
        for number, waiting in enumerate(group):
            outcome = error if outcomes is None else outcomes[number]
            if isinstance(outcome, Deferred):
                again.append(waiting)
                continue
            if isinstance(waiting.item, Append) and isinstance(outcome, bool):
                self._on_written(waiting.item)
            if waiting.done.done():
                continue  # Its sender was cancelled; it is written all the same.
            if isinstance(outcome, BaseException):
                waiting.done.set_exception(outcome)
            elif outcome is not None:
                waiting.done.set_result(outcome)
        self._waiting = again + self._waiting
        self._answered += len(group) - len(again)
        if self._flushing:
            self._end_flushes()
        if self._waiting:
            self._begin()
        else:
            self._is_busy = False

    def _end_flushes(self) -> None:
        for submitted, flushed in self._flushing:
            if submitted <= self._answered and not flushed.done():
                flushed.set_result(None)
        self._flushing = [each for each in self._flushing if not each[1].done()]
