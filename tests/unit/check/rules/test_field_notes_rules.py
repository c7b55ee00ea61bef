"""Mistakes that users made and that passed the check."""

import pytest

from weft.check.run import check, examine
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec


def subject(code="", variables=None, agent=None, **more):
    spec = {
        "orchestrator": {"workflow_name": "W", "initial_agent": "Clerk"},
        "agents": [{"agent_name": "Clerk", **(agent or {})}],
        "variables": variables or {},
        "tools": [
            {
                "agent": "Clerk",
                "tool_type": "Agent_Tool",
                "file": "a.py",
                "function": "save",
                "description": "Saves.",
            }
        ]
        if code
        else [],
    }
    files = {"tools/a.py": code} if code else {}
    providers = frozenset({"openai", "ollama"})
    return Subject(WorkflowSpec.model_validate(spec | more), code=files, model_providers=providers)


def found(code, checked):
    return [it for it in check(checked) if it.code == code]


def only(code, checked):
    (finding,) = found(code, checked)
    return finding


AMOUNT = {"amount": {"type": "int", "source": {"type": "derived", "default": 0}}}
UI = {
    "agent": "Clerk", "tool_type": "UI_Tool", "file": "a.py", "function": "save",
    "description": "Asks.", "ui": {"component": "Card", "mode": "inline"},
    "response_schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
}  # fmt: skip


def test_await_in_plain_function_is_found():
    finding = only("CODE003", subject("def save(x: int):\n    await x\n"))
    assert finding.message.endswith("'await' outside async function")
    assert str(finding.place) == "tools/a.py:2:5"


@pytest.mark.parametrize("read", ['.get("amout")', '["amout"]', '.get_int("amout", 1)'])
def test_read_of_unknown_variable_is_found(read):
    code = f"def save(context_variables):\n    return context_variables{read}\n"
    finding = only("NAME001", subject(code, AMOUNT))
    assert finding.message == 'save reads unknown variable "amout"'
    assert finding.hint == ('did you mean "amount"?',)
    assert str(finding.place) == "tools/a.py:2:12"


@pytest.mark.parametrize(
    "line",
    [
        'return ctx.get("amount")',
        'return other.get("amout")',
        'return ctx["user_id"]',
        'ctx["amount"] = 1',
        "return ctx.get(name)",
    ],
)
def test_other_reads_are_not_found(line):
    code = f"from weft import Context\n\n\ndef save(ctx: Context):\n    {line}\n"
    assert found("NAME001", subject(code, AMOUNT)) == []


def test_read_in_helper_is_found_once():
    code = (
        "def helper(context_variables):\n    return context_variables['amout']\n\n\n"
        "def save(context_variables):\n    return helper(context_variables)\n\n\n"
        "def load(context_variables):\n    return helper(context_variables)\n"
    )
    tools = [
        {
            "agent": "Clerk",
            "tool_type": "Agent_Tool",
            "file": "a.py",
            "function": name,
            "description": "Saves.",
        }
        for name in ("save", "load")
    ]
    assert only("NAME001", subject(code, {}, tools=tools)).hint[0].startswith("declare")


@pytest.mark.parametrize(
    "body",
    [
        'return use_ui_tool("save", {})',
        'use_ui_tool("save", {})\n    return 1',
        'return use_ui_tool("save", {})["ok"]',
        'if True:\n        return use_ui_tool("save", {})',
        'match 1:\n        case 1:\n            return use_ui_tool("save", {})',
    ],
)
def test_unawaited_answer_is_found(body):
    code = f"from weft import use_ui_tool\n\n\nasync def save():\n    {body}\n"
    finding = only("UI011", subject(code, tools=[UI]))
    assert finding.message == "the result of use_ui_tool is used without await"


@pytest.mark.parametrize(
    "code",
    [
        'async def save():\n    return await use_ui_tool("save", {})\n',
        'def save():\n    return use_ui_tool("save", {})\n',
        (
            'async def save():\n    def inner():\n        return use_ui_tool("save", {})\n'
            "    return await inner()\n"
        ),
        "def use_ui_tool(name): ...\n\n\nasync def save():\n    return use_ui_tool('save')\n",
    ],
)
def test_awaited_answer_is_not_found(code):
    code = code if "def use_ui_tool" in code else f"from weft import use_ui_tool\n\n\n{code}"
    assert found("UI011", subject(code, tools=[UI])) == []


