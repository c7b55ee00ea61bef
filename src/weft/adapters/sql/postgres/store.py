"""The store in PostgreSQL, for any number of processes.

One connection writes, with one transaction for all that wait; one serves the queue, without waiting
for the disk; few read, in a role that sees one tenant at a time; one listens to other processes.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

from pydantic_core import from_json, to_json

from weft.adapters.sql import queue
from weft.adapters.sql.group import Then
from weft.adapters.sql.postgres.bus import PostgresBus
from weft.adapters.sql.postgres.connections import BY_KEY, FAILURES, Database, Line, drive, end
from weft.adapters.sql.postgres.listener import Listener
from weft.adapters.sql.postgres.schema import READER, check_version
from weft.adapters.sql.statements import Call, Rows, Statement, Transaction
from weft.adapters.sql.store import ReadFrozen, SqlStore
from weft.adapters.sql.write import Outcome
from weft.adapters.store_rules import DEAD_AFTER
from weft.adapters.system_clock import SystemClock
from weft.ports.clock import Clock
from weft.ports.signal import Signal
from weft.ports.store import Claimed, Durability, Heartbeat

T = TypeVar("T")

#: How many connections read at once.
READERS: Final = 4

#: A notification is at most 8,000 bytes long.
MOST_BYTES: Final = 7_900

#: Tells of runs with new events, and wakes the owners of runs: one living worker for a run that has
#: none. Without any, no process listens to the channel.
_NOTIFY: Final = Statement(
    """
    {x} SELECT pg_notify(
        CASE WHEN x.payload <> '' THEN $1 || '_events' ELSE $1 || '_wake_' || right(coalesce(
            nullif(x.owner, ''),
            (SELECT owner FROM workers WHERE seen_at >= {now} - $2 ORDER BY random() LIMIT 1),
            'none'
        ), 30) END, x.payload
    ) FROM x
    """,
    "owner payload",
)

#: Whatever is listed is read in the order of an index, and few rows of it.
_IN_ORDER: Final = {**BY_KEY, "enable_bitmapscan": "off", "enable_sort": "off"}

#: Seconds after its last claim or heartbeat for which a worker of this process counts as living.
_LIVING_SECONDS: Final = 3.0


class PostgresStore(SqlStore):
    """The store port over PostgreSQL."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        durability: Durability,
        dead_after: int,
        signal: Signal | None,
    ) -> None:
        super().__init__(clock, dead_after)
        self.name = f"store {database.name}"
        self._database = database
        relaxed = {**BY_KEY, "synchronous_commit": "off"}
        self._writer = Line(database, **(BY_KEY if durability == "full" else relaxed))
        self._queue_line = Line(database, **relaxed)
        self._readers = [Line(database, role=READER, **_IN_ORDER) for _ in range(READERS)]
        self._listener = Listener(database, self._on_ready)
        self._signal = signal
        self._signals = AsyncExitStack()
        #: The workers of this process, each with the time of its last claim or heartbeat.
        self._owners: dict[str, float] = {}
        #: The owners of runs that the present transaction makes due.
        self._woken: set[str] = set()
        #: Whether a signal came while no worker waited for it.
        self._was_woken = False
        self._waiters: set[asyncio.Future[bool]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        schema: str = "weft",
        clock: Clock | None = None,
        durability: Durability = "full",
        dead_after: int = DEAD_AFTER,
        signal: Signal | None = None,
    ) -> "PostgresStore":
        """Open the store; `signal` wakes workers of other processes in place of NOTIFY.

        Raises StoreError if the server cannot be reached, or its tables do not fit.
        """
        database = Database(url, schema)
        connection = await database.connect()
        try:
            await check_version(database, connection)
        finally:
            await end(connection)
        return cls(
            database,
            clock=clock or SystemClock(),
            durability=durability,
            dead_after=dead_after,
            signal=signal,
        )

    def wake_by(self, signal: Signal) -> None:
        """Wake workers of other processes by a signal in place of NOTIFY, before any is there."""
        self._signal = signal

    @property
    def is_connected(self) -> bool:
        """Whether the server could be reached when it was last needed."""
        return self._database.is_reachable

    def bus(self) -> PostgresBus:
        """Return a bus for messages between the processes that share this database."""
        return PostgresBus(self._queue_line, self._listener, self._database.schema)

    # -- transactions

    def _perform(self, transaction: Transaction[list[Outcome]], then: Then) -> None:
        task = asyncio.create_task(self._perform_group(transaction, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _perform_group(self, transaction: Transaction[list[Outcome]], then: Then) -> None:
        self._woken = set()
        try:
            outcomes = await self._write(transaction)
        except Exception as error:  # noqa: BLE001 - it belongs to the callers
            then(None, error)
            return
        self._wake_woken()
        then(outcomes, None)

    async def _write(self, transaction: Transaction[T]) -> T:
        return await self._writer.write(transaction)

    async def _queue(self, transaction: Transaction[T]) -> T:
        return await self._queue_line.run(transaction)

    async def _read(self, transaction: Transaction[T], app: str) -> T:
        line = min(self._readers, key=lambda reader: reader.waiting)
        return await line.run(transaction, app)

    # -- for operators

    @asynccontextmanager
    async def frozen(self) -> AsyncGenerator[ReadFrozen]:
        self._refuse_if_closed()
        # Nothing waits for its locks: it may be idle while its rows are written elsewhere.
        connection = await self._database.connect(idle_in_transaction_session_timeout="0")

        async def read(transaction: Transaction[T]) -> T:
            try:
                return await drive(connection, transaction)
            except FAILURES as error:
                raise self._database.explain(error) from error

        try:
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield read
        finally:
            await end(connection)

    # -- workers

    async def claim(self, owner: str, *, limit: int = 50) -> Claimed:
        await self._listen_for(owner)
        return await super().claim(owner, limit=limit)

    async def beat(self, owner: str) -> Heartbeat:
        await self._listen_for(owner)
        return await super().beat(owner)

    async def next_due(self) -> int | None:
        self._refuse_if_closed()
        return await self._queue(queue.next_due())  # Of all tenants.

    async def wait(self, seconds: float) -> bool:
        self._refuse_if_closed()
        if self._was_woken:
            self._was_woken = False
            return True
        woken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.add(woken)
        try:
            # Not wait_for: in Python 3.11 it may miss that the caller is cancelled.
            async with asyncio.timeout(seconds):
                return await woken
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(woken)

    async def _listen_for(self, owner: str) -> None:
        """Hear the signals to a worker of this process."""
        self._refuse_if_closed()
        is_new = owner not in self._owners
        self._owners[owner] = asyncio.get_running_loop().time()
        if not is_new:
            return
        if self._signal is None:
            channel = f"{self._database.schema}_wake_{owner[-30:]}"
            self._listener.listen(channel, lambda _: self._wake_waiters())
        else:
            listening = self._signal.listen(owner, self._wake_waiters)
            await self._signals.enter_async_context(listening)

    # -- other processes

    def _notify(self, appended: Rows, woken: Rows) -> list[Call]:
        """Return the statement that tells other processes; it is sent when the group commits."""
        self._woken = {owner for _, _, owner in woken}
        rows = [("", payload) for payload in _payloads(appended)]
        if self._signal is None:
            rows += [(owner, "") for owner in sorted(self._woken - self._living())]
        return [_NOTIFY(rows, self._database.schema, self._dead_after)] if rows else []

    def _living(self) -> set[str]:
        """Return the living workers of this process, with '' if there are any."""
        after = asyncio.get_running_loop().time() - _LIVING_SECONDS
        living = {owner for owner, at in self._owners.items() if at >= after}
        return {*living, ""} if living else living

    def _wake_woken(self) -> None:
        """Wake the workers whose runs are due: those here at once, others by the signal."""
        living = self._living()
        if self._woken & living:
            self._wake_waiters()
        if self._signal is not None:
            for owner in self._woken - living:
                self._signal.notify(owner)

    def _watch(self) -> None:
        self._listener.listen(f"{self._database.schema}_events", self._on_events)

    def _on_events(self, payload: str) -> None:
        self._followers.catch_up({(app, run): seq for app, run, seq in from_json(payload)})

    def _on_ready(self) -> None:
        """Look for changes that were missed while the connection was down."""
        self._followers.read_again()
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        # A worker that is busy just now looks when it is done.
        self._was_woken = not self._waiters
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def _close(self) -> None:
        self._wake_waiters()
        await asyncio.gather(*self._tasks)
        await self._listener.close()
        await self._signals.aclose()
        if self._signal is not None:
            await self._signal.close()
        for line in (self._writer, self._queue_line, *self._readers):
            await line.close()


def _payloads(appended: Rows) -> Iterator[str]:
    """Yield the runs that have new events, in as many notifications as they need."""
    if not appended:
        return
    payload = to_json(appended).decode()
    if len(payload.encode()) <= MOST_BYTES or len(appended) == 1:
        yield payload
    else:
        half = len(appended) // 2
        yield from _payloads(appended[:half])
        yield from _payloads(appended[half:])
