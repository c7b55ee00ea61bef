"""Providers around other providers, which may be written in code."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from weft.context.slices import ContextProvider, ContextRequest, ContextSlice, Item
from weft.context.user_code import call_user_code
from weft.errors import UsageError
from weft.spec import providers
from weft.spec.part import name_list
from weft.spec.providers import MAX_ITEMS, Provider
from weft.spec.templates import Reference, parse_template

#: Convert an inner provider, and a function, to the form of the spec.
Declare = Callable[[Any], Provider]
Name = Callable[[Callable[..., Any]], str]


def _slice_or_raise(result: ContextSlice | BaseException) -> ContextSlice:
    if isinstance(result, BaseException):
        raise result
    return result


class CompositeProvider:
    """The results of several providers in order, each artifact once."""

    def __init__(
        self, *providers: ContextProvider, parallel: bool = False, limit: int | None = None
    ) -> None:
        self.providers = providers
        self.parallel = parallel
        self.limit = limit

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Call all providers at once; the result has the order of the providers."""
        if self.parallel:
            asked = (_asked(provider, request) for provider in self.providers)
            given = await asyncio.gather(*asked, return_exceptions=True)
            slices = [_slice_or_raise(result) for result in given]
        else:
            slices = [await _asked(provider, request) for provider in self.providers]
        items = unique(item for slice_ in slices for item in slice_.items)
        metadata: dict[str, Any] = {"providers": [slice_.metadata for slice_ in slices]}
        redacted = {key for slice_ in slices for key in slice_.metadata.get("redacted", ())}
        if redacted:
            metadata["redacted"] = sorted(redacted)
        return ContextSlice(items[: self.limit or MAX_ITEMS], metadata)

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return the provider in its spec form. Raises UsageError if it contains itself."""
        _require_tree(self)
        inner = tuple(provider(part) for part in self.providers)
        return providers.CompositeProvider(
            providers=inner, parallel=self.parallel, limit=self.limit
        )


class RedactingProvider:
    """The result of another provider, with keys of the payloads dropped or replaced."""

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
        """Call the provider and redact every payload, at any depth."""
        inside = self._inside(self.inner)
        if inside is not None:
            return await _asked(inside, request)
        given = await _asked(self.inner, request)
        changed: set[str] = set()
        items = [
            {**item, "payload": self._redacted(item.get("payload"), changed)}
            for item in given.items
        ]
        redacted = sorted({*given.metadata.get("redacted", ()), *changed})
        return ContextSlice(items, {**given.metadata, "redacted": redacted})

    def declared(self, provider: Declare, name: Name) -> Provider:
        """Return the provider in its spec form. Raises UsageError if it contains itself."""
        _require_tree(self)
        transform = {key: name(change) for key, change in self.transform.items()}
        return providers.RedactingProvider(
            provider=provider(self.inner), drop=self.drop, transform=transform
        )

    def _inside(self, provider: ContextProvider) -> ContextProvider | None:
        """Return a provider that redacts before summarising, because a summary has no keys."""
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
            return [self._redacted(item, changed) for item in value]  # pyright: ignore[reportUnknownVariableType]
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
    """The result of another provider as texts, with one template per type."""

    def __init__(self, inner: ContextProvider, templates: Mapping[str, str] | None = None) -> None:
        self.inner = inner
        self.templates = dict(templates or {})

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Call the provider and replace every payload by a summary."""
        given = await _asked(self.inner, request)
        items = [{**item, "payload": {"summary": self._summary(item)}} for item in given.items]
        return ContextSlice(items, given.metadata)

    def declared(self, provider: Declare, name: Name) -> Provider:  # noqa: ARG002 - as all
        """Return the provider in its spec form. Raises UsageError if it contains itself."""
        _require_tree(self)
        return providers.SummaryProvider(provider=provider(self.inner), templates=self.templates)

    def _summary(self, item: Item) -> str:
        payload = item.get("payload")
        fields: dict[str, Any] = payload if isinstance(payload, dict) else {"value": payload}  # pyright: ignore[reportUnknownVariableType]
        template = self.templates.get(str(item.get("type")))
        if template is None:
            text = ", ".join(f"{name}: {value}" for name, value in fields.items())
            return f"{item.get('type')}: {text}"
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
    """Call a provider; a plain function is called in a thread."""
    return await call_user_code(provider, request)


def unique(items: Iterable[Item]) -> list[Item]:
    """Return items in their order, each artifact once; items without an id are all kept."""
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
    """Return the name of a provider for messages."""
    if isinstance(provider, CompositeProvider):
        return f"CompositeProvider({', '.join(map(name_of, provider.providers))})"
    if isinstance(provider, RedactingProvider | SummarisingProvider):
        return f"{type(provider).__name__}({name_of(provider.inner)})"
    return getattr(provider, "__name__", type(provider).__name__)


def nesting_error(provider: object, above: Sequence[object] = ()) -> str | None:
    """Return the error for a provider that contains itself, or None."""
    if any(provider is outer for outer in above):
        return f"{name_of(type(provider))} contains itself"
    inner: Sequence[object] = ()
    if isinstance(provider, CompositeProvider):
        inner = provider.providers
    elif isinstance(provider, RedactingProvider | SummarisingProvider):
        inner = (provider.inner,)
    found = (nesting_error(part, (*above, provider)) for part in inner)
    return next((error for error in found if error), None)


def _require_tree(provider: object) -> None:
    fault = nesting_error(provider)
    if fault:
        raise UsageError(f"a provider cannot be used: {fault}")


#: How long a provider may take, in seconds.
PROVIDER_SECONDS: Final = 10.0
