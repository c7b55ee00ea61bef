"""Statements that set variables, and nothing in their text leaves it open whether they do.

`context_variables.set("x", True)` is one if `context_variables` is the context and nothing else.
The same within an expression, on another object or in another form may as well set nothing.
"""

import ast
from collections.abc import Container, Iterator
from typing import Final

from weft.check.module_facts import FunctionNode, Module
from weft.check.name_uses import bindings_in, imports_in
from weft.check.proof.plain_hints import is_context
from weft.check.syntax_nodes import Nodes
from weft.check.variable_writes import WRITING, Write, writes_in

#: What `set` takes; `remove` takes the first of it.
_SET: Final = ("key", "value")


def contexts_of(module: Module, function: FunctionNode, nodes: Nodes) -> frozenset[str]:
    """Return the parameters of a function that are the context for as long as it runs."""
    own = [*bindings_in(nodes), *(name for name, _ in imports_in(_imports(nodes)))]
    return frozenset(
        it.arg
        for it in (*function.args.args, *function.args.kwonlyargs)
        if own.count(it.arg) == 1 and is_context(module, it)
    )


def _imports(nodes: Nodes) -> list[ast.Import | ast.ImportFrom]:
    return [*nodes.of(ast.Import), *nodes.of(ast.ImportFrom)]


def plain_writes(
    statement: ast.stmt, contexts: Container[str], names: Container[str]
) -> tuple[Write, ...] | None:
    """Return what a simple statement sets without fail; None if it may or may not set something.

    `contexts` are the names that are the context, `names` those that may be.
    """
    setting = [it for it in any_writes(statement, names) if it[1]]
    match setting:
        case []:
            return ()
        case [(node, found)] if _stands_alone(node, statement) and _sets(node, contexts):
            return found
        case _:
            return None


def any_writes(part: ast.AST, names: Container[str]) -> Iterator[tuple[ast.AST, tuple[Write, ...]]]:
    """Yield the parts that may set a variable, each with what it sets."""
    for node in ast.walk(part):
        if isinstance(node, WRITING):
            yield node, tuple(writes_in(node, names))


def _stands_alone(node: ast.AST, statement: ast.stmt) -> bool:
    alone = isinstance(statement, ast.Expr | ast.Return) and node is statement.value
    return alone or node is statement


def _sets(node: ast.AST, contexts: Container[str]) -> bool:
    """Tell whether a call or statement is one by which the context itself is changed."""
    match node:
        case ast.Call(func=ast.Attribute(value=holder, attr=method), args=given, keywords=named):
            return _is_one(holder, contexts) and _fits(method, given, [it.arg for it in named])
        case ast.Assign(targets=[ast.Subscript(value=holder)]):
            return _is_one(holder, contexts)
        case ast.AugAssign(target=ast.Subscript(value=holder)):
            return _is_one(holder, contexts)
        case ast.Delete(targets=[ast.Subscript(value=holder)]):
            return _is_one(holder, contexts)
        case _:
            return False


def _is_one(holder: ast.expr, contexts: Container[str]) -> bool:
    while isinstance(holder, ast.Attribute) and holder.attr == "data":
        holder = holder.value
    return isinstance(holder, ast.Name) and holder.id in contexts


def _fits(method: str, given: list[ast.expr], named: list[str | None]) -> bool:
    """Tell whether a method of the context takes these arguments and changes what they name."""
    if any(isinstance(it, ast.Starred) for it in given):
        return False
    match method:
        case "set" | "__setitem__":
            return len(given) <= len(_SET) and {*named} == {*_SET[len(given) :]}
        case "remove" | "__delitem__":
            return len(given) <= 1 and {*named} == {*_SET[len(given) : 1]}
        case "update":
            return len(given) < 2 and None not in named
        case _:
            return False
