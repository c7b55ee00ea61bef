"""Documents that begin runs: one server at a time watches the collection of a start.

A run begins when a document starts to match the condition. That it matches is a record, so that it
begins no second run before it has stopped matching. The position in the changes is kept with the
start: another server, or the same one after a restart, continues there.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Final, cast

from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError, PortError, SetupError, StoreError, UsageError, WeftError
from weft.findings import Json
from weft.ports.documents import Change, Collection, Documents
from weft.ports.scope import Scope
from weft.server.records import delete_all
from weft.server.starts.firing import Start, Starts, State
from weft.server.starts.packages import CURRENT
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition
from weft.spec.orchestrator import DatabaseStart

_log: Final = logging.getLogger("weft.server")

#: The first part of the kind of records of documents that match the condition of a start.
HELD: Final = "held"

#: Milliseconds for which a server may watch, and seconds after which it says that it still does.
LEASE: Final = 10_000
RENEW: Final = 3.0

#: Seconds until a failed start is tried again.
_RETRY: Final = 2.0
_PAGE: Final = 500


async def watch_documents(starts: Starts) -> None:
    """Watch the collections of all starts until cancelled."""
    owner, watching = starts.clock.new_id(), dict[Start, asyncio.Task[None]]()
    async with asyncio.TaskGroup() as group:
        while True:
            found = await starts.of_type(DatabaseStart)
            if found is not None:
                for start in watching.keys() - found:
                    watching.pop(start).cancel()
                for start in found:
                    if start not in watching:
                        watching[start] = group.create_task(Watch(starts, start, owner).run())
            await asyncio.sleep(CURRENT)


class Watch:
    """One start on one server: waits until it may watch, and then watches."""

    def __init__(self, starts: Starts, start: Start, owner: str) -> None:
        self._starts = starts
        self._start = start
        self._owner = owner
        self._trigger = cast("DatabaseStart", start.trigger)
        self._collection = Collection(self._trigger.collection, self._trigger.database)
        self._scope = Scope.operator(start.app)
        self._records = starts.records
        self._kind = f"{HELD}:{start.workflow}"
        self._said = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                try:
                    condition = parse_condition(self._trigger.condition)
                    documents = self._documents()
                    if await self._acquire():
                        await self._prepare(documents, condition)
                        await self._watch(documents, condition)
                except WeftError as error:
                    await self._report(str(error))
                except Exception:  # noqa: BLE001 - one start must not stop the others.
                    _log.exception("the start %s failed", self._start.workflow)
                await asyncio.sleep(_RETRY)
        finally:
            with suppress(StoreError):
                await self._starts.update(self._start, self._release)

    def _documents(self) -> Documents:
        documents = self._starts.host.documents
        if documents is None:
            raise SetupError("this server has no documents")
        return documents

    async def _report(self, error: str) -> None:
        """Log an error, but not the same one again and again."""
        if error != self._said:
            self._said = error
            with suppress(StoreError):
                await self._starts.note(self._start, by="document", error=error)

    # -- one server at a time

    async def _acquire(self) -> bool:
        """Tell whether this server may watch now: no other does, and the start is not paused."""
        now = self._starts.clock.now()

        def take(state: State) -> None:
            is_free = cast("int", state.get("until") or 0) <= now
            if not state.get("paused") and (is_free or state.get("owner") == self._owner):
                state.update(owner=self._owner, until=now + LEASE)

        return self._is_mine(await self._starts.update(self._start, take))

    def _is_mine(self, state: Mapping[str, Json]) -> bool:
        return state.get("owner") == self._owner and not state.get("paused")

    async def _keep(self, position: str | None) -> bool:
        """Keep the position, and the right to watch; False if it is lost."""
        now = self._starts.clock.now()

        def renew(state: State) -> None:
            if self._is_mine(state):
                state.update(until=now + LEASE, position=position)

        return self._is_mine(await self._starts.update(self._start, renew))

    def _release(self, state: State) -> None:
        if state.get("owner") == self._owner:
            state.update(owner="", until=0)

    # -- the changes

    async def _prepare(self, documents: Documents, condition: Condition) -> None:
        """Begin with now where the start is new or was changed: what matches already is known."""
        declared = [self._collection.database, self._collection.name, self._trigger.condition]
        state = await self._starts.state(self._start)
        if state.get("declared") == declared and state.get("position") is not None:
            return
        position = await documents.position(self._scope, self._collection)
        await delete_all(self._records, self._start.app, self._kind)
        after: str | None = None
        while found := await documents.page(
            self._scope, self._collection, after=after, limit=_PAGE
        ):
            after = str(found[-1]["_id"])
            for document in found:
                if self._holds(condition, document):
                    await self._records.add_record(
                        self._start.app, self._kind, str(document["_id"]), {"position": ""}
                    )
            if not await self._keep(None):
                return

        def begin(state: State) -> None:
            if self._is_mine(state):
                state.update(declared=list[Json](declared), position=position)

        await self._starts.update(self._start, begin)

    async def _watch(self, documents: Documents, condition: Condition) -> None:
        state = await self._starts.state(self._start)
        position = cast("str | None", state.get("position"))
        if not self._is_mine(state) or position is None:
            return
        try:
            await self._follow(documents, condition, position)
        except (StoreError, UsageError) as error:
            if isinstance(error, StoreError) and error.retryable:
                raise
            # Raises if it is not the position that cannot be used.
            await documents.position(self._scope, self._collection)
            await self._keep(None)
            raise StoreError(f"changes may be lost, it goes on from now: {error}") from error

    async def _follow(self, documents: Documents, condition: Condition, position: str) -> None:
        loop = asyncio.get_running_loop()
        kept_at = loop.time()
        stream = documents.watch(self._scope, self._collection, after=position)
        async with aclosing(stream):
            waiting = asyncio.ensure_future(anext(stream))
            try:
                while True:
                    await asyncio.wait([waiting], timeout=max(kept_at + RENEW - loop.time(), 0))
                    is_edge = False
                    if waiting.done():
                        change = waiting.result()
                        is_edge = await self._take(condition, change)
                        position = change.position
                        waiting = asyncio.ensure_future(anext(stream))
                    # At once after an edge, which must not be seen a second time.
                    if is_edge or loop.time() - kept_at >= RENEW:
                        if not await self._keep(position):
                            return
                        kept_at = loop.time()
            finally:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    async def _take(self, condition: Condition, change: Change) -> bool:
        """Begin a run if a document starts to match; return whether that it matches has changed."""
        app, document = self._start.app, change.document
        known = await self._records.record(app, self._kind, change.key)
        if document is None or not self._holds(condition, document):
            return known is not None and await self._records.delete_record(
                app, self._kind, change.key
            )
        at = self._starts.clock.now()
        if known is None:
            value = {"position": change.position, "at": at}
            await self._records.add_record(app, self._kind, change.key, value)
        elif known.value["position"] == change.position:  # It was begun before a restart.
            at = cast("int", known.value["at"])
        else:
            return False
        run = self._start.run_id(at, change.key, change.position)
        await self._begin(run, at, change.key, document)
        return True

    async def _begin(self, run: str, at: int, key: str, document: dict[str, Json]) -> None:
        try:
            await self._starts.fire(
                self._start, run, at=at, by="document", input=document, document=key
            )
        except PortError as error:
            if error.retryable:
                raise
        except WeftError:  # It is in the log; other documents come.
            return

    def _holds(self, condition: Condition, document: dict[str, Json]) -> bool:
        try:
            return evaluate(condition, document)
        except ExpressionError as error:
            _log.debug("%s: %s: %s", self._start.workflow, document.get("_id"), error)
            return False
