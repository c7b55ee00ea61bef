"""How functions are called, and where code sets and reads context variables."""

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
    """A position in a file, as in the syntax tree: lines from 1, bytes from 0."""

    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function.

    `required` means that a caller must pass it, `injected` that the run passes it, not the model.
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
    """Return the required parameters that are not passed; none if there is a decorator."""
    if function.decorated:
        return []
    return [
        parameter
        for parameter in function.parameters
        if parameter.required and not (parameter.named and parameter.name in given)
    ]


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
    """Return whether a type hint names the context of a run, alone or among others."""
    return _TYPE_NAME in _WORDS.findall(ast.unparse(hint))


def _injected_by_name(node: ast.arg) -> bool:
    """Return whether a run passes the context to a parameter because of its name."""
    return node.arg == PLAIN_NAME or (node.arg == _SHORT_NAME and node.annotation is None)


def _parameter(
    kind: ParameterKind, node: ast.arg, *, required: bool, named: bool = True
) -> Parameter:
    hint, spot = node.annotation, Spot(node.lineno, node.col_offset)
    injected = _injected_by_name(node) or (hint is not None and is_context_type(hint))
    inside = ast.walk(hint) if hint else ()
    names = frozenset(name_node.id for name_node in inside if isinstance(name_node, ast.Name))
    return Parameter(node.arg, kind, hint is not None, required, injected, spot, names, named)


#: Names of the context in code; type hints do not change that.
CONTEXT_NAMES: Final = frozenset({"context_variables", "context", "ctx"})

#: The kinds of nodes that may set a variable.
WRITING: Final = (ast.Call, ast.Assign, ast.AugAssign)
WritingNode: TypeAlias = ast.Call | ast.Assign | ast.AugAssign

_SETTERS: Final = frozenset({"set", "setdefault"})
#: The methods that remove the value of a variable.
_REMOVERS: Final = frozenset({"remove", "pop", "clear"})
_SET_FUNCTION: Final = "set_context_variable"


#: The methods that return the value of a variable.
_GETTERS: Final = frozenset(
    {"get", *(f"get_{kind}" for kind in ("str", "int", "float", "bool", "list", "dict"))}
)


@dataclass(frozen=True, slots=True)
class Write:
    """Code that sets a variable.

    `variable` is None when the name is computed at run time; `value` counts only if `constant`.
    """

    variable: str | None
    constant: bool = False
    value: object = None


def writes_in(node: WritingNode, names: Container[str] = CONTEXT_NAMES) -> Iterator[Write]:
    """Yield the variables that this node itself sets, without those of its inner nodes.

    `names` are the names of the context at that place.
    """
    match node:
        case ast.Call(func=function) if called_name(function) == _SET_FUNCTION:
            yield _write(_argument(node, 1, "key"), _argument(node, 2, "value"))
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)):
            yield from _call(node, method, known=is_context(receiver, names))
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _item(target, value, names)
        case ast.AugAssign(target=target):
            yield from _item(target, None, names)
        case _:
            return


def _call(call: ast.Call, method: str, *, known: bool) -> Iterator[Write]:
    name = _argument(call, 0, "key")
    if method in _SETTERS and name is not None:
        if known or (_text(name) is not None and len(call.args) > 1):
            yield _write(name, _argument(call, 1, "value"))
    elif known and method in _REMOVERS:
        # The variable may also stay without a value, so the value counts as unknown.
        yield Write(_text(name))
    elif known and method == "update":
        match call.args:
            case [ast.Dict(keys=keys, values=values)]:
                yield from map(_write, keys, values)
            case _:
                yield Write(None)


def _item(target: ast.expr, value: ast.expr | None, names: Container[str]) -> Iterator[Write]:
    if isinstance(target, ast.Subscript) and is_context(target.value, names):
        yield _write(target.slice, value)


def _write(name: ast.expr | None, value: ast.expr | None) -> Write:
    if isinstance(value, ast.Constant):
        return Write(_text(name), constant=True, value=value.value)
    return Write(_text(name))


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    if position < len(call.args):
        return call.args[position]
    return next((found.value for found in call.keywords if found.arg == keyword), None)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def read_in(node: ast.AST) -> tuple[str, str] | None:
    """Return the object and the variable name of an expression that reads a variable by name."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=through), attr=method),
            args=[ast.Constant(value=str(name)), *_],
        ) if method in _GETTERS:
            return through, name
        case ast.Subscript(
            value=ast.Name(id=through), slice=ast.Constant(value=str(name)), ctx=ast.Load()
        ):
            return through, name
        case _:
            return None


def written_through(node: WritingNode) -> str:
    """Return the name of the object through which a node certainly sets a variable, or ""."""
    match node:
        case ast.Call(func=ast.Attribute(attr="pop")):
            return ""  # it may leave the variable unchanged
        case (
            ast.Call(func=ast.Attribute(value=ast.Name(id=name)))
            | ast.Call(func=ast.Name(), args=[ast.Name(id=name), *_])
            | ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))])
        ):
            return name
        case _:
            return ""


def called_name(function: ast.expr) -> str:
    """Return the last name of the called expression: `set` of `context.set`; "" if none."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def is_context(receiver: ast.expr, names: Container[str]) -> bool:
    while isinstance(receiver, ast.Attribute) and receiver.attr == "data":
        receiver = receiver.value
    return called_name(receiver) in names
