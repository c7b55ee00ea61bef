"""The code of questions, components and hooks as it is generated."""

import json
import re
from types import SimpleNamespace

import pytest
import tree_sitter_javascript
from tree_sitter import Language, Parser

from support.run_play import ADA
from support.service_play import Service
from support.source_play import declared, derived, play, variable
from weft.check.rules.ui import default_exports
from weft.check.run import check
from weft.check.subject import Subject
from weft.engine.events import ToolReturned
from weft.generator.code.hooks import hook_files
from weft.generator.code.tools import tool_files
from weft.generator.code.ui import response_fields, ui_files
from weft.generator.enrich.jsx_code import jsx_faults
from weft.generator.enrich.python_code import python_faults
from weft.generator.shapes import FieldShape, ToolShape
from weft.runtime.signals import Answer
from weft.testing.models import ScriptedModel, call

HOSTILE = '</h2>{alert(1)} "\'` */ // \\ export default x \u2028\u202e"""\nimport os'
FIELDS = (
    FieldShape("decision", 'literal["accept", "reject"]', HOSTILE),
    FieldShape("urgent", "bool"),
    FieldShape("amount", "float"),
    FieldShape("comment", "optional[str]"),
    FieldShape("tags", "list[str]"),
    FieldShape("level", "optional[literal[1, 2]]"),
    FieldShape("details", "dict"),
)
PARSER = Parser(Language(tree_sitter_javascript.language()))


def question(**rest) -> ToolShape:
    given = {
        "purpose": "Asks for approval.",
        "parameters": (FieldShape("title", "str", "What it is about."),),
        "result": FIELDS,
        "component": "Approval",
        "mode": "inline",
        "label": "Approve this",
    }
    return ToolShape("approve", "A", "ui", **{**given, **rest})


def ui_tool(one: ToolShape) -> dict:
    return {
        "tool_type": "UI_Tool",
        "agent": "A",
        "file": one.file,
        "function": one.name,
        "description": "Asks.",
        "ui": {"component": one.component, "mode": "inline"},
        "response_schema": {"type": "object"},
    }


def spec_for(one: ToolShape, **variables):
    return declared(variables, tools=[ui_tool(one)])


def answered(key: str):
    return {"type": "ui_response", "tool": "approve", "response_key": key}


def as_bytes(files):
    return {path: text.encode() for path, text in files.items()}


def parses(text: str) -> bool:
    return not PARSER.parse(text.encode()).root_node.has_error


def test_a_question_is_asked_and_its_answer_sets_the_variable():
    one = question()
    spec = spec_for(one, decision=derived("optional[str]", None, answered("decision")))
    files = ui_files([one], spec)
    assert not [item for item in check(Subject(spec, "W", files)) if item.severity == "error"]

    async def answer(host, run):
        (request,) = await host.requests(scope=ADA)
        assert request.payload == {"title": "Plan B"}
        await host.deliver(run, Answer(request.id, {"decision": "accept"}), scope=ADA)

    model = ScriptedModel([call("approve", title="Plan B"), "Done."])
    told = play(spec, model, code=as_bytes(files), after=answer)
    assert [item.value for item in told.of(ToolReturned)] == [{"decision": "accept"}]
    assert told.values("decision")[-1] == "accept"


@pytest.mark.parametrize("fields", [FIELDS, (), FIELDS[:1], (FieldShape("class", "str"),)])
def test_a_component_parses_and_answers_with_the_declared_keys(fields):
    one = question(result=fields)
    text = ui_files([one], spec_for(one))["tools/Approval.jsx"]
    assert parses(text), text
    assert jsx_faults(text, "Approval", [field.name for field in fields]) == []
    assert len([*default_exports(text)]) == 1
    assert set(re.findall(r'from "([^"]+)"', text)) <= {"react"}
    (sent,) = re.findall(r"onResponse\((.*?)\);", text, re.DOTALL)
    assert all(f"{field.name}: " in sent for field in fields)


def test_a_key_that_only_a_trigger_names_is_asked_for():
    one = question(result=())
    spec = spec_for(one, reason=derived("optional[str]", None, answered("reason.short")))
    assert [field.name for field in response_fields(one, spec)] == ["reason"]
    assert "reason: values.reason" in ui_files([one], spec)["tools/Approval.jsx"]


def test_two_tools_may_share_a_component():
    both = [question(), ToolShape("again", "A", "ui", "x", (), (FIELDS[1],), component="Approval")]
    files = ui_files(both, spec_for(both[0]))
    assert sorted(files) == ["tools/Approval.jsx", "tools/again.py", "tools/approve.py"]


def test_hostile_text_is_escaped():
    one = question(purpose=HOSTILE, label=HOSTILE, summary=HOSTILE)
    files = ui_files([one], spec_for(one))
    assert parses(files["tools/Approval.jsx"])
    assert len([*default_exports(files["tools/Approval.jsx"])]) == 1
    root = PARSER.parse(files["tools/Approval.jsx"].encode()).root_node
    calls = [node for node in nodes(root) if node.type == "call_expression"]
    assert "alert" not in {call.child_by_field_name("function").text.decode() for call in calls}
    compile(files["tools/approve.py"], "approve.py", "exec")


def nodes(node):
    yield node
    for child in node.children:
        yield from nodes(child)


POINTS = ("before_chat", "after_chat", "before_agent", "after_agent", "on_start", "on_complete")


