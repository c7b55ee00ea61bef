"""What was found, in words: ways through a conversation, and rules that no run can ever take."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from weft.check.explore.chart import Chart, Nodes, Point, PointKind
from weft.check.explore.reach import Node, Path
from weft.check.explore.space import union
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
            return f"the rule to {rule.target} always comes first"
    return "one of the rules before it always comes first"
