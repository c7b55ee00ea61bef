"""How names are used in a piece of code: whether it shows what stands behind each of them."""

import ast
from collections.abc import Collection, Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from weft.check.context_sight import holds_context
from weft.check.syntax_nodes import Nodes

_DEF: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORT: Final = (ast.Import, ast.ImportFrom)
#: By these, code gets at functions and names that it does not show.
_HIDING: Final = frozenset({
    "globals", "locals", "vars", "eval", "exec", "__import__", "importlib",
    "import_module", "builtins", "__builtins__", "__dict__", "setattr", "runpy", "__setattr__",
    "__getattribute__", "__globals__", "__closure__", "__self__", "_mapping",
})  # fmt: skip
#: What `sys.modules` mentions.
_ALL_MODULES: Final = frozenset({"sys", "modules"})


def bindings_in(nodes: Nodes) -> Iterator[str]:
    """Yield each name as often as code gives it a meaning, at any depth; imports are left out."""
    yield from (it.id for it in nodes.of(ast.Name) if not isinstance(it.ctx, ast.Load))
    yield from (it.arg for it in nodes.of(ast.arg))
    yield from (it.name for it in nodes.of(*_DEF, ast.ClassDef))
    for part in nodes.of(ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        yield from [part.name] if part.name else ()
    yield from (it.rest for it in nodes.of(ast.MatchMapping) if it.rest)


def imports_in(
    statements: Iterable[ast.Import | ast.ImportFrom],
) -> Iterator[tuple[str, str]]:
    """Yield each name that is imported, with what from where: `weft.errors:Ask`, `os`."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            # `import os.path` gives a meaning to `os`.
            for it in statement.names:
                whole = it.name if it.asname else it.name.partition(".")[0]
                yield it.asname or whole, whole
        else:
            base = "." * statement.level + (statement.module or "")
            yield from ((it.asname or it.name, f"{base}:{it.name}") for it in statement.names)


def attributes_set(nodes: Nodes) -> Iterator[str]:
    """Yield the attributes that a piece of code sets: one may be a function of another file."""
    return (it.attr for it in nodes.of(ast.Attribute) if not isinstance(it.ctx, ast.Load))


def handed_about(nodes: Nodes, own: Container[str]) -> Iterator[str]:
    """Yield the names whose values a piece of code does not just call.

    What stands behind them may be called by anyone. `own` are decorators that change nothing.
    """
    called = {it.func for it in nodes.of(ast.Call)}
    asked = {it.value for it in nodes.of(ast.Attribute) if not it.attr.startswith("__")}
    harmless = called | asked
    yield from (it.id for it in nodes.of(ast.Name) if it not in harmless)
    yield from (it.attr for it in nodes.of(ast.Attribute) if it not in called)
    for statement in nodes.of(*_IMPORT):
        yield from (it.name for it in statement.names if it.asname)
    yield from (it.name for it in wrapped_in(nodes, own))


def holds_inner(nodes: Nodes) -> bool:
    """Tell whether code makes functions or objects that others may call, wherever they get to."""
    return bool(nodes.of(ast.ClassDef, ast.Lambda)) or len(nodes.of(*_DEF)) > 1


def wrapped_in(
    nodes: Nodes, own: Container[str]
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of which something else than Weft decides what a call of them does."""
    return (it for it in nodes.of(*_DEF) if _is_wrapped(it, own))


def _is_wrapped(function: ast.FunctionDef | ast.AsyncFunctionDef, own: Container[str]) -> bool:
    for decorator in function.decorator_list:
        match decorator.func if isinstance(decorator, ast.Call) else decorator:
            case ast.Name(id=name) if name in own and name != "weft":
                continue
            case ast.Attribute(value=ast.Name(id="weft"), attr="tool") if "weft" in own:
                continue
            case _:
                return True
    return False


def hides_context(nodes: Nodes, own: Container[str]) -> bool:
    """Tell whether a function that takes the context is wrapped in something."""
    for function in wrapped_in(nodes, own):
        taken = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        if any(holds_context(it) for it in taken):
            return True
    return False


def own_decorators(statement: ast.stmt) -> Iterator[str]:
    """Yield the names under which a statement imports Weft, or its decorator of tools."""
    match statement:
        case ast.Import(names=aliases):
            yield from (it.name for it in aliases if it.name == "weft" and not it.asname)
        case ast.ImportFrom(module=str(module), level=0, names=aliases):
            if module.partition(".")[0] == "weft":
                yield from (it.asname or it.name for it in aliases if it.name == "tool")
        case _:
            return


def gets_by_name(nodes: Nodes, mentions: AbstractSet[str], files: Collection[str]) -> bool:
    """Tell whether code gets at functions by names that it works out."""
    if not _HIDING.isdisjoint(mentions) or mentions >= _ALL_MODULES:
        return True
    for call in nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(), *_]):
                continue
            case ast.Call(func=ast.Name(id="getattr")):
                return True
            case _:
                continue
    return any(_is_folder(it, files) for it in nodes.of(ast.Import))


def _is_folder(statement: ast.Import, files: Collection[str]) -> bool:
    """Tell whether a folder of the package is imported: it shows no names."""
    for alias in statement.names:
        folder = alias.name.replace(".", "/")
        if (
            any(it.startswith(f"{folder}/") for it in files)
            and f"{folder}/__init__.py" not in files
        ):
            return True
    return False
