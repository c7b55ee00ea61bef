"""How a function is called, as its definition says."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

ParameterKind: TypeAlias = Literal["positional", "keyword", "args", "kwargs"]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something stands in a file, as the syntax tree counts: lines from 1, bytes from 0."""

    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function; `required` means that a caller must give it."""

    name: str
    kind: ParameterKind
    hinted: bool
    required: bool
    spot: Spot


@dataclass(frozen=True, slots=True)
class Function:
    """A function at the top level of a file; a decorator may change how it is called."""

    name: str
    spot: Spot
    parameters: tuple[Parameter, ...]
    decorated: bool
    summary: str


def function_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    """Read how a function is called."""
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
        yield _parameter("positional", node, required=index < first_default)
    if arguments.vararg:
        yield _parameter("args", arguments.vararg, required=False)
    for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter("keyword", node, required=default is None)
    if arguments.kwarg:
        yield _parameter("kwargs", arguments.kwarg, required=False)


def _parameter(kind: ParameterKind, node: ast.arg, *, required: bool) -> Parameter:
    spot = Spot(node.lineno, node.col_offset)
    return Parameter(node.arg, kind, node.annotation is not None, required, spot)
