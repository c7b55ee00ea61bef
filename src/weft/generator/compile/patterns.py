"""The nine patterns: how the agents of one module hang together, by their places in it."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from weft.generator.compile.texts import line
from weft.generator.compile.wires import ASK_USER, OPEN, Fragment, Option
from weft.generator.names import snake_case
from weft.spec.orchestrator import ParallelGroup
from weft.spec.plan import PlannedAgent


class Stage(NamedTuple):
    """The agents of a module, who is next after it, and how a group of it would be called."""

    agents: tuple[PlannedAgent, ...]
    exit: str
    group: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the agents, in order."""
        return tuple(it.agent_name for it in self.agents)


def fragment(pattern: int, stage: Stage) -> Fragment | None:
    """Wire a module after a pattern; None where it has too few or too many agents for it."""
    least, build = _PATTERNS[pattern]
    most = _LARGEST_GROUP + 1 if build is redundant else len(stage.agents)
    return build(stage) if least <= len(stage.agents) <= most else None


def pipeline(stage: Stage) -> Fragment:
    """Each agent hands its result to the next."""
    names = stage.names
    return Fragment(
        entry=names[0],
        onward=dict(pairwise((*names, stage.exit))),
        back={later: earlier for earlier, later in pairwise(names)},
    )


def routing(stage: Stage) -> Fragment:
    """The first agent sends each request to one of the others."""
    router, *others = stage.names
    return Fragment(
        entry=router,
        onward=dict.fromkeys(others, stage.exit),
        options={router: _to(stage, others)},
        back=dict.fromkeys(others, router),
        field="route",
    )


def escalation(stage: Stage) -> Fragment:
    """Each tier solves the case or hands it up; the last one does what it can."""
    names = stage.names
    options = {
        tier: (
            Option("solved", stage.exit, "the case is solved"),
            Option("escalate", above, f"{above} must take it over"),
        )
        for tier, above in pairwise(names)
    }
    return Fragment(
        entry=names[0],
        onward={names[-1]: stage.exit},
        options=options,
        back={later: earlier for earlier, later in pairwise(names)},
        field="outcome",
    )


def feedback_loop(stage: Stage) -> Fragment:
    """A draft is made and judged, and made again until it is accepted."""
    *makers, judge = stage.names
    return Fragment(
        entry=makers[0],
        onward=dict(pairwise(stage.names)),
        options={
            judge: (
                Option("accepted", stage.exit, "it is good enough"),
                Option("revise", makers[0], "it must be worked on again"),
            )
        },
        back={**{later: earlier for earlier, later in pairwise(makers)}, judge: makers[0]},
        field="verdict",
        counted=judge,
    )


def hierarchical(stage: Stage) -> Fragment:
    """A lead assigns teams; the lead of a team lets its workers work and reports."""
    lead, *others = stage.agents
    top, teams = lead.agent_name, _teams(others)
    options = {top: (*_to(stage, list(teams)), _done(stage.exit))}
    onward: dict[str, str] = {}
    back: dict[str, str] = dict.fromkeys(teams, top)
    for head, workers in teams.items():
        if not workers:
            onward[head] = top
            continue
        options[head] = (
            Option("assign", workers[0], "the team must work, or work again"),
            Option("report", top, "the goal of the team is reached"),
        )
        onward |= dict(pairwise((*workers, head)))
        back |= {later: earlier for earlier, later in pairwise((head, *workers))}
    return Fragment(entry=top, onward=onward, options=options, back=back, field="assignment")


def _teams(agents: Sequence[PlannedAgent]) -> dict[str, list[str]]:
    """Return the workers by the lead they follow; who follows none has no workers either."""
    teams: dict[str, list[str]] = {}
    head = None
    for agent in agents:
        if agent.agent_type == "orchestrator" or head is None:
            teams[agent.agent_name] = []
            head = agent.agent_name if agent.agent_type == "orchestrator" else None
        else:
            teams[head].append(agent.agent_name)
    return teams


def organic(stage: Stage) -> Fragment:
    """Every agent says who is next, or that all is done."""
    names = stage.names
    return Fragment(
        entry=names[0],
        options={
            one: (*_to(stage, [it for it in names if it != one]), _done(stage.exit))
            for one in names
        },
        back={later: earlier for earlier, later in pairwise(names)},
    )


def redundant(stage: Stage) -> Fragment:
    """Several agents answer side by side, the last one says whose answer counts."""
    *members, judge = stage.names
    group = ParallelGroup(
        name=stage.group, members=tuple(members), on_failure="continue", next=judge
    )
    return Fragment(
        entry=stage.group,
        options={judge: _to(stage, members, stage.exit)},
        back={judge: stage.group},
        field="best_answer",
        group=group,
    )


def star(stage: Stage) -> Fragment:
    """A hub asks the others one after the other, until it is done."""
    hub, *spokes = stage.names
    return Fragment(
        entry=hub,
        onward=dict.fromkeys(spokes, hub),
        options={hub: (*_to(stage, spokes), _done(stage.exit))},
        back=dict.fromkeys(spokes, hub),
    )


def triage(stage: Stage) -> Fragment:
    """A request becomes tasks; workers work them off in turn, the last agent sums up."""
    first, *workers, last = stage.names
    following = (*workers[1:], workers[0])
    planned = Option("planned", workers[0], "the tasks are written down")
    options: dict[str, tuple[Option, ...]] = {first: (planned,)}
    for worker, after in zip(workers, following, strict=True):
        options[worker] = (
            Option("more", after, "at least one task is open still"),
            Option("finished", last, "no task is open any more"),
        )
    return Fragment(
        entry=first,
        onward={last: stage.exit},
        options=options,
        back={**{later: earlier for earlier, later in pairwise((first, *workers))}, last: first},
        field="progress",
        tasks=True,
    )


def _done(target: str) -> Option:
    return Option("done", target, "all is done")


def _to(stage: Stage, names: Sequence[str], target: str | None = None) -> tuple[Option, ...]:
    """Return an option for each of some agents: that it is next, or what is next instead."""
    objectives = {it.agent_name: it.objective for it in stage.agents}
    options: dict[str, Option] = {}
    for name in names:
        value = snake_case(name, "agent")
        while value in options or value in _TAKEN:
            value += "_agent"
        options[value] = Option(value, target or name, line(objectives[name]))
    return tuple(options.values())


#: What options mean that lead to no agent.
_TAKEN: Final = frozenset({OPEN, ASK_USER, "done"})
#: The most members that a group can have.
_LARGEST_GROUP: Final = 16
_PATTERNS: Final[dict[int, tuple[int, Callable[[Stage], Fragment]]]] = {
    1: (3, routing),
    2: (2, escalation),
    3: (2, feedback_loop),
    4: (2, hierarchical),
    5: (2, organic),
    6: (1, pipeline),
    7: (3, redundant),
    8: (2, star),
    9: (3, triage),
}
