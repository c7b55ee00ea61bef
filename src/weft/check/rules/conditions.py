"""COND001 to COND007: conditions, wherever they are written."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeGuard

from weft.check.answer_schema import Lost
from weft.check.board_parts import subscriptions
from weft.check.board_parts import tested as board_conditions
from weft.check.declarations import PlacedCondition, parsed
from weft.check.flow_parts import tested as flow_conditions
from weft.check.flow_parts import type_at
from weft.check.rules.comparisons import TRUTHS, objections
from weft.check.spelling import did_you_mean
from weft.check.subject import ALL_MODES, CONVERSATION, CheckRule, Hit, Subject, rule
from weft.check.values import value_error, variable_types
from weft.engine.conversation.routing import may_route
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import BUILT_IN_VARIABLES, FUNCTION_REF
from weft.spec.agents import WORD_CONDITIONS, Handoff
from weft.spec.condition_parser import mentions
from weft.spec.conditions import Condition, names, strict_violations
from weft.spec.orchestrator import DatabaseStart
from weft.spec.templates import references
from weft.spec.types import LiteralOf, LiteralValue, TypeExpr
from weft.spec.variables import ComputedSource, DerivedSource

_OPERATOR: Final = re.compile(r"[=<>\[\](){}$]")
_SENTENCE: Final = 3
_JUDGED: Final = 'or set "condition_type": "llm" to let a model judge this text'
_FUNCTION: Final = "or name a function of the package as module:function"


@dataclass(frozen=True, slots=True)
class HandoffCondition:
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


def handoff_conditions(subject: Subject) -> Iterator[HandoffCondition]:
    for index, condition in subject.conditions.items():
        handoff = subject.spec.handoffs[index]
        yield HandoffCondition(index, handoff, handoff.condition or "", condition)


def first_mentions(text: str, *, paths: bool = False) -> dict[str, int]:
    """Return the variables of a condition, each with the offset of its first mention."""
    places: dict[str, int] = {}
    for name, offset in mentions(text, paths=paths):
        places.setdefault(name, offset)
    return places


def named_in(handoff: Handoff) -> dict[str, int]:
    """Return the variables of a condition; one in words has them in braces."""
    if handoff.condition_type in WORD_CONDITIONS:
        return {it.name: it.offset for it in reversed(references(handoff.condition or ""))}
    return first_mentions(handoff.condition or "")


# -- COND001: a condition that cannot be parsed

#: A condition, what it is called in messages, and a second hint.
_Parsed = tuple[PlacedCondition, str, str]


def _of_handoffs(subject: Subject) -> Iterator[_Parsed]:
    for index, handoff in enumerate(subject.spec.handoffs):
        text = handoff.condition
        if text is not None and handoff.condition_type not in WORD_CONDITIONS:
            path = ("handoffs", index, "condition")
            what = f"the condition of {handoff.source_agent} -> {handoff.target_agent}"
            yield PlacedCondition(path, text, parsed(text)), what, _if_sentence(text)


def _if_sentence(condition: str) -> str:
    """Return the hint for a text that reads like a sentence and not like a test of variables."""
    plain = not _OPERATOR.search(condition)
    return _JUDGED if plain and len(condition.split()) >= _SENTENCE else ""


def computing_conditions(subject: Subject) -> Iterator[tuple[str, ComputedSource, PlacedCondition]]:
    """Yield the computed variables whose computation is a condition and not a function."""
    for name, source in subject.sources(ComputedSource):
        if not FUNCTION_REF.match(source.computation):
            path, text = ("variables", name, "source", "computation"), source.computation
            yield name, source, PlacedCondition(path, text, parsed(text))


def _of_variables(subject: Subject) -> Iterator[_Parsed]:
    for name, _, placed in computing_conditions(subject):
        yield placed, f"the computation of {name}", _FUNCTION


def _of_orchestrator(subject: Subject) -> Iterator[_Parsed]:
    start = subject.spec.orchestrator.trigger
    if isinstance(start, DatabaseStart):
        path = ("orchestrator", "trigger", "condition")
        placed = PlacedCondition(path, start.condition, parsed(start.condition))
        yield placed, "the start condition", ""


def activations(subject: Subject) -> Iterator[tuple[str, str, PlacedCondition]]:
    """Yield the conditions over counts of artifacts, with their agent and their scope."""
    for path, agent, subscription in subscriptions(subject):
        if subscription.activation:
            text = subscription.activation
            placed = PlacedCondition((*path, "activation"), text, parsed(text))
            yield agent.agent, subscription.scope, placed


def _of_board(subject: Subject) -> Iterator[_Parsed]:
    for placed in (*board_conditions(subject), *(it for _, _, it in activations(subject))):
        yield placed, f'"{placed.path[-1]}"', ""


def _of_flow(subject: Subject) -> Iterator[_Parsed]:
    for placed in flow_conditions(subject):
        yield placed, f'"{placed.path[-1]}"', ""


def _invalid(conditions: Callable[[Subject], Iterable[_Parsed]], subject: Subject) -> Iterator[Hit]:
    for placed, what, otherwise in conditions(subject):
        error = placed.condition
        if isinstance(error, ExpressionError):
            first = error.hint or 'write a condition such as status == "open"'
            yield Hit(
                placed.path,
                f"{what} is not valid: {error}",
                hint=(first, otherwise) if otherwise else (first,),
                offset=error.offset,
            )


INVALID: Final = tuple(
    CheckRule("COND001", frozenset({root}), partial(_invalid, found), modes)
    for root, found, modes in (
        ("handoffs", _of_handoffs, CONVERSATION),
        ("variables", _of_variables, ALL_MODES),
        ("orchestrator", _of_orchestrator, ALL_MODES),
        ("board", _of_board, ALL_MODES),
        ("flow", _of_flow, ALL_MODES),
    )
)


# -- COND002: unknown variables; those of boards and flows are in their modules


@rule("COND002", "handoffs", "variables", modes=CONVERSATION)
def variable_is_declared(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        in_words = handoff.condition_type in WORD_CONDITIONS
        if index not in subject.conditions and not in_words:
            continue
        for name, offset in named_in(handoff).items():
            if name not in subject.variable_names:
                yield Hit(
                    ("handoffs", index, "condition"),
                    f"the condition of {handoff.source_agent} -> {handoff.target_agent} "
                    f'tests unknown variable "{name}"',
                    hint=_instead_of(subject, name, words=in_words),
                    offset=offset,
                    length=len(name),
                )


def _instead_of(subject: Subject, name: str, *, words: bool) -> tuple[str, str]:
    quoted = f"or put it in quotes if it is a text: '{name}'"
    if words:
        quoted = f"or write {{{{{name}}}}} for the text {{{name}}}"
    elif name.lower() in TRUTHS:
        return f"write {TRUTHS[name.lower()]} if that is meant", quoted
    close = did_you_mean(name, subject.variable_names)
    return close[0] if close else "declare the variable in context_variables.json", quoted


# -- COND003: comparisons that the types rule out


@rule("COND003", "handoffs", "variables", "models", modes=CONVERSATION)
def handoff_compares_possible_values(subject: Subject) -> Iterator[Hit]:
    types = {**subject.once(variable_types), **_state_types(subject)}
    for found in handoff_conditions(subject):
        what = f"in the condition of {found}"
        yield from _impossible(subject, found.path, found.text, types, what)


@rule("COND003", "variables", "models")
def computation_compares_possible_values(subject: Subject) -> Iterator[Hit]:
    types = subject.once(variable_types)
    for name, _, placed in computing_conditions(subject):
        if not isinstance(placed.condition, ExpressionError):
            what = f"in the computation of {name}"
            yield from _impossible(subject, placed.path, placed.text, types, what)


@rule("COND003", "flow", "variables", "models")
def flow_compares_possible_values(subject: Subject) -> Iterator[Hit]:
    for placed in flow_conditions(subject):
        if isinstance(placed.condition, ExpressionError):
            continue
        found = {name: type_at(subject, name) for name in first_mentions(placed.text, paths=True)}
        types = {name: type_ for name, type_ in found.items() if not isinstance(type_, Lost)}
        what = f'in "{placed.path[-1]}"'
        yield from _impossible(subject, placed.path, placed.text, types, what, paths=True)


def _impossible(
    subject: Subject,
    path: Path,
    text: str,
    types: Mapping[str, TypeExpr],
    what: str,
    *,
    paths: bool = False,
) -> Iterator[Hit]:
    for objection in objections(text, types, subject.models, paths=paths):
        yield Hit(
            path,
            f"{what}, {objection.fact}",
            hint=objection.hint,
            offset=objection.offset,
            length=objection.length,
        )


def _state_types(subject: Subject) -> dict[str, TypeExpr]:
    """Return the types of variables with transitions: a run sets them to no other value."""
    found: dict[str, TypeExpr] = {}
    for name, source in subject.sources(DerivedSource):
        type_ = subject.spec.variables[name].type
        values = [] if source.default is None else [source.default]
        values += [value for it in source.transitions for value in (it.from_, it.to)]
        states = tuple(dict.fromkeys(filter(_is_literal, values)))
        complete = all(map(_is_literal, values))
        if source.transitions and complete and not _has_wrong_state(subject, type_, states):
            found[name] = LiteralOf(states)
    return found


def _is_literal(value: Json) -> TypeGuard[LiteralValue]:
    return isinstance(value, str | int)


def _has_wrong_state(subject: Subject, type_: TypeExpr, states: Iterable[Json]) -> bool:
    return any(value_error(type_, state, subject.models) for state in states)


# -- COND004 to COND007


@rule("COND004", "handoffs", "variables", modes=CONVERSATION)
def variable_may_route(subject: Subject) -> Iterator[Hit]:
    for found in handoff_conditions(subject):
        for name, offset in first_mentions(found.text).items():
            hint = _why_not_routed_on(subject, name)
            if hint:
                yield Hit(
                    found.path,
                    f"the condition of {found} tests {name}, which must not decide handoffs",
                    hint=(hint,),
                    offset=offset,
                    length=len(name),
                )


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
    for found in handoff_conditions(subject):
        reasons = (*strict_violations(found.condition), *_strict_variables(subject, found))
        if reasons:
            yield Hit(
                found.path,
                f"the strict profile forbids the condition of {found}: {reasons[0]}",
                cause=reasons[1:],
                hint=('rewrite it, or set "condition_profile": "full" in orchestrator.json',),
            )


def _strict_variables(subject: Subject, found: HandoffCondition) -> Iterator[str]:
    for name in names(found.condition):
        variable = subject.spec.variables.get(name)
        # COND004 reports a variable that must not decide handoffs at all.
        if variable and may_route(variable):
            kind = variable.source.type
            if kind not in ("environment", "derived"):
                yield f"'{name}' is a {kind} variable; only environment and derived are allowed"


@rule("COND006", "handoffs", "orchestrator", modes=CONVERSATION)
def condition_can_be_judged(subject: Subject) -> Iterator[Hit]:
    enabled = subject.spec.orchestrator.llm_conditions
    for index, handoff in enumerate(subject.spec.handoffs):
        path = ("handoffs", index, "condition_type")
        what = f"{handoff.source_agent} -> {handoff.target_agent}"
        if handoff.condition_type in WORD_CONDITIONS and handoff.condition is None:
            yield Hit(
                path,
                f'the handoff {what} has "condition_type": "{handoff.condition_type}" '
                "but no condition",
                hint=('write the condition in words, or remove "condition_type"',),
            )
        elif handoff.condition_type == "llm" and not enabled:
            yield Hit(
                path,
                f"a model must judge the condition of {what}, but llm_conditions is false",
                hint=(
                    "write the condition as an expression over variables",
                    'or set "llm_conditions": true in orchestrator.json',
                ),
            )


@rule("COND007", "handoffs", modes=CONVERSATION)
def handoff_threshold_is_compared(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.threshold is not None and handoff.condition_type != "nearest":
            yield Hit(
                ("handoffs", index, "threshold"),
                f"the handoff {handoff.source_agent} -> {handoff.target_agent} has a threshold "
                "but compares nothing",
                hint=('set "condition_type": "nearest", or remove "threshold"',),
            )


@rule("COND007", "board")
def subscription_threshold_is_compared(subject: Subject) -> Iterator[Hit]:
    for path, agent, subscription in subscriptions(subject):
        if subscription.threshold is not None and subscription.semantic_match is None:
            yield Hit(
                (*path, "threshold"),
                f"a subscription of {agent.agent} has a threshold but compares nothing",
                hint=('describe the artifacts in "semantic_match", or remove "threshold"',),
            )
