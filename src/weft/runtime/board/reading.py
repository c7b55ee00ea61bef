"""Reads a board with the identity of a reader, which every query carries."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from weft.context.slices import BoardReader, Envelope, utc
from weft.engine.board.state import JsonDraft, board_owner
from weft.engine.board.visibility import Audience, Identity, read_policy
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.errors import AccessDenied, UsageError
from weft.findings import Json
from weft.ports.board import ArtifactQuery, Consumption, StoredArtifact
from weft.ports.scope import Scope
from weft.ports.store import BoardIndex
from weft.runtime.variables.json_values import own_copy
from weft.runtime.workflow import Workflow
from weft.spec.providers import MAX_LIMIT, MAX_OFFSET, FilterConfig, milliseconds


def query_of(
    filters: FilterConfig,
    *,
    app: str,
    board: str,
    reader: Identity | None,
    owners: tuple[str, ...] | None,
    now: int,
    offset: int = 0,
) -> ArtifactQuery:
    """Return the query of a reader for a filter."""
    return ArtifactQuery(
        app=app,
        board=board,
        reader=reader,
        now=now,
        owners=owners,
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
    store: BoardIndex,
    *,
    app: str,
    board: str,
    reader: Identity | None,
    owners: tuple[str, ...] | None,
    now: int,
    served: set[str] | None = None,
) -> BoardReader:
    """Return the board as a reader sees it now; `served` collects the ids of returned artifacts.

    Without a reader, it is the view of a person: all artifacts of the owners. Without owners, it is
    the operator's view: all artifacts of the tenant.
    """

    async def query(
        filters: FilterConfig, *, meta: bool, count: bool, offset: int
    ) -> tuple[list[Envelope], int]:
        if not isinstance(filters, FilterConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"expected a FilterConfig, got {type(filters).__name__}",
                hint='write FilterConfig(types={"Invoice"}, limit=10)',
            )
        _require_offset(offset)
        wanted = query_of(
            filters, app=app, board=board, reader=reader, owners=owners, now=now, offset=offset
        )
        page = await store.artifacts(wanted, count=count)
        found = [envelope(item) for item in page.items]
        if served is not None:
            served.update(item.artifact.id for item in page.items)
        if meta:
            # Other consumers could reveal artifacts that this reader may not see.
            own = None if reader is None else reader.agent
            used = partial(store.consumed, app, board, owners=owners, agent=own)
            found = [await _with_consumers(used, artifact) for artifact in found]
        return found, page.total or 0

    return BoardReader(query)


def _require_offset(offset: int) -> None:
    if not isinstance(offset, int) or not 0 <= offset <= MAX_OFFSET:  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"invalid offset {offset!r:.60}"
        raise UsageError(message, hint="use a number from 0 on")


async def _with_consumers(
    consumed: Callable[..., Awaitable[list[Consumption]]], envelope: Envelope
) -> Envelope:
    used = await consumed(artifact=envelope.id)
    agents = tuple(dict.fromkeys(consumption.agent for consumption in reversed(used)))
    return replace(envelope, consumed_by=agents)


def envelope(stored: StoredArtifact) -> Envelope:
    """Return a stored artifact as an Envelope."""
    artifact = stored.artifact
    policy = _policy(stored.audience, artifact.created_at)
    read = read_envelope(artifact._replace(visibility=policy).as_json(), artifact.created_at)
    return replace(read, version=stored.version)


def read_envelope(draft: JsonDraft, now: int) -> Envelope:
    """Return an artifact in JSON as an Envelope with a copy of its payload.

    A draft that is not published yet has no id and no producer, and is created now.
    """
    fields: dict[str, Any] = draft
    return Envelope(
        id=fields.get("id") or "",
        type=fields["type"],
        payload=cast("dict[str, Any]", own_copy(fields["payload"])),
        produced_by=fields.get("produced_by") or "",
        correlation_id=fields.get("correlation_id") or "",
        partition_key=fields.get("partition_key") or None,
        tags=tuple(fields.get("tags") or ()),
        created_at=utc(fields.get("created_at") or now),
        visibility=read_policy(fields.get("visibility")),
    )


def _policy(seen: Audience, created_at: int) -> Json:
    """Return the visibility policy of a stored artifact as JSON."""
    names = {"private": "agents", "labelled": "labels"}.get(seen.policy)
    policy: dict[str, Json] = {"kind": seen.policy}
    if names is not None:
        policy[names] = list(seen.names)
    elif seen.policy == "tenant":
        policy["tenant"] = seen.names[0]
    delay = seen.visible_at - created_at
    return {"kind": "after", "seconds": delay / 1000, "then": policy} if delay > 0 else policy


# -- whose artifacts: those of the user, or of all users of the tenant if the board is shared


def owner_of(workflow: Workflow, scope: Scope) -> str:
    """Return who owns what is published in a scope, as `board_owner` writes it."""
    board = workflow.spec.board
    return board_owner(scope.user or "", shared=board is not None and board.shared)


def owners_of(scope: Scope) -> tuple[str, ...] | None:
    """Return whose artifacts a scope may find: shared ones and its own; None for all of them."""
    return None if scope.user is None else ("", board_owner(scope.user, shared=False))


def owners_of_run(state: State) -> tuple[str, ...]:
    """Return whose artifacts the code of a run may find; a step of a flow reads for its user."""
    if state.board is not None:
        return (state.board.owner,)
    return ("", board_owner(state.user, shared=False))


def require_board_access(row: RunRow | State, workflow: Workflow, scope: Scope) -> None:
    """Raise AccessDenied if a run is neither the scope's own nor one of a shared board."""
    shared = workflow.spec.board is not None and workflow.spec.board.shared
    if not scope.covers(row.app, row.user) and not (shared and row.app == scope.app):
        raise AccessDenied(f"there is no run {row.run}")
