"""The ways through the code of one function, and what is set on each of them."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.check.variable_writes import WRITING, Write, writes_in

#: More ways than these are not told apart.
_MOST_PATHS: Final = 32

_SIMPLE: Final = (
    ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass, ast.Import, ast.ImportFrom,
    ast.Assert, ast.Delete,
)  # fmt: skip

#: Parts of an expression that may be left out, or come more than once.
_CHOICES: Final = (
    ast.BoolOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodePath:
    """One way through a function; `ended` means that nothing more happens on it."""

    writes: tuple[Write, ...] = ()
    ended: bool = False


def paths_of(text: str, function: str) -> tuple[tuple[Write, ...], ...] | None:
    """Return what is set on each way through a function; None if they cannot be told apart."""
    for statement in ast.parse(text).body:
        named = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        if named and statement.name == function:
            found = _through(statement.body, (CodePath(),))
            return None if found is None else tuple(path.writes for path in found)
    return None


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
        case ast.Raise():
            # What a call that fails has set is nothing to rely on.
            return ()
        case _ if isinstance(statement, _SIMPLE):
            hidden = any(
                _writes(part) for part in ast.walk(statement) if isinstance(part, _CHOICES)
            )
            return None if hidden else _with(paths, _writes(statement))
        case _ if _writes(statement):
            return None
        case _:
            leaves = any(isinstance(part, ast.Return) for part in ast.walk(statement))
            return (*paths, *_ended(paths)) if leaves else paths


def _ended(paths: tuple[CodePath, ...]) -> tuple[CodePath, ...]:
    return tuple(CodePath(path.writes, ended=True) for path in paths)


def _with(paths: tuple[CodePath, ...], writes: Sequence[Write]) -> tuple[CodePath, ...]:
    return tuple(CodePath((*path.writes, *writes), path.ended) for path in paths)


def _writes(node: ast.AST) -> list[Write]:
    found = (inner for inner in ast.walk(node) if isinstance(inner, WRITING))
    return [write for inner in found for write in writes_in(inner)]
