"""The sheet that a chart is drawn on: its points, the edges so far, and how to draw more."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from weft.check.proof.chart import ALWAYS, END, START, Edge, Point, PointKind, Step, Use
from weft.check.proof.decisions import Way, edges_of
from weft.check.proof.ground import Ground
from weft.check.proof.happenings import Happening, Moment, Setting
from weft.check.proof.space import Change, change


def settings_of(happenings: Iterable[Happening]) -> Iterator[Setting]:
    """Yield all that happenings set."""
    for happening in happenings:
        yield from happening.settings


@dataclass
class Sheet:
    """A chart while it is being drawn."""

    ground: Ground
    agents: Sequence[str]
    edges: list[Edge] = field(default_factory=list[Edge])
    uses: list[Use] = field(default_factory=list[Use])
    groups: int = 0

    def __post_init__(self) -> None:
        kinds = ("enter", "speak", "said", "decide", "wait")
        turns = (Point(kind, agent) for agent in self.agents for kind in kinds)
        self.points = (START, END, *turns)
        self._numbers = {point: number for number, point in enumerate(self.points)}
        # What sets nothing that is followed is left out, unless it comes in place of something
        # that does: other words, another way through the code of a tool.
        followed = self.ground.domains
        self._happenings: dict[tuple[Moment, str | None], list[tuple[int, Happening]]] = {}
        for place, happening in enumerate(self.ground.happenings):
            if (
                any(setting.variable in followed for setting in happening.settings)
                or happening.when.moment in ("auto", "say", "hear", "back")
                or happening.call
            ):
                when = (happening.when.moment, happening.when.agent)
                self._happenings.setdefault(when, []).append((place, happening))
        self._changes: dict[tuple[str, tuple[tuple[int, ...], ...]], Change] = {}

    def number(self, kind: PointKind, agent: str = "") -> int:
        """Return the number of a point."""
        return self._numbers[Point(kind, agent)]

    def at(self, moment: Moment, agent: str = "", target: str | None = None) -> list[Happening]:
        """Return the happenings of a moment, in the order in which they were found."""
        whose = (None, agent)
        found = [it for one in whose for it in self._happenings.get((moment, one), ())]
        found.sort(key=itemgetter(0))
        return [it for _, it in found if it.when.target in (None, target)]

    def changes(self, settings: Iterable[Setting]) -> tuple[Change, ...]:
        """Turn settings into changes; those of variables that are not followed are left out."""
        together: dict[str, list[Setting]] = {}
        for setting in settings:
            if setting.variable in self.ground.domains:
                together.setdefault(setting.variable, []).append(setting)
        return tuple(self.change(name, found) for name, found in together.items())

    def change(self, name: str, settings: Sequence[Setting]) -> Change:
        """Turn settings of one variable into a change; equal ones are worked out once."""
        outcomes = self.ground.domains[name].outcomes(settings)
        if (name, outcomes) not in self._changes:
            self._changes[name, outcomes] = change(self.ground.space.axes[name], outcomes)
        return self._changes[name, outcomes]

    def step(self, happening: Happening) -> Step:
        """Return what a happening does."""
        doubts = (happening.doubt,) if happening.doubt else ()
        step = Step(ALWAYS, self.changes(happening.settings), doubts)
        return self.tick(*happening.tick).then(step) if happening.tick else step

    def tick(self, name: str, number: int) -> Step:
        """Return the step by which a count comes to a number, at most to the last one."""
        axis, most = self.ground.space.axes[name], self.ground.counts[name]
        outcomes = [(min(old + 1, most),) for old in range(most + 1)]
        return Step(axis.masks[number - 1], (change(axis, outcomes),))

    def one_of(self, source: int, target: int, steps: Iterable[Step]) -> None:
        """Draw steps of which a run certainly takes one that is open to it.

        If all are in doubt, it is not known which of them, but no other can be taken.
        """
        found = list(steps)
        halts = any(doubt.halts for step in found for doubt in step.doubts)
        unknown = all(any(not doubt.mild for doubt in step.doubts) for step in found)
        if unknown and not halts:
            self.some(source, target, found, group=self.groups)
            self.groups += 1
        else:
            self.some(source, target, found)

    def some(
        self, source: int, target: int, steps: Iterable[Step], group: int | None = None
    ) -> None:
        """Draw steps that may be taken."""
        for it in steps:
            self.edges.append(Edge(source, target, it.guard, it.changes, it.doubts, group))

    def decide(self, at: int, ways: Sequence[Way]) -> None:
        """Draw one case of a decision."""
        self.edges += edges_of(at, ways, group=self.groups)
        self.groups += 1
        self.uses += [Use(way.rule, at, way.bits) for way in ways if way.rule is not None]

    def without_fail(self, happenings: Sequence[Happening]) -> list[Step]:
        """Return the steps in which happenings take place; code may leave its variables be.

        Where it is the likely case that code does so, the doubt is mild, and that it sets them all
        is the case in doubt.
        """
        sure = [happening for happening in happenings if not happening.doubt]
        doubts = tuple(happening.doubt for happening in happenings if happening.doubt)
        unlikely = tuple(replace(doubt, mild=False) for doubt in doubts if doubt.mild)
        steps = [Step(ALWAYS, self.changes(settings_of(happenings)), unlikely)]
        if doubts:
            steps.append(Step(ALWAYS, self.changes(settings_of(sure)), doubts))
        return steps
