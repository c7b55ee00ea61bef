"""Patterns of triggers: regular expressions that take no longer for a text than it is long."""

from collections.abc import Callable
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from weft.errors import ExpressionError

#: A pattern beyond this is no text to look for.
MAX_LENGTH: Final = 1000

_MENDING: Final = "correct the pattern; write a backslash before a sign that is meant literally"

#: Before the pattern as the engine prints it when something is wrong with it.
_INDENT: Final = "    "


def pattern(text: str) -> Callable[[str], bool]:
    """Return what tells whether a pattern is found in a text.

    The engine that pydantic uses matches in one pass. Patterns that would need more, such as those
    that look around or refer back, it refuses: ExpressionError says so.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"it is longer than {MAX_LENGTH} characters",
            offset=MAX_LENGTH,
            hint="look for a shorter text, or use several triggers",
        )
    schema = core_schema.str_schema(pattern=text, regex_engine="rust-regex", strict=True)
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError as error:
        raise _explained(str(error)) from error


def _explained(said: str) -> ExpressionError:
    """Return what the engine says: the place is marked below the pattern, the reason follows."""
    *drawn, reason = said.strip().splitlines()
    marks = drawn[-1].removeprefix(_INDENT) if drawn else ""
    offset = marks.index("^") if marks.strip("^ ") == "" and "^" in marks else 0
    return ExpressionError(reason.removeprefix("error: ").strip(), offset=offset, hint=_MENDING)
