"""Opening a model of a provider whose library is an extra."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.adapters.models.providers import Library
from weft.errors import SetupError

if TYPE_CHECKING:
    from weft.adapters.models.library import LibraryModel


def not_installed(name: str, extra: str, error: ImportError) -> SetupError:
    """Say which library a model needs, and how to get it."""
    return SetupError(
        f"{name} needs a library that is not installed: {error.name or error}",
        hint=f'install it: pip install "weft[{extra}]"',
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

    given = {argument: settings[it] for argument, it in library.arguments if settings.get(it)}
    provider = getattr(providers, library.provider)(**given)
    options = {"max_retries": 0} if library.repeats else None
    inner = getattr(models, library.model)(model, provider=provider, settings=options)
    return LibraryModel(inner, secrets=tuple(given.values()))
