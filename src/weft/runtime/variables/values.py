"""Values a run starts with, and the secrets that no event holds."""

import ast
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.check.code.functions import read_in
from weft.engine.compiled import CompiledWorkflow
from weft.errors import ExpressionError, UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.runtime.variables.json_values import plain_json
from weft.runtime.workflow import Workflow, unpack
from weft.spec.type_meaning import coerce_text, validation_error
from weft.spec.variables import EnvironmentSource

_log: Final = logging.getLogger("weft.context")

#: The sources of variables whose values may be given when a run starts.
_GIVABLE: Final = frozenset({"derived", "environment"})


def start_values(
    workflow: Workflow,
    *,
    environment: Mapping[str, str],
    given: Mapping[str, Json],
    kept: Mapping[str, Json],
) -> dict[str, Json]:
    """Return the values that are not in the package: from the environment, kept and given ones.

    Secrets are looked for, so that a run does not begin without them, but their values stay
    outside. Suppressed variables are removed, wherever they come from.
    """
    compiled = workflow.compiled
    values: dict[str, Json] = {}
    for name, variable in compiled.variables.items():
        if isinstance(variable.source, EnvironmentSource):
            found = from_environment(compiled, name, variable.source, environment)
            if not variable.secret:
                values[name] = found
            elif found is not None:
                values[name] = None  # It is set; its value stays outside.
            else:
                _require_unread(workflow, name, variable.source)
        elif name in kept and _still_fits(compiled, name, kept[name]):
            values[name] = kept[name]
    for name, value in given.items():
        values[name] = _given(compiled, name, value)
    purged = [name for name in values if name in workflow.suppressed]
    if purged:
        _log.warning("%s: %s do not exist here and were taken out", workflow.name, purged)
    return {name: value for name, value in values.items() if name not in purged}


def _require_unread(workflow: Workflow, name: str, source: EnvironmentSource) -> None:
    """Raise UsageError if code of the package reads a secret that is not set.

    One whose type allows None, or that is read with a default, may be missing.
    """
    compiled = workflow.compiled
    if not validation_error(compiled.variables[name].type, None, compiled.models):
        return
    for path, code in unpack(workflow.package)[1].items():
        if path.endswith(".py") and any(_reads(node, name) for node in ast.walk(ast.parse(code))):
            raise UsageError(
                f"{path} reads the secret {name}, and the environment variable {source.env_var} "
                "is not set",
                hint=f"set {source.env_var}, or declare {name} as optional[...]",
            )


def _reads(node: ast.AST, name: str) -> bool:
    has_default = isinstance(node, ast.Call) and len(node.args) + len(node.keywords) > 1
    found = None if has_default else read_in(node)
    return found is not None and found[1] == name


def _still_fits(compiled: CompiledWorkflow, name: str, value: Json) -> bool:
    """Tell whether an earlier run's value is one; the package may declare another type now."""
    return value is None or not validation_error(
        compiled.variables[name].type, value, compiled.models
    )


def from_environment(
    compiled: CompiledWorkflow, name: str, source: EnvironmentSource, environment: Mapping[str, str]
) -> Json:
    """Return what the environment says a variable is; raises UsageError if it does not fit."""
    text = environment.get(source.env_var)
    if text is None:
        if source.required:
            raise UsageError(
                f"{name} needs the environment variable {source.env_var}",
                hint=f"set {source.env_var}, or give {name} a default and required: false",
            )
        return source.default
    try:
        return coerce_text(compiled.variables[name].type, text, models=compiled.models)
    except ExpressionError as error:
        raise UsageError(
            f"the environment variable {source.env_var} does not fit {name}: {error}",
            hint=f"give {source.env_var} a value of the declared type",
        ) from error


def _given(compiled: CompiledWorkflow, name: str, value: Json) -> Json:
    variable = compiled.variables.get(name)
    if variable is None:
        near = nearest(name, compiled.variables)
        known = ", ".join(compiled.variables) or "none"
        hint = f"did you mean {near}?" if near else f"available: {known}"
        raise UsageError(f"there is no variable {name}", hint=hint)
    if variable.source.type not in _GIVABLE:
        raise UsageError(
            f"{name} comes from {variable.source.type} and cannot be given at the start",
            hint=f"these can be given: {', '.join(_givable(compiled)) or 'none'}",
        )
    return open_value(compiled, name, value)


def _givable(compiled: CompiledWorkflow) -> list[str]:
    return [
        name
        for name, it in compiled.variables.items()
        if it.source.type in _GIVABLE and not it.secret
    ]


def open_value(compiled: CompiledWorkflow, name: str, value: Json) -> Json:
    """Return a value as it is written down; raises UsageError if it does not fit or may not be."""
    if compiled.variables[name].secret:
        raise UsageError(f"{name} is secret and cannot be given", hint="set it where Weft runs")
    try:
        plain = plain_json(value)
    except ValueError as error:
        raise UsageError(f"{name} cannot be {error}") from error
    fault = (
        None
        if plain is None
        else validation_error(compiled.variables[name].type, plain, compiled.models)
    )
    if fault:
        raise UsageError(f"{name}: {fault}", hint="give a value of the declared type")
    return plain


def fitting_text(text: str | None) -> str | None:
    """Return words of a person; raises UsageError for none, or what no file could hold."""
    if text is None:
        return None
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a message is text, not {type(text).__name__}")
    refuse_empty(text, "say something, or leave it out and the workflow begins without")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the message is not valid Unicode text") from error
    return text


def refuse_empty(message: str, hint: str) -> None:
    """Refuse a message that says nothing: an agent would be asked to answer it all the same."""
    if not message.strip():
        raise UsageError("the message is empty", hint=hint)


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
