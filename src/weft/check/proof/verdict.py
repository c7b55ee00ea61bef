"""The proof: whether a run can come to an end from wherever it can get to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.check.proof.chart import Chart, Point, States
from weft.check.proof.draw import draw
from weft.check.proof.events import Doubt
from weft.check.proof.ground import TooLarge, survey
from weft.check.proof.reach import leading, reached, shortest
from weft.check.proof.ready import obstacle
from weft.check.proof.traps import Trap, only, traps
from weft.check.proof.unused import UnusedRule, unused_rules
from weft.check.proof.witness import in_words, joined, show
from weft.check.subject import Subject

Status: TypeAlias = Literal["proven", "refuted", "not proven", "not checked"]

#: Agents times combinations of values; more are not explored.
STATE_LIMIT: Final = 200_000


@dataclass(frozen=True, slots=True)
class EndlessRun:
    """Agents that keep the word among themselves for ever.

    `values` are what the variables that decide about it have for good, `witness` is the shortest
    way to where there is no escape any more, and `cycle` how it goes on from there.
    """

    agents: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    witness: str
    cycle: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known about all runs of a workflow.

    `dead_ends` are endless runs of one agent, `cycles` of several. Rules that are unused and
    agents that never speak are certain whatever the status is, unless nothing was explored.
    """

    status: Status
    reason: str
    states: int = 0
    dead_ends: tuple[EndlessRun, ...] = ()
    cycles: tuple[EndlessRun, ...] = ()
    unused_rules: tuple[UnusedRule, ...] = ()
    unreachable_agents: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    witness: str = ""


def prove(subject: Subject, *, limit: int = STATE_LIMIT) -> Proof:
    """Explore every state a run can get to, and say whether each leads on to an end."""
    hindrance = obstacle(subject)
    if hindrance:
        return Proof("not checked", hindrance)
    agents = len(subject.agents)
    ground = survey(subject, limit // agents)
    if isinstance(ground, TooLarge):
        names = ", ".join(ground.variables[:3])
        return Proof(
            "not proven",
            f"{agents} agents and {ground.combinations:,} combinations of values make more than "
            f"{limit:,} states; most of them come from {names}",
        )
    return _explored(subject, draw(subject, ground))


def _explored(subject: Subject, chart: Chart) -> Proof:
    seen = reached(chart, chart.begin(chart.possible))
    escaping = leading(chart, chart.rests, seen)
    lost = _without(seen, escaping)
    certain = reached(chart, chart.begin(chart.initial), certain=True)
    found = [_told(chart, trap) for trap in traps(chart, lost, _both(lost, certain))]
    ...
