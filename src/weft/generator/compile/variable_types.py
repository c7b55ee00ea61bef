"""Types of planned variables, by their names: a plan says what a variable is for, not its type."""

from typing import Final

from weft.generator.compile.texts import words_of
from weft.spec.part import JsonValue
from weft.spec.plan import PlannedVariable, SourceKind

_DOCUMENTS: Final = frozenset[SourceKind](
    {"data_reference", "database", "data_entity", "entity", "external"}
)
_SETTABLE: Final = frozenset[SourceKind]({"state", "derived", "data_entity", "entity"})
_FLAGS: Final = frozenset(
    {"is", "has", "needs", "can", "should", "ready", "complete", "completed", "done", "enabled"}
    | {"approved", "accepted", "confirmed", "resolved", "flag", "verified"}
)
_NUMBERS: Final = frozenset(
    {"count", "number", "limit", "max", "min", "total", "days", "hours", "minutes", "seconds"}
    | {"attempts", "retries", "threshold", "score", "age", "size", "timeout"}
)
_LISTS: Final = frozenset({"list", "items", "history", "notes", "tags", "results", "findings"})

#: What a variable of a type is before anything has set it.
DEFAULTS: Final[dict[str, JsonValue]] = {
    "bool": False,
    "int": 0,
    "str": "",
    "list[str]": [],
    "dict": {},
}


def type_of(variable: PlannedVariable) -> str:
    """Return the type of a variable: documents are objects, all else goes by its name.

    >>> type_of(PlannedVariable(name="retry_limit", type="config", purpose=""))
    'int'
    """
    if variable.type in _DOCUMENTS:
        return "dict"
    if variable.type == "computed":
        return "bool"
    words = words_of(variable.name)
    if words and (words[0] in _FLAGS or words[-1] in _FLAGS):
        return "bool"
    if not _NUMBERS.isdisjoint(words):
        return "int"
    return "list[str]" if words and words[-1] in _LISTS else "str"


def is_set_by_run(variable: PlannedVariable) -> bool:
    """Tell whether tools may set a variable."""
    return variable.type in _SETTABLE
