"""Models by name, with retries, limits and prices around them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, Final

from weft.adapters.models.limits import RETRIES, Limited, Retrying, RetryPolicy, TimeLimited
from weft.adapters.models.providers import (
    COMPATIBLE,
    THROUGH_LIBRARY,
    Library,
    Provider,
    base_url_of,
    read_address_keys,
    refuse_login,
)
from weft.adapters.models.usage import Price, Priced, PriceList
from weft.errors import SetupError, UnknownModel, UsageError
from weft.ids import nearest
from weft.ports.clock import Clock
from weft.ports.model import Model

if TYPE_CHECKING:
    from weft.adapters.models.library import LibraryModel
    from weft.adapters.models.openai_http import Connections, Endpoint
    from weft.ports.retrieval import Embedder

#: Makes a model from the part of its name after the colon.
Factory = Callable[[str], Model]

#: The prefixes of names that are addresses.
ADDRESSES: Final = ("http", "https")
_NO_KEY: Final = "without a key: sample makes up replies"


@dataclass(frozen=True, slots=True)
class CallRules:
    """Limits and retries of model calls."""

    #: Seconds without an answer, or without a further piece of it, after which a call fails.
    seconds: float = 120.0
    #: Concurrent calls of one model.
    at_once: int = 1000
    retries: RetryPolicy = RETRIES


#: The names of models that need no provider.
_WITHOUT_PROVIDER: Final = ("sample", "you", "replay", "designer")


class ModelRegistry:
    """Makes models by name and holds their connections. Close it.

    `settings` has keys and addresses, `providers` adds to the built-in ones, and `factories`
    makes models of other kinds: `sample`, `you`, `replay`.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        random: Random,
        settings: Mapping[str, str],
        rules: CallRules | None = None,
        providers: Mapping[str, Provider] | None = None,
        prices: Mapping[str, Price] | None = None,
        factories: Mapping[str, Factory] | None = None,
    ) -> None:
        self._clock = clock
        self._random = random
        self._settings = settings
        self._address_keys = read_address_keys(settings)
        self._rules = rules or CallRules()
        self._providers = {**COMPATIBLE, **(providers or {})}
        self._prices = PriceList(prices or {})
        self._factories = factories or {}
        self._models: dict[str, Model] = {}
        self._connections: Connections | None = None
        self._libraries: list[LibraryModel] = []

    def model(self, name: str) -> Model:
        """Return the model of a name, the same one every time.

        Raises UsageError if there is no such provider, SetupError if a key or a library is missing.
        Calling it before a run begins finds that out in time, and loads slow libraries.
        """
        if name not in self._models:
            self._models[name] = self._make(name)
        return self._models[name]

    def knows(self, kind: str) -> bool:
        return kind in {*self._factories, *ADDRESSES, *self._providers, *THROUGH_LIBRARY}

    async def close(self) -> None:
        models, self._libraries = self._libraries, []
        self._models = {}
        for model in models:
            await model.close()
        if self._connections is not None:
            await self._connections.close()

    def _make(self, name: str) -> Model:
        kind, colon, rest = name.partition(":")
        if kind in self._factories:
            return self._factories[kind](rest)
        if kind in ADDRESSES:
            return self._compatible_model(name, *_split_url(name))
        if kind in self._providers and rest:
            return self._compatible_model(name, self._providers[kind], rest)
        if kind in THROUGH_LIBRARY and rest:
            return self._library_model(name, THROUGH_LIBRARY[kind], rest)
        raise self._unknown_model(name, kind, named=bool(colon))

    def embedder(self, name: str) -> "Embedder":
        """Return the embedder of a name; only compatible endpoints have embeddings.

        Close it. Raises UsageError and SetupError as `model` does.
        """
        provider, model = self.require_embedder(name)
        endpoint = self._endpoint(name, provider)
        # Loads a library that is not always installed.
        from weft.adapters.models.openai_embeddings import HttpEmbedder  # noqa: PLC0415

        rules = self._rules
        return HttpEmbedder(
            endpoint,
            model,
            name=name,
            clock=self._clock,
            random=self._random,
            seconds=rules.seconds,
            policy=rules.retries,
        )

    def require_embedder(self, name: str) -> tuple[Provider, str]:
        """Return the provider and the model of an embedder; raise UsageError if there is none."""
        kind, colon, rest = name.partition(":")
        if kind in ADDRESSES:
            return _split_url(name)
        if kind in self._providers and rest:
            return self._providers[kind], rest
        if kind in THROUGH_LIBRARY:
            known = ", ".join(sorted(self._providers))
            raise UsageError(f"{kind} offers no embeddings here", hint=f"available: {known}")
        raise self._unknown_model(name, kind, named=bool(colon))

    def _compatible_model(self, name: str, provider: Provider, model: str) -> Model:
        endpoint = self._endpoint(name, provider)
        # Loads a library that is not always installed.
        from weft.adapters.models.openai_http import ChatModel, Connections  # noqa: PLC0415

        if self._connections is None:
            self._connections = Connections()
        asked = ChatModel(endpoint, model, self._connections)
        return self._with_limits(asked, (name, model), provider.priced_as)

    def _endpoint(self, name: str, provider: Provider) -> "Endpoint":
        try:
            # Deferred: an extra that loads slowly, and not every run needs it.
            from weft.adapters.models.openai_http import Endpoint  # noqa: PLC0415
        except ImportError as error:
            raise not_installed(name, "models", error) from error
        key = self._settings.get(provider.key_setting) if provider.key_setting else None
        if not key and provider.key_setting and provider.key_needed:
            raise _missing_setting(name, "a key", provider.key_setting)
        base_url = base_url_of(provider, self._settings)
        if base_url is None:
            raise _missing_setting(name, "its address", provider.url_setting or "base_url")
        refuse_login(base_url, provider.url_setting or "the address of a model")
        if provider.key_setting is None:
            key = self._key_of_address(base_url)
        return Endpoint(base_url, key or None, provider.key_header, provider.limit_key)

    def _key_of_address(self, url: str) -> str | None:
        """Return the key for HOST:PORT, or else for HOST."""
        authority = url.partition("://")[2].partition("/")[0].partition("?")[0].lower()
        host = re.sub(r":[0-9]+$", "", authority)
        return self._address_keys.get(authority) or self._address_keys.get(host)

    def _library_model(self, name: str, library: Library, model: str) -> Model:
        argument, setting = library.arguments[0]
        if not self._settings.get(setting):
            raise _missing_setting(name, "a key" if argument == "api_key" else "a region", setting)
        asked = open_library(name, library, model, self._settings)
        self._libraries.append(asked)
        return self._with_limits(asked, (name, model), library.priced_as)

    def _with_limits(self, model: Model, names: tuple[str, ...], priced_as: str | None) -> Model:
        """Wrap a model with prices, limits and retries, one concern per layer.

        A slot is taken for one attempt and not while waiting for the next; time counts from when
        the slot is taken.
        """
        rules = self._rules
        priced = Priced(model, self._prices, provider=priced_as, names=names)
        timed = TimeLimited(priced, name=names[0], seconds=rules.seconds)
        limited = Limited(timed, at_once=rules.at_once)
        return Retrying(limited, clock=self._clock, random=self._random, policy=rules.retries)

    def _unknown_model(self, name: str, kind: str, *, named: bool) -> UnknownModel:
        known = sorted({*self._providers, *THROUGH_LIBRARY, *self._factories})
        if not name:
            return UnknownModel("no model is named", hint=f"name one, like openai:MODEL; {_NO_KEY}")
        if kind in known:
            return UnknownModel(f"{name} names a provider and no model", hint=f"write {kind}:MODEL")
        # The names of models without a provider are misspelt as well.
        near = nearest(kind, [*known, *_WITHOUT_PROVIDER] if not named else known)
        if near is None and not named:
            return UnknownModel(
                f"{name} names no provider", hint=f"write the provider first, like openai:{name}"
            )
        there = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
        return UnknownModel(f"there is no model provider {kind}", hint=there)


