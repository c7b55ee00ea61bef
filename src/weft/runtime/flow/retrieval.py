"""Searching collections for a run: what was found once is not searched for again."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from weft.context.providers import PROVIDER_SECONDS
from weft.errors import RetrievalError, ToolError
from weft.findings import Json
from weft.ports.retriever import (
    MIN_RELEVANCE,
    TOP_K,
    RetrievalResult,
    Retrievers,
    VectorSearchAdapter,
)
from weft.runtime.json_values import plain_json

#: How many searches are remembered, of all runs of a host; those used longest ago go first.
MOST_SEARCHES: Final = 2_000


@dataclass
class SearchMemory:
    """What searches have found, by run and question."""

    size: int = MOST_SEARCHES
    _found: OrderedDict[str, tuple[RetrievalResult, ...]] = field(
        default_factory=OrderedDict[str, "tuple[RetrievalResult, ...]"]
    )

    def get(self, key: str) -> tuple[RetrievalResult, ...] | None:
        if key in self._found:
            self._found.move_to_end(key)
        return self._found.get(key)

    def put(self, key: str, results: tuple[RetrievalResult, ...]) -> None:
        self._found[key] = results
        self._found.move_to_end(key)
        while len(self._found) > self.size:
            self._found.popitem(last=False)


@dataclass(frozen=True, slots=True)
class RunSearches:
    """The collections of a tenant, as a run searches them."""

    app: str
    run: str
    retrievers: Retrievers | None
    memory: SearchMemory

    def adapter(self, collection: str) -> "RunAdapter":
        """Return what searches a collection. Raises ToolError if there is none."""
        known = self.retrievers
        found = None if known is None else known.adapter(self.app, collection)
        if found is None:
            raise ToolError(f"there is no collection {collection} here")
        return RunAdapter(self, collection, found)


@dataclass(frozen=True, slots=True)
class RunAdapter:
    """An adapter whose answers are looked through and remembered for the run."""

    searches: RunSearches
    collection: str
    adapter: VectorSearchAdapter[Any]

    async def search(
        self,
        query: str,
        *,
        top_k: int = TOP_K,
        min_relevance: float = MIN_RELEVANCE,
        filters: Mapping[str, Json] | None = None,
    ) -> list[RetrievalResult]:
        """Search, in time. Raises ToolError saying which collection it was."""
        if not isinstance(query, str) or not query.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(f"the query for the collection {self.collection} is empty or no text")
        whole = [self.searches.app, self.searches.run, self.collection]
        wanted = cast("dict[str, Json]", plain_json(dict(filters or {})))
        key = json.dumps([*whole, query, top_k, min_relevance, wanted], sort_keys=True)
        known = self.searches.memory.get(key)
        if known is None:
            known = await self._searched(query, top_k, min_relevance, wanted)
            self.searches.memory.put(key, known)
        return list(known)

    async def _searched(
        self, query: str, top_k: int, relevance: float, filters: Mapping[str, Json]
    ) -> tuple[RetrievalResult, ...]:
        limit = asyncio.timeout(PROVIDER_SECONDS)
        try:
            async with limit:
                found = await self.adapter.search(
                    query, top_k=top_k, min_relevance=relevance, filters=filters or None
                )
            return _results(found)
        except RetrievalError as error:
            hint = f" ({error.hint})" if error.hint else ""
            raise ToolError(f"{self._told}: {error}{hint}", retryable=error.retryable) from error
        except Exception as error:  # whatever an author's adapter raises
            if limit.expired():
                told = f"{self._told}: it took longer than {PROVIDER_SECONDS:g} seconds"
                raise ToolError(told, retryable=True) from error
            raise ToolError(f"{self._told}: {type(error).__name__}: {error}") from error

    @property
    def _told(self) -> str:
        return f"the collection {self.collection} could not be searched"


def _results(found: object) -> tuple[RetrievalResult, ...]:
    """Return what an adapter gave if these are passages."""
    given: list[Any] = list(found) if isinstance(found, list | tuple) else [found]  # pyright: ignore[reportUnknownArgumentType]
    for it in given:
        if not isinstance(it, RetrievalResult):
            raise TypeError(f"its adapter returned {type(it).__name__}, no RetrievalResult")
        if not isinstance(it.content, str) or not isinstance(it.score, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("its adapter returned a passage without a text or a score")
    return tuple(given)
