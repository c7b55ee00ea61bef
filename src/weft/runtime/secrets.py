"""Secrets: values that tools may read and that no event ever holds."""

from collections.abc import Mapping
from typing import Final, cast

from weft.engine.compiled import CompiledWorkflow
from weft.engine.conditions import same
from weft.findings import Json
from weft.runtime.values import from_environment
from weft.spec.variables import EnvironmentSource

#: What stands where a secret would.
MASK: Final = "(secret)"

#: Shorter ones would blot out harmless text; they are hidden where they stand alone.
_SHORTEST: Final = 6


def secret_values(compiled: CompiledWorkflow, environment: Mapping[str, str]) -> dict[str, Json]:
    """Return the values of a workflow's secret variables as they are now."""
    return {
        name: from_environment(compiled, name, variable.source, environment)
        for name, variable in compiled.variables.items()
        if variable.secret and isinstance(variable.source, EnvironmentSource)
    }


def masked(value: Json, secrets: Mapping[str, Json]) -> Json:
    """Return a value without the secrets, should any be in it."""
    hidden = [it for it in secrets.values() if it is not None and not isinstance(it, bool)]
    return _masked(value, hidden) if hidden else value


def _masked(value: Json, hidden: list[Json]) -> Json:
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        return {
            cast("str", _masked(key, hidden)): _masked(it, hidden) for key, it in fields.items()
        }
    if isinstance(value, list):
        return [_masked(it, hidden) for it in cast("list[Json]", value)]
    if any(same(value, secret) for secret in hidden):
        return MASK
    if isinstance(value, str):
        for secret in hidden:
            if isinstance(secret, str) and len(secret) >= _SHORTEST:
                value = value.replace(secret, MASK)
    return value
