"""Journals that are wrong in one respect each: what the suite must notice."""

from weft.adapters.memory import MemoryJournal
from weft.engine.events import MessageShown, ToolReturned
from weft.engine.rows import (
    ArtifactRow,
    ConsumedRow,
    Letter,
    LetterTaken,
    RequestClosed,
    RequestRow,
)
from weft.errors import StoreConflict, StoreError
from weft.ports.board import payload_holds
from weft.ports.journal import Pruned
from weft.ports.scope import Scope


def everyone(scope: Scope) -> Scope:
    """Forget the user."""
    return Scope(scope.app)


class ReadsBackwards(MemoryJournal):
    async def read(self, scope, run, *, after=0, limit=None):
        return (await super().read(scope, run, after=after, limit=limit))[::-1]


class WritesHalfOfAConflict(MemoryJournal):
    async def append(self, batch):
        try:
            await super().append(batch)
        except StoreConflict:
            self._events.setdefault((batch.row.app, batch.run), []).extend(batch.events)
            raise


class LetsEveryoneWin(MemoryJournal):
    async def append(self, batch):
        row = self._rows.get((batch.row.app, batch.run))
        await super().append(batch._replace(expected=row.seq if row else 0))


class SpoilsNeighbours(MemoryJournal):
    spoilt = 0

    async def append(self, batch):
        if self.spoilt:
            self.spoilt -= 1
            raise StoreConflict("somebody else's conflict")
        try:
            await super().append(batch)
        except StoreConflict:
            self.spoilt = 1
            raise


class NeverCloses(MemoryJournal):
    async def append(self, batch):
        await super().append(
            batch._replace(
                sides=tuple(it for it in batch.sides if not isinstance(it, RequestClosed))
            )
        )


class CutsLargeData(MemoryJournal):
    async def read(self, scope, run, *, after=0, limit=None):
        events = await super().read(scope, run, after=after, limit=limit)
        return [
            it._replace(data=ToolReturned("c", it.data.value[: 32 * 1024]))
            if isinstance(it.data, ToolReturned) and isinstance(it.data.value, str)
            else it
            for it in events
        ]


class StripsText(MemoryJournal):
    async def read(self, scope, run, *, after=0, limit=None):
        events = await super().read(scope, run, after=after, limit=limit)
        return [
            it._replace(data=MessageShown(it.data.text.strip()))
            if isinstance(it.data, MessageShown)
            else it
            for it in events
        ]


class ForgetsTheBatch(MemoryJournal):
    async def run(self, scope, run):
        row = await super().run(scope, run)
        return row and row._replace(batch="")


class TakesTheSameBatchTwice(MemoryJournal):
    async def append(self, batch):
        row = await self.run(Scope(batch.row.app), batch.run)
        if row is None or row.batch != batch.id:
            await super().append(batch)


class ForgetsOldEvents(MemoryJournal):
    async def read(self, scope, run, *, after=0, limit=None):
        return (await super().read(scope, run, after=after, limit=limit))[-5000:]


class StartsTooEarly(MemoryJournal):
    async def read(self, scope, run, *, after=0, limit=None):
        return await super().read(scope, run, after=max(after - 1, 0), limit=limit)


class KeepsTheFirstRow(MemoryJournal):
    async def append(self, batch):
        key = batch.row.app, batch.run
        first = self._rows.get(key, batch.row)
        await super().append(batch)
        self._rows[key] = first._replace(seq=batch.row.seq)


class SortsByName(MemoryJournal):
    async def runs(self, scope, **options):
        return sorted(await super().runs(scope, **options), key=lambda it: it.run, reverse=True)


class IgnoresTheStatus(MemoryJournal):
    async def runs(self, scope, *, status=None, **options):
        return await super().runs(scope, **options)


class ListsQuestionsAsTheyCome(MemoryJournal):
    async def requests(self, scope, *, run=None):
        rows = [it for it in self._requests.values() if scope.covers(it.app, it.user)]
        return [it for it in rows if run in (None, it.run)]


class WakesWaitingRuns(MemoryJournal):
    async def unfinished(self):
        return [it for it in self._rows.values() if it.status != "ended"]


class ExpiresTooLate(MemoryJournal):
    async def due(self, now, **page):
        return await super().due(now - 1, **page)


class ForgetsTimers(MemoryJournal):
    async def due(self, now, **page):
        return [it for it in await super().due(now, **page) if it.kind == "request"]


class IgnoresThePage(MemoryJournal):
    async def due(self, now, **page):
        return await super().due(now)


class ForgetsWhoLives(MemoryJournal):
    async def beat(self, owner, at):
        self._beats.setdefault(owner, at)


class LetsEveryoneClaim(MemoryJournal):
    async def claim(self, app, run, *, owner, before):
        row = await self.run(Scope(app), run)
        return await super().claim(app, run, owner=owner, before=row.owner if row else before)


