"""The exploration: every way a run can go, and whether an end can be reached from everywhere."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal, TypeAlias

from weft.check.explore.chart import Chart, Nodes, PointKind, TooMuchWorkError
from weft.check.explore.draw import draw
from weft.check.explore.ground import TooLarge, survey
from weft.check.explore.reach import both, leading, reached, without
from weft.check.explore.space import union
from weft.check.explore.traps import Trap, traps
from weft.check.explore.unused import UnusedRule, unused_rules
from weft.check.explore.witness import in_words, show
from weft.check.subject import Subject

Status: TypeAlias = Literal["can end", "endless", "may be endless", "unfinished", "not explored"]

#: Agents times combinations of values; more are not explored.
STATE_LIMIT: Final = 2_000_000
#: How long it takes depends on the way they hang together, which is limited by itself. With twenty
#: agents and twelve booleans it takes 6,000 to 90,000 steps; this many take two seconds.
MOST_STEPS: Final = 1_000_000

#: So many ways of going on for ever are described; more would not help anybody.
MOST_TRAPS: Final = 10


@dataclass(frozen=True, slots=True)
class EndlessRun:
    """Agents that hand off among themselves for ever.

    `values` are what the variables that decide about it have for good, `witness` is the shortest
    way there, and `cycle` how it goes on.
    """

    agents: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    witness: str
    cycle: str


@dataclass(frozen=True, slots=True)
class Exploration:
    """What is known about all runs of a workflow.

    An `endless` run needs nothing but declared triggers and known values; what is only possible, by
    code or by values that are not known, makes the status "may be endless". `unreachable_agents`
    never speak; of these, a run does not even come to the `unvisited_agents`, the others always
    hand off before they can reply.
    """

    status: Status
    reason: str = ""
    states: int = 0
    endless: tuple[EndlessRun, ...] = ()
    unused_rules: tuple[UnusedRule, ...] = ()
    unreachable_agents: tuple[str, ...] = ()
    unvisited_agents: tuple[str, ...] = ()


def explore(subject: Subject, *, limit: int = STATE_LIMIT, steps: int = MOST_STEPS) -> Exploration:
    """Explore every state a run can get to, and say whether each leads on to an end.

    The workflow must be sound: its agents, conditions and triggers are found and can be read.
    """
    ground = survey(subject, limit // len(subject.agents))
    if isinstance(ground, TooLarge):
        return Exploration("unfinished", _too_large(subject, ground, limit))
    chart = draw(subject, ground, steps)
    reason = f"to explore all states takes more than {steps:,} steps of work"
    unfinished = Exploration("unfinished", reason)
    try:
        seen = reached(chart, chart.begin, by="limits")
        unfinished = replace(
            unfinished,
            states=sum(bits.bit_count() for bits in seen),
            unused_rules=tuple(unused_rules(subject, chart, seen)),
            unreachable_agents=tuple(_never(chart, seen, "speak")),
            unvisited_agents=tuple(_never(chart, seen, "enter")),
        )
        return _judge(chart, unfinished, seen)
    except TooMuchWorkError:
        return unfinished


def _too_large(subject: Subject, found: TooLarge, limit: int) -> str:
    largest = f"; the most come from {', '.join(found.variables[:3])}" if found.variables else ""
    return (
        f"agents times combinations of values make {len(subject.agents)} x {found.combinations:,} "
        f"states, more than {limit:,}{largest}"
    )


def _judge(chart: Chart, found: Exploration, seen: Nodes) -> Exploration:
    """Say whether each of the nodes that have been `seen` leads on to an end."""
    lost = without(seen, leading(chart, chart.at("wait", "end"), seen))
    if not any(lost):
        return replace(found, status="can end", reason="")
    certain = reached(chart, chart.begin, by="certainty")
    endless = tuple(
        EndlessRun(
            agents=trap.agents,
            values=tuple(_lasting(chart, trap)),
            witness=in_words(chart, trap.into),
            cycle=in_words(chart, trap.around),
        )
        for trap in islice(traps(chart, seen, lost, certain), MOST_TRAPS)
    )
    if any(both(lost, certain)):
        why = f"once a run has come to {endless[0].agents[0]}, it can go on without end"
        return replace(found, status="endless", reason=why, endless=endless)
    way = next(traps(chart, seen, lost, certain)).into
    why = next(edge.why for edge, _ in way.steps if edge.why)
    return replace(found, status="may be endless", reason=why, endless=endless)


def _never(chart: Chart, seen: Nodes, kind: PointKind) -> Iterator[str]:
    for point, bits in zip(chart.points, seen, strict=True):
        if point.kind == kind and not bits:
            yield point.agent


def _lasting(chart: Chart, trap: Trap) -> Iterator[tuple[str, str]]:
    """Yield the variables that the trapped agents' rules test, if one value alone is the trap."""
    bits = union(trap.nodes)
    tested = {
        name
        for rules in (chart.routing.pre, chart.routing.post)
        for agent in trap.agents
        for rule in rules.get(agent, ())
        for name in chart.ground.behind.get(rule.index, ())
    }
    for name, axis in chart.ground.space.axes.items():
        if name in tested and len(axis.values) > 1:
            for value, mask in zip(axis.values, axis.masks, strict=True):
                if not bits & ~mask:
                    yield name, show(value)
