"""Whether a function takes whatever a model allows, as the types of its parameters tell.

A reply whose fields do not fit them is sent back, just as if the function had raised the signal.
"""

from collections.abc import Mapping

from weft.check.signatures import Function, Parameter
from weft.errors import ExpressionError
from weft.spec.type_meaning import NO_MODELS, mismatch
from weft.spec.type_parser import parse_type
from weft.spec.types import (
    ANY,
    DictOf,
    ListOf,
    LiteralOf,
    OptionalOf,
    Ref,
    Scalar,
    TypeExpr,
    UnionOf,
)


def takes_all(function: Function, fields: Mapping[str, TypeExpr]) -> bool:
    """Tell whether a function can be called with any object that has these fields."""
    given = [one for one in function.parameters if not one.injected]
    named = {one.name: one for one in given if one.kind in ("positional", "keyword")}
    certain = {name for name, type_ in fields.items() if not isinstance(type_, OptionalOf)}
    required = {name for name, one in named.items() if one.required}
    is_open = any(one.kind == "kwargs" for one in given)
    if not required <= certain or not (is_open or fields.keys() <= named.keys()):
        return False
    return all(takes(one, fields[name]) for name, one in named.items() if name in fields)


def takes_others(parameter: Parameter, type_: TypeExpr) -> bool:
    """Tell whether a parameter can do without a value of a type that it takes all values of.

    Numbers may be given as texts, and true and false as numbers: no variable takes them so.
    """
    hint = parse_type(parameter.hint)
    loose = isinstance(hint, Scalar) and (hint.name != "str" or hint != type_)
    return loose or not parameter.required


def takes(parameter: Parameter, type_: TypeExpr) -> bool:
    """Tell whether a parameter can be given all values of a type."""
    if not parameter.hinted:
        return True
    try:
        # The types of this language are written as Python writes them.
        return _covers(parse_type(parameter.hint), type_)
    except ExpressionError:
        return False


def _covers(hint: TypeExpr, type_: TypeExpr) -> bool:
    """Tell whether a hint allows all values of a type."""
    match type_:
        case OptionalOf(of):
            return mismatch(hint, None, NO_MODELS) is None and _covers(hint, of)
        case UnionOf(members):
            return all(_covers(hint, member) for member in members)
        case LiteralOf(values):
            return all(mismatch(hint, value, NO_MODELS) is None for value in values)
        case _:
            return any(_covers_one(part, type_) for part in _parts(hint))


def _parts(hint: TypeExpr) -> tuple[TypeExpr, ...]:
    match hint:
        case OptionalOf(of):
            return _parts(of)
        case UnionOf(members):
            return members
        case _:
            return (hint,)


def _covers_one(hint: TypeExpr, type_: TypeExpr) -> bool:
    match hint, type_:
        case (ListOf(of), ListOf(inner)) | (DictOf(of), DictOf(inner)):
            return _covers(of, inner)
        case DictOf(of), Ref():
            return of == ANY
        case Scalar("float"), Scalar("int"):
            return True
        case Ref(), _:
            return False  # a class of the package, which may take anything or nothing
        case _:
            return hint in (ANY, type_)
