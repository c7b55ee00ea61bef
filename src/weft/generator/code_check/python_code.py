"""Whether Python that a model wrote can be part of a package. It is parsed, never executed.

What passes runs nothing at import, uses listed names only, touches no variable that is not its own,
and asks people with its own UI tools only.
"""

import ast
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from weft.check.code.functions import CONTEXT_NAMES, called_name, is_context_type
from weft.generator.code_check.allowed import (
    ATTRIBUTES,
    BUILTINS,
    INNER,
    LIBRARIES,
    NAMES,
    READS,
    RESERVED,
    WITHOUT_NAME,
    WRITES,
)
from weft.generator.code_check.import_effects import module_effects
from weft.ids import BUILT_IN_VARIABLES

MAX_BYTES: Final = 20_000
#: Beyond this depth, versions of Python and tools that read code fail at different points.
MAX_DEPTH: Final = 100
MAX_BITS: Final = 2_000
_CONTEXT: Final = "context_variables"
_UI_CALLS: Final = ("use_ui_tool", "show_ui_tool")
_AWAITED: Final = (*_UI_CALLS, "ask", "refresh")
#: Python reads a file in the encoding that one of its first two lines names.
_ENCODING: Final = re.compile(r"^[ \t\f]*#.*?coding[:=]", re.MULTILINE)

_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORT: Final = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a package declares of a file of Python."""

    #: The functions that a run calls, and those of them that ask a person.
    functions: frozenset[str] = frozenset()
    asking: frozenset[str] = frozenset()
    #: The keys of results that variables are set from.
    keys: frozenset[str] = frozenset()
    #: The variables that it may read, and those that tools may set.
    variables: frozenset[str] = frozenset()
    settable: frozenset[str] = frozenset()
    requirements: frozenset[str] = frozenset()


def python_faults(source: str, declared: Declared) -> list[str]:
    """Return why a text cannot be a file of the package; nothing if it can."""
    if len(source.encode("utf-8", "replace")) > MAX_BYTES:
        return [f"it is longer than {MAX_BYTES:,} bytes"]
    if fault := invisible_sign(source):
        return [fault]
    if _ENCODING.search("\n".join(source.split("\n")[:2])):
        return ["it names an encoding"]
    tree = _parsed(source)
    if isinstance(tree, str):
        return [tree]
    try:
        return list(dict.fromkeys(_Reading(tree, declared).faults()))
    except RecursionError:
        return ["it is nested too deeply"]


def invisible_sign(text: str) -> str | None:
    """Return that a text has an invisible character, such as one that reverses the direction."""
    strange = next((sign for sign in text if not sign.isprintable() and sign not in "\n\t"), None)
    return f"it has the invisible sign U+{ord(strange):04X}" if strange else None


def imported_libraries(source: str, libraries: Iterable[str]) -> list[str]:
    """Return which of the libraries a text that parses imports from."""
    modules = {name for node in ast.walk(ast.parse(source)) for name in _modules(node)}
    return [library for library in libraries if modules & LIBRARIES.get(library, {}).keys()]


def _parsed(source: str) -> ast.Module | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = ast.parse(source)
            # Some mistakes show only here, such as `return` outside of a function.
            compile(source, "<generated>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"it is not valid Python: {str(error)[:100]}"
    if any(isinstance(node, ast.Constant) and _is_long(node.value) for node in ast.walk(tree)):
        return "it has a number with too many digits"
    return tree if _depth(tree) <= MAX_DEPTH else "it is nested too deeply"


def _is_long(value: object) -> bool:
    """Return whether a value is a number that Python may refuse to write as text."""
    return isinstance(value, int) and value.bit_length() > MAX_BITS


def _depth(tree: ast.Module) -> int:
    depth, level = 0, list[ast.AST]([tree])
    while level:
        depth, level = depth + 1, [inner for node in level for inner in ast.iter_child_nodes(node)]
    return depth


def _importable(requirements: Collection[str]) -> Mapping[str, frozenset[str]]:
    extra = (LIBRARIES[name].items() for name in requirements if name in LIBRARIES)
    return {**NAMES, **{module: names for found in extra for module, names in found}}


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or ""


class _Reading:
    """A file while it is compared with what the package declares of it."""

    def __init__(self, tree: ast.Module, declared: Declared) -> None:
        self._tree, self._declared = tree, declared
        self._importable = _importable(declared.requirements)
        self._nodes = [*ast.walk(tree)]
        self._parents = {
            inner: node for node in self._nodes for inner in ast.iter_child_nodes(node)
        }
        imports = [node for node in self._nodes if isinstance(node, ast.Import)]
        self._modules = {alias.name for node in imports for alias in node.names}

    def faults(self) -> Iterator[str]:
        yield from self._functions()
        yield from module_effects(self._tree, self._nodes)
        yield from self._meanings()
        for node in self._nodes:
            yield from _forbidden(node)
            match node:
                case ast.arguments():
                    yield from self._arguments(node)
                case ast.Import() | ast.ImportFrom():
                    yield from self._imports(node)
                case ast.Name(id=name) if name in self._modules:
                    yield from self._of_module(name, self._parents[node])
                case ast.Name(id=name) if name == _CONTEXT:
                    yield from self._of_context(self._parents[node])
                case ast.Name(id=name) if name in _UI_CALLS:
                    if getattr(self._parents[node], "func", None) is not node:
                        yield f"it passes {name} on"
                case ast.Call() if called_name(node.func) in _AWAITED:
                    if not isinstance(self._parents[node], ast.Await):
                        yield f"it does not await {called_name(node.func)}"
                case _:
                    pass
        lacking = sorted(self._declared.keys - _words(self._nodes))
        if lacking:
            yield f"its result lacks {', '.join(lacking)}, which variables are set from"

    def _functions(self) -> Iterator[str]:
        """Yield the declared functions that are missing, and questions of others' tools."""
        found = [node for node in self._tree.body if isinstance(node, _FUNCTION)]
        names = [node.name for node in found]
        for name in sorted(self._declared.functions):
            if names.count(name) != 1:
                yield f"it does not define {name} once"
        asked = {node.name: _asked(ast.walk(node)) for node in found}
        for name, tools in asked.items():
            if name in self._declared.asking and tools != {name}:
                yield f'{name} must ask with use_ui_tool("{name}", ...), and nothing else'
            elif name not in self._declared.asking and not tools <= self._declared.asking:
                yield f"{name} asks with UI tools that are not declared in this file"

    def _arguments(self, arguments: ast.arguments) -> Iterator[str]:
        """Yield the ways in which a function would get the context under another name."""
        if arguments.vararg or arguments.kwarg:
            yield "it has *args or **kwargs: name the parameters"
        for node in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            is_context = node.annotation is not None and is_context_type(node.annotation)
            if node.arg in CONTEXT_NAMES - {_CONTEXT} or (is_context and node.arg != _CONTEXT):
                yield f"the parameter {node.arg[:40]} must be named {_CONTEXT}"

    def _meanings(self) -> Iterator[str]:
        """Yield unknown names, and names that are defined again."""
        bound = [*_bound(self._nodes)]
        imports = (node for node in self._nodes if isinstance(node, _IMPORT))
        imported = {alias.name for node in imports for alias in node.names}
        own = {*bound, *imported, *BUILTINS}
        for node in self._nodes:
            if isinstance(node, ast.Name) and node.id not in own:
                yield f"it uses {node.id[:40]}, which is not allowed"
        for name in sorted((RESERVED | imported | BUILTINS).intersection(bound)):
            yield f"it gives {name} another meaning: choose another name"

    def _imports(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if any(alias.asname for alias in node.names):
            yield "it imports under another name"
        if isinstance(node, ast.Import):
            strange = [alias.name for alias in node.names if alias.name not in self._importable]
            strange += [alias.name for alias in node.names if "." in alias.name]
        else:
            known = self._importable.get(node.module or "", frozenset[str]())
            names = (alias.name for alias in node.names if alias.name not in known)
            strange = [f"{node.module}.{name}" for name in names]
            strange += ["a file of the package"] if node.level else []
        yield from (f"it imports {name[:60]}, which is not allowed" for name in strange)

    def _of_module(self, name: str, parent: ast.AST) -> Iterator[str]:
        known = self._importable.get(name, frozenset[str]())
        if not (isinstance(parent, ast.Attribute) and parent.attr in known):
            yield f"it uses {name} for more than is allowed"

    def _of_context(self, parent: ast.AST) -> Iterator[str]:
        readable = {*self._declared.variables, *BUILT_IN_VARIABLES}
        match parent, self._parents.get(parent):
            case ast.Attribute(attr=method), _ if method in WITHOUT_NAME:
                return
            case (
                ast.Attribute(attr=method),
                ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]),
            ) if function is parent:
                known = readable if method in READS else self._declared.settable
                if method not in READS | WRITES:
                    yield f"it uses {_CONTEXT}.{method[:40]}, which is not allowed"
                elif name not in known:
                    does = "reads" if method in READS else "sets"
                    yield f"it {does} {name[:40]}, which tools cannot {does.rstrip('s')} here"
            case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()), _:
                if name not in readable:
                    yield f"it reads {name[:40]}, which tools cannot read here"
            case _:
                yield (
                    f"it uses {_CONTEXT} other than by a method and the name of a variable in "
                    "quotes: give helpers plain values"
                )


