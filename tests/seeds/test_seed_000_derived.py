"""Seed 000, lines 50-60, 205-207 and 216-246: derived variables and what sets them."""

import json

import pytest

from seeds import verbatim
from seeds.seed_play import (
    ADA,
    NAME,
    agents,
    answer,
    answers,
    derived,
    desk,
    findings,
    finish,
    handoffs,
    opened,
    play,
    read,
    say,
    says,
    variables,
    write_package,
)
from weft.engine.events import (
    RequestAnswered,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnStarted,
    VariableSet,
)
from weft.testing.models import ScriptedModel, call

AGENTS = agents(InterviewAgent="Ask. When you know enough, say NEXT.", Planner="Make a plan.")
RULES = handoffs(
    ("InterviewAgent", "Planner", "When interview_complete is true"),
    ("InterviewAgent", "user"),
    ("Planner", "terminate"),
)
COMPLETE = {"interview_complete": derived(False, json.loads(verbatim.AGENT_TEXT))}
BOTH = {"InterviewAgent": ["interview_complete"], "Planner": ["interview_complete"]}


def interview(definitions=None, exposure=None, **files):
    """Return a package in which an interview is over when its variable says so."""
    listed = variables(definitions or COMPLETE, exposure)
    return {"agents": AGENTS, "handoffs": RULES, "context_variables": listed, **files}


#: The tool of a plan that a person accepts; its code writes what the seed lets it write.
PLAN = '''
from weft import use_ui_tool


async def action_plan(context_variables) -> str:
    """Show the plan and note what the person says."""
    response = await use_ui_tool("action_plan", {"plan": "three steps"})
    value = response.get("plan_acceptance")
    context_variables.set("action_plan_acceptance", value)
    return f"The user says {value}."
'''


def planning(definition, code=PLAN):
    """Return a package whose agent shows a plan."""
    listed = variables(
        {"action_plan_acceptance": definition}, {"Planner": ["action_plan_acceptance"]}
    )
    return {
        "agents": agents(Planner="Show the plan. When all is well, say READY."),
        "handoffs": handoffs(("Planner", "terminate")),
        "context_variables": listed,
        **desk(agent="Planner", ui=["action_plan"], code=code),
    }


def pending(*triggers):
    return derived("pending", *triggers, type_="string")


def test_derived_values_are_flipped_automatically_by_what_happens(tmp_path):
    """Lines 51-52, 206, 460: no tool, no code, only what an agent says."""
    played = play(tmp_path, interview(), ["NEXT", "A plan."])
    assert played.sets("interview_complete") == [(True, "trigger")]
    assert not played.of(ToolCalled)


def test_derived_values_live_for_one_run_and_are_never_persisted(tmp_path):
    """Lines 52-53; decision i: the next run of the same user begins with the default."""
    write_package(tmp_path, interview())
    model = ScriptedModel(["NEXT", "A plan.", "Tell me more."])

    async def scenario():
        async with await opened(tmp_path, model, {}) as host:
            first = await read(host, await host.start(NAME, scope=ADA, message="hi"), model)
        async with await opened(tmp_path, model, {}) as host:
            return first, await read(host, await host.start(NAME, scope=ADA, message="hi"), model)

    first, second = finish(scenario())
    assert first.values["interview_complete"] is True
    assert second.values["interview_complete"] is False
    assert second.row.status == "waiting"


def test_derived_values_model_phases_without_orchestration_code(tmp_path):
    """Lines 53-54: one word moves the conversation on; until then it stays where it is."""
    after = [say("More."), say("That is all.")]
    played = play(tmp_path, interview(), ["What?", "And?", "NEXT", "A plan."], after=after)
    assert played.ways == [
        ("InterviewAgent", "user"),
        ("InterviewAgent", "user"),
        ("InterviewAgent", "Planner"),
        ("Planner", "terminate"),
    ]


