"""Type hints that mean what they say: Python's own types, and the context of Weft."""

import ast
import builtins
import re
from typing import Final

from weft.check.module_facts import FunctionNode, Module
from weft.check.signatures import injected_by_name
from weft.check.syntax_nodes import dotted

#: What is imported to write types.
_FORMS: Final = frozenset({"Any", "Literal", "Optional", "Union", "List", "Dict"})
_TEXTS: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_NAMES: Final = re.compile(r"[^\W\d]\w*")


def is_context(module: Module, parameter: ast.arg) -> bool:
    """Tell whether a run gives a parameter the context, and nobody else gives it anything."""
    if injected_by_name(parameter):
        return True
    match parameter.annotation:
        case ast.BinOp(left=hint, op=ast.BitOr(), right=ast.Constant(value=None)):
            return module.means(dotted(hint)) == "Context"
        case ast.Constant(value=str(name)):
            return module.means(name) == "Context"
        case hint:
            return module.means(dotted(hint)) == "Context"


def shows_types(module: Module, function: FunctionNode) -> bool:
    """Tell whether the hints of all parameters show what a call of a function takes."""
    given = function.args
    return all(
        is_context(module, it) or it.annotation is None or is_plain_hint(module, it.annotation)
        for it in (*given.args, *given.kwonlyargs)
    )


def is_plain_hint(module: Module, hint: ast.expr) -> bool:
    """Tell whether a hint is made of nothing but Python's own types."""
    text = hint.value if isinstance(hint, ast.Constant) else ast.unparse(hint)
    # Texts are values of literal[...]; where they stand for types, the names are not looked at.
    names = _NAMES.findall(_TEXTS.sub("", str(text)))
    return all(_is_usual(module, name) for name in names)


def _is_usual(module: Module, name: str) -> bool:
    if name in _FORMS:
        outside = name in module.origins and module.origins[name] is None
        return outside and module.is_plain(name)
    return hasattr(builtins, name) and not module.bindings[name] and not module.anything
