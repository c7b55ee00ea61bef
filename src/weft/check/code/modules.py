"""One Python file of a package, read by its syntax tree. It is never imported."""

import ast
import re
import warnings
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, TypeAlias

from weft.check.code.functions import (
    CONTEXT_NAMES,
    WRITING,
    Function,
    Spot,
    Write,
    called_name,
    function_of,
    is_context_type,
    read_in,
    writes_in,
    written_through,
)
from weft.findings import Place

#: Several threads check packages. Python keeps the depth of trees and its warnings for all threads
#: together: without it, one of them fails with a SystemError now and then.
_PARSING: Final = Lock()

#: The function by which code asks a person, and the signal that asks in a tool's own name.
UI_CALL: Final = "use_ui_tool"
OWN_SIGNAL: Final = "Ask"

#: A UI tool that code shows (None if its name is computed), the position of the call, and the name
#: by which the function is called or found.
Question: TypeAlias = tuple[str | None, Spot, str]
#: A file of the package and a name in it, or "" for the file as a whole.
Origin: TypeAlias = tuple[str, str]

_DEF: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_COMPOUND: Final = (
    ast.If, ast.For, ast.While, ast.With, ast.Try, ast.TryStar, ast.ExceptHandler, ast.Match,
    ast.match_case,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlacedWrite:
    """Code that sets a variable, and where.

    `through` names the object by which it surely does, or is "" if that is unknown.
    """

    write: Write
    spot: Spot
    through: str


@dataclass(frozen=True, slots=True)
class PlacedRead:
    """Code that reads a variable by name: its position, and the object it reads through."""

    variable: str
    spot: Spot
    through: str


@dataclass(frozen=True, slots=True)
class Definition:
    """What a name at the top level of a file is bound to.

    `origin` is set for an import from another file of the package. `asked` are the UI tools that it
    shows to a person; `inner` is what it imports inside from other files of the package.
    """

    file: str
    mentions: frozenset[str]
    written: tuple[PlacedWrite, ...]
    asked: frozenset[Question]
    inner: frozenset[Origin]
    reads: tuple[PlacedRead, ...] = ()
    #: Calls that ask a person and whose answer is not awaited.
    unawaited: tuple[Question, ...] = ()
    origin: Origin | None = None

    @property
    def writes(self) -> tuple[Write, ...]:
        return tuple(placed.write for placed in self.written)


@dataclass
class Module:
    """The definitions and uses of one file; "*" means all names of another file."""

    path: str
    #: Empty where bytes and characters are the same.
    lines: tuple[str, ...]
    definitions: dict[str, Definition] = field(default_factory=dict[str, Definition])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    #: The files of the package that it imports from.
    imports: set[str] = field(default_factory=set[str])

    def defines(self, name: str) -> bool:
        return not self.definitions.keys().isdisjoint((name, "*", "__getattr__"))

    def place(self, spot: Spot) -> Place:
        """Return the place of a position, counted in characters from 1."""
        if not self.lines:
            return Place(self.path, spot.line, spot.offset + 1)
        before = self.lines[spot.line - 1].encode()[: spot.offset]
        return Place(self.path, spot.line, len(before.decode()) + 1)


def read_module(path: str, text: str, files: Collection[str]) -> Module | SyntaxError:
    """Read one Python file; `files` are all code files of the package, for its imports."""
    try:
        with _PARSING, warnings.catch_warnings():
            # Python's warnings about the author's code are not shown by the checker.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=path)
            _compile(tree, path)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "Python cannot read this file")
    module = Module(path, () if text.isascii() else tuple(_LINE_END.split(text)))
    for statement in tree.body:
        _read(module, statement, files)
    return module


