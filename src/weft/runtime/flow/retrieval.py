"""Searching collections for a run: what was found once is not searched for again."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Final, TypeAlias, TypeVar, cast

from weft.context.user_code import user_code
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

#: How long one search may take: the first of all may load a model for it.
SEARCH_SECONDS: Final = 30.0

#: Of how many runs searches are remembered, and how many of each; the oldest go first.
MOST_RUNS: Final = 500
MOST_SEARCHES: Final = 100

C = TypeVar("C", bound=Collection)

_Found: TypeAlias = tuple[RetrievalResult, ...]


class SearchMemory:
    """What searches have found, by tenant and run, until the run has ended."""

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
            raise ToolError(f"{self._told}: {error}{hint}", retryable=error.retryable) from error
        except Exception as error:  # whatever an author's adapter raises
            if limit.expired():
                told = f"{self._told}: it took longer than {SEARCH_SECONDS:g} seconds"
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
            raise TypeError(f"its adapter returned {type(it).__name__}, not a RetrievalResult")
        if not isinstance(it.content, str) or not isinstance(it.score, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("its adapter returned a passage without a text or a score")
    return tuple(given)


class RetrieverRegistry:
    """Adapters by collection; what is not registered is looked for in `others`."""

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
        """Let an adapter search a collection from now on, in place of the one before.

        Without a tenant it is that of all tenants who have none of their own.
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
        """Return what searches a collection of a tenant; None if there is no such collection."""
        found = self._adapters.get((app, collection))
        if found is None:  # One that is empty may count as false, and is one all the same.
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
        """Close the others; what was registered is for those to close who have made it."""
        if self._others is not None:
            await self._others.close()
