"""What a plan says that no other test speaks of: what it is called, and who draws it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from support.generator_plans import agent, compiled, plan
from support.plan_play import complete_data, plan_of
from support.source_play import declared, variable
from weft.generator.code.hooks import hook_files
from weft.generator.code.tools import tool_files
from weft.generator.compile.compiler import compile_spec
from weft.generator.designer.model import DesignerModel
from weft.generator.split import pack_of, workflow_plans
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.ports.model import ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.testing import host_for

ME = Scope("shop", "ada")
DRAWN = {
    "MermaidSequenceDiagram": {
        "workflow_name": "Another",
        "mermaid_diagram": "graph LR\n  never-->shown",
        "legend": ["none"],
    },
    "agent_message": "Look at this plan.",
}


class _Drawing(DesignerModel):
    """Designs as ever, and draws what it likes."""

    async def reply(self, request: ModelRequest, on_text: Any = None) -> ModelReply:
        made = await super().reply(request, on_text)
        drawn = request.agent == "ProjectOverviewAgent"
        return replace(made, text=json.dumps(DRAWN)) if drawn else made


async def test_a_person_reads_agent_message_and_sees_the_diagram_of_the_plan_and_no_other():
    generator = read_package(shipped_folder() / "Generator")
    async with host_for(generator.spec, _Drawing(), code=generator.code) as host:
        run = await host.start("Generator", scope=ME, message="Check invoices step by step.")
        await host.settled(run, scope=ME)
        [form] = await host.requests(scope=ME, run=run)
        await host.deliver(run, Answer(form.id, {}), scope=ME)
        await host.settled(run, scope=ME)
        [approval] = await host.requests(scope=ME, run=run)
        assert approval.tool == "mermaid_sequence_diagram"
        shown = dict(approval.payload)
    assert shown["message"] == DRAWN["agent_message"]
    assert shown["diagram"].startswith("sequenceDiagram\n    title Invoice Processing\n")
    assert "never" not in shown["diagram"]
    assert shown["legend"] == ["M1: Invoice Processing"]


def test_a_diagram_has_the_workflow_name_of_the_strategy():
    data = complete_data()
    data["WorkflowStrategy"]["workflow_name"] = "Night Desk"
    diagram = plan_of(data).diagram
    assert diagram.workflow_name == "Night Desk"
    assert "    title Night Desk\n" in diagram.mermaid_diagram


def test_the_description_of_each_workflow_is_that_of_its_package_and_in_the_pack():
    pipeline = {"pattern_id": 6, "pattern_name": "Pipeline"}
    pair = [
        {"name": "Intake", "role": "primary", "description": "Takes orders.", **pipeline},
        {"name": "Check", "role": "dependent", "description": "Checks orders.", **pipeline},
    ]
    made = plan(
        (6, [agent("Alpha")]), (6, [agent("Beta")]), workflows=pair, owners=["Intake", "Check"]
    )
    specs = [compile_spec(each)[0] for each in workflow_plans(made)]
    assert [spec.orchestrator.description for spec in specs] == ["Takes orders.", "Checks orders."]
    pack = pack_of(made)
    assert pack is not None
    assert [workflow.description for workflow in pack.workflows] == [
        "Takes orders.",
        "Checks orders.",
    ]


def test_generation_mode_is_a_sentence_in_the_role():
    painter = agent("Painter", agent_type="generator", generation_mode="image")
    spec, _ = compiled(plan((6, [painter, agent("Editor")])))
    roles = [each.prompt_sections[0].content for each in spec.agents]
    assert "What you make is image." in roles[0]
    assert "What you make" not in roles[1]


def services() -> dict[str, Any]:
    """Return a variable for each of two services, read once when the run begins."""
    return {
        f"{name.lower()}_record": variable(
            "any", "external", service=name, operation="read", url="https://example.org/"
        )
        for name in ("Crm", "Erp")
    }


@pytest.mark.parametrize("integration", ["Crm", "Erp", None])
def test_the_integration_of_a_hook_or_lifecycle_tool_is_read_anew_at_its_boundary(integration):
    named = {"file": "load.py", "function": "load", "integration": integration}
    tool = {"tool_type": "Lifecycle_Tool", "trigger": "before_agent", "agent": "A", **named}
    hooked = declared(services(), hooks=[{"hook_type": "before_chat", **named}])
    called = declared(services(), lifecycle_tools=[tool])
    for text in (hook_files(hooked)["hooks/load.py"], tool_files([], called)["tools/load.py"]):
        read = {item for item in ("Crm", "Erp") if f'refresh("{item.lower()}_record")' in text}
        assert read == ({integration} if integration else set())
