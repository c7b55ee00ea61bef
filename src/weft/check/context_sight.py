"""Whether it shows what code does with the context that it is given.

Code that reads the context, sets a named variable or hands it to a function of the package shows
what it does. Any other use, such as giving it another name, returning it or putting it in a list,
lets it out of sight: from there on, anything may be set.
"""

import ast
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.check.syntax_nodes import Nodes
from weft.check.variable_writes import CHANGING, CONTEXT_NAMES, called, is_context

#: What can be asked of the context, and functions that take it, without setting anything.
_READERS: Final = frozenset({
    "get", "keys", "values", "items", "to_dict", "copy", "contains", "__contains__", "__getitem__",
    "run", "app", "user", "agent", "key", "answers",
})  # fmt: skip
_HARMLESS: Final = frozenset({
    "dict", "len", "str", "repr", "print", "list", "sorted", "bool", "isinstance", "type", "id",
    "hasattr", "iter", "set", "tuple",
})  # fmt: skip
#: Functions that are told which variable to read or set.
_ACCESS: Final = frozenset({"get_context_variable", "set_context_variable"})
#: How the context is named as a type.
_TYPE_NAME: Final = "Context"


@dataclass(frozen=True, slots=True)
class Handing:
    """A call that gives the context away: to which function, and as which arguments.

    `holder` names the module in whose name the function is called, if it is called so; it is None
    for any other object.
    """

    function: str
    holder: str | None
    places: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Taker:
    """A function, and the parameters through which it shows that it takes the context."""

    name: str
    positional: tuple[str, ...]
    contexts: frozenset[str]

    def takes(self, place: int | str) -> bool:
        """Tell whether what is given as this argument is known to be the context."""
        if isinstance(place, str):
            return place in self.contexts
        return place < len(self.positional) and self.positional[place] in self.contexts


def taker_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Taker:
    """Read through which parameters a function takes the context."""
    positional = [*node.args.posonlyargs, *node.args.args]
    named = (*positional, *node.args.kwonlyargs)
    return Taker(
        node.name,
        tuple(one.arg for one in positional),
        frozenset(one.arg for one in named if holds_context(one)),
    )


def holds_context(parameter: ast.arg) -> bool:
    """Tell whether a parameter may be the context, by its name or its type hint."""
    if parameter.arg in CONTEXT_NAMES:
        return True
    return parameter.annotation is not None and is_context_type(parameter.annotation)


def context_parameters(nodes: Nodes) -> frozenset[str]:
    """Return the parameters that may be the context, of functions at any depth."""
    return frozenset(it.arg for it in nodes.of(ast.arg) if holds_context(it))


def is_context_type(hint: ast.expr) -> bool:
    """Tell whether a type hint names the context of a run, alone or among others."""
    if isinstance(hint, ast.Name):
        return hint.id == _TYPE_NAME
    for node in ast.walk(hint):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                # In quotes it may stand among others.
                if _TYPE_NAME in name.replace(".", " ").replace("|", " ").split():
                    return True
            case _:
                continue
    return False


def follow(
    nodes: Iterable[ast.AST], names: Container[str]
) -> tuple[tuple[Handing, ...], list[ast.Name]]:
    """Return the calls that hand the context on, and where it gets out of sight.

    `nodes` are all of a piece of code, `names` those under which it has the context.
    """
    handed: list[Handing] = []
    uses: list[ast.Name] = []
    kept: set[ast.Name] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            if node.id in names and isinstance(node.ctx, ast.Load):
                uses.append(node)
        elif isinstance(node, ast.Call):
            handing = _handing(node, names)
            if handing:
                handed.append(handing)
            kept.update(it for part in _arguments(node, names) for it in _same(part))
        else:
            kept.update(it for part in _looked_at(node, names) for it in _same(part))
    return tuple(handed), [use for use in uses if use not in kept]


def _handing(call: ast.Call, names: Container[str]) -> Handing | None:
    function = call.func
    if called(function) in _ACCESS or _asks_by_name(call):
        return None
    if isinstance(function, ast.Name) and function.id in _HARMLESS:
        return None
    given = [*enumerate(call.args), *((one.arg or "", one.value) for one in call.keywords)]
    places = tuple(place for place, part in given if any(it.id in names for it in _same(part)))
    return Handing(called(function), _holder(function), places) if places else None


def _holder(function: ast.expr) -> str | None:
    match function:
        case ast.Name():
            return ""
        case ast.Attribute(value=ast.Name(id=name)):
            return name
        case _:
            return None


def _arguments(call: ast.Call, names: Container[str]) -> Iterator[ast.expr]:
    """Yield what a call is given or called on, as far as that shows what is done with it."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in CHANGING:
        yield from [function.value] if is_context(function.value, names) else ()
    yield from call.args
    yield from (one.value for one in call.keywords)


def _asks_by_name(call: ast.Call) -> bool:
    match call:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=asked), *_]):
            return asked in _READERS
        case _:
            return False


def _looked_at(node: ast.AST, names: Container[str]) -> Sequence[ast.expr]:
    """Return the parts of a node that it only looks at, or keeps under a known name."""
    match node:
        case ast.Subscript(value=value, ctx=reads):
            return (value,) if isinstance(reads, ast.Load) or is_context(value, names) else ()
        case ast.Attribute(value=value, attr=asked) if asked in _READERS:
            return (value,)
        case ast.Compare(left=left, comparators=others):
            return (left, *others)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return (test,)
        case ast.UnaryOp(operand=value) | ast.Expr(value=value) | ast.FormattedValue(value=value):
            return (value,)
        case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.comprehension(iter=value):
            return (value,)
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names:
            return (value,)
        case _:
            return ()


def _same(value: ast.expr) -> Iterator[ast.Name]:
    """Yield the names whose own value an expression may have."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case ast.Name() as name:
                yield name
            case ast.Attribute(value=inner, attr="data"):
                waiting.append(inner)
            case ast.BoolOp(values=parts):
                waiting += parts
            case ast.IfExp(body=first, orelse=second):
                waiting += (first, second)
            case _:
                continue
