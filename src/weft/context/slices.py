"""Providers select artifacts for an agent: the request to them, and the slice they return.

A provider gets data and a reader bound to the agent, not the board itself: it cannot see, widen or
forge the identity it reads with.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, runtime_checkable

from weft.context.providers import name_of, redact, redact_inside, summarise, unique
from weft.context.similarity import GET_EMBEDDINGS, NO_EMBEDDINGS, Similarity, text_of
from weft.context.user_code import call_user_code
from weft.engine.variables.triggers import dig
from weft.errors import RetrievalError
from weft.findings import Json
from weft.spec.board import Visibility
from weft.spec.providers import (
    CANDIDATES,
    DEFAULT_LIMIT,
    MAX_ITEMS,
    MAX_LIMIT,
    CompositeProvider,
    DefaultCorrelationProvider,
    FilterConfig,
    FilteredContextProvider,
    RecentProvider,
    RedactingProvider,
    SelectingProvider,
    SemanticContextProvider,
    StateDelegatingProvider,
    SummarisingProvider,
    TimeWindowProvider,
)

#: One artifact, as an engine gets it: id, type, payload, produced_by, tags, correlation_id, ...
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Envelope:
    """An artifact with its metadata. Its payload is a copy."""

    id: str
    type: str
    payload: dict[str, Any]
    produced_by: str
    correlation_id: str
    partition_key: str | None
    tags: tuple[str, ...]
    created_at: datetime
    version: int = 1
    #: The agents it woke, if requested.
    consumed_by: tuple[str, ...] = ()
    #: Who may see it; None if unknown.
    visibility: Visibility | None = None

    def item(self) -> Item:
        """Return the artifact as an item of a context."""
        return {
            "id": self.id,
            "type": self.type,
            "payload": self.payload,
            "produced_by": self.produced_by,
            "tags": list(self.tags),
            "correlation_id": self.correlation_id,
            "created_at": self.created_at.isoformat(),
        }


class Query(Protocol):
    """Finds the artifacts that the reader may see."""

    def __call__(
        self, filters: FilterConfig, *, meta: bool, count: bool, offset: int
    ) -> Awaitable[tuple[list[Envelope], int]]:
        """Return artifacts from an offset on, and the total number if it is counted."""
        ...


class BoardReader:
    """Read access to the board as one agent sees it."""

    __slots__ = ("__query",)

    def __init__(self, query: Query) -> None:
        self.__query = query

    async def query_artifacts(
        self,
        filters: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        offset: int = 0,
    ) -> tuple[list[Envelope], int]:
        """Return the visible artifacts that match a filter, and their total number.

        `embed_meta` adds the agents that each artifact woke; `offset` skips the first artifacts.
        """
        wanted = filters or FilterConfig()
        return await self.__query(wanted, meta=embed_meta, count=True, offset=offset)

    async def find_all(self, filters: FilterConfig) -> AsyncIterator[Envelope]:
        """Yield all visible artifacts that match a filter, reading page by page."""
        page = filters.model_copy(update={"limit": MAX_LIMIT})
        for offset in range(0, MAX_ITEMS, MAX_LIMIT):
            found, _ = await self.__query(page, meta=False, count=False, offset=offset)
            for envelope in found:
                yield envelope
            if len(found) < MAX_LIMIT:
                return

    async def find(self, filters: FilterConfig) -> list[Envelope]:
        """Return the visible artifacts that match a filter, without a total."""
        return (await self.__query(filters, meta=False, count=False, offset=0))[0]


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """The agent that the context is for."""

    name: str
    description: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextSlice:
    """The result of a provider: items for the engine, and metadata."""

    items: list[Item]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


_EVERYTHING: Final = FilterConfig()


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The request to a provider."""

    agent: AgentInfo
    ctx: Any
    inputs: Any
    board: BoardReader
    correlation_id: str | None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: Compares texts by meaning; None without embeddings.
    similarity: Similarity | None = None

    async def select(self, provider: SelectingProvider, /) -> ContextSlice:  # noqa: PLR0911 - one per kind
        """Return the artifacts that a declared provider selects."""
        match provider:
            case DefaultCorrelationProvider(limit=limit):
                wanted = _EVERYTHING.model_copy(  # Known to be valid, so not validated again.
                    update={"correlation_id": self.correlation_id, "limit": limit}
                )
                if limit is not None:
                    return await self._found(wanted)
                every = self.board.find_all(wanted)
                return ContextSlice([artifact.item() async for artifact in every])
            case FilteredContextProvider():
                return await self._filtered(provider)
            case RecentProvider(limit=limit):
                return await self._found(FilterConfig(limit=limit))
            case TimeWindowProvider(seconds=seconds, limit=limit):
                since: datetime = self.ctx.now - timedelta(seconds=seconds)
                return await self._found(FilterConfig(since=since, limit=limit))
            case SemanticContextProvider():
                return await self._nearest(provider)
            case StateDelegatingProvider(key=key):
                return self._from_state(key)
            case CompositeProvider():
                return await self._composed(provider)
            case RedactingProvider():
                return await self._redacted(provider)
            case SummarisingProvider(templates=templates):
                given = await self._ask(provider.provider)
                items = [
                    {**item, "payload": {"summary": summarise(item, templates)}}
                    for item in given.items
                ]
                return ContextSlice(items, given.metadata)
            case _:
                return ContextSlice([])

    async def _ask(self, provider: Any) -> ContextSlice:  # noqa: ANN401 - of the spec or in code
        """Call a provider; a plain function is called in a thread."""
        given = await call_user_code(provider, self)
        if not isinstance(given, ContextSlice):
            raise TypeError(
                f"{name_of(provider)} returned {type(given).__name__}, not a ContextSlice"
            )
        return given

    async def _composed(self, composite: CompositeProvider) -> ContextSlice:
        if composite.parallel:
            asked = (self._ask(provider) for provider in composite.providers)
            results = await asyncio.gather(*asked, return_exceptions=True)
            slices = [_slice_or_raise(result) for result in results]
        else:
            slices = [await self._ask(provider) for provider in composite.providers]
        items = unique(item for slice_ in slices for item in slice_.items)
        metadata: dict[str, Any] = {"providers": [slice_.metadata for slice_ in slices]}
        redacted = {key for slice_ in slices for key in slice_.metadata.get("redacted", ())}
        if redacted:
            metadata["redacted"] = sorted(redacted)
        return ContextSlice(items[: composite.limit or MAX_ITEMS], metadata)

    async def _redacted(self, redacting: RedactingProvider) -> ContextSlice:
        """Return what another provider returns, with every payload redacted at any depth."""
        inside = redact_inside(redacting)
        if inside is not None:
            return await self._ask(inside)
        given, changed = await self._ask(redacting.provider), set[str]()
        items = [
            {**item, "payload": redact(item.get("payload"), redacting, changed)}
            for item in given.items
        ]
        redacted = sorted({*given.metadata.get("redacted", ()), *changed})
        return ContextSlice(items, {**given.metadata, "redacted": redacted})

    async def _found(self, filters: FilterConfig) -> ContextSlice:
        return ContextSlice([artifact.item() for artifact in await self.board.find(filters)])

    async def _filtered(self, provider: FilteredContextProvider) -> ContextSlice:
        """Return the artifacts that match a filter, and the requested entries of the state."""
        filters, state = provider.filters, self.ctx.state
        limits = [limit for limit in (provider.limit, filters.limit) if limit is not None]
        most = min(limits, default=DEFAULT_LIMIT)
        found = await self._found(filters.model_copy(update={"limit": most}))
        added = [
            {"type": "state", "key": key, "payload": state[key]}
            for key in provider.include_state_keys
            if key in state
        ]
        return ContextSlice([*found.items, *added])

    def _from_state(self, key: str) -> ContextSlice:
        """Return the items that a component has stored; raises if there are none."""
        state: Mapping[str, Any] = self.ctx.state
        if key not in state:
            raise LookupError(f"no component has set ctx.state[{key!r}]")
        snapshot = state[key]
        if isinstance(snapshot, ContextSlice):
            return snapshot
        if not isinstance(snapshot, list):
            raise TypeError(f"ctx.state[{key!r}] is not a list of items")
        return ContextSlice(list(snapshot))  # pyright: ignore[reportUnknownArgumentType]

    async def _nearest(self, provider: SemanticContextProvider) -> ContextSlice:
        """Return the artifacts most similar to a query, with their scores in the metadata.

        The inputs are left out, because the agent has them already.
        """
        if self.similarity is None:
            raise RetrievalError(NO_EMBEDDINGS, hint=GET_EMBEDDINGS)
        query = self._query(provider)
        most = provider.filters.limit or CANDIDATES
        found = await self.board.find(provider.filters.model_copy(update={"limit": most}))
        own = {artifact.id for artifact in self.inputs.artifacts}
        others = [artifact for artifact in found if artifact.id not in own]
        scores = await self.similarity.of(query, [text_of(other.payload) for other in others])
        ranked = sorted(zip(scores, others, strict=True), key=lambda pair: -pair[0])
        near = [pair for pair in ranked if pair[0] >= provider.threshold][: provider.limit]
        metadata: dict[str, Any] = {
            "compared": len(others),
            "similarity": {artifact.id: score for score, artifact in near},
        }
        return ContextSlice([artifact.item() for _, artifact in near], metadata)

    def _query(self, provider: SemanticContextProvider) -> str:
        """Return the query; by default the texts of the inputs, or of one field of them."""
        if provider.query is not None:
            return provider.query
        payloads: list[Json] = [artifact.payload for artifact in self.inputs.artifacts]
        if provider.query_field is not None:
            path = tuple(provider.query_field.split("."))
            payloads = [dig(payload, path) for payload in payloads]
        query = text_of(payloads)
        if not query:
            field = provider.query_field
            named = f'no field "{field}" with a text' if field else "no text"
            raise LookupError(f"what has woken the agent has {named} to compare with")
        return query


@runtime_checkable
class ContextProvider(Protocol):
    """Selects the context of an agent."""

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Return what the agent sees."""
        ...


def utc(milliseconds: int) -> datetime:
    """Return a time of a journal."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _slice_or_raise(result: ContextSlice | BaseException) -> ContextSlice:
    if isinstance(result, BaseException):
        raise result
    return result
