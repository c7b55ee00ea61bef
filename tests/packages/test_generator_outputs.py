"""The structured outputs of the Generator's package: the examples of the seed match, and so does
everything that the Generator makes itself; a wrong key is refused."""

import json
from typing import Any

import pytest

from support import plan_play
from support import seed_examples as seed
from weft.engine.compile import compile_workflow
from weft.generator.compile.compiler import compile_drafts
from weft.generator.output_models import FORMS, CodeFile, HookFile
from weft.generator.outputs import joined_output
from weft.generator.steps import STEP_OF
from weft.packages.layout import FILE_KINDS
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
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
#: The keys that are no part of a package: the other workflows, and why a part is not by the model.
APART = {"more", "instead_of"}


def parts(pattern: int) -> dict[str, Any]:
    agents = [plan_play.planned_agent(f"{name}Agent") for name in ("First", "Second", "Third")]
    plan = plan_play.plan_of(plan_play.of_pattern(pattern, agents))
    drafts = compile_drafts(plan)
    return {agent: joined_output(agent, drafts) for agent in FORMS}


def fault(model: str, value: Any) -> str | None:
    return validation_error(Ref(model), value, MODELS)


@pytest.mark.parametrize("model", SECTION_3)
def test_examples_of_section_3_match(model):
    assert fault(model, SECTION_3[model]) is None


@pytest.mark.parametrize("model", SECTION_3)
def test_key_too_many_or_too_few_is_refused(model):
    example = json.loads(json.dumps(SECTION_3[model]))
    assert fault(model, {**example, "surprise": 1})
    key = next(iter(example))
    del example[key]
    assert fault(model, example)


@pytest.mark.parametrize("pattern", range(1, 10))
def test_outputs_of_the_second_half_match(pattern):
    for agent, part in parts(pattern).items():
        assert fault(STEP_OF[agent].output or "", part) is None, agent


def test_wrong_key_of_the_second_half_is_refused():
    for agent, part in parts(1).items():
        output = STEP_OF[agent].output or ""
        assert fault(output, {**part, "surprise": 1}), agent
        key = next(iter(part))
        assert fault(output, {**part, key: 7 if isinstance(part[key], str) else "seven"}), agent


@pytest.mark.parametrize("agent", [agent for agent, form in FORMS.items() if form.stem])
def test_output_has_the_keys_of_its_package_file(agent):
    form = FORMS[agent]
    fields = {info.alias or name for name, info in FILE_KINDS[form.stem].model.model_fields.items()}
    fields = fields - {"mcp_servers"} | ({form.files} if form.files else set())
    fields = {"ContextVariablesPlan" if name == "context_variables" else name for name in fields}
    assert set(MODELS[STEP_OF[agent].output or ""]) - APART == fields


@pytest.mark.parametrize("part", [CodeFile, HookFile], ids=lambda item: item.__name__)
def test_package_and_code_name_the_same_keys_of_files(part):
    fields = {info.alias or name for name, info in part.model_fields.items()}
    assert set(MODELS[part.__name__]) == fields
