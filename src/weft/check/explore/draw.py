"""Drawing the chart of a workflow: turns, handoffs, and what may happen in between.

A turn goes: rules before the reply, the turn itself, in which anything may happen any number of
times, the reply with the call it makes, rules after the reply, what the handoff sets.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Final

from weft import ids
from weft.check.explore.chart import END, START, Chart, Edge, Point, PointKind, Step
from weft.check.explore.conditions import Case, cases
from weft.check.explore.ground import Ground
from weft.check.explore.happenings import Happening, Moment, Setting
from weft.check.explore.space import Change, change, union
from weft.check.subject import Subject
from weft.engine.defaults import startup_mode
from weft.engine.routing import (
    GroupRules,
    Route,
    Routing,
    link_routing,
    routes_after,
    routes_before,
)
from weft.spec.orchestrator import Orchestrator

_SIDE_BY_SIDE: Final = "members of a group work side by side, in any order"


def draw(subject: Subject, ground: Ground, steps: int) -> Chart:
    """Draw the chart of a workflow, to be explored in so many steps of work."""
    routing = link_routing(subject.spec)
    sheet = _Sheet(ground, list(subject.agents), routing.groups)
    _start(sheet, subject.spec.orchestrator)
    for agent in sheet.agents:
        _turn(sheet, routing, agent)
    for group in {it.name: it for it in routing.groups.values()}.values():
        _group(sheet, group)
    _draw_limits(sheet, routing, subject.spec.orchestrator)
    initial = {name: domain.initial for name, domain in ground.domains.items()}
    return Chart(
        ground=ground,
        routing=routing,
        points=sheet.points,
        edges=tuple(sheet.edges),
        initial=ground.space.within(initial),
        steps=steps,
    )


@dataclass
class _Sheet:
    """A chart while it is being drawn: its points, the edges so far, and how to draw more."""

    ground: Ground
    agents: Sequence[str]
    #: The group that a handoff to this name starts.
    groups: Mapping[str, GroupRules]
    edges: list[Edge] = field(default_factory=list[Edge])

    def __post_init__(self) -> None:
        kinds = ("enter", "speak", "said", "decide", "wait")
        several = dict.fromkeys(it.name for it in self.groups.values())
        turns = (Point(kind, name) for name in (*self.agents, *several) for kind in kinds)
        self.points = (START, END, *turns)
        self._numbers = {point: number for number, point in enumerate(self.points)}
        # What sets nothing that is followed is left out, unless it comes in place of other words.
        self._happenings: dict[tuple[Moment, str | None], list[tuple[int, Happening]]] = {}
        for place, it in enumerate(self.ground.happenings):
            sets = any(setting.variable in self.ground.domains for setting in it.settings)
            if sets or it.when.moment in ("say", "hear"):
                when = (it.when.moment, it.when.agent)
                self._happenings.setdefault(when, []).append((place, it))
        self._changes: dict[tuple[str, tuple[tuple[int, ...], ...]], Change] = {}

    def number(self, kind: PointKind, agent: str = "") -> int:
        return self._numbers[Point(kind, agent)]

    def enter(self, name: str) -> int:
        """Return where a turn of an agent or a group begins."""
        group = self.groups.get(name)
        return self.number("enter", group.name if group else name)

    def at(self, moment: Moment, agent: str = "", target: str | None = None) -> list[Happening]:
        """Return the happenings of a moment, in the order in which they were found."""
        whose = (None, agent)
        found = [it for one in whose for it in self._happenings.get((moment, one), ())]
        found.sort(key=itemgetter(0))
        return [it for _, it in found if it.when.target in (None, target)]

    def together(self, happenings: Iterable[Happening]) -> Step:
        found = list(happenings)
        settings: dict[str, list[Setting]] = {}
        for setting in (setting for happening in found for setting in happening.settings):
            if setting.variable in self.ground.domains:
                settings.setdefault(setting.variable, []).append(setting)
        changes = tuple(self._change(name, them) for name, them in settings.items())
        return Step(changes=changes, why=next((it.why for it in found if it.why), ""))

    def _change(self, name: str, settings: Sequence[Setting]) -> Change:
        """Turn settings of one variable into a change; equal ones are worked out once."""
        outcomes = self.ground.domains[name].outcomes(settings)
        if (name, outcomes) not in self._changes:
            self._changes[name, outcomes] = change(self.ground.space.axes[name], outcomes)
        return self._changes[name, outcomes]

    def steps(self, happenings: Iterable[Happening]) -> list[Step]:
        return [self.together([happening]) for happening in happenings]

    def draw(self, source: int, target: int, steps: Iterable[Step]) -> None:
        for it in dict.fromkeys(steps):
            self.edges.append(Edge(source, target, it.guard, it.changes, it.why))


def _start(sheet: _Sheet, orchestrator: Orchestrator) -> None:
    """Draw the start: the user or the initial agent speaks first."""
    kind = "wait" if startup_mode(orchestrator) == "UserDriven" else "enter"
    start, initial = sheet.number("start"), orchestrator.initial_agent
    first = sheet.enter(initial) if kind == "enter" else sheet.number(kind, initial)
    # What may happen at any time may have happened before anything else, so nothing is certain.
    begun = sheet.together(sheet.at("any"))
    sheet.draw(start, first, [begun])
    if kind == "enter":
        why = "a run may be started with words of the user"
        words = _words(sheet, sheet.at("hear"))
        sheet.draw(start, first, (begun.then(replace(word, why=why)) for word in words))


def _turn(sheet: _Sheet, routing: Routing, agent: str) -> None:
    """Draw a turn of an agent, with all that may follow it."""
    enter, speak = sheet.number("enter", agent), sheet.number("speak", agent)
    _waiting(sheet, agent)
    for case in _cases(sheet, partial(routes_before, routing, agent)):
        open_to, why = _decide(sheet, enter, agent, case)
        # A rule that certainly applies is the last to be asked, and leaves no room for a reply.
        if True not in case.held.values():
            _split(sheet, Edge(enter, speak, case.bits), open_to, why)
    sheet.draw(speak, speak, (*_at_work(sheet, agent), *sheet.steps(sheet.at("any"))))
    here = _close(sheet, agent, speak)
    for case in _cases(sheet, partial(routes_after, routing, agent)):
        _decide(sheet, here, agent, case)


def _waiting(sheet: _Sheet, name: str) -> None:
    """Draw what may happen while the user is waited for, who is answered by an agent or a group."""
    wait = sheet.number("wait", name)
    sheet.draw(wait, wait, sheet.steps(sheet.at("any")))
    sheet.draw(wait, sheet.enter(name), _words(sheet, sheet.at("hear")))


def _group(sheet: _Sheet, group: GroupRules) -> None:
    """Draw a group as one turn, in which its members do what they may in any order."""
    _waiting(sheet, group.name)
    enter, speak = sheet.number("enter", group.name), sheet.number("speak", group.name)
    sheet.draw(enter, speak, [Step()])
    sheet.draw(speak, speak, sheet.steps(sheet.at("any")))
    may: list[Step] = []
    for member in group.members:
        alone = (*sheet.at("say", member), *sheet.at("auto", member), *sheet.at("close", member))
        may += [*_at_work(sheet, member), *sheet.steps(alone)]
    may = [it for it in may if it != Step()]
    sheet.draw(speak, speak, (replace(it, why=it.why or _SIDE_BY_SIDE) for it in may))
    handed = sheet.together(sheet.at("pass", group.name, group.next))
    target, why = _target(sheet, group.name, group.next), _SIDE_BY_SIDE if may else ""
    sheet.edges.append(Edge(speak, target, changes=handed.changes, why=handed.why or why))


def _words(sheet: _Sheet, happenings: Sequence[Happening]) -> list[Step]:
    """Return what somebody may say: one of the texts, or another."""
    return sheet.steps(happenings) or [Step()]


def _at_work(sheet: _Sheet, agent: str) -> Iterator[Step]:
    """Yield what may happen during a turn: calls of tools, which may break off, and all else."""
    found = sheet.at("turn", agent)
    for call in dict.fromkeys(happening.call for happening in found):
        parts = [happening for happening in found if happening.call == call]
        yield from _call(sheet, parts)
        if len(parts) > 1:
            alone = sheet.steps(parts)
            yield from (replace(it, why=it.why or "a call may break off") for it in alone)


def _call(sheet: _Sheet, happenings: Sequence[Happening]) -> list[Step]:
    """Return what the call of a tool may do, stage after stage."""
    steps = [Step()]
    for stage in sorted({happening.stage for happening in happenings}):
        parts = sheet.steps(happening for happening in happenings if happening.stage == stage)
        steps = list(dict.fromkeys(step.then(one) for step in steps for one in parts))
    return steps


def _close(sheet: _Sheet, agent: str, here: int) -> int:
    """Draw the end of a turn, as far as it changes anything; return where that leads to."""
    said, decide = sheet.number("said", agent), sheet.number("decide", agent)
    words, called = _words(sheet, sheet.at("say", agent)), sheet.at("auto", agent)
    # The words of a reply and the call that is made with it come from one text.
    replies = [word.then(call) for word, call in product(words, _call(sheet, called))]
    if called:
        again = (replace(it, why="a reply may be sent back") for it in replies)
        sheet.draw(here, here, again)
    if replies != [Step()]:
        sheet.draw(here, said, replies)
        here = said
    closing = sheet.at("close", agent)
    if not closing:
        return here
    sheet.draw(here, decide, [sheet.together(closing)])
    return decide


def _cases(sheet: _Sheet, walk: partial[Iterator[Route]]) -> Iterator[Case]:
    return cases(walk, sheet.ground.truths, sheet.ground.space.full)


def _decide(sheet: _Sheet, at: int, agent: str, case: Case) -> tuple[int, str]:
    """Draw where a decision may lead; return for which combinations the unknown decides, and why.

    The routes come in the order in which the rules are asked. A model that judges a condition may
    answer either way, so a route is certain where no rule up to it depends on the unknown.
    """
    ground, open_to, why = sheet.ground, 0, ""
    for route in case.routes:
        rule, bits = route.rule, case.bits
        if rule is not None and rule in ground.truths and case.held[rule] is None:
            bits &= ground.truths[rule].open
            open_to, why = open_to | bits, why or ground.whys[rule]
        handed = sheet.together(sheet.at("pass", agent, route.target))
        target = _target(sheet, agent, route.target)
        edge = Edge(at, target, bits, handed.changes, handed.why, rule=rule)
        _split(sheet, edge, open_to, why)
    return open_to, why


def _split(sheet: _Sheet, edge: Edge, open_to: int, why: str) -> None:
    for guard, doubt in ((edge.guard & ~open_to, ""), (edge.guard & open_to, why)):
        if guard:
            sheet.edges.append(replace(edge, guard=guard, why=edge.why or doubt))


def _target(sheet: _Sheet, agent: str, target: str) -> int:
    """Return where a handoff leads; what the user says goes to whoever handed over."""
    match target:
        case ids.TERMINATE:
            return sheet.number("end")
        case ids.USER:
            return sheet.number("wait", agent)
        case other:
            return sheet.enter(other)


def _draw_limits(sheet: _Sheet, routing: Routing, orchestrator: Orchestrator) -> None:
    """Draw the ways to the user for agents that hand off to themselves: replies in a row end."""
    if not orchestrator.human_in_the_loop or startup_mode(orchestrator) == "BackendOnly":
        return
    for agent in sheet.agents:
        after = (*routing.post.get(agent, ()), routing.otherwise[agent])
        if all(rule.target != agent for rule in after):
            continue
        enter, speak = sheet.number("enter", agent), sheet.number("speak", agent)
        about_to = (it for it in sheet.edges if (it.source, it.target) == (enter, speak))
        guard, wait = union(it.guard for it in about_to), sheet.number("wait", agent)
        handed = sheet.together(sheet.at("pass", agent, ids.USER))
        why = f"{agent} may have used up its replies in a row, and the user is asked"
        sheet.edges.append(Edge(enter, wait, guard, handed.changes, why, limit=True))
