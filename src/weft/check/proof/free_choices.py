"""Decisions in code that may come out either way, because the model chooses what they look at.

`if flag:` is one where `flag` is a parameter that the model fills, and no other decision looks at
it. Whatever else a decision looks at may be settled already.
"""

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from weft.check.context_sight import holds_context
from weft.check.module_facts import FunctionNode, Module
from weft.check.name_uses import bindings_in
from weft.check.raised_signals import raised_name
from weft.check.syntax_nodes import Nodes

_BASIC: Final[Mapping[str, type]] = {"bool": bool, "int": int, "float": float, "str": str}
#: The types of values that a model can give exactly.
_GIVEN: Final = frozenset({bool, int, str, type(None)})

#: What leads on to the next statement.
_ON_THE_WAY: Final = (ast.Expr, ast.Assign, ast.AnnAssign)

#: A parameter, and the one value that is asked for; None where it is just this or that.
_Question: TypeAlias = tuple[str, ast.Constant | None]


def all_free(
    module: Module, function: FunctionNode, nodes: Nodes, contexts: Container[str]
) -> bool:
    """Tell whether every way through the decisions of a function can be chosen from outside."""
    hints = dict(_chosen(module, function, nodes))
    asked: set[str] = set()
    decisions = [it for it in nodes.of(ast.If) if not _asks_first(module, it, contexts)]
    for chain in _chains(decisions):
        questions = [_question(test, hints) for test in chain]
        known = [it for it in questions if it]
        if len(known) < len(questions) or not _differ(known):
            return False
        names = {name for name, _ in known}
        if names & asked:
            return False
        asked |= names
    return True


def _chosen(
    module: Module, function: FunctionNode, nodes: Nodes
) -> Iterator[tuple[str, type | None]]:
    """Yield the parameters that may get any value of a basic type, or of any at all."""
    bound = [*bindings_in(nodes)]
    for parameter in (*function.args.args, *function.args.kwonlyargs):
        if bound.count(parameter.arg) > 1 or holds_context(parameter):
            continue
        match parameter.annotation:
            case None:
                yield parameter.arg, None
            case ast.Name(id=name) if name in _BASIC and not module.bindings[name]:
                yield parameter.arg, _BASIC[name]
            case _:
                continue


def _asks_first(module: Module, decision: ast.If, contexts: Container[str]) -> bool:
    """Tell whether a call without answers asks for one here: it is made again with that."""
    match decision:
        case ast.If(
            test=ast.UnaryOp(
                op=ast.Not(), operand=ast.Attribute(value=ast.Name(id=name), attr="answers")
            ),
            body=[*before, ast.Raise(exc=raised)],
        ) if all(isinstance(it, _ON_THE_WAY) for it in before):
            return name in contexts and module.means(raised_name(raised)) == "Ask"
        case _:
            return False


def _chains(decisions: Sequence[ast.If]) -> Iterator[list[ast.expr]]:
    """Yield what is asked at each decision: of if, elif and elif only one applies."""
    following = {it: other if (other := _elif(it)) in decisions else None for it in decisions}
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


def _question(test: ast.expr, hints: Mapping[str, type | None]) -> _Question | None:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = _question(inner, hints)
            return (found[0], None) if found else None
        case ast.Name(id=name):
            return (name, None) if name in hints else None
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Eq() | ast.NotEq() as asked],
            comparators=[ast.Constant(value=value) as constant],
        ) if type(value) in _GIVEN and hints.get(name, ...) in {None, type(value)}:
            return name, constant if isinstance(asked, ast.Eq) else None
        case _:
            return None


def _differ(questions: Sequence[_Question]) -> bool:
    """Tell whether each of some questions, asked one after the other, may be the one that counts.

    Several must ask whether one parameter is this or that text or number: of others there may be
    no more to ask for.
    """
    if len(questions) == 1:
        return True
    values = [it.value for _, it in questions if it]
    return (
        len({name for name, _ in questions}) == 1
        and len(set(values)) == len(questions)
        and {type(it) for it in values} in ({str}, {int})
    )
