"""The exploration: every way a run can go, and whether an end can be reached from everywhere."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal, TypeAlias

from weft.check.explore.chart import Chart, Nodes, Point, PointKind, TooMuchWorkError
from weft.check.explore.draw import draw
from weft.check.explore.ground import survey, union
from weft.check.explore.reach import (
    Node,
    Path,
    both,
    first_of,
    leading,
    reached,
    shortest,
    usable,
    without,
)
from weft.check.subject import Subject
from weft.engine.conversation.routing import RoutingRule
from weft.findings import Json
from weft.spec.agents import Handoff

#: A longer way is shortened in the middle.
_MOST_WORDS: Final = 16


def in_words(chart: Chart, path: Path) -> str:
    """Write a way as `A -> (x = true) -> B`: whose turn it is, and what is set in between."""
    words = [*_begin(chart, path), *_follow(chart, path)]
    if len(words) > _MOST_WORDS:
        half = _MOST_WORDS // 2
        words = [*words[:half], "...", *words[-half:]]
    return " -> ".join(words)


def show(value: Json) -> str:
    """Write a value; texts that are not empty go without quotes."""
    return value if isinstance(value, str) and value else json.dumps(value)


def _begin(chart: Chart, path: Path) -> Iterator[str]:
    """Name what differs from run to run at the start, or who speaks where the way begins."""
    if chart.points[path.start.point].kind != "start":
        yield _name(chart.points[path.start.point])
        return
    several = [name for name, found in chart.ground.domains.items() if len(found.initial) > 1]
    if several:
        yield _values(chart, path.start, several)


def _follow(chart: Chart, path: Path) -> Iterator[str]:
    before = path.start
    for _, node in path.steps:
        changed = [
            name
            for name, axis in chart.ground.space.axes.items()
            if name in chart.ground.domains
            and axis.value_at(before.values) is not axis.value_at(node.values)
        ]
        if changed:
            yield _values(chart, node, changed)
        if chart.points[node.point].kind in ("enter", "wait", "end"):
            yield _name(chart.points[node.point])
        before = node


def _name(point: Point) -> str:
    return {"wait": "user", "end": "end"}.get(point.kind, point.agent)


def _values(chart: Chart, node: Node, names: Iterable[str]) -> str:
    axes = chart.ground.space.axes
    return f"({', '.join(f'{n} = {show(axes[n].value_at(node.values))}' for n in names)})"


#: Where rules after a reply are asked, the last point that agents come by first.
_AFTER: Final = ("decide", "said", "speak")
#: More values of a variable are not listed.
_MOST_VALUES: Final = 6


@dataclass(frozen=True, slots=True)
class UnusedRule:
    """A handoff, by its index, that never takes place; `always_false` is about its condition.

    `facts` are the values of variables on which that rests.
    """

    index: int
    why: str
    always_false: bool = False
    facts: tuple[str, ...] = ()


def unused_rules(subject: Subject, chart: Chart, seen: Nodes) -> Iterator[UnusedRule]:
    """Yield the handoffs that take place in none of the nodes in `seen`."""
    used = {edge.rule for edge in chart.edges if edge.guard & seen[edge.source]}
    for index, handoff in enumerate(subject.spec.handoffs):
        if index not in used:
            yield _explain(chart, seen, index, handoff)


def _explain(chart: Chart, seen: Nodes, index: int, handoff: Handoff) -> UnusedRule:
    agent = handoff.source_agent
    before = handoff.condition_scope == "pre"
    rules = (chart.routing.pre if before else chart.routing.post)[agent]
    holds = _may_hold(chart, index)
    here = _asked_with(chart, seen, agent, before=before)
    if not holds:
        facts = tuple(_facts(chart, index))
        return UnusedRule(index, "its condition is never true", always_false=True, facts=facts)
    if not here:
        return UnusedRule(index, f"{agent} never comes to it")
    if not here & holds:
        moment = "about to reply" if before else "done"
        return UnusedRule(index, f"its condition is never true when {agent} is {moment}")
    return UnusedRule(index, _shadow(chart, rules, index, here & holds))


def _may_hold(chart: Chart, index: int) -> int:
    truth = chart.ground.truths.get(index)
    return truth.yes | truth.open if truth else chart.ground.space.full


def _facts(chart: Chart, index: int) -> Iterator[str]:
    """Say which values the variables of a condition can have, where these are few."""
    for name in chart.ground.behind[index]:
        domain = chart.ground.domains.get(name)
        if domain and len(domain.values) <= _MOST_VALUES:
            yield f"{name} is only ever {' or '.join(show(value) for value in domain.values)}"


def _asked_with(chart: Chart, seen: Nodes, agent: str, *, before: bool) -> int:
    kinds: tuple[PointKind, ...] = ("enter", "arrive", "work") if before else _AFTER
    # The points exist in every chart, but only agents whose turns set something come by them.
    found = [seen[chart.numbers[Point(kind, agent)]] for kind in kinds]
    return union(found) if before else next((bits for bits in found if bits), 0)


def _shadow(chart: Chart, rules: tuple[RoutingRule, ...], index: int, bits: int) -> str:
    for rule in rules:
        truth = chart.ground.truths.get(rule.index)
        if rule.index != index and truth and not bits & ~truth.yes:
            return f"the rule to {rule.target} always applies first"
    return "one of the rules before it always applies first"


Status: TypeAlias = Literal["can end", "endless", "may be endless", "unfinished", "not explored"]

#: Agents times combinations of values; more are not explored.
STATE_LIMIT: Final = 2_000_000
#: How long it takes depends on the way they hang together, which is limited by itself. With twenty
#: agents and twelve booleans it takes 6,000 to 90,000 steps; this many take two seconds.
MOST_STEPS: Final = 1_000_000

#: So many ways of going on for ever are described; more would not help anybody.
MOST_ENDLESS: Final = 10


@dataclass(frozen=True, slots=True)
class EndlessRun:
    """Agents that hand off among themselves for ever.

    `values` are what the variables that decide about it have for good, `witness` is the shortest
    way there, and `cycle` how it goes on. `why` says what on the way is not certain.
    """

    agents: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    witness: str
    cycle: str
    why: str


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
    ground = survey(subject, limit)
    if isinstance(ground, str):
        return Exploration("unfinished", ground)
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


def _judge(chart: Chart, found: Exploration, seen: Nodes) -> Exploration:
    """Say whether each of the nodes that have been `seen` leads on to an end."""
    lost = without(seen, leading(chart, chart.at("wait", "end"), seen))
    if not any(lost):
        return replace(found, status="can end", reason="")
    certain = reached(chart, chart.begin, by="certainty")
    endless = tuple(islice(_endless_runs(chart, seen, lost, certain), MOST_ENDLESS))
    status: Status = "endless" if any(both(lost, certain)) else "may be endless"
    return replace(found, status=status, reason=endless[0].why, endless=endless)


def _endless_runs(chart: Chart, seen: Nodes, lost: Nodes, certain: Nodes) -> Iterator[EndlessRun]:
    """Yield an endless run for every set of agents that share none with one before.

    `seen` are all nodes that can be reached, `certain` those of them that certainly can, and `lost`
    those from which no end can be reached.
    """
    surely = both(lost, certain)
    remaining = surely if any(surely) else lost
    while any(remaining):
        core = both(_core(chart, first_of(remaining)), chart.at("enter"))
        agents = tuple(it.agent for it, bits in zip(chart.points, core, strict=True) if bits)
        theirs = [
            bits if point.agent in agents else 0
            for point, bits in zip(chart.points, lost, strict=True)
        ]
        by = "certainty" if any(both(core, certain)) else "limits"
        into = shortest(chart, chart.begin, core, seen, by)
        yield EndlessRun(
            agents=agents,
            values=tuple(_lasting(chart, agents, union(theirs))),
            witness=in_words(chart, into),
            cycle=in_words(chart, _around(chart, into.last, lost)),
            why=next((edge.why for edge, _ in into.steps if edge.why), ""),
        )
        remaining = without(remaining, leading(chart, theirs, lost))


def _core(chart: Chart, node: Node) -> Nodes:
    """Return nodes that a node leads to and that lead to each other and no further."""
    while True:
        ahead = reached(chart, _only(chart, node))
        beyond = without(ahead, leading(chart, _only(chart, node), ahead))
        if not any(beyond):
            return ahead
        node = first_of(beyond)


def _only(chart: Chart, node: Node) -> Nodes:
    return [1 << node.values if n == node.point else 0 for n in range(len(chart.points))]


def _around(chart: Chart, node: Node, lost: Nodes) -> Path:
    after = [0] * len(chart.points)
    for edge in usable(chart.out[node.point], "rules"):
        after[edge.target] |= edge.forward(1 << node.values)
    back = shortest(chart, after, _only(chart, node), lost)
    edge = next(
        edge
        for edge in usable(chart.out[node.point], "rules")
        if edge.target == back.start.point
        and edge.forward(1 << node.values) & 1 << back.start.values
    )
    return Path(node, ((edge, back.start), *back.steps))


def _never(chart: Chart, seen: Nodes, kind: PointKind) -> Iterator[str]:
    groups = chart.routing.groups
    started = [it for it in groups.values() if seen[chart.numbers[Point("speak", it.name)]]]
    heard = {member for it in started for member in it.members}
    # A group that nobody has declared shows in its members.
    heard |= {it.name for it in groups.values() if it.name not in groups}
    for point, bits in zip(chart.points, seen, strict=True):
        if point.kind == kind and not bits and point.agent not in heard:
            yield point.agent


def _lasting(chart: Chart, agents: Sequence[str], bits: int) -> Iterator[tuple[str, str]]:
    """Yield the variables that the agents' rules test, if they have one value for good."""
    tested = {
        name
        for rules in (chart.routing.pre, chart.routing.post)
        for agent in agents
        for rule in rules.get(agent, ())
        for name in chart.ground.behind.get(rule.index, ())
    }
    for name, axis in chart.ground.space.axes.items():
        if name in tested and len(axis.values) > 1:
            for value, mask in axis.blocks:
                if not bits & ~mask:
                    yield name, show(value)
