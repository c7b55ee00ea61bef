"""The store: the events of all runs, who works on them, what was sent to them, and what is listed.

One row of work per open run is its mutex, its owner, its next timer and its wake-up flag. What
reaches a run from outside is mail: the owner takes it into its next batch in the same transaction,
so that it is delivered exactly once. The engine has worked out every row of a batch: no store
decides what a run does.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from weft.engine.events import Event
from weft.engine.rows import Batch, Mail, OutgoingEvent, RequestRow, RunRow, Snapshot
from weft.findings import Json
from weft.ports.board import ArtifactPage, ArtifactQuery, Consumption
from weft.ports.records import Records
from weft.ports.scope import Scope

#: full: on disk before an effect is performed; normal: handed to the system, survives a crash of
#: the process but perhaps not of the machine.
Durability: TypeAlias = Literal["full", "normal"]

#: A run and the tenant it belongs to, tenant first.
RunKey: TypeAlias = tuple[str, str]


class Pruned(NamedTuple):
    """What a clean-up removed, or would remove."""

    runs: int
    events: int
    bytes: int


class Claimed(NamedTuple):
    """The runs that an owner should look at, and the store's time."""

    now: int
    runs: list[RunKey]


class Heartbeat(NamedTuple):
    """The answer to a heartbeat: `alive` is False if it came too late to keep the runs."""

    alive: bool
    #: The store's time.
    now: int
    #: The other living owners that hold runs, each with the time of its last heartbeat.
    others: Mapping[str, int]


class OwnerLoad(NamedTuple):
    """An owner: how many runs it holds, and when it was last alive; 0 if that is not known."""

    owner: str
    runs: int
    seen_at: int


class Workload(NamedTuple):
    """The work of all processes."""

    #: The store's time.
    now: int
    #: How many free runs are due.
    waiting: int
    #: The owners that hold runs or are alive.
    owners: Sequence[OwnerLoad]


