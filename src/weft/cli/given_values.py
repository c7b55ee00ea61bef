"""Values of variables as they are given on the command line: NAME=VALUE."""

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from weft.cli.failure import not_found, usage
from weft.engine.book import Rulebook
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import nearest
from weft.spec.type_meaning import coerce_text

#: The option with which values are given.
Given: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="NAME=VALUE",
        help="Give a variable a value of its type; may be repeated.",
        consume_multiple=False,
        negative="",
    ),
]


def read_values(book: Rulebook, given: Sequence[str]) -> Mapping[str, Json]:
    """Return the values, each as the type of its variable wants it."""
    values: dict[str, Json] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise usage(f'"{pair}" gives no variable a value', "write --set NAME=VALUE")
        if name in values:
            raise usage(f"{name} is given twice", "keep one of them")
        values[name] = _value(book, name, text)
    return values


def _value(book: Rulebook, name: str, text: str) -> Json:
    variable = book.variables.get(name)
    if variable is None:
        near = nearest(name, book.variables)
        there = f"there is: {', '.join(book.variables) or 'none'}"
        raise not_found(f"there is no variable {name}", f"did you mean {near}?" if near else there)
    try:
        return coerce_text(variable.type, text, models=book.models)
    except ExpressionError as error:
        raise usage(f"{name}: {error}", f"write --set {name}=VALUE with such a value") from error
