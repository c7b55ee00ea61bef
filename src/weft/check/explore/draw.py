"""Drawing the chart of a workflow: turns, handoffs, and what may happen in between.

A turn goes: rules before the reply, what its beginning sets, the turn itself, in which anything may
happen any number of times, the reply with the call it makes, what its end sets, rules after the
reply, what the handoff sets. After calls of tools, also automatic ones, the rules before the reply
are asked again.
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

#: What happens in the turn of a member beside the calls of tools.
_OF_MEMBERS: Final[tuple[Moment, ...]] = ("begin", "aside", "say", "auto", "close")
_SIDE_BY_SIDE: Final = "members of a group work side by side, in any order"


_NOTHING: Final = Step()


def draw(subject: Subject, ground: Ground, steps: int, *, chosen: bool = True) -> Chart:
    """Draw the chart of a workflow, to be explored in so many steps of work.

    `chosen` tells whether models may choose who is next where they have tools for that.
    """
    routing = link_routing(subject.spec)
    automatic = frozenset(agent for agent, _ in automatic_calls(subject))
    sheet = _Sheet(ground, list(subject.agents), routing.groups, automatic)
    _start(sheet, subject.spec.orchestrator)
    for name, agent in subject.agents.items():
        _turn(sheet, routing, name, handoff_tools(subject.spec, agent) if chosen else {})
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
    #: The agents whose every reply calls a tool.
    automatic: frozenset[str]
    edges: list[Edge] = field(default_factory=list[Edge])

    def __post_init__(self) -> None:
        kinds = ("enter", "arrive", "speak", "work", "said", "decide", "wait")
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

    def sequence(self, happenings: Sequence[Happening]) -> Step:
        """Return what happens without fail, stage after stage."""
        step = Step()
        for stage in sorted({it.stage for it in happenings}):
            step = step.then(self.together(it for it in happenings if it.stage == stage))
        return step

    def draw(self, source: int, target: int, steps: Iterable[Step]) -> None:
        for it in dict.fromkeys(steps):
            self.edges.append(Edge(source, target, it.guard, it.changes, it.why))


def _start(sheet: _Sheet, orchestrator: Orchestrator) -> None:
    """Draw the start: the user or the initial agent speaks first."""
    kind = "wait" if startup_mode(orchestrator) == "UserDriven" else "enter"
    start, initial = sheet.number("start"), orchestrator.initial_agent
    first = sheet.enter(initial) if kind == "enter" else sheet.number(kind, initial)
    # What may happen at any time may have happened before anything else, so nothing is certain.
    begun = sheet.sequence(sheet.at("start")).then(sheet.together(sheet.at("any")))
    sheet.draw(start, first, [begun])
    if kind == "enter":
        why = "a run may be started with words of the user"
        words = _words(sheet, sheet.at("hear"))
        sheet.draw(start, first, (begun.then(replace(word, why=why)) for word in words))


def _turn(sheet: _Sheet, routing: Routing, agent: str, targets: Mapping[str, str]) -> None:
    """Draw a turn of an agent, with all that may follow it."""
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
    """Yield the routes in the middle of a turn: what a model judges was judged before it."""
    return routes_before(routing, agent, lambda rule: False if rule.judged else test(rule))


def _ask(sheet: _Sheet, walk: Walk, agent: str, onward: Edge, changes: tuple[Step, Step]) -> None:
    """Draw what rules before a reply decide: who is next, or that the agent goes on.

    `changes` are what is set on the way to somebody else, and on the way on.
    """
    leaving, going = changes
    for case in _cases(sheet, walk):
        open_to, why = _decide(sheet, onward.source, agent, case, leaving)
        # A rule that certainly applies is the last to be asked, and leaves no room for a reply.
        if True not in case.held.values():
            edge = replace(onward, guard=case.bits, changes=going.changes, why=going.why)
            _split(sheet, edge, open_to, why)


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
    # Where a group goes on without a member, what its failure sets counts all the same.
    moments: tuple[Moment, ...] = ("fail", *_OF_MEMBERS)
    moments = moments if group.on_failure == "continue" else _OF_MEMBERS
    for member in group.members:
        alone = [it for moment in moments for it in sheet.at(moment, member)]
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


def _close(sheet: _Sheet, agent: str, closing: Step, turn: Edge, asked: Walk | None) -> int:
    """Draw the end of a turn, as far as it changes anything; return where that leads to.

    `asked` are the rules that are asked after the automatic tool of the agent.
    """
    here, work = turn.source, turn.target
    said, decide = sheet.number("said", agent), sheet.number("decide", agent)
    words, called = _words(sheet, sheet.at("say", agent)), sheet.at("auto", agent)
    # The words of a reply and the call that is made with it come from one text.
    replies = [word.then(call) for word, call in product(words, _call(sheet, called))]
    if called:
        again = (replace(it, why="a reply may be sent back") for it in replies)
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
    """Draw where a decision may lead; return for which combinations the unknown decides, and why.

    The routes come in the order in which the rules are asked. A model that judges a condition may
    answer either way, so a route is certain where no rule up to it depends on the unknown.
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
        rules = (*routing.pre.get(agent, ()), *routing.post.get(agent, ()))
        if all(it.target != agent for it in (*rules, routing.otherwise[agent])):
            continue
        enter = sheet.number("enter", agent)
        turn = (sheet.number("arrive", agent), sheet.number("speak", agent))
        about_to = (it for it in sheet.edges if it.source == enter and it.target in turn)
        guard, wait = union(it.guard for it in about_to), sheet.number("wait", agent)
        handed = sheet.together(sheet.at("pass", agent, ids.USER))
        why = f"{agent} may have used up its replies in a row, and the user is asked"
        sheet.edges.append(Edge(enter, wait, guard, handed.changes, why, limit=True))
