"""Family HAND, second part: when an agent hands off."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias, TypeGuard

from weft.check.explore.domains import questions_in, samples
from weft.check.explore.ground import MOST_QUESTIONS, Truth, lay_out, truth
from weft.check.rules.comparisons import TRUTHS, objections
from weft.check.spelling import did_you_mean
from weft.check.subject import Hit, Subject, rule
from weft.check.values import value_error, variable_types
from weft.engine.conversation.routing import may_route
from weft.engine.variables.conditions import UNKNOWN
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.agents import WORD_CONDITIONS, Handoff
from weft.spec.condition_parser import mentions, parse_condition
from weft.spec.conditions import And, Condition, names, strict_violations
from weft.spec.templates import references
from weft.spec.type_meaning import validation_error
from weft.spec.types import LiteralOf, LiteralValue, TypeExpr
from weft.spec.types import Scalar as ScalarType
from weft.spec.variables import ComputedSource, DerivedSource, StaticSource, Variable

_OPERATOR: Final = re.compile(r"[=<>\[\](){}$]")
_SENTENCE: Final = 3
_JUDGED: Final = 'or, if a model is to judge these words, set "condition_type": "llm"'


@dataclass(frozen=True, slots=True)
class _Rule:
    """A handoff whose condition parses."""

    index: int
    handoff: Handoff
    text: str
    condition: Condition

    @property
    def path(self) -> Path:
        return ("handoffs", self.index, "condition")

    def __str__(self) -> str:
        return f"{self.handoff.source_agent} -> {self.handoff.target_agent}"


def _rules(subject: Subject) -> Iterator[_Rule]:
    for index, condition in subject.conditions.items():
        handoff = subject.spec.handoffs[index]
        yield _Rule(index, handoff, handoff.condition or "", condition)


def first_mentions(text: str, *, paths: bool = False) -> dict[str, int]:
    """Return the variables of a condition with the place where each stands first."""
    places: dict[str, int] = {}
    for name, offset in mentions(text, paths=paths):
        places.setdefault(name, offset)
    return places


def named_in(handoff: Handoff) -> dict[str, int]:
    """Return the variables of a condition; in words they stand in braces."""
    if handoff.condition_type in WORD_CONDITIONS:
        return {it.name: it.offset for it in reversed(references(handoff.condition or ""))}
    return first_mentions(handoff.condition or "")


@rule("HAND003", "handoffs")
def condition_parses(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.condition is None or handoff.condition_type in WORD_CONDITIONS:
            continue
        try:
            parse_condition(handoff.condition)
        except ExpressionError as error:
            yield Hit(
                ("handoffs", index, "condition"),
                f"the condition of {handoff.source_agent} -> {handoff.target_agent} "
                f"cannot be read: {error}",
                hint=(*([error.hint] if error.hint else ()), *_if_free_words(handoff.condition)),
                offset=error.offset,
            )


def _if_free_words(condition: str) -> tuple[str, ...]:
    """Return the hint for what reads like a sentence, not like a test of variables."""
    plain = not _OPERATOR.search(condition)
    return (_JUDGED,) if plain and len(condition.split()) >= _SENTENCE else ()


@rule("HAND004", "handoffs", "variables")
def variable_may_route(subject: Subject) -> Iterator[Hit]:
    for found in _rules(subject):
        for name, offset in first_mentions(found.text).items():
            hint = _why_not_routed_on(subject, name)
            if hint:
                yield Hit(
                    found.path,
                    f"the rule {found} depends on {name}, which may not decide a handoff",
                    hint=(hint,),
                    offset=offset,
                    length=len(name),
                )


def _why_not_routed_on(subject: Subject, name: str) -> str | None:
    if name in subject.spec.variables:
        variable = subject.spec.variables[name]
        if variable.secret:
            return "test another variable; the value of a secret is never part of a run"
        hint = f'set "routing": true on {name} if its value is meant to steer the conversation'
        return None if may_route(variable) else hint
    hint = "test a derived variable instead; built-in variables only say whose run it is"
    return hint if name in BUILT_IN_VARIABLES else None


@rule("HAND005", "handoffs", "variables")
def variable_is_declared(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        if index not in subject.conditions and handoff.condition_type not in WORD_CONDITIONS:
            continue
        for name, offset in named_in(handoff).items():
            if name not in subject.variable_names:
                yield Hit(
                    ("handoffs", index, "condition"),
                    f"the rule {handoff.source_agent} -> {handoff.target_agent} depends on "
                    f'"{name}", which is no variable',
                    hint=_instead_of(
                        subject, name, words=handoff.condition_type in WORD_CONDITIONS
                    ),
                    offset=offset,
                    length=len(name),
                )


def _instead_of(subject: Subject, name: str, *, words: bool) -> tuple[str, str]:
    quoted = f"or put it in quotes if it is a text: '{name}'"
    if words:
        quoted = f"or double the braces if they are meant: {{{{{name}}}}}"
    elif name.lower() in TRUTHS:
        return f"write {TRUTHS[name.lower()]} if that is meant", quoted
    close = did_you_mean(name, subject.variable_names)
    return close[0] if close else "declare the variable", quoted


@rule("HAND007", "handoffs", "variables")
def priorities_differ(subject: Subject) -> Iterator[Hit]:
    for first, second in _tied(subject):
        values = domain(first.condition, second.condition, subject.spec.variables)
        # After a rule that always applies no other is asked, whatever the priorities: HAND009.
        if hold_together(first.condition, second.condition, values) and not holds_always(
            first.condition, values
        ):
            yield Hit(
                second.path,
                f"the rules {first} and {second} may apply at once and have the same "
                f"priority {second.handoff.priority}; the first in the file wins",
                hint=("give them different priorities, or conditions that exclude each other",),
            )


def _tied(subject: Subject) -> Iterator[tuple[_Rule, _Rule]]:
    known = [
        found
        for found in _rules(subject)
        if subject.variable_names.issuperset(names(found.condition))
    ]
    for _, group in groupby(sorted(known, key=_rank), key=_rank):
        rules = list(group)
        for position, second in enumerate(rules):
            for first in rules[:position]:
                if first.handoff.target_agent != second.handoff.target_agent:
                    yield first, second


def _rank(found: _Rule) -> tuple[str, str, int]:
    handoff = found.handoff
    return handoff.source_agent, handoff.condition_scope, handoff.priority


@rule("HAND013", "handoffs", "variables", "orchestrator")
def strict_profile(subject: Subject) -> Iterator[Hit]:
    if subject.spec.orchestrator.condition_profile != "strict":
        return
    for found in _rules(subject):
        faults = (*strict_violations(found.condition), *_strict_variables(subject, found))
        if faults:
            yield Hit(
                found.path,
                f"the strict profile forbids the condition of {found}: {faults[0]}",
                cause=faults[1:],
                hint=('rewrite it, or set "condition_profile": "full" in the orchestrator file',),
            )


def _strict_variables(subject: Subject, found: _Rule) -> Iterator[str]:
    for name in names(found.condition):
        variable = subject.spec.variables.get(name)
        # A variable without the right to route is the matter of HAND004.
        if variable and may_route(variable):
            kind = variable.source.type
            if kind not in ("environment", "derived"):
                yield f"'{name}' is a {kind} variable; only environment and derived ones fit"


@rule("HAND015", "handoffs", "variables", "models")
def comparison_makes_sense(subject: Subject) -> Iterator[Hit]:
    types = {**subject.once(variable_types), **_state_types(subject)}
    for found in _rules(subject):
        for objection in objections(found.text, types, subject.models):
            yield Hit(
                found.path,
                f"in the rule {found}, {objection.fact}",
                hint=objection.hint,
                offset=objection.offset,
                length=objection.length,
            )


def _state_types(subject: Subject) -> dict[str, TypeExpr]:
    """Return the types of variables with transitions: a run sets them to no other value."""
    found: dict[str, TypeExpr] = {}
    for name, source in subject.sources(DerivedSource):
        type_ = subject.spec.variables[name].type
        values = [source.default, *(it.from_ for it in source.transitions)]
        values += [it.to for it in source.transitions]
        states = tuple(dict.fromkeys(filter(_is_literal, values)))
        if source.transitions and not any(value_error(type_, it, subject.models) for it in states):
            found[name] = LiteralOf(states)
    return found


def _is_literal(value: Json) -> TypeGuard[LiteralValue]:
    return isinstance(value, str | int)


#: The values to try for each variable.
Samples: TypeAlias = dict[str, tuple[Json, ...]]

#: Of more combinations it is not known whether two conditions hold together.
_MOST_COMBINATIONS: Final = 1 << 20
_TEXT: Final = ScalarType("str")


def domain(left: Condition, right: Condition, variables: Mapping[str, Variable]) -> Samples:
    """Choose the values to try; a variable of which too little is known has one unknown value."""
    both = And((left, right))
    return {name: _samples(name, variables.get(name), both) for name in names(both)}


def hold_together(left: Condition, right: Condition, values: Samples) -> bool:
    """Tell whether some combination may make both conditions hold; too many to try count as one."""
    combinations = math.prod(map(len, values.values()))
    if combinations > _MOST_COMBINATIONS:
        return True
    first, second = _truth(left, values), _truth(right, values)
    if 2 * combinations > MOST_QUESTIONS or any(UNKNOWN in found for found in values.values()):
        return bool((first.yes | first.open) & (second.yes | second.open))
    # Where all is known and was asked, what has no answer is no yes.
    return bool(first.yes & second.yes)


def holds_always(condition: Condition, values: Samples) -> bool:
    """Tell whether a condition holds whatever the values are."""
    found = _truth(condition, values)
    return not (found.no or found.open)


def _truth(condition: Condition, values: Samples) -> Truth:
    space = lay_out(values)
    return truth(condition, {name: it.blocks for name, it in space.axes.items()}, space.full)


def _samples(name: str, variable: Variable | None, condition: Condition) -> tuple[Json, ...]:
    found = samples(variable.type if variable else _TEXT, questions_in([condition])[name])
    if found is None:
        return (UNKNOWN,)
    return (None, *found) if variable and _may_be_empty(variable) else found


def _may_be_empty(variable: Variable) -> bool:
    source = variable.source
    if validation_error(variable.type, None, {}) is None:
        return True
    return not isinstance(source, StaticSource | ComputedSource) and source.default is None