class FollowsNothing(MemoryJournal):
    async def follow(self, scope, run, *, after=0):
        for event in await self.read(scope, run, after=after):
            yield event


class LetsAnyoneFollow(MemoryJournal):
    async def follow(self, scope, run, *, after=0):
        async for event in super().follow(everyone(scope), run, after=after):
            yield event


class MixesTenants(MemoryJournal):
    async def package(self, app, digest):
        return next((it for key, it in self._packages.items() if key[1] == digest), None)


class ShowsOtherUsers(MemoryJournal):
    async def run(self, scope, run):
        return await super().run(everyone(scope), run)


class ListsOtherUsers(MemoryJournal):
    async def runs(self, scope, **options):
        return await super().runs(everyone(scope), **options)


class ReadsOtherUsers(MemoryJournal):
    async def read(self, scope, run, *, after=0, limit=None):
        return await super().read(everyone(scope), run, after=after, limit=limit)


class AsksOtherUsers(MemoryJournal):
    async def requests(self, scope, *, run=None):
        return await super().requests(everyone(scope), run=run)


class AsksNobodyElse(MemoryJournal):
    async def requests(self, scope, *, run=None):
        found = await super().requests(scope, run=run)
        return [it for it in found if scope.covers(it.app, it.user)]


class AsksTheUserInstead(MemoryJournal):
    async def append(self, batch):
        sides = tuple(
            it._replace(addressee="") if isinstance(it, RequestRow) else it for it in batch.sides
        )
        await super().append(batch._replace(sides=sides))


class KeepsForEveryWorkflow(MemoryJournal):
    async def kept(self, scope, workflow):
        return await super().kept(scope, "Support")


class KeepsTheFirstValue(MemoryJournal):
    async def append(self, batch):
        there = {key: dict(it) for key, it in self._kept.items()}
        await super().append(batch)
        for key, values in there.items():
            self._kept[key] |= values


