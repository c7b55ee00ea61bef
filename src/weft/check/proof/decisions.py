"""A decision about who speaks next, as edges of the chart."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.check.proof.chart import Edge
from weft.check.proof.happenings import Doubt
from weft.check.proof.space import Change, union


@dataclass(frozen=True, slots=True)
class Way:
    """Where a decision may lead, for which combinations, and by which rule if one decides.

    `doubts` are those of a rule of which it is not known whether it applies.
    """

    target: int
    changes: tuple[Change, ...]
    bits: int
    rule: int | None = None
    doubts: tuple[Doubt, ...] = ()


def edges_of(at: int, ways: Iterable[Way], group: int) -> Iterator[Edge]:
    """Yield the edges of one case of a decision, made at the point `at`.

    The ways come in the order in which the rules are asked. A model that judges a condition may
    answer either way, so a way is certain for the combinations for which no rule up to it was in
    doubt. For the others, what is not known decides: these edges get the number `group`.
    """
    unsure: dict[int, list[Way]] = {}
    doubts: dict[Doubt, None] = {}
    open_to = 0
    for way in ways:
        if way.doubts:
            open_to |= way.bits
            doubts |= dict.fromkeys(way.doubts)
        if way.bits & ~open_to:
            yield Edge(at, way.target, way.bits & ~open_to, way.changes)
        if way.bits & open_to:
            unsure.setdefault(way.target, []).append(way)
    possible = {
        target: open_to & union(way.bits for way in found) for target, found in unsure.items()
    }
    for target, found in unsure.items():
        elsewhere = union(bits for other, bits in possible.items() if other != target)
        # Where all ways lead to one place, it does not matter which of them is taken.
        alone, among = possible[target] & ~elsewhere, possible[target] & elsewhere
        if alone:
            yield Edge(at, target, alone, found[0].changes)
        if among:
            yield Edge(at, target, among, found[0].changes, tuple(doubts), group)
