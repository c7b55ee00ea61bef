"""The part of an action plan that is one workflow: a plan may be of several."""

from dataclasses import dataclass

from weft.spec.patterns import Pattern
from weft.spec.plan import NextStep, PlannedAgent, TechnicalBlueprint, WorkflowStrategy
from weft.spec.workflow import PackRole


@dataclass(frozen=True, slots=True)
class PlannedModule:
    """One module with its agents; `purpose` is its name without "Module N: "."""

    index: int
    name: str
    purpose: str
    description: str
    pattern: Pattern
    agents: tuple[PlannedAgent, ...]
    leads_to: tuple[NextStep, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkflowPlan:
    """One workflow of a plan; its blueprint holds what its own modules use."""

    #: PascalCase: the name of the package and of its folder.
    name: str
    role: PackRole
    description: str
    pattern: Pattern
    strategy: WorkflowStrategy
    blueprint: TechnicalBlueprint
    modules: tuple[PlannedModule, ...]
    #: The packages that must have been completed before.
    requires: tuple[str, ...] = ()

    @property
    def agents(self) -> tuple[PlannedAgent, ...]:
        """All agents, in the order of the modules."""
        return tuple(agent for module in self.modules for agent in module.agents)

    @property
    def is_attended(self) -> bool:
        """Whether messages of a user are ever waited for."""
        return self.strategy.trigger == "chat" and self.strategy.human_in_loop
