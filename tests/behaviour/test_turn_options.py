"""What authors may declare about runs, agents, tools and outputs has the effect it promises."""

import pytest

from support.run_play import ADA, play
from weft.context.audience import Audience
from weft.engine.events import (
    ContextAssembled,
    HandedOff,
    MessageShown,
    OutputRefused,
    RequestOpened,
    RunEnded,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    VariableSet,
)
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.runtime.signals import Answer
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import ScriptedModel, call
from weft.wire.events import user_event_data

CODE = {
    "tools/desk.py": b'''
from weft import RetryModel, use_ui_tool


def note(size: int) -> str:
    """Write a size down."""
    return f"size {size}"


async def pick(size: int) -> dict:
    """Let a person choose."""
    return await use_ui_tool("pick", {"size": size})


def fit(size: int, context_variables) -> str:
    """Take small sizes only."""
    context_variables.set("size", size)
    if size > 3:
        raise RetryModel(f"{size} is too big")
    return f"size {size}"
'''
}
NOTE = {"tool_type": "Agent_Tool", "agent": "A", "file": "desk.py", "function": "note"}
PICK = {
    "tool_type": "UI_Tool",
    "agent": "A",
    "file": "desk.py",
    "function": "pick",
    "ui": {"component": "Pick", "mode": "inline"},
}
END = [{"source_agent": "A", "target_agent": "terminate"}]


def declared(*agents, orchestrator=(), **rest):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A", **dict(orchestrator)},
            "agents": [
                agent if isinstance(agent, dict) else {"agent_name": agent}
                for agent in agents or ("A",)
            ],
            **rest,
        }
    )


def asked(played):
    """What a tool has asked a person, if one has."""
    found = [event.data for event in played.events if isinstance(event.data, RequestOpened)]
    return next((request for request in found if request.kind == "ui"), None)


def texts(request):
    return [message["content"] for message in request.messages]


def test_initial_message_is_for_agents_and_initial_message_to_user_for_people():
    opening = {"initial_message": "Be brief.", "initial_message_to_user": "Welcome!"}
    model = ScriptedModel(["Hello."])
    played = play(declared(orchestrator=opening), model)
    assert texts(model.requests[0]) == ["Be brief.", "hello"]
    shown = [event.data.text for event in played.events if isinstance(event.data, MessageShown)]
    assert shown == ["Welcome!"]


@pytest.mark.parametrize(
    ("startup_mode", "turns", "rest"),
    [("UserDriven", 0, RequestOpened), ("AgentDriven", 1, RequestOpened), ("BackendOnly", 1, None)],
)
def test_startup_mode_says_who_begins_and_whether_a_user_is_waited_for(startup_mode, turns, rest):
    model = ScriptedModel(["Hello."])
    played = play(declared(orchestrator={"startup_mode": startup_mode}), model, message=None)
    assert len(model.requests) == turns
    assert type(played.events[-1].data) is (rest or RunEnded)


@pytest.mark.parametrize("human_in_the_loop", [True, False])
def test_without_human_in_the_loop_a_run_ends_where_it_would_wait(human_in_the_loop):
    orchestrator = {"human_in_the_loop": human_in_the_loop}
    played = play(declared(orchestrator=orchestrator), ScriptedModel(["Hello."]))
    assert played.at(HandedOff).data.target == ("user" if human_in_the_loop else "terminate")
    assert isinstance(played.events[-1].data, RequestOpened if human_in_the_loop else RunEnded)


def test_the_model_of_an_agent_wins_over_that_of_the_workflow():
    model = ScriptedModel(["one", "two"])
    play(
        declared(
            {"agent_name": "A", "model": "own"},
            "B",
            orchestrator={"model": "common", "orchestration_pattern": "Pipeline"},
        ),
        model,
    )
    assert [(request.agent, request.model) for request in model.requests] == [
        ("A", "own"),
        ("B", "common"),
    ]


def test_prompt_sections_are_sent_with_headings_and_named_by_id():
    sections = [
        {"id": "role", "heading": "[ROLE]", "content": "You help."},
        {"id": "tone", "content": "Be kind."},
    ]
    model = ScriptedModel(["Hello."])
    played = play(declared({"agent_name": "A", "prompt_sections": sections}), model)
    assert texts(model.requests[0]) == ["[ROLE]\nYou help.\n\nBe kind.", "hello"]
    manifest = played.at(ContextAssembled).data.manifest
    assert [segment["origin"] for segment in manifest["segments"]] == ["role", "tone", "standard"]


@pytest.mark.parametrize("tool", [NOTE, PICK], ids=["Agent_Tool", "UI_Tool"])
@pytest.mark.parametrize("description", ["Said by the package.", ""])
def test_a_tool_type_is_offered_to_its_agent_with_its_description(tool, description):
    model = ScriptedModel(["one", "two"])
    play(
        declared(
            "A",
            "B",
            tools=[{**tool, "description": description}],
            orchestrator={"orchestration_pattern": "Pipeline"},
        ),
        model,
        code=CODE,
    )
    first, second = model.requests
    (offered,) = first.tools
    assert offered.name == tool["function"]
    assert offered.parameters["required"] == ["size"]
    by_itself = {"note": "Write a size down.", "pick": "Let a person choose."}
    assert offered.description == (description or by_itself[tool["function"]])
    assert second.tools == (), "what is for one agent is not offered to another"


