"""Providers: policies that pick artifacts for an agent. Each asks a reader bound to who reads.

A provider gets data and a way to read, never what runs the board: it cannot see, widen or forge
the identity it reads with.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from weft.context.similarity import GET_EMBEDDINGS, NO_EMBEDDINGS, text_of
from weft.context.slices import ContextProvider, ContextRequest, ContextSlice, Envelope, Item
from weft.context.user_code import call_user_code
from weft.engine.variables.triggers import dig
from weft.errors import RetrievalError, UsageError
from weft.findings import Json
from weft.spec import providers
from weft.spec.part import name_list
from weft.spec.providers import CANDIDATES, DEFAULT_LIMIT, MAX_ITEMS, FilterConfig, Provider
from weft.spec.templates import Reference, parse_template

#: How a provider inside another, and a function, stand in a spec.
Declare = Callable[[Any], Provider]
Name = Callable[[Callable[..., Any]], str]


_EVERYTHING: Final = FilterConfig()


async def _found(request: ContextRequest, filters: FilterConfig) -> ContextSlice:
    return ContextSlice([it.item() for it in await request.board.find(filters)])


@dataclass(frozen=True, slots=True)
class DefaultCorrelationProvider:
    """The visible artifacts of the same correlation, newest first: all, or at most `limit`."""

    limit: int | None = None

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Pick them."""
        wanted = _EVERYTHING.model_copy(  # Valid as it is, and not validated again.
            update={"correlation_id": request.correlation_id, "limit": self.limit}
        )
        if self.limit is not None:
            return await _found(request, wanted)
        return ContextSlice([it.item() async for it in request.board.find_all(wanted)])

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it."""
        return providers.CorrelatedProvider(limit=self.limit)


@dataclass(frozen=True, slots=True)
class FilteredContextProvider:
    """The visible artifacts that a filter lets through."""

    filters: FilterConfig = field(default_factory=FilterConfig)
    limit: int | None = None
    include_state_keys: Iterable[str] = ()

    def __post_init__(self) -> None:
        """Refuse a text in place of a list of keys."""
        object.__setattr__(self, "include_state_keys", name_list(self.include_state_keys))

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Pick them, and add what is wanted of the state."""
        limits = [it for it in (self.limit, self.filters.limit) if it is not None]
        most = min(limits, default=DEFAULT_LIMIT)
        found = await _found(request, self.filters.model_copy(update={"limit": most}))
        state: Mapping[str, Any] = request.ctx.state
        added = [
            {"type": "state", "key": key, "payload": state[key]}
            for key in self.include_state_keys
            if key in state
        ]
        return ContextSlice([*found.items, *added])

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it."""
        keys = tuple(self.include_state_keys)
        return providers.FilteredProvider(
            filters=self.filters, limit=self.limit, include_state_keys=keys
        )


@dataclass(frozen=True, slots=True)
class RecentProvider:
    """The newest visible artifacts of the whole board."""

    limit: int = 10

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Pick them."""
        return await _found(request, FilterConfig(limit=self.limit))

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it."""
        return providers.RecentProvider(limit=self.limit)


@dataclass(frozen=True, slots=True)
class TimeWindowProvider:
    """The visible artifacts of the last seconds, of the whole board."""

    seconds: float
    limit: int = DEFAULT_LIMIT

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Pick them."""
        now: datetime = request.ctx.now
        since = now - timedelta(seconds=self.seconds)
        return await _found(request, FilterConfig(since=since, limit=self.limit))

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it."""
        return providers.WindowProvider(seconds=self.seconds, limit=self.limit)


@dataclass(frozen=True, slots=True)
class StateDelegatingProvider:
    """What a component has put into `ctx.state`."""

    key: str = "context_snapshot"

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Read it; nothing there is a fault, for a fallback to make up for."""
        state: Mapping[str, Any] = request.ctx.state
        if self.key not in state:
            raise LookupError(f"no component has set ctx.state[{self.key!r}]")
        snapshot = state[self.key]
        if isinstance(snapshot, ContextSlice):
            return snapshot
        if not isinstance(snapshot, list):
            raise TypeError(f"ctx.state[{self.key!r}] is not a list of items")
        return ContextSlice(list(snapshot))  # pyright: ignore[reportUnknownArgumentType]

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it."""
        return providers.StateProvider(key=self.key)


@dataclass(frozen=True, slots=True)
class EmptyProvider:
    """Nothing."""

    async def __call__(self, request: ContextRequest) -> ContextSlice:  # noqa: ARG002 - as all
        """Give nothing."""
        return ContextSlice([])

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it."""
        return providers.EmptyProvider()


