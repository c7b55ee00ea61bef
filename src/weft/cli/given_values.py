"""Values of variables as they are given on the command line: NAME=VALUE."""

import json
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from weft.cli.failure import CommandFailed, not_found, usage
from weft.engine.compiled import CompiledWorkflow
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import nearest
from weft.spec.type_meaning import coerce_text
from weft.spec.types import LiteralOf, OptionalOf, TypeExpr, print_type

#: The option with which values are given.
Given: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="NAME=VALUE",
        help="Give a variable a value: text as it is, lists and objects as JSON; may be repeated.",
        consume_multiple=False,
        negative="",
    ),
]


def read_values(compiled: CompiledWorkflow, given: Sequence[str]) -> Mapping[str, Json]:
    """Return the values, each as the type of its variable wants it."""
    values: dict[str, Json] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise usage(f'"{pair}" gives no variable a value', "write --set NAME=VALUE")
        if name in values:
            raise usage(f"{name} is given twice", "keep one of them")
        values[name] = _value(compiled, name, text)
    return values


def _value(compiled: CompiledWorkflow, name: str, text: str) -> Json:
    variable = compiled.variables.get(name)
    if variable is None:
        near = nearest(name, compiled.variables)
        there = f"there is: {', '.join(compiled.variables) or 'none'}"
        raise not_found(f"there is no variable {name}", f"did you mean {near}?" if near else there)
    try:
        return coerce_text(variable.type, text, models=compiled.models)
    except ExpressionError as error:
        raise _unfit(name, variable.type, error.hint or "write a value of this type") from error


def _unfit(name: str, type_: TypeExpr, remedy: str) -> CommandFailed:
    chosen = type_.of if isinstance(type_, OptionalOf) else type_
    if isinstance(chosen, LiteralOf):
        words = [it if isinstance(it, str) else json.dumps(it) for it in chosen.values]
        return usage(
            f"the value given for {name} is not one of: {', '.join(words)}",
            f"write one of them: --set {quote(f'{name}={words[0]}')}",
        )
    return usage(
        f"the value given for {name} does not fit its type {print_type(type_)}",
        f"{remedy}: --set {name}=VALUE",
    )
