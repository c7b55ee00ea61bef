"""Mistakes that a builder is told of at once: the same findings as those of a checker."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from weft.catalogue import CATALOGUE
from weft.errors import CheckFailed
from weft.findings import Finding, Place
from weft.spec.part import Part

PartT = TypeVar("PartT", bound=Part)


def refusal(code: str, fact: str, *hint: str, of: object = None) -> CheckFailed:
    """Return the error for one mistake; `of` is the function that it was made in."""
    written = getattr(of, "__code__", None)
    place = Place(written.co_filename, written.co_firstlineno) if written else Place("the flow")
    return failed(fact, [Finding(code, CATALOGUE[code].severity, fact, place, hint=hint)])


def failed(message: str, findings: Iterable[Finding]) -> CheckFailed:
    """Return an error that shows all findings, in a traceback too."""
    found = tuple(findings)
    error = CheckFailed(message, found)
    for it in found:
        hint = f" ({'; '.join(it.hint)})" if it.hint else ""
        error.add_note(f"{it.place}: {it.code} {it.message}{hint}")
    return error


def made(part: type[PartT], **fields: Any) -> PartT:  # noqa: ANN401 - the fields of the part
    """Return a part of the spec, or refuse a value of a kind that it cannot have."""
    try:
        return part(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(it) for it in first["loc"])
        fact = f"{part.__name__}: {place} cannot be {first['input']!r}: {first['msg']}"
        raise refusal("FLOW034", fact) from error


def require_function(it: object, what: str, example: str) -> Callable[..., Any]:
    """Return what is called with a builder, or refuse something else."""
    if not callable(it) or isinstance(it, type):
        raise refusal("FLOW034", f"{what} is a function, not {it!r}", f"write {example}")
    return it
