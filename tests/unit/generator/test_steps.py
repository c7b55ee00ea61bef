"""The sixteen agents of the Generator, and the order their inputs ask for."""

import pytest

from weft.errors import UsageError
from weft.generator.steps import STEPS, Step, is_generator, ordered
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
}


def test_the_steps_are_those_of_the_seed():
    assert {step.agent: (step.output, step.keys) for step in STEPS} == SECTION_2


def test_every_step_comes_after_those_whose_parts_it_reads():
    made: set[str] = set()
    for step in ordered(STEPS):
        assert made.issuperset(step.reads), step.agent
        made.add(step.writes)


def test_the_order_does_not_depend_on_how_the_steps_are_listed():
    again = ordered(tuple(reversed(STEPS)))
    made: set[str] = set()
    for step in again:
        assert made.issuperset(step.reads)
        made.add(step.writes)
    assert len(again) == 16


def test_the_seeds_own_inputs_are_circular_and_refused():
    tools = Step("ToolsManagerAgent", "tools", ("variables",))
    variables = Step("ContextVariablesAgent", "variables", ("tools",))
    with pytest.raises(UsageError, match="wait for each other"):
        ordered((tools, variables))


def test_unavailable_object_is_refused():
    with pytest.raises(UsageError, match="nobody makes variables"):
        ordered((Step("ToolsManagerAgent", "tools", ("variables",)),))


def test_the_package_has_these_agents_in_this_order():
    assert [agent.agent_name for agent in GENERATOR.agents] == [
        step.agent for step in ordered(STEPS)
    ]
    assert {item.agent: item.model for item in GENERATOR.registry} == {
        step.agent: step.output for step in STEPS
    }
    assert is_generator(GENERATOR)


def test_inputs_are_declared_before_and_outputs_are_tools():
    for step in STEPS:
        assert step.writes in GENERATOR.variables
        writers = GENERATOR.variables[step.writes].writers or ()
        called = (*GENERATOR.tools, *GENERATOR.lifecycle_tools)
        tools = {item.function for item in called if item.agent == step.agent}
        triggers = getattr(GENERATOR.variables[step.writes].source, "triggers", ())
        by_answer = {trigger.tool for trigger in triggers if trigger.type == "ui_response"}
        assert tools & {*writers, *by_answer}, step.agent


@pytest.mark.parametrize("agent", GENERATOR.agents, ids=lambda it: it.agent_name)
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
