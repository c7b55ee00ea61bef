"""The chart of a conversation: its points, and the edges along which a run moves between them.

A node is what people call a state of a run: a point together with one combination of values. So an
edge is described by the set of combinations it is open to and the changes it makes to them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from weft.check.proof.effort import Effort
from weft.check.proof.ground import Ground
from weft.check.proof.happenings import Doubt
from weft.check.proof.space import Change, backward, forward
from weft.engine.routing import Routing

#: enter: the agent is about to speak; speak: it is at work; said: it has given its reply, and the
#: call that is made with it is over; decide: its turn is closed; wait: the user is waited for, and
#: the agent answers next.
PointKind: TypeAlias = Literal["start", "enter", "speak", "said", "decide", "wait", "end"]

#: For each point, by its number, a set of combinations: together a set of nodes.
Nodes: TypeAlias = list[int]

#: A guard that every combination passes.
ALWAYS: Final = -1


@dataclass(frozen=True, slots=True)
class Point:
    """Where a run can be."""

    kind: PointKind
    agent: str = ""


START: Final = Point("start")
END: Final = Point("end")


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """One way from a point to another.

    `doubts` say why it is not certain that a run can go this way. Edges of one `group` are the
    ways among which something unknown decides: a run certainly goes one of those open to it. A
    `limit` leads where no rule does: an agent may give so many replies in a row and no more.
    """

    source: int
    target: int
    guard: int = ALWAYS
    changes: tuple[Change, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    group: int | None = None
    limit: bool = False

    def forward(self, bits: int) -> int:
        """Return the combinations with which the target is reached from those in `bits`."""
        return forward(self.changes, bits & self.guard)

    def backward(self, bits: int) -> int:
        """Return the combinations that can reach the target with one in `bits`."""
        return backward(self.changes, bits) & self.guard

    def always(self, bits: int, full: int) -> int:
        """Return the combinations that reach the target with none but those in `bits`."""
        return full & ~self.backward(full & ~bits)


@dataclass(frozen=True, slots=True)
class Step:
    """What happens on the way along an edge, for which combinations, and what is doubtful."""

    guard: int = ALWAYS
    changes: tuple[Change, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    def then(self, other: "Step") -> "Step":
        """Return this step with another after it, for the same combinations."""
        guard = self.guard & backward(self.changes, other.guard)
        return Step(guard, (*self.changes, *other.changes), (*self.doubts, *other.doubts))


@dataclass(frozen=True, slots=True)
class Use:
    """A handoff, by its index, may take place at a point with these combinations."""

    rule: int
    point: int
    bits: int


@dataclass(frozen=True)
class Chart:
    """All points, the start first, all edges, and what a run certainly and possibly begins with.

    `effort` is what may still be done to explore it.
    """

    ground: Ground
    routing: Routing
    points: tuple[Point, ...]
    edges: tuple[Edge, ...]
    uses: tuple[Use, ...]
    initial: int
    possible: int
    effort: Effort

    @cached_property
    def out(self) -> tuple[tuple[Edge, ...], ...]:
        """The edges that leave each point."""
        return self._sorted(lambda edge: edge.source)

    @cached_property
    def into(self) -> tuple[tuple[Edge, ...], ...]:
        """The edges that lead to each point."""
        return self._sorted(lambda edge: edge.target)

    @cached_property
    def work_out(self) -> tuple[int, ...]:
        """How much work it is to follow all edges that leave a point, for each point."""
        return tuple(map(_work, self.out))

    @cached_property
    def work_into(self) -> tuple[int, ...]:
        """How much work it is to follow all edges that lead to a point, for each point."""
        return tuple(map(_work, self.into))

    @cached_property
    def numbers(self) -> dict[Point, int]:
        """The number of each point."""
        return {point: number for number, point in enumerate(self.points)}

    @cached_property
    def groups(self) -> dict[int, list[Edge]]:
        """The edges of each group."""
        found: dict[int, list[Edge]] = {}
        for edge in self.edges:
            if edge.group is not None:
                found.setdefault(edge.group, []).append(edge)
        return found

    @cached_property
    def rests(self) -> Nodes:
        """Where a run may stay for good: it has ended, or it is the user's turn."""
        full = self.ground.space.full
        return [full if point.kind in ("wait", "end") else 0 for point in self.points]

    def begin(self, bits: int) -> Nodes:
        """Return the nodes in which runs begin that have these combinations."""
        return [bits, *(0 for _ in self.points[1:])]

    def _sorted(self, point_of: Callable[[Edge], int]) -> tuple[tuple[Edge, ...], ...]:
        found: list[list[Edge]] = [[] for _ in self.points]
        for edge in self.edges:
            found[point_of(edge)].append(edge)
        return tuple(map(tuple, found))


def _work(edges: Iterable[Edge]) -> int:
    return sum(1 + len(edge.changes) for edge in edges)
