"""The outputs of 13.1 to 13.10: every alternative validates, a wrong field is refused."""

from copy import deepcopy
from typing import Any

import pytest
from pydantic import ValidationError

from support.generator_plans import agent, code_for, compiled, plan, tool, variable
from weft.errors import UsageError
from weft.generator import output_models
from weft.generator.draft import Draft
from weft.generator.outputs import output_of
from weft.generator.steps import STEP_OF, STEPS
from weft.spec.part import Part

NOTHING = {"component": None, "mode": None}
TRIGGER = {"type": "tool_call", "tool": "find"}


def tool_entry(**given: Any) -> dict[str, Any]:
    entry = {
        "agent": "Clerk", "file": "find.py", "function": "find", "description": "Finds.",
        "tool_type": "Agent_Tool", "auto_invoke": None, "ui": NOTHING,
    }  # fmt: skip
    return {**entry, **given}


def lifecycle(trigger: str, agent: str | None, integration: str | None) -> dict[str, Any]:
    entry = tool_entry(agent=agent, tool_type="Lifecycle_Tool")
    return {**entry, "trigger": trigger, "integration": integration}


def definition(type_: str, **source: Any) -> dict[str, Any]:
    return {"type": type_, "description": "Something.", "source": source}


def model(type_: str) -> dict[str, Any]:
    field = {"type": type_, "description": "A field."}
    return {"name": "Ticket", "type": "model", "fields": {"title": field}}


ORCHESTRATION = {
    "workflow_name": "Desk",
    "max_turns": 30,
    "human_in_the_loop": True,
    "startup_mode": "AgentDriven",
    "orchestration_pattern": "DefaultPattern",
    "initial_message_to_user": None,
    "initial_message": "Begin.",
    "initial_agent": "Clerk",
    "visual_agents": ["Clerk"],
    "runtime_extensions": [
        {"kind": "api_router", "entrypoint": "workflows.Desk.tools.api:get_router"},
        {"kind": "startup_service", "entrypoint": "workflows.Desk.tools.services:Outbox"},
    ],
}
FILE = {"filename": "tools/find.py", "content": "# code", "installRequirements": ["httpx"]}
#: By output: examples that have every alternative between them.
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "ToolsManifestOutput": [
        {
            "tools": [
                tool_entry(),
                tool_entry(auto_invoke=True),
                tool_entry(
                    tool_type="UI_Tool", auto_invoke=False,
                    ui={"component": "Panel", "mode": "inline"},
                ),
                tool_entry(tool_type="UI_Tool", ui={"component": "Panel", "mode": "artifact"}),
            ],
            "lifecycle_tools": [
                lifecycle("before_chat", None, "Slack"),
                lifecycle("after_chat", None, None),
                lifecycle("before_agent", "Clerk", None),
                lifecycle("after_agent", "Clerk", None),
            ],
        }
    ],
    "ContextVariablesPlanOutput": [
        {
            "ContextVariablesPlan": {
                "definitions": {
                    "region": definition(
                        "str", type="config", env_var="REGION", default_value="eu", required=False
                    ),
                    "tier": definition(
                        "dict", type="data_reference", database="shop", collection="Tiers",
                        query_template={"user": "{user_id}"}, fields=["tier"],
                        refresh_strategy="per_phase",
                    ),
                    "case": definition(
                        "dict", type="data_entity", database=None, collection="Cases",
                        search_by="user_id", schema={"title": {"type": "str"}},
                        write_strategy="on_workflow_end",
                    ),
                    "known": definition(
                        "bool", type="computed", computation="phase != 'open'", inputs=["phase"],
                        persist_to=None,
                    ),
                    "phase": definition(
                        "str", type="state", initial="open", trigger=TRIGGER, persist=True,
                        transitions=[{"from": "open", "to": "done", "trigger": TRIGGER}],
                    ),
                    "seen": definition(
                        "int", type="state", initial=0, trigger=[TRIGGER, TRIGGER],
                        transitions=[], persist=False,
                    ),
                    "rate": definition(
                        "list", type="external", service="rates", operation="latest",
                        url="https://rates.example.com", cache={"ttl_seconds": 60},
                        auth={"type": "bearer", "secret_env": "RATES_KEY"},
                        retry={"attempts": 2},
                    ),
                },
                "agents": {"Clerk": ["region", "tier"]},
            }
        }
    ],
    "RuntimeAgentsOutput": [
        {
            "agents": [
                {
                    "agent_name": "Clerk",
                    "prompt_sections": [{"id": "role", "heading": "[ROLE]", "content": "You..."}],
                    "max_consecutive_auto_reply": 20,
                    "auto_tool_mode": on,
                    "structured_outputs_required": not on,
                }
            ]
        }
        for on in (True, False)
    ],
    "HandoffRulesOutput": [
        {
            "handoff_rules": [
                {
                    "source_agent": "Clerk",
                    "target_agent": "Helper",
                    "condition": condition,
                    "condition_scope": scope,
                    "priority": 1,
                }
            ]
        }
        for condition, scope in (("known", "pre"), ("known is true", "post"), (None, "post"))
    ],
    "OrchestrationConfigOutput": [
        ORCHESTRATION,
        {**ORCHESTRATION, "startup_mode": "UserDriven", "runtime_extensions": []},
        {**ORCHESTRATION, "startup_mode": "BackendOnly", "orchestration_pattern": "Star"},
    ],
    "StructuredModelsOutput": [
        {"models": [model(type_)], "registry": [{"agent": "Clerk", "model": "Ticket"}]}
        for type_ in ("str", "int", "list", "dict", "bool")
    ],
    "UIToolsFilesOutput": [{"tools": [FILE, {**FILE, "filename": "tools/Panel.jsx"}]}],
    "AgentToolsFilesOutput": [{"tools": [FILE, {**FILE, "installRequirements": []}]}],
    "HookFilesOutput": [
        {
            "hook_files": [
                {
                    "filename": "hooks/before_chat.py",
                    "content": "# code",
                    "trigger": "before_chat",
                    "integration": integration,
                }
            ]
        }
        for integration in ("Slack", None)
    ],
    "DownloadRequestOutput": [{"agent_message": "Your workflow bundle is ready for download!"}],
}  # fmt: skip
#: The agents of the second half.
MAKERS = [item.agent for item in STEPS if item.output in EXAMPLES]


