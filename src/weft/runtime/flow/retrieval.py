"""Searches collections for a run; repeated searches return the first results."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Final, TypeAlias, TypeVar, cast

from weft.context.user_code import describe_error, user_code
from weft.errors import RetrievalError, ToolError, UsageError
from weft.findings import Json
from weft.ports.retrieval import (
    MIN_RELEVANCE,
    TOP_K,
    Collection,
    RetrievalResult,
    Retrievers,
    VectorSearchAdapter,
)
from weft.runtime.variables.json_values import plain_json

#: The time limit of a search; the first one may load an embedding model.
SEARCH_SECONDS: Final = 30.0

#: The number of runs with remembered searches, and of searches per run; the oldest are dropped.
MOST_RUNS: Final = 500
MOST_SEARCHES: Final = 100

C = TypeVar("C", bound=Collection)

_Found: TypeAlias = tuple[RetrievalResult, ...]


class SearchMemory:
    """The results of searches by tenant and run, until the run ends."""

    def __init__(self, runs: int = MOST_RUNS, searches: int = MOST_SEARCHES) -> None:
        self._most_runs = runs
        self._most_searches = searches
        self._runs: OrderedDict[tuple[str, str], OrderedDict[str, _Found]] = OrderedDict()

    def get(self, app: str, run: str, question: str) -> _Found | None:
        searches = self._runs.get((app, run))
        return None if searches is None else searches.get(question)

    def put(self, app: str, run: str, question: str, found: _Found) -> None:
        searches = self._runs.setdefault((app, run), OrderedDict())
        searches[question] = found
        self._runs.move_to_end((app, run))
        if len(searches) > self._most_searches:
            searches.popitem(last=False)
        if len(self._runs) > self._most_runs:
            self._runs.popitem(last=False)

    def forget(self, app: str, run: str) -> None:
        self._runs.pop((app, run), None)


@dataclass(frozen=True, slots=True)
class RunSearches:
    """The collections of a tenant, as a run searches them."""

    app: str
    run: str
    retrievers: Retrievers | None
    memory: SearchMemory

    def adapter(self, collection: str) -> "RunAdapter":
        """Return the adapter of a collection; raises ToolError if there is none."""
        known = self.retrievers
        found = None if known is None else known.adapter(self.app, collection)
        if found is None:
            raise ToolError(f"there is no collection {collection} here")
        return RunAdapter(self, collection, found)


@dataclass(frozen=True, slots=True)
class RunAdapter:
    """An adapter whose results are validated and remembered for the run."""

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
        """Search within the time limit; raises ToolError that names the collection."""
        if not isinstance(query, str) or not query.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(f"the query for the collection {self.collection} is empty or not text")
        wanted = cast("dict[str, Json]", plain_json(dict(filters or {})))
        asked = [self.collection, query, top_k, min_relevance, wanted]
        question = json.dumps(asked, sort_keys=True)
        app, run, memory = self.searches.app, self.searches.run, self.searches.memory
        known = memory.get(app, run, question)
        if known is None:
            known = await self._searched(query, top_k, min_relevance, wanted)
            memory.put(app, run, question, known)
        return list(known)

    async def _searched(
        self, query: str, top_k: int, relevance: float, filters: Mapping[str, Json]
    ) -> tuple[RetrievalResult, ...]:
        limit = asyncio.timeout(SEARCH_SECONDS)
        try:
            async with limit:
                with user_code:
                    search: Any = self.adapter.search(
                        query, top_k=top_k, min_relevance=relevance, filters=filters or None
                    )
                    if not isawaitable(search):
                        adapter = type(self.adapter).__name__
                        message = f"{adapter}.search is not async; write `async def search`"
                        raise TypeError(message)  # noqa: TRY301
                    found = await search
            return _results(found)
        except RetrievalError as error:
            hint = f" ({error.hint})" if error.hint else ""
            raise ToolError(f"{self._failed}: {error}{hint}", retryable=error.retryable) from error
        except Exception as error:  # whatever an author's adapter raises
            if limit.expired():
                message = f"{self._failed}: it took longer than {SEARCH_SECONDS:g} seconds"
                raise ToolError(message, retryable=True) from error
            raise ToolError(f"{self._failed}: {describe_error(error)}") from error

    @property
    def _failed(self) -> str:
        return f"the collection {self.collection} could not be searched"


def _results(found: object) -> tuple[RetrievalResult, ...]:
    """Return the passages of an adapter; raises TypeError if they are not passages."""
    given: list[Any] = list(found) if isinstance(found, list | tuple) else [found]  # pyright: ignore[reportUnknownArgumentType]
    for passage in given:
        if not isinstance(passage, RetrievalResult):
            raise TypeError(f"its adapter returned {type(passage).__name__}, not a RetrievalResult")
        if not isinstance(passage.content, str) or not isinstance(passage.score, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("its adapter returned a passage without a text or a score")
    return tuple(given)


class RetrieverRegistry:
    """Adapters by collection; `others` is asked for unregistered collections."""

    def __init__(self, others: Retrievers | None = None) -> None:
        self._others = others
        self._adapters: dict[tuple[str | None, str], VectorSearchAdapter[Any]] = {}

    def register(
        self,
        collection: type[C] | str,
        adapter: VectorSearchAdapter[C],
        *,
        app: str | None = None,
    ) -> None:
        """Register the adapter of a collection, replacing an earlier one.

        Without a tenant, it serves all tenants that have no adapter of their own.
        """
        if isinstance(adapter, type):
            hint = f"give an object: {adapter.__name__}(...)"
            raise UsageError(f"the adapter {adapter.__name__} is a class", hint=hint)
        if not callable(getattr(adapter, "search", None)):
            raise UsageError(
                f"{type(adapter).__name__} has no method search",
                hint="give an object with `async def search(self, query, *, top_k, ...)`",
            )
        name = collection if isinstance(collection, str) else collection.collection_name()
        self._adapters[app, name] = adapter

    def adapter(self, app: str, collection: str) -> VectorSearchAdapter[Any] | None:
        """Return the adapter of a tenant's collection; None if there is no such collection."""
        found = self._adapters.get((app, collection))
        if found is None:  # `is None`, because an empty adapter may be false.
            found = self._adapters.get((None, collection))
        if found is None and self._others is not None:
            return self._others.adapter(app, collection)
        return found

    def names(self, app: str) -> list[str]:
        """Return the collections of a tenant."""
        own = (name for of, name in self._adapters if of in (None, app))
        others = () if self._others is None else self._others.names(app)
        return sorted({*own, *others})

    async def close(self) -> None:
        """Close `others`; registered adapters are closed by their owners."""
        if self._others is not None:
            await self._others.close()
