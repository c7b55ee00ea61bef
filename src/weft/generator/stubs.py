"""Python with the right signatures and other bodies: for functions that are not written yet, and
for simulated runs, which execute nothing of a package."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from weft.generator.code_check.files import Function, functions_in
from weft.spec.part import JsonMap
from weft.spec.tools import AgentTool, UiTool
from weft.spec.types import print_type
from weft.spec.workflow import WorkflowSpec

#: The names that a copied type hint may consist of; any other hint becomes Any.
_HINTS: Final = frozenset(
    {"str", "int", "float", "bool", "list", "dict", "Any", "Literal", "Optional", "Union"}
)
_NO_PARAMETERS: Final = frozenset({"context_variables", "self"})
_JSON_HINTS: Final = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list",
    "object": "dict",
}  # fmt: skip

#: Returns the body of a function, given its name, its declaration and its parameters.
Body = Callable[[str, Function | None, list[str]], str]


def stub_file(spec: WorkflowSpec, path: str, source: str, body: Body) -> str:
    """Return a file with the declared functions of `path`, each with another body.

    Signatures are those of the source, where it can be parsed, with plain types only; otherwise
    they follow from the declarations.
    """
    signatures = dict(_signatures(source))
    parts = [
        f'"""Functions of {path}."""',
        "from typing import Any, Literal, Optional, Union",
        "from weft import Context, Refuse, use_ui_tool",
    ]
    for name, declared in functions_in(spec, path).items():
        tool = isinstance(declared, AgentTool | UiTool)
        given = signatures.get(name) or (_declared_signature(spec, declared) if tool else {})
        taken = {**given, "context_variables": "Context"}
        text = ", ".join(f"{key}: {hint}" for key, hint in taken.items()) if tool else "**given"
        head = f"async def {name}({'*, ' if tool else ''}{text}) -> Any:"
        parts.append(f"{head}\n    {body(name, declared, [*given])}")
    return "\n\n\n".join(parts) + "\n"


def function_texts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the functions of a file at its top level, with their text."""
    parts = re.split(r"^(?:async )?def (\w+)", text, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _signatures(source: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the parameters of each function, with their hints and defaults as text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, dict(_parameters(node.args))


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
    for node, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True):
        if node.arg not in _NO_PARAMETERS:
            value = "" if default is None else f" = {_literal(default)}"
            yield node.arg, f"{_hint(node.annotation)}{value}"


def _literal(node: ast.expr) -> str:
    try:
        return repr(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return "None"


def _hint(node: ast.expr | None) -> str:
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} if node else {""}
    calls = node is None or any(isinstance(inner, ast.Call) for inner in ast.walk(node))
    return "Any" if calls or node is None or not names <= _HINTS else ast.unparse(node)


def _declared_signature(spec: WorkflowSpec, tool: Function | None) -> dict[str, str]:
    """Return the parameters that follow from a declaration: the fields of a reply or a payload."""
    if isinstance(tool, UiTool):
        properties = cast("JsonMap", (tool.payload_schema or {}).get("properties") or {})
        schemas = (cast("Mapping[str, Any]", value) for value in properties.values())
        hints = (_JSON_HINTS.get(str(schema.get("type")), "Any") for schema in schemas)
        return {name: f"{hint} = None" for name, hint in zip(properties, hints, strict=True)}
    if not isinstance(tool, AgentTool) or not tool.auto_invoke:
        return {}
    bound = {binding.model for binding in spec.registry if binding.agent == tool.agent}
    models = (model for model in spec.models if model.name in bound)
    return {
        name: _type_hint(print_type(field.type))
        for model in models
        for name, field in model.fields.items()
    }


def _type_hint(type_: str) -> str:
    """Return the type hint of a type: literals and scalars as they are.

    >>> _type_hint('literal["a", "b"]'), _type_hint("list[str]"), _type_hint("Invoice")
    ("Literal['a', 'b']", 'list', 'Any')
    """
    if type_.startswith("literal["):
        values = ast.literal_eval(re.sub(r"\b(true|false)\b", lambda m: m[0].title(), type_[7:]))
        return f"Literal[{', '.join(map(repr, values))}]"
    word = type_.partition("[")[0]
    return word if word in {"str", "int", "float", "bool", "list", "dict"} else "Any"
