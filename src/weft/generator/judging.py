"""Whether what an agent returned can be used: its form, and for parts of a plan the rules."""

from collections.abc import Mapping
from typing import Final, cast

from weft.errors import RetryModel
from weft.findings import Json
from weft.generator.assemble import form_findings
from weft.generator.forms.skeleton import OPEN
from weft.generator.output_models import FORMS
from weft.generator.plans.faults import DesignOutput, Fault, PartKey, read_part
from weft.generator.plans.plan import make_plan
from weft.generator.plans.rules import (
    agents_faults,
    blueprint_faults,
    selection_faults,
    strategy_faults,
)
from weft.generator.steps import DESIGNERS, REPAIRER, REPLACED, STEP_OF
from weft.generator.values import mapping, without_nulls
from weft.ids import join_names, suggestion
from weft.spec.part import Part
from weft.spec.plan import (
    ActionPlan,
    ModuleAgentsOutput,
    PatternSelection,
    PatternSelectionOutput,
    TechnicalBlueprint,
    TechnicalBlueprintOutput,
    WorkflowStrategy,
    WorkflowStrategyOutput,
)

#: The most faults in one message.
_MOST: Final = 8
#: The keys of the parts of a plan, by their variables.
_KEYS: Final = {STEP_OF[agent].writes: STEP_OF[agent].keys[0] for agent in DESIGNERS}


def part_faults(
    agent: str, output: Mapping[str, Json], values: Mapping[str, Json]
) -> tuple[Fault, ...]:
    """Return what is wrong with the part of an agent, given the parts before it.

    What the parts of a package make together is judged when they are assembled.
    """
    if agent in DESIGNERS:
        read = _read_design(agent, output)
        return read if isinstance(read, tuple) else _broken_rules(read, values)
    if agent == REPAIRER:
        parts, answers = mapping(output.get("parts")), mapping(output.get("answers"))
        return _repair_faults(parts, answers, values)
    return ()


def accepted(agent: str, output: Mapping[str, Json], values: Mapping[str, Json]) -> dict[str, Json]:
    """Return a part of a plan as it is stored; raises RetryModel with everything that is wrong."""
    faults = part_faults(agent, output, values)
    if faults:
        raise RetryModel(in_words(faults))
    read = cast("Part", _read_design(agent, output))
    return cast("dict[str, Json]", read.model_dump(mode="json", by_alias=True))


def accepted_files(agent: str, output: Mapping[str, Json], *, again: bool) -> dict[str, Json]:
    """Return a part of a package as it is stored; raises RetryModel if its form is wrong.

    That is said once; what is still wrong `again` is a finding of the assembled package.
    """
    faults = () if again else _form_faults(agent, output)
    if faults:
        raise RetryModel(in_words(faults))
    return _given(output)


def accepted_repair(
    parts: Mapping[str, Json], answers: Mapping[str, Json], values: Mapping[str, Json]
) -> tuple[dict[str, dict[str, Json]], dict[str, str]]:
    """Return the parts that a repair replaces and its answers; raises RetryModel."""
    faults = _repair_faults(parts, answers, values)
    if faults:
        raise RetryModel(in_words(faults))
    replaced = {agent: _given(mapping(part)) for agent, part in parts.items() if part}
    return replaced, {key: str(text).strip() for key, text in answers.items() if text}


def joined_plan(values: Mapping[str, Json]) -> ActionPlan:
    """Return the plan of the stored parts; a part that is not by the model is an open place."""
    strategy = _strategy(values)
    parts: dict[str, list[str]] = {}
    for part, why in mapping(values.get("open_parts")).items():
        parts.setdefault(" ".join(str(why).split()), []).append(_KEYS[part])
    added = [f"{OPEN}{join_names(names)}: {why}" for why, names in parts.items()]
    assumed = dict.fromkeys((*strategy.assumptions, *added))
    return make_plan(
        version=len(cast("list[Json]", values.get("plan_rounds") or [])) + 1,
        selection=_selection(values),
        strategy=strategy.model_copy(update={"assumptions": tuple(assumed)}),
        blueprint=TechnicalBlueprint.model_validate(values["technical_blueprint"]),
        modules=ModuleAgentsOutput.model_validate(
            {"ModuleAgents": values["module_agents"]}
        ).modules,
    )


def in_words(faults: tuple[Fault, ...]) -> str:
    """Return faults as one text for the author of the part."""
    lines = [str(fault) for fault in faults[:_MOST]]
    more = len(faults) - len(lines)
    return "; ".join([*lines, f"and {more} more"] if more else lines)


def _read_design(agent: str, output: Mapping[str, Json]) -> DesignOutput | tuple[Fault, ...]:
    key = cast("PartKey", STEP_OF[agent].keys[0])
    return read_part(key, output.get(key))


def _broken_rules(read: DesignOutput, values: Mapping[str, Json]) -> tuple[Fault, ...]:
    match read:
        case PatternSelectionOutput(selection=selection):
            return selection_faults(selection)
        case WorkflowStrategyOutput(strategy=strategy):
            return strategy_faults(_selection(values), strategy)
        case TechnicalBlueprintOutput(blueprint=blueprint):
            return blueprint_faults(_strategy(values), blueprint)
        case ModuleAgentsOutput(modules=modules):
            blueprint = TechnicalBlueprint.model_validate(values["technical_blueprint"])
            return agents_faults(_strategy(values), blueprint, modules)


def _form_faults(agent: str, output: Mapping[str, Json]) -> tuple[Fault, ...]:
    """Return where a part of the package does not have the form of its files."""
    return tuple(
        Fault(finding.place.file.partition("/")[2], finding.message, "; ".join(finding.hint))
        for finding in form_findings(agent, _given(output))
    )


def _repair_faults(
    parts: Mapping[str, Json], answers: Mapping[str, Json], values: Mapping[str, Json]
) -> tuple[Fault, ...]:
    """Return what is wrong with a repair: its parts, and answers to what was not asked."""
    faults: list[Fault] = []
    for agent, part in parts.items():
        if agent not in FORMS:
            hint = suggestion(agent, list(FORMS))
            faults.append(Fault(f"parts.{agent}", "this is not an agent that writes a part", hint))
        elif part:
            found = _form_faults(agent, mapping(part))
            faults += [
                Fault(f"parts.{agent}.{each.path}", each.message, each.hint) for each in found
            ]
    findings = mapping(values.get("package_findings"))
    asked = list(mapping(findings.get("questions")))
    for key in answers:
        if key not in asked:
            hint = f"questions: {join_names(asked)}" if asked else "there are no questions"
            faults.append(Fault(f"answers.{key}", "this is not the key of a question", hint))
    return tuple(faults)


def _given(output: Mapping[str, Json]) -> dict[str, Json]:
    """Return a part without keys that a model gave as null because its schema names them."""
    kept = mapping(without_nulls({**output}))
    return {key: value for key, value in kept.items() if key != REPLACED}


def _selection(values: Mapping[str, Json]) -> PatternSelection:
    return PatternSelection.model_validate(values["pattern_selection"])


def _strategy(values: Mapping[str, Json]) -> WorkflowStrategy:
    return WorkflowStrategy.model_validate(values["workflow_strategy"])
