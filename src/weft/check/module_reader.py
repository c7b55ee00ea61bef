"""Reading one Python file of a package: what its statements say, none of them run."""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from weft.check.asked_tools import UI_CALL, asked_in, named_in
from weft.check.context_sight import Handing, Taker, context_parameters, follow, taker_of
from weft.check.module_facts import Definition, FunctionNode, Module, PlacedWrite
from weft.check.name_uses import (
    attributes_set,
    bindings_in,
    gets_by_name,
    handed_about,
    hides_context,
    holds_inner,
    imports_in,
    own_decorators,
    wrapped_in,
)
from weft.check.package_files import file_of, folders_named, places_of
from weft.check.raised_signals import raised_in
from weft.check.signatures import Function, Spot, function_of
from weft.check.syntax_nodes import Nodes, flat, stored
from weft.check.uncallable import Thing, things_in
from weft.check.variable_writes import CONTEXT_NAMES, WRITING, Write, WritingNode, writes_in

_DEF: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORT: Final = (ast.Import, ast.ImportFrom)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


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
    reader = _Reader(path, text, files)
    for statement in tree.body:
        reader.read(statement)
    return reader.module()


@dataclass
class _Reader:
    """Collects what the statements of one file say, one statement after the other."""

    path: str
    text: str
    files: Collection[str]
    definitions: dict[str, Definition] = field(default_factory=dict[str, Definition])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    bodies: dict[str, FunctionNode] = field(default_factory=dict[str, FunctionNode])
    takers: list[tuple[Taker, Definition]] = field(default_factory=list[tuple[Taker, Definition]])
    strings: set[str] = field(default_factory=set[str])
    imports: set[str] = field(default_factory=set[str])
    origins: dict[str, tuple[str, str] | None] = field(
        default_factory=dict[str, tuple[str, str] | None]
    )
    things: dict[str, Thing] = field(default_factory=dict[str, Thing])
    #: The names that functions set for the whole file, whenever they are called.
    set_later: set[str] = field(default_factory=set[str])
    stars: set[str] = field(default_factory=set[str])
    anything: bool = False
    bindings: Counter[str] = field(default_factory=Counter[str])
    patches: set[str] = field(default_factory=set[str])
    about: set[str] = field(default_factory=set[str])
    by_name: bool = False
    #: The names that are imported, with what from where.
    sources: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    #: The names of functions, classes and what is imported from the package.
    code: set[str] = field(default_factory=set[str])
    #: The names of decorators that change nothing, and those that were one somewhere in the file.
    own: set[str] = field(default_factory=lambda: {"staticmethod"})
    trusted: set[str] = field(default_factory=lambda: {"staticmethod"})

    def module(self) -> Module:
        return Module(
            path=self.path,
            lines=() if self.text.isascii() else tuple(_LINE_END.split(self.text)),
            definitions=self.definitions,
            functions=self.functions,
            bodies=self.bodies,
            takers=tuple(self.takers),
            strings=frozenset(self.strings),
            imports=frozenset(self.imports),
            origins=self.origins,
            things={it: what for it, what in self.things.items() if it not in self.set_later},
            stars=frozenset(self.stars),
            anything=self.anything or "__getattr__" in self.definitions,
            bindings=self.bindings + Counter(name for name, _ in self.sources),
            own=dict(self.from_weft()),
            patches=frozenset(self.patches),
            about=frozenset(self.about),
            by_name=self.by_name or not self.trusted.isdisjoint(self.set_later),
        )

    def from_weft(self) -> Iterator[tuple[str, str]]:
        """Yield the names that are imported from Weft, with Weft's own; a file may be named so."""
        for name, source in self.sources:
            if source.partition(":")[0].partition(".")[0] == "weft" and not self.origins[name]:
                yield name, source.rpartition(":")[2]

    def read(self, statement: ast.stmt) -> None:
        """Read a top-level statement; what it binds shares all that stands in it."""
        nodes = Nodes(statement)
        names, imports = nodes.of(ast.Name), nodes.of(*_IMPORT)
        mentions = {node.id for node in names} | {node.attr for node in nodes.of(ast.Attribute)}
        mentions.update(alias.name for node in imports for alias in node.names)
        mentions.update(name for node in nodes.of(ast.MatchClass) for name in node.kwd_attrs)
        constants = (node.value for node in nodes.of(ast.Constant))
        texts = {value for value in constants if isinstance(value, str)}
        self.strings |= texts
        taken = [found for node in imports for found in self.imported(node)]
        for name, origin in taken:
            # A name that is imported from two places may be either.
            known = self.origins.setdefault(name, origin)
            self.origins[name] = origin if known == origin else None
            self.imports.update([origin[0]] if origin else ())
            self.stars.update([origin[0]] if origin and name == "*" else ())
        origins = (origin for _, origin in taken if origin and not isinstance(statement, _IMPORT))
        written, handed = _set_in(nodes)
        shown = asked_in(nodes) if UI_CALL in mentions else ()
        asked = frozenset((*shown, *named_in(texts)))
        inner = frozenset(origins)
        around = frozenset(
            it for node in imports for it in folders_named(self.path, node, self.files)
        )
        # A call of a generator by itself does nothing of what stands in it.
        steps = bool(nodes.of(ast.Yield, ast.YieldFrom))
        by_name = gets_by_name(nodes, mentions, self.files)
        is_code = isinstance(statement, (*_DEF, ast.ClassDef, *_IMPORT))
        bindings = [*bindings_in(nodes)]
        own = self.own.difference(bindings)
        inside = Definition(
            self.path,
            frozenset(mentions),
            written,
            handed,
            asked=asked,
            inner=inner | around,
            raised=raised_in(nodes.of(ast.Raise, ast.Assert)),
            veiled=hides_context(nodes, own) or (steps and bool(written or handed)),
            wrapped=steps or any(wrapped_in(nodes, own)),
            by_name=by_name,
            roams=bool(inner) or holds_inner(nodes) or (bool(asked) and not is_code),
        )
        self.bindings.update(bindings)
        self.sources.update(imports_in(imports))
        self.patches.update(attributes_set(nodes))
        self.about.update(handed_about(nodes, own))
        self.by_name |= by_name and not is_code
        self.takers.extend((taker_of(node), inside) for node in nodes.of(*_DEF))
        self.set_later.update(name for node in nodes.of(ast.Global) for name in node.names)
        bound = list(self.bound(statement, nodes))
        if not bound and inside.roams:
            # What stands in it may be called all the same: this is no name that code can have.
            bound = [(f"<line {statement.lineno}>", None)]
        for name, origin in bound:
            found = replace(inside, origin=origin) if origin else inside
            self.code.update([name] if origin else ())
            known = self.definitions.get(name)
            veiled = name in self.code
            self.definitions[name] = known.beside(found, veiled=veiled) if known else found
            self.things.pop(name, None)
            self.own.discard(name)
        self.things.update(things_in(statement))
        if "*" in mentions:
            self.own.clear()  # any name may have another meaning from here on
        fresh = {it for it in own_decorators(statement) if not self.bindings[it]}
        self.own |= {it for it in fresh if not self.origins[it]}
        self.trusted |= self.own

    def bound(
        self, statement: ast.stmt, nodes: Nodes
    ) -> Iterator[tuple[str, tuple[str, str] | None]]:
        """Yield the names that a statement binds, with where an import takes them from."""
        for part in flat(statement):
            if isinstance(part, _DEF):
                self.functions[part.name] = function_of(part)
                self.bodies[part.name] = part
                self.code.add(part.name)
                yield part.name, None
            elif isinstance(part, ast.ClassDef):
                self.code.add(part.name)
                yield part.name, None
            elif isinstance(part, _IMPORT):
                yield from self.imported(part)
            else:
                for name in stored(part, nodes if part is statement else Nodes(part)):
                    # How the function is called whose name this was does not matter any more.
                    self.functions.pop(name, None)
                    self.bodies.pop(name, None)
                    yield name, None

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
        """Find the package file that an import means."""
        found = (file_of(place, self.files) for place in places_of(self.path, parts, level))
        return next(filter(None, found), None)


