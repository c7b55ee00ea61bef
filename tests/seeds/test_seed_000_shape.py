"""Seed 000, lines 72-177 and 209-211: the file itself, verbatim, and what its parts are for."""

import json

import pytest

from seeds import verbatim
from seeds.seed_play import (
    ADA,
    NAME,
    agents,
    answer,
    derived,
    errors,
    findings,
    finish,
    handoffs,
    opened,
    play,
    read,
    say,
    static,
    variables,
    write_package,
)
from support.run_play import linked
from weft.context.audience import Audience
from weft.errors import CheckFailed
from weft.packages.reader import read_package
from weft.testing.models import ScriptedModel, call
from weft.wire.events import user_event_data

#: What the example exposes and does not define.
UNDECLARED = {
    "action_plan": derived(None, type_="document"),
    "mermaid_sequence_diagram": derived("", type_="string"),
    "mermaid_diagram_ready": derived(False),
}
TOOLS = '''
from weft import use_ui_tool


async def action_plan(context_variables) -> str:
    """Show the plan, and keep it."""
    plan = {"steps": ["brew", "serve"]}
    context_variables.set("action_plan", plan)
    response = await use_ui_tool(tool_id="action_plan", payload=plan)
    return f"The user says {response['plan_acceptance']}."


def draw(context_variables) -> str:
    """Draw the plan."""
    steps = context_variables["action_plan"]["steps"]
    context_variables.set("mermaid_sequence_diagram", " -> ".join(steps))
    context_variables.set("mermaid_diagram_ready", True)
    return "drawn"
'''
#: The same tools, as long as what they would set is not declared.
QUIET = "\n".join(line for line in TOOLS.splitlines() if ".set(" not in line)
CONCEPT = ("Concepts", "autogen_ai_agents", {"ConceptOverview": "A shop for tea."})


def design(context_variables):
    """Return a package with the agents that the example names."""
    shown = {"agent": "ActionPlanArchitect", "description": "Shows the plan.", "file": "plan.py"}
    asks = {"ui": {"component": "Plan", "mode": "artifact"}, "response_schema": {"type": "object"}}
    drawn = {"agent": "ProjectOverviewAgent", "description": "Draws it.", "file": "plan.py"}
    return {
        "agents": agents(
            InterviewAgent="Ask about the project. When you know enough, say NEXT.",
            ActionPlanArchitect="Make a plan and show it.",
            ProjectOverviewAgent="Draw the plan.",
        ),
        "handoffs": handoffs(
            ("InterviewAgent", "ActionPlanArchitect", "When interview_complete is true"),
            ("InterviewAgent", "user"),
            ("ActionPlanArchitect", "ProjectOverviewAgent", "action_plan_acceptance == 'accepted'"),
            ("ActionPlanArchitect", "user"),
            ("ProjectOverviewAgent", "terminate"),
        ),
        "tools": {
            "tools": [
                {"tool_type": "UI_Tool", "function": "action_plan", **shown, **asks},
                {"tool_type": "Agent_Tool", "function": "draw", **drawn},
            ]
        },
        "tools/plan.py": TOOLS,
        "context_variables": context_variables,
    }


def completed():
    """Return the example with the names declared that it leaves open."""
    data = json.loads(verbatim.FOUR_KINDS)
    data["context_variables"]["definitions"].update(UNDECLARED)
    return design(data)


def played_design(tmp_path, **options):
    script = {
        "InterviewAgent": ["What shall it be?", "Next"],
        "ActionPlanArchitect": [call("action_plan"), "Accepted."],
        "ProjectOverviewAgent": [call("draw"), "There it is."],
    }
    after = [say("A shop."), answer({"plan_acceptance": "accepted"})]
    return play(tmp_path, completed(), script, documents=[CONCEPT], after=after, **options)


def test_the_example_is_read_and_its_undeclared_names_are_findings(tmp_path):
    """Lines 77-170, verbatim."""
    said = errors(tmp_path, {**design(verbatim.FOUR_KINDS), "tools/plan.py": QUIET})
    assert {code for code, _ in said} == {"NAME001"}
    assert [message.split('"')[1] for _, message in said] == [
        "action_plan",
        "action_plan",
        "mermaid_sequence_diagram",
        "mermaid_diagram_ready",
        "action_plan",
    ]


def test_the_example_runs_with_its_undeclared_names_declared(tmp_path):
    """Lines 77-170: all four kinds, from their sources to the prompts of three agents."""
    played = played_design(tmp_path, environment={"MONETIZATION_ENABLED": "yes"})
    assert played.row.outcome == "completed"
    assert dict(played.values) == {
        "product_tier": "beta",
        "max_items": 25,
        "concept_overview": "A shop for tea.",
        "context_aware": True,
        "monetization_enabled": True,
        "interview_complete": True,
        "action_plan_acceptance": "accepted",
        "action_plan": {"steps": ["brew", "serve"]},
        "mermaid_sequence_diagram": "brew -> serve",
        "mermaid_diagram_ready": True,
    }
    assert played.ways == [
        ("InterviewAgent", "user"),
        ("InterviewAgent", "ActionPlanArchitect"),
        ("ActionPlanArchitect", "ProjectOverviewAgent"),
        ("ProjectOverviewAgent", "terminate"),
    ]


