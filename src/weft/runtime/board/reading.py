"""Reading the board as somebody: every query has the identity of the reader, bound to it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from weft.context.slices import BoardReader, Envelope, utc
from weft.engine.board.visibility import Audience, Identity
from weft.errors import UsageError
from weft.ports.board import ArtifactQuery, BoardStore, StoredArtifact
from weft.runtime.variables.json_values import own_copy
from weft.spec.board import (
    PUBLIC,
    AfterVisibility,
    LabelledVisibility,
    PrivateVisibility,
    TenantVisibility,
    Visibility,
)
from weft.spec.providers import MAX_LIMIT, MAX_OFFSET, FilterConfig, milliseconds


def query_of(
    filters: FilterConfig,
    *,
    app: str,
    board: str,
    reader: Identity | None,
    now: int,
    offset: int = 0,
) -> ArtifactQuery:
    """Return a filter as a query of a reader."""
    return ArtifactQuery(
        app=app,
        board=board,
        reader=reader,
        now=now,
        types=filters.types,
        tags=filters.tags.include,
        without_tags=filters.tags.exclude,
        all_tags=filters.tags.all_of,
        producers=filters.producers,
        correlation=filters.correlation_id,
        partition=filters.partition,
        since=None if filters.since is None else milliseconds(filters.since),
        until=None if filters.until is None else milliseconds(filters.until),
        text=filters.text,
        order=filters.order,
        limit=filters.limit or MAX_LIMIT,
        offset=offset,
    )


def reader_for(
    store: BoardStore,
    *,
    app: str,
    board: str,
    reader: Identity | None,
    now: int,
    served: set[str] | None = None,
) -> BoardReader:
    """Return the board as somebody sees it now; `served` takes note of what was given out.

    Without a reader it is the operator's view: everything of the tenant.
    """

    async def query(
        filters: FilterConfig, *, meta: bool, count: bool, offset: int
    ) -> tuple[list[Envelope], int]:
        if not isinstance(filters, FilterConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"artifacts are found by a FilterConfig, not by {type(filters).__name__}",
                hint='write FilterConfig(types={"Invoice"}, limit=10)',
            )
        _require_offset(offset)
        wanted = query_of(filters, app=app, board=board, reader=reader, now=now, offset=offset)
        page = await store.artifacts(wanted, count=count)
        found = [envelope(it) for it in page.items]
        if served is not None:
            served.update(it.id for it in found)
        if meta:
            # Who else was woken may follow from what this reader may not see.
            own = None if reader is None else reader.agent
            found = [await _with_consumers(store, app, board, it, own) for it in found]
        return found, page.total or 0

    return BoardReader(query)


def _require_offset(offset: int) -> None:
    if not isinstance(offset, int) or not 0 <= offset <= MAX_OFFSET:  # pyright: ignore[reportUnnecessaryIsInstance]
        told = f"{offset!r:.60} is not how many artifacts to leave out"
        raise UsageError(told, hint="give a number from 0 on")


async def _with_consumers(
    store: BoardStore, app: str, board: str, it: Envelope, agent: str | None
) -> Envelope:
    used = await store.consumed(app, board, agent=agent, artifact=it.id)
    agents = tuple(dict.fromkeys(found.agent for found in reversed(used)))
    return replace(it, consumed_by=agents)


def envelope(stored: StoredArtifact) -> Envelope:
    """Return an artifact as code gets it: a copy, so that the original cannot change."""
    it = stored.artifact
    return Envelope(
        id=it.id,
        type=it.type,
        payload=cast("dict[str, Any]", own_copy(it.payload)),
        produced_by=it.by,
        correlation_id=it.correlation,
        partition_key=it.partition or None,
        tags=it.tags,
        created_at=utc(it.created_at),
        version=stored.version,
        visibility=_policy(stored.audience, it.created_at),
    )


def _policy(seen: Audience, created_at: int) -> Visibility | None:
    """Return the policy of an artifact that was stored; None for one that cannot be read."""
    match seen.policy:
        case "public":
            policy = PUBLIC
        case "private":
            policy = PrivateVisibility(agents=seen.names)
        case "labelled":
            policy = LabelledVisibility(labels=seen.names)
        case "tenant":
            policy = TenantVisibility(tenant=seen.names[0])
        case _:
            return None
    delay = seen.visible_at - created_at
    return AfterVisibility(seconds=delay / 1000, then=policy) if delay > 0 else policy


async def hidden_ids(
    store: BoardStore,
    ids: Iterable[str],
    *,
    app: str,
    board: str,
    reader: Identity,
    now: int,
) -> set[str]:
    """Return those ids that the reader may not see; what does not exist is among them."""
    wanted = tuple(dict.fromkeys(ids))
    if not wanted:
        return set()
    # No limit: an id that was given twice is that of two artifacts.
    query = ArtifactQuery(app, board, reader, now, ids=wanted)
    page = await store.artifacts(query)
    return set(wanted) - {it.artifact.id for it in page.items}