def test_unknown_model_provider_is_found():
    finding = only("NAME001", subject(agent={"model": "opnai:gpt-5"}))
    assert finding.hint == ('did you mean "openai:gpt-5"?',)
    assert finding.place.file == "agents.0.model"
    orchestrator = {"workflow_name": "W", "initial_agent": "Clerk", "model": "zzz"}
    finding = only("NAME001", subject(orchestrator=orchestrator))
    assert finding.hint == ("use PROVIDER:MODEL with one of ollama, openai",)


def test_model_provider_of_an_engine_is_checked():
    engines = [{"kind": "model", "model": "opnai:x"}, {"kind": "model"}]
    board = {"artifacts": [], "agents": [{"agent": "Clerk", "engines": engines}]}
    finding = only("NAME001", subject(orchestrator={"workflow_name": "W"}, board=board))
    assert finding.place.file == "board.agents.0.engines.0.model"


def test_known_model_provider_is_accepted():
    assert found("NAME001", subject(agent={"model": "openai:gpt-5"})) == []
    elsewhere = Subject(subject(agent={"model": "mine:x"}).spec)
    assert found("NAME001", elsewhere) == []


def test_workflow_without_agents_has_one_finding():
    checked = subject(
        "def save(): ...\n",
        agents=[],
        handoffs=[{"source_agent": "Clerk", "target_agent": "Boss"}],
        exposure={"Clerk": ["user_id"]},
    )
    (finding,) = check(checked)
    assert (finding.code, finding.message) == ("BIND011", "the workflow has no agents")


def test_router_with_automatic_mode_and_no_automatic_tool_is_a_warning():
    finding = only("TOOL009", subject(agent={"auto_tool_mode": True}))
    assert finding.severity == "warning"


def test_automatic_tool_without_a_model_is_an_error():
    tool = {
        "agent": "Clerk",
        "tool_type": "Agent_Tool",
        "file": "a.py",
        "function": "save",
        "auto_invoke": True,
    }
    assert (
        only("TOOL009", subject(agent={"auto_tool_mode": True}, tools=[tool])).severity == "error"
    )


def test_hint_for_a_context_without_a_type_names_the_context():
    finding = only("TOOL004", subject("def save(ctx): ...\n"))
    assert finding.hint == (
        "write ctx: Context if it takes the context, or the type of the argument",
    )


def test_hint_for_a_bare_tool_call_names_what_sets_the_value():
    trigger = {"type": "tool_call", "tool": "save"}
    state = {"state": {"type": "str", "source": {"type": "derived", "triggers": [trigger]}}}
    finding = only("VAR002", subject("def save(): ...\n", state))
    assert finding.hint[0] == "remove the trigger if the tool sets the variable itself"


def test_condition_on_a_state_that_no_transition_has_is_found():
    steps = [{"from": "draft", "to": "review"}, {"from": "review", "to": "done"}]
    source = {"type": "derived", "default": "draft", "transitions": steps}
    handoffs = [{"source_agent": "Clerk", "target_agent": "user", "condition": "stage == 'reviw'"}]
    finding = only(
        "COND003",
        subject(variables={"stage": {"type": "str", "source": source}}, handoffs=handoffs),
    )
    assert "is never" in finding.message
    assert finding.hint == ('did you mean "review"?',)


def test_errors_that_block_exploration_are_known():
    handoffs = [{"source_agent": "Clerk", "target_agent": "Bos"}]
    checked = subject(handoffs=handoffs)
    assert not examine(checked).explored
    clean = subject(handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])
    assert examine(clean).explored


def test_secret_default_of_an_environment_variable_is_to_be_removed():
    source = {"type": "environment", "env_var": "KEY", "default": "sk-abcdefghijklmnopqrst"}
    variables = {"key": {"type": "str", "secret": True, "source": source}}
    assert only("VAR005", subject(variables=variables)).hint[0] == 'remove "default"'
