"""Queries by which documents are found: whether a store can be asked them, and for whom."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from weft.check.rules.comparisons import Kind, kinds_of
from weft.check.subject import Subject
from weft.check.values import variable_types
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import TENANT_VARIABLES
from weft.spec.part import JsonMap
from weft.spec.queries import parse_query
from weft.spec.templates import Reference, parse_template

#: What stands for the value of a variable, by the kind it is of, and what operators look for.
_STAND_INS: Final[dict[Kind, Json]] = {"text": "", "number": 0, "truth": True, "list": []}
_WANTED: Final[dict[str, Kind]] = {"$in": "list", "$exists": "truth"}
_OWN_TENANT: Final = tuple(f"{{{name}}}" for name in TENANT_VARIABLES)


@dataclass(frozen=True, slots=True)
class QueryFault:
    """What keeps a query from being asked, where in it, and what to do."""

    path: Path
    fact: str
    hint: str


def query_faults(subject: Subject, template: JsonMap) -> Iterator[QueryFault]:
    """Yield what a store of documents would refuse in a query, whatever the values are."""
    try:
        parse_query(cast("JsonMap", _filled(subject, template, "")))
    except ExpressionError as error:
        hint = error.hint or "correct the query"
        yield QueryFault((), f"cannot be asked: {error}", hint)
    for path in _tenants(template, ()):
        fact = f"names a tenant by {path[-1]}: a run finds the documents of its own tenant alone"
        yield QueryFault(path, fact, f'take "{path[-1]}" out of the query')


def _filled(subject: Subject, part: Json, key: str) -> Json:
    """Return a query with values such as the variables have that it puts in."""
    match part:
        case dict():
            fields = cast("JsonMap", part)
            return {name: _filled(subject, it, name) for name, it in fields.items()}
        case list():
            return [_filled(subject, it, key) for it in cast("list[Json]", part)]
        case str():
            pieces = parse_template(part)
            alone = pieces[0] if len(pieces) == 1 else None
            return _value(subject, alone.name, key) if isinstance(alone, Reference) else part
        case _:
            return part


def _value(subject: Subject, name: str, key: str) -> Json:
    """Return what may stand for a variable, of the kind that is looked for if it can be."""
    type_ = subject.once(variable_types).get(name)
    kinds = set(_STAND_INS) if type_ is None else kinds_of(type_)
    fitting: list[Kind] = [kind for kind in _STAND_INS if kind in kinds]
    if not fitting:
        raise ExpressionError(
            f"{name} is an object", hint="put in one of its fields, as a variable of its own"
        )
    wanted = _WANTED.get(key, fitting[0])
    return _STAND_INS[wanted if wanted in fitting else fitting[0]]


def _tenants(query: JsonMap, path: Path) -> Iterator[Path]:
    """Yield where a query names a tenant other than by the run's own."""
    for key, value in query.items():
        if key in TENANT_VARIABLES and (path or value not in _OWN_TENANT):
            yield (*path, key)
        for index, inner in enumerate(cast("list[Json]", value) if isinstance(value, list) else ()):
            if key.startswith("$") and isinstance(inner, dict):
                yield from _tenants(cast("JsonMap", inner), (*path, key, index))
