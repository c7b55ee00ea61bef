"""Secrets: values that tools may read and that no event ever holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.engine.compiled import CompiledWorkflow
from weft.findings import Json
from weft.runtime.variables.values import from_environment
from weft.spec.variables import EnvironmentSource


def secret_values(compiled: CompiledWorkflow, environment: Mapping[str, str]) -> dict[str, Json]:
    """Return the values of a workflow's secret variables as they are now."""
    return {
        name: from_environment(compiled, name, variable.source, environment)
        for name, variable in compiled.variables.items()
        if variable.secret and isinstance(variable.source, EnvironmentSource)
    }


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """An answer with what a person has typed into its secret fields."""

    value: Json
    secrets: tuple[Json, ...]

    def __repr__(self) -> str:
        return "TypedAnswer(...)"


class SecretAnswers:
    """What people have typed into secret fields: in memory, until the call is over that asked.

    No journal keeps it. A call that is made anew in another process asks again.
    """

    def __init__(self) -> None:
        self._typed: dict[tuple[str, str], TypedAnswer] = {}

    def keep(self, app: str, request: str, value: Json, secrets: Iterable[Json]) -> None:
        """Keep an answer for the call that asked."""
        self._typed[app, request] = TypedAnswer(value, tuple(secrets))

    def get(self, app: str, request: str) -> TypedAnswer | None:
        """Return an answer as it was typed; None if it has no secrets, or they are gone."""
        return self._typed.get((app, request))

    def forget(self, app: str, prefix: str) -> None:
        """Forget the answers to the questions of a call."""
        for key in [it for it in self._typed if it[0] == app and it[1].startswith(prefix)]:
            del self._typed[key]
