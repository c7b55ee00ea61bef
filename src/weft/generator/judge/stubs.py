"""Python with the right signatures and other bodies: for functions that are not written yet, and
for simulated runs, which execute nothing of a package."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from keyword import iskeyword
from typing import Final, TypeAlias

from weft.adapters.models.provider_errors import as_object
from weft.generator.code_check.files import Function, functions_in
from weft.generator.code_check.import_effects import is_literal, is_plain_type
from weft.spec.tools import AgentTool, UiTool
from weft.spec.types import LiteralOf, TypeExpr, print_type
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

_ANY: Final = ast.Name("Any")

#: Parameters by name: the type hint, and the default if there is one.
_Parameter: TypeAlias = tuple[ast.expr, ast.expr | None]
_Signature: TypeAlias = Mapping[str, _Parameter]

#: Returns the body of a function, given its name, its declaration and its parameters.
Body = Callable[[str, Function | None, list[str]], str]


def stub_file(spec: WorkflowSpec, path: str, source: str, body: Body) -> str:
    """Return a file with the declared functions of `path`, each with another body.

    Signatures are those of the source, where it can be parsed, with plain types only; otherwise
    they follow from the declarations. Names that are no names of Python are left out.
    """
    signatures = dict(_signatures(source))
    parts = [
        f'"""Functions of {path}."""',
        "from typing import Any, Literal, Optional, Union",
        "from weft import Context, Refuse, use_ui_tool",
    ]
    for name, declared in functions_in(spec, path).items():
        if not _is_name(name):
            continue
        tool = isinstance(declared, AgentTool | UiTool)
        given = signatures.get(name) or (_declared_signature(spec, declared) if tool else {})
        given = {key: hint for key, hint in given.items() if _is_name(key)}
        head = f"async def {name}({ast.unparse(_arguments(given if tool else None))}) -> Any:"
        parts.append(f"{head}\n    {body(name, declared, [*given])}")
    return "\n\n\n".join(parts) + "\n"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def _arguments(given: _Signature | None) -> ast.arguments:
    """Return parameters that are given by name, and the context; None takes any."""
    taken = {**(given or {}), "context_variables": (ast.Name("Context"), None)}
    return ast.arguments(
        posonlyargs=[],
        args=[],
        kwonlyargs=[] if given is None else [ast.arg(key, taken[key][0]) for key in taken],
        kw_defaults=[] if given is None else [default for _, default in taken.values()],
        kwarg=ast.arg("given") if given is None else None,
        defaults=[],
    )


def function_texts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the functions of a file at its top level, with their text."""
    parts = re.split(r"^(?:async )?def (\w+)", text, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _signatures(source: str) -> Iterator[tuple[str, _Signature]]:
    """Yield the parameters of each function that can be copied."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, dict(_parameters(node.args))


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, _Parameter]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
    for node, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True):
        if node.arg not in _NO_PARAMETERS:
            hint = _copied(node.annotation, _is_known_type) or _ANY
            none = None if default is None else ast.Constant(None)
            yield node.arg, (hint, _copied(default, _is_constant) or none)


def _copied(node: ast.expr | None, is_fit: Callable[[ast.expr], bool]) -> ast.expr | None:
    """Return a part of a source that may be written again; None if it runs anything."""
    try:
        if node is not None and is_fit(node) and ast.unparse(node):
            return node
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    return None


def _is_constant(node: ast.expr) -> bool:
    ast.literal_eval(node)
    return is_literal(node)


def _is_known_type(node: ast.expr) -> bool:
    inner = [*ast.walk(node)]
    names = {each.id for each in inner if isinstance(each, ast.Name)}
    dotted = any(isinstance(each, ast.Attribute) for each in inner)
    return is_plain_type(node) and not dotted and names <= _HINTS


def _declared_signature(spec: WorkflowSpec, tool: Function | None) -> _Signature:
    """Return the parameters that follow from a declaration: the fields of a reply or a payload."""
    if isinstance(tool, UiTool):
        properties = as_object((tool.payload_schema or {}).get("properties")) or {}
        types = {name: (as_object(schema) or {}).get("type") for name, schema in properties.items()}
        return {
            name: (ast.Name(_JSON_HINTS.get(str(type_), "Any")), ast.Constant(None))
            for name, type_ in types.items()
        }
    if not isinstance(tool, AgentTool) or not tool.auto_invoke:
        return {}
    bound = {binding.model for binding in spec.registry if binding.agent == tool.agent}
    models = (model for model in spec.models if model.name in bound)
    return {
        name: (_type_hint(field.type), None)
        for model in models
        for name, field in model.fields.items()
    }


def _type_hint(type_: TypeExpr) -> ast.expr:
    """Return the type hint of a type: literals and scalars as they are."""
    if isinstance(type_, LiteralOf):
        values = ast.Tuple([ast.Constant(value) for value in type_.values])
        return ast.Subscript(ast.Name("Literal"), values)
    word = print_type(type_).partition("[")[0]
    return ast.Name(word) if word in _JSON_HINTS.values() else _ANY
