"""Walking through the syntax tree of Python code, quickly and without recursion."""

import ast
from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeVar, cast

#: Fields of nodes that hold texts, operators and the like, passed over for speed.
_PLAIN: Final = frozenset({
    "id", "ctx", "attr", "arg", "asname", "names", "module", "level", "op", "ops", "kind",
    "type_comment", "conversion", "is_async", "simple",
})  # fmt: skip
#: The other fields of each kind of node.
_BELOW: Final = {
    kind: () if kind is ast.Constant else tuple(it for it in kind._fields if it not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_COMPOUND: Final = (
    ast.If, ast.For, ast.While, ast.With, ast.Try, ast.TryStar, ast.ExceptHandler, ast.Match,
    ast.match_case,
)  # fmt: skip
_Kind = TypeVar("_Kind", bound=ast.AST)


class Nodes:
    """All nodes of a piece of code, by their kind."""

    def __init__(self, root: ast.AST) -> None:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        waiting = [root]
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind in found:
                found[kind].append(node)
            else:
                found[kind] = [node]
            for name in _BELOW[kind]:
                value: object = getattr(node, name, None)
                if type(value) is list:
                    items = cast("list[object]", value)
                    waiting += [it for it in items if isinstance(it, ast.AST)]
                elif isinstance(value, ast.AST):
                    waiting.append(value)
        self._found = found

    def of(self, *kinds: type[_Kind]) -> list[_Kind]:
        """Return the nodes of some kinds."""
        found = self._found
        if len(kinds) == 1:
            return cast("list[_Kind]", found.get(kinds[0], []))
        return cast("list[_Kind]", [*chain(*(found[kind] for kind in kinds if kind in found))])

    def all(self) -> Iterator[ast.AST]:
        """Return the nodes of every kind."""
        return chain.from_iterable(self._found.values())


def dotted(expression: ast.expr | None) -> str:
    """Return a name as it is written, alone or in the name of another; "" for anything else.

    >>> [dotted(ast.parse(it, mode="eval").body) for it in ("Ask", "weft.Ask", "a.b.c", "f()")]
    ['Ask', 'weft.Ask', '', '']
    """
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=holder), attr=name):
            return f"{holder}.{name}"
        case _:
            return ""


def certain_parts(root: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a simple statement that are evaluated whenever it is."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.BoolOp(values=[first, *_]) | ast.IfExp(test=first) | ast.Compare(left=first):
                waiting.append(first)
            case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.GeneratorExp():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                waiting.append(node.generators[0].iter)
            case _:
                waiting.extend(ast.iter_child_nodes(node))


def stored(part: ast.AST, nodes: Nodes) -> Iterator[str]:
    """Yield the names that a part of a file gives a value; `nodes` are all nodes of it."""
    if isinstance(part, ast.AnnAssign) and part.value is None:
        return  # it only says what type the name has
    # The names that a comprehension uses for itself are gone after it.
    own = {it for inner in nodes.of(ast.comprehension) for it in ast.walk(inner.target)}
    for node in nodes.of(ast.Name):
        if isinstance(node.ctx, ast.Store) and node not in own:
            yield node.id


def flat(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what a top-level statement consists of: compound ones are taken apart."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _COMPOUND):
            waiting.extend(reversed(list(ast.iter_child_nodes(part))))
        else:
            yield part
