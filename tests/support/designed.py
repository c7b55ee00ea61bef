"""Briefs and the parts that the designer makes of them, for its tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.generator.designer.blueprint import design_blueprint
from weft.generator.designer.brief import Brief, read_brief
from weft.generator.designer.patterns import Choice, choose_pattern
from weft.generator.designer.staffing import design_agents
from weft.generator.designer.strategy import design_strategy
from weft.spec.plan import ModuleAgents, PlannedAgent, TechnicalBlueprint, WorkflowStrategy

FOLDER = Path(__file__).parents[2] / "examples" / "briefs"
BRIEFS = {file.stem: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.txt"))}


@dataclass(frozen=True)
class Designed:
    brief: Brief
    choice: Choice
    strategy: WorkflowStrategy
    blueprint: TechnicalBlueprint
    modules: tuple[ModuleAgents, ...]

    @property
    def agents(self) -> list[PlannedAgent]:
        return [agent for module in self.modules for agent in module.agents]

    @property
    def names(self) -> list[str]:
        return [agent.agent_name for agent in self.agents]


def design(
    text: str, answers: Mapping[str, str] | None = None, comments: Sequence[str] = ()
) -> Designed:
    brief = read_brief(text, answers or {}, comments)
    choice = choose_pattern(brief)
    strategy = design_strategy(brief, choice.selection)
    blueprint = design_blueprint(brief, choice.selection, strategy)
    modules = design_agents(brief, choice.selection, strategy, blueprint)
    return Designed(brief, choice, strategy, blueprint, modules)
