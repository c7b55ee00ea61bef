"""What a plan says that no other test covers: who draws it, and what it becomes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from support.generator_play import ANSWERS
from support.plan_play import complete_data, plan_of, planned_agent, planned_tool
from weft.generator.compile.compiler import compile_drafts
from weft.generator.designer import DesignerModel
from weft.generator.forms.form import form_plan, read_form
from weft.generator.plans.diagram import plan_drawing
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
    """Designs as the designer does, and draws another diagram."""

    async def reply(self, request: ModelRequest, on_text: Any = None) -> ModelReply:
        made = await super().reply(request, on_text)
        drawn = request.agent == "ProjectOverviewAgent"
        return replace(made, text=json.dumps(DRAWN)) if drawn else made


async def test_a_person_reads_agent_message_and_sees_the_diagram_of_the_plan():
    generator = read_package(shipped_folder() / "Generator")
    async with host_for(generator.spec, _Drawing(), code=generator.code) as host:
        run = await host.start("Generator", scope=ME, message="Check invoices step by step.")
        await host.settled(run, scope=ME)
        [form] = await host.requests(scope=ME, run=run)
        await host.deliver(run, Answer(form.id, ANSWERS), scope=ME)
        await host.settled(run, scope=ME)
        [approval] = await host.requests(scope=ME, run=run)
        assert approval.tool == "mermaid_sequence_diagram"
        shown = dict(approval.payload)
    assert shown["message"] == DRAWN["agent_message"]
    assert shown["diagram"].startswith("sequenceDiagram\n    title ")
    assert "never" not in shown["diagram"]
    assert shown["legend"][0] == "M1: Clerk"
    assert shown["open"]


def test_a_diagram_has_the_workflow_name_of_the_strategy():
    data = complete_data()
    data["WorkflowStrategy"]["workflow_name"] = "Night Desk"
    diagram = plan_of(data).diagram
    assert diagram.workflow_name == "Night Desk"
    assert "    title Night Desk\n" in diagram.mermaid_diagram


STEPS = """\
workflow: Desk
description: Answers letters.
steps:
  - {name: Writer, by: agent, task: Write an answer., outcomes: {done: Head}}
  - {name: Head, by: person, who: "role:head", outcomes: {fine: end, again: Writer}}
"""


def test_the_diagram_draws_the_role_that_answers():
    plan = form_plan(read_form("form.yaml", STEPS))
    diagram = plan.diagram.mermaid_diagram
    assert "actor n1 as role#58;head" in diagram
    assert "n3->>n1: " in diagram
    assert "n3->>n0: " not in diagram, "the user of the run is not asked"
    assert "role:head" in plan_drawing(plan)


@pytest.mark.parametrize("mode", ["image", None])
def test_generation_mode_is_in_the_role(mode):
    data = complete_data()
    painter = planned_agent("Painter", agent_type="generator", generation_mode=mode)
    data["ModuleAgents"][0]["agents"].append(painter)
    data["WorkflowStrategy"]["modules"][0]["agents_needed"] = [
        agent["agent_name"] for agent in data["ModuleAgents"][0]["agents"]
    ]
    [draft] = compile_drafts(plan_of(data))
    [made] = [agent for agent in draft.spec.agents if agent.agent_name == "Painter"]
    text = "\n".join(section.content for section in made.prompt_sections)
    assert ("image" in text) == (mode is not None)


def test_tool_without_a_form_refuses():
    data = complete_data()
    tool = planned_tool("look_up_price", purpose="Look a price up.")
    data["ModuleAgents"][0]["agents"][1]["agent_tools"] = [tool]
    [draft] = compile_drafts(plan_of(data))
    assert "raise Refuse(" in draft.code["tools/look_up_price.py"]
    assert any("look_up_price" in note for note in draft.notes)
