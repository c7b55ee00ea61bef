"""All combinations of values that variables can have together, and sets of such combinations.

Every combination has a number (mixed radix: one digit for each variable). A set of combinations is
one int whose bit n says whether combination n is in it. Union, intersection and the assignment of
a value are then a few operations on whole ints, however many combinations there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.findings import Json


@dataclass(frozen=True, slots=True)
class Axis:
    """One variable: its values, how far apart they lie, and where each of them holds."""

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
    """Give every combination of the values in `domains` its number."""
    axes: dict[str, Axis] = {}
    size = 1
    for name, values in domains.items():
        # All that is known so far repeats once for each value of the new variable.
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
    """What assigning to one variable does to a set: the bits under a mask move so many places.

    Changes to different values move by the same distance when the values lie equally far apart,
    so even "any value to any value" takes few moves.
    """

    moves: tuple[tuple[int, int], ...]

    def forward(self, bits: int) -> int:
        """Return the combinations that the change makes of those in `bits`."""
        result = 0
        for mask, distance in self.moves:
            moved = bits & mask
            if moved:
                result |= moved << distance if distance >= 0 else moved >> -distance
        return result

    def backward(self, bits: int) -> int:
        """Return the combinations of which the change can make one in `bits`."""
        result = 0
        for mask, distance in self.moves:
            result |= mask & (bits >> distance if distance >= 0 else bits << -distance)
        return result


def change(axis: Axis, outcomes: Sequence[Iterable[int]]) -> Change:
    """Build the change after which value n has become one of those with indexes `outcomes[n]`."""
    masks: dict[int, int] = {}
    for old, news in enumerate(outcomes):
        for new in news:
            masks[new - old] = masks.get(new - old, 0) | axis.masks[old]
    return Change(tuple((mask, steps * axis.stride) for steps, mask in sorted(masks.items())))


def forward(changes: Sequence[Change], bits: int) -> int:
    """Return the combinations that changes, one after the other, make of those in `bits`."""
    for step in changes:
        bits = step.forward(bits)
    return bits


def backward(changes: Sequence[Change], bits: int) -> int:
    """Return the combinations of which changes, one after the other, can make one in `bits`."""
    for step in reversed(changes):
        bits = step.backward(bits)
    return bits
