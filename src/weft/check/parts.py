"""Every part of a spec with its path: one walk, from which each rule selects its parts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast, get_args

from weft.check.subject import Subject
from weft.findings import Path
from weft.spec.part import Part

P_co = TypeVar("P_co", bound=Part, covariant=True)
PartT = TypeVar("PartT", bound=Part)
OwnerT = TypeVar("OwnerT", bound=Part)


@dataclass(frozen=True, slots=True)
class Placed(Generic[P_co]):
    """A part, its path in the spec, and the parts around it, the outermost first."""

    path: Path
    part: P_co
    around: tuple[Part, ...]

    def inside(self, kind: type[OwnerT]) -> OwnerT | None:
        """Return the nearest part of a kind around this one, or None."""
        return next((part for part in reversed(self.around) if isinstance(part, kind)), None)

    def at(self, field: str) -> Path:
        """Return the path of a field."""
        return (*self.path, type(self.part).model_fields[field].alias or field)

    def describe(self, template: str, **words: object) -> str:
        """Fill a template for messages with fields of this part and those around it.

        `key` is the name of the variable or agent by which the spec holds them.
        """
        kinds = {type(part).__name__: part for part in (*self.around, self.part)}
        return template.format_map({**kinds, "key": "".join(map(str, self.path[1:2])), **words})


def kinds_in(union: object) -> tuple[type[Part], ...]:
    """Return the members of a union of parts, as the spec declares them."""
    return get_args(get_args(union)[0])


def placed_parts(subject: Subject, *kinds: type[PartT]) -> tuple[Placed[PartT], ...]:
    """Return the parts of some kinds, in the order of the files."""
    known = subject.once(_parts)
    if kinds not in known:
        whole = known[()]
        known[kinds] = tuple(placed for placed in whole if isinstance(placed.part, kinds))
    return cast("tuple[Placed[PartT], ...]", known[kinds])


def parts_of(subject: Subject, *kinds: type[PartT]) -> Iterator[tuple[Path, PartT]]:
    """Yield the parts of some kinds, each with its path."""
    return ((placed.path, placed.part) for placed in placed_parts(subject, *kinds))


def owned(
    subject: Subject, owner: type[OwnerT], *kinds: type[PartT]
) -> Iterator[tuple[Path, OwnerT, PartT]]:
    """Yield the parts of some kinds inside a part of another, with that one."""
    for placed in placed_parts(subject, *kinds):
        around = placed.inside(owner)
        if around is not None:
            yield placed.path, around, placed.part


def values_of(placed: Placed[Part], field: str) -> Iterator[tuple[Path, object]]:
    """Yield the values of a field: its own, the items of a list, or the keys of an object.

    Of an object that holds lists, the items of these.
    """
    path, value = placed.at(field), getattr(placed.part, field)
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            is_list = isinstance(inner, tuple)
            yield from _items((*path, key), cast("object", inner) if is_list else key)
    elif value is not None:
        yield from _items(path, value)


def _items(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        yield from (((*path, index), item) for index, item in enumerate(items))
    else:
        yield path, value


def _parts(subject: Subject) -> dict[tuple[type[Part], ...], tuple[Placed[Part], ...]]:
    return {(): tuple(_walk(subject.spec, (), ()))}


def _walk(part: Part, path: Path, around: tuple[Part, ...]) -> Iterator[Placed[Part]]:
    yield Placed(path, part, around)
    for name, field in type(part).model_fields.items():
        value, key = getattr(part, name), field.alias or name
        if isinstance(value, Part):
            yield from _walk(value, (*path, key), (*around, part))
            continue
        entries: Iterable[tuple[str | int, object]] = ()
        if isinstance(value, tuple):
            entries = enumerate(cast("tuple[object, ...]", value))
        elif isinstance(value, dict):
            entries = cast("dict[str, object]", value).items()
        for at, item in entries:
            if isinstance(item, Part):
                yield from _walk(item, (*path, key, at), (*around, part))
