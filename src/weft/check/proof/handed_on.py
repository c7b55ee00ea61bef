"""Whether code hands the context to a function that the package does not show."""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from weft.check.variable_writes import is_context, taken_by

_Def: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def goes_out_of_sight(code: Mapping[str, str], function: str) -> bool:
    """Tell whether a function, or one of the package that it names, hands the context on so."""
    known = _functions(tuple(code.items()))
    waiting, met = [function], {function}
    while waiting:
        for node in known.get(waiting.pop(), ()):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and _is_unseen(inner, known):
                    return True
                fresh = {_name(inner)} & known.keys() - met
                met |= fresh
                waiting.extend(fresh)
    return False


@lru_cache(maxsize=4)
def _functions(code: tuple[tuple[str, str], ...]) -> dict[str, list[_Def]]:
    found: dict[str, list[_Def]] = {}
    for path, text in code:
        for node in ast.walk(_parsed(text)) if path.endswith(".py") else ():
            if isinstance(node, _Def):
                found.setdefault(node.name, []).append(node)
    return found


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # A file that is no Python is reported by itself.
        return ast.Module([], [])


def _is_unseen(call: ast.Call, known: Mapping[str, list[_Def]]) -> bool:
    """Tell whether a call gives the context to a parameter that is not named like it."""
    given = list(taken_by(call))
    takers = known.get(_name(call.func), ())
    return bool(given) and (
        not takers or any(name not in _names(taker, given) for taker in takers for name in given)
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
