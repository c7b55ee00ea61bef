"""Which adapter searches which collection."""

from typing import Any, TypeVar

from weft.ports.retriever import Collection, Retrievers, VectorSearchAdapter

C = TypeVar("C", bound=Collection)


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
