"""Handoff tools: the model of an agent says itself who is next, among those it may hand off to."""

import pytest

from support.boundary_play import declared, derived, of
from support.run_play import play
from weft.engine.events import (
    HandedOff,
    RequestOpened,
    RunEnded,
    ToolCalled,
    ToolFailed,
    VariableSet,
)
from weft.inspect.replay import check_replay
from weft.testing.models import ScriptedModel, call

CODE = {
    "tools/t.py": b'''
def note(context_variables) -> str:
    """Note."""
    context_variables.set("noted", True)
    return "noted"
'''
}
NOTE = {"tool_type": "Agent_Tool", "agent": "A", "file": "t.py", "function": "note"}
CHOOSER = {"agent_name": "A", "handoff_tools": True}
RULES = [
    {"source_agent": "A", "target_agent": "B", "condition": "noted"},
    {"source_agent": "A", "target_agent": "C"},
    {"source_agent": "A", "target_agent": "user", "condition": "noted", "condition_scope": "pre"},
    {"source_agent": "A", "target_agent": "terminate", "condition": "noted", "priority": 9},
    *({"source_agent": name, "target_agent": "terminate"} for name in ("B", "C")),
]
NOTED = {"noted": derived("bool", False)}


def choosing(agent=CHOOSER, **rest):
    others = {"agent_name": "B", "description": "knows bees"}, "C"
    return declared(agent, *others, handoffs=RULES, variables=NOTED, tools=[NOTE], **rest)


def handed(played):
    return [(event.source, event.target, event.why) for event in of(played, HandedOff)]


@pytest.mark.parametrize("handoff_tools", [True, False])
def test_one_tool_for_each_target_is_offered_with_what_the_target_is_for(handoff_tools):
    model = ScriptedModel(["hm", "yes"])
    play(choosing({**CHOOSER, "handoff_tools": handoff_tools}), model, code=CODE)
    offered = {
        tool.name: tool.description for tool in model.requests[0].tools if tool.name != "note"
    }
    assert offered == (
        {
            "hand_off_to_B": "Hand the conversation over to B. knows bees",
            "hand_off_to_C": "Hand the conversation over to C.",
            "hand_off_to_user": "Hand the conversation back to the user.",
            "hand_off_to_terminate": "End the conversation.",
        }
        if handoff_tools
        else {}
    )
    assert model.requests[1].tools == (), "nobody else is offered them"


@pytest.mark.parametrize("target", ["B", "C"])
def test_target_named_by_the_model_overrides_the_rules(target):
    model = ScriptedModel([call(f"hand_off_to_{target}"), "thank you"])
    played = play(choosing(), model, code=CODE)
    assert handed(played)[0] == ("A", target, "chosen")
    assert model.requests[1].agent == target
    assert len(model.requests) == 2, "a model that has handed off is not asked again"
    assert played.at(ToolCalled).data.hook == "handoff"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_it_may_hand_back_to_the_user_or_end_the_run():
    played = play(choosing(), ScriptedModel([call("hand_off_to_user")]), code=CODE)
    assert isinstance(played.events[-1].data, RequestOpened)
    played = play(choosing(), ScriptedModel([call("hand_off_to_terminate")]), code=CODE)
    assert played.at(RunEnded).data.outcome == "completed"


def test_other_tools_of_the_same_reply_are_called_and_what_they_set_counts():
    both = [call("hand_off_to_C"), call("note")]
    played = play(choosing(), ScriptedModel([both, "bye"]), code=CODE)
    assert handed(played)[0] == ("A", "C", "chosen"), "no rule is asked once the model has chosen"
    assert [event.name for event in of(played, VariableSet)] == ["noted"]
    assert check_replay(played.workflow, played.run, played.events) == []


def test_of_two_choices_in_one_reply_the_last_counts():
    both = [call("hand_off_to_C"), call("hand_off_to_B")]
    model = ScriptedModel([both, "bye"])
    play(choosing(), model, code=CODE)
    assert model.requests[1].agent == "B"


@pytest.mark.parametrize("target", ["B", "terminate", "D"])
def test_a_model_cannot_hand_off_to_whom_it_may_not(target):
    allowed = [{"source_agent": "A", "target_agent": "C"}, *RULES[-2:]]
    spec = declared(CHOOSER, "B", "C", handoffs=allowed)
    played = play(spec, ScriptedModel([call(f"hand_off_to_{target}"), "hm", "yes"], strict=False))
    (failed,) = of(played, ToolFailed)
    assert failed.error == f"there is no tool hand_off_to_{target}; available: hand_off_to_C"
    assert handed(played)[0][1] == "C"


def test_without_a_choice_the_rules_decide():
    played = play(choosing(), ScriptedModel(["hm", "yes"]), code=CODE)
    assert handed(played)[0] == ("A", "C", "fallback")


def test_the_next_agent_hears_the_conversation_and_not_the_call():
    model = ScriptedModel([call("hand_off_to_B"), "thank you"])
    play(choosing(), model, code=CODE)
    assert [message["content"] for message in model.requests[1].messages] == ["hello"]


def test_hooks_after_the_turn_are_called_when_a_model_has_handed_off():
    code = {
        **CODE,
        "hooks/h.py": b"def after(context_variables):\n    context_variables.set('noted', True)\n",
    }
    hooks = [{"hook_type": "after_agent", "file": "h.py", "function": "after", "agent": "A"}]
    played = play(choosing(hooks=hooks), ScriptedModel([call("hand_off_to_C"), "bye"]), code=code)
    assert [event.name for event in of(played, VariableSet)] == ["noted"]
    assert handed(played)[0] == ("A", "C", "chosen")