def output_model(name: str) -> type[Part]:
    return getattr(output_models, name)


def objects(value: Any) -> list[dict[str, Any]]:
    """Return every object in a value whose keys are fixed, the outermost first."""
    if isinstance(value, list):
        return [each for one in value for each in objects(one)]
    if not isinstance(value, dict):
        return []
    named = ("definitions", "agents", "fields", "schema", "query_template")
    inner = [
        each
        for key, one in value.items()
        for each in (objects(list(one.values()) if key in named and isinstance(one, dict) else one))
        if key != "query_template"
    ]
    return [value, *inner]


@pytest.mark.parametrize(
    ("name", "example"), [(name, item) for name, several in EXAMPLES.items() for item in several]
)
def test_every_alternative_validates_and_a_wrong_field_is_refused(name, example):
    output_model(name).model_validate(example)
    for place in range(len(objects(example))):
        wrong = deepcopy(example)
        objects(wrong)[place]["unheard_of"] = 1
        with pytest.raises(ValidationError):
            output_model(name).model_validate(wrong)


@pytest.mark.parametrize("key", ["env_var", "default_value", "required"])
def test_inputs_of_a_source_are_required(key):
    source = {"type": "config", "env_var": "REGION", "default_value": "eu", "required": False}
    del source[key]
    with pytest.raises(ValidationError):
        output_models.ConfigSource.model_validate(source)


def test_every_output_of_the_second_half_has_an_example():
    assert len(MAKERS) == 10
    assert {STEP_OF[item].output for item in MAKERS} == EXAMPLES.keys()


def draft() -> Draft:
    clerk = agent(
        "Clerk",
        human_interaction="approval",
        agent_tools=[
            tool("approve_it", interaction_mode="inline"),
            tool("ask_crm", integration="Crm"),
        ],
        lifecycle_tools=[{"name": "load", "purpose": "Loads.", "trigger": "before_agent"}],
        system_hooks=[{"name": "tone", "purpose": "Keeps the tone."}],
    )
    kinds = ("config", "data_reference", "data_entity", "computed", "state", "external", "static",
             "file")  # fmt: skip
    kept = [variable(f"the_{kind}", kind) for kind in kinds]
    team = [agent("Router"), clerk, agent("Helper"), agent("Closer")]
    spec, shapes = compiled(plan((1, team), global_context_variables=kept))
    code = code_for(spec, shapes)
    code["tools/ApproveIt.jsx"] = "export default function ApproveIt() { return null }"
    code["tools/ask_crm.py"] = f"import httpx\n{code['tools/ask_crm.py']}"
    return Draft(spec, shapes, code, requirements=("httpx>=0.27", "pillow"))


@pytest.mark.parametrize("agent_name", MAKERS)
def test_reports_about_a_draft_fit_the_output_models(agent_name):
    step = STEP_OF[agent_name]
    report = output_of(agent_name, draft())
    output_model(step.output or "").model_validate(report)
    assert set(step.keys) <= set(report)


def test_reports_hold_what_the_draft_has():
    one = draft()
    manifest = output_of("ToolsManagerAgent", one)["tools"]
    assert [item["function"] for item in manifest] == [tool.function for tool in one.spec.tools]
    files = output_of("AgentToolsFileGenerator", one)["tools"]
    assert {file["filename"]: file["installRequirements"] for file in files} == {
        "tools/ask_crm.py": ["httpx>=0.27"],
        "tools/load.py": [],
        "tools/record_router_route.py": [],
    }
    shown = output_of("UIFileGenerator", one)["tools"]
    assert [item["filename"] for item in shown] == ["tools/ApproveIt.jsx", "tools/approve_it.py"]
    hooks = output_of("HookAgent", one)["hook_files"]
    assert [(hook["filename"], hook["trigger"]) for hook in hooks] == [
        ("hooks/clerk.py", "update_agent_state")
    ]
    plan_ = output_of("ContextVariablesAgent", one)["ContextVariablesPlan"]
    kinds = {name: item["source"]["type"] for name, item in plan_["definitions"].items()}
    assert kinds["the_data_reference"] == "data_reference"
    assert kinds["the_static"] == "config"


@pytest.mark.parametrize("name", ["InterviewAgent", "PatternAgent", "Nobody"])
def test_others_report_nothing(name):
    with pytest.raises(UsageError, match="reports nothing"):
        output_of(name, draft())
