"""The chart of a conversation: its points, and the edges along which a run moves between them.

A node is one state of a run: a point together with one combination of values. An edge has the set
of combinations that can take it, and the changes it makes to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from weft.check.explore.ground import Change, Ground, backward, forward
from weft.engine.conversation.routing import Routing

#: enter: before the turn; arrive: the turn has begun; speak: the agent works; work: it has called
#: tools; said: it has replied, and the automatic tool has returned; decide: the turn has ended;
#: wait: the run waits for the user, and the agent answers next. At arrive and work the rules with
#: the scope pre are evaluated again; only agents with such rules have these points.
PointKind: TypeAlias = Literal[
    "start", "enter", "arrive", "speak", "work", "said", "decide", "wait", "end"
]

#: A set of nodes: for each point, by its number, a set of combinations.
Nodes: TypeAlias = list[int]

#: A guard that every combination passes.
ALWAYS: Final = -1
#: Following an edge or making a change takes one step, and one more for each of this many bits.
_BITS_OF_A_STEP: Final = 1 << 14


class TooMuchWorkError(Exception):
    """The exploration has used up its steps."""


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of a run: a kind of point of one agent."""

    kind: PointKind
    agent: str = ""


START: Final = Point("start")
END: Final = Point("end")


@dataclass(frozen=True, slots=True)
class Step:
    """The changes along an edge, for which combinations, and why they are not certain."""

    guard: int = ALWAYS
    changes: tuple[Change, ...] = ()
    why: str = ""

    def then(self, other: "Step") -> "Step":
        guard = self.guard & backward(self.changes, other.guard)
        return Step(guard, (*self.changes, *other.changes), self.why or other.why)


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """An edge from one point to another.

    `why` is the reason why a run may be unable to take it; it is empty where only declared
    triggers and known values decide. A `limit` leads where no rule does: an agent may give so many
    replies in a row and no more. `rule` is the index of the handoff that leads along it, if any.
    """

    source: int
    target: int
    guard: int = ALWAYS
    changes: tuple[Change, ...] = ()
    why: str = ""
    limit: bool = False
    rule: int | None = None

    def forward(self, bits: int) -> int:
        """Return the combinations with which the target is reached from those in `bits`."""
        return forward(self.changes, bits & self.guard)

    def backward(self, bits: int) -> int:
        """Return the combinations that can reach the target with one in `bits`."""
        return backward(self.changes, bits) & self.guard


@dataclass
class Chart:
    """All points, the start first, all edges, and the combinations at the start of a run.

    `steps` is the work that is left for exploring it. It is counted, not timed, so that the
    result is the same on every machine.
    """

    ground: Ground
    routing: Routing
    points: tuple[Point, ...]
    edges: tuple[Edge, ...]
    initial: int
    steps: int

    @cached_property
    def out(self) -> tuple[tuple[Edge, ...], ...]:
        return self._sorted(lambda edge: edge.source)

    @cached_property
    def into(self) -> tuple[tuple[Edge, ...], ...]:
        return self._sorted(lambda edge: edge.target)

    @cached_property
    def numbers(self) -> dict[Point, int]:
        return {point: number for number, point in enumerate(self.points)}

    @cached_property
    def begin(self) -> Nodes:
        return [self.initial, *(0 for _ in self.points[1:])]

    def at(self, *kinds: PointKind) -> Nodes:
        full = self.ground.space.full
        return [full if point.kind in kinds else 0 for point in self.points]

    def spend(self, edges: tuple[Edge, ...]) -> None:
        """Count the steps for following edges: one per edge and one per change."""
        each = 1 + self.ground.space.full.bit_length() // _BITS_OF_A_STEP
        self.steps -= each * sum(1 + len(edge.changes) for edge in edges)
        if self.steps < 0:
            raise TooMuchWorkError

    def _sorted(self, point_of: Callable[[Edge], int]) -> tuple[tuple[Edge, ...], ...]:
        found: list[list[Edge]] = [[] for _ in self.points]
        for edge in self.edges:
            found[point_of(edge)].append(edge)
        return tuple(map(tuple, found))
