"""What Python code raises, by its name."""

import ast
from collections.abc import Iterable


def raised_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names of what code raises; "" where it does not say, as with `assert`."""
    return frozenset(
        signal_of(node.exc if isinstance(node, ast.Raise) else None)
        for node in nodes
        if isinstance(node, ast.Raise | ast.Assert)
    )


def signal_of(raised: ast.expr | None) -> str:
    """Return the name of what is raised, or "" if it has none."""
    match raised.func if isinstance(raised, ast.Call) else raised:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found
        case _:
            return ""
