"""What a proof stands on: the variables that matter, what sets them, and when rules apply."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from weft.check.proof.code_events import outside, written
from weft.check.proof.domains import Domain, domain_of
from weft.check.proof.events import Doubt, Event
from weft.check.proof.samples import tests_in
from weft.check.proof.space import Space, lay_out
from weft.check.proof.trigger_events import triggered
from weft.check.proof.truth import Blocks, Truth, blocks, truth
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.errors import ExpressionError
from weft.ids import BUILT_IN_VARIABLES, FUNCTION_REF
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition, names
from weft.spec.sources import ComputedSource


@dataclass(frozen=True, slots=True)
class Ground:
    """The variables that can be followed, with their events and all their combinations.

    `truths` and `doubts` are kept by the index of the handoff: when its condition holds, and why
    that is not always known. Handoffs without a condition over variables are left out.
    """

    domains: Mapping[str, Domain]
    events: tuple[Event, ...]
    space: Space
    truths: Mapping[int, Truth]
    doubts: Mapping[int, tuple[Doubt, ...]]


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The combinations are too many; the variables with the most values stand first."""

    combinations: int
    variables: tuple[str, ...]


def survey(subject: Subject, limit: int) -> Ground | TooLarge:
    """Find out what a proof about the handoffs needs, within `limit` combinations of values."""
    computed = computations(subject)
    followed = _expand(subject.conditions.values(), computed)
    tests = tests_in((*subject.conditions.values(), *(computed[n] for n in followed & computed.keys())))
    sources = {
        name: variable
        for name, variable in subject.spec.variables.items()
        if name in followed and name not in computed
    }
    events = (*triggered(subject, sources), *written(subject, sources), *outside(sources))
    found = {
        name: domain_of(name, variable, events, tests[name]) for name, variable in sources.items()
    }
    domains = {name: domain for name, domain in found.items() if isinstance(domain, Domain)}
    combinations = math.prod(len(domain.values) for domain in domains.values())
    if combinations > limit:
        largest = sorted(domains, key=lambda name: -len(domains[name].values))
        return TooLarge(combinations, tuple(largest))
    unknown = dict.fromkeys(followed & BUILT_IN_VARIABLES, "it is different in every run")
    unknown |= {name: why for name, why in found.items() if isinstance(why, str)}
    return _ground(subject, computed, domains, events, unknown)


def computations(subject: Subject) -> dict[str, Condition]:
    """Return the conditions by which variables are computed; those that do not parse are left out."""
    found: dict[str, Condition] = {}
    for name, variable in subject.spec.variables.items():
        source = variable.source
        if isinstance(source, ComputedSource) and not FUNCTION_REF.match(source.computation):
            try:
                found[name] = parse_condition(source.computation)
            except ExpressionError:
                continue  # VAR004 reports it
    return found


def _ground(
    subject: Subject,
    computed: Mapping[str, Condition],
    domains: Mapping[str, Domain],
    events: tuple[Event, ...],
    unknown: Mapping[str, str],
) -> Ground:
    space = lay_out({name: domain.values for name, domain in domains.items()})
    values: dict[str, Blocks] = dict.fromkeys(unknown, ((UNKNOWN, space.full),))
    values |= {
        name: tuple(zip(axis.values, axis.masks, strict=True)) for name, axis in space.axes.items()
    }
    needed = _expand(subject.conditions.values(), computed)
    graph = {name: names(computed[name]) for name in computed if name in needed}
    for name in TopologicalSorter(graph).static_order():
        if name in graph:
            values[name] = blocks(truth(computed[name], values, space.full))
    return Ground(
        domains=domains,
        events=events,
        space=space,
        truths={
            index: truth(condition, values, space.full)
            for index, condition in subject.conditions.items()
        },
        doubts={
            index: tuple(_doubts(condition, computed, unknown))
            for index, condition in subject.conditions.items()
        },
    )


def _expand(conditions: Iterable[Condition], computed: Mapping[str, Condition]) -> set[str]:
    """Return the variables conditions mention, and those behind computed ones."""
    found: set[str] = set()
    waiting = [name for condition in conditions for name in names(condition)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(names(computed[name]) if name in computed else ())
    return found


def _doubts(
    condition: Condition, computed: Mapping[str, Condition], unknown: Mapping[str, str]
) -> Iterator[Doubt]:
    behind = sorted(_expand([condition], computed))
    doubtful = [name for name in behind if name in unknown]
    for name in doubtful:
        yield Doubt(f"{name} cannot be followed: {unknown[name]}", name)
    if not doubtful:
        # All values are known, but not all of them can be compared, or they are too many to ask.
        yield Doubt(f"the values of {', '.join(behind)} do not settle the condition", reported=True)
