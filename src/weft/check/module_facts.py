"""One Python file of a package, known by its syntax tree alone: it is never imported."""

import ast
import re
import warnings
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from weft.check.signatures import Function, Spot, function_of
from weft.check.variable_writes import WRITING, Write, writes_in
from weft.findings import Place

#: What most fields of a node hold and has nothing below it: passed over, for speed.
_LEAVES: Final = frozenset({str, int, type(None), ast.Load})

_Writing: TypeAlias = ast.Call | ast.Assign | ast.AnnAssign | ast.AugAssign

_DEF: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORT: Final = (ast.Import, ast.ImportFrom)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class PlacedWrite:
    """Code that sets a variable, and where.

    `parameter` names the parameter through which it does, or is "" if it goes another way.
    """

    write: Write
    spot: Spot
    parameter: str


@dataclass(frozen=True, slots=True)
class Definition:
    """What stands behind a name at the top level of a file.

    `origin` is set for an import from another file of the package: that file and the name in it,
    or "" where the file is imported as a whole.
    """

    file: str
    mentions: frozenset[str]
    written: tuple[PlacedWrite, ...]
    origin: tuple[str, str] | None = None

    @property
    def writes(self) -> tuple[Write, ...]:
        """The variables it sets."""
        return tuple(placed.write for placed in self.written)


@dataclass(frozen=True, slots=True)
class Module:
    """What one file defines and uses; `anything` means that it may define further names."""

    path: str
    #: Empty where bytes and characters are the same.
    lines: tuple[str, ...]
    definitions: dict[str, Definition]
    functions: dict[str, Function]
    strings: frozenset[str]
    imports: frozenset[str]
    anything: bool

    def defines(self, name: str) -> bool:
        """Tell whether the name can be taken from this file."""
        return self.anything or name in self.definitions

    def place(self, spot: Spot) -> Place:
        """Say where something stands, in characters from 1."""
        if not self.lines:
            return Place(self.path, spot.line, spot.offset + 1)
        before = self.lines[spot.line - 1].encode()[: spot.offset]
        return Place(self.path, spot.line, len(before.decode()) + 1)


def read_module(path: str, text: str, files: Container[str]) -> Module | SyntaxError:
    """Read one Python file; `files` are all code files of the package, for its imports."""
    try:
        with warnings.catch_warnings():
            # What Python warns of while it parses is the author's affair, not the reader's.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=path)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "Python cannot read this file")
    reader = _Reader(path, text, files)
    for statement in tree.body:
        reader.read(statement)
    return reader.module()


def file_of(parts: Sequence[str], files: Container[str]) -> str | None:
    """Return the file that a dotted module name, given by its parts, stands for."""
    stem = "/".join(parts)
    return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in files), None)


@dataclass
class _Reader:
    """Collects what the statements of one file say, one statement after the other."""

    path: str
    text: str
    files: Container[str]
    definitions: dict[str, Definition] = field(default_factory=dict[str, Definition])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    strings: set[str] = field(default_factory=set[str])
    imports: set[str] = field(default_factory=set[str])
    anything: bool = False

    def module(self) -> Module:
        return Module(
            path=self.path,
            lines=() if self.text.isascii() else tuple(_LINE_END.split(self.text)),
            definitions=self.definitions,
            functions=self.functions,
            strings=frozenset(self.strings),
            imports=frozenset(self.imports),
            anything=self.anything or "__getattr__" in self.definitions,
        )

    def read(self, statement: ast.stmt) -> None:
        """Read a top-level statement; what it binds shares all that stands in it."""
        mentions: set[str] = set()
        writing: list[_Writing] = []
        parameters: set[str] = set()
        rebound: set[str] = set()
        for node in _nodes(statement):
            if isinstance(node, ast.Name):
                mentions.add(node.id)
                rebound.update([node.id] if isinstance(node.ctx, ast.Store) else ())
            elif isinstance(node, ast.arg):
                parameters.add(node.arg)
            elif isinstance(node, ast.Attribute):
                mentions.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.strings.add(node.value)
            elif isinstance(node, _IMPORT):
                mentions.update(alias.name for alias in node.names)
                self.imports.update(origin[0] for _, origin in self.imported(node) if origin)
            elif isinstance(node, WRITING):
                writing.append(node)
        given = parameters - rebound
        written = tuple(placed for node in writing for placed in _placed(node, given))
        for name, origin in self.bound(statement):
            self.definitions[name] = Definition(self.path, frozenset(mentions), written, origin)

    def bound(self, statement: ast.stmt) -> Iterator[tuple[str, tuple[str, str] | None]]:
        """Yield the names that a statement binds, with where an import takes them from."""
        for part in _flat(statement):
            if isinstance(part, _DEF):
                self.functions[part.name] = function_of(part)
                yield part.name, None
            elif isinstance(part, ast.ClassDef):
                yield part.name, None
            elif isinstance(part, _IMPORT):
                yield from self.imported(part)
            else:
                for node in _nodes(part):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id, None

    def imported(
        self, statement: ast.Import | ast.ImportFrom
    ) -> Iterator[tuple[str, tuple[str, str] | None]]:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                file = self.file(alias.name.split("."), 0)
                local = alias.asname or alias.name.split(".")[0]
                yield local, (file, "") if file else None
            return
        base = statement.module.split(".") if statement.module else []
        whole = self.file(base, statement.level)
        for alias in statement.names:
            self.anything = self.anything or alias.name == "*"
            inner = self.file([*base, alias.name], statement.level)
            taken = (inner, "") if inner else (whole, alias.name) if whole else None
            yield alias.asname or alias.name, taken

    def file(self, parts: list[str], level: int) -> str | None:
        """Find the package file that an import means; absolute ones may start in its folder."""
        folder = self.path.split("/")[:-1]
        if level > len(folder) + 1:
            return None
        if level:
            return file_of([*folder[: len(folder) + 1 - level], *parts], self.files)
        if parts[0] == "workflows":
            parts = parts[2:]
        return file_of(parts, self.files) or file_of([*folder, *parts], self.files)


def _nodes(root: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below a node; without recursion, and in no particular order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        for name in node._fields:
            value: object = getattr(node, name, None)
            kind = type(value)
            if kind is list:
                items = cast("list[object]", value)
                waiting += [item for item in items if isinstance(item, ast.AST)]
            elif kind not in _LEAVES and isinstance(value, ast.AST):
                waiting.append(value)


def _placed(node: _Writing, parameters: Container[str]) -> Iterator[PlacedWrite]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            through = name
        case ast.Call(func=ast.Name(), args=[ast.Name(id=name), *_]):
            through = name
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
            through = name
        case _:
            through = ""
    spot = Spot(node.lineno, node.col_offset)
    for write in writes_in(node):
        yield PlacedWrite(write, spot, through if through in parameters else "")


def _flat(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what a top-level statement consists of: compound ones are taken apart."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _COMPOUND):
            waiting.extend(reversed(list(ast.iter_child_nodes(part))))
        else:
            yield part


_COMPOUND: Final = (
    ast.If, ast.For, ast.While, ast.With, ast.Try, ast.TryStar, ast.ExceptHandler, ast.Match,
    ast.match_case,
)  # fmt: skip