OTHER = b"""
def note(size: int) -> str:
    return "no note"

def pick(size: int) -> str:
    return "no choice"
"""


@pytest.mark.parametrize(
    ("tool", "file", "expected"),
    [
        (NOTE, "desk.py", ToolReturned("call_1_1_0", "size 3")),
        (NOTE, "other.py", ToolReturned("call_1_1_0", "no note")),
        (PICK, "desk.py", None),
        (PICK, "other.py", ToolReturned("call_1_1_0", "no choice")),
    ],
)
def test_the_function_of_the_file_is_called(tool, file, expected):
    model = ScriptedModel([call(tool["function"], size=3), "Done."])
    spec = declared("A", tools=[{**tool, "file": file}], handoffs=END)
    played = play(spec, model, code={**CODE, "tools/other.py": OTHER})
    if expected is None:
        assert asked(played).payload == {"size": 3}
    else:
        assert played.at(ToolReturned).data == expected


def answering(value):
    async def answer(host, run):
        (request,) = await host.requests(scope=ADA, run=run)
        await host.deliver(run, Answer(request.id, value), scope=ADA)

    return answer


OUTPUT = {
    "models": [{"name": "Size", "fields": {"size": {"type": "int"}}}],
    "registry": [{"agent": "A", "model": "Size"}],
}


@pytest.mark.parametrize("auto_tool_mode", [True, False])
def test_auto_tool_mode_calls_the_auto_invoke_tool_with_the_fields_of_the_output(auto_tool_mode):
    agent = {"agent_name": "A", "auto_tool_mode": auto_tool_mode}
    model = ScriptedModel([{"size": "big"}, {"size": 3}])
    tools = [{**NOTE, "auto_invoke": True}]
    played = play(declared(agent, tools=tools, handoffs=END, **OUTPUT), model, code=CODE)
    called = [event.data for event in played.events if isinstance(event.data, ToolCalled)]
    assert [(call.tool, call.arguments, call.auto) for call in called] == (
        [("note", {"size": 3}, True)] if auto_tool_mode else []
    )
    assert all(request.tools == () for request in model.requests), "the model cannot call it itself"
    assert played.events[-1].data.outcome == "completed"


def test_an_automatic_tool_gets_the_fields_it_names():
    agent = {"agent_name": "A", "auto_tool_mode": True}
    fields = {"size": {"type": "int"}, "score": {"type": "int"}}
    output = {**OUTPUT, "models": [{"name": "Size", "fields": fields}]}
    called = {"type": "tool_call", "tool": "note", "argument": "score"}
    score = {"type": "int", "source": {"type": "derived", "triggers": [called]}}
    spec = declared(
        agent,
        tools=[{**NOTE, "auto_invoke": True}],
        handoffs=END,
        variables={"score": score},
        **output,
    )
    played = play(spec, ScriptedModel([{"size": 3, "score": 9}]), code=CODE)
    assert played.at(ToolReturned).data.value == "size 3"
    assert played.at(VariableSet).data == VariableSet("score", 9, "trigger")
    assert played.events[-1].data.outcome == "completed"


@pytest.mark.parametrize("wrong", [{}, {"size": "big"}, {"size": 3, "colour": "red"}])
def test_a_call_whose_arguments_do_not_fit_is_not_made_and_fires_nothing(wrong):
    called = {"type": "tool_call", "tool": "note"}
    variables = {"noted": {"type": "bool", "source": {"type": "derived", "triggers": [called]}}}
    spec = declared(tools=[NOTE], handoffs=END, variables=variables)
    model = ScriptedModel([call("note", **wrong), call("note", size=3), "Done."], strict=False)
    played = play(spec, model, code=CODE)
    kinds = [type(event.data) for event in played.events]
    failed, set_, made = (kinds.index(item) for item in (ToolFailed, VariableSet, ToolCalled))
    assert failed < made < set_, "only the call that was made has set the variable"
    assert [kinds.count(item) for item in (ToolFailed, ToolCalled, VariableSet)] == [1, 1, 1]
    fault = played.at(ToolFailed).data
    assert fault.kind == "retry"
    assert fault.error.startswith("The arguments of note are invalid. ")
    assert texts(model.requests[1])[-1] == f"error: {fault.error}"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_auto_invoke_of_a_tool_that_asks_waits_for_the_person():
    agent = {"agent_name": "A", "auto_tool_mode": True}
    played = play(
        declared(agent, tools=[{**PICK, "auto_invoke": True}], handoffs=END, **OUTPUT),
        ScriptedModel([{"size": 3}]),
        code=CODE,
        after=answering({"size": 4}),
    )
    assert asked(played).payload == {"size": 3}
    assert played.at(ToolReturned).data.value == {"size": 4}
    assert played.events[-1].data.outcome == "completed"


