"""COND001 to COND006: conditions, wherever they are written."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final, TypeGuard

from weft.check.answer_schema import UnknownKey
from weft.check.flow_parts import type_at
from weft.check.parts import parts_of
from weft.check.rules.comparisons import TRUTHS, objections
from weft.check.spelling import did_you_mean
from weft.check.subject import ALL_MODES, CONVERSATION, CheckRule, Hit, Subject, rule
from weft.check.texts import (
    FLOW_TESTS,
    PlacedCondition,
    conditions,
    first_mentions,
    parsed_conditions,
    routed_on,
    tested,
)
from weft.check.values import value_error
from weft.engine.conversation.routing import may_route
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.agents import WORD_CONDITIONS, Handoff
from weft.spec.board import Publication, Subscription
from weft.spec.conditions import Condition, names, strict_violations
from weft.spec.orchestrator import DatabaseStart
from weft.spec.part import Part
from weft.spec.types import LiteralOf, LiteralValue, TypeExpr
from weft.spec.variables import ComputedSource, DerivedSource

_OPERATOR: Final = re.compile(r"[=<>\[\](){}$]")
_SENTENCE: Final = 3


# -- COND001: a condition that cannot be parsed


def _invalid(kinds: tuple[type[Part], ...], subject: Subject) -> Iterator[Hit]:
    for placed in conditions(subject, *kinds):
        error = placed.condition
        if isinstance(error, ExpressionError):
            hints = (error.hint or 'write a condition such as status == "open"', _otherwise(placed))
            yield Hit(
                placed.path,
                f"{placed.what} is not valid: {error}",
                hint=tuple(filter(None, hints)),
                offset=error.offset,
            )


def _otherwise(placed: PlacedCondition[Part]) -> str:
    """Return what else the author of an invalid condition may have meant."""
    match placed.part:
        case ComputedSource():
            return "or name a function of the package as module:function"
        case Handoff() if not _OPERATOR.search(placed.text):
            is_sentence = len(placed.text.split()) >= _SENTENCE
            judged = 'or set "condition_type": "llm" to let a model judge this text'
            return judged if is_sentence else ""
        case _:
            return ""


INVALID: Final = tuple(
    CheckRule("COND001", frozenset({root}), partial(_invalid, kinds), modes)
    for root, kinds, modes in (
        ("handoffs", (Handoff,), CONVERSATION),
        ("variables", (ComputedSource,), ALL_MODES),
        ("orchestrator", (DatabaseStart,), ALL_MODES),
        ("board", (Subscription, Publication), ALL_MODES),
        ("flow", FLOW_TESTS, ALL_MODES),
    )
)


# -- COND002: unknown variables; those of boards and flows are in their modules


@rule("COND002", "handoffs", "variables", modes=CONVERSATION)
def variable_is_declared(subject: Subject) -> Iterator[Hit]:
    for mention in routed_on(subject):
        if mention.name not in subject.variable_names:
            handoff = subject.spec.handoffs[int(mention.path[1])]
            words = handoff.condition_type in WORD_CONDITIONS
            message = f'{mention.what} tests unknown variable "{mention.name}"'
            yield mention.hit(message, *_instead_of(subject, mention.name, words=words))


def _instead_of(subject: Subject, name: str, *, words: bool) -> tuple[str, str]:
    quoted = f"or put it in quotes if it is a text: '{name}'"
    if words:
        quoted = f"or write {{{{{name}}}}} for the text {{{name}}}"
    elif name.lower() in TRUTHS:
        return f"write {TRUTHS[name.lower()]} if that is meant", quoted
    close = did_you_mean(name, subject.variable_names)
    return close[0] if close else "declare the variable in context_variables.json", quoted


# -- COND003: comparisons that the types rule out


def _impossible(kinds: tuple[type[Part], ...], subject: Subject) -> Iterator[Hit]:
    states = _state_types(subject) if Handoff in kinds else {}
    for placed, _ in parsed_conditions(subject, *kinds):
        found = {
            name: states.get(name) or type_at(subject, name) for name in first_mentions(placed)
        }
        types = {name: type_ for name, type_ in found.items() if not isinstance(type_, UnknownKey)}
        paths = isinstance(placed.part, FLOW_TESTS)
        for objection in objections(placed.text, types, subject.models, paths=paths):
            yield Hit(
                placed.path,
                f"in {placed.what}, {objection.fact}",
                hint=objection.hint,
                offset=objection.offset,
                length=objection.length,
            )


IMPOSSIBLE: Final = tuple(
    CheckRule(
        "COND003", frozenset({root, "variables", "models"}), partial(_impossible, kinds), modes
    )
    for root, kinds, modes in (
        ("handoffs", (Handoff,), CONVERSATION),
        ("variables", (ComputedSource,), ALL_MODES),
        ("flow", FLOW_TESTS, ALL_MODES),
    )
)


def _state_types(subject: Subject) -> dict[str, TypeExpr]:
    """Return literal types for variables with transitions, which have no other values."""
    found: dict[str, TypeExpr] = {}
    for name, source in subject.sources(DerivedSource):
        type_ = subject.spec.variables[name].type
        values = [] if source.default is None else [source.default]
        values += [value for step in source.transitions for value in (step.from_, step.to)]
        states = tuple(dict.fromkeys(filter(_is_literal, values)))
        complete = all(map(_is_literal, values))
        wrong = any(value_error(type_, state, subject.models) for state in states)
        if source.transitions and complete and not wrong:
            found[name] = LiteralOf(states)
    return found


def _is_literal(value: Json) -> TypeGuard[LiteralValue]:
    return isinstance(value, str | int)


# -- COND004 to COND006


@rule("COND004", "handoffs", "variables", modes=CONVERSATION)
def variable_may_route(subject: Subject) -> Iterator[Hit]:
    for mention in tested(subject, Handoff):
        hint = _why_not_routed_on(subject, mention.name)
        if hint:
            message = f"{mention.what} tests {mention.name}, which must not decide handoffs"
            yield mention.hit(message, hint)


def _why_not_routed_on(subject: Subject, name: str) -> str | None:
    if name in subject.spec.variables:
        variable = subject.spec.variables[name]
        if variable.secret:
            return "test another variable; a run never has the value of a secret"
        hint = f'set "routing": true on {name} if its value should decide handoffs'
        return None if may_route(variable) else hint
    hint = "test a derived variable; built-in variables only identify the run"
    return hint if name in BUILT_IN_VARIABLES else None


@rule("COND005", "handoffs", "variables", "orchestrator", modes=CONVERSATION)
def strict_profile(subject: Subject) -> Iterator[Hit]:
    if subject.spec.orchestrator.condition_profile != "strict":
        return
    for placed, condition in parsed_conditions(subject, Handoff):
        reasons = (*strict_violations(condition), *_strict_variables(subject, condition))
        if reasons:
            yield Hit(
                placed.path,
                f"the strict profile forbids {placed.what}: {reasons[0]}",
                cause=reasons[1:],
                hint=('rewrite it, or set "condition_profile": "full" in orchestrator.json',),
            )


def _strict_variables(subject: Subject, condition: Condition) -> Iterator[str]:
    for name in names(condition):
        variable = subject.spec.variables.get(name)
        # COND004 reports a variable that must not decide handoffs at all.
        if variable and may_route(variable):
            kind = variable.source.type
            if kind not in ("environment", "derived"):
                yield f"'{name}' is a {kind} variable; only environment and derived are allowed"


@rule("COND006", "handoffs", "orchestrator", modes=CONVERSATION)
def condition_can_be_judged(subject: Subject) -> Iterator[Hit]:
    for path, handoff in parts_of(subject, Handoff):
        if handoff.condition_type == "llm" and not subject.spec.orchestrator.llm_conditions:
            yield Hit(
                (*path, "condition_type"),
                f"a model must judge the condition of {handoff.source_agent} -> "
                f"{handoff.target_agent}, but llm_conditions is false",
                hint=(
                    "write the condition as an expression over variables",
                    'or set "llm_conditions": true in orchestrator.json',
                ),
            )
