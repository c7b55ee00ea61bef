"""What is explored: the variables that decide handoffs, what sets them, and when rules apply."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Final, TypeAlias

from weft.check.declarations import comes_with_start, has_trigger
from weft.check.explore.domains import Domain, domain_of, questions_in
from weft.check.explore.happenings import Happening, code_writes
from weft.check.explore.triggers import triggered
from weft.check.subject import Subject
from weft.check.texts import parsed_conditions, routing_conditions
from weft.check.values import value_error
from weft.engine.conversation.routing import Route, RoutingRule, Test
from weft.engine.variables.conditions import UNKNOWN, decide
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.conditions import Condition, names
from weft.spec.orchestrator import FormStart
from weft.spec.variables import ComputedSource, DerivedSource, Variable


@dataclass(frozen=True, slots=True)
class Axis:
    """One variable: its values, their distance in the numbering, and the combinations of each."""

    values: tuple[Json, ...]
    stride: int
    masks: tuple[int, ...]

    @property
    def blocks(self) -> tuple[tuple[Json, int], ...]:
        """The values, each with the set of combinations in which it holds."""
        return tuple(zip(self.values, self.masks, strict=True))

    def value_at(self, number: int) -> Json:
        return self.values[number // self.stride % len(self.values)]


@dataclass(frozen=True, slots=True)
class Space:
    """The variables and all their combinations; `full` is the set of all of them."""

    axes: Mapping[str, Axis]
    full: int

    def within(self, allowed: Mapping[str, Iterable[int]]) -> int:
        """Return the set where every named variable has one of the values with these indexes."""
        bits = self.full
        for name, indexes in allowed.items():
            bits &= union(self.axes[name].masks[index] for index in indexes)
        return bits


def lay_out(domains: Mapping[str, tuple[Json, ...]]) -> Space:
    """Number all combinations of the values in `domains`."""
    axes: dict[str, Axis] = {}
    size = 1
    for name, values in domains.items():
        # The combinations so far repeat once for each value of the new variable.
        axes = {
            known: Axis(
                axis.values,
                axis.stride,
                tuple(_repeat(mask, size, len(values)) for mask in axis.masks),
            )
            for known, axis in axes.items()
        }
        block = (1 << size) - 1
        axes[name] = Axis(values, size, tuple(block << size * n for n in range(len(values))))
        size *= len(values)
    return Space(axes, (1 << size) - 1)


def _repeat(bits: int, width: int, times: int) -> int:
    return union(bits << width * n for n in range(times))


def union(sets: Iterable[int]) -> int:
    bits = 0
    for other in sets:
        bits |= other
    return bits


def first(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


@dataclass(frozen=True, slots=True)
class Change:
    """An assignment to one variable, as moves of bits: those under a mask shift by a distance.

    Changes to different values move by the same distance when the values lie equally far apart,
    so even "any value to any value" takes few moves.
    """

    moves: tuple[tuple[int, int], ...]

    def forward(self, bits: int) -> int:
        """Return the combinations after the change, starting from those in `bits`."""
        result = 0
        for mask, distance in self.moves:
            moved = bits & mask
            if moved:
                result |= moved << distance if distance >= 0 else moved >> -distance
        return result

    def backward(self, bits: int) -> int:
        """Return the combinations before the change that can lead to one in `bits`."""
        result = 0
        for mask, distance in self.moves:
            result |= mask & (bits >> distance if distance >= 0 else bits << -distance)
        return result


def change(axis: Axis, outcomes: Sequence[Iterable[int]]) -> Change:
    """Build the change that replaces value n by one of those with the indexes `outcomes[n]`."""
    masks: dict[int, int] = {}
    for old, news in enumerate(outcomes):
        for new in news:
            masks[new - old] = masks.get(new - old, 0) | axis.masks[old]
    return Change(tuple((mask, steps * axis.stride) for steps, mask in sorted(masks.items())))


def forward(changes: Sequence[Change], bits: int) -> int:
    """Return the combinations after a sequence of changes, starting from those in `bits`."""
    for step in changes:
        bits = step.forward(bits)
    return bits


def backward(changes: Sequence[Change], bits: int) -> int:
    """Return the combinations before a sequence of changes that can lead to one in `bits`."""
    for step in reversed(changes):
        bits = step.backward(bits)
    return bits


#: The values of a variable, each with the set of combinations in which it has that value.
Blocks: TypeAlias = tuple[tuple[Json, int], ...]

#: How often one condition, and all conditions together, are evaluated before the rest is left open.
#: Typical conditions need a few dozen evaluations, because one false part of an `and` decides
#: it without the others.
MOST_QUESTIONS: Final = 2_000
ALL_QUESTIONS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Truth:
    """The combinations for which a condition is true, false, or unknown."""

    yes: int
    no: int
    open: int


def truth(
    condition: Condition, variables: Mapping[str, Blocks], full: int, most: int = MOST_QUESTIONS
) -> Truth:
    """Evaluate the condition for every combination, many at once where one part decides."""
    found = {True: 0, False: 0, None: 0}
    questions = 0
    free = dict.fromkeys(names(condition), UNKNOWN)
    waiting: list[tuple[int, dict[str, Json]]] = [(full, {})]
    while waiting:
        bits, known = waiting.pop()
        questions += 1
        answer = _ask(condition, {**free, **known})
        undecided = [name for name in free if name not in known]
        if answer is not None or not undecided or questions > most:
            found[answer] |= bits
            continue
        name = undecided[0]
        for value, block in variables[name]:
            if bits & block:
                waiting.append((bits & block, {**known, name: value}))
    return Truth(found[True], found[False], found[None])


def _ask(condition: Condition, values: Mapping[str, Json]) -> bool | None:
    try:
        return decide(condition, values)
    except ExpressionError:
        # The values cannot be compared; COND003 reports that.
        return None


def blocks(answer: Truth) -> Blocks:
    """Return the truth of a condition as the blocks of the variable computed by it."""
    parts = ((True, answer.yes), (False, answer.no), (UNKNOWN, answer.open))
    return tuple((value, bits) for value, bits in parts if bits)


#: The possible routes under a test: one of the engine's routing functions, for one agent.
Walk: TypeAlias = Callable[[Test], Iterable[Route]]


@dataclass(frozen=True, slots=True)
class Case:
    """Combinations, the answers of the rules for them, and the possible routes.

    None means that the rule may apply to some of the combinations and to none for sure.
    """

    bits: int
    held: Mapping[int, bool | None]
    routes: tuple[Route, ...]


def cases(walk: Walk, truths: Mapping[int, Truth], full: int) -> Iterator[Case]:
    """Yield cases that together cover all combinations.

    A rule without an entry in `truths` is judged by a model, which may answer either way.
    """
    waiting: list[Case] = [Case(full, {}, ())]
    while waiting:
        asked = _Asked(waiting.pop(), truths)
        routes = tuple(walk(asked))
        waiting.extend(asked.others)
        yield Case(asked.bits, asked.held, routes)


class _Asked:
    """A test that narrows the combinations with each rule and collects the other cases."""

    def __init__(self, case: Case, truths: Mapping[int, Truth]) -> None:
        self.bits = case.bits
        self.held = dict(case.held)
        self.others: list[Case] = []
        self._truths = truths

    def __call__(self, rule: RoutingRule) -> bool | None:
        if rule.index not in self.held:
            (answer, bits), *others = self._parts(rule)
            for other, rest in others:
                self.others.append(Case(rest, {**self.held, rule.index: other}, ()))
            self.held[rule.index], self.bits = answer, bits
        return self.held[rule.index]

    def _parts(self, rule: RoutingRule) -> list[tuple[bool | None, int]]:
        truth = self._truths.get(rule.index)
        if truth is None:
            return [(None, self.bits)]
        rest = self.bits & ~truth.yes
        parts = ((True, self.bits & truth.yes), (None if rest & truth.open else False, rest))
        return [(answer, bits) for answer, bits in parts if bits]


@dataclass(frozen=True, slots=True)
class Ground:
    """The followed variables, their happenings and all their combinations.

    `truths`, `behind` and `whys` are kept by the index of the handoff: when its condition holds, on
    which variables that depends, and why it is not always known. Handoffs without a condition over
    variables are left out.
    """

    domains: Mapping[str, Domain]
    happenings: tuple[Happening, ...]
    space: Space
    truths: Mapping[int, Truth]
    behind: Mapping[int, tuple[str, ...]]
    whys: Mapping[int, str]


def _is_given(subject: Subject, name: str, variable: Variable) -> bool:
    """Return whether a variable may begin with a field of what starts the run.

    A webhook or document may have any fields: then only variables that no trigger sets count.
    """
    source = variable.source
    if not isinstance(source, DerivedSource) or not comes_with_start(subject, name):
        return False
    start = subject.spec.orchestrator.trigger
    return not has_trigger(source) or (isinstance(start, FormStart) and start.form is not None)


def survey(subject: Subject, limit: int) -> Ground | str:
    """Return the variables to follow, or the reason why there are more than `limit` states."""
    conditions = routing_conditions(subject)
    computed = {
        placed.owner: condition for placed, condition in parsed_conditions(subject, ComputedSource)
    }
    behind = {index: _behind(found, computed) for index, found in conditions.items()}
    followed = {name for found in behind.values() for name in found}
    computed = {name: found for name, found in computed.items() if name in followed}
    asked = questions_in((*conditions.values(), *computed.values()))
    sources = {
        name: variable
        for name, variable in subject.spec.variables.items()
        if name in followed and name not in computed
    }
    all_happenings = (*triggered(subject, sources), *code_writes(subject, sources))
    happenings = tuple(_fitting(subject, happening) for happening in all_happenings)
    found = {
        name: domain_of(
            name, variable, happenings, asked[name], given=_is_given(subject, name, variable)
        )
        for name, variable in sources.items()
    }
    domains = {name: domain for name, domain in found.items() if isinstance(domain, Domain)}
    combinations = math.prod(len(domain.values) for domain in domains.values())
    if combinations * len(subject.agents) > limit:
        largest = sorted(domains, key=lambda name: -len(domains[name].values))
        return (
            f"agents times combinations of values make {len(subject.agents)} x {combinations:,} "
            f"states, more than {limit:,}; the most come from {', '.join(largest[:3])}"
        )
    unknown = {name: why for name, why in found.items() if isinstance(why, str)}
    built_in = followed - subject.spec.variables.keys()
    unknown |= dict.fromkeys(sorted(built_in), "it is different in every run")
    space = lay_out({name: domain.values for name, domain in domains.items()})
    return Ground(
        domains=domains,
        happenings=happenings,
        space=space,
        truths=_truths(conditions, computed, space, unknown),
        behind=behind,
        whys={index: _why(found, unknown) for index, found in behind.items()},
    )


def _fitting(subject: Subject, happening: Happening) -> Happening:
    """Drop settings that the variable's type refuses: such a write changes nothing."""
    variables = subject.spec.variables
    fitting = tuple(
        found
        for found in happening.settings
        if found.value is UNKNOWN
        or found.value is None
        or not value_error(variables[found.variable].type, found.value, subject.models)
    )
    return replace(happening, settings=fitting)


