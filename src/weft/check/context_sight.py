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
    "dict", "len", "str", "repr", "print", "list", "sorted", "bool", "type", "id", "hasattr",
    "iter", "set", "tuple",
})  # fmt: skip
#: What the context may be asked to be: other classes may look at it in their own way.
_KINDS: Final = frozenset({"dict", "Mapping", "MutableMapping", "Context"})
#: Functions that are told which variable to read or set.
ACCESS: Final = frozenset({"get_context_variable", "set_context_variable"})
#: How the context is named as a type.
TYPE_NAME: Final = "Context"


@dataclass(frozen=True, slots=True)
class Handing:
    """A call that gives the context away: to which function, and as which arguments.

    `holder` names the module in whose name the function is called, if it is called so; it is None
    for any other object. `reads` means that nothing is set unless a name that is called has another
    meaning than its usual one.
    """

    function: str
    holder: str | None
    places: tuple[int | str, ...]
    reads: bool = False


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
        return hint.id == TYPE_NAME
    for node in ast.walk(hint):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                # In quotes it may stand among others.
                if TYPE_NAME in name.replace(".", " ").replace("|", " ").split():
                    return True
            case _:
                continue
    return False


def follow(
    nodes: Iterable[ast.AST], names: Container[str], own: Container[str]
) -> tuple[tuple[Handing, ...], list[ast.Name]]:
    """Return the calls that hand the context on, and where it gets out of sight.

    `nodes` are all of a piece of code, `names` those under which it has the context; other code
    does not see those of them that are its `own`.
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
            kept.update(it for part in _looked_at(node, names, own) for it in _same(part))
    return tuple(handed), [use for use in uses if use not in kept]


def _handing(call: ast.Call, names: Container[str]) -> Handing | None:
    function = call.func
    given = [*_positions(call.args), *((one.arg or "", one.value) for one in call.keywords)]
    places = tuple(place for place, part in given if any(it.id in names for it in _same(part)))
    if not places:
        return None
    return Handing(called(function), _holder(function), places, reads=_reads(call))


def _positions(given: Sequence[ast.expr]) -> Iterator[tuple[int | str, ast.expr]]:
    """Yield arguments with their places; after `*more` nobody knows which that is."""
    known = True
    for index, part in enumerate(given):
        known = known and not isinstance(part, ast.Starred)
        yield (index if known else ""), part


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


def _reads(call: ast.Call) -> bool:
    """Tell whether what is called sets nothing, if it is what its name says."""
    match call:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=asked), *_]):
            return asked in _READERS
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Name(id=kind)]):
            return kind in _KINDS
        case ast.Call(func=ast.Name(id=name)) if name in _HARMLESS:
            return True
        case _:
            return called(call.func) in ACCESS


def _looked_at(node: ast.AST, names: Container[str], own: Container[str]) -> Sequence[ast.expr]:
    """Return the parts of a node that it only looks at, or keeps under a known name."""
    match node:
        case ast.Subscript(value=value, ctx=reads):
            return (value,) if isinstance(reads, ast.Load) or is_context(value, names) else ()
        case ast.Attribute(value=value, attr=asked) if asked in _READERS:
            return (value,)
        case ast.Compare():
            return _compared(node)
        case ast.If(test=value) | ast.While(test=value) | ast.IfExp(test=value):
            return (value,)
        case ast.UnaryOp(operand=value) | ast.Expr(value=value) | ast.FormattedValue(value=value):
            return (value,)
        case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.comprehension(iter=value):
            return (value,)
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in own:
            return (value,)
        case _:
            return ()


def _compared(node: ast.Compare) -> Sequence[ast.expr]:
    """Return what is only looked at: `==` and the like may ask the other side, and give it that."""
    match node.ops:
        case [ast.Is() | ast.IsNot()]:
            return (node.left, *node.comparators)
        case [ast.In() | ast.NotIn()]:
            return node.comparators
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
