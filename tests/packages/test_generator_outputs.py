"""The structured outputs of the Generator's package: the seed's examples fit, and so does all
that the Generator makes itself; a wrong field is refused."""

import json
from typing import Any

import pytest

from support import plan_play
from support import seed_examples as seed
from weft.engine.compile import compile_workflow
from weft.generator.bundle import MAKERS, plain_drafts, plain_part
from weft.generator.output_models import (
    AgentToolsFilesOutput,
    ContextVariablesPlanOutput,
    DownloadRequestOutput,
    HandoffRulesOutput,
    HookFilesOutput,
    OrchestrationConfigOutput,
    RuntimeAgentsOutput,
    StructuredModelsOutput,
    ToolsManifestOutput,
    UIToolsFilesOutput,
)
from weft.generator.steps import STEP_OF
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.spec.plan import ActionPlan
from weft.spec.type_meaning import validation_error
from weft.spec.types import Ref

MODELS = compile_workflow(read_package(shipped_folder() / "Generator").spec).models

#: Section 3 of the seed, comments removed.
SECTION_3 = {
    "PatternSelectionOutput": seed.PATTERN_SELECTION,
    "WorkflowStrategyOutput": seed.WORKFLOW_STRATEGY,
    "TechnicalBlueprintOutput": seed.TECHNICAL_BLUEPRINT,
    "ModuleAgentsOutput": seed.MODULE_AGENTS,
    "MermaidSequenceDiagramOutput": seed.MERMAID,
}


def _plan(pattern: int) -> ActionPlan:
    agents = [plan_play.planned_agent(f"{name}Agent") for name in ("First", "Second", "Third")]
    return plan_play.plan_of(plan_play.of_pattern(pattern, agents))


def fault(model: str, value: Any) -> str | None:
    return validation_error(Ref(model), value, MODELS)


@pytest.mark.parametrize("model", SECTION_3)
def test_the_examples_of_section_3_fit(model):
    assert fault(model, SECTION_3[model]) is None


@pytest.mark.parametrize("model", SECTION_3)
def test_a_field_too_many_or_too_few_is_refused(model):
    example = json.loads(json.dumps(SECTION_3[model]))
    assert fault(model, {**example, "surprise": 1})
    key = next(iter(example))
    del example[key]
    assert fault(model, example)


@pytest.mark.parametrize("pattern", range(1, 10))
def test_output_of_the_second_half_fits_the_package(pattern):
    drafts = plain_drafts(_plan(pattern))
    for agent in MAKERS:
        assert fault(STEP_OF[agent].output or "", plain_part(agent, drafts)) is None, agent


def test_a_wrong_field_of_the_second_half_is_refused():
    drafts = plain_drafts(_plan(1))
    for agent in MAKERS:
        output = STEP_OF[agent].output or ""
        part = plain_part(agent, drafts)
        assert fault(output, {**part, "surprise": 1}), agent
        key = next(iter(part))
        assert fault(output, {**part, key: 7 if isinstance(part[key], str) else "seven"}), agent


#: Who returns what in code; the package says the same in its own words.
PARTS = (
    ToolsManifestOutput,
    ContextVariablesPlanOutput,
    HandoffRulesOutput,
    StructuredModelsOutput,
    RuntimeAgentsOutput,
    OrchestrationConfigOutput,
    UIToolsFilesOutput,
    AgentToolsFilesOutput,
    HookFilesOutput,
    DownloadRequestOutput,
)


@pytest.mark.parametrize("part", PARTS, ids=lambda item: item.__name__)
def test_package_and_code_name_the_same_fields(part):
    fields = {info.alias or name for name, info in part.model_fields.items()}
    assert set(MODELS[part.__name__]) == fields