def test_the_file_is_found_by_the_name_of_the_workflow(tmp_path):
    """Line 74: `workflows/<Workflow>/context_variables.json`."""
    folder = write_package(tmp_path, completed(), "Generator")
    assert (folder / "context_variables.json").is_file()
    model = ScriptedModel(["What shall it be?"])

    async def scenario():
        async with await opened(tmp_path, model, {}) as host:
            return await read(host, await host.start("Generator", scope=ADA, message="hi"), model)

    played = finish(scenario())
    assert (played.row.workflow, played.values["product_tier"]) == ("Generator", "beta")


def test_definitions_hold_all_kinds_and_the_source_says_which(tmp_path):
    """Line 174."""
    spec = read_package(write_package(tmp_path, completed())).spec
    kinds = {
        name: variable.source.type
        for name, variable in spec.variables.items()
        if name not in UNDECLARED
    }
    assert kinds == {
        "product_tier": "static",
        "max_items": "static",
        "concept_overview": "database",
        "context_aware": "environment",
        "monetization_enabled": "environment",
        "interview_complete": "derived",
        "action_plan_acceptance": "derived",
    }


def listed(text):
    """Return the names that stand in a prompt as variables."""
    lines = text.partition("[CONTEXT VARIABLES]\n")[2].splitlines()
    return [line.partition(" ")[0].rstrip(":") for line in lines]


def test_the_list_of_an_agent_is_what_stands_in_its_prompt(tmp_path):
    """Lines 175, 177, 209-211: each agent sees its own list, in its order, and nothing else."""
    played = played_design(tmp_path)
    agents_ = json.loads(verbatim.FOUR_KINDS)["context_variables"]["agents"]
    for agent, its in agents_.items():
        assert listed(played.prompt(agent)) == its["variables"]
    described = "concept_overview (Main project description and overview from the database)"
    assert f"{described}: A shop for tea." in played.prompt("ActionPlanArchitect")


def test_the_deprecated_field_exposures_is_replaced_by_agents(tmp_path):
    """Lines 175, 386: it is pointed out and has no effect."""
    shown = variables({"tier": static("beta"), "limit": static(3, "integer")}, {"Talker": ["tier"]})
    shown["context_variables"]["exposures"] = [{"agent": "Talker", "variables": ["limit"]}]
    files = {"agents": agents("Talker"), "context_variables": shown}
    said = [finding for finding in findings(tmp_path, files) if finding.code == "SCHEMA010"]
    assert [(finding.severity, finding.message) for finding in said] == [
        ("warning", "older spelling: exposures has no meaning any more and is not read")
    ]
    assert listed(play(tmp_path, files, ["Hi."]).prompt("Talker")) == ["tier"]


def test_variables_are_always_hidden_from_the_user_interface(tmp_path):
    """Line 176: what an end user is sent holds no name and no value of a variable."""
    played = played_design(tmp_path, environment={"CONTEXT_AWARE": "0"})
    package = read_package(tmp_path / "workflows" / NAME)
    workflow = linked(package.spec, package.code)
    audience = Audience(workflow.spec)
    sent = [user_event_data(event, played.row.run, workflow, audience) for event in played.events]
    text = json.dumps([item for item in sent if item is not None])
    assert "What shall it be?" in text
    hidden = (*workflow.spec.variables, "A shop for tea.", "brew -> serve")
    # The question that is shown is that of a tool of this name.
    assert [item for item in hidden if item in text] == ["action_plan"]


def test_a_variable_has_no_field_for_the_user_interface(tmp_path):
    """Line 176: such a field is refused."""
    shown = {"tier": {**static("beta"), "ui": {"visible": True}}}
    files = {"agents": agents("Talker"), "context_variables": variables(shown)}
    assert errors(tmp_path, files)[0][0] == "SCHEMA008"
    with pytest.raises(CheckFailed):
        play(tmp_path, files, ["never asked"])


def test_an_agent_in_the_lists_that_does_not_exist_is_a_finding(tmp_path):
    """Line 177: a template is built for agents of the workflow only."""
    shown = variables({"tier": static("beta")}, {"Talker": ["tier"], "Walker": ["tier"]})
    files = {"agents": agents("Talker"), "context_variables": shown}
    assert [code for code, _ in errors(tmp_path, files)] == ["NAME001"]