def _truths(
    conditions: Mapping[int, Condition],
    computed: Mapping[str, Condition],
    space: Space,
    unknown: Iterable[str],
) -> dict[int, Truth]:
    values: dict[str, Blocks] = dict.fromkeys(unknown, ((UNKNOWN, space.full),))
    values |= {name: axis.blocks for name, axis in space.axes.items()}
    # Several rules often have the same condition, and equal texts are parsed only once.
    distinct = {id(condition): condition for condition in conditions.values()}
    most = min(MOST_QUESTIONS, ALL_QUESTIONS // (len(distinct) + len(computed) + 1))
    graph = {name: names(condition) for name, condition in computed.items()}
    for name in TopologicalSorter(graph).static_order():
        if name in computed:
            values[name] = blocks(truth(computed[name], values, space.full, most))
    known = {key: truth(found, values, space.full, most) for key, found in distinct.items()}
    return {index: known[id(condition)] for index, condition in conditions.items()}


def _behind(condition: Condition, computed: Mapping[str, Condition]) -> tuple[str, ...]:
    """Return the variables of a condition, and the inputs of computed ones."""
    found: set[str] = set()
    waiting = list(names(condition))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(names(computed[name]) if name in computed else ())
    return tuple(sorted(found))


def _why(behind: Iterable[str], unknown: Mapping[str, str]) -> str:
    for name in behind:
        if name in unknown:
            return f"{name} cannot be followed: {unknown[name]}"
    # All values are known, but some cannot be compared, or there are too many.
    return f"the values of {', '.join(behind)} do not settle a condition"