def test_an_automatic_tool_sends_a_reply_back_and_works_with_the_next_one():
    agent = {"agent_name": "A", "auto_tool_mode": True}
    tools = [{**NOTE, "function": "fit", "auto_invoke": True}]
    variables = {"size": {"type": "int", "source": {"type": "derived"}}}
    model = ScriptedModel([{"size": 9}, {"size": 3}])
    spec = declared(agent, tools=tools, handoffs=END, variables=variables, **OUTPUT)
    played = play(spec, model, code=CODE)
    assert played.at(ToolFailed).data.kind == "retry"
    assert played.at(OutputRefused).data.error == "9 is too big"
    assert "9 is too big" in texts(model.requests[1])[-1]
    assert played.at(ToolReturned).data.value == "size 3"
    set_ = [event.data.value for event in played.events if isinstance(event.data, VariableSet)]
    assert set_ == [3], "what a reply sets that is sent back does not count"
    assert played.events[-1].data.outcome == "completed"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_correction_is_for_the_model_and_never_the_users():
    states = []

    async def look(host, run):
        states.append(await host.state(run, scope=ADA))

    model = ScriptedModel(["GARBAGE", {"size": 3}])
    spec = declared(handoffs=[{"source_agent": "A", "target_agent": "user"}], **OUTPUT)
    played = play(spec, model, after=look)
    roles = [message.role for message in states[0].messages]
    assert roles == ["user", "agent", "correction", "agent"]
    sent = model.requests[1].messages
    assert [message["role"] for message in sent if message["role"] != "system"] == [
        "user",
        "assistant",
        "user",
    ]
    assert "is not JSON" in sent[-1]["content"]
    audience = Audience(spec)
    shown = [
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    ]
    assert "size: 3" in str(shown)
    assert "GARBAGE" not in str(shown)
    assert "JSON" not in str(shown)


def test_a_binding_gives_its_agent_a_model_to_fit_and_null_leaves_the_text_free():
    registry = [{"agent": "A", "model": "Size"}, {"agent": "B", "model": None}]
    model = ScriptedModel([{"size": 1}, "free"])
    play(
        declared(
            "A",
            "B",
            orchestrator={"orchestration_pattern": "Pipeline"},
            models=OUTPUT["models"],
            registry=registry,
        ),
        model,
    )
    first, second = model.requests
    assert first.output.name == "Size"
    assert first.output.schema["$defs"]["Size"]["properties"] == {"size": {"type": "integer"}}
    assert second.output is None


def test_a_reply_that_does_not_fit_is_tried_again_with_what_does_not_fit():
    model = ScriptedModel(["much", {"size": "big"}, {"size": 2}])
    played = play(declared("A", handoffs=END, **OUTPUT), model)
    told = [texts(request)[-1] for request in model.requests[1:]]
    assert "the reply is not JSON" in told[0]
    assert 'expected int, got "big"' in told[1]
    assert played.events[-1].data.outcome == "completed"


def test_payload_schema_refuses_what_a_tool_shows():
    payload_schema = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}}
    tool = {**PICK, "payload_schema": payload_schema}
    model = ScriptedModel([call("pick", size=12), "Done."])
    played = play(declared("A", tools=[tool], handoffs=END), model, code=CODE)
    error = played.at(ToolFailed).data.error
    assert "the payload of pick does not match its payload_schema: size: 12 is greater" in error
    assert asked(played) is None
    assert error in texts(model.requests[1])[-1]


def test_response_schema_refuses_an_answer_and_the_question_stays_open():
    response_schema = {"type": "object", "required": ["size"]}
    tool = {**PICK, "response_schema": response_schema}

    async def answer(host, run):
        (request,) = await host.requests(scope=ADA, run=run)
        assert request.response_schema == response_schema
        with pytest.raises(UsageError, match="'size' is a required property"):
            await answering({"colour": "red"})(host, run)
        await answering({"size": 5})(host, run)

    played = play(
        declared("A", tools=[tool], handoffs=END),
        ScriptedModel([call("pick", size=1), "Done."]),
        code=CODE,
        after=answer,
    )
    assert played.at(ToolReturned).data.value == {"size": 5}


def test_model_receives_the_descriptions_of_output_fields():
    models = [
        {
            "name": "Verdict",
            "description": "What was found out.",
            "fields": {
                "sure": {"type": "bool", "description": "Whether there is no doubt."},
                "why": {"type": "Reason", "description": "Stands beside a reference."},
                "plain": {"type": "str"},
            },
        },
        {"name": "Reason", "fields": {"text": {"type": "str", "description": "In one sentence."}}},
    ]
    answer = '{"sure": true, "why": {"text": "so"}, "plain": "x"}'
    model = ScriptedModel([answer])
    play(declared(models=models, registry=[{"agent": "A", "model": "Verdict"}]), model)
    (request,) = model.requests
    defined = request.output.schema["$defs"]
    assert defined["Verdict"]["description"] == "What was found out."
    assert defined["Verdict"]["properties"]["sure"]["description"] == "Whether there is no doubt."
    assert "description" not in defined["Verdict"]["properties"]["why"]
    assert defined["Reason"]["properties"]["text"]["description"] == "In one sentence."
