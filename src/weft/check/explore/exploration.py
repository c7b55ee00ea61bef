"""The exploration of all runs: whether an end can be reached from every state."""

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

#: A longer path is shortened in the middle.
_MOST_WORDS: Final = 16


def in_words(chart: Chart, path: Path) -> str:
    """Format a path as `A -> (x = true) -> B`: the turns, and what is set between them."""
    words = [*_begin(chart, path), *_follow(chart, path)]
    if len(words) > _MOST_WORDS:
        half = _MOST_WORDS // 2
        words = [*words[:half], "...", *words[-half:]]
    return " -> ".join(words)


def show(value: Json) -> str:
    """Format a value; texts that are not empty have no quotes."""
    return value if isinstance(value, str) and value else json.dumps(value)


def _begin(chart: Chart, path: Path) -> Iterator[str]:
    """Yield the initial values that differ between runs, or the first agent of the path."""
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


#: The points where rules after a reply are evaluated, the last one first.
_AFTER: Final = ("decide", "said", "speak")
#: The most values of a variable that are listed.
_MOST_VALUES: Final = 6


@dataclass(frozen=True, slots=True)
class UnusedRule:
    """A handoff, by its index, that never happens; `always_false` refers to its condition.

    `facts` are the values of variables that explain it.
    """

    index: int
    why: str
    always_false: bool = False
    facts: tuple[str, ...] = ()


def unused_rules(subject: Subject, chart: Chart, seen: Nodes) -> Iterator[UnusedRule]:
    """Yield the handoffs that happen in none of the nodes in `seen`."""
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
    """Yield the possible values of a condition's variables, where these are few."""
    for name in chart.ground.behind[index]:
        domain = chart.ground.domains.get(name)
        if domain and len(domain.values) <= _MOST_VALUES:
            yield f"{name} is only ever {' or '.join(show(value) for value in domain.values)}"


def _asked_with(chart: Chart, seen: Nodes, agent: str, *, before: bool) -> int:
    kinds: tuple[PointKind, ...] = ("enter", "arrive", "work") if before else _AFTER
    # Every chart has these points, but only agents whose turns set something pass them.
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
#: The time depends on the structure of the chart, so the steps are limited as well. With twenty
#: agents and twelve booleans it takes 6,000 to 90,000 steps; this many take two seconds.
MOST_STEPS: Final = 1_000_000

#: The most endless runs that are reported; more would not help.
MOST_ENDLESS: Final = 10


@dataclass(frozen=True, slots=True)
class EndlessRun:
    """Agents that hand off to each other forever.

    `values` are the permanent values of the variables that decide it, `witness` is the shortest
    path there, and `cycle` the path that repeats. `why` says what on the path is not certain.
    """

    agents: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    witness: str
    cycle: str
    why: str


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result of exploring all runs of a workflow.

    An `endless` run depends only on declared triggers and known values; if it also depends on code
    or on unknown values, the status is "may be endless". `unreachable_agents`
    never speak: a run never reaches the `unvisited_agents`, and the others always hand off before
    they can reply.
    """

    status: Status
    reason: str = ""
    states: int = 0
    endless: tuple[EndlessRun, ...] = ()
    unused_rules: tuple[UnusedRule, ...] = ()
    unreachable_agents: tuple[str, ...] = ()
    unvisited_agents: tuple[str, ...] = ()


def explore(subject: Subject, *, limit: int = STATE_LIMIT, steps: int = MOST_STEPS) -> Exploration:
    """Explore every state that a run can reach, and whether each leads to an end.

    The workflow must be valid: all names resolve and all conditions parse.
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
    """Return the exploration with its verdict: whether each node in `seen` leads to an end."""
    lost = without(seen, leading(chart, chart.at("wait", "end"), seen))
    if not any(lost):
        return replace(found, status="can end", reason="")
    certain = reached(chart, chart.begin, by="certainty")
    endless = tuple(islice(_endless_runs(chart, seen, lost, certain), MOST_ENDLESS))
    status: Status = "endless" if any(both(lost, certain)) else "may be endless"
    return replace(found, status=status, reason=endless[0].why, endless=endless)


def _endless_runs(chart: Chart, seen: Nodes, lost: Nodes, certain: Nodes) -> Iterator[EndlessRun]:
    """Yield endless runs, no two of which have an agent in common.

    `seen` are all nodes that can be reached, `certain` those of them that certainly can, and `lost`
    those from which no end can be reached.
    """
    surely = both(lost, certain)
    remaining = surely if any(surely) else lost
    while any(remaining):
        core = both(_core(chart, first_of(remaining)), chart.at("enter"))
        agents = tuple(point.agent for point, bits in zip(chart.points, core, strict=True) if bits)
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
    """Return a set of nodes that the node leads to, that lead only to each other."""
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
    started = [
        group for group in groups.values() if seen[chart.numbers[Point("speak", group.name)]]
    ]
    heard = {member for group in started for member in group.members}
    # A group that is not declared is reported by its members.
    heard |= {group.name for group in groups.values() if group.name not in groups}
    for point, bits in zip(chart.points, seen, strict=True):
        if point.kind == kind and not bits and point.agent not in heard:
            yield point.agent


def _lasting(chart: Chart, agents: Sequence[str], bits: int) -> Iterator[tuple[str, str]]:
    """Yield the variables tested by the agents' rules that have only one value."""
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
