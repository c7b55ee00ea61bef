"""What providers get and give: a request with a way to read, and a slice of the board."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from weft.context.similarity import Similarity
from weft.spec.board import Visibility
from weft.spec.providers import MAX_ITEMS, MAX_LIMIT, FilterConfig

#: One artifact, as an engine gets it: id, type, payload, produced_by, tags, correlation_id, ...
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Envelope:
    """An artifact with everything that may be known of it. Its payload is a copy."""

    id: str
    type: str
    payload: dict[str, Any]
    produced_by: str
    correlation_id: str
    partition_key: str | None
    tags: tuple[str, ...]
    created_at: datetime
    version: int = 1
    #: The agents it has woken, where that was asked for.
    consumed_by: tuple[str, ...] = ()
    #: Who may see it; None where that is not known.
    visibility: Visibility | None = None

    def item(self) -> Item:
        """Return it as an entry of a context."""
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
        """Return them after the first of them, and how many there are if that is counted."""
        ...


class BoardReader:
    """The board as one agent sees it. It can only be read."""

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
        """Return the visible artifacts that a filter lets through, and how many there are in all.

        `embed_meta` says of each which agents it has woken; `offset` leaves out so many of the
        first.
        """
        wanted = filters or FilterConfig()
        return await self.__query(wanted, meta=embed_meta, count=True, offset=offset)

    async def find_all(self, filters: FilterConfig) -> AsyncIterator[Envelope]:
        """Yield all visible artifacts that a filter lets through, page by page."""
        page = filters.model_copy(update={"limit": MAX_LIMIT})
        for offset in range(0, MAX_ITEMS, MAX_LIMIT):
            found, _ = await self.__query(page, meta=False, count=False, offset=offset)
            for envelope in found:
                yield envelope
            if len(found) < MAX_LIMIT:
                return

    async def find(self, filters: FilterConfig) -> list[Envelope]:
        """Return the visible artifacts that a filter lets through, without counting the others."""
        return (await self.__query(filters, meta=False, count=False, offset=0))[0]


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """Who is to be given context."""

    name: str
    description: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a provider is asked."""

    agent: AgentInfo
    ctx: Any
    inputs: Any
    board: BoardReader
    correlation_id: str | None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: What compares the meanings of texts; None where there are no embeddings.
    similarity: Similarity | None = None


@dataclass(frozen=True, slots=True)
class ContextSlice:
    """What a provider gives: entries for the engine, and what there is to say of them."""

    items: list[Item]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@runtime_checkable
class ContextProvider(Protocol):
    """Gives an agent its context."""

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Pick what the agent is shown."""
        ...


def utc(milliseconds: int) -> datetime:
    """Return a time of a journal."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
