"""The chart of a conversation: its points, and the edges along which a run moves between them.

A node is what people call a state of a run: a point together with one combination of values. So an
edge is described by the set of combinations it is open to and the changes it makes to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from weft.check.explore.ground import Change, Ground, backward, forward
from weft.engine.conversation.routing import Routing

#: enter: the agent is about to speak; arrive: its turn has begun; speak: it is at work; work: it
#: has called tools; said: it has given its reply, and the call that is made with it is over;
#: decide: its turn is closed; wait: the user is waited for, and the agent answers next. At arrive
#: and work the rules before its replies are asked again: only agents with such come by them.
PointKind: TypeAlias = Literal[
    "start", "enter", "arrive", "speak", "work", "said", "decide", "wait", "end"
]

#: For each point, by its number, a set of combinations: together a set of nodes.
Nodes: TypeAlias = list[int]

#: A guard that every combination passes.
ALWAYS: Final = -1
#: Following an edge, or making a change, is a step for a small set; so many more are one more.
_BITS_OF_A_STEP: Final = 1 << 14


class TooMuchWorkError(Exception):
    """An exploration has taken all the steps it may."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a run can be."""

    kind: PointKind
    agent: str = ""


START: Final = Point("start")
END: Final = Point("end")


@dataclass(frozen=True, slots=True)
class Step:
    """What happens on the way along an edge, for which combinations, and why that is not sure."""

    guard: int = ALWAYS
    changes: tuple[Change, ...] = ()
    why: str = ""

    def then(self, other: "Step") -> "Step":
        guard = self.guard & backward(self.changes, other.guard)
        return Step(guard, (*self.changes, *other.changes), self.why or other.why)


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """One way from a point to another.

    `why` says why it is not certain that a run can go this way; it is empty where only declared
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
    """All points, the start first, all edges, and the combinations that a run begins with.

    `steps` is how much work may still be done to explore it. It is counted, not timed, so that the
    answer is the same on every machine.
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
        """Take the steps for following edges: one for each, and one for each change it makes."""
        each = 1 + self.ground.space.full.bit_length() // _BITS_OF_A_STEP
        self.steps -= each * sum(1 + len(edge.changes) for edge in edges)
        if self.steps < 0:
            raise TooMuchWorkError

    def _sorted(self, point_of: Callable[[Edge], int]) -> tuple[tuple[Edge, ...], ...]:
        found: list[list[Edge]] = [[] for _ in self.points]
        for edge in self.edges:
            found[point_of(edge)].append(edge)
        return tuple(map(tuple, found))
