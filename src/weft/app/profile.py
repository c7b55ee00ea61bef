"""Which kind of installation this is, as its environment says."""

from collections.abc import Mapping
from typing import Final

from weft.check.subject import Profile
from weft.engine.variables.suppression import IN_PRODUCTION, WITHOUT_SCHEMA
from weft.errors import UsageError

#: What counts as yes, and as no.
TRUTHY: Final = frozenset({"1", "true", "yes", "on"})
FALSY: Final = frozenset({"0", "false", "no", "off"})

#: What an installation may be called. Only production hides variables, so staging does not.
PROFILES: Final[Mapping[str, Profile]] = {
    "production": "production",
    "prod": "production",
    "development": "development",
    "dev": "development",
    "test": "development",
    "staging": "development",
}


def profile_of(settings: Mapping[str, str], production: bool | None = None) -> Profile:  # noqa: FBT001 - what was said, if anything
    """Return whether this is production; what the program says goes first."""
    if production is not None:
        return "production" if production else "development"
    said = settings.get("ENVIRONMENT", "").strip()
    if said and said.lower() not in PROFILES:
        raise UsageError(
            f"ENVIRONMENT is one of {', '.join(PROFILES)}, not {said!r}",
            hint="write production, or development; or leave it out",
        )
    return PROFILES[said.lower()] if said else "development"


def suppressed_sources(
    settings: Mapping[str, str],
    production: bool | None = None,  # noqa: FBT001 - as above
) -> frozenset[str]:
    """Return the sources whose variables do not exist here."""
    hidden = profile_of(settings, production) == "production"
    included = settings.get("CONTEXT_INCLUDE_SCHEMA", "").strip().lower()
    if included and included not in TRUTHY | FALSY:
        raise UsageError(f"CONTEXT_INCLUDE_SCHEMA is 1 or 0, not {included!r}")
    none = frozenset[str]()
    return (IN_PRODUCTION if hidden else none) | (WITHOUT_SCHEMA if included in FALSY else none)
