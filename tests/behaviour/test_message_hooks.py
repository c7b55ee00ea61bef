"""Hooks that see and change what agents are sent and what they say: to the byte, and recorded."""

import asyncio

import pytest

from support.boundary_play import declared, derived, in_turns, of, rest
from support.run_play import ADA, play
from weft.context.audience import Audience
from weft.context.prompt import digest_of
from weft.engine.events import (
    ContextAssembled,
    Event,
    MessageSent,
    ModelReplied,
    RunEnded,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    TurnFailed,
    VariableSet,
)
from weft.inspect.replay import check_replay
from weft.ports.live import TextDelta
from weft.ports.model import ModelReply
from weft.testing.models import FunctionModel, ScriptedModel, call
from weft.wire.events import user_event_data

CODE = {
    # As they are written for other frameworks: the parameters by their usual names, nothing else.
    "hooks/style.py": b"""
def new_instructions(agent, messages):
    told = f"You are {agent.name}: {agent.description}; {len(messages)} so far"
    agent.update_system_message(told)


def instructions_as_text(agent, messages):
    return agent.system_message + " Be brief."


def remember(messages):
    messages.append({"role": "user", "content": "Remember the milk."})
    return messages


def shout(content):
    return content.upper()


def last_of(messages):
    return [*messages[:-1], {**messages[-1], "content": "(replaced)"}]


def censor(sender, message, recipient, silent):
    assert sender.name == "A" and recipient is None and silent is False
    return message.replace("canary", "***")


def as_dict(sender, message, recipient, silent):
    return {"content": message + " (signed)"}


def unchanged(agent, message, messages, content, sender, recipient, silent, context_variables):
    assert agent is sender
    assert agent.context_variables is context_variables
    return None


def same(messages):
    return list(messages)


def everything(**given):
    return None


def sees(messages, content, message, context_variables):
    context_variables.set("seen", [str(message["content"]) for message in messages])
    context_variables.set("last", content if isinstance(message, str) else message["content"])


def nonsense_number(messages):
    return 7


def nonsense_role(messages):
    return [{"role": "king", "content": "x"}]


def nonsense_content(messages):
    return [{"role": "user", "content": ["x"]}]


def nonsense_text(agent):
    agent.update_system_message(3)


def spoil(message):
    return "no JSON any more"


def fit(message):
    return '{"size": 9}'
""",
    "tools/work.py": b'''
def work() -> str:
    """Work."""
    return "worked"
''',
}
WORK = {"tool_type": "Agent_Tool", "agent": "A", "file": "work.py", "function": "work"}
SYSTEM = {"prompt_sections": [{"id": "r", "content": "You help."}]}
HELPER = {"agent_name": "A", "description": "a helper", **SYSTEM}
STATE, ALL, LAST, SEND = (
    "update_agent_state",
    "process_all_messages_before_reply",
    "process_last_received_message",
    "process_message_before_send",
)
SEEN = {"seen": derived("list[str]", []), "last": derived("str", "")}


def hook(hook_type, function, **rest):
    return {"hook_type": hook_type, "file": "style.py", "function": function, **rest}


def only(*hooks, **rest):
    return declared(
        HELPER,
        hooks=list(hooks),
        handoffs=[{"source_agent": "A", "target_agent": "terminate"}],
        **rest,
    )


def texts(request):
    return [message["content"] for message in request.messages]


@pytest.mark.parametrize(
    ("hooks", "sent"),
    [
        ([hook(STATE, "new_instructions")], ["You are A: a helper; 1 so far", "hello"]),
        ([hook(STATE, "instructions_as_text")], ["You help. Be brief.", "hello"]),
        ([hook(ALL, "remember")], ["You help.", "hello", "Remember the milk."]),
        ([hook(LAST, "shout")], ["You help.", "HELLO"]),
        ([hook(LAST, "last_of")], ["You help.", "(replaced)"]),
        (
            [hook(LAST, "shout"), hook(ALL, "remember"), hook(STATE, "new_instructions")],
            ["You are A: a helper; 1 so far", "hello", "REMEMBER THE MILK."],
        ),
        ([hook(LAST, "shout"), hook(LAST, "last_of")], ["You help.", "(replaced)"]),
    ],
)
def test_result_of_message_hooks_is_sent_and_recorded(hooks, sent):
    model = ScriptedModel(["done"])
    played = play(only(*hooks), model, code=CODE)
    (request,) = model.requests
    assert texts(request) == sent
    assembled = played.at(ContextAssembled).data
    assert assembled.digest == digest_of(request.messages, played.workflow.views["A"].extras)
    assert set(assembled.manifest["edited"]) == {
        f"hooks/style.py:{hook['function']}" for hook in hooks
    }
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize("point", [STATE, ALL, LAST, SEND])
@pytest.mark.parametrize("function", ["unchanged", "everything", "same"])
def test_a_hook_that_changes_nothing_leaves_no_trace_but_its_call(point, function):
    if function == "same" and point not in (ALL, LAST):
        function = "everything"
    model = ScriptedModel(["done"])
    played = play(only(hook(point, function)), model, code=CODE)
    assert texts(model.requests[0]) == ["You help.", "hello"]
    assert of(played, ToolReturned) == [ToolReturned(played.at(ToolReturned).data.id, None)]
    assert "edited" not in played.at(ContextAssembled).data.manifest


