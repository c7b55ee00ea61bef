"""Whether Python does anything at import. The bodies of functions are not read."""

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_LITERAL: Final = "Literal"


def module_effects(tree: ast.Module, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield what would run at import: statements, decorators, defaults, type hints, classes."""
    decorators = {alias.name for alias in _from_weft(tree)} & {"tool"}
    for statement in tree.body:
        if not _is_still(statement):
            yield f"line {statement.lineno} runs when the file is imported"
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _of_function(node, decorators)
            case ast.Lambda(args=arguments):
                yield from _of_arguments(arguments)
            case ast.ClassDef():
                yield from _of_class(node)
            case ast.AnnAssign(annotation=hint):
                yield from _of_hint(hint)
            case _:
                continue


def _is_still(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.ClassDef():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name()], value=value):
            return is_literal(value)
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or is_literal(value)
        case _:
            return False


def is_literal(node: ast.expr | None) -> bool:
    """Return whether a value is written down and not computed."""
    match node:
        case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return all(map(is_literal, items))
        case ast.Dict(keys=keys, values=values):
            return all(map(is_literal, [*keys, *values]))
        case _:
            return False


def _from_weft(tree: ast.Module) -> Iterator[ast.alias]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "weft":
            yield from node.names


def _of_function(node: FunctionNode, decorators: Collection[str]) -> Iterator[str]:
    if node.name.startswith("__"):
        yield f"it defines the special function {node.name[:40]}"
    if any(not (isinstance(d, ast.Name) and d.id in decorators) for d in node.decorator_list):
        yield f"{node.name[:40]} has a decorator other than tool"
    yield from _of_arguments(node.args)
    if node.returns:
        yield from _of_hint(node.returns)


def _of_arguments(arguments: ast.arguments) -> Iterator[str]:
    defaults = [
        *arguments.defaults,
        *(value for value in arguments.kw_defaults if value is not None),
    ]
    if not all(map(is_literal, defaults)):
        yield "a default value is computed"
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    for argument in every:
        if argument.annotation:
            yield from _of_hint(argument.annotation)


def _of_hint(hint: ast.expr) -> Iterator[str]:
    if not is_plain_type(hint):
        # A type hint that is a text is evaluated as code by those who read the hint.
        yield f"the type hint in line {hint.lineno} is more than a type"


def is_plain_type(hint: ast.expr) -> bool:
    """Return whether a type hint names types only: reading it runs nothing."""
    match hint:
        case ast.Name() | ast.Attribute(value=ast.Name()):
            return True
        case ast.Constant(value=value):
            return value is None or value is ...
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return is_plain_type(left) and is_plain_type(right)
        case ast.Subscript(value=ast.Name(id=name), slice=inside):
            if name == _LITERAL:
                return is_literal(inside)
            items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return all(map(is_plain_type, items))
        case _:
            return False


def _of_class(node: ast.ClassDef) -> Iterator[str]:
    if node.decorator_list or node.keywords:
        yield f"the class {node.name[:40]} has a decorator or settings"
    if any(not isinstance(base, ast.Name) for base in node.bases):
        yield f"a base of the class {node.name[:40]} is computed"
    for statement in node.body:
        if not _is_declaration(statement):
            yield f"line {statement.lineno} is more than a declaration in a class"


def _is_declaration(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return not name.startswith("_")
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return not name.startswith("_") and is_literal(value)
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            plain = value is None or is_literal(value) or _is_field(value)
            return not name.startswith("_") and plain
        case _:
            return False


def _is_field(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="Field"), args=args, keywords=keywords):
            return all(map(is_literal, [*args, *(keyword.value for keyword in keywords)]))
        case _:
            return False
