"""How packages run in this installation, beside what they declare."""

from collections.abc import Mapping

from weft.app.plugins import PluginTriggers
from weft.app.profile import suppressed_sources
from weft.runtime.workflow import Linking


def linking_of(settings: Mapping[str, str], production: bool | None = None) -> Linking:  # noqa: FBT001 - as there
    """Return how packages run here: which variables do not exist, which triggers are known."""
    return Linking(suppressed_sources(settings, production), PluginTriggers())