def _set_in(nodes: Nodes) -> tuple[tuple[PlacedWrite, ...], tuple[Handing, ...]]:
    """Return what code sets, in the order it stands there, and how it hands the context on."""
    parameters = nodes.of(ast.arg)
    contexts = context_parameters(nodes)
    rebound = {node.id for node in nodes.of(ast.Name) if isinstance(node.ctx, ast.Store)}
    given = {node.arg for node in parameters} - rebound
    names = CONTEXT_NAMES | contexts
    found = [it for node in nodes.of(*WRITING) for it in _placed(node, given, names)]
    shared = {name for node in nodes.of(ast.Global) for name in node.names}
    handed, lost = follow(nodes.all(), names, names - shared) if contexts else ((), [])
    found += [PlacedWrite(Write(None), Spot(it.lineno, it.col_offset), "") for it in lost]
    return tuple(sorted(found, key=lambda it: (it.spot.line, it.spot.offset))), handed


def _placed(
    node: WritingNode, parameters: Container[str], names: Container[str]
) -> Iterator[PlacedWrite]:
    found = tuple(writes_in(node, names))
    if not found:
        return
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
    at = node.target if isinstance(node, ast.comprehension) else node
    spot = Spot(at.lineno, at.col_offset)
    for write in found:
        yield PlacedWrite(write, spot, through if through in parameters else "")
