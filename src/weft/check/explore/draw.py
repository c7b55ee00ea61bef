"""Drawing the chart of a workflow: turns, handoffs, and what may happen in between.

The parts of a turn: rules before the reply, settings at its beginning, the turn itself, in which
anything may happen any number of times, the reply with its automatic call, settings at its end,
rules after the reply, settings at the handoff. After tool calls, also automatic ones, the rules
before the reply are evaluated again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Final

from weft import ids
from weft.check.explore.chart import END, START, Chart, Edge, Point, PointKind, Step
from weft.check.explore.ground import Case, Change, Ground, Walk, cases, change, union
from weft.check.explore.happenings import Happening, Moment, Setting, automatic_calls
from weft.check.subject import Subject
from weft.engine.compile import handoff_tools
from weft.engine.conversation.routing import (
    GroupRules,
    Route,
    Routing,
    Test,
    link_routing,
    routes_after,
    routes_before,
    startup_mode,
)
from weft.spec.orchestrator import Orchestrator

#: What happens in the turn of a member besides tool calls.
_OF_MEMBERS: Final[tuple[Moment, ...]] = ("begin", "aside", "say", "auto", "close")
_SIDE_BY_SIDE: Final = "members of a group work side by side, in any order"


_NOTHING: Final = Step()


def draw(subject: Subject, ground: Ground, steps: int, *, chosen: bool = True) -> Chart:
    """Draw the chart of a workflow; `steps` limits the work of exploring it.

    `chosen`: models may choose the next agent where they have handoff tools.
    """
    routing = link_routing(subject.spec)
    automatic = frozenset(agent for agent, _ in automatic_calls(subject))
    sheet = _Sheet(ground, list(subject.agents), routing.groups, automatic)
    _start(sheet, subject.spec.orchestrator)
    for name, agent in subject.agents.items():
        _turn(sheet, routing, name, handoff_tools(subject.spec, agent) if chosen else {})
    for group in {group.name: group for group in routing.groups.values()}.values():
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
    """A chart while it is drawn: its points, its edges so far, and methods to add more."""

    ground: Ground
    agents: Sequence[str]
    #: The group that a handoff to this name starts.
    groups: Mapping[str, GroupRules]
    #: The agents whose every reply calls a tool.
    automatic: frozenset[str]
    edges: list[Edge] = field(default_factory=list[Edge])

    def __post_init__(self) -> None:
        kinds = ("enter", "arrive", "speak", "work", "said", "decide", "wait")
        several = dict.fromkeys(group.name for group in self.groups.values())
        turns = (Point(kind, name) for name in (*self.agents, *several) for kind in kinds)
        self.points = (START, END, *turns)
        self._numbers = {point: number for number, point in enumerate(self.points)}
        # A happening that sets no followed variable is dropped, unless it is a message.
        self._happenings: dict[tuple[Moment, str | None], list[tuple[int, Happening]]] = {}
        for place, happening in enumerate(self.ground.happenings):
            sets = any(setting.variable in self.ground.domains for setting in happening.settings)
            if sets or happening.when.moment in ("say", "hear"):
                when = (happening.when.moment, happening.when.agent)
                self._happenings.setdefault(when, []).append((place, happening))
        self._changes: dict[tuple[str, tuple[tuple[int, ...], ...]], Change] = {}

    def number(self, kind: PointKind, agent: str = "") -> int:
        return self._numbers[Point(kind, agent)]

    def enter(self, name: str) -> int:
        """Return the first point of a turn of an agent or group."""
        group = self.groups.get(name)
        return self.number("enter", group.name if group else name)

    def at(self, moment: Moment, agent: str = "", target: str | None = None) -> list[Happening]:
        """Return the happenings of a moment, in the order in which they were found."""
        whose = (None, agent)
        found = [
            happening for one in whose for happening in self._happenings.get((moment, one), ())
        ]
        found.sort(key=itemgetter(0))
        return [happening for _, happening in found if happening.when.target in (None, target)]

    def together(self, happenings: Iterable[Happening]) -> Step:
        found = list(happenings)
        settings: dict[str, list[Setting]] = {}
        for setting in (setting for happening in found for setting in happening.settings):
            if setting.variable in self.ground.domains:
                settings.setdefault(setting.variable, []).append(setting)
        changes = tuple(self._change(name, them) for name, them in settings.items())
        return Step(
            changes=changes, why=next((happening.why for happening in found if happening.why), "")
        )

    def _change(self, name: str, settings: Sequence[Setting]) -> Change:
        """Convert settings of one variable to a change; equal ones are computed once."""
        outcomes = self.ground.domains[name].outcomes(settings)
        if (name, outcomes) not in self._changes:
            self._changes[name, outcomes] = change(self.ground.space.axes[name], outcomes)
        return self._changes[name, outcomes]

    def steps(self, happenings: Iterable[Happening]) -> list[Step]:
        return [self.together([happening]) for happening in happenings]

    def sequence(self, happenings: Sequence[Happening]) -> Step:
        """Return the steps that always happen, in the order of their stages."""
        step = Step()
        for stage in sorted({happening.stage for happening in happenings}):
            step = step.then(
                self.together(happening for happening in happenings if happening.stage == stage)
            )
        return step

    def draw(self, source: int, target: int, steps: Iterable[Step]) -> None:
        for step in dict.fromkeys(steps):
            self.edges.append(Edge(source, target, step.guard, step.changes, step.why))


def _start(sheet: _Sheet, orchestrator: Orchestrator) -> None:
    """Draw the start: the user or the initial agent speaks first."""
    kind = "wait" if startup_mode(orchestrator) == "UserDriven" else "enter"
    start, initial = sheet.number("start"), orchestrator.initial_agent
    first = sheet.enter(initial) if kind == "enter" else sheet.number(kind, initial)
    # What may happen at any time may have happened at the start, so nothing is certain.
    begun = sheet.sequence(sheet.at("start")).then(sheet.together(sheet.at("any")))
    sheet.draw(start, first, [begun])
    if kind == "enter":
        why = "a run may be started with words of the user"
        words = _words(sheet, sheet.at("hear"))
        sheet.draw(start, first, (begun.then(replace(word, why=why)) for word in words))


def _turn(sheet: _Sheet, routing: Routing, agent: str, targets: Mapping[str, str]) -> None:
    """Draw a turn of an agent, and the handoffs after it."""
    enter, speak = sheet.number("enter", agent), sheet.number("speak", agent)
    again = agent in routing.pre
    arrive = sheet.number("arrive", agent) if again else speak
    work = sheet.number("work", agent) if again else speak
    closing = sheet.sequence(sheet.at("close", agent))
    _waiting(sheet, agent)
    begin = sheet.sequence(sheet.at("begin", agent))
    _ask(sheet, partial(routes_before, routing, agent), agent, Edge(enter, arrive), (Step(), begin))
    calls, at_any_time = list(_at_work(sheet, agent)), sheet.steps(sheet.at("any"))
    beside = [*sheet.steps(sheet.at("aside", agent)), *at_any_time]
    sheet.draw(speak, speak, beside)
    sheet.draw(speak, work, calls)
    if again:
        known = partial(_routes_known, routing, agent)
        for here, meanwhile in ((arrive, at_any_time), (work, [*calls, *at_any_time])):
            sheet.draw(here, here, meanwhile)
            _ask(sheet, known, agent, Edge(here, speak), (closing, Step()))
        if beside:
            sheet.draw(speak, work, [Step(why=f"{agent} may call a tool that there is not")])
    for target in targets.values():
        handed = closing.then(sheet.together(sheet.at("pass", agent, target)))
        there = _target(sheet, agent, target)
        sheet.draw(speak, there, [handed])
        if again:
            sheet.draw(work, there, [handed])
    asked = partial(_routes_known, routing, agent) if again and agent in sheet.automatic else None
    here = _close(sheet, agent, closing, Edge(speak, work), asked)
    for case in _cases(sheet, partial(routes_after, routing, agent)):
        _decide(sheet, here, agent, case)


def _routes_known(routing: Routing, agent: str, test: Test) -> Iterator[Route]:
    """Yield the routes during a turn; conditions judged by a model keep their earlier answer."""
    return routes_before(routing, agent, lambda rule: False if rule.judged else test(rule))


def _ask(sheet: _Sheet, walk: Walk, agent: str, onward: Edge, changes: tuple[Step, Step]) -> None:
    """Draw the decisions of rules before a reply: the next agent, or that the agent continues.

    `changes` are the changes before a handoff, and those before the agent continues.
    """
    leaving, going = changes
    for case in _cases(sheet, walk):
        open_to, why = _decide(sheet, onward.source, agent, case, leaving)
        # No rule is evaluated after one that certainly applies, and the agent does not reply.
        if True not in case.held.values():
            edge = replace(onward, guard=case.bits, changes=going.changes, why=going.why)
            _split(sheet, edge, open_to, why)


def _waiting(sheet: _Sheet, name: str) -> None:
    """Draw what may happen while the run waits for the user, whom an agent or group answers."""
    wait = sheet.number("wait", name)
    sheet.draw(wait, wait, sheet.steps(sheet.at("any")))
    sheet.draw(wait, sheet.enter(name), _words(sheet, sheet.at("hear")))


def _group(sheet: _Sheet, group: GroupRules) -> None:
    """Draw a group as one turn, in which its members work in any order."""
    _waiting(sheet, group.name)
    enter, speak = sheet.number("enter", group.name), sheet.number("speak", group.name)
    sheet.draw(enter, speak, [Step()])
    sheet.draw(speak, speak, sheet.steps(sheet.at("any")))
    may: list[Step] = []
    # A failed member's triggers count even if the group continues without it.
    moments: tuple[Moment, ...] = ("fail", *_OF_MEMBERS)
    moments = moments if group.on_failure == "continue" else _OF_MEMBERS
    for member in group.members:
        alone = [step for moment in moments for step in sheet.at(moment, member)]
        may += [*_at_work(sheet, member), *sheet.steps(alone)]
    may = [step for step in may if step != Step()]
    sheet.draw(speak, speak, (replace(step, why=step.why or _SIDE_BY_SIDE) for step in may))
    handed = sheet.together(sheet.at("pass", group.name, group.next))
    target, why = _target(sheet, group.name, group.next), _SIDE_BY_SIDE if may else ""
    sheet.edges.append(Edge(speak, target, changes=handed.changes, why=handed.why or why))


def _words(sheet: _Sheet, happenings: Sequence[Happening]) -> list[Step]:
    """Return the steps of a message: it matches one of the texts, or none."""
    return sheet.steps(happenings) or [Step()]


def _at_work(sheet: _Sheet, agent: str) -> Iterator[Step]:
    """Yield the steps that may happen during a turn: tool calls, which may fail, and others."""
    found = sheet.at("turn", agent)
    for call in dict.fromkeys(happening.call for happening in found):
        parts = [happening for happening in found if happening.call == call]
        yield from _call(sheet, parts)
        if len(parts) > 1:
            alone = sheet.steps(parts)
            yield from (replace(step, why=step.why or "a call may break off") for step in alone)


def _call(sheet: _Sheet, happenings: Sequence[Happening]) -> list[Step]:
    """Return the steps of a tool call, in the order of their stages."""
    steps = [Step()]
    for stage in sorted({happening.stage for happening in happenings}):
        parts = sheet.steps(happening for happening in happenings if happening.stage == stage)
        steps = list(dict.fromkeys(step.then(one) for step in steps for one in parts))
    return steps


def _close(sheet: _Sheet, agent: str, closing: Step, turn: Edge, asked: Walk | None) -> int:
    """Draw the end of a turn, if it changes anything; return the point it leads to.

    `asked` are the rules that are evaluated after the agent's automatic tool.
    """
    here, work = turn.source, turn.target
    said, decide = sheet.number("said", agent), sheet.number("decide", agent)
    words, called = _words(sheet, sheet.at("say", agent)), sheet.at("auto", agent)
    # The reply and the automatic call come from the same text.
    replies = [word.then(call) for word, call in product(words, _call(sheet, called))]
    if called:
        again = (replace(step, why="a reply may be sent back") for step in replies)
        sheet.draw(here, work, again)
    if replies != [Step()] or asked is not None:
        sheet.draw(here, said, replies)
        here = said
    if asked is not None:
        _ask(sheet, asked, agent, Edge(here, decide), (closing, closing))
        return decide
    if closing == Step():
        return here
    sheet.draw(here, decide, [closing])
    return decide


def _cases(sheet: _Sheet, walk: Walk) -> Iterator[Case]:
    return cases(walk, sheet.ground.truths, sheet.ground.space.full)


def _decide(
    sheet: _Sheet, at: int, agent: str, case: Case, leaving: Step = _NOTHING
) -> tuple[int, str]:
    """Draw the routes of a decision; return the combinations that are uncertain, and why.

    The routes come in the order in which the rules are evaluated. A model that judges a condition
    may answer either way, so a route is certain where no rule up to it depends on the unknown.
    `leaving` is what is set before the handoff.
    """
    ground, open_to, why = sheet.ground, 0, ""
    for route in case.routes:
        rule, bits = route.rule, case.bits
        if rule is not None and rule in ground.truths and case.held[rule] is None:
            bits &= ground.truths[rule].open
            open_to, why = open_to | bits, why or ground.whys[rule]
        handed = leaving.then(sheet.together(sheet.at("pass", agent, route.target)))
        target = _target(sheet, agent, route.target)
        edge = Edge(at, target, bits, handed.changes, handed.why, rule=rule)
        _split(sheet, edge, open_to, why)
    return open_to, why


def _split(sheet: _Sheet, edge: Edge, open_to: int, why: str) -> None:
    for guard, doubt in ((edge.guard & ~open_to, ""), (edge.guard & open_to, why)):
        if guard:
            sheet.edges.append(replace(edge, guard=guard, why=edge.why or doubt))


def _target(sheet: _Sheet, agent: str, target: str) -> int:
    """Return the point a handoff leads to; the user's next message goes to the source agent."""
    match target:
        case ids.TERMINATE:
            return sheet.number("end")
        case ids.USER:
            return sheet.number("wait", agent)
        case other:
            return sheet.enter(other)


def _draw_limits(sheet: _Sheet, routing: Routing, orchestrator: Orchestrator) -> None:
    """Draw the edges to the user for agents that reach their limit of replies in a row."""
    if not orchestrator.human_in_the_loop or startup_mode(orchestrator) == "BackendOnly":
        return
    for agent in sheet.agents:
        rules = (*routing.pre.get(agent, ()), *routing.post.get(agent, ()))
        if all(rule.target != agent for rule in (*rules, routing.otherwise[agent])):
            continue
        enter = sheet.number("enter", agent)
        turn = (sheet.number("arrive", agent), sheet.number("speak", agent))
        about_to = (edge for edge in sheet.edges if edge.source == enter and edge.target in turn)
        guard, wait = union(edge.guard for edge in about_to), sheet.number("wait", agent)
        handed = sheet.together(sheet.at("pass", agent, ids.USER))
        why = f"{agent} may have used up its replies in a row, and the user is asked"
        sheet.edges.append(Edge(enter, wait, guard, handed.changes, why, limit=True))