def _forbidden(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.While() | ast.AsyncFor():
            yield "it has a loop that may never end: use for"
        case ast.Yield() | ast.YieldFrom() | ast.Global():
            yield "it has yield or global"
        case ast.ExceptHandler(type=None):
            yield "it has an except without a type, which also catches the end of a call"
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            yield "it changes an object from outside"
        case ast.Attribute(attr=name) if _leads_out(name):
            yield f"it uses the attribute {name[:40]}, which is not allowed"
        case ast.MatchClass(kwd_attrs=names) if any(map(_leads_out, names)):
            yield "it matches attributes that are not allowed"
        case _:
            pass


def _leads_out(name: str) -> bool:
    return name in ATTRIBUTES or name == _CONTEXT or name.startswith(INNER)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that are defined, without imports."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case _:
                continue


def _asked(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the UI tools that code asks with; "" for one that is not named in quotes."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and called_name(node.func) in _UI_CALLS:
            named = (keyword.value for keyword in node.keywords if keyword.arg == "tool_id")
            first = node.args[0] if node.args else next(named, None)
            found.add(str(first.value) if isinstance(first, ast.Constant) else "")
    return found


def _words(nodes: Iterable[ast.AST]) -> set[str]:
    """Return everything that may name a key of a result."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)):
                found.add(text)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.keyword(arg=str(name)):
                found.add(name)
            case _:
                continue
    return found