def _split_url(name: str) -> tuple[Provider, str]:
    """Return the server and the model that a name with an address names."""
    url, _, model = name.partition("#")
    refuse_login(url, "the address of a model")
    if not model:
        raise UsageError(
            f"{name} names a server and no model", hint=f"write {url}#MODEL, or {url}#default"
        )
    return Provider(url), model


def _missing_setting(name: str, what: str, setting: str) -> SetupError:
    return SetupError(f"{name} needs {what}", hint=f"set {setting}; {_NO_KEY}")


def not_installed(name: str, extra: str, error: ImportError) -> SetupError:
    return SetupError(
        f"{name} needs a library that is not installed: {error.name or error}",
        hint=f'install it: pip install "weft-agents[{extra}]"',
    )


def open_library(
    name: str, library: Library, model: str, settings: Mapping[str, str]
) -> "LibraryModel":
    """Load the classes of a provider and make a model of it.

    Raises SetupError that says what to install if they are not there.
    """
    try:
        models: Any = import_module(f"pydantic_ai.models.{library.module}")
        providers: Any = import_module(f"pydantic_ai.providers.{library.module}")
    except ImportError as error:
        raise not_installed(name, library.module, error) from error
    # Needs the library itself, so it cannot be loaded sooner.
    from weft.adapters.models.library import LibraryModel  # noqa: PLC0415

    given = {
        argument: settings[setting]
        for argument, setting in library.arguments
        if settings.get(setting)
    }
    provider = getattr(providers, library.provider)(**given)
    options = {"max_retries": 0} if library.repeats else None
    inner = getattr(models, library.model)(model, provider=provider, settings=options)
    return LibraryModel(inner, secrets=tuple(given.values()))