def _given(it: ContextSlice | BaseException) -> ContextSlice:
    if isinstance(it, BaseException):
        raise it
    return it


class CompositeProvider:
    """What several providers give, one after the other, each artifact once."""

    def __init__(
        self, *providers: ContextProvider, parallel: bool = False, limit: int | None = None
    ) -> None:
        self.providers = providers
        self.parallel = parallel
        self.limit = limit

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Ask all of them; the result has the order of the providers, whichever is faster."""
        if self.parallel:
            asked = (_asked(provider, request) for provider in self.providers)
            given = await asyncio.gather(*asked, return_exceptions=True)
            slices = [_given(it) for it in given]
        else:
            slices = [await _asked(provider, request) for provider in self.providers]
        items = unique(item for it in slices for item in it.items)
        metadata: dict[str, Any] = {"providers": [it.metadata for it in slices]}
        redacted = {key for it in slices for key in it.metadata.get("redacted", ())}
        if redacted:
            metadata["redacted"] = sorted(redacted)
        return ContextSlice(items[: self.limit or MAX_ITEMS], metadata)

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it. Raises UsageError if it contains itself."""
        _require_tree(self)
        inner = tuple(provider(it) for it in self.providers)
        return providers.CompositeProvider(
            providers=inner, parallel=self.parallel, limit=self.limit
        )


