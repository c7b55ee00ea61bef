"""What a journal in memory keeps of boards."""

from bisect import insort
from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar, cast

from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, may_see
from weft.engine.events import ArtifactPublished
from weft.engine.rows import ArtifactRow, Batch, ConsumedRow, Letter, LetterTaken
from weft.ports.board import (
    ArtifactPage,
    ArtifactQuery,
    Consumption,
    StoredArtifact,
    payload_holds,
)
from weft.ports.dispatcher import RunKey

K = TypeVar("K")


class _Entry(NamedTuple):
    """An artifact; the first three are its place among those of a board, and no two share one."""

    created_at: int
    run: str
    seq: int
    row: ArtifactRow
    data: ArtifactPublished
    seen: Audience


class MemoryBoard:
    """Artifacts in order of time, by board, correlation and id; who used which; letters."""

    def __init__(self) -> None:
        self._boards: dict[tuple[str, str], list[_Entry]] = {}
        self._correlations: dict[tuple[str, str, str], list[_Entry]] = {}
        self._ids: dict[tuple[str, str, str], list[_Entry]] = {}
        self._consumed: dict[tuple[str, str, int, str, str], ConsumedRow] = {}
        #: Each with the run that wrote it, by tenant and its own name.
        self._letters: dict[tuple[str, str], tuple[str, Letter]] = {}

    def take(self, batch: Batch) -> None:
        """Keep what a batch says of a board."""
        for side in batch.sides:
            match side:
                case ArtifactRow():
                    self._publish(side, batch)
                case ConsumedRow():
                    key = side.app, side.run, side.turn, side.agent, side.artifact
                    self._consumed[key] = side
                case Letter():
                    self._letters.setdefault((side.app, side.data.letter), (batch.run, side))
                case LetterTaken():
                    self._letters.pop((side.app, side.id), None)
                case _:
                    pass

    def find(self, query: ArtifactQuery, *, count: bool) -> ArtifactPage:
        """Return artifacts as `BoardStore.artifacts` does."""
        fitting = (kept for kept in self._candidates(query) if _matches(kept, query))
        start = max(query.offset, 0)
        stop = None if query.limit is None else start + max(query.limit, 0)
        if not count:
            return ArtifactPage([_to_stored(kept) for kept in islice(fitting, start, stop)])
        found = list(fitting)
        return ArtifactPage([_to_stored(kept) for kept in found[start:stop]], len(found))

    def consumed(
        self, app: str, board: str, agent: str | None, artifact: str | None, limit: int
    ) -> list[Consumption]:
        """Return who was woken by what, newest first."""
        found = [
            row
            for row in self._consumed.values()
            if (row.app, row.board) == (app, board)
            and agent in (None, row.agent)
            and artifact in (None, row.artifact)
        ]
        found.sort(
            key=lambda row: (row.at, row.run, row.turn, row.agent, row.artifact), reverse=True
        )
        return [Consumption(*row[2:]) for row in found[: max(limit, 0)]]

    def letters(self, app: str, to: str, limit: int) -> list[Letter]:
        """Return the letters to a collection as they were written."""
        found = (
            letter for _, letter in self._letters.values() if (letter.app, letter.to) == (app, to)
        )
        return list(islice(found, max(limit, 0)))

    def unread(self) -> list[tuple[str, str]]:
        """Return where there are letters."""
        return sorted({(letter.app, letter.to) for _, letter in self._letters.values()})

    def forget(self, runs: Collection[RunKey]) -> None:
        """Remove all that runs have written."""
        self._boards = _without_runs(self._boards, runs)
        self._correlations = _without_runs(self._correlations, runs)
        self._ids = _without_runs(self._ids, runs)
        self._consumed = {
            key: row for key, row in self._consumed.items() if (row.app, row.run) not in runs
        }
        self._letters = {
            key: entry for key, entry in self._letters.items() if (key[0], entry[0]) not in runs
        }

    def clear(self) -> None:
        """Remove everything."""
        for index in (self._boards, self._correlations, self._ids, self._consumed, self._letters):
            index.clear()

    def _publish(self, row: ArtifactRow, batch: Batch) -> None:
        data = cast("ArtifactPublished", batch.events[row.seq - batch.expected - 1].data)
        seen = Audience(row.visible_at, row.policy, row.names)
        kept = _Entry(row.created_at, row.run, row.seq, row, data, seen)
        board = row.app, row.board
        insort(self._boards.setdefault(board, []), kept)
        insort(self._correlations.setdefault((*board, row.correlation), []), kept)
        insort(self._ids.setdefault((*board, row.id), []), kept)

    def _candidates(self, query: ArtifactQuery) -> Iterator[_Entry]:
        """Yield artifacts that may be meant, in order; as few as can be told at once."""
        board = query.app, query.board
        if query.ids is not None:
            named = (self._ids.get((*board, id_), ()) for id_ in dict.fromkeys(query.ids))
            found = sorted(kept for some in named for kept in some)
        elif query.correlation is not None:
            found = self._correlations.get((*board, query.correlation), [])
        else:
            found = self._boards.get(board, [])
        return iter(found) if query.order == "created_at" else reversed(found)


def _matches(kept: _Entry, query: ArtifactQuery) -> bool:
    row, reader = kept.row, query.reader
    return (
        (reader is None or may_see(kept.seen, reader, query.now))
        and (not query.types or row.type in query.types)
        and (not query.tags or any(tag in row.tags for tag in query.tags))
        and not any(tag in row.tags for tag in query.without_tags)
        and all(tag in row.tags for tag in query.all_tags)
        and (not query.producers or row.by in query.producers)
        and query.correlation in (None, row.correlation)
        and query.partition in (None, row.partition)
        and (query.since is None or query.since <= row.created_at)
        and (query.until is None or row.created_at < query.until)
        and (query.text is None or payload_holds(kept.data.payload, query.text))
    )


def _to_stored(kept: _Entry) -> StoredArtifact:
    row, data = kept.row, kept.data
    artifact = Artifact(
        id=row.id,
        type=row.type,
        payload=data.payload,
        by=row.by,
        tags=data.tags,
        partition=row.partition,
        correlation=row.correlation,
        created_at=row.created_at,
    )
    return StoredArtifact(artifact, kept.seen, row.run, row.seq, data.version)


def _without_runs(index: dict[K, list[_Entry]], runs: Collection[RunKey]) -> dict[K, list[_Entry]]:
    left = {
        key: [entry for entry in kept if (entry.row.app, entry.run) not in runs]
        for key, kept in index.items()
    }
    return {key: kept for key, kept in left.items() if kept}
