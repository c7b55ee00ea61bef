"""The proof: whether a run can come to an end from wherever it can get to."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal, TypeAlias

from weft.check.proof.chart import Chart, Nodes, PointKind
from weft.check.proof.draw import draw
from weft.check.proof.effort import MOST_STEPS, TooMuchWorkError
from weft.check.proof.ground import TooLarge, survey
from weft.check.proof.happenings import Doubt
from weft.check.proof.reach import joined, leading, reached, shortest
from weft.check.proof.ready import obstacle
from weft.check.proof.space import union
from weft.check.proof.traps import Trap, entries, only, traps
from weft.check.proof.unused import UnusedRule, unused_rules
from weft.check.proof.witness import in_words, show
from weft.check.subject import Subject

Status: TypeAlias = Literal["proven", "refuted", "not proven", "not checked"]

#: Agents times combinations of values; more are not explored. How long a proof takes depends on
#: the way they hang together, which is limited by itself: see `effort`.
STATE_LIMIT: Final = 2_000_000

_FEWER: Final = "let fewer variables decide handoffs, or give them fewer values"

#: So many ways of going on for ever are described; more would not help anybody.
MOST_TRAPS: Final = 10


@dataclass(frozen=True, slots=True)
class EndlessRun:
    """Agents that keep the word among themselves for ever.

    `values` are what the variables that decide about it have for good, `witness` is the shortest
    way there, and `cycle` how it goes on; it is empty where something unknown decides about that.
    """

    agents: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    witness: str
    cycle: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known about all runs of a workflow.

    `dead_ends` are endless runs of one agent, `cycles` of several. `unreachable_agents` never
    speak; of these, the word does not even come to the `unvisited_agents`, the others are always
    passed over. That these never speak, and that the `unused_rules` never apply, is certain
    whatever the status is. `doubts` and `witness` belong to the status "not proven": what stands
    in the way of a proof, and the shortest way on which it does.
    """

    status: Status
    reason: str
    states: int = 0
    dead_ends: tuple[EndlessRun, ...] = ()
    cycles: tuple[EndlessRun, ...] = ()
    unused_rules: tuple[UnusedRule, ...] = ()
    unreachable_agents: tuple[str, ...] = ()
    unvisited_agents: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    witness: str = ""


def prove(subject: Subject, *, limit: int = STATE_LIMIT, steps: int = MOST_STEPS) -> Proof:
    """Explore every state a run can get to, and say whether each leads on to an end."""
    hindrance = obstacle(subject)
    if hindrance:
        return Proof("not checked", hindrance)
    ground = survey(subject, limit // len(subject.agents))
    if isinstance(ground, TooLarge):
        return _unfinished(_too_large(subject, ground, limit))
    chart = draw(subject, ground, steps)
    why = f"to explore all states takes more than {steps:,} steps of work"
    unfinished = _unfinished(Doubt(why, _FEWER))
    try:
        seen = reached(chart, chart.begin(chart.possible), by="limits")
        unfinished = replace(
            unfinished,
            states=sum(bits.bit_count() for bits in seen),
            unused_rules=tuple(unused_rules(subject, chart, seen)),
            unreachable_agents=tuple(_never(chart, seen, "speak")),
            unvisited_agents=tuple(_never(chart, seen, "enter")),
        )
        return _explore(chart, unfinished, seen)
    except TooMuchWorkError:
        return unfinished


def _unfinished(doubt: Doubt) -> Proof:
    return Proof("not proven", doubt.why, doubts=(doubt,))


def _too_large(subject: Subject, found: TooLarge, limit: int) -> Doubt:
    largest = f"; the most come from {', '.join(found.variables[:3])}" if found.variables else ""
    return Doubt(
        f"agents times combinations of values make {len(subject.agents)} x {found.combinations:,} "
        f"states, more than {limit:,}{largest}",
        _FEWER,
    )


def _explore(chart: Chart, unfinished: Proof, seen: Nodes) -> Proof:
    """Say whether each of the nodes that have been `seen` leads on to an end."""
    lost = _without(seen, leading(chart, chart.rests, seen))
    doubtful = chart.initial != chart.possible or any(edge.doubts for edge in chart.edges)
    certain = reached(chart, chart.begin(chart.initial), by="certainty") if doubtful else seen
    endless = [_endless(chart, trap) for trap in _some_traps(chart, lost, _both(lost, certain))]
    proof = replace(
        unfinished,
        status="proven",
        reason="from every state that a run can get to, an end can be reached",
        dead_ends=tuple(run for run in endless if len(run.agents) == 1),
        cycles=tuple(run for run in endless if len(run.agents) > 1),
        doubts=(),
    )
    if endless:
        why = f"once a run has come to {endless[0].agents[0]}, it can go on without end"
        return replace(proof, status="refuted", reason=why)
    assured = leading(chart, chart.rests, seen, assured=True) if doubtful else seen
    unsure = _without(seen, assured)
    return _doubted(chart, proof, unsure, lost) if any(unsure) else proof


def _some_traps(chart: Chart, lost: Nodes, certainly: Nodes) -> Iterator[Trap]:
    """Yield the first traps; where the work becomes too much, those that are known by then."""
    found = 0
    try:
        for trap in islice(traps(chart, lost, certainly), MOST_TRAPS):
            found += 1
            yield trap
    except TooMuchWorkError:
        if not found:
            raise


def _never(chart: Chart, seen: Nodes, kind: PointKind) -> Iterator[str]:
    for point, bits in zip(chart.points, seen, strict=True):
        if point.kind == kind and not bits:
            yield point.agent


def _endless(chart: Chart, trap: Trap) -> EndlessRun:
    return EndlessRun(
        agents=trap.agents,
        values=tuple(_lasting(chart, trap)),
        witness=in_words(chart, trap.into),
        cycle=_cycle(chart, trap),
    )


def _cycle(chart: Chart, trap: Trap) -> str:
    """Say how it goes on, if that is known.

    One agent alone comes after itself, whatever else is unknown, unless it may stay in its turn.
    """
    if trap.around:
        return in_words(chart, trap.around)
    agent, *others = trap.agents
    turn = (edge for edge in chart.edges if chart.points[edge.source].agent == agent)
    stays = any(doubt.halts for edge in turn for doubt in edge.doubts)
    return "" if others or stays else f"{agent} -> {agent}"


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


def _doubted(chart: Chart, proof: Proof, unsure: Nodes, lost: Nodes) -> Proof:
    """Name what stands in the way of a proof.

    Either a run may get to where there is no end, which is not certain, or the ways to an end
    from where it can get to are not certain.
    """
    stuck = any(lost)
    way = shortest(chart, chart.begin(chart.possible), lost if stuck else unsure, by="limits")
    onward = shortest(chart, only(chart, way.last), entries(chart, lost) if stuck else chart.rests)
    doubts = [doubt for edge, _ in (way if stuck else onward).steps for doubt in edge.doubts]
    if not doubts:
        why = "a value kept from an earlier run may lead there"
        doubts = [Doubt(why, 'do not let a variable with "persist": true decide about it')]
    return replace(
        proof,
        status="not proven",
        reason=doubts[0].why,
        doubts=tuple(dict.fromkeys(doubts)),
        witness=in_words(chart, joined(way, onward)),
    )


def _without(nodes: Nodes, others: Nodes) -> Nodes:
    return [bits & ~other for bits, other in zip(nodes, others, strict=True)]


def _both(nodes: Nodes, others: Nodes) -> Nodes:
    return [bits & other for bits, other in zip(nodes, others, strict=True)]
