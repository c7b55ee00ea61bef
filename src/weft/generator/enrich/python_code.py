"""Whether Python that a model wrote may take the place of the plain version. It is only read.

What passes has the functions of the plain version, does nothing when it is imported, and uses what
`allowed` lists. It may still be wrong or slow: that is for simulated runs and time limits to find.
"""

import ast
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from weft.check.code.functions import called_name
from weft.generator.enrich.allowed import (
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
from weft.generator.enrich.import_effects import FunctionNode, module_effects
from weft.generator.enrich.texts import unseen
from weft.ids import BUILT_IN_VARIABLES

MAX_BYTES: Final = 20_000
#: Versions of Python, and those who check code, give up at different depths beyond this.
MAX_DEPTH: Final = 100
_CONTEXT: Final = "context_variables"
_UI_CALLS: Final = ("use_ui_tool", "show_ui_tool")
_AWAITED: Final = (*_UI_CALLS, "ask", "refresh")
#: Python reads a file by the encoding that one of its first lines names.
_ENCODING: Final = re.compile(r"^[ \t\f]*#.*?coding[:=]", re.MULTILINE)

_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORT: Final = (ast.Import, ast.ImportFrom)


def python_faults(
    source: str,
    plain: str,
    *,
    variables: Collection[str] = (),
    requirements: Collection[str] = (),
) -> list[str]:
    """Say why a text cannot take the place of the plain version; nothing if it can.

    `variables` are those the code may read; it may set what the plain version sets.
    """
    if len(source.encode("utf-8", "replace")) > MAX_BYTES:
        return [f"it is longer than {MAX_BYTES:,} bytes"]
    if fault := unseen(source):
        return [fault]
    if _ENCODING.search("\n".join(source.split("\n")[:2])):
        return ["it names an encoding"]
    tree = _parsed(source)
    if isinstance(tree, str):
        return [tree]
    reading = _Reading(tree, ast.parse(plain), variables, _importable(requirements))
    try:
        return list(dict.fromkeys(reading.faults()))
    except RecursionError:
        return ["it is nested too deeply"]


def imported_libraries(source: str, libraries: Iterable[str]) -> list[str]:
    """Return those of the libraries that a text which parses imports from."""
    modules = {name for it in ast.walk(ast.parse(source)) for name in _modules(it)}
    return [it for it in libraries if modules & LIBRARIES.get(it, {}).keys()]


def _parsed(source: str) -> ast.Module | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = ast.parse(source)
            # Some mistakes show only here, such as `return` outside of a function.
            compile(source, "<enriched>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"it is not valid Python: {str(error)[:100]}"
    return tree if _depth(tree) <= MAX_DEPTH else "it is nested too deeply"


def _depth(tree: ast.Module) -> int:
    depth, level = 0, list[ast.AST]([tree])
    while level:
        depth, level = depth + 1, [it for node in level for it in ast.iter_child_nodes(node)]
    return depth


def _importable(requirements: Collection[str]) -> Mapping[str, frozenset[str]]:
    extra = (LIBRARIES[it].items() for it in requirements if it in LIBRARIES)
    return {**NAMES, **{module: names for found in extra for module, names in found}}


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (it.name for it in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or ""


class _Reading:
    """A text while it is compared with the plain version."""

    def __init__(
        self,
        tree: ast.Module,
        plain: ast.Module,
        variables: Collection[str],
        importable: Mapping[str, frozenset[str]],
    ) -> None:
        self._tree, self._plain, self._importable = tree, plain, importable
        self._nodes = [*ast.walk(tree)]
        self._parents = {it: node for node in self._nodes for it in ast.iter_child_nodes(node)}
        plainly = [*ast.walk(plain)]
        self._readable = {*variables, *BUILT_IN_VARIABLES, *_named(plainly, READS | WRITES)}
        self._settable = {*_named(plainly, WRITES)}
        imports = [it for it in self._nodes if isinstance(it, ast.Import)]
        self._modules = {it.name for node in imports for it in node.names}

    def faults(self) -> Iterator[str]:
        yield from _other_functions(self._tree, self._plain)
        yield from module_effects(self._tree, self._nodes)
        yield from self._meanings()
        for node in self._nodes:
            yield from _forbidden(node)
            match node:
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
        if _asked(self._nodes) != _asked(ast.walk(self._plain)):
            yield "it asks by other UI tools than the plain version"
        lost = sorted(_keys(self._plain) - _words(self._nodes))
        if lost:
            yield f"its result lacks {', '.join(lost)}"

    def _meanings(self) -> Iterator[str]:
        """Yield the names that stand for nothing, or not for what they seem to."""
        bound = [*_bound(self._nodes)]
        imported = {
            it.name for node in self._nodes if isinstance(node, _IMPORT) for it in node.names
        }
        own = {*bound, *imported, *BUILTINS}
        for node in self._nodes:
            if isinstance(node, ast.Name) and node.id not in own:
                yield f"it uses {node.id[:40]}, which it may not"
        fixed = (RESERVED | BUILTINS).difference(_bound(ast.walk(self._plain)))
        for name in sorted(fixed.union(imported).intersection(bound)):
            yield f"it gives {name} another meaning"

    def _imports(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if any(it.asname for it in node.names):
            yield "it imports under another name"
        if isinstance(node, ast.Import):
            strange = [it.name for it in node.names if it.name not in self._importable]
            strange += [it.name for it in node.names if "." in it.name]
        else:
            known = self._importable.get(node.module or "", frozenset[str]())
            strange = [f"{node.module}.{it.name}" for it in node.names if it.name not in known]
            strange += ["a file of the package"] if node.level else []
        yield from (f"it imports {it[:60]}, which it may not" for it in strange)

    def _of_module(self, name: str, parent: ast.AST) -> Iterator[str]:
        known = self._importable.get(name, frozenset[str]())
        if not (isinstance(parent, ast.Attribute) and parent.attr in known):
            yield f"it uses {name} for more than it may"

    def _of_context(self, parent: ast.AST) -> Iterator[str]:
        match parent, self._parents.get(parent):
            case ast.Attribute(attr=method), _ if method in WITHOUT_NAME:
                return
            case (
                ast.Attribute(attr=method),
                ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]),
            ) if function is parent:
                known = self._readable if method in READS else self._settable
                if method not in READS | WRITES:
                    yield f"it uses {_CONTEXT}.{method[:40]}, which it may not"
                elif name not in known:
                    done = "reads" if method in READS else "sets"
                    yield f"it {done} {name[:40]}, which is not for it"
            case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()), _:
                if name not in self._readable:
                    yield f"it reads {name[:40]}, which is not for it"
            case _:
                yield f"it uses {_CONTEXT} otherwise than by its methods and the name of a variable"


def _other_functions(tree: ast.Module, plain: ast.Module) -> Iterator[str]:
    """Yield where the functions differ that the run calls; private ones are free."""
    wanted = {it.name: it for it in plain.body if isinstance(it, _FUNCTION)}
    names = [it.name for it in tree.body if isinstance(it, _FUNCTION)]
    given = {it.name: it for it in tree.body if isinstance(it, _FUNCTION)}
    for name, function in wanted.items():
        if name.startswith("_"):
            continue
        if names.count(name) != 1:
            yield f"it does not define {name} once"
        elif _head(function) != _head(given[name]):
            yield f"{name} is not called as in the plain version: {_head(function)}"
    extra = [it for it in given if it not in wanted and not it.startswith("_")]
    yield from (f"it defines {it[:40]}, which nothing calls" for it in extra)


def _head(function: FunctionNode) -> str:
    kind = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{kind} {function.name}({ast.unparse(function.args)}){returns}"


def _forbidden(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.While() | ast.AsyncFor():
            yield "it has a loop that may never end; for is enough"
        case ast.Yield() | ast.YieldFrom() | ast.Global():
            yield "it has yield or global"
        case ast.ExceptHandler(type=None):
            yield "it catches everything, also what ends a call"
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            yield "it changes an object from outside"
        case ast.Attribute(attr=name) if _leads_out(name):
            yield f"it uses the attribute {name[:40]}, which it may not"
        case ast.MatchClass(kwd_attrs=names) if any(map(_leads_out, names)):
            yield "it matches attributes that it may not use"
        case _:
            pass


def _leads_out(name: str) -> bool:
    return name in ATTRIBUTES or name == _CONTEXT or name.startswith(INNER)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that are given a meaning, but for imports."""
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


def _named(nodes: Iterable[ast.AST], methods: Collection[str]) -> Iterator[str]:
    """Yield the variables that code names in calls of the context."""
    for node in nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=holder), attr=method),
                args=[ast.Constant(value=str(name)), *_],
            ) if holder == _CONTEXT and method in methods:
                yield name
            case _:
                continue


def _asked(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the UI tools that code asks by; "" for one that it does not name."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and called_name(node.func) in _UI_CALLS:
            named = (it.value for it in node.keywords if it.arg == "tool_id")
            first = node.args[0] if node.args else next(named, None)
            found.add(str(first.value) if isinstance(first, ast.Constant) else "")
    return found


def _keys(plain: ast.Module) -> set[str]:
    """Return what a result of the plain version has: keys it returns, fields of its classes."""
    returned = (
        it for node in ast.walk(plain) if isinstance(node, ast.Return) for it in ast.walk(node)
    )
    keys = (key for it in returned if isinstance(it, ast.Dict) for key in it.keys)
    classes = (it for node in plain.body if isinstance(node, ast.ClassDef) for it in node.body)
    fields = (it.target for it in classes if isinstance(it, ast.AnnAssign))
    return {
        *(str(it.value) for it in keys if isinstance(it, ast.Constant)),
        *(it.id for it in fields if isinstance(it, ast.Name)),
    }


def _words(nodes: Iterable[ast.AST]) -> set[str]:
    """Return all that may name a key of a result."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)):
                found.add(text)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case _:
                continue
    return found
