"""Drawing the chart of a workflow: turns, handoffs, and what may happen in between.

A turn goes: rules before the reply, what opens the turn, the turn itself, in which any event may
happen any number of times, what closes it, rules after the reply, what the handoff sets.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from weft.check.proof.cases import Case, cases
from weft.check.proof.chart import ALWAYS, END, START, Chart, Edge, Point, Step, Use
from weft.check.proof.decisions import Way, edges_of
from weft.check.proof.events import Event, Moment, Setting
from weft.check.proof.ground import Ground
from weft.check.proof.space import Change, change, forward
from weft.check.proof.trigger_events import turns_of
from weft.check.subject import Subject
from weft.engine.defaults import startup_mode
from weft.engine.routing import Route, Routing, link_routing, routes_after, routes_before
from weft.ids import TERMINATE, USER
from weft.spec.orchestrator import Orchestrator


def draw(subject: Subject, ground: Ground) -> Chart:
    """Draw the chart of a workflow."""
    drawing = _Drawing(ground, link_routing(subject.spec), list(subject.agents))
    drawing.start(subject.spec.orchestrator)
    for agent in drawing.agents:
        drawing.turn(agent)
    return drawing.chart()


def settings_of(events: Iterable[Event]) -> Iterator[Setting]:
    """Yield all that events set."""
    for event in events:
        yield from event.settings


@dataclass
class _Drawing:
    """A chart while it is being drawn."""

    ground: Ground
    routing: Routing
    agents: Sequence[str]
    edges: list[Edge] = field(default_factory=list[Edge])
    uses: list[Use] = field(default_factory=list[Use])
    groups: int = 0

    def __post_init__(self) -> None:
        kinds = ("enter", "speak", "said", "decide", "wait")
        turns = (Point(kind, agent) for agent in self.agents for kind in kinds)
        self.points = (START, END, *turns)
        self.numbers = {point: number for number, point in enumerate(self.points)}
        # Events that set nothing that is followed are left out.
        followed = self.ground.domains
        self.events = [
            event
            for event in self.ground.events
            if any(setting.variable in followed for setting in event.settings)
            or (event.when.moment == "auto" and not event.settings)
        ]

    def start(self, orchestrator: Orchestrator) -> None:
        """Draw the start: the user or the initial agent speaks first."""
        kind = "wait" if startup_mode(orchestrator) == "UserDriven" else "enter"
        first = self.numbers[Point(kind, orchestrator.initial_agent)]
        self.happen(self.numbers[START], "prepare")
        # What triggers set when a run begins already holds at the start.
        called = [event for event in self.at("begin") if event.doubt]
        self.take_place(self.numbers[START], first, called)

    def turn(self, agent: str) -> None:
        """Draw a turn of an agent, with all that may follow it."""
        enter, speak, wait = (
            self.numbers[Point(kind, agent)] for kind in ("enter", "speak", "wait")
        )
        self.happen(wait, "wait")
        self.speech(wait, enter, self.at("hear"))
        opening = self.changes(settings_of(self.at("open", agent)))
        for case, ways in self.cases(agent, before=True):
            # A rule that certainly applies is the last to be asked, and leaves no room for a reply.
            if True not in case.answers.values():
                ways.append(Way(speak, opening, case.bits))
            self.decide(enter, ways)
        self.happen(speak, "turn", agent)
        here = self.close(agent, speak)
        for _, ways in self.cases(agent, before=False):
            self.decide(here, ways)

    def close(self, agent: str, here: int) -> int:
        """Draw the end of a turn, as far as it changes anything; return where that leads to."""
        said, decide = (self.numbers[Point(kind, agent)] for kind in ("said", "decide"))
        saying, closing = self.at("say", agent), self.at("close", agent)
        if saying:
            self.speech(here, said, saying)
            here = said
        calls, counted = self.calls(self.at("auto", agent)), self.counted(agent)
        if not closing and calls == [Step()] and counted == [Step()]:
            return here
        for call in calls:
            for count in counted:
                self.take_place(here, decide, closing, call.then(count))
        return decide

    def speech(self, source: int, target: int, events: Sequence[Event]) -> None:
        """Draw the words after which a run moves on: one of the texts, or another."""
        self.edges.append(Edge(source, target))
        for event in events:
            step = self.step(event)
            self.edges.append(Edge(source, target, step.guard, step.changes, step.doubts))

    def calls(self, events: Sequence[Event]) -> list[Step]:
        """Return what the call of an automatic tool may do, one stage after the other."""
        steps = [Step()]
        for stage in sorted({event.stage for event in events}):
            choices = [self.step(event) for event in events if event.stage == stage]
            if all(choice.doubts for choice in choices):
                # Whatever it is that comes, the run goes on.
                mild = tuple(replace(doubt, mild=True) for doubt in choices[0].doubts)
                choices.append(Step(doubts=mild))
            steps = [step.then(choice) for step in steps for choice in choices]
        return steps

    def counted(self, agent: str) -> list[Step]:
        """Return what the count of the turns does: for each number so far, a step of its own."""
        name = turns_of(agent)
        if name not in self.ground.counts:
            return [Step()]
        events = self.at("count", agent)
        return [
            self.tick(name, number).then(
                Step(
                    changes=self.changes(
                        settings_of(it for it in events if it.tick == (name, number))
                    )
                )
            )
            for number in range(1, self.ground.counts[name] + 2)
        ]

    def tick(self, name: str, number: int) -> Step:
        """Return the step by which a count comes to a number, at most to the last one."""
        axis, most = self.ground.space.axes[name], self.ground.counts[name]
        outcomes = [(min(old + 1, most),) for old in range(most + 1)]
        return Step(axis.masks[number - 1], (change(axis, outcomes),))

    def cases(self, agent: str, *, before: bool) -> Iterator[tuple[Case, list[Way]]]:
        """Yield the cases of a decision with the ways that are possible in each."""
        walk = partial(routes_before if before else routes_after, self.routing, agent)
        for case in cases(walk, self.ground.truths, self.ground.space.full):
            yield case, [self.way(agent, case, route) for route in case.routes]

    def way(self, agent: str, case: Case, route: Route) -> Way:
        """Return where a route leads; what the user says goes to the agent that handed over."""
        rests = {TERMINATE: END, USER: Point("wait", agent)}
        target = self.numbers[rests.get(route.target, Point("enter", route.target))]
        changes = self.changes(settings_of(self.at("pass", agent, route.target)))
        rule, ground = route.rule, self.ground
        if rule is not None and rule in ground.truths and case.answers[rule] is None:
            bits = case.bits & ground.truths[rule].open
            return Way(target, changes, bits, rule, ground.doubts[rule])
        return Way(target, changes, case.bits, rule)

    def decide(self, at: int, ways: Sequence[Way]) -> None:
        """Draw one case of a decision."""
        self.edges += edges_of(at, ways, group=self.groups)
        self.groups += 1
        self.uses += [Use(way.rule, at, way.bits) for way in ways if way.rule is not None]

    def happen(self, here: int, moment: Moment, agent: str = "") -> None:
        """Draw the events that may happen at a point, again and again."""
        for event in self.at(moment, agent):
            step = self.tick(*event.tick) if event.tick else Step()
            step = step.then(self.step(event))
            self.edges.append(Edge(here, here, step.guard, step.changes, step.doubts))

    def step(self, event: Event) -> Step:
        """Return what an event does."""
        doubts = (event.doubt,) if event.doubt else ()
        return Step(ALWAYS, self.changes(event.settings), doubts)

    def take_place(
        self, source: int, target: int, events: Sequence[Event], before: Step | None = None
    ) -> None:
        """Draw the way on which events take place; code may leave its variables as they are.

        Where it is the likely case that code does so, the doubt is mild, and that it sets them all
        is the case in doubt.
        """
        sure = [event for event in events if not event.doubt]
        doubts = tuple(event.doubt for event in events if event.doubt)
        unlikely = tuple(replace(doubt, mild=False) for doubt in doubts if doubt.mild)
        choices = [Step(ALWAYS, self.changes(settings_of(events)), unlikely)]
        if doubts:
            choices.append(Step(ALWAYS, self.changes(settings_of(sure)), doubts))
        for choice in choices:
            step = before.then(choice) if before else choice
            self.edges.append(Edge(source, target, step.guard, step.changes, step.doubts))

    def at(self, moment: Moment, agent: str = "", target: str | None = None) -> list[Event]:
        """Return the events of a moment."""
        return [
            event
            for event in self.events
            if event.when.moment == moment
            and event.when.agent in (None, agent)
            and event.when.target in (None, target)
        ]

    def changes(self, settings: Iterable[Setting]) -> tuple[Change, ...]:
        """Turn settings into changes; those of variables that are not followed are left out."""
        together: dict[str, list[Setting]] = {}
        for setting in settings:
            if setting.variable in self.ground.domains:
                together.setdefault(setting.variable, []).append(setting)
        return tuple(
            change(self.ground.space.axes[name], self.ground.domains[name].outcomes(found))
            for name, found in together.items()
        )

    def chart(self) -> Chart:
        """Return the finished chart."""
        ground = self.ground
        triggered = [event for event in self.at("begin") if not event.doubt]
        beginning = self.changes(settings_of(triggered))
        counts = dict.fromkeys(ground.counts, (0,))
        certain = {name: domain.initial for name, domain in ground.domains.items()} | counts
        possible = {name: domain.possible for name, domain in ground.domains.items()} | counts
        return Chart(
            ground=ground,
            routing=self.routing,
            points=self.points,
            edges=tuple(self.edges),
            uses=tuple(self.uses),
            initial=forward(beginning, ground.space.within(certain)),
            possible=forward(beginning, ground.space.within(possible)),
        )