@pytest.mark.parametrize(
    ("match", "heard", "missed"),
    [
        ({"exact": "NEXT"}, "NEXT", "next"),
        ({"contains": "all done"}, "So: all done, thanks.", "all, and done"),
        ({"regex": r"order \d+ is ready"}, "Now order 17 is ready.", "order x is ready"),
    ],
    ids=["exact", "substring", "regex"],
)
def test_agent_text_detects_exact_substring_and_regex_matches(tmp_path, match, heard, missed):
    """Line 57; decision b: each by a word of its own."""
    trigger = {"type": "agent_text", "agent": "InterviewAgent", "match": match}
    files = interview({"interview_complete": derived(False, trigger)})
    played = play(tmp_path, files, [missed, heard, "A plan."], after=[say("go on")])
    assert played.sets("interview_complete") == [(True, "trigger")]
    assert played.speakers == ["InterviewAgent", "InterviewAgent", "Planner"]


def test_ui_response_waits_for_the_user_and_sets_the_variable_from_the_payload(tmp_path):
    """Lines 58, 207, 239-246, 461, the trigger verbatim: tool code asks, extracts and sets."""
    files = planning(pending(json.loads(verbatim.UI_RESPONSE)))
    reply = {"plan_acceptance": "accepted", "comment": "fine"}
    played = play(tmp_path, files, [call("action_plan"), "Good."], after=[answer(reply)])
    assert played.of(ToolReturned)[0].value == "The user says accepted."
    assert played.values["action_plan_acceptance"] == "accepted"
    assert "pending" in played.prompt("Planner")
    assert "accepted" in played.prompt("Planner", 1)


def test_the_runtime_binds_the_answer_and_tool_code_may_set_it_too_in_one_event(tmp_path):
    """Line 207; decision j: the binding is applied when the answer arrives, once."""
    files = planning(pending(answers("action_plan", "plan_acceptance")))
    script = [call("action_plan"), "Good."]
    played = play(tmp_path, files, script, after=[answer({"plan_acceptance": "accepted"})])
    assert played.sets("action_plan_acceptance") == [("accepted", "trigger")]
    (at,) = [event.seq for event in played.events if isinstance(event.data, VariableSet)]
    asked = [event.seq for event in played.events if isinstance(event.data, RequestAnswered)]
    assert asked[-1] + 1 == at, "the answer itself sets it, before the tool has returned"


def test_a_declared_binding_needs_no_code_in_the_tool(tmp_path):
    """Line 207; decision j."""
    trigger = answers("ask", "plan.acceptance")
    files = {**planning(pending(trigger)), **desk(agent="Planner", ui=["ask"])}
    reply = {"plan": {"acceptance": "adjustments_requested"}}
    played = play(tmp_path, files, [call("ask"), "Good."], after=[answer(reply)])
    assert played.sets("action_plan_acceptance") == [("adjustments_requested", "trigger")]


def test_tool_code_alone_may_set_a_variable_without_a_binding(tmp_path):
    """Lines 245-246, 483: `context_variables.set` with the value it extracted."""
    played = play(
        tmp_path,
        planning(pending()),
        [call("action_plan"), "Good."],
        after=[answer({"plan_acceptance": "accepted"})],
    )
    assert played.sets("action_plan_acceptance") == [("accepted", "tool:action_plan")]


@pytest.mark.parametrize("by", ["words", "answer"])
def test_both_kinds_of_triggers_may_be_mixed_in_one_variable(tmp_path, by):
    """Lines 60, 357: either agent text or confirmation flips it."""
    triggers = (
        says("Planner", "READY", value="accepted"),
        answers("ask", "plan_acceptance"),
    )
    files = {**planning(pending(*triggers)), **desk(agent="Planner", ui=["ask"])}
    if by == "words":
        played = play(tmp_path, files, ["ready"])
    else:
        reply = answer({"plan_acceptance": "accepted"})
        played = play(tmp_path, files, [call("ask"), "Good."], after=[reply])
    assert played.sets("action_plan_acceptance") == [("accepted", "trigger")]