class ForgetsValuesWithTheirRun(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        self._kept.clear()
        return await super().prune(scope, ended_before=ended_before, dry_run=dry_run)


class CompletesForEverybody(MemoryJournal):
    async def completed(self, scope, workflows):
        return await super().completed(everyone(scope), workflows)


class CountsWhateverEnded(MemoryJournal):
    async def append(self, batch):
        ended = batch.row.status == "ended"
        await super().append(
            batch._replace(row=batch.row._replace(outcome="completed")) if ended else batch
        )


class CountsForks(MemoryJournal):
    async def append(self, batch):
        await super().append(batch._replace(row=batch.row._replace(parent="")))


class RemembersWhatIsGone(MemoryJournal):
    def _forget_completed(self, row):
        pass


class KeepsOnePackage(MemoryJournal):
    async def package(self, app, digest):
        return next(iter(self._packages.values()), None)


class PrunesTooMuch(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        return await super().prune(scope, ended_before=ended_before + 1, dry_run=dry_run)


class PrunesForReal(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        return await super().prune(scope, ended_before=ended_before, dry_run=False)


class GuessesWhatItWouldPrune(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        told = await super().prune(scope, ended_before=ended_before, dry_run=dry_run)
        return Pruned(told.runs, told.events, told.bytes + 1) if dry_run else told


class PrunesOtherUsers(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        return await super().prune(everyone(scope), ended_before=ended_before, dry_run=dry_run)


class NeverForgetsPackages(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        kept = dict(self._packages)
        done = await super().prune(scope, ended_before=ended_before, dry_run=dry_run)
        self._packages = kept
        return done


class CutsOffWriters(MemoryJournal):
    async def append(self, batch):
        raise StoreError("too late")


class NeverQuiteCloses(MemoryJournal):
    async def close(self):
        return


class AsksForArtifactsOtherwise(MemoryJournal):
    """What it is asked for is not what it looks for."""

    def other(self, query):
        raise NotImplementedError

    async def artifacts(self, query, *, count=False):
        return await super().artifacts(self.other(query), count=count)


class FindsOtherThanItCounts(MemoryJournal):
    """Some artifacts that it has found and counted are left out, or not."""

    def left(self, items, query):
        raise NotImplementedError

    async def artifacts(self, query, *, count=False):
        page = await super().artifacts(query, count=count)
        return page._replace(items=self.left(page.items, query))


class WritesOtherSides(MemoryJournal):
    """Some of what a batch says of a board is not written, or is written otherwise."""

    def other(self, side):
        raise NotImplementedError

    async def append(self, batch):
        sides = (self.other(it) for it in batch.sides)
        await super().append(batch._replace(sides=tuple(it for it in sides if it is not None)))


class ForgetsTheVersion(FindsOtherThanItCounts):
    def left(self, items, query):
        return [it._replace(version=1) for it in items]


class CutsNames(FindsOtherThanItCounts):
    def left(self, items, query):
        return [
            it._replace(
                audience=it.audience._replace(
                    names=tuple(name.partition("\0")[0] for name in it.audience.names)
                )
            )
            for it in items
        ]


class WantsEveryTag(AsksForArtifactsOtherwise):
    def other(self, query):
        return query._replace(tags=(), all_tags=(*query.tags, *query.all_tags))


class IgnoresUnwantedTags(AsksForArtifactsOtherwise):
    def other(self, query):
        return query._replace(without_tags=())


class TakesTheEndAsWell(AsksForArtifactsOtherwise):
    def other(self, query):
        return query._replace(until=query.until and query.until + 1)


class MixesPartitions(AsksForArtifactsOtherwise):
    def other(self, query):
        return query._replace(partition=query.partition or None)


class NeverFindsByPlace(AsksForArtifactsOtherwise):
    def other(self, query):
        ids = query.ids and tuple(it for it in query.ids if "." not in it)
        return query._replace(ids=ids)


class MindsTheCase(FindsOtherThanItCounts):
    def left(self, items, query):
        return [it for it in items if query.text in (None, "") or query.text in repr(it)]


class KnowsWildcards(MemoryJournal):
    async def artifacts(self, query, *, count=False):
        page = await super().artifacts(query._replace(text=None), count=count)
        parts = (query.text or "").split("%")
        items = [
            it for it in page.items if all(payload_holds(it.artifact.payload, x) for x in parts)
        ]
        return page._replace(items=items, total=len(items) if count else None)


class OldestFirst(AsksForArtifactsOtherwise):
    def other(self, query):
        return query._replace(order="created_at")


class SortsByTimeOnly(FindsOtherThanItCounts):
    def left(self, items, query):
        down = query.order == "-created_at"
        return sorted(items, key=lambda it: (it.artifact.created_at, it.seq), reverse=down)


class CountsThePage(MemoryJournal):
    async def artifacts(self, query, *, count=False):
        page = await super().artifacts(query, count=count)
        return page._replace(total=len(page.items) if count else None)


class ShowsHiddenArtifacts(AsksForArtifactsOtherwise):
    def other(self, query):
        return query._replace(reader=None)


class ShowsTooEarly(AsksForArtifactsOtherwise):
    def other(self, query):
        return query._replace(now=query.now + 1)


class TrustsUnknownPolicies(WritesOtherSides):
    def other(self, side):
        if isinstance(side, ArtifactRow) and side.policy not in ("private", "labelled", "tenant"):
            return side._replace(policy="public")
        return side


class CountsHiddenArtifacts(MemoryJournal):
    async def artifacts(self, query, *, count=False):
        page = await super().artifacts(query, count=count)
        everything = await super().artifacts(query._replace(reader=None), count=count)
        return page._replace(total=everything.total)


class LimitsBeforeItHides(MemoryJournal):
    async def artifacts(self, query, *, count=False):
        page = await super().artifacts(query, count=count)
        some = await super().artifacts(query._replace(reader=None))
        places = {(it.run, it.seq) for it in some.items}
        items = [it for it in page.items if (it.run, it.seq) in places]
        return page._replace(items=items)


class MixesBoards(WritesOtherSides):
    def other(self, side):
        known = isinstance(side, ArtifactRow | ConsumedRow)
        return side._replace(board=side.board.title()) if known else side


class MixesLettersOfTenants(MemoryJournal):
    async def letters(self, app, to, *, limit=100):
        return [it for there, _ in await self.unread() for it in self._board.letters(there, to, 9)]


class ListsConsumptionAsItComes(MemoryJournal):
    async def consumed(self, app, board, **options):
        return (await super().consumed(app, board, **options))[::-1]


class IgnoresTheConsumed(MemoryJournal):
    async def consumed(self, app, board, *, artifact=None, **options):
        return await super().consumed(app, board, **options)


class NeverTakesLetters(WritesOtherSides):
    def other(self, side):
        return None if isinstance(side, LetterTaken) else side


class ReadsLettersBackwards(MemoryJournal):
    async def letters(self, app, to, *, limit=100):
        return (await super().letters(app, to, limit=limit))[::-1]


class KeepsNoUser(WritesOtherSides):
    def other(self, side):
        return side._replace(user="ann") if isinstance(side, Letter) else side


class PublishesInAConflict(MemoryJournal):
    async def append(self, batch):
        try:
            await super().append(batch)
        except StoreConflict:
            self._board.take(batch)
            raise


class KeepsTheBoard(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        board = self._board
        self._board = type(board)()
        done = await super().prune(scope, ended_before=ended_before, dry_run=dry_run)
        self._board = board
        return done


class ClearsTheBoard(MemoryJournal):
    async def prune(self, scope, *, ended_before, dry_run):
        done = await super().prune(scope, ended_before=ended_before, dry_run=dry_run)
        if not dry_run:
            self._board.clear()
        return done
