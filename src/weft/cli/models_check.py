"""What `weft doctor` finds out about models: the settings, the keys, and no call."""

from collections.abc import Iterator, Mapping

from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY
from weft.adapters.system_clock import SystemClock
from weft.app.models import ANY_MODEL, NO_MODEL
from weft.app.registries import open_registry
from weft.app.settings import durability_of, tool_limits
from weft.cli.answering_models import is_badged
from weft.cli.diagnosis import Diagnosis
from weft.environment import read_environment
from weft.errors import UsageError


def models_check() -> Diagnosis:
    """Look whether the models that the environment names could be asked, and which keys it has."""
    settings = read_environment()
    usual = settings.get("WEFT_MODEL") or NO_MODEL
    try:
        _refuse_wrong(settings, usual)
    except UsageError as error:
        return Diagnosis("fail", "models", str(error), error.hint or "")
    keys = [name for name in _key_settings() if settings.get(name)]
    told = f"keys: {', '.join(keys)}" if keys else "no key is set"
    return Diagnosis("ok", "models", f"{usual} where none is named; {told}")


def _refuse_wrong(settings: Mapping[str, str], usual: str) -> None:
    """Raise what every run would raise because of a setting, or of a model that is named in one."""
    registry, fallbacks = open_registry(settings, SystemClock())
    tool_limits(settings)
    durability_of(settings)
    for name in (usual, *fallbacks, *fallbacks.values()):
        if name != ANY_MODEL and not is_badged(name):
            registry.model(name)


def _key_settings() -> Iterator[str]:
    """Yield the settings that hold keys."""
    yield from (it.key_setting for it in COMPATIBLE.values() if it.key_setting)
    for library in THROUGH_LIBRARY.values():
        yield from (name for argument, name in library.arguments if argument == "api_key")
