"""Whether code hands the context to a function that the package does not show."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from weft.check.variable_writes import is_context, taken_by

_Def: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Facts:
    """A function: what it names, and the calls by which it hands a context on."""

    node: _Def
    names: frozenset[str]
    handing: tuple[ast.Call, ...]


def goes_out_of_sight(code: Mapping[str, str], function: str) -> bool:
    """Tell whether a function, or one of the package that it names, hands the context on so."""
    known = _functions(tuple(code.items()))
    waiting, met = [function], {function}
    while waiting:
        for facts in known.get(waiting.pop(), ()):
            if any(_is_unseen(call, known) for call in facts.handing):
                return True
            fresh = (facts.names & known.keys()) - met
            met |= fresh
            waiting.extend(fresh)
    return False


@lru_cache(maxsize=4)
def _functions(code: tuple[tuple[str, str], ...]) -> dict[str, list[_Facts]]:
    found: dict[str, list[_Facts]] = {}
    for path, text in code:
        for node in ast.walk(_parsed(text)) if path.endswith(".py") else ():
            if isinstance(node, _Def):
                found.setdefault(node.name, []).append(_facts(node))
    return found


def _facts(node: _Def) -> _Facts:
    inner = list(ast.walk(node))
    calls = (it for it in inner if isinstance(it, ast.Call))
    return _Facts(
        node,
        frozenset(_name(it) for it in inner),
        tuple(call for call in calls if any(True for _ in taken_by(call))),
    )


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # A file that is no Python is reported by itself.
        return ast.Module([], [])


def _is_unseen(call: ast.Call, known: Mapping[str, list[_Facts]]) -> bool:
    """Tell whether a call gives the context to a parameter that is not named like it."""
    given = list(taken_by(call))
    takers = [facts.node for facts in known.get(_name(call.func), ())]
    return not takers or any(
        place not in _names(taker, given) for taker in takers for place in given
    )


def _names(taker: _Def, given: list[int | str]) -> Iterator[int | str]:
    """Yield those of the places through which a function takes something named as a context."""
    arguments = [*taker.args.posonlyargs, *taker.args.args]
    for place in given:
        if isinstance(place, int):
            named = arguments[place].arg if place < len(arguments) else ""
        else:
            named = place
        if is_context(ast.Name(named, ast.Load())):
            yield place


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