@pytest.mark.parametrize(
    ("point", "function", "told"),
    [
        (ALL, "nonsense_number", "it returned int instead of a list of messages"),
        (ALL, "nonsense_role", "message 0 of its result is invalid: a message has a role (system,"),
        (ALL, "nonsense_content", "message 0 of its result is invalid"),
        (LAST, "nonsense_number", "it returned int instead of the text of a message"),
        (LAST, "nonsense_role", "message 0 of its result is invalid"),
        (STATE, "nonsense_text", "a system message is text, not int"),
        (SEND, "nonsense_number", "it returned int instead of the text of a message"),
        (SEND, "nonsense_role", "it returned list instead of the text of a message"),
    ],
)
@pytest.mark.parametrize("on_error", ["log", "stop"])
def test_a_hook_that_returns_nonsense_has_failed(point, function, told, on_error):
    model = ScriptedModel(["done"])
    played = play(only(hook(point, function, on_error=on_error)), model, code=CODE)
    (failed,) = of(played, ToolFailed)
    assert told in failed.error
    if on_error == "log":
        assert texts(model.requests[0]) == ["You help.", "hello"]
        assert played.at(RunEnded).data.outcome == "completed"
    else:
        assert told in played.at(RunEnded).data.reason


def test_each_reply_of_a_turn_begins_with_what_is_there_and_not_with_earlier_changes():
    model = ScriptedModel([call("work"), "done"])
    played = play(only(hook(ALL, "remember"), tools=[WORK]), model, code=CODE)
    assert texts(model.requests[1]) == ["You help.", "hello", None, "worked", "Remember the milk."]
    found = [event.digest for event in of(played, ContextAssembled)]
    extras = played.workflow.views["A"].extras
    assert found == [digest_of(request.messages, extras) for request in model.requests]


def test_after_turn_hooks_see_the_unedited_conversation():
    hooks = [hook(ALL, "remember"), hook("after_agent", "sees")]
    played = play(only(*hooks, variables=SEEN), ScriptedModel(["done"]), code=CODE)
    values = {event.name: event.value for event in of(played, VariableSet)}
    assert values == {"seen": ["hello", "done"], "last": "done"}


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ([hook(SEND, "censor")], "*** is dead"),
        ([hook(SEND, "censor"), hook(SEND, "as_dict")], "*** is dead (signed)"),
        ([hook(SEND, "as_dict"), hook(SEND, "censor")], "*** is dead (signed)"),
        ([hook(SEND, "unchanged")], "canary is dead"),
    ],
)
def test_reply_is_recorded_after_its_hooks(hooks, said):
    contains = {"contains": "canary"}
    trigger = {"type": "agent_text", "agent": "A", "match": contains}
    variables = {"heard": derived("bool", False, trigger)}
    spec = declared(
        HELPER,
        "B",
        hooks=[{**hook, "agent": "A"} for hook in hooks],
        variables=variables,
        orchestrator={"orchestration_pattern": "Pipeline", "human_in_the_loop": False},
    )
    model = ScriptedModel(["canary is dead", "amen"])
    played = play(spec, model, code=CODE)
    assert of(played, MessageSent) == [MessageSent("A", said)]
    assert texts(model.requests[1])[-1] == f"A: {said}", "other agents hear it so"
    assert bool(of(played, VariableSet)) is ("canary" in said), "and so do triggers"
    assert check_replay(played.workflow, played.run, played.events) == []


def follow_and_read(spec, model):
    """Play a run to its end with somebody listening; return what was streamed and the run."""
    heard = []

    async def listen(host, run):
        heard.extend([event async for event in host.events(run, scope=ADA, follow=True)])

    played = asyncio.run(in_turns(spec, [listen], [model], code=CODE))
    return heard, played


