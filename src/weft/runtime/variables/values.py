"""The initial values of a run, and secrets, which no event contains."""

import ast
import logging
from collections.abc import Mapping
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
    """Return the initial values from the environment, from earlier runs and from the caller.

    Secrets must be set, but their values are not returned. Suppressed variables are removed.
    """
    compiled = workflow.compiled
    values: dict[str, Json] = {}
    for name, variable in compiled.variables.items():
        if isinstance(variable.source, EnvironmentSource):
            found = from_environment(compiled, name, variable.source, environment)
            if not variable.secret:
                values[name] = found
            elif found is not None:
                values[name] = None  # It is set; its value is not recorded.
            else:
                _require_unread(workflow, name, variable.source)
        elif name in kept and _still_fits(compiled, name, kept[name]):
            values[name] = kept[name]
    for name, value in given.items():
        values[name] = _check_start_value(compiled, name, value)
    purged = [name for name in values if name in workflow.suppressed]
    if purged:
        _log.warning("%s: %s do not exist here and were removed", workflow.name, purged)
    return {name: value for name, value in values.items() if name not in purged}


def _require_unread(workflow: Workflow, name: str, source: EnvironmentSource) -> None:
    """Raise UsageError if the code of the package reads a secret that is not set.

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
    """Return whether the value of an earlier run is valid for the current type."""
    return value is None or not validation_error(
        compiled.variables[name].type, value, compiled.models
    )


def from_environment(
    compiled: CompiledWorkflow, name: str, source: EnvironmentSource, environment: Mapping[str, str]
) -> Json:
    """Return the value of an environment variable; raises UsageError if it is invalid."""
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
            f"the environment variable {source.env_var} is invalid for {name}: {error}",
            hint=f"give {source.env_var} a value of the declared type",
        ) from error


def _check_start_value(compiled: CompiledWorkflow, name: str, value: Json) -> Json:
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
        for name, variable in compiled.variables.items()
        if variable.source.type in _GIVABLE and not variable.secret
    ]


def open_value(compiled: CompiledWorkflow, name: str, value: Json) -> Json:
    """Return a value as recorded; raises UsageError if it is invalid or not allowed."""
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


def secret_values(compiled: CompiledWorkflow, environment: Mapping[str, str]) -> dict[str, Json]:
    """Return the current values of a workflow's secret variables."""
    return {
        name: from_environment(compiled, name, variable.source, environment)
        for name, variable in compiled.variables.items()
        if variable.secret and isinstance(variable.source, EnvironmentSource)
    }
