"""Comparisons that the types of variables rule out: they never hold, or have no answer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.check.spelling import short
from weft.check.values import format_value
from weft.ids import nearest
from weft.spec.condition_parser import mentions, parse_condition
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or, Scalar, Value
from weft.spec.type_meaning import Models, validation_error
from weft.spec.types import ListOf as ListType
from weft.spec.types import LiteralOf, OptionalOf, TypeExpr, UnionOf, print_type
from weft.spec.types import Scalar as ScalarType

Kind: TypeAlias = Literal["text", "number", "truth", "list", "object"]

_EVERY_KIND: Final[frozenset[Kind]] = frozenset({"text", "number", "truth", "list", "object"})
_SCALAR_KINDS: Final[Mapping[str, frozenset[Kind]]] = {
    "str": frozenset({"text"}),
    "int": frozenset({"number"}),
    "float": frozenset({"number"}),
    "bool": frozenset({"truth"}),
    "any": _EVERY_KIND,
}
_ORDERED: Final[frozenset[Kind]] = frozenset({"text", "number"})
_HOLDING: Final[frozenset[Kind]] = frozenset({"text", "list", "object"})

#: Words for true and false, with the spelling of conditions and values.
TRUTHS: Final = {
    "true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false",
}  # fmt: skip
_OTHERWISE: Final = ("compare it with a value of its type, or change the type",)


@dataclass(frozen=True, slots=True)
class ImpossibleComparison:
    """A comparison that the types rule out; `offset` is that of its first variable."""

    fact: str
    hint: tuple[str, ...]
    offset: int
    length: int


def objections(
    text: str, types: Mapping[str, TypeExpr], models: Models, *, paths: bool = False
) -> Iterator[ImpossibleComparison]:
    """Yield the comparisons of a condition that the types rule out; unknown types are skipped."""
    places = (offset for _, offset in mentions(text, paths=paths))
    for compare, offsets in _comparisons(parse_condition(text, paths=paths), places):
        names = [side.name for side in (compare.left, compare.right) if isinstance(side, Name)]
        if any(name not in types for name in names):
            continue
        found = _Typed(types, models).objection(compare)
        if found:
            fact, hint = found
            yield ImpossibleComparison(fact, hint, offsets[0], len(names[0]))


def _comparisons(
    condition: Condition, places: Iterator[int]
) -> Iterator[tuple[Compare, list[int]]]:
    """Yield the comparisons with the offsets of their names, which have the same order."""
    match condition:
        case Compare(_, left, right):
            yield condition, [next(places) for side in (left, right) if isinstance(side, Name)]
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _comparisons(operand, places)
        case Not(operand):
            yield from _comparisons(operand, places)
        case _:
            next(places)


_Found: TypeAlias = tuple[str, tuple[str, ...]] | None


@dataclass(frozen=True, slots=True)
class _Typed:
    """The check of one comparison against the types of its variables."""

    types: Mapping[str, TypeExpr]
    models: Models

    def objection(self, compare: Compare) -> _Found:
        if compare.op in ("in", "not in"):
            return self.search(compare)
        ordered = compare.op not in ("==", "!=")
        match compare.left, compare.right:
            case Name(left), Name(right):
                return self.pair(left, right, _ORDERED if ordered else _EVERY_KIND)
            case (Name(name), Value(value)) | (Value(value), Name(name)):
                return self.order(name, value) if ordered else self.equality(name, [value])
            case _:
                return None  # both sides are constants, so no type is involved

    def search(self, compare: Compare) -> _Found:
        match compare.left, compare.right:
            case Name(name), ListOf(items):
                return self.equality(name, [item.value for item in items])
            case Name(name), Value(value):
                return self.within(name, value)
            case left, Name(name):
                return self.membership(left, name)
            case _:
                return None

    def kinds(self, name: str) -> frozenset[Kind]:
        return kinds_of(self.types[name])

    def shown(self, name: str) -> str:
        return f"{name}, which is {short(print_type(self.types[name]))}"

    def equality(self, name: str, values: Iterable[Scalar]) -> _Found:
        type_ = self.types[name]
        for value in values:
            # Null also means "no value yet", so any variable may be compared with it.
            if value is not None and validation_error(type_, value, self.models):
                fact = f"{self.shown(name)}, is never {_literal(value)}"
                return fact, instead(type_, value) or _OTHERWISE
        return None

    def order(self, name: str, value: Scalar) -> _Found:
        if _kind(value) in self.kinds(name) & _ORDERED:
            return None
        hint = "order numbers against numbers and texts against texts, or compare with == or !="
        return f"{self.shown(name)}, is neither less nor more than {_literal(value)}", (hint,)

    def within(self, name: str, value: Scalar) -> _Found:
        if isinstance(value, str) and "text" in self.kinds(name):
            return None
        hint = "write the values in square brackets: in [...]"
        return f"{self.shown(name)}, cannot be looked for in {_literal(value)}", (hint,)

    def membership(self, left: Name | Value, name: str) -> _Found:
        sought = self.kinds(left.name) if isinstance(left, Name) else {_kind(left.value)}
        shown = left.name if isinstance(left, Name) else _literal(left.value)
        holding = self.kinds(name) & _HOLDING
        if not holding:
            hint = "look for values in a list, and for a text in a text or an object"
            return f"nothing can be found in {self.shown(name)}", (hint,)
        if "text" in sought or "list" in holding:
            return None
        hint = "a text is looked for in a text or an object; anything else in a list"
        return f"{self.shown(name)}, never holds {shown}", (hint,)

    def pair(self, left: str, right: str, comparable: frozenset[Kind]) -> _Found:
        if self.kinds(left) & self.kinds(right) & comparable:
            return None
        fact = f"{self.shown(left)}, cannot be compared like this with {self.shown(right)}"
        return fact, ("compare variables of the same type",)


def kinds_of(type_: TypeExpr) -> frozenset[Kind]:
    """Return the kinds of values a type accepts, null excepted."""
    match type_:
        case ScalarType(name):
            return _SCALAR_KINDS[name]
        case ListType():
            return frozenset({"list"})
        case OptionalOf(of):
            return kinds_of(of)
        case LiteralOf(values):
            return frozenset(kind for value in values if (kind := _kind(value)))
        case UnionOf(members):
            return frozenset(kind for member in members for kind in kinds_of(member))
        case _:
            return frozenset({"object"})


def _kind(value: Scalar) -> Kind | None:
    match value:
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return None


def instead(type_: TypeExpr, value: Scalar) -> tuple[str, ...]:
    """Return a hint about the value that was probably meant; empty if there is none."""
    known = [listed for listed in _scalars(type_) if isinstance(listed, str)]
    close = nearest(value, known) if isinstance(value, str) else None
    if close:
        return (f"did you mean {_literal(close)}?",)
    if isinstance(value, str) and _unquoted(value) in kinds_of(type_):
        return (f"write {TRUTHS.get(value.lower(), value.lower())} without quotes",)
    return (f"it can be {short(', '.join(map(_literal, known)))}",) if known else ()


def _scalars(type_: TypeExpr) -> Iterator[Scalar]:
    match type_:
        case LiteralOf(values):
            yield from values
        case OptionalOf(of):
            yield from _scalars(of)
        case UnionOf(members):
            for member in members:
                yield from _scalars(member)
        case _:
            return


def _unquoted(text: str) -> Kind | None:
    """Return the kind of value a text would be without its quotes."""
    if text.lower() in TRUTHS:
        return "truth"
    return "number" if text.isdecimal() else None


def _literal(value: Scalar) -> str:
    return format_value("", value)
