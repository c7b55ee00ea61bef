"""Values that stand in declarations, and the types they should have."""

from collections.abc import Iterator
from typing import Final, cast

from weft.check.subject import Subject
from weft.findings import Json, Path
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.sources import ComputedSource, StaticSource
from weft.spec.type_meaning import Models, mismatch, references
from weft.spec.types import Scalar, TypeExpr

_TEXT: Final = Scalar("str")


def variable_types(subject: Subject) -> dict[str, TypeExpr]:
    """Return the types of all variables, save those that need a model nobody declares."""
    types: dict[str, TypeExpr] = dict.fromkeys(BUILT_IN_VARIABLES, _TEXT)
    types |= {name: variable.type for name, variable in subject.spec.variables.items()}
    return {name: type_ for name, type_ in types.items() if is_complete(type_, subject.models)}


def is_complete(type_: TypeExpr, models: Models) -> bool:
    """Tell whether every model a type needs is declared; OUT001 reports those that are not."""
    waiting, met = list(references(type_)), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in models:
            return False
        if name not in met:
            met.add(name)
            waiting += [inner for field in models[name].values() for inner in references(field)]
    return True


def misfit(type_: TypeExpr, value: Json, models: Models) -> str | None:
    """Say why a value does not fit a type, if the type is one that can be compared with."""
    return mismatch(type_, value, models) if is_complete(type_, models) else None


def declared_values(subject: Subject) -> Iterator[tuple[str, Path, Json]]:
    """Yield the constant or default of each variable that has one, with its place."""
    for name, variable in subject.spec.variables.items():
        source = variable.source
        if isinstance(source, StaticSource):
            yield name, ("variables", name, "source", "value"), source.value
        elif not isinstance(source, ComputedSource) and source.default is not None:
            yield name, ("variables", name, "source", "default"), source.default


def texts_in(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield every text inside a value with its place; keys of objects are in the places."""
    waiting: list[tuple[Path, Json]] = [(path, value)]
    while waiting:
        at, part = waiting.pop()
        if isinstance(part, str):
            yield at, part
        elif isinstance(part, dict):
            entries = cast("dict[str, Json]", part).items()
            waiting += [((*at, key), inner) for key, inner in entries]
        elif isinstance(part, list):
            items = enumerate(cast("list[Json]", part))
            waiting += [((*at, index), inner) for index, inner in items]
