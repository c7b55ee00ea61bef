"""Who may set a variable to what. Every write passes here before it is put down."""

from collections.abc import Mapping

from weft.engine.book import Rulebook
from weft.findings import Json
from weft.spec.sources import DerivedSource, EntitySource
from weft.spec.type_meaning import mismatch


def refusal(
    book: Rulebook, values: Mapping[str, Json], name: str, value: Json, *, writer: str
) -> str | None:
    """Say why a write is refused, or None if it may be made.

    `writer` is `trigger`, or the name of the tool or agent that writes.
    """
    variable = book.variables.get(name)
    if variable is None:
        return f"there is no variable {name}"
    source = variable.source
    if not isinstance(source, DerivedSource | EntitySource):
        return f"{name} comes from {source.type} and cannot be set"
    if writer != "trigger" and variable.writers is not None and writer not in variable.writers:
        return f"{writer} is not among the writers of {name}"
    fault = None if value is None else mismatch(variable.type, value, book.models)
    if fault:
        return f"{name}: {fault}"
    if isinstance(source, DerivedSource) and source.transitions and value != values.get(name):
        steps = {(step.from_, step.to) for step in source.transitions}
        if (values.get(name), value) not in steps:
            return f"{name} does not change from {values.get(name)!r} to {value!r}"
    return None
