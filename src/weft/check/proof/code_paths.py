"""The ways through the code of one function, and what it does on each of them.

Only code that is written plainly is followed: statements that set a variable, decisions among them,
returns and raises. What loops, `try`, `with` and the like do does not show, unless they do nothing
of this kind. That calls come back is taken for granted.
"""

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from weft.check.asked_tools import UI_CALL, named_tool
from weft.check.context_sight import context_parameters
from weft.check.module_facts import FunctionNode, Module
from weft.check.proof.free_choices import all_free
from weft.check.proof.plain_writes import any_writes, contexts_of, plain_writes
from weft.check.raised_signals import raised_in, raised_name
from weft.check.syntax_nodes import Nodes, certain_parts, dotted
from weft.check.variable_writes import CONTEXT_NAMES, Write, called

#: More ways than these are not told apart.
_MOST_PATHS: Final = 32

_SIMPLE: Final = (
    ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass, ast.Import, ast.ImportFrom,
    ast.Delete, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip
#: By these the program ends, not just the function.
_EXITS: Final = frozenset({"exit", "quit", "_exit", "abort"})
#: What is defined in one place and gone through later, if at all.
_LATER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

#: How a way ends: with a result, or without. What a call has set that declines counts; what one has
#: set that fails or asks does not. What else is raised may be any of these.
End: TypeAlias = Literal["returns", "declines", "fails", "asks", "raises"]
_VAIN: Final = frozenset({"fails", "asks"})


@dataclass(frozen=True, slots=True)
class CodePath:
    """One way through a function: what it sets, whom it asks, and how it ends, if it has ended."""

    writes: tuple[Write, ...] = ()
    asked: frozenset[str] = frozenset()
    end: End | None = None


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways through a function on which what it sets counts; None where they do not show.

    On others it may `fail`, or a signal `asks` a person. `free` means that each way can be chosen
    from outside. `raises` means that it may end without a result, and `returns` that on some way it
    may come to one.
    """

    paths: tuple[CodePath, ...] | None = None
    fails: bool = False
    asks: bool = False
    free: bool = False
    raises: bool = False
    returns: bool = True

    @property
    def sure(self) -> bool:
        """Whether there is one way, and it is always gone."""
        several = self.paths is None or len(self.paths) > 1
        return not several and not self.fails and not self.asks

    @property
    def declines(self) -> bool:
        """Whether on some way it ends without a result, but what it has set counts."""
        return any(path.end == "declines" for path in self.paths or ())

    def shows(self, tool: str) -> bool:
        """Tell whether a person is shown a UI tool on some way."""
        return any(tool in path.asked for path in self.paths or ())


def ways_through(module: Module, function: FunctionNode) -> Ways:
    """Return the ways through a function."""
    nodes = Nodes(function)
    raised = raised_in((*nodes.of(ast.Raise), *nodes.of(ast.Assert)))
    stops = bool(nodes.of(ast.Assert)) or _stays(nodes)
    contexts = contexts_of(module, function, nodes)
    follower = _Follower(module, contexts, CONTEXT_NAMES | context_parameters(nodes))
    found = follower.through(function.body, (CodePath(),))
    shown = found is not None and not stops and all(path.end != "raises" for path in found)
    ends = {path.end for path in found or ()}
    return Ways(
        paths=tuple(it for it in found or () if it.end not in _VAIN) if shown else None,
        fails="fails" in ends,
        asks="asks" in ends,
        free=shown and all_free(module, function, nodes, contexts),
        raises=stops or bool(raised),
        # What stands around a function may catch what it raises.
        returns=found is None
        or bool(function.decorator_list)
        or not ends.isdisjoint({None, "returns"}),
    )


def _stays(nodes: Nodes) -> bool:
    """Tell whether code may never come back: it ends the program, or has a loop without end."""
    if any(called(it.func) in _EXITS for it in nodes.of(ast.Call)):
        return True
    return any(isinstance(it.test, ast.Constant) for it in nodes.of(ast.While))


@dataclass(frozen=True, slots=True)
class _Follower:
    """Goes the ways through one function."""

    module: Module
    #: The names that are the context, and those that may be.
    contexts: frozenset[str]
    names: frozenset[str]

    def through(
        self, body: Sequence[ast.stmt], paths: tuple[CodePath, ...]
    ) -> tuple[CodePath, ...] | None:
        for statement in body:
            going = tuple(path for path in paths if not path.end)
            if not going:
                break
            onward = self.past(statement, going)
            if onward is None:
                return None
            paths = tuple(dict.fromkeys((*(path for path in paths if path.end), *onward)))
            if len(paths) > _MOST_PATHS:
                return None
        return paths

    def past(self, statement: ast.stmt, paths: tuple[CodePath, ...]) -> tuple[CodePath, ...] | None:
        """Lead ways past a statement."""
        match statement:
            case ast.If(test=test, body=body, orelse=otherwise):
                if self.does_something(test):
                    return None
                sides = self.through(body, paths), self.through(otherwise, paths)
                first, second = sides
                return None if first is None or second is None else (*first, *second)
            case ast.Return():
                return self.along(statement, paths, "returns")
            case ast.Raise(exc=raised):
                return self.along(statement, paths, self.end_of(raised))
            case _ if isinstance(statement, _SIMPLE):
                return self.along(statement, paths)
            case _:
                return None if self.does_something(statement) else paths

    def along(
        self, statement: ast.stmt, paths: tuple[CodePath, ...], end: End | None = None
    ) -> tuple[CodePath, ...] | None:
        """Lead ways along a simple statement."""
        writes = plain_writes(statement, self.contexts, self.names)
        if writes is None:
            return None
        asked = self.asked(statement)
        return tuple(
            replace(it, writes=(*it.writes, *writes), asked=it.asked | asked, end=end)
            for it in paths
        )

    def asked(self, statement: ast.stmt) -> frozenset[str]:
        """Return the UI tools that a simple statement certainly shows to a person."""
        found: set[str | None] = set()
        for node in certain_parts(statement):
            match node:
                case ast.Await(value=ast.Call(func=function) as call):
                    known = self.module.means(dotted(function)) == UI_CALL
                    found.add(named_tool(call) if known else None)
                case _:
                    continue
        return frozenset(it for it in found if it)

    def end_of(self, raised: ast.expr | None) -> End:
        """Tell what becomes of a call that raises something."""
        name = raised_name(raised)
        match self.module.means(name):
            case "Refuse":
                return "declines"
            case "Ask":
                return "asks"
            case "RetryModel":
                return "fails"
            case _:
                known = isinstance(getattr(builtins, name, None), type)
                return "fails" if known and not self.module.bindings[name] else "raises"

    def does_something(self, part: ast.AST) -> bool:
        """Tell whether part of a function sets a variable, or may end the function."""
        if any(found for _, found in any_writes(part, self.names)):
            return True
        waiting = [part]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Return | ast.Raise | ast.Assert):
                return True
            if not isinstance(node, _LATER):
                waiting.extend(ast.iter_child_nodes(node))
        return False