class EventLog(Protocol):
    """The events of runs. What is outside a scope looks like what does not exist."""

    async def append(self, batch: Batch, *, owner: str) -> bool:
        """Write a batch, whole or not at all; True: the run has unread mail, and is the owner's.

        The owner keeps the run if the batch is `held` or mail is left; else the run is free and
        due at `due_at`. A batch may have no events: it takes mail, or lets a run go. A batch that
        was written already is not written again. When it returns, the batch is as durable as the
        store was asked to make it.

        Raises StoreConflict if the run has other events by now, RunOwned if another owner holds
        it, UnreadMail if the batch ends the run or is `direct` and mail is unread, NameTaken if
        another open run has its name, and StoreError if it cannot be written; one that is
        `uncertain` may have been written: append the same batch again.
        """
        ...

    async def read(
        self, scope: Scope, run: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        """Return the events of a run after a number, in order; none if there is no such run."""
        ...

    def follow(self, scope: Scope, run: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Yield the events of a run after a number as they are written, until it has ended.

        Nothing comes if there is no such run. A follower that waits makes no queries.
        """
        ...

    async def snapshot(self, app: str, run: str) -> Snapshot | None:
        """Return the last saved state of a run."""
        ...

    async def save_snapshot(self, app: str, run: str, snapshot: Snapshot) -> None:
        """Save the state of an open run after one of its events, in place of an earlier state."""
        ...

    async def package(self, app: str, digest: str) -> bytes | None:
        """Return the package that runs were started with; it is kept while a run needs it."""
        ...

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        """Remove the runs that ended before a time, with all that belongs to them alone.

        Mail that they have sent stays: it belongs to its receiver.
        """
        ...


class WorkQueue(Protocol):
    """Who works on which run. An owner is a process life: it has a new id after each start."""

    async def claim(self, owner: str, *, limit: int = 50) -> Claimed:
        """Take up to `limit` free runs that are due; return them and those that are mine and due.

        A run is mine and due if mail came for it, or if the answer of an earlier claim was lost.
        """
        ...

    async def take(self, owner: str, app: str, run: str, *, force: bool = False) -> bool:
        """Take one open run; False if it has ended or, without `force`, has another owner."""
        ...

    async def beat(self, owner: str) -> Heartbeat:
        """Record that an owner is alive, and free the runs of other owners that are not."""
        ...

    async def rename(self, owner: str, new: str) -> list[RunKey]:
        """Give the runs that an owner still holds to its next life; return these runs.

        It is for an owner whose heartbeat came too late: others may have some of its runs by now.
        """
        ...

    async def release(self, owner: str, runs: Collection[RunKey], *, due_at: int = 0) -> None:
        """Free runs that the owner holds; they are due at a time, or now."""
        ...

    async def next_due(self) -> int | None:
        """Return when the next free run is due, by the store's clock."""
        ...

    async def workload(self) -> Workload:
        """Return how many runs wait for a worker, and the workers. It is for operators."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Return after so many seconds, or sooner and True if another process may have written."""
        ...


class MailBox(Protocol):
    """What was sent to runs and is not in their events yet."""

    async def put(self, mail: Mail, *, package: bytes | None = None) -> str:
        """Send mail and return the run that gets it; mail with an id that was sent is not repeated.

        With `start`, it goes to the open run of the name, or begins one, which needs the package.

        Raises RequestNotOpen or AlreadyAnswered if it answers a request that is not open or has an
        answer, RunHasEnded if it is addressed to a run that has ended or never was, and StoreError
        if it cannot be written; one that is `uncertain` may be put again.
        """
        ...

    async def pending(self, app: str, run: str, *, limit: int = 100) -> list[Mail]:
        """Return the unread mail of a run, in the order it came."""
        ...


class RunIndex(Protocol):
    """What is known of runs without their events."""

    async def run(self, scope: Scope, run: str) -> RunRow | None:
        """Return the row of a run; None for one that has no events yet."""
        ...

    async def named(self, app: str, name: str) -> RunRow | None:
        """Return the open run of a name, else the newest that has ended."""
        ...

    async def open_run(self, app: str, name: str) -> str | None:
        """Return the id of the open run of a name; it may have mail and no events yet."""
        ...

    async def runs(
        self,
        scope: Scope,
        *,
        status: str | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        """Return runs, newest first; `before` continues after the last run of a page."""
        ...

    async def requests(
        self,
        scope: Scope,
        *,
        run: str | None = None,
        after: tuple[int, str, str] | None = None,
        limit: int | None = None,
    ) -> list[RequestRow]:
        """Return the open requests that the scope may answer, oldest first.

        With a run: all of its open requests that the scope may see. `after` is the time, run and
        id of the last one of a page. A request whose answer is on its way is not open any more.
        """
        ...

    async def carried(self, scope: Scope, workflow: str) -> dict[str, Json]:
        """Return the values that runs of a user have left for later runs of a workflow."""
        ...

    async def apps(self) -> list[str]:
        """Return the tenants that have runs, in order. It is for the operator of the store."""
        ...

    async def completed(self, scope: Scope, workflows: Sequence[str]) -> set[str]:
        """Return those of the workflows that have a completed run; a fork does not count."""
        ...


class Outbox(Protocol):
    """The events that are to be sent to webhooks; batches bring them."""

    async def take_outgoing(self, *, limit: int, hold: int) -> list[OutgoingEvent]:
        """Return events that are due, of all tenants; they are due again in `hold` milliseconds.

        They come in the order of their time, run and number, and none of a webhook while another
        event of it is not due: that one comes first.
        """
        ...

    async def postpone_outgoing(self, events: Sequence[OutgoingEvent], *, hold: int) -> None:
        """Make events due again in so many milliseconds."""
        ...

    async def remove_outgoing(self, events: Sequence[OutgoingEvent]) -> None:
        """Remove events that were sent, or are given up."""
        ...


class BoardIndex(Protocol):
    """What is known of boards without their events."""

    async def artifacts(self, query: ArtifactQuery, *, count: bool = False) -> ArtifactPage:
        """Return artifacts by time, those of one time by run and number; or all that backwards.

        An id that was given twice, in two runs, is that of two artifacts.
        """
        ...

    async def consumed(
        self, app: str, board: str, *, owners: tuple[str, ...] | None, agent: str | None = None,
        artifact: str | None = None, limit: int = 100,
    ) -> list[Consumption]:  # fmt: skip
        """Return which agents were woken by which artifacts, newest first.

        `owners` are those of a query.
        """
        ...


class Store(EventLog, WorkQueue, MailBox, RunIndex, BoardIndex, Outbox, Records, Protocol):
    """All of these over one database."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may use it. Without them, no heartbeats are needed."""
        ...

    async def close(self) -> None:
        """Write what is under way, then close the connections."""
        ...
