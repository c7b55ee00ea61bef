"""How packages run in this installation: its profile, plug-ins, hidden variables, logging."""

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Final

from weft.app.logs import writes_json
from weft.app.settings import tool_limits
from weft.check.subject import Profile
from weft.engine.variables.access import IN_PRODUCTION, WITHOUT_SCHEMA
from weft.engine.variables.trigger_index import TriggerKind
from weft.errors import SetupError, UsageError
from weft.runtime.workflow import Linking

#: The texts that mean yes, and no.
TRUTHY: Final = frozenset({"1", "true", "yes", "on"})
FALSY: Final = frozenset({"0", "false", "no", "off"})

#: The values of ENVIRONMENT. Only production hides variables, so staging does not.
PROFILES: Final[Mapping[str, Profile]] = {
    "production": "production",
    "prod": "production",
    "development": "development",
    "dev": "development",
    "test": "development",
    "staging": "development",
}


def profile_of(settings: Mapping[str, str], production: bool | None = None) -> Profile:  # noqa: FBT001 - an option
    """Return the profile; the argument of the program wins over the setting."""
    if production is not None:
        return "production" if production else "development"
    said = settings.get("ENVIRONMENT", "").strip()
    if said and said.lower() not in PROFILES:
        raise UsageError(
            f"ENVIRONMENT must be one of {', '.join(PROFILES)}, not {said!r}",
            hint="write production, or development; or leave it out",
        )
    return PROFILES[said.lower()] if said else "development"


def suppressed_sources(
    settings: Mapping[str, str],
    production: bool | None = None,  # noqa: FBT001 - as above
) -> frozenset[str]:
    """Return the kinds of sources whose variables are hidden here."""
    hidden = profile_of(settings, production) == "production"
    included = settings.get("CONTEXT_INCLUDE_SCHEMA", "").strip().lower()
    if included and included not in TRUTHY | FALSY:
        raise UsageError(f"CONTEXT_INCLUDE_SCHEMA must be 1 or 0, not {included!r}")
    none = frozenset[str]()
    return (IN_PRODUCTION if hidden else none) | (WITHOUT_SCHEMA if included in FALSY else none)


#: The group of entry points whose names are kinds of triggers: `{"type": "x:NAME"}`.
TRIGGERS: Final = "weft.triggers"


def is_installed(module: str) -> bool:
    """Return whether the top-level package of a module is installed, without importing it."""
    try:
        return find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


class PluginTriggers(Mapping[str, TriggerKind]):
    """The installed kinds of triggers, looked up on first use."""

    @cached_property
    def _kinds(self) -> dict[str, TriggerKind]:
        found: dict[str, TriggerKind] = {}
        for point in entry_points(group=TRIGGERS):
            try:
                found[point.name] = point.load()()
            except Exception as error:  # foreign code
                raise SetupError(
                    f"the trigger x:{point.name} of {point.value} cannot be loaded: {error}",
                    hint="correct or uninstall the distribution that brings it",
                ) from error
        return found

    def __getitem__(self, name: str) -> TriggerKind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


def linking_of(settings: Mapping[str, str], production: bool | None = None) -> Linking:  # noqa: FBT001 - as there
    """Return how packages run here: hidden variables, known triggers and limits."""
    return Linking(
        suppressed_sources(settings, production),
        PluginTriggers(),
        seconds=tool_limits(settings).timeout,
    )


_log: Final = logging.getLogger("weft.context")


class _Lines(logging.StreamHandler):  # pyright: ignore[reportMissingTypeArgument]
    """Prints to the error stream."""


def log_context(settings: Mapping[str, str]) -> None:
    """Start or stop printing every change of a variable, as the settings say."""
    for handler in [handler for handler in _log.handlers if isinstance(handler, _Lines)]:
        _log.removeHandler(handler)
        _log.setLevel(logging.NOTSET)
        _log.propagate = True
    if settings.get("CONTEXT_VERBOSE_DEBUG", "").strip().lower() in TRUTHY:
        _log.setLevel(logging.DEBUG)
        if writes_json():
            return
        lines = _Lines()
        lines.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        _log.addHandler(lines)
        _log.propagate = False  # Otherwise another handler would print each line again.
