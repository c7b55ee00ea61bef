"""Whether what an agent of the design half returned can stand: its shape, then its rules."""

from collections.abc import Mapping
from typing import Final

from weft.errors import RetryModel
from weft.findings import Json
from weft.generator.designer.blueprint import design_blueprint
from weft.generator.designer.model import brief_of
from weft.generator.designer.staffing import design_agents
from weft.generator.designer.strategy import design_strategy
from weft.generator.faults import DesignOutput, Fault, PartKey, read_part
from weft.generator.rules import (
    agents_faults,
    blueprint_faults,
    selection_faults,
    strategy_faults,
)
from weft.spec.plan import (
    ModuleAgentsOutput,
    PatternSelection,
    PatternSelectionOutput,
    TechnicalBlueprint,
    TechnicalBlueprintOutput,
    WorkflowStrategy,
    WorkflowStrategyOutput,
)

#: How many faults are told at once: more do not help.
_MOST: Final = 8

_KEYS: Final[dict[str, PartKey]] = {
    "PatternAgent": "PatternSelection",
    "WorkflowStrategyAgent": "WorkflowStrategy",
    "WorkflowArchitectAgent": "TechnicalBlueprint",
    "WorkflowImplementationAgent": "ModuleAgents",
}


def part_faults(
    agent: str, output: Mapping[str, Json], values: Mapping[str, Json]
) -> tuple[Fault, ...]:
    """Say what is wrong with a part of a plan, given the parts before it.

    A diagram is drawn from the plan, whatever was returned. The second half is not judged here:
    what a model adds there is checked piece by piece.
    """
    key = _KEYS.get(agent)
    if key is None:
        return ()
    read = read_part(key, output.get(key))
    return read if isinstance(read, tuple) else _broken_rules(read, values)


def _broken_rules(read: DesignOutput, values: Mapping[str, Json]) -> tuple[Fault, ...]:
    match read:
        case PatternSelectionOutput(selection=selection):
            return selection_faults(selection) or _dead_ends(values, selection)
        case WorkflowStrategyOutput(strategy=strategy):
            selection = _selection(values)
            faults = strategy_faults(selection, strategy)
            return faults or _dead_ends(values, selection, strategy)
        case TechnicalBlueprintOutput(blueprint=blueprint):
            selection, strategy = _selection(values), _strategy(values)
            faults = blueprint_faults(strategy, blueprint)
            return faults or _dead_ends(values, selection, strategy, blueprint)
        case ModuleAgentsOutput(modules=modules):
            blueprint = TechnicalBlueprint.model_validate(values["technical_blueprint"])
            return agents_faults(_strategy(values), blueprint, modules)


def _dead_ends(
    values: Mapping[str, Json],
    selection: PatternSelection,
    strategy: WorkflowStrategy | None = None,
    blueprint: TechnicalBlueprint | None = None,
) -> tuple[Fault, ...]:
    """Say why the designer could not complete a plan from here: then nobody stands behind a model.

    The later parts are worked out as it would do it.
    """
    brief = brief_of(values)
    strategy = strategy or design_strategy(brief, selection)
    blueprint = blueprint or design_blueprint(brief, selection, strategy)
    modules = design_agents(brief, selection, strategy, blueprint)
    return (
        *strategy_faults(selection, strategy),
        *blueprint_faults(strategy, blueprint),
        *agents_faults(strategy, blueprint, modules),
    )


def _selection(values: Mapping[str, Json]) -> PatternSelection:
    return PatternSelection.model_validate(values["pattern_selection"])


def _strategy(values: Mapping[str, Json]) -> WorkflowStrategy:
    return WorkflowStrategy.model_validate(values["workflow_strategy"])


def in_words(faults: tuple[Fault, ...]) -> str:
    """Return faults as one text, to be sent back to whoever made them."""
    told = [str(it) for it in faults[:_MOST]]
    more = len(faults) - len(told)
    return "; ".join([*told, f"and {more} more"] if more else told)


def accepted(agent: str, output: Mapping[str, Json], values: Mapping[str, Json]) -> dict[str, Json]:
    """Return a part as it is kept; raises RetryModel with what is wrong, for whoever made it."""
    key = _KEYS[agent]
    read = read_part(key, output.get(key))
    faults = read if isinstance(read, tuple) else _broken_rules(read, values)
    if isinstance(read, tuple) or faults:
        raise RetryModel(in_words(faults))
    return read.model_dump(mode="json", by_alias=True)
