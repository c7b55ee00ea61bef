"""How a function is called, as its definition says."""

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

ParameterKind: TypeAlias = Literal["positional", "keyword", "args", "kwargs"]

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
    `hint_names` are the names that its type hint is made of, texts in quotes left aside.
    """

    name: str
    kind: ParameterKind
    hinted: bool
    required: bool
    injected: bool
    spot: Spot
    hint_names: frozenset[str] = frozenset()
    #: Whether it can be given by its name.
    named: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """A function at the top level of a file; a decorator may change how it is called."""

    name: str
    spot: Spot
    parameters: tuple[Parameter, ...]
    decorated: bool
    summary: str


def not_given(function: Function, given: Container[str]) -> list[Parameter]:
    """Return what a function requires and is not given by name; a decorator may change that."""
    if function.decorated:
        return []
    return [it for it in function.parameters if it.required and not (it.named and it.name in given)]


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
        named = index >= len(arguments.posonlyargs)
        yield _parameter("positional", node, required=index < first_default, named=named)
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


def _parameter(
    kind: ParameterKind, node: ast.arg, *, required: bool, named: bool = True
) -> Parameter:
    hint, spot = node.annotation, Spot(node.lineno, node.col_offset)
    injected = _injected_by_name(node) or (hint is not None and is_context_type(hint))
    inside = ast.walk(hint) if hint else ()
    names = frozenset(it.id for it in inside if isinstance(it, ast.Name))
    return Parameter(node.arg, kind, hint is not None, required, injected, spot, names, named)
