"""Where Python code sets context variables, as far as its text tells.

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
WRITING: Final = (ast.Call, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete)
WritingNode: TypeAlias = ast.Call | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete

_SETTERS: Final = frozenset({"set", "setdefault", "__setitem__"})
#: What leaves a variable without a value.
_REMOVERS: Final = frozenset({"remove", "pop", "popitem", "clear", "delete", "__delitem__"})
_SET_FUNCTION: Final = "set_context_variable"
_NO_VALUE: Final = ast.Constant(None)


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
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)):
            yield from _call(node, method, known=is_context(receiver, names))
            yield from _by_function(node)
        case ast.Call():
            yield from _by_function(node)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _item(target, value, names)
        case ast.Delete(targets=targets):
            for target in targets:
                yield from _item(target, _NO_VALUE, names)
        case ast.AnnAssign(target=target, value=value):
            yield from _item(target, value, names)
        case _:
            yield from _item(node.target, None, names)


def _call(call: ast.Call, method: str, *, known: bool) -> Iterator[Write]:
    name = _argument(call, 0, "key")
    if method in _SETTERS and name is not None:
        if known or (_text(name) is not None and len(call.args) > 1):
            yield _write(name, _argument(call, 1, "value"))
    elif known and method in _REMOVERS:
        # What is not there may stay so: the value is as good as unknown.
        yield Write(None if name is None else _text(name))
    elif known and method == "update":
        yield from _update(call)


def _by_function(call: ast.Call) -> Iterator[Write]:
    if called(call.func) == _SET_FUNCTION:
        name = _argument(call, 1, "key")
        yield Write(None) if name is None else _write(name, _argument(call, 2, "value"))


def _update(call: ast.Call) -> Iterator[Write]:
    for argument in call.args:
        if isinstance(argument, ast.Dict):
            for key, value in zip(argument.keys, argument.values, strict=True):
                yield Write(None) if key is None else _write(key, value)
        else:
            yield Write(None)
    for keyword in call.keywords:
        named = None if keyword.arg is None else ast.Constant(keyword.arg)
        yield Write(None) if named is None else _write(named, keyword.value)


def _item(target: ast.expr, value: ast.expr | None, names: Container[str]) -> Iterator[Write]:
    match target:
        case ast.Subscript(value=receiver, slice=name) if is_context(receiver, names):
            yield _write(name, value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _item(part, None, names)
        case _:
            return


def _write(name: ast.expr, value: ast.expr | None) -> Write:
    if isinstance(value, ast.Constant):
        return Write(_text(name), constant=True, value=value.value)
    return Write(_text(name))


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    if position < len(call.args):
        return call.args[position]
    return next((found.value for found in call.keywords if found.arg == keyword), None)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


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
