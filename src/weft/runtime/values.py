"""The values a run starts with: those that come from outside the package."""

from collections.abc import Mapping

from weft.engine.book import Rulebook
from weft.errors import ExpressionError, UsageError
from weft.findings import Json
from weft.spec.sources import EnvironmentSource
from weft.spec.type_meaning import coerce_text, mismatch


def start_values(
    book: Rulebook,
    *,
    environment: Mapping[str, str],
    production: bool,
    given: Mapping[str, Json],
) -> dict[str, Json]:
    """Return the values that are not in the package: from the environment, and given ones.

    In production no variable comes from the environment, as if it were not declared.
    """
    values: dict[str, Json] = {}
    for name, variable in book.variables.items():
        if isinstance(variable.source, EnvironmentSource):
            values[name] = (
                None if production else _from_environment(book, name, variable.source, environment)
            )
    for name, value in given.items():
        values[name] = _given(book, name, value)
    return values


def _from_environment(
    book: Rulebook, name: str, source: EnvironmentSource, environment: Mapping[str, str]
) -> Json:
    text = environment.get(source.env_var)
    if text is None:
        if source.required:
            raise UsageError(
                f"{name} needs the environment variable {source.env_var}",
                hint=f"set {source.env_var}, or give {name} a default and required: false",
            )
        return source.default
    try:
        return coerce_text(book.variables[name].type, text, models=book.models)
    except ExpressionError as error:
        raise UsageError(
            f"the environment variable {source.env_var} does not fit {name}: {error}",
            hint=f"give {source.env_var} a value of the declared type",
        ) from error


def _given(book: Rulebook, name: str, value: Json) -> Json:
    variable = book.variables.get(name)
    if variable is None:
        raise UsageError(f"there is no variable {name}", hint="see: weft inspect, or the package")
    if variable.source.type not in {"derived", "environment"}:
        raise UsageError(
            f"{name} comes from {variable.source.type} and cannot be given at the start"
        )
    fault = mismatch(variable.type, value, book.models)
    if fault:
        raise UsageError(f"{name}: {fault}", hint="give a value of the declared type")
    return value
