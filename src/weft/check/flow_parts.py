"""The parts of a flow with their paths in the spec, and the types of its state."""

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias, cast

from weft.check.answer_schema import UnknownKey
from weft.check.parts import kinds_in, owned
from weft.check.subject import Subject
from weft.check.values import variable_types
from weft.findings import Path
from weft.spec import flow as spec
from weft.spec.type_meaning import Models
from weft.spec.types import ANY, DictOf, OptionalOf, Ref, Scalar, TypeExpr, UnionOf
from weft.spec.variables import DerivedSource

NODES: Final = kinds_in(spec.Node)
_WORKS: Final = kinds_in(spec.Work)
_SOURCES: Final = kinds_in(spec.StepIngredient)

#: What surrounds a part, where that changes what the part may do. Steps of a failure path are not
#: undone ("aside"); a path of a fork inside a failure path undoes its own steps.
Inside: TypeAlias = set[Literal["fork", "failure", "aside"]]


def inside(path: Path) -> Inside:
    """Return what surrounds a part of a flow, by its path."""
    found: Inside = set()
    for at, step in enumerate(path):
        if step == "paths":
            found.add("fork")
            found.discard("aside")
        # After the failure path of a fork path, the path goes on.
        elif step == "on_failure" and "paths" not in path[max(at - 2, 0) : at]:
            found.update(("failure", "aside"))
    return found


def works(subject: Subject) -> Iterator[tuple[Path, spec.Step, spec.Work]]:
    """Yield the work of each step and its compensation."""
    return cast("Iterator[tuple[Path, spec.Step, spec.Work]]", owned(subject, spec.Step, *_WORKS))


def sources(subject: Subject) -> Iterator[tuple[Path, spec.Step, spec.StepIngredient]]:
    return cast(
        "Iterator[tuple[Path, spec.Step, spec.StepIngredient]]",
        owned(subject, spec.Step, *_SOURCES),
    )


# -- the state


def state_fields(subject: Subject) -> tuple[str, ...]:
    """Return the names of the fields of the state, which steps may set."""
    return tuple(name for name, _ in subject.sources(DerivedSource))


def type_at(subject: Subject, name: str) -> TypeExpr | UnknownKey:
    """Return the type of a variable or of a part of it; `any` if it is not declared."""
    first, *rest = name.split(".")
    if first not in subject.variable_names:
        return UnknownKey(first, 0, tuple(sorted(subject.variable_names)))
    type_: TypeExpr = subject.once(variable_types).get(first, ANY)
    offset = len(first) + 1
    for step in rest:
        found = _part(type_, step, subject.models)
        if found is None:
            return UnknownKey(step, offset, tuple(_keys(type_, subject.models)))
        type_, offset = found, offset + len(step) + 1
    return type_


def _part(type_: TypeExpr, key: str, models: Models) -> TypeExpr | None:
    """Return the type of the value at a key, or None if there is none."""
    match type_:
        case OptionalOf(of):
            inner = _part(of, key, models)
            return inner if inner is None or isinstance(inner, OptionalOf) else OptionalOf(inner)
        case UnionOf(members):
            found = [
                inner for member in members if (inner := _part(member, key, models)) is not None
            ]
            return ANY if len(found) > 1 else next(iter(found), None)
        case DictOf(of):
            return of
        case Ref(name):
            return models[name].get(key)
        case Scalar("any"):
            return type_
        case _:
            return None


def _keys(type_: TypeExpr, models: Models) -> Iterator[str]:
    match type_:
        case OptionalOf(of):
            yield from _keys(of, models)
        case UnionOf(members):
            for member in members:
                yield from _keys(member, models)
        case Ref(name):
            yield from models[name]
        case _:
            return
