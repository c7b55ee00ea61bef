"""Simulated runs of a workflow: what they did, and what none of them reached.

`app` performs them, since they need a host. Nothing leaves the machine, and no person is asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias, cast

from weft.findings import Json
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One run with a model and with people that are made up."""

    seed: int
    #: completed, failed, cancelled or max_turns; hung if it did not end or did not begin.
    outcome: str
    turns: int
    #: The agents that had a turn and the handoffs that were taken, each once, in order.
    agents: tuple[str, ...] = ()
    handoffs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Simulation:
    """All simulated runs of a workflow, and what the explorer knows that none of them reached."""

    runs: tuple[SimulatedRun, ...] = ()
    unvisited_agents: tuple[str, ...] = ()
    #: Handoffs, as "A -> B when x", and groups that never ended.
    unvisited_rules: tuple[str, ...] = ()
    #: Answers of people that decide the route, as "approve: decision = yes".
    ungiven_answers: tuple[str, ...] = ()
    #: Runs that failed, did not end within their turns or hung, with why.
    problems: tuple[str, ...] = ()
    #: Whether more runs might have reached what is missing: their number is limited.
    limited: bool = False

    @property
    def missed(self) -> tuple[str, ...]:
        """Everything that can happen and did not, as text."""
        return (
            *(f"no simulated run reached {agent}" for agent in self.unvisited_agents),
            *(f"no simulated run took {rule}" for rule in self.unvisited_rules),
            *(f"in no simulated run a person answered {answer}" for answer in self.ungiven_answers),
        )

    @property
    def ok(self) -> bool:
        """Whether every run ended, and everything that can happen did."""
        return not (self.problems or self.missed)

    def as_json(self) -> dict[str, Json]:
        """Return it as it is stored in a journal."""
        return cast("dict[str, Json]", asdict(self))


#: Simulates a workflow, given the code of its package, which is read and not executed.
Simulate: TypeAlias = Callable[[WorkflowSpec, Mapping[str, bytes]], Simulation]


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """One scenario of a plan, run with stand-ins, and what was otherwise than it says."""

    name: str
    differences: tuple[str, ...] = ()
    #: The tools whose code decides whether it passes: it is run after the promotion.
    rests_on: tuple[str, ...] = ()


#: Runs the scenarios of a package, given its spec, its code and the texts of `tests`. The code is
#: read and not executed.
RunScenarios: TypeAlias = Callable[
    [WorkflowSpec, Mapping[str, bytes], Mapping[str, str]], tuple[ScenarioRun, ...]
]
