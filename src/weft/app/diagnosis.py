"""Checks of settings: what `weft doctor` and servers say of them."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY
from weft.adapters.system_clock import SystemClock
from weft.app.embeddings import open_embedder
from weft.app.folders import BUILD, PAGE, is_built
from weft.app.installation import linking_of
from weft.app.models import SAMPLE, is_own_model, open_registry
from weft.app.settings import ANY_MODEL, allowed_hosts, durability_of, tool_limits
from weft.errors import UsageError

#: Less free disk space than this is a warning.
_LEAST_FREE: Final = 200 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check; `remedy` is the command that fixes it."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    fact: str
    remedy: str = ""


def check_disk(folder: Path, where: str) -> Diagnosis:
    """Check the free space on the disk of a folder; `where` is what is on it, for people."""
    free = shutil.disk_usage(folder).free
    fact = f"{free // (1024 * 1024):,} MiB free"
    if free >= _LEAST_FREE:
        return Diagnosis("ok", "disk", fact)
    return Diagnosis("warn", "disk", fact, f"free some space on the disk of {where}")


def check_models(settings: Mapping[str, str], *, default: str = "") -> Diagnosis:
    """Check the models that settings name, and list their keys; a server has no `default`."""
    usual = settings.get("WEFT_MODEL") or default
    try:
        _require_valid(settings, usual or SAMPLE)
    except UsageError as error:
        return Diagnosis("fail", "models", str(error), error.hint or "")
    keys = [name for name in _key_settings() if settings.get(name)]
    known = f"keys: {', '.join(keys)}" if keys else "no key is set"
    if not usual:
        remedy = "set WEFT_MODEL, or name a model in each package or run"
        return Diagnosis("warn", "models", f"no model is set; {known}", remedy)
    return Diagnosis("ok", "models", f"{usual} by default; {known}")


def _require_valid(settings: Mapping[str, str], usual: str) -> None:
    """Raise what every run would raise because of the settings."""
    registry, fallbacks = open_registry(settings, SystemClock())
    tool_limits(settings)
    durability_of(settings)
    allowed_hosts(settings)
    linking_of(settings)
    for name in (usual, *fallbacks, *fallbacks.values()):
        if name != ANY_MODEL and not is_own_model(name):
            registry.model(name)


def _key_settings() -> Iterator[str]:
    """Yield the names of the settings that hold keys."""
    yield from (each.key_setting for each in COMPATIBLE.values() if each.key_setting)
    for library in THROUGH_LIBRARY.values():
        yield from (name for argument, name in library.arguments if argument == "api_key")


def check_page() -> Diagnosis:
    """Check that the web page is built: a clone of the sources has none at first."""
    if is_built(PAGE):
        return Diagnosis("ok", "page", "built")
    return Diagnosis("warn", "page", "not built: weft serve answers without it", BUILD)


def check_embeddings(settings: Mapping[str, str]) -> Diagnosis:
    """Check the embedding model of collections."""
    try:
        embedder = open_embedder(settings)
    except UsageError as error:
        return Diagnosis("fail", "embeddings", str(error), error.hint or "")
    if embedder is None:
        fact = "none: collections are searched by keywords only"
        return Diagnosis("ok", "embeddings", fact, "weft embeddings install")
    return Diagnosis("ok", "embeddings", embedder.name)