def _compile(tree: ast.Module, path: str) -> None:
    """Raise the SyntaxErrors that parsing does not find, such as `await` in a plain function."""
    try:
        compile(tree, path, "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        return  # deeply nested code can be read here all the same


def _read(module: Module, statement: ast.stmt, files: Collection[str]) -> None:
    """Read a top-level statement; every name it binds shares its content."""
    nodes = list(ast.walk(statement))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    taken = [origin for node in imports for _, origin in _imported(module.path, node, files)]
    origins = frozenset(origin for origin in taken if origin)
    module.imports.update(file for file, _ in origins)
    outer = isinstance(statement, ast.Import | ast.ImportFrom)
    inside = Definition(
        module.path,
        frozenset(_mentions(nodes)),
        tuple(_writes(nodes)),
        frozenset(_questions(nodes)),
        frozenset() if outer else origins,
        tuple(_reads(nodes)),
        tuple(_unawaited(nodes)),
    )
    for name, origin in _bound(module, statement, files):
        module.definitions[name] = replace(inside, origin=origin)


def _mentions(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case _:
                continue


def _questions(nodes: Sequence[ast.AST]) -> Iterator[Question]:
    for node in nodes:
        if isinstance(node, ast.Call) and called_name(node.func) == UI_CALL:
            given = (keyword.value for keyword in node.keywords if keyword.arg == "tool_id")
            match node.args[0] if node.args else next(given, None):
                case ast.Constant(value=str(name)) as named:
                    yield name, Spot(named.lineno, named.col_offset), _root(node)
                case _:
                    yield None, Spot(node.lineno, node.col_offset), _root(node)


def _root(call: ast.Call) -> str:
    """Return the first name of what is called: `weft` of `weft.use_ui_tool`."""
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return called_name(root)


def _unawaited(nodes: Sequence[ast.AST]) -> Iterator[Question]:
    """Yield the calls of use_ui_tool whose result is used, or dropped, without `await`."""
    returned = {id(node) for outer in nodes for node in _async_returns(outer)}
    for node in nodes:
        used = isinstance(node, ast.Expr | ast.Subscript | ast.Attribute) or id(node) in returned
        value = getattr(node, "value", None) if used else None
        if isinstance(value, ast.Call) and called_name(value.func) == UI_CALL:
            yield None, Spot(value.lineno, value.col_offset), _root(value)


def _async_returns(function: ast.AST) -> Iterator[ast.Return]:
    """Yield the return statements of an async function; a plain one may return a coroutine."""
    waiting: list[ast.AST] = []
    if isinstance(function, ast.AsyncFunctionDef):
        waiting += function.body
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, (*_DEF, ast.ClassDef)):
            inner = ast.iter_child_nodes(node)
            waiting += [node for node in inner if isinstance(node, (ast.stmt, *_COMPOUND))]


def _reads(nodes: Sequence[ast.AST]) -> Iterator[PlacedRead]:
    for node in nodes:
        if isinstance(node, ast.Call | ast.Subscript) and (found := read_in(node)):
            through, variable = found
            yield PlacedRead(variable, Spot(node.lineno, node.col_offset), through)


def _writes(nodes: Sequence[ast.AST]) -> Iterator[PlacedWrite]:
    """Yield the variables that code sets, in the order of the code."""
    hints = ((node.arg, node.annotation) for node in nodes if isinstance(node, ast.arg))
    names = CONTEXT_NAMES.union(name for name, hint in hints if hint and is_context_type(hint))
    writing = [node for node in nodes if isinstance(node, WRITING)]
    for node in sorted(writing, key=lambda node: (node.lineno, node.col_offset)):
        for write in writes_in(node, names):
            yield PlacedWrite(write, Spot(node.lineno, node.col_offset), written_through(node))


def _bound(
    module: Module, statement: ast.stmt, files: Collection[str]
) -> Iterator[tuple[str, Origin | None]]:
    """Yield the names that a statement binds, with where an import takes them from."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _COMPOUND):
            waiting.extend(reversed(list(ast.iter_child_nodes(part))))
        elif isinstance(part, _DEF):
            module.functions[part.name] = function_of(part)
            yield part.name, None
        elif isinstance(part, ast.ClassDef):
            yield part.name, None
        elif isinstance(part, ast.Import | ast.ImportFrom):
            yield from _imported(module.path, part, files)
        else:
            for node in ast.walk(part):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    # The name is bound again: the earlier signature no longer counts.
                    module.functions.pop(node.id, None)
                    yield node.id, None


def _imported(
    path: str, statement: ast.Import | ast.ImportFrom, files: Collection[str]
) -> Iterator[tuple[str, Origin | None]]:
    """Yield the names that an import binds, with the files of the package they come from."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            file = _meant(path, alias.name.split("."), 0, files)
            yield alias.asname or alias.name.split(".")[0], (file, "") if file else None
        return
    base = statement.module.split(".") if statement.module else []
    whole = _meant(path, base, statement.level, files)
    for alias in statement.names:
        inner = _meant(path, [*base, alias.name], statement.level, files)
        name = "" if alias.name == "*" else alias.name
        taken = (inner, "") if inner else (whole, name) if whole else None
        yield alias.asname or alias.name, taken


def _meant(path: str, parts: list[str], level: int, files: Container[str]) -> str | None:
    """Return the file that an import refers to; absolute imports may start in its own folder."""
    folder = path.split("/")[:-1]
    if level > len(folder) + 1:
        return None
    if level:
        return file_of([*folder[: len(folder) + 1 - level], *parts], files)
    inside = parts[2:] if parts[0] == "workflows" else parts
    return file_of(inside, files) or file_of([*folder, *inside], files)


def file_of(parts: Sequence[str], files: Container[str]) -> str | None:
    """Return the file of a dotted module name, given by its parts."""
    stem = "/".join(parts)
    return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in files), None)
