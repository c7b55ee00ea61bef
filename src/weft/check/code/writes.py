"""Where Python code sets and reads context variables, as far as its text tells.

`context_variables.set("x", 1)`, `context_variables["x"] = 1`, `context_variables.update({"x": 1})`
and `set_context_variable(context, "x", 1)` are recognised. `set` with a text as name counts on any
object: code passes the context on under other names, and what is no variable is no harm.
"""

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

#: Names under which code has the context, whatever its type hints say.
CONTEXT_NAMES: Final = frozenset({"context_variables", "context", "ctx"})

#: The kinds of nodes that may set a variable.
WRITING: Final = (ast.Call, ast.Assign, ast.AugAssign)
WritingNode: TypeAlias = ast.Call | ast.Assign | ast.AugAssign

_SETTERS: Final = frozenset({"set", "setdefault"})
#: What leaves a variable without a value.
_REMOVERS: Final = frozenset({"remove", "pop", "clear"})
_SET_FUNCTION: Final = "set_context_variable"


#: The methods that return the value of a variable.
_GETTERS: Final = frozenset(
    {"get", *(f"get_{kind}" for kind in ("str", "int", "float", "bool", "list", "dict"))}
)


@dataclass(frozen=True, slots=True)
class Write:
    """Code that sets a variable.

    `variable` is None when the name is worked out at run time; `value` counts only if `constant`.
    """

    variable: str | None
    constant: bool = False
    value: object = None


def writes_in(node: WritingNode, names: Container[str] = CONTEXT_NAMES) -> Iterator[Write]:
    """Yield the variables that this one node sets, its inner nodes left aside.

    `names` are those under which code has the context there.
    """
    match node:
        case ast.Call(func=function) if called(function) == _SET_FUNCTION:
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
        # What is not there may stay so: the value is as good as unknown.
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
    """Return the name of the object by which a node surely sets something, if that has one."""
    match node:
        case ast.Call(func=ast.Attribute(attr="pop")):
            return ""  # it may leave the variable be
        case (
            ast.Call(func=ast.Attribute(value=ast.Name(id=name)))
            | ast.Call(func=ast.Name(), args=[ast.Name(id=name), *_])
            | ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))])
        ):
            return name
        case _:
            return ""


def called(function: ast.expr) -> str:
    """Return the last name of what is called, or "" if it has none."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def is_context(receiver: ast.expr, names: Container[str]) -> bool:
    while isinstance(receiver, ast.Attribute) and receiver.attr == "data":
        receiver = receiver.value
    return called(receiver) in names
