"""The seventeen agents of the Generator: what they read and write, as the package declares it."""

import pytest

from weft.generator.steps import (
    APPROVAL,
    MAKERS,
    REPAIRER,
    STEP_OF,
    STEPS,
    is_generator,
)
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder

GENERATOR = read_package(shipped_folder() / "Generator").spec

#: Section 2 of seed 003: who returns what, under which keys.
SECTION_2 = {
    "InterviewAgent": (None, ()),
    "PatternAgent": ("PatternSelectionOutput", ("PatternSelection",)),
    "WorkflowStrategyAgent": ("WorkflowStrategyOutput", ("WorkflowStrategy",)),
    "WorkflowArchitectAgent": ("TechnicalBlueprintOutput", ("TechnicalBlueprint",)),
    "WorkflowImplementationAgent": ("ModuleAgentsOutput", ("ModuleAgents",)),
    "ProjectOverviewAgent": (
        "MermaidSequenceDiagramOutput",
        ("MermaidSequenceDiagram", "agent_message"),
    ),
    "ToolsManagerAgent": ("ToolsManifestOutput", ("tools", "lifecycle_tools")),
    "UIFileGenerator": ("UIToolsFilesOutput", ("tools",)),
    "AgentToolsFileGenerator": ("AgentToolsFilesOutput", ("tools",)),
    "HookAgent": ("HookFilesOutput", ("hook_files",)),
    "AgentsAgent": ("RuntimeAgentsOutput", ("agents",)),
    "ContextVariablesAgent": ("ContextVariablesPlanOutput", ("ContextVariablesPlan",)),
    "OrchestratorAgent": ("OrchestrationConfigOutput", ()),
    "HandoffsAgent": ("HandoffRulesOutput", ("handoff_rules",)),
    "StructuredOutputsAgent": ("StructuredModelsOutput", ("models", "registry")),
    "DownloadAgent": ("DownloadRequestOutput", ("agent_message",)),
    # Not of the seed: repairs the package.
    "RepairAgent": ("PackageRepairOutput", ("parts", "answers")),
}


def test_the_steps_are_those_of_the_seed():
    assert {step.agent: (step.output, step.keys) for step in STEPS} == SECTION_2


def test_every_step_comes_after_those_whose_parts_it_reads():
    made: set[str] = set()
    for step in STEPS:
        assert made.issuperset(step.reads), step.agent
        made.add(step.writes)


def test_the_package_has_these_agents_in_this_order():
    assert [agent.agent_name for agent in GENERATOR.agents] == list(STEP_OF)
    assert {binding.agent: binding.model for binding in GENERATOR.registry} == {
        step.agent: step.output for step in STEPS
    }
    assert is_generator(GENERATOR)


def test_earlier_versions_are_recognised():
    kept = tuple(agent for agent in GENERATOR.agents if agent.agent_name != REPAIRER)
    assert is_generator(GENERATOR.model_copy(update={"agents": kept}))
    assert not is_generator(GENERATOR.model_copy(update={"agents": kept[1:]}))


@pytest.mark.parametrize("agent", [*MAKERS, REPAIRER])
def test_an_agent_that_writes_is_shown_all_that_it_reads(agent):
    shown = set(GENERATOR.exposure[agent])
    assert shown >= {"format_card", "action_plan", "plan_comments"}
    # The approved plan is there because it was approved.
    assert shown >= set(STEP_OF[agent].reads) - {APPROVAL, "bundle"}


def test_inputs_are_declared_before_and_outputs_are_tools():
    for step in STEPS:
        assert step.writes in GENERATOR.variables
        writers = GENERATOR.variables[step.writes].writers or ()
        called = (*GENERATOR.tools, *GENERATOR.lifecycle_tools)
        tools = {item.function for item in called if item.agent == step.agent}
        triggers = getattr(GENERATOR.variables[step.writes].source, "triggers", ())
        by_answer = {trigger.tool for trigger in triggers if trigger.type == "ui_response"}
        assert tools & {*writers, *by_answer}, step.agent


@pytest.mark.parametrize("agent", GENERATOR.agents, ids=lambda agent: agent.agent_name)
def test_prompts_name_wrapper_keys_and_never_agents(agent):
    """Section 7.1: what is read is named by its key, not by who made it."""
    text = "\n".join(section.content for section in agent.prompt_sections)
    for other in GENERATOR.agents:
        assert other.agent_name not in text
    step = next(item for item in STEPS if item.agent == agent.agent_name)
    for key in step.keys:
        assert key in text
    exposed = set(GENERATOR.exposure.get(agent.agent_name, ()))
    keys = {
        "pattern_selection": "PatternSelection",
        "workflow_strategy": "WorkflowStrategy",
        "technical_blueprint": "TechnicalBlueprint",
        "action_plan": "ActionPlan",
    }
    for variable, key in keys.items():
        if variable in exposed and agent.agent_name != "DownloadAgent":
            assert f"{key} from {variable}" in text
