"""Where Python code sets context variables, as far as its text tells.

`context_variables.set("x", 1)`, `context_variables["x"] = 1`, `context_variables.update({"x": 1})`
and `set_context_variable(context, "x", 1)` are recognised. `set` with a text as name counts on any
object: code passes the context on under other names, and what is no variable is no harm.

Where the context goes any other way, under another name or into a function, it no longer shows
what is set. That counts as a write whose name is worked out at run time.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

#: Parameters that a run fills by name, so that no caller has to.
INJECTED: Final = frozenset({"context_variables", "context"})

#: The kinds of nodes that may set a variable, or let the context out of sight.
WRITING: Final = (ast.Call, ast.Assign, ast.AnnAssign, ast.AugAssign)
WritingNode: TypeAlias = ast.Call | ast.Assign | ast.AnnAssign | ast.AugAssign

_CONTEXT_NAMES: Final = INJECTED | {"ctx"}
_SETTERS: Final = frozenset({"set", "setdefault", "__setitem__"})
_REMOVERS: Final = frozenset({"pop", "popitem", "clear", "remove", "delete", "__delitem__"})
_SET_FUNCTION: Final = "set_context_variable"
#: What can be asked of the context, and functions that take it, without setting anything.
_READERS: Final = frozenset({"get", "keys", "values", "items", "to_dict", "copy", "contains"})
_HARMLESS: Final = frozenset({
    "get_context_variable", "set_context_variable", "dict", "len", "str", "repr", "print", "list",
    "sorted", "bool", "isinstance", "type", "id", "getattr", "hasattr", "iter", "setattr",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Write:
    """Code that sets a variable.

    `variable` is None when the name is worked out at run time; `value` counts only if `constant`.
    """

    variable: str | None
    constant: bool = False
    value: object = None


def writes_in(node: WritingNode) -> Iterator[Write]:
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
    if any(_escapes(part) for part in _handed_on(node)):
        yield Write(None)


def _handed_on(node: WritingNode) -> Iterator[ast.expr]:
    """Yield the expressions whose value a node gives to something else."""
    match node:
        case ast.Call(func=function, args=arguments):
            # What other functions do with it, their own code shows, if the package has it.
            if _called(function) == "setattr":
                yield from arguments
        case ast.AugAssign(target=target, value=value):
            yield value
            if isinstance(target, ast.Name):
                yield target
        case _:
            if node.value is not None:
                yield node.value


def taken_by(call: ast.Call) -> Iterator[int | str]:
    """Yield the positions and names of the arguments by which a call gives the context away."""
    if _called(call.func) in _HARMLESS:
        return
    for position, argument in enumerate(call.args):
        if _escapes(argument):
            yield position
    for keyword in call.keywords:
        if _escapes(keyword.value):
            yield keyword.arg or ""


def _escapes(value: ast.expr) -> bool:
    """Tell whether the context itself, or a way to set it, is in the value of an expression."""
    waiting: list[ast.AST] = [value]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name) if name in _CONTEXT_NAMES:
                return True
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in _CONTEXT_NAMES:
                if attribute not in _READERS:
                    return True
            case ast.Subscript(value=receiver, slice=index) if is_context(receiver):
                waiting.append(index)
            case ast.Compare(left=left, comparators=others):
                waiting += [part for part in (left, *others) if not is_context(part)]
            case ast.Call(func=ast.Attribute()) | ast.Call(func=ast.Name()):
                # A call is looked at by itself; what it gives back is its own affair.
                continue
            case _:
                waiting.extend(ast.iter_child_nodes(node))
    return False


def _call(call: ast.Call) -> Iterator[Write]:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _SETTERS:
        name = _argument(call, 0, "key")
        known = is_context(function.value)
        if name is not None and (known or (_text(name) is not None and len(call.args) > 1)):
            yield _write(name, _argument(call, 1, "value"))
    elif isinstance(function, ast.Attribute) and function.attr in _REMOVERS:
        if is_context(function.value):
            yield Write(None)
    elif isinstance(function, ast.Attribute) and function.attr == "update":
        if is_context(function.value):
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
    match target:
        case ast.Subscript(value=receiver, slice=name) if is_context(receiver):
            yield _write(name, value)
        case ast.Attribute(value=receiver) if is_context(receiver):
            yield Write(None)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _item(part, None)
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


def _called(function: ast.expr) -> str | None:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def is_context(receiver: ast.expr) -> bool:
    """Tell whether an expression is the context, by its name."""
    match receiver:
        case ast.Attribute(value=inner, attr="data"):
            return is_context(inner)
        case _:
            return _called(receiver) in _CONTEXT_NAMES
