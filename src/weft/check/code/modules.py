"""One Python file of a package, known by its syntax tree alone: it is never imported."""

import ast
import re
import warnings
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from weft.check.code.signatures import Function, Spot, function_of, is_context_type
from weft.check.code.writes import CONTEXT_NAMES, WRITING, Write, WritingNode, called, writes_in
from weft.findings import Place

#: The function by which code asks a person, and the signal that asks in a tool's own name.
UI_CALL: Final = "use_ui_tool"
OWN_SIGNAL: Final = "Ask"

#: What cannot be called as a function is.
Thing: TypeAlias = Literal["a class", "a module", "a value"]
#: A tool that is shown to a person, or None for one that is worked out; where that stands, and by
#: which name the function is called or found.
Question: TypeAlias = tuple[str | None, Spot, str]
#: A file of the package and a name in it, or "" for the file as a whole.
Origin: TypeAlias = tuple[str, str]

_DEF: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_COMPOUND: Final = (
    ast.If, ast.For, ast.While, ast.With, ast.Try, ast.TryStar, ast.ExceptHandler, ast.Match,
    ast.match_case,
)  # fmt: skip
#: Expressions whose value nobody can call.
_VALUES: Final = (
    ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.JoinedStr, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


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

    `origin` is set for an import from another file of the package. `asked` are the UI tools that it
    shows to a person; `inner` is what it imports
    inside from other files of the package.
    """

    file: str
    mentions: frozenset[str]
    written: tuple[PlacedWrite, ...]
    asked: frozenset[Question]
    inner: frozenset[Origin]
    origin: Origin | None = None

    @property
    def writes(self) -> tuple[Write, ...]:
        return tuple(placed.write for placed in self.written)

    def beside(self, other: "Definition") -> "Definition":
        """Return what stands behind a name that may mean this or, later in the file, another."""
        return replace(
            other,
            mentions=self.mentions | other.mentions,
            written=tuple(dict.fromkeys((*self.written, *other.written))),
            asked=self.asked | other.asked,
            inner=self.inner | other.inner | ({self.origin} if self.origin else set()),
        )


@dataclass
class Module:
    """What one file defines and uses; `anything` means that it may define further names."""

    path: str
    #: Empty where bytes and characters are the same.
    lines: tuple[str, ...]
    definitions: dict[str, Definition] = field(default_factory=dict[str, Definition])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    #: The files of the package that it imports from.
    imports: set[str] = field(default_factory=set[str])
    #: The names imported at any depth, with where in the package they come from, if they do.
    origins: dict[str, Origin | None] = field(default_factory=dict[str, Origin | None])
    #: The names that stand for something else than a function, with what that is.
    things: dict[str, Thing] = field(default_factory=dict[str, Thing])
    #: The files of the package from which all names are imported.
    stars: set[str] = field(default_factory=set[str])
    anything: bool = False

    def defines(self, name: str) -> bool:
        return self.anything or name in self.definitions

    def thing(self, name: str) -> Thing | None:
        return None if self.anything else self.things.get(name)

    def place(self, spot: Spot) -> Place:
        """Say where something stands, in characters from 1."""
        if not self.lines:
            return Place(self.path, spot.line, spot.offset + 1)
        before = self.lines[spot.line - 1].encode()[: spot.offset]
        return Place(self.path, spot.line, len(before.decode()) + 1)


def read_module(path: str, text: str, files: Collection[str]) -> Module | SyntaxError:
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
    module = Module(path, () if text.isascii() else tuple(_LINE_END.split(text)))
    set_later: set[str] = set()
    for statement in tree.body:
        nodes = list(ast.walk(statement))
        set_later.update(name for it in nodes if isinstance(it, ast.Global) for name in it.names)
        _read(module, statement, nodes, files)
    # What functions set for the whole file may be anything by the time it is used.
    module.things = {it: what for it, what in module.things.items() if it not in set_later}
    module.anything = module.anything or "__getattr__" in module.definitions
    return module


def _read(
    module: Module, statement: ast.stmt, nodes: Sequence[ast.AST], files: Collection[str]
) -> None:
    """Read a top-level statement; what it binds shares all that stands in it."""
    imports = [it for it in nodes if isinstance(it, ast.Import | ast.ImportFrom)]
    taken = [found for node in imports for found in _imported(module.path, node, files)]
    for name, origin in taken:
        # A name that is imported from two places may be either.
        known = module.origins.setdefault(name, origin)
        module.origins[name] = origin if known == origin else None
        module.imports.update([origin[0]] if origin else ())
        module.stars.update([origin[0]] if origin and name == "*" else ())
        module.anything = module.anything or name == "*"
    outer = isinstance(statement, ast.Import | ast.ImportFrom)
    inside = Definition(
        module.path,
        frozenset(_mentions(nodes)),
        tuple(_written(nodes)),
        frozenset(_asked(nodes)),
        frozenset(origin for _, origin in taken if origin and not outer),
    )
    for name, origin in _bound(module, statement, files):
        found = replace(inside, origin=origin)
        known = module.definitions.get(name)
        module.definitions[name] = known.beside(found) if known else found
        module.things.pop(name, None)
    module.things.update(_things_in(statement))


def _mentions(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case _:
                continue


def _asked(nodes: Sequence[ast.AST]) -> Iterator[Question]:
    for node in nodes:
        if isinstance(node, ast.Call) and called(node.func) == UI_CALL:
            given = (it.value for it in node.keywords if it.arg == "tool_id")
            root = node.func
            while isinstance(root, ast.Attribute):
                root = root.value
            match node.args[0] if node.args else next(given, None):
                case ast.Constant(value=str(name)) as named:
                    yield name, Spot(named.lineno, named.col_offset), called(root)
                case _:
                    yield None, Spot(node.lineno, node.col_offset), called(root)


def _written(nodes: Sequence[ast.AST]) -> Iterator[PlacedWrite]:
    """Yield what code sets, in the order it stands there."""
    parameters = [it for it in nodes if isinstance(it, ast.arg)]
    hinted = (it.arg for it in parameters if it.annotation and is_context_type(it.annotation))
    names = CONTEXT_NAMES.union(hinted)
    stored = (it for it in nodes if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store))
    given = {it.arg for it in parameters} - {it.id for it in stored}
    writing = [it for it in nodes if isinstance(it, WRITING)]
    for node in sorted(writing, key=lambda it: (it.lineno, it.col_offset)):
        yield from _placed(node, given, names)


def _placed(
    node: WritingNode, parameters: Container[str], names: Container[str]
) -> Iterator[PlacedWrite]:
    match node:
        case ast.Call(func=ast.Attribute(attr="pop")):
            through = ""  # it may leave the variable be
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            through = name
        case ast.Call(func=ast.Name(), args=[ast.Name(id=name), *_]):
            through = name
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
            through = name
        case _:
            through = ""
    spot = Spot(node.lineno, node.col_offset)
    for write in writes_in(node, names):
        yield PlacedWrite(write, spot, through if through in parameters else "")


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
            for name in _stored(part):
                # How the function is called whose name this was does not matter any more.
                module.functions.pop(name, None)
                yield name, None


def _stored(part: ast.AST) -> Iterator[str]:
    if isinstance(part, ast.AnnAssign) and part.value is None:
        return  # it only says what type the name has
    nodes = list(ast.walk(part))
    # The names that a comprehension uses for itself are gone after it.
    inner = (it.target for it in nodes if isinstance(it, ast.comprehension))
    own = {it for target in inner for it in ast.walk(target)}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in own:
            yield node.id


def _things_in(statement: ast.stmt) -> Iterator[tuple[str, Thing]]:
    """Yield the names to which a top-level statement gives something that is no function."""
    match statement:
        case ast.ClassDef(name=name, decorator_list=[]):
            yield name, "a class"
        case ast.Import(names=aliases):
            for alias in aliases:
                yield alias.asname or alias.name.partition(".")[0], "a module"
        case ast.Assign(targets=targets, value=value) if isinstance(value, _VALUES):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, "a value"
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if isinstance(value, _VALUES):
            yield name, "a value"
        case _:
            return


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
        taken = (inner, "") if inner else (whole, alias.name) if whole else None
        yield alias.asname or alias.name, taken


def _meant(path: str, parts: list[str], level: int, files: Container[str]) -> str | None:
    """Return the file that an import in a file means; absolute ones may start in its folder."""
    folder = path.split("/")[:-1]
    if level > len(folder) + 1:
        return None
    if level:
        return file_of([*folder[: len(folder) + 1 - level], *parts], files)
    inside = parts[2:] if parts[0] == "workflows" else parts
    return file_of(inside, files) or file_of([*folder, *inside], files)


def file_of(parts: Sequence[str], files: Container[str]) -> str | None:
    """Return the file that a dotted module name, given by its parts, stands for."""
    stem = "/".join(parts)
    return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in files), None)
