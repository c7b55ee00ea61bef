"""How a function is called, as its definition says."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

ParameterKind: TypeAlias = Literal["positional", "keyword", "args", "kwargs"]

#: Types whose own types may stand in quotes one by one; elsewhere a text may be just a text.
_HOLDERS: Final = frozenset({
    "list", "dict", "set", "tuple", "frozenset", "List", "Dict", "Set", "Tuple", "Optional",
    "Union", "Sequence", "Mapping", "Iterable",
})  # fmt: skip

#: The parameter that a run always fills with the context, and one that it fills if it has no hint.
PLAIN_NAME: Final = "context_variables"
_SHORT_NAME: Final = "context"
#: How the context is named as a type.
_TYPE_NAME: Final = "Context"
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something stands in a file, as the syntax tree counts: lines from 1, bytes from 0."""

    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function.

    `required` means that a caller must give it, `injected` that the run does: no model is asked.
    `unnamed` means that it cannot be given by name. `hint` is its type hint as it is written, and
    `hint_names` are those that it uses.
    """

    name: str
    kind: ParameterKind
    hinted: bool
    required: bool
    injected: bool
    spot: Spot
    unnamed: bool = False
    hint: str = ""
    hint_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Function:
    """A function at the top level of a file; a decorator may change how it is called."""

    name: str
    spot: Spot
    parameters: tuple[Parameter, ...]
    decorated: bool
    summary: str


def function_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    return Function(
        name=node.name,
        spot=Spot(node.lineno, node.col_offset),
        parameters=tuple(_parameters(node.args)),
        decorated=bool(node.decorator_list),
        summary=(ast.get_docstring(node) or "").partition("\n")[0].strip(),
    )


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    for index, node in enumerate(positional):
        one = _parameter("positional", node, required=index < first_default)
        yield replace(one, unnamed=index < len(arguments.posonlyargs))
    if arguments.vararg:
        yield _parameter("args", arguments.vararg, required=False)
    for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter("keyword", node, required=default is None)
    if arguments.kwarg:
        yield _parameter("kwargs", arguments.kwarg, required=False)


def is_context_type(hint: ast.expr) -> bool:
    """Tell whether a type hint names the context of a run, alone or among others."""
    return _TYPE_NAME in _WORDS.findall(ast.unparse(hint))


def _injected_by_name(node: ast.arg) -> bool:
    """Tell whether a run fills a parameter with the context because of what it is called."""
    return node.arg == PLAIN_NAME or (node.arg == _SHORT_NAME and node.annotation is None)


def _parameter(kind: ParameterKind, node: ast.arg, *, required: bool) -> Parameter:
    hint, spot = node.annotation, Spot(node.lineno, node.col_offset)
    injected = _injected_by_name(node) or (hint is not None and is_context_type(hint))
    names = frozenset(_names_in(hint)) if hint else frozenset[str]()
    return Parameter(
        node.arg,
        kind,
        hint is not None,
        required,
        injected,
        spot,
        hint=_written(hint) if hint else "",
        hint_names=names,
    )


def _written(hint: ast.expr) -> str:
    """Return a hint as it is written; quotes around it make no difference."""
    match hint:
        case ast.Constant(value=str(text)):
            return text
        case _:
            return ast.unparse(hint)


def _names_in(hint: ast.expr) -> Iterator[str]:
    """Yield the names that a type hint is made of, those in quotes too; texts are left out."""
    match hint:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=value) | ast.Subscript(value=ast.Attribute() as value):
            yield from _names_in(value)
        case ast.BinOp(left=left, right=right):
            yield from (*_names_in(left), *_names_in(right))
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            yield name
            inside = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            for part in inside if name in _HOLDERS else ():
                yield from _names_in(part)
        case ast.Constant(value=str(text)):
            yield from _names_in_quotes(text)
        case _:
            return


def _names_in_quotes(text: str) -> Iterator[str]:
    try:
        inner = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _names_in(inner)
