"""What a store in memory has of boards: artifacts in order of time, and which agents they woke."""

from bisect import insort
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, cast

from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, may_see
from weft.engine.events import ArtifactPublished, Event
from weft.engine.rows import ArtifactRow, ConsumedRow
from weft.ports.board import (
    ArtifactPage,
    ArtifactQuery,
    Consumption,
    Place,
    StoredArtifact,
    payload_holds,
)
from weft.ports.store import RunKey


class _Entry(NamedTuple):
    """An artifact; the first three fields are its place in a list, and no two have the same."""

    created_at: int
    run: str
    seq: int
    row: ArtifactRow
    data: ArtifactPublished

    @property
    def audience(self) -> Audience:
        """Who may see it."""
        return Audience(self.row.visible_at, self.row.visibility, self.row.visible_to)


class _Use(NamedTuple):
    """An agent was woken by an artifact; the fields are in the order in which uses are listed."""

    at: int
    run: str
    turn: int
    agent: str
    artifact: str
    app: str
    owner: str


class MemoryBoard:
    """The artifacts of all boards, and which agents were woken by them."""

    def __init__(self) -> None:
        #: By tenant and board, then also by correlation or id.
        self._boards: dict[tuple[str, ...], list[_Entry]] = {}
        self._correlations: dict[tuple[str, ...], list[_Entry]] = {}
        self._ids: dict[tuple[str, ...], list[_Entry]] = {}
        self._uses: dict[tuple[str, str], list[_Use]] = {}
        #: Tenant, run, turn, agent and artifact of each use: a turn uses an artifact once.
        self._used: set[tuple[str, str, int, str, str]] = set()

    def publish(self, row: ArtifactRow, events: Sequence[Event]) -> None:
        """Add an artifact; `events` are those of its run."""
        data = cast("ArtifactPublished", events[row.seq - 1].data)
        entry = _Entry(row.created_at, row.run, row.seq, row, data)
        board = row.app, row.board
        insort(self._boards.setdefault(board, []), entry)
        insort(self._correlations.setdefault((*board, row.correlation), []), entry)
        insort(self._ids.setdefault((*board, row.id), []), entry)

    def consume(self, row: ConsumedRow) -> None:
        """Add that an agent was woken by an artifact."""
        key = row.app, row.run, row.turn, row.agent, row.artifact
        if key not in self._used:
            self._used.add(key)
            use = _Use(row.at, row.run, row.turn, row.agent, row.artifact, row.app, row.owner)
            insort(self._uses.setdefault((row.app, row.board), []), use)

    def find(self, query: ArtifactQuery, *, count: bool) -> ArtifactPage:
        """Return artifacts in order, and how many there are in all if that is asked."""
        matching = (
            entry
            for entry in self._candidates(query)
            if _matches(entry, query) and _is_after(entry, query)
        )
        start = max(query.offset, 0)
        stop = None if query.limit is None else start + max(query.limit, 0)
        if not count:
            return ArtifactPage([_to_stored(entry) for entry in islice(matching, start, stop)])
        found = list(matching)
        return ArtifactPage([_to_stored(entry) for entry in found[start:stop]], len(found))

    def consumed(
        self,
        app: str,
        board: str,
        owners: tuple[str, ...] | None,
        agent: str | None,
        artifact: str | None,
        limit: int,
    ) -> list[Consumption]:
        """Return which agents were woken by which artifacts, newest first."""
        found = (
            Consumption(use.agent, use.artifact, use.run, use.turn, use.at)
            for use in reversed(self._uses.get((app, board), ()))
            if (owners is None or use.owner in owners)
            and agent in (None, use.agent)
            and artifact in (None, use.artifact)
        )
        return list(islice(found, max(limit, 0)))

    def forget(self, runs: Collection[RunKey]) -> None:
        """Remove all that runs have written."""
        for index in (self._boards, self._correlations, self._ids):
            _forget(index, runs)
        for key, uses in list(self._uses.items()):
            self._uses[key] = [use for use in uses if (use.app, use.run) not in runs]
        self._used = {use for use in self._used if use[:2] not in runs}

    def _candidates(self, query: ArtifactQuery) -> Iterator[_Entry]:
        """Yield artifacts that may be asked for, in order; as few as an index can tell."""
        board = query.app, query.board
        if query.ids is not None:
            lists = (self._ids.get((*board, id_), ()) for id_ in dict.fromkeys(query.ids))
            found = sorted(entry for entries in lists for entry in entries)
        elif query.correlation is not None:
            found = self._correlations.get((*board, query.correlation), [])
        else:
            found = self._boards.get(board, [])
        if query.order == "appeared_at":
            return iter(sorted(found, key=_appearance))
        return iter(found) if query.order == "created_at" else reversed(found)


def _matches(entry: _Entry, query: ArtifactQuery) -> bool:
    row, reader = entry.row, query.reader
    return (
        (query.owners is None or row.owner in query.owners)
        and (not query.types or row.type in query.types)
        and (not query.tags or any(tag in row.tags for tag in query.tags))
        and not any(tag in row.tags for tag in query.without_tags)
        and all(tag in row.tags for tag in query.all_tags)
        and (not query.producers or row.by in query.producers)
        and query.correlation in (None, row.correlation)
        and query.partition in (None, row.partition)
        and (query.since is None or query.since <= row.created_at)
        and (query.until is None or row.created_at < query.until)
        and (reader is None or may_see(entry.audience, reader, query.now))
        and (query.text is None or payload_holds(entry.data.payload, query.text))
    )


def _appearance(entry: _Entry) -> Place:
    return max(entry.created_at, entry.row.visible_at), entry.run, entry.seq


def _is_after(entry: _Entry, query: ArtifactQuery) -> bool:
    """Return whether an artifact comes after the place of a query, in its order."""
    place: Place = entry[:3]
    if query.order == "appeared_at":
        place = _appearance(entry)
        if place[0] > query.now:
            return False
    if query.after is None:
        return True
    return place < query.after if query.order == "-created_at" else place > query.after


def _to_stored(entry: _Entry) -> StoredArtifact:
    row, data = entry.row, entry.data
    artifact = Artifact(
        id=row.id,
        type=data.type,
        payload=data.payload,
        by=data.by,
        tags=data.tags,
        partition=data.partition,
        correlation=row.correlation,
        created_at=row.created_at,
    )
    return StoredArtifact(artifact, entry.audience, row.run, row.seq, data.version)


def _forget(index: dict[tuple[str, ...], list[_Entry]], runs: Collection[RunKey]) -> None:
    for key, entries in list(index.items()):
        index[key] = [entry for entry in entries if (entry.row.app, entry.run) not in runs]
        if not index[key]:
            del index[key]