async def slowly(request):
    """Work if there is work to do, and speak; whoever wants to listen is there by then."""
    await asyncio.sleep(0.02)
    works = request.tools and not any(message["role"] == "tool" for message in request.messages)
    return call("work") if works else "canary is dead"


def test_text_before_hooks_never_reaches_end_users():
    spec = only(hook(SEND, "censor"), tools=[WORK])
    heard, played = follow_and_read(spec, FunctionModel(slowly))
    assert not [item for item in heard if isinstance(item, TextDelta)]
    events = [item for item in heard if isinstance(item, Event)]
    audience = Audience(spec)
    shown = [user_event_data(event, played.run, played.workflow, audience) for event in events]
    told = [event["data"] for event in shown if event and event["kind"] == "MessageSent"]
    assert told == [{"agent": "A", "text": "*** is dead"}]
    assert "canary" not in str(shown)
    replied = of(played, ModelReplied)[-1]
    assert replied.text == "canary is dead", "whoever operates it can see what the model said"


def test_words_beside_a_tool_call_are_not_shown_where_hooks_would_change_them():
    spec = only(hook(SEND, "censor"), tools=[WORK])
    beside = ModelReply("canary beside", (ToolRequest("c", "work", {}),))
    heard, played = follow_and_read(spec, ScriptedModel([beside, "done"]))
    audience = Audience(spec)
    events = [item for item in heard if isinstance(item, Event)]
    shown = [user_event_data(event, played.run, played.workflow, audience) for event in events]
    assert "canary" not in str(shown)


def test_without_such_a_hook_words_are_streamed_as_they_are_spoken():
    heard, _ = follow_and_read(only(), FunctionModel(slowly))
    assert "".join(item.text for item in heard if isinstance(item, TextDelta)) == "canary is dead"


SIZE = {
    "models": [{"name": "Size", "fields": {"size": {"type": "int"}}}],
    "registry": [{"agent": "A", "model": "Size"}],
}


def test_a_structured_reply_is_what_hooks_leave_of_it_and_must_still_fit():
    played = play(only(hook(SEND, "fit"), **SIZE), ScriptedModel([{"size": 2}]), code=CODE)
    audience = Audience(played.workflow.spec)
    shown = [
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    ]
    assert "size: 9" in str(shown)
    assert "2" not in str(
        [event["data"] for event in shown if event and event["kind"] == "MessageSent"]
    )
    played = play(only(hook(SEND, "spoil"), **SIZE), ScriptedModel([{"size": 2}]), code=CODE)
    (failed,) = of(played, TurnFailed)
    assert failed.kind == "hook"
    assert "the reply of A is not valid after its hooks: the reply is not JSON" in failed.error


def test_a_sign_to_a_trigger_is_hidden_by_what_is_sent():
    sign = {"type": "agent_text", "agent": "A", "match": {"equals": "NEXT (signed)"}}
    variables = {"next": derived("bool", False, {**sign, "ui_hidden": True})}
    played = play(
        only(hook(SEND, "as_dict"), variables=variables), ScriptedModel(["NEXT"]), code=CODE
    )
    assert [event.name for event in of(played, VariableSet)] == ["next"]
    audience = Audience(played.workflow.spec)
    shown = [
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    ]
    assert "NEXT" not in str(shown)


@pytest.mark.parametrize("rounds", range(0, 90, 3))
def test_a_crash_in_the_middle_changes_no_byte_and_repeats_no_hook_that_was_recorded(rounds):
    hooks = [hook(STATE, "new_instructions"), hook(ALL, "remember"), hook(LAST, "shout")]
    spec = only(*hooks, hook(SEND, "as_dict"))
    sent = []

    async def reply(request):
        sent.append((request.key, texts(request)))
        for _ in range(5):
            await asyncio.sleep(0)
        return "done"

    async def break_off(host, run):
        for _ in range(rounds):
            await asyncio.sleep(0)

    models = [FunctionModel(reply), FunctionModel(reply)]
    played = asyncio.run(in_turns(spec, [break_off, rest], models, code=CODE))
    bytes_ = ["You are A: a helper; 1 so far", "hello", "REMEMBER THE MILK."]
    assert sent
    assert all(item == (sent[0][0], bytes_) for item in sent)
    ids = [event.id for event in of(played, ToolReturned)]
    assert len(ids) == len(set(ids)) == 4
    assert of(played, MessageSent) == [MessageSent("A", "done (signed)")]
    assert check_replay(played.workflow, played.run, played.events) == []
