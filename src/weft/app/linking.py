"""How packages run in this installation, beside what they declare."""

from collections.abc import Mapping

from weft.app.plugins import PluginTriggers
from weft.app.profile import FALSY, TRUTHY, profile_of
from weft.engine.suppression import IN_PRODUCTION, WITHOUT_SCHEMA
from weft.errors import UsageError
from weft.runtime.workflow import Linking


def linking_of(settings: Mapping[str, str], production: bool | None = None) -> Linking:  # noqa: FBT001 - as above
    """Return how packages run here: which variables do not exist, which triggers are known."""
    suppressed = frozenset[str]()
    if profile_of(settings, production) == "production":
        suppressed |= IN_PRODUCTION
    included = settings.get("CONTEXT_INCLUDE_SCHEMA", "").strip().lower()
    if included in FALSY:
        suppressed |= WITHOUT_SCHEMA
    elif included and included not in TRUTHY:
        raise UsageError(f"CONTEXT_INCLUDE_SCHEMA is 1 or 0, not {included!r}")
    return Linking(suppressed, PluginTriggers())