class RedactingProvider:
    """What another provider gives, without some keys of the payloads, or with others."""

    def __init__(
        self,
        inner: ContextProvider,
        *,
        drop: Iterable[str] = (),
        transform: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        self.inner = inner
        self.drop = name_list(drop)
        self.transform = dict(transform or {})

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Ask it, and change every payload, however deep the keys stand."""
        inside = self._inside(self.inner)
        if inside is not None:
            return await _asked(inside, request)
        given = await _asked(self.inner, request)
        changed: set[str] = set()
        items = [
            {**it, "payload": self._redacted(it.get("payload"), changed)} for it in given.items
        ]
        redacted = sorted({*given.metadata.get("redacted", ()), *changed})
        return ContextSlice(items, {**given.metadata, "redacted": redacted})

    def declared(self, provider: Declare, name: Name) -> Provider:
        """Return it as a spec has it. Raises UsageError if it contains itself."""
        _require_tree(self)
        transform = {key: name(it) for key, it in self.transform.items()}
        return providers.RedactingProvider(
            provider=provider(self.inner), drop=self.drop, transform=transform
        )

    def _inside(self, provider: ContextProvider) -> ContextProvider | None:
        """Return a provider that redacts before it summarises: what is summarised has no keys."""
        if isinstance(provider, SummarisingProvider):
            return SummarisingProvider(self._over(provider.inner), provider.templates)
        if isinstance(provider, CompositeProvider):
            several = map(self._over, provider.providers)
            return CompositeProvider(*several, parallel=provider.parallel, limit=provider.limit)
        return None

    def _over(self, provider: ContextProvider) -> ContextProvider:
        return RedactingProvider(provider, drop=self.drop, transform=self.transform)

    def _redacted(self, value: Any, changed: set[str]) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, list):
            return [self._redacted(it, changed) for it in value]  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(value, dict):
            return value
        kept: dict[str, Any] = {}
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            name = str(key)  # pyright: ignore[reportUnknownArgumentType]
            if name in self.drop:
                changed.add(name)
            elif name in self.transform:
                changed.add(name)
                kept[name] = self.transform[name](inner)
            else:
                kept[name] = self._redacted(inner, changed)
        return kept


class SummarisingProvider:
    """What another provider gives, as texts: one template for each type."""

    def __init__(self, inner: ContextProvider, templates: Mapping[str, str] | None = None) -> None:
        self.inner = inner
        self.templates = dict(templates or {})

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Ask it, and make one line of every artifact."""
        given = await _asked(self.inner, request)
        items = [{**it, "payload": {"summary": self._summary(it)}} for it in given.items]
        return ContextSlice(items, given.metadata)

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return it as a spec has it. Raises UsageError if it contains itself."""
        _require_tree(self)
        return providers.SummaryProvider(provider=provider(self.inner), templates=self.templates)

    def _summary(self, item: Item) -> str:
        payload = item.get("payload")
        fields: dict[str, Any] = payload if isinstance(payload, dict) else {"value": payload}  # pyright: ignore[reportUnknownVariableType]
        template = self.templates.get(str(item.get("type")))
        if template is None:
            told = ", ".join(f"{name}: {value}" for name, value in fields.items())
            return f"{item.get('type')}: {told}"
        return "".join(
            str(fields.get(part.name, "")) if isinstance(part, Reference) else part
            for part in parse_template(template)
        )


async def _asked(provider: ContextProvider, request: ContextRequest) -> ContextSlice:
    given = await answer_of(provider, request)
    if not isinstance(given, ContextSlice):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name_of(provider)} returned {type(given).__name__}, not a ContextSlice")
    return given


async def answer_of(provider: ContextProvider, request: ContextRequest) -> ContextSlice:
    """Ask a provider; one that is a plain function is called in a thread."""
    return await call_user_code(provider, request)


def unique(items: Iterable[Item]) -> list[Item]:
    """Return items in their order, each artifact once; what has no id is kept as it is."""
    seen: set[Any] = set()
    kept: list[Item] = []
    for item in items:
        id_ = item.get("id")
        if id_ is not None:
            if id_ in seen:
                continue
            seen.add(id_)
        kept.append(item)
    return kept


def name_of(provider: object) -> str:
    """Return what a provider is called where people read of it."""
    if isinstance(provider, CompositeProvider):
        return f"CompositeProvider({', '.join(map(name_of, provider.providers))})"
    if isinstance(provider, RedactingProvider | SummarisingProvider):
        return f"{type(provider).__name__}({name_of(provider.inner)})"
    return getattr(provider, "__name__", type(provider).__name__)


def nesting_error(provider: object, above: Sequence[object] = ()) -> str | None:
    """Say that a provider contains itself, or None."""
    if any(provider is it for it in above):
        return f"{name_of(type(provider))} contains itself"
    inner: Sequence[object] = ()
    if isinstance(provider, CompositeProvider):
        inner = provider.providers
    elif isinstance(provider, RedactingProvider | SummarisingProvider):
        inner = (provider.inner,)
    found = (nesting_error(it, (*above, provider)) for it in inner)
    return next((it for it in found if it), None)


def _require_tree(provider: object) -> None:
    fault = nesting_error(provider)
    if fault:
        raise UsageError(f"a provider cannot be used: {fault}")


#: How long a provider may take, in seconds.
PROVIDER_SECONDS: Final = 10.0

# -- the provider that compares meanings: the artifacts that are nearest to a query


@dataclass(frozen=True, slots=True)
class SemanticContextProvider:
    """The visible artifacts whose texts are nearest in meaning to a query, the nearest first.

    The query is a text, or a field of the artifacts that have woken the agent, or else all they
    say. These are left out: the agent has them anyway. Of what `filters` lets through the newest
    200 are compared, or as many as `filters.limit` says.
    """

    query: str | None = None
    query_field: str | None = None
    limit: int = 10
    threshold: float = 0.3
    filters: FilterConfig = field(default_factory=FilterConfig)

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Compare them; without embeddings that is a fault, for a fallback to make up for."""
        if request.similarity is None:
            raise RetrievalError(NO_EMBEDDINGS, hint=GET_EMBEDDINGS)
        inputs: Sequence[Envelope] = request.inputs.artifacts
        query = self._query(inputs)
        most = self.filters.limit or CANDIDATES
        found = await request.board.find(self.filters.model_copy(update={"limit": most}))
        own = {input_.id for input_ in inputs}
        others = [it for it in found if it.id not in own]
        scores = await request.similarity.of(query, [text_of(other.payload) for other in others])
        ranked = sorted(zip(scores, others, strict=True), key=lambda it: -it[0])
        near = [(score, it) for score, it in ranked if score >= self.threshold][: self.limit]
        metadata: dict[str, Any] = {
            "compared": len(others),
            "similarity": {it.id: score for score, it in near},
        }
        return ContextSlice([it.item() for _, it in near], metadata)

    def declared(
        self,
        provider: Callable[[Any], Provider],  # noqa: ARG002 - as all
        name: Callable[[Callable[..., Any]], str],  # noqa: ARG002
    ) -> Provider:
        """Return it as a spec has it."""
        return providers.SemanticProvider(
            query=self.query,
            query_field=self.query_field,
            limit=self.limit,
            threshold=self.threshold,
            filters=self.filters,
        )

    def _query(self, inputs: Sequence[Envelope]) -> str:
        if self.query is not None:
            return self.query
        payloads: list[Json] = [input_.payload for input_ in inputs]
        if self.query_field is not None:
            path = tuple(self.query_field.split("."))
            payloads = [dig(payload, path) for payload in payloads]
        query = text_of(payloads)
        if not query:
            named = f'no field "{self.query_field}" with a text' if self.query_field else "no text"
            raise LookupError(f"what has woken the agent has {named} to compare with")
        return query
