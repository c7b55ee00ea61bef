"""What Python code raises, by its name."""

import ast
from collections.abc import Iterable

from weft.check.syntax_nodes import dotted


def raised_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names of what code raises; "" where it does not say, as with `assert`."""
    return frozenset(
        raised_name(node.exc if isinstance(node, ast.Raise) else None)
        for node in nodes
        if isinstance(node, ast.Raise | ast.Assert)
    )


def raised_name(raised: ast.expr | None) -> str:
    """Return the name of what is raised as it is written, or "" if it has none."""
    return dotted(raised.func if isinstance(raised, ast.Call) else raised)
