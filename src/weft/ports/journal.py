"""The journal: every event of every run, in order, and what can be looked up without folding.

A store appends a batch of events whole or not at all, and only if the run still stands where the
writer believes it does. The rows of a batch are written in the same transaction as its events; the
engine has worked them out, so that no store decides anything itself.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from weft.engine.events import Event
from weft.engine.rows import Batch, DueRow, RequestRow, RunRow
from weft.findings import Json
from weft.ports.board import BoardStore
from weft.ports.scope import Scope

#: full: on disk before an effect is performed; normal: handed to the system, survives a crash of
#: the process but perhaps not of the machine.
Durability: TypeAlias = Literal["full", "normal"]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a clean-up removed, or would remove."""

    runs: int
    events: int
    bytes: int


class Journal(BoardStore, Protocol):
    """A store of runs. Whatever is outside the scope looks like what does not exist."""

    async def append(self, batch: Batch) -> None:
        """Write a batch, whole or not at all.

        Raises StoreConflict if the run has other events by now, StoreError if it cannot be
        written; one that is `uncertain` says that it may have been written after all, as when a
        connection breaks. When it returns, the batch is as durable as the store was asked to make
        it.
        """
        ...

    async def read(
        self, scope: Scope, run: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        """Return the events of a run after a number, in order; none if there is no such run."""
        ...

    def follow(self, scope: Scope, run: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Yield the events of a run after a number as they are written, until it has ended.

        Nothing comes if there is no such run. Waiting asks the store nothing.
        """
        ...

    async def run(self, scope: Scope, run: str) -> RunRow | None:
        """Return what is known about a run without folding it."""
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

    async def requests(self, scope: Scope, *, run: str | None = None) -> list[RequestRow]:
        """Return the open questions that are the scope's to answer, oldest first.

        Of a run within the scope, those that others are asked are returned as well.
        """
        ...

    async def kept(self, scope: Scope, workflow: str) -> dict[str, Json]:
        """Return the values that runs of a user's have left for the next, by variable."""
        ...

    async def completed(self, scope: Scope, workflows: Sequence[str]) -> set[str]:
        """Return those of the workflows of which a run has been completed; a fork is none."""
        ...

    async def unfinished(self) -> list[RunRow]:
        """Return the runs that had something to do when they were last written, of all tenants."""
        ...

    async def next_due(self, after: int) -> int | None:
        """Return when the next question expires or timer is due after a time, of all tenants."""
        ...

    async def due(self, now: int, *, after: DueRow | None = None, limit: int = 100) -> list[DueRow]:
        """Return what is due, of all tenants, the longest overdue first, page by page."""
        ...

    async def beat(self, owner: str, at: int) -> None:
        """Note that whoever owns runs was alive at a time."""
        ...

    async def claim(self, app: str, run: str, *, owner: str, before: str) -> bool:
        """Let a running run have another owner than before, or none (an empty name).

        False if it does not belong to the one before any more: another process was quicker.
        """
        ...

    async def package(self, app: str, digest: str) -> bytes | None:
        """Return the package that runs were started with; it is kept while a run needs it."""
        ...

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        """Remove the runs that ended before a time, with all that belongs to them alone."""
        ...

    async def close(self) -> None:
        """Write what is under way, then let go of everything."""
        ...