def test_derived_values_are_initialized_to_their_default(tmp_path):
    """Lines 205, 221: everywhere, before anybody speaks: prompts, tools and conditions."""
    definitions = {**COMPLETE, "stage": pending()}
    shown = {item: ["interview_complete", "stage"] for item in BOTH}
    files = interview(definitions, shown, **desk("look", agent="InterviewAgent"))
    script = [call("look", name="stage"), "What?", "NEXT", "A plan."]
    played = play(tmp_path, files, script, after=[say("hm")])
    assert played.prompt("InterviewAgent").endswith("interview_complete: false\nstage: pending")
    assert played.of(ToolReturned)[0].value == {"found": "pending"}
    assert played.ways[0] == ("InterviewAgent", "user"), "the condition saw the default"
    assert played.prompt("Planner").endswith("interview_complete: true\nstage: pending")


def test_a_flip_reaches_every_agent_and_every_tool(tmp_path):
    """Lines 222-223: across providers."""
    files = interview(exposure=BOTH, **desk("look", agent="Planner"))
    played = play(tmp_path, files, ["NEXT", call("look", name="interview_complete"), "A plan."])
    assert played.prompt("InterviewAgent").endswith("interview_complete: false")
    assert played.prompt("Planner").endswith("interview_complete: true")
    assert played.of(ToolReturned)[0].value == {"found": True}


def test_a_variable_is_set_only_when_all_predicates_match(tmp_path):
    """Lines 222, 234: neither another agent nor other words do it."""
    rules = handoffs(
        ("InterviewAgent", "Planner"),
        ("Planner", "terminate", "interview_complete"),
        ("Planner", "InterviewAgent"),
    )
    files = interview(exposure=BOTH, handoffs=rules)
    played = play(tmp_path, files, ["Next up: you.", "NEXT", "NEXT", "A plan."])
    (event,) = [event for event in played.events if isinstance(event.data, VariableSet)]
    turns = [event.data.agent for event in played.events if isinstance(event.data, TurnStarted)]
    assert turns == ["InterviewAgent", "Planner", "InterviewAgent", "Planner"]
    assert event.turn == 3


def test_a_trigger_sets_true_or_the_literal_it_provides(tmp_path):
    """Line 223."""
    definitions = {
        **COMPLETE,
        "stage": derived("interview", says("InterviewAgent", "NEXT", value="plan"), type_="string"),
        "left": derived(3, says("InterviewAgent", "NEXT", value=2), type_="integer"),
    }
    played = play(tmp_path, interview(definitions), ["NEXT", "A plan."])
    assert dict(played.values) == {"interview_complete": True, "stage": "plan", "left": 2}


def test_a_flip_is_idempotent(tmp_path):
    """Line 223: said again, it is no event."""
    files = interview(
        agents=agents("InterviewAgent"), handoffs=handoffs(("InterviewAgent", "user"))
    )
    played = play(tmp_path, files, ["NEXT", "next", "NEXT"], after=[say("a"), say("b")])
    assert played.sets("interview_complete") == [(True, "trigger")]


@pytest.mark.parametrize("said", ["NEXT", "next", "  Next \n", "nExT"])
def test_text_is_compared_trimmed_and_in_any_case(tmp_path, said):
    """Line 235, the trigger of lines 227-231 verbatim."""
    played = play(tmp_path, interview(), [said, "A plan."])
    assert played.sets("interview_complete") == [(True, "trigger")]


@pytest.mark.parametrize("said", ["NEXT.", "NEXT NEXT", "N E X T", "Nexts", "the NEXT step"])
def test_no_heuristic_or_fuzzy_matching(tmp_path, said):
    """Line 65."""
    played = play(tmp_path, interview(), [said])
    assert played.sets("interview_complete") == []
    assert played.row.status == "waiting"


def test_value_of_another_type_is_refused_for_every_writer(tmp_path):
    """Line 174: the type of a definition holds for every write."""
    files = interview(
        {**COMPLETE, "left": derived(3, type_="integer")}, **desk("put", agent="InterviewAgent")
    )
    played = play(tmp_path, files, [call("put", name="left", value="many"), "What?"])
    assert "left" in played.of(ToolFailed)[0].error
    assert played.values["left"] == 3
    wrong = says("InterviewAgent", "NEXT", value="few")
    said = findings(tmp_path, interview({**COMPLETE, "left": derived(3, wrong, type_="integer")}))
    assert [finding.code for finding in said if finding.severity == "error"] == ["VAR002"]
