"""Which kind of installation this is, as its environment says."""

from collections.abc import Mapping
from typing import Final

from weft.check.subject import Profile

#: What counts as yes, and as no.
TRUTHY: Final = frozenset({"1", "true", "yes", "on"})
FALSY: Final = frozenset({"0", "false", "no", "off"})


def profile_of(settings: Mapping[str, str], production: bool | None = None) -> Profile:  # noqa: FBT001 - what was said, if anything
    """Return whether this is production; what the program says goes first."""
    said = settings.get("ENVIRONMENT", "").strip().lower() == "production"
    return "production" if (said if production is None else production) else "development"
