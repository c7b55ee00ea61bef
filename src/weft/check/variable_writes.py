"""Where Python code sets context variables, as far as its text tells.

`context_variables.set("x", 1)`, `context_variables["x"] = 1`, `context_variables.update({"x": 1})`
and `set_context_variable(context, "x", 1)` are recognised. `set` with a text as name counts on any
object: code passes the context on under other names, and what is no variable is no harm.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

#: Parameters that a run fills by name, so that no caller has to.
INJECTED: Final = frozenset({"context_variables", "context"})

#: The kinds of nodes that may set a variable.
WRITING: Final = (ast.Call, ast.Assign, ast.AnnAssign, ast.AugAssign)

_CONTEXT_NAMES: Final = INJECTED | {"ctx"}
_SETTERS: Final = frozenset({"set", "setdefault"})
_SET_FUNCTION: Final = "set_context_variable"


@dataclass(frozen=True, slots=True)
class Write:
    """Code that sets a variable.

    `variable` is None when the name is worked out at run time; `value` counts only if `constant`.
    """

    variable: str | None
    constant: bool = False
    value: object = None


def writes_in(node: ast.Call | ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterator[Write]:
    """Yield the variables that this one node sets, its inner nodes left aside."""
    match node:
        case ast.Call():
            yield from _call(node)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _item(target, value)
        case ast.AnnAssign(target=target, value=value):
            yield from _item(target, value)
        case _:
            yield from _item(node.target, None)


def _call(call: ast.Call) -> Iterator[Write]:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _SETTERS:
        name = _argument(call, 0, "key")
        known = _is_context(function.value)
        if name is not None and (known or (_text(name) is not None and len(call.args) > 1)):
            yield _write(name, _argument(call, 1, "value"))
    elif isinstance(function, ast.Attribute) and function.attr == "update":
        if _is_context(function.value):
            yield from _update(call)
    elif _called(function) == _SET_FUNCTION:
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


def _item(target: ast.expr, value: ast.expr | None) -> Iterator[Write]:
    if isinstance(target, ast.Subscript) and _is_context(target.value):
        yield _write(target.slice, value)


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


def _called(function: ast.expr) -> str | None:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _is_context(receiver: ast.expr) -> bool:
    return _called(receiver) in _CONTEXT_NAMES
