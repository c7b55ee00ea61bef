"""Simulated runs of a workflow: what they did, and what none of them came to.

`app` does them, since they need a host. Nothing leaves the machine, and nobody is asked.
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
    #: completed, failed, cancelled or max_turns; hung where it came to no end, or did not begin.
    outcome: str
    turns: int
    #: Who had a turn, and which handoffs were taken, each once and in the order of the run.
    agents: tuple[str, ...] = ()
    handoffs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Simulation:
    """All simulated runs of a workflow, and what the explorer knows that none of them came to."""

    runs: tuple[SimulatedRun, ...] = ()
    unvisited_agents: tuple[str, ...] = ()
    #: Handoffs, as "A -> B when x", and groups that never came together.
    unvisited_rules: tuple[str, ...] = ()
    #: Answers of people that decide something, as "approve: decision = yes".
    ungiven_answers: tuple[str, ...] = ()
    #: Runs that failed, did not end within their turns or hung, with why.
    problems: tuple[str, ...] = ()
    #: Whether more runs might have come to what is missing: there is a limit to their number.
    limited: bool = False

    @property
    def missed(self) -> tuple[str, ...]:
        """Everything that can happen and did not, in words."""
        return (
            *(f"no simulated run came to {it}" for it in self.unvisited_agents),
            *(f"no simulated run took {it}" for it in self.unvisited_rules),
            *(f"in no simulated run a person answered {it}" for it in self.ungiven_answers),
        )

    @property
    def ok(self) -> bool:
        """Whether every run ended, and everything that can happen did."""
        return not (self.problems or self.missed)

    def as_json(self) -> dict[str, Json]:
        """Return it as it is kept in a journal."""
        return cast("dict[str, Json]", asdict(self))


#: Does simulated runs of a workflow with code that may be executed.
Simulate: TypeAlias = Callable[[WorkflowSpec, Mapping[str, bytes]], Simulation]
