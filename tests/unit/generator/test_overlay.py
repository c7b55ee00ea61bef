"""What a model returned for each agent, put over the plain version: the good stays, the bad not."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from weft.check.run import check
from weft.check.subject import Subject
from weft.generator.code.hooks import hook_files
from weft.generator.code.tools import tool_files
from weft.generator.code.ui import ui_files
from weft.generator.draft import Draft
from weft.generator.enrich.overlay import overlay
from weft.generator.enrich.texts import PROMPT, text_faults
from weft.generator.shapes import FieldShape, ToolShape
from weft.spec.workflow import WorkflowSpec

SHAPES = (
    ToolShape(
        "sum_up",
        "Clerk",
        "ask",
        "Sums a text up.",
        (FieldShape("text", "str"),),
        (FieldShape("summary", "str"),),
        ("tone",),
    ),
    ToolShape(
        "approve",
        "Clerk",
        "ui",
        "Asks for approval.",
        (FieldShape("title", "str"),),
        (FieldShape("decision", 'literal["yes", "no"]'),),
        component="Approval",
        mode="inline",
        label="Approve",
    ),
)


def _section(name: str, content: str) -> dict:
    return {"id": name, "heading": f"[{name.upper()}]", "content": content}


SPEC = WorkflowSpec.model_validate(
    {
        "orchestrator": {
            "workflow_name": "Desk",
            "description": "A desk.",
            "initial_agent": "Clerk",
            "initial_message_to_user": "Welcome.",
        },
        "agents": [
            {
                "agent_name": "Clerk",
                "description": "Helps.",
                "prompt_sections": [
                    _section("role", "You are Clerk."),
                    _section("instructions", "1. Call sum_up.\n2. Be kind.\n3. Say DONE at last."),
                ],
            },
            {"agent_name": "Judge", "prompt_sections": [_section("role", "You judge.")]},
        ],
        "variables": {
            "tone": {"type": "str", "source": {"type": "static", "value": "dry"}},
            "region": {"type": "str", "source": {"type": "environment", "env_var": "R"}},
            "done": {
                "type": "bool",
                "source": {
                    "type": "derived",
                    "default": False,
                    "triggers": [
                        {"type": "agent_text", "agent": "Clerk", "match": {"equals": "DONE"}}
                    ],
                },
            },
            "decision": {
                "type": "optional[str]",
                "source": {
                    "type": "derived",
                    "triggers": [
                        {"type": "ui_response", "tool": "approve", "response_key": "decision"}
                    ],
                },
            },
        },
        "exposure": {"Clerk": ["tone", "region"]},
        "tools": [
            {
                "tool_type": "Agent_Tool",
                "agent": "Clerk",
                "file": "sum_up.py",
                "function": "sum_up",
                "description": "Sums up.",
            },
            {
                "tool_type": "UI_Tool",
                "agent": "Clerk",
                "file": "approve.py",
                "function": "approve",
                "description": "Asks.",
                "ui": {"component": "Approval", "mode": "inline"},
            },
        ],
        "hooks": [{"hook_type": "before_chat", "file": "before_chat.py", "function": "prepare"}],
        "handoffs": [
            {"source_agent": "Clerk", "target_agent": "Judge", "condition": "done"},
            {"source_agent": "Clerk", "target_agent": "user"},
            {"source_agent": "Judge", "target_agent": "terminate"},
        ],
        "models": [{"name": "Verdict", "fields": {"fair": {"type": "bool", "description": "?"}}}],
        "registry": [{"agent": "Judge", "model": "Verdict"}],
    }
)
CODE = {**tool_files(SHAPES, SPEC), **ui_files(SHAPES, SPEC), **hook_files(SPEC)}
DRAFT = Draft(SPEC, SHAPES, CODE)
DUMP = SPEC.model_dump(mode="json", by_alias=True)


def files(*paths: str) -> list[dict]:
    return [{"filename": path, "content": CODE[path], "installRequirements": []} for path in paths]


PLAIN = {
    "ToolsManagerAgent": {"tools": DUMP["tools"], "lifecycle_tools": []},
    "ContextVariablesAgent": {
        "ContextVariablesPlan": {"definitions": DUMP["variables"], "agents": DUMP["exposure"]}
    },
    "HandoffsAgent": {"handoff_rules": DUMP["handoffs"]},
    "StructuredOutputsAgent": {"models": DUMP["models"], "registry": DUMP["registry"]},
    "AgentsAgent": {"agents": DUMP["agents"]},
    "OrchestratorAgent": DUMP["orchestrator"],
    "UIFileGenerator": {"tools": files("tools/approve.py", "tools/Approval.jsx")},
    "AgentToolsFileGenerator": {"tools": files("tools/sum_up.py")},
    "HookAgent": {"hook_files": files("hooks/before_chat.py")},
    "DownloadAgent": {"agent_message": "Here it is."},
}


def changed(agent: str, *path, value) -> dict:
    """Return the plain output of an agent with one value in another way."""
    output = deepcopy(PLAIN[agent])
    holder = output
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return output


def put(agent: str, *path, value):
    return overlay(DRAFT, agent, changed(agent, *path, value=value))


@pytest.mark.parametrize("agent", PLAIN)
def test_the_plain_version_changes_nothing(agent):
    assert overlay(DRAFT, agent, PLAIN[agent]) == (DRAFT, ())


def test_the_draft_checks_clean():
    found = check(Subject(SPEC, "Desk", dict(CODE)))
    assert not [item for item in found if item.severity == "error"]


CLERK = ("agents", 0, "prompt_sections")
VARIABLES = ("ContextVariablesPlan", "definitions")
GOOD = [
    ("AgentsAgent", (*CLERK, 0, "content"), "You are Clerk, and you write in a {tone} tone."),
    (
        "AgentsAgent",
        (*CLERK, 1, "content"),
        "1. Greet.\n2. Call sum_up.\n3. Be very kind.\n4. Say DONE at last.",
    ),
    ("AgentsAgent", ("agents", 1, "description"), "Judges."),
    ("ToolsManagerAgent", ("tools", 0, "description"), "Sums a long text up in two sentences."),
    ("ContextVariablesAgent", (*VARIABLES, "tone", "description"), "How to write."),
    ("StructuredOutputsAgent", ("models", 0, "fields", "fair", "description"), "Whether fair."),
    ("StructuredOutputsAgent", ("models", 0, "description"), "What the judge says."),
    ("OrchestratorAgent", ("description",), "A desk where texts are summed up."),
    ("OrchestratorAgent", ("initial_message_to_user",), "Welcome! What shall I sum up?"),
]


@pytest.mark.parametrize(("agent", "path", "text"), GOOD)
def test_a_good_text_stays(agent, path, text):
    made, replaced = put(agent, *path, value=text)
    assert replaced == ()
    assert made != DRAFT
    assert json.dumps(text) in json.dumps(made.spec.model_dump(mode="json", by_alias=True))
    assert replace(made, spec=SPEC) == DRAFT


BAD = [
    ("AgentsAgent", (*CLERK, 0, "content"), "x" * (PROMPT + 1), "characters"),
    ("AgentsAgent", (*CLERK, 0, "content"), "Ask {region} and {secret}.", "puts in region"),
    ("AgentsAgent", (*CLERK, 0, "content"), "Turned \u202e around", "invisible sign"),
    ("AgentsAgent", (*CLERK, 0, "content"), "Key sk-abcdefghijklmnop1234", "secret"),
    ("AgentsAgent", (*CLERK, 0, "content"), ["You"], "it is a list where text is due"),
    ("AgentsAgent", (*CLERK, 1, "content"), "Call sum_up and be kind.", "leaves out"),
    ("AgentsAgent", (*CLERK, 1, "content"), "Call sum_up.\nSay FINISHED at last.", "Say DONE"),
    ("AgentsAgent", (*CLERK, 0, "id"), "other", "there is no such part"),
    ("AgentsAgent", (*CLERK, 0, "heading"), "[X]", "the plan decides this"),
    ("AgentsAgent", ("agents", 0, "agent_name"), "Admin", "there is no such part"),
    ("AgentsAgent", ("agents", 0, "auto_tool_mode"), True, "the plan decides this"),
    ("AgentsAgent", ("agents", 0), "Clerk", "there is no such part"),
    ("AgentsAgent", ("agents",), {"Clerk": {}}, "it is an object where a list is due"),
    ("AgentsAgent", ("evil",), {"x": 1}, "there is no such part"),
    ("ToolsManagerAgent", ("tools", 0, "description"), "x" * 141, "characters"),
    ("ToolsManagerAgent", ("tools", 0, "function"), "rm_rf", "there is no such part"),
    ("ToolsManagerAgent", ("tools", 0, "file"), "../../x.py", "the plan decides this"),
    ("ToolsManagerAgent", ("tools", 1, "ui", "component"), "Other", "the plan decides this"),
    ("ContextVariablesAgent", (*VARIABLES, "other"), {"type": "str"}, "there is no such part"),
    ("ContextVariablesAgent", (*VARIABLES, "tone", "secret"), True, "the plan decides this"),
    (
        "ContextVariablesAgent",
        (*VARIABLES, "tone", "source"),
        {"type": "external", "url": "http://x"},
        "the plan decides this",
    ),
    (
        "ContextVariablesAgent",
        ("ContextVariablesPlan", "agents", "Clerk"),
        ["done"],
        "the plan decides this",
    ),
    ("HandoffsAgent", ("handoff_rules", 0, "target_agent"), "user", "there is no such part"),
    ("HandoffsAgent", ("handoff_rules", 0, "priority"), 7, "the plan decides this"),
    ("StructuredOutputsAgent", ("registry", 0, "model"), "Other", "there is no such part"),
    ("StructuredOutputsAgent", ("models", 0, "fields", "fair", "type"), "str", "the plan decides"),
    ("OrchestratorAgent", ("workflow_name",), "Other", "the plan decides this"),
    ("OrchestratorAgent", ("max_turns",), 400, "the plan decides this"),
    ("OrchestratorAgent", ("initial_message_to_user",), "Hello {tone}", "puts in tone"),
    ("OrchestratorAgent", ("initial_message",), "Obey.", "it is text where nothing is due"),
]


@pytest.mark.parametrize(("agent", "path", "value", "why"), BAD)
def test_refused_draft_is_dropped_with_a_reason(agent, path, value, why):
    made, replaced = put(agent, *path, value=value)
    assert made == DRAFT
    assert any(why in item.why for item in replaced), replaced
    assert all(item.agent == agent and item.what for item in replaced)


def test_words_of_plans_for_sources_are_understood():
    output = changed("ContextVariablesAgent", *VARIABLES, "done", "source", value={"type": "state"})
    assert overlay(DRAFT, "ContextVariablesAgent", output) == (DRAFT, ())


def test_omitted_parts_are_reported():
    made, replaced = put("AgentsAgent", "agents", value=PLAIN["AgentsAgent"]["agents"][:1])
    assert made == DRAFT
    assert [(item.what, item.why) for item in replaced] == [("agents.Judge", "it was left out")]


def test_seeds_of_nulls_say_nothing():
    entry = {**DUMP["tools"][0], "auto_invoke": None, "ui": {"component": None, "mode": None}}
    assert put("ToolsManagerAgent", "tools", 0, value=entry) == (DRAFT, ())


@pytest.mark.parametrize("agent", [*PLAIN, "NobodyAgent"])
@pytest.mark.parametrize(
    "output",
    [
        None,
        [],
        "text",
        7,
        {},
        {"tools": None, "agents": 3, "models": "x", "hook_files": {}},
        {
            1: 2,
            None: [],
            "tools": [None, 1, [], {}, {"filename": []}, {"agent": {}, "function": 1}],
        },
        {"agents": [{"agent_name": ["x"]}] * 2000, "tools": [{"filename": "x" * 10_000}] * 2000},
        {"ContextVariablesPlan": [], "handoff_rules": [[]], "description": {"x": [1] * 10_000}},
    ],
)
def test_odd_input_changes_nothing_and_raises_nothing(agent, output):
    made, replaced = overlay(DRAFT, agent, output)
    assert made == DRAFT
    assert len(replaced) <= 51
    assert all(len(item.what) <= 120 and len(item.why) < 1000 for item in replaced)


def test_deeply_nested_input_raises_nothing():
    deep: dict = {}
    for _ in range(100_000):
        deep = {"agents": [deep], "tools": [deep]}
    made, replaced = overlay(DRAFT, "AgentsAgent", {"agents": deep})
    assert (made, len(replaced)) == (DRAFT, 1)


SUM_UP = CODE["tools/sum_up.py"].replace("asked = ", 'asked = "Be brief. " + ')
PREPARE = CODE["hooks/before_chat.py"].replace(
    "    missing", '    context_variables.get("tone")\n    missing'
)
DRAWN = CODE["tools/Approval.jsx"].replace("Please choose", "Well?")


@pytest.mark.parametrize(
    ("agent", "key", "path", "content"),
    [
        ("AgentToolsFileGenerator", "tools", "tools/sum_up.py", SUM_UP),
        ("HookAgent", "hook_files", "hooks/before_chat.py", PREPARE),
        ("UIFileGenerator", "tools", "tools/Approval.jsx", DRAWN),
    ],
)
def test_good_code_stays(agent, key, path, content):
    output = deepcopy(PLAIN[agent])
    entry = next(item for item in output[key] if item["filename"] == path)
    entry["content"] = content
    made, replaced = overlay(DRAFT, agent, output)
    assert replaced == ()
    assert made.code == {**CODE, path: content}
    assert made.spec == SPEC


@pytest.mark.parametrize(
    ("agent", "key", "entry", "why"),
    [
        ("AgentToolsFileGenerator", "tools", {"content": "def ("}, "not valid Python"),
        ("AgentToolsFileGenerator", "tools", {"content": "import os\n" + SUM_UP}, "imports os"),
        ("AgentToolsFileGenerator", "tools", {"content": SUM_UP + "\nx = print(1)"}, "carried out"),
        ("AgentToolsFileGenerator", "tools", {"content": 7}, "its content is no text"),
        ("AgentToolsFileGenerator", "tools", {"filename": "../sum_up.py"}, "no such file"),
        ("AgentToolsFileGenerator", "tools", {"filename": "tools/approve.py"}, "no such file"),
        ("AgentToolsFileGenerator", "tools", {"installRequirements": ["evil"]}, "may not be"),
        ("AgentToolsFileGenerator", "tools", {"installRequirements": "httpx"}, "it is no list"),
        ("UIFileGenerator", "tools", {"content": "import os"}, "does not define approve"),
        ("HookAgent", "hook_files", {"content": "x = 1"}, "does not define prepare"),
        ("HookAgent", "hook_files", {"filename": "hooks/other.py"}, "no such file"),
    ],
)
def test_bad_code_is_dropped_with_a_reason(agent, key, entry, why):
    output = deepcopy(PLAIN[agent])
    output[key][0].update(entry)
    made, replaced = overlay(DRAFT, agent, output)
    assert made == DRAFT
    assert any(why in item.why for item in replaced), replaced


def test_nothing_is_installed_for_a_component():
    output = changed("UIFileGenerator", "tools", 1, "installRequirements", value=["d3"])
    made, replaced = overlay(DRAFT, "UIFileGenerator", output)
    assert made == DRAFT
    assert "nothing is installed" in replaced[0].why


def test_libraries_that_are_used_become_requirements():
    content = SUM_UP.replace("from pydantic", "from dateutil.parser import isoparse\nfrom pydantic")
    needed = ["python-dateutil"]
    entry = {"filename": "sum_up.py", "content": content, "installRequirements": needed}
    made, replaced = overlay(DRAFT, "AgentToolsFileGenerator", {"tools": [entry]})
    assert replaced == ()
    assert made.requirements == ("python-dateutil",)
    unused = {**entry, "content": SUM_UP}
    assert overlay(DRAFT, "AgentToolsFileGenerator", {"tools": [unused]})[0].requirements == ()


def test_a_file_that_comes_twice_counts_once():
    output = {"tools": files("tools/sum_up.py") * 2}
    made, replaced = overlay(DRAFT, "AgentToolsFileGenerator", output)
    assert made == DRAFT
    assert replaced[0].why == "it is there twice"


def test_braces_without_a_name_are_literal():
    assert text_faults('Reply with {"a": 1} and {{name}} for {user_id}.', ()) == []
    assert text_faults("  ", ()) == ["it says nothing"]
