"""The ways through the code of one function, and what is set on each of them."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from weft.check.raised_signals import raised_in, signal_of
from weft.check.variable_writes import WRITING, Write, writes_in

#: More ways than these are not told apart.
_MOST_PATHS: Final = 32

_SIMPLE: Final = (
    ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass, ast.Import, ast.ImportFrom,
    ast.Assert, ast.Delete,
)  # fmt: skip

#: What is only defined where it stands, and may be gone through later.
_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

#: Parts of an expression that may be left out, or come more than once.
_CHOICES: Final = (
    ast.BoolOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodePath:
    """One way through a function; `ended` means that nothing more happens on it.

    One that has `declined` has ended without a result.
    """

    writes: tuple[Write, ...] = ()
    ended: bool = False
    declined: bool = False


@dataclass(frozen=True, slots=True)
class Ways:
    """What is set on each way through a function, as far as they can be told apart.

    `related` means that its decisions hang together, so that not every way may be gone. `raises`
    means that it may end without a result; where it `fails`, what it has set does not count, where
    it `declines`, it does. `returns` means that on some way it may come to a result.
    """

    writes: tuple[tuple[Write, ...], ...] | None = None
    related: bool = False
    raises: bool = False
    fails: bool = False
    declines: bool = False
    returns: bool = True


def ways_through(text: str, function: str) -> Ways:
    """Return the ways through a function on which it does not fail.

    Of several functions of one name the last one counts.
    """
    for statement in reversed(ast.parse(text).body):
        named = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        if named and statement.name == function:
            found = _through(statement.body, (CodePath(),))
            return Ways(
                writes=None if found is None else tuple(path.writes for path in found),
                related=_hang_together(statement) or _stops(statement) or _defers(statement),
                raises=_raises(statement, "Ask"),
                fails=_raises(statement, "Ask", "Refuse"),
                declines=any(path.declined for path in found or ()),
                # What stands around a function may catch what it raises.
                returns=found is None
                or bool(statement.decorator_list)
                or not all(path.declined for path in found),
            )
    return Ways()


def _hang_together(function: ast.AST) -> bool:
    """Tell whether two decisions look at the same thing; one of them may settle the other."""
    chains = list(_chains(function))
    asked = [{ast.dump(test) for test in tests} for tests in chains]
    seen = [{name for test in tests for name in _names(test)} for tests in chains]
    twice = any(len(tests) > len(different) for tests, different in zip(chains, asked, strict=True))
    return twice or any(one & other for one, other in combinations(seen, 2))


def _raises(function: ast.AST, *but: str) -> bool:
    """Tell whether a function raises anything but signals of these names."""
    return not raised_in(ast.walk(function)).issubset(but)


def _stops(function: ast.AST) -> bool:
    """Tell whether a function asserts what is no question: it may never get past that."""
    asserted = (node.test for node in ast.walk(function) if isinstance(node, ast.Assert))
    return any(isinstance(test, ast.Constant) for test in asserted)


def _defers(function: ast.AST) -> bool:
    """Tell whether something is set by a function inside a function: it may never be called."""
    inner = (node for node in ast.walk(function) if isinstance(node, (*_INNER, ast.Lambda)))
    return any(_writes(node) for node in inner if node is not function)


def _chains(function: ast.AST) -> Iterator[list[ast.expr]]:
    """Yield what is asked at each decision: of if, elif and elif only one applies."""
    decisions = [node for node in ast.walk(function) if isinstance(node, ast.If)]
    following = {it: _elif(it) for it in decisions}
    later = set(following.values())
    for decision in decisions:
        if decision not in later:
            yield [it.test for it in _chain(decision, following)]


def _chain(decision: ast.If | None, following: Mapping[ast.If, ast.If | None]) -> Iterator[ast.If]:
    while decision is not None:
        yield decision
        decision = following[decision]


def _elif(decision: ast.If) -> ast.If | None:
    match decision.orelse:
        case [ast.If() as other]:
            return other
        case _:
            return None


def _names(test: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(test) if isinstance(node, ast.Name))


def _through(body: Sequence[ast.stmt], paths: tuple[CodePath, ...]) -> tuple[CodePath, ...] | None:
    for statement in body:
        going = tuple(path for path in paths if not path.ended)
        if not going:
            break
        onward = _past(statement, going)
        if onward is None:
            return None
        paths = (*(path for path in paths if path.ended), *onward)
        paths = tuple(dict.fromkeys(paths))
        if len(paths) > _MOST_PATHS:
            return None
    return paths


def _past(statement: ast.stmt, paths: tuple[CodePath, ...]) -> tuple[CodePath, ...] | None:
    """Lead ways past a statement."""
    match statement:
        case ast.If(test=test, body=body, orelse=otherwise):
            paths = _with(paths, _writes(test))
            both = (_through(body, paths), _through(otherwise, paths))
            found = [path for side in both if side is not None for path in side]
            return None if None in both else tuple(found)
        case ast.Return():
            return _ended(_with(paths, _writes(statement)))
        # What a tool has set that declines counts, as if it had returned.
        case ast.Raise(exc=raised) if _is_of(raised, "Refuse"):
            return _ended(_with(paths, _writes(statement)), declined=True)
        case ast.Raise():
            # What a call that fails has set does not count, and it may be made again.
            return ()
        case _ if isinstance(statement, _SIMPLE):
            hidden = any(
                _writes(part) for part in ast.walk(statement) if isinstance(part, _CHOICES)
            )
            return None if hidden else _with(paths, _writes(statement))
        case _ if _writes(statement):
            return None
        case _:
            leaves = any(isinstance(part, ast.Return) for part in _own(statement))
            return (*paths, *_ended(paths)) if leaves else paths


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement, but not those of the functions and classes inside it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, _INNER):
            yield part
            waiting.extend(ast.iter_child_nodes(part))


def _is_of(raised: ast.expr | None, *names: str) -> bool:
    """Tell whether what is raised is a signal of one of these names."""
    return signal_of(raised) in names


def _ended(paths: tuple[CodePath, ...], *, declined: bool = False) -> tuple[CodePath, ...]:
    return tuple(CodePath(path.writes, ended=True, declined=declined) for path in paths)


def _with(paths: tuple[CodePath, ...], writes: Sequence[Write]) -> tuple[CodePath, ...]:
    return tuple(CodePath((*path.writes, *writes), path.ended) for path in paths)


def _writes(node: ast.AST) -> list[Write]:
    found = (inner for inner in ast.walk(node) if isinstance(inner, WRITING))
    return [write for inner in found for write in writes_in(inner)]
