"""What came of every element of a plan, against the matrix of seed 003, section 14."""

import json
from typing import Any, cast

from support.plan_play import complete_data, plan_of
from weft.generator.plans.plan import plan_hash
from weft.generator.steps import STEP_OF
from weft.generator.traceability import MATRIX, traceability

#: Seed 003, section 14, with the remarks in brackets.
SEED = """
| `workflow_name` | All | All config files |
| `modules[].module_name` | AgentsAgent, OrchestratorAgent | agents.json, orchestrator.json |
| `modules[].pattern_id` | HandoffsAgent | handoffs.json |
| `agents[].agent_name` | AgentsAgent, HandoffsAgent, ToolsManagerAgent \
| agents.json, handoffs.json, tools.json |
| `agents[].agent_type` | AgentsAgent | agents.json (role section) |
| `agents[].objective` | AgentsAgent | agents.json (prompt_sections) |
| `agents[].agent_tools[]` | ToolsManagerAgent, AgentToolsFileGenerator | tools.json, tools/*.py |
| `agents[].lifecycle_tools[]` | HookAgent | hooks/*.py |
| `agents[].human_interaction` | AgentsAgent, HandoffsAgent | agents.json, handoffs.json |
| `global_context_variables[]` | ContextVariablesAgent | context_variables.json |
| `ui_components[]` | ToolsManagerAgent, UIFileGenerator | tools.json, tools/*.jsx |
| `before_chat_lifecycle` | HookAgent | hooks/before_chat.py |
| `after_chat_lifecycle` | HookAgent | hooks/after_chat.py |
| `trigger` | OrchestratorAgent | orchestrator.json (startup_mode) |
| `initiated_by` | OrchestratorAgent | orchestrator.json |
| `human_in_loop` | OrchestratorAgent, AgentsAgent | orchestrator.json, agents.json |
"""

AGENTS = """{
  "agents": [
    {
      "agent_name": "RouterAgent",
      "prompt_sections": [
        {
          "id": "role",
          "content": "You are a router in Module 1: Request Classification."
        },
        {
          "id": "objective",
          "content": "Route requests."
        }
      ],
      "agent_type": "router",
      "human_interaction": "context"
    },
    {
      "agent_name": "TechSpecialist",
      "prompt_sections": [
        {
          "id": "role",
          "content": "The user talks to you after the RouterAgent."
        }
      ]
    }
  ]
}
"""
FILES = {
    "agents.json": AGENTS,
    "handoffs.json": """{"handoff_rules": [
{"source_agent": "RouterAgent",
"target_agent": "user"},
{"source_agent": "TechSpecialist",
"target_agent": "terminate"}]}
""",
    "orchestrator.yaml": "workflow_name: CustomerSupportRouter\ntrigger:\n  type: chat\n",
    "tools.json": '{"tools": [{"agent": "RouterAgent",\n"function": "analyze_request"},\n'
    '{"agent": "RouterAgent", "ui": {"component": "ClarificationRequest"}}]}\n',
    "tools/analyze_request.py": "# analyze\nasync def analyze_request(text: str) -> str: ...\n",
    "tools/ClarificationRequest.jsx": "export default function ClarificationRequest() {}\n",
    "hooks/before_chat.py": "async def initialize_context(context_variables): ...\n",
    "context_variables.json": '{"definitions": {\n"current_domain": {}}}\n',
    "README.md": "RouterAgent CustomerSupportRouter\n",
}


def traced(data: dict[str, Any] | None = None, files: dict[str, str] = FILES) -> dict[str, Any]:
    """Return lines by file for each path of a plan."""
    found = traceability(plan_of(data or complete_data()), files)
    return {
        item["path"]: {entry["file"]: entry["lines"] for entry in item["lines"]}
        for item in cast("list[dict[str, Any]]", found["elements"])
    }


def test_the_matrix_is_that_of_the_seed():
    rows = [
        [cell.strip() for cell in item.strip("| ").split("|")] for item in SEED.strip().split("\n")
    ]
    wanted = [(name.strip("`"), agents, files) for name, agents, files in rows]
    for row, (element, agents, files) in zip(MATRIX, wanted, strict=True):
        assert row.element == element
        assert agents in ("All", ", ".join(row.agents))
        assert files.partition(" (")[0] in ("All config files", ", ".join(row.files))