def test_boundary_functions_tell_what_there_is_and_keep_it(tmp_path):
    variables = {
        "rate": variable(
            "any", "database", collection="rates", search_by="user_id", refresh_strategy="on_demand"
        ),
        "before_chat_note": derived("optional[str]"),
        "after_chat_done": derived("bool", False),
        "after_agent_count": derived("int", 0),
    }
    hooks = [{"hook_type": item, "file": f"{item}.py", "function": item} for item in POINTS]
    lifecycle = [
        {
            "tool_type": "Lifecycle_Tool",
            "trigger": "after_agent",
            "agent": "A",
            "file": "closing.py",
            "function": "closing",
            "description": HOSTILE,
        }
    ]
    spec = declared(variables, hooks=hooks, lifecycle_tools=lifecycle)
    files = {**hook_files(spec), **tool_files([], spec)}
    assert all(python_faults(text, text) == [] for text in files.values())
    found = check(Subject(spec, "W", files))
    assert not [item for item in found if item.code.startswith(("HOOK", "TOOL", "VAR021"))]
    told = play(
        spec,
        ScriptedModel(["Done."]),
        code=as_bytes(files),
        documents=tmp_path / "d.sqlite",
        having={"rates": {"user_id": "ada", "rate": 3}},
    )
    assert told.row.outcome == "completed"
    assert told.values("before_chat_note")[-1].startswith("Without a value: ")
    assert told.values("after_chat_done") == [True]
    assert told.values("after_agent_count")[-1] == 1


def hook(hook_type: str, **rest):
    return {"hook_type": hook_type, "file": "all.py", "function": hook_type, **rest}


def test_hooks_change_instructions_and_messages():
    spec = declared(
        {},
        hooks=[
            hook("update_agent_state", description='Be "brief".'),
            hook("process_message_before_send", description="Hide personal data."),
            hook("process_last_received_message"),
            hook("process_all_messages_before_reply"),
        ],
    )
    files = hook_files(spec)
    assert list(files) == ["hooks/all.py"]
    assert python_faults(files["hooks/all.py"], files["hooks/all.py"]) == []
    model = ScriptedModel(["  Write to ada@example.org,\n\n\n\ncard 4242 4242 4242 4242.  "])
    told = play(spec, model, code=as_bytes(files), message="Hello  \n\n\n\n\nworld ")
    assert 'Also: Be "brief".' in model.requests[0].messages[0]["content"]
    assert model.requests[0].messages[-1]["content"] == "Hello\n\nworld"
    assert told.state.messages[-1].text == "Write to (address),\n\ncard (number)."
    assert not [item for item in check(Subject(spec, "W", files)) if item.code.startswith("HOOK")]


def test_numbers_in_a_structured_reply_stay():
    spec = declared(
        {},
        hooks=[hook("process_message_before_send", description="Mask numbers.")],
        models=[{"name": "Reply", "fields": {"number": {"type": "int"}}}],
        registry=[{"agent": "A", "model": "Reply"}],
    )
    told = play(spec, ScriptedModel([{"number": 4242424242}]), code=as_bytes(hook_files(spec)))
    assert told.row.outcome == "completed"


def test_texts_in_a_structured_reply_are_hidden():
    spec = declared(
        {},
        hooks=[hook("process_message_before_send", agent="A", description="Mask numbers.")],
        models=[{"name": "R", "fields": {"number": {"type": "int"}, "said": {"type": "str"}}}],
        registry=[{"agent": "A", "model": "R"}],
    )
    files = hook_files(spec)
    assert all(python_faults(text, text) == [] for text in files.values())
    reply = {"number": 4242424242, "said": 'Call "4242424242" or\nada@example.org'}
    told = play(spec, ScriptedModel([reply]), code=as_bytes(files))
    hidden = {"number": 4242424242, "said": 'Call "(number)" or\n(address)'}
    assert json.loads(told.state.messages[-1].text) == hidden


def service_spec(service, boundaries):
    """Return a workflow with a service that a tool asks, and these functions at boundaries."""
    asked = {
        item: {
            f"{item}_service_query": derived("str", ""),
            f"{item}_service_answer": variable(
                "any", "external", service="Slack", operation=item, refresh_strategy="on_demand",
                url=service.url(f"/{item}") + f"?q={{{item}_service_query}}",
            ),
        }
        for item in ("charge_card", *boundaries)
    }  # fmt: skip
    variables = {name: item for one in asked.values() for name, item in one.items()}
    hooks = [
        {"hook_type": point, "file": f"{name}.py", "function": name, "integration": "Slack"}
        for name, point in boundaries.items()
    ]
    return declared(variables, hooks=hooks, exposure={"A": ["charge_card_service_query"]})


def test_boundary_functions_ask_their_own_service_and_no_other():
    boundaries = {"load_case": "before_chat", "post_it": "after_chat"}
    service = Service({"ok": True})
    made = lambda it: service_spec(it, boundaries)  # noqa: E731
    code = as_bytes(hook_files(service_spec(SimpleNamespace(url=str), boundaries)))
    told = play(made, ScriptedModel(["All is well."]), code=code, service=service)
    assert told.row.outcome == "completed"
    assert [item.path_qs for item in service.seen] == [
        "/load_case?q=ada", "/post_it?q=All%20is%20well.",
    ]  # fmt: skip
