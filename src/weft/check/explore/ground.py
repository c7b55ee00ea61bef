"""What is explored: the variables that matter, what sets them, and when rules apply."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

from weft.check.explore.conditions import (
    ALL_QUESTIONS,
    MOST_QUESTIONS,
    Blocks,
    Truth,
    blocks,
    truth,
)
from weft.check.explore.domains import Domain, domain_of
from weft.check.explore.happenings import Happening, written
from weft.check.explore.samples import questions_in
from weft.check.explore.space import Space, lay_out
from weft.check.explore.triggers import triggered
from weft.check.subject import Subject
from weft.check.values import value_error
from weft.engine.variables.conditions import UNKNOWN
from weft.ids import FUNCTION_REF
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition, names
from weft.spec.variables import ComputedSource


@dataclass(frozen=True, slots=True)
class Ground:
    """The variables that can be followed, with their happenings and all their combinations.

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


def survey(subject: Subject, limit: int) -> Ground | str:
    """Find out what to follow through the handoffs, or say why that is more than `limit` states."""
    computed = {
        name: parse_condition(source.computation)
        for name, source in subject.sources(ComputedSource)
        if not FUNCTION_REF.match(source.computation)
    }
    behind = {index: _behind(found, computed) for index, found in subject.conditions.items()}
    followed = {name for found in behind.values() for name in found}
    computed = {name: found for name, found in computed.items() if name in followed}
    asked = questions_in((*subject.conditions.values(), *computed.values()))
    sources = {
        name: variable
        for name, variable in subject.spec.variables.items()
        if name in followed and name not in computed
    }
    all_happenings = (*triggered(subject, sources), *written(subject, sources))
    happenings = tuple(_fitting(subject, happening) for happening in all_happenings)
    found = {
        name: domain_of(name, variable, happenings, asked[name])
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
        truths=_truths(subject, computed, space, unknown),
        behind=behind,
        whys={index: _why(found, unknown) for index, found in behind.items()},
    )


def _fitting(subject: Subject, happening: Happening) -> Happening:
    """Leave out what the type of a variable refuses: such a write changes nothing."""
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
    subject: Subject, computed: Mapping[str, Condition], space: Space, unknown: Iterable[str]
) -> dict[int, Truth]:
    values: dict[str, Blocks] = dict.fromkeys(unknown, ((UNKNOWN, space.full),))
    values |= {name: axis.blocks for name, axis in space.axes.items()}
    # The same condition often stands in several rules, and equal texts are parsed only once.
    distinct = {id(condition): condition for condition in subject.conditions.values()}
    most = min(MOST_QUESTIONS, ALL_QUESTIONS // (len(distinct) + len(computed) + 1))
    graph = {name: names(condition) for name, condition in computed.items()}
    for name in TopologicalSorter(graph).static_order():
        if name in computed:
            values[name] = blocks(truth(computed[name], values, space.full, most))
    known = {key: truth(found, values, space.full, most) for key, found in distinct.items()}
    return {index: known[id(condition)] for index, condition in subject.conditions.items()}


def _behind(condition: Condition, computed: Mapping[str, Condition]) -> tuple[str, ...]:
    """Return the variables a condition mentions, and those that are behind computed ones."""
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
    # All values are known, but some cannot be compared, or they are too many to ask them all.
    return f"the values of {', '.join(behind)} do not settle a condition"