def test_the_matrix_names_agents_there_are():
    assert {agent for row in MATRIX for agent in row.agents} <= STEP_OF.keys()
    assert len(MATRIX[0].agents) == 10
    assert len(MATRIX[0].files) == 7


def test_every_kind_of_element_is_listed_with_the_agents_that_use_it():
    data = complete_data()
    lifecycle = {"name": "say_goodbye", "purpose": "Thank.", "trigger": "after_chat"}
    data["TechnicalBlueprint"]["after_chat_lifecycle"] = lifecycle
    data["ModuleAgents"][0]["agents"][0]["lifecycle_tools"] = [
        {"name": "count", "purpose": "Count.", "trigger": "after_agent"}
    ]
    plan = plan_of(data)
    found = traceability(plan, {})
    elements = cast("list[dict[str, Any]]", found["elements"])
    assert list(dict.fromkeys(element["element"] for element in elements)) == [
        item.element for item in MATRIX
    ]
    rows = {row.element: list(row.agents) for row in MATRIX}
    assert all(element["agents"] == rows[element["element"]] for element in elements)
    assert all(element["lines"] == [] for element in elements)
    assert found["plan"] == plan_hash(plan)


def test_lines_are_found_in_the_files_the_matrix_names():
    found = traced()
    router, tech = "ModuleAgents[0].agents[0]", "ModuleAgents[0].agents[1]"
    assert found["WorkflowStrategy.workflow_name"] == {"orchestrator.yaml": [1]}
    assert found["WorkflowStrategy.modules[0].module_name"] == {"agents.json": [8]}
    assert found["WorkflowStrategy.modules[0].pattern_id"] == {"handoffs.json": [2, 4]}
    assert found["WorkflowStrategy.trigger"] == {"orchestrator.yaml": [2]}
    assert found["WorkflowStrategy.initiated_by"] == {}
    assert found["WorkflowStrategy.human_in_loop"] == {"agents.json": [16]}
    assert found[f"{router}.agent_name"] == {
        "agents.json": [4, 23],
        "handoffs.json": [2],
        "tools.json": [1, 3],
    }
    assert found[f"{router}.agent_tools[0]"] == {
        "tools.json": [2],
        "tools/analyze_request.py": [2],
    }
    assert found[f"{router}.agent_tools[1]"] == {}
    assert found["TechnicalBlueprint.ui_components[0]"] == {
        "tools.json": [3],
        "tools/ClarificationRequest.jsx": [1],
    }
    assert found["TechnicalBlueprint.global_context_variables[0]"] == {
        "context_variables.json": [2]
    }
    assert found["TechnicalBlueprint.before_chat_lifecycle"] == {"hooks/before_chat.py": [1]}
    assert found[f"{tech}.objective"] == {}


def test_agent_conditions_apply_to_its_own_entries_only():
    found = traced()
    router, tech = "ModuleAgents[0].agents[0]", "ModuleAgents[0].agents[1]"
    assert found[f"{router}.agent_type"] == {"agents.json": [7, 15]}
    assert found[f"{tech}.agent_type"] == {"agents.json": [22]}
    assert found[f"{router}.objective"] == {"agents.json": [12]}
    assert found[f"{router}.human_interaction"] == {"agents.json": [16], "handoffs.json": [3]}
    assert found[f"{tech}.human_interaction"] == {}


def test_texts_are_found_as_files_write_them():
    data = complete_data()
    said = 'Say "{name}" é slowly.'
    data["ModuleAgents"][0]["agents"][0]["objective"] = said
    prompt = said.replace("{", "{{").replace("}", "}}")
    for written in (json.dumps(said), json.dumps(prompt), json.dumps(said, ensure_ascii=False)):
        files = {"agents.json": f'{{"agent_name": "RouterAgent",\n"content": {written}}}'}
        found = traced(data, files)["ModuleAgents[0].agents[0].objective"]
        assert found == {"agents.json": [2]}


def test_packages_of_a_pack_are_distinguished_by_folder():
    found = traced(files={f"Desk/{path}": text for path, text in FILES.items()})
    assert found["TechnicalBlueprint.before_chat_lifecycle"] == {"Desk/hooks/before_chat.py": [1]}
    assert found["WorkflowStrategy.workflow_name"] == {"Desk/orchestrator.yaml": [1]}
