"""A decision about who speaks next, as edges of the chart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.check.proof.cases import Case
from weft.check.proof.chart import Edge
from weft.check.proof.events import Doubt
from weft.check.proof.space import Change


@dataclass(frozen=True, slots=True)
class Way:
    """Where a decision may lead, and the rules by which it does."""

    target: int
    changes: tuple[Change, ...]
    rules: tuple[int, ...] = ()


def edges_of(
    at: int, case: Case, ways: Sequence[Way], doubts: Mapping[int, tuple[Doubt, ...]], group: int
) -> tuple[Edge, ...]:
    """Return the edges of one case of a decision at the point `at`.

    A model that judges a condition may answer either way, so every way up to the first answer
    that is not known is certainly possible. From there on, what is not known decides: these edges
    get the number `group` and the doubts.
    """
    unknown = [rule for rule, answer in case.answers.items() if answer is None and rule in doubts]
    cut = next((n for n, way in enumerate(ways) if not set(unknown).isdisjoint(way.rules)), None)
    sure = list(ways[:cut])
    unsure = [] if cut is None else _merge(ways[cut:])
    if len(unsure) < 2:
        # All ways lead to one place: it does not matter which of them is taken.
        sure, unsure = [*sure, *unsure], []
    why = tuple(dict.fromkeys(doubt for rule in unknown for doubt in doubts[rule]))
    return (
        *(Edge(at, way.target, case.bits, way.changes, way.rules) for way in sure),
        *(Edge(at, way.target, case.bits, way.changes, way.rules, why, group) for way in unsure),
    )


def _merge(ways: Iterable[Way]) -> list[Way]:
    """Make one way of all that lead to the same point; they make the same changes."""
    merged: dict[int, Way] = {}
    for way in ways:
        known = merged.get(way.target, replace(way, rules=()))
        merged[way.target] = replace(known, rules=(*known.rules, *way.rules))
    return list(merged.values())
