"""The life of a run: turns, tools, outputs, questions, limits, ends."""

from dataclasses import replace

import pytest

from support.cases import read_cases
from support.engine_play import Play, workflow
from weft.engine.commands import Assemble, CallModel, CallTool
from weft.engine.events import (
    ConditionJudged,
    ContextAssembled,
    Event,
    HandedOff,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    RunEnded,
    RunForked,
    RunStarted,
    StopRequested,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    TurnEnded,
    Usage,
    VariableRefused,
    VariableSet,
)
from weft.engine.message import Message
from weft.engine.reduce import pending, reduce
from weft.engine.rows import RequestClosed, RequestRow, batch
from weft.engine.snapshot import restore, take_snapshot
from weft.engine.state import Spent
from weft.engine.timers import NEVER
from weft.engine.turn.calls import MAX_CALLS, MAX_REFUSALS

CASES = read_cases(__file__)

TOOL = {"agent": "A", "function": "look"}


def derived(type_="bool", **source):
    return {"type": type_, "source": {"type": "derived", **source}}


def rule(target, condition=None, source="A", **rest):
    return {"source_agent": source, "target_agent": target, "condition": condition, **rest}


def request(id_="c1", tool="look", **arguments):
    return ToolRequest(id_, tool, arguments)


def test_a_turn_in_the_order_of_the_journal():
    play = Play(workflow(handoffs=[rule("terminate", reason="all done")], tools=[TOOL]))
    play.start()
    (call,) = play.reply("let me look", request(q=1))
    assert call == CallTool("c1", "A", 1, "look", {"q": 1}, play.events[-1].seq)
    play.take(ToolReturned("c1", {"found": 2}))
    play.reply("found it")
    assert play.kinds() == [
        "RunStarted",
        "RequestOpened",
        "RequestAnswered",
        "TurnStarted",
        "ContextAssembled",
        "ModelReplied",
        "ToolCalled",
        "ToolReturned",
        "ContextAssembled",
        "ModelReplied",
        "TurnEnded",
        "HandedOff",
        "RunEnded",
    ]
    assert (play.state.outcome, play.state.reason) == ("completed", "all done")
    assert [(m.role, m.text) for m in play.state.messages] == [
        ("user", "hello"),
        ("agent", "let me look"),
        ("tool", '{"found": 2}'),
        ("agent", "found it"),
    ]
    assert [event.cause for event in play.events] == [0, 1, 0, 3, 4, 0, 6, 0, 8, 0, 10, 11, 12]


def test_an_end_without_a_declared_reason_names_who_ended():
    play = Play(workflow(handoffs=[rule("terminate")]))
    play.start()
    play.reply("bye")
    assert play.state.reason == "A ended the run"


def test_user_driven_runs_wait_for_the_first_words():
    opening = {"initial_message_to_user": "Welcome", "initial_message": "Be kind."}
    play = Play(workflow(orchestrator=opening))
    play.start(message=None)
    assert play.kinds() == ["RunStarted", "MessageShown", "RequestOpened"]
    assert play.state.status == "waiting"
    play.take(RequestAnswered("r:1", "hi", "user"))
    assert play.state.turn is not None
    assert [m.text for m in play.state.messages] == ["Be kind.", "hi"]


def test_agent_driven_runs_begin_by_themselves():
    play = Play(workflow(orchestrator={"initiated_by": "system"}))
    assert [type(item) for item in play.start(message=None)] == [CallModel]


def test_the_user_answers_the_agent_that_asked():
    play = Play(workflow(handoffs=[rule("B"), rule("user", source="B")]))
    play.start()
    play.reply("to you, B")
    play.reply("what do you mean?")
    assert play.state.status == "waiting"
    play.take(RequestAnswered(next(iter(play.state.requests)), "this", "user"))
    assert play.state.turn.agent == "B"
    assert play.state.turn_counts == {"A": 1, "B": 2}


def test_a_second_answer_changes_nothing():
    play = Play(workflow())
    play.start(message=None)
    play.take(RequestAnswered("r:1", "hi", "user"))
    before = play.state.copy()
    assert play.take(RequestAnswered("r:1", "again", "user", message_id="m1")) == []
    before.seq = play.state.seq
    assert play.state == before


def test_messages_that_have_a_name_are_remembered():
    play = Play(workflow(handoffs=[rule("user")]))
    play.start(message=None)
    earlier = []
    for name in ("m1", None, "m2"):
        earlier.append(play.state.copy())
        play.take(RequestAnswered(next(iter(play.state.requests)), "hi", "user", name))
        play.reply("what else?")
    assert list(play.state.message_ids) == ["m1", "m2"]
    assert [list(item.message_ids) for item in earlier] == [[], ["m1"], ["m1"]]


def test_several_tools_are_called_at_once_and_all_are_waited_for():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    calls = play.reply("", request("c1"), request("c2"))
    assert [call.id for call in calls] == ["c1", "c2"]
    assert play.take(ToolReturned("c2", "two")) == []
    assert play.take(ToolReturned("c2", "two again")) == []
    (model,) = play.take(ToolReturned("c1", "one"))
    assert isinstance(model, CallModel)
    assert [m.text for m in play.state.messages][-2:] == ["two", "one"]


def test_a_tool_that_does_not_exist_is_explained_to_the_model():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    play.reply("", request(tool="lok"))
    failed = play.last(ToolFailed)
    assert (failed.kind, failed.error) == ("unknown", "there is no tool lok; available: look")
    assert play.state.turn.call == 2


def test_a_failed_tool_is_explained_to_the_model():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    play.reply("", request())
    play.take(ToolFailed("c1", "no such order"))
    assert list(play.state.messages)[-1].text == "error: no such order"


def test_endless_tool_use_ends_the_run():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    for number in range(MAX_CALLS):
        play.reply("", request(f"c{number}"))
        play.take(ToolReturned(f"c{number}", "ok"))
    assert play.state.outcome == "failed"
    assert f"{MAX_CALLS} model calls" in play.state.reason


def test_a_failed_model_ends_the_run_with_its_reason():
    play = Play(workflow())
    play.start()
    play.take(ModelFailed(1, "429 too many requests", 3))
    assert play.state.reason == "the model of A failed: 429 too many requests"


MODEL = {"name": "Out", "fields": {"n": {"type": "int"}}}
BOUND = {"models": [MODEL], "registry": [{"agent": "A", "model": "Out"}]}


def test_an_output_that_does_not_fit_is_tried_again():
    play = Play(workflow(**BOUND))
    play.start()
    play.reply("no json")
    play.reply('{"n": "x"}')
    first, second = [e.data.error for e in play.events if isinstance(e.data, OutputRefused)]
    assert first.startswith("the reply is not JSON: ")
    assert second == 'expected int, got "x" at n'
    play.reply('{"n": 3}')
    assert play.state.status == "waiting"


@pytest.mark.parametrize(
    ("finish", "ending"), [("length", " (the reply was truncated: token limit)"), ("other", "")]
)
def test_truncated_reply_is_marked(finish: str, ending: str):
    play = Play(workflow(**BOUND))
    play.start()
    play.take(ModelReplied(1, '{"n": "x"}', finish_reason=finish))
    (refused,) = [e.data for e in play.events if isinstance(e.data, OutputRefused)]
    assert refused.error == f'expected int, got "x" at n{ending}'
    assert f"at n{ending}. Reply again." in list(play.state.messages)[-1].text


def test_an_output_that_never_fits_ends_the_run():
    play = Play(workflow(**BOUND))
    play.start()
    for _ in range(MAX_REFUSALS):
        play.reply("no json")
    assert play.state.outcome == "failed"
    assert "gave no valid reply" in play.state.reason


AUTO = {
    **BOUND,
    "agents": [{"agent_name": "A", "auto_tool_mode": True}],
    "tools": [{**TOOL, "auto_invoke": True}],
}


def test_a_fitting_output_calls_the_automatic_tool():
    play = Play(workflow(**AUTO))
    play.start()
    (call,) = play.reply('{"n": 3}')
    assert (call.tool, call.arguments) == ("look", {"n": 3})
    play.take(ToolReturned(call.id, "done"))
    assert play.kinds()[-3:] == ["TurnEnded", "HandedOff", "RequestOpened"]
    assert [m.role for m in play.state.messages] == ["user", "agent"]


def test_an_automatic_tool_sends_a_reply_back():
    play = Play(workflow(**AUTO))
    play.start()
    (first,) = play.reply('{"n": 3}')
    play.take(RequestOpened("q", "ui", "A", tool="look", call=first.id))
    assert play.state.status == "waiting"
    (asked,) = play.take(ToolFailed(first.id, "n must be even", "retry"))
    assert (asked.turn, asked.call) == (1, 2)
    assert play.last(OutputRefused) == OutputRefused(1, "n must be even")
    assert list(play.state.messages)[-1].role == "correction"
    assert "n must be even" in list(play.state.messages)[-1].text
    assert (play.state.status, play.state.requests) == ("running", {})
    (second,) = play.reply('{"n": 4}')
    assert second.id != first.id, "what is told late of the first call is not of the second"
    play.take(ToolReturned(first.id, "late"))
    assert play.state.calls.keys() == {second.id}
    play.take(ToolReturned(second.id, "done"))
    assert play.kinds()[-3:] == ["TurnEnded", "HandedOff", "RequestOpened"]


def test_replies_sent_back_count_as_refused_ones():
    play = Play(workflow(**AUTO))
    play.start()
    play.reply("no json")
    for _ in range(MAX_REFUSALS - 1):
        (call,) = play.reply('{"n": 3}')
        assert play.state.outcome is None
        play.take(ToolFailed(call.id, "n must be even", "retry"))
    assert play.state.outcome == "failed"
    assert play.state.reason == "A gave no valid reply: n must be even"


@pytest.mark.parametrize("kind", ["error", "timeout", "refused"])
def test_an_automatic_tool_that_fails_otherwise_ends_the_run(kind):
    play = Play(workflow(**AUTO))
    play.start()
    (call,) = play.reply('{"n": 3}')
    play.take(ToolFailed(call.id, "no", kind))
    assert play.state.reason == "the automatic tool look failed: no"


@pytest.mark.parametrize(("match", "text", "fires"), CASES["test_agent_text_sets_a_variable"])
def test_agent_text_sets_a_variable(match, text, fires):
    trigger = {"type": "agent_text", "agent": "A", "match": match, "value": "yes"}
    variables = {"v": derived("str", default="no", triggers=[trigger])}
    play = Play(workflow(variables=variables))
    play.start()
    play.reply(text)
    assert play.state.variables["v"] == ("yes" if fires else "no")
    assert ("v" in play.state.set_by) is fires


def test_a_trigger_is_the_named_agents_alone_and_fires_once():
    trigger = {"type": "agent_text", "agent": "A", "match": {"equals": "X"}}
    play = Play(
        workflow(
            handoffs=[rule("B"), rule("A", source="B")],
            variables={"v": derived(default=False, triggers=[trigger])},
        )
    )
    play.start()
    play.reply("hm")
    play.reply("X")
    assert play.state.variables["v"] is False
    play.reply("X")
    play.reply("X")
    play.reply("X")
    assert play.kinds().count("VariableSet") == 1


def test_handoffs_see_what_triggers_set():
    trigger = {"type": "agent_text", "agent": "A", "match": {"equals": "GO"}}
    variables = {"ready": derived(default=False, triggers=[trigger])}
    play = Play(workflow(handoffs=[rule("B", "ready"), rule("user")], variables=variables))
    play.start()
    play.reply("GO")
    assert play.state.turn.agent == "B"
    assert play.last(HandedOff) == HandedOff("A", "B", "rule", 0, {"0": True})


@pytest.mark.parametrize(
    ("condition", "decided", "asked"),
    [("late", ("rule", 1), ["1"]), ("not late", ("fallback", 2), ["1", "0"])],
)
def test_a_handoff_records_the_rules_that_were_asked_in_order(condition, decided, asked):
    variables = {"ready": derived(default=False), "late": derived(default=True)}
    handoffs = [rule("B", "ready", priority=9), rule("B", condition, priority=5), rule("user")]
    play = Play(workflow(handoffs=handoffs, variables=variables))
    play.start()
    play.reply("hm")
    handed = next(event.data for event in play.events if isinstance(event.data, HandedOff))
    assert (handed.why, handed.rule) == decided
    assert list(handed.evaluated) == asked, "those after the one that holds are not asked"
    assert handed.evaluated == {index: (condition, index) == ("late", "1") for index in asked}


def test_a_handoff_in_the_middle_of_a_turn_records_the_rules_that_were_asked():
    pre = {"source_agent": "A", "condition_scope": "pre"}
    variables = {"ready": derived(default=False), "done": derived(default=False)}
    handoffs = [
        {**pre, "target_agent": "B", "condition": "Is it urgent?", "condition_type": "llm"},
        {**pre, "target_agent": "terminate", "condition": "done"},
        {**pre, "target_agent": "B", "condition": "ready"},
    ]
    play = Play(workflow(handoffs=handoffs, variables=variables, tools=[TOOL]))
    play.start()
    play.take(ConditionJudged(0, holds=False, text="no"), turn=0)
    play.reply("", request("c1"))
    play.take(VariableSet("ready", True, "tool:look"))
    play.take(ToolReturned("c1", "ok"))
    handed = HandedOff("A", "B", "rule", 2, {"1": False, "2": True})
    assert play.last(HandedOff) == handed, "what a model judges is asked before the turn alone"
    assert restore(take_snapshot(play.state), "digest") == play.state


def test_the_greeting_is_recorded_before_the_first_message_of_the_user():
    play = Play(workflow(orchestrator={"initial_message_to_user": "Welcome."}))
    play.start("hello")
    assert play.kinds()[:4] == ["RunStarted", "MessageShown", "RequestOpened", "RequestAnswered"]


def tool_trigger(**rest):
    return {"type": "tool_call", "tool": "look", **rest}


def test_a_tool_call_sets_a_value_or_an_argument():
    variables = {
        "called": derived(default=False, triggers=[tool_trigger()]),
        "topic": derived("str", default="", triggers=[tool_trigger(argument="about.topic")]),
        "other": derived("str", default="", triggers=[tool_trigger(argument="about.missing.x")]),
    }
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request(about={"topic": "tech", "missing": 3}))
    assert play.state.variables == {"called": True, "topic": "tech", "other": ""}


def test_invalid_value_is_refused_and_reported():
    variables = {"n": derived("int", default=0, triggers=[tool_trigger(argument="n")])}
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request(n="three"))
    assert play.state.variables == {"n": 0}
    assert play.last(VariableRefused).name == "n"


def test_only_declared_transitions_happen():
    variables = {
        "phase": derived(
            'literal["a", "b", "c"]',
            default="a",
            triggers=[tool_trigger(argument="to")],
            transitions=[{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
        )
    }
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request("c1", to="c"), request("c2", to="b"), request("c3", to="c"))
    assert play.state.variables == {"phase": "c"}
    assert play.kinds().count("VariableRefused") == 1


UI = {"type": "ui_response", "tool": "look", "response_key": "answer.plan"}


def opened(call="c1", **rest):
    return RequestOpened("q1", "ui", "A", tool="look", call=call, **rest)


def test_an_answer_sets_its_variable_and_goes_to_its_tool():
    variables = {
        "plan": derived("str", default="", triggers=[UI]),
        "other": derived("str", default="", triggers=[{**UI, "response_key": "none"}]),
    }
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request())
    play.take(opened())
    assert play.state.status == "waiting"
    assert list(pending(play.compiled, play.state)) == []
    (resumed,) = play.take(RequestAnswered("q1", {"answer": {"plan": "ok"}}, "user"))
    assert [answer.value for answer in resumed.answers] == [{"answer": {"plan": "ok"}}]
    assert play.state.variables == {"plan": "ok", "other": ""}
    assert list(pending(play.compiled, play.state)) == [resumed]


def test_a_question_beside_a_working_tool_does_not_stop_the_run():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    play.reply("", request("c1"), request("c2"))
    play.take(opened("c1"))
    assert play.state.status == "running"
    play.take(ToolReturned("c2", "x"))
    assert [call.id for call in play.state.calls.values()] == ["c1"]
    assert play.state.status == "waiting"


def test_a_run_waits_as_long_as_any_question_is_all_there_is():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    play.reply("", request("c1"), request("c2"))
    play.take(opened("c1"))
    play.take(replace(opened("c2"), id="q2"))
    assert play.state.status == "waiting"
    play.take(RequestAnswered("q1", "x", "user"))
    assert play.state.status == "running"
    play.take(ToolReturned("c1", "x"))
    assert play.state.status == "waiting"
    play.take(RequestAnswered("q2", "x", "user"))
    play.take(ToolReturned("c2", "x"))
    assert (play.state.status, play.state.turn.stage) == ("running", "model")


def test_a_tool_that_gives_up_asking_closes_its_question():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    play.reply("", request("c1"))
    play.take(opened("c1"))
    play.take(ToolReturned("c1", "nobody was there"))
    assert play.state.requests == {}


def test_a_fork_counts_its_own_calls_and_may_have_another_model():
    for model, expected in ((None, "first"), ("second", "second")):
        play = Play(workflow())
        play.take(RunStarted("W", "digest", "app", "user", {}, with_message=True, model="first"))
        play.say("hi")
        play.reply("x")
        assert play.state.spent.calls == 1
        assert play.take(RunForked("parent", play.state.seq, model)) == []
        assert (play.state.forked_from, play.state.model) == ("parent", expected)
        assert play.state.spent.calls == 0


def test_an_expired_question_fails_its_tool_or_has_its_declared_answer():
    for otherwise, expected in ((None, "ToolFailed"), ({"plan": "default"}, "RequestExpired")):
        play = Play(workflow(tools=[TOOL]))
        play.start()
        play.reply("", request())
        play.take(opened(otherwise=otherwise))
        resumed = play.take(RequestExpired("q1"))
        kinds = play.kinds()
        assert expected in kinds
        assert ("ToolFailed" in kinds) is (otherwise is None)
        answers = [given.value for item in resumed for given in getattr(item, "answers", ())]
        assert answers == ([] if otherwise is None else [otherwise])


def test_default_answer_sets_the_same_variables():
    variables = {"plan": derived("str", default="", triggers=[UI])}
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request())
    play.take(opened(otherwise={"answer": {"plan": "none"}}))
    play.take(RequestExpired("q1"))
    assert play.state.variables == {"plan": "none"}


def test_expiry_and_answers_for_nothing_open():
    play = Play(workflow())
    play.start()
    assert play.take(RequestExpired("nothing")) == []
    play.take(RequestOpened("q", "ui", "A", tool="look", call="gone"))
    assert play.take(RequestAnswered("q", 1, "user")) == []


def test_an_answer_that_no_call_waits_for_sets_its_variable():
    play = Play(workflow(variables={"plan": derived("str", default="", triggers=[UI])}))
    play.start()
    play.take(RequestOpened("q", "ui", "A", tool="look"))
    assert play.take(RequestAnswered("q", {"answer": {"plan": "ok"}}, "user")) == []
    assert play.state.variables == {"plan": "ok"}


def test_max_turns_ends_with_its_own_outcome():
    play = Play(
        workflow(handoffs=[rule("B"), rule("A", source="B")], orchestrator={"max_turns": 3})
    )
    play.start()
    for _ in range(3):
        play.reply("on")
    assert (play.state.outcome, play.state.turns) == ("max_turns", 3)


def test_user_is_not_asked_without_remaining_turns():
    play = Play(workflow(handoffs=[rule("user")], orchestrator={"max_turns": 1}))
    play.start()
    play.reply("and you?")
    assert (play.state.outcome, play.state.turns) == ("max_turns", 1)
    assert not play.state.requests


def test_reply_limit_hands_to_the_user_or_ends():
    single = [{"agent_name": "A", "human_interaction": "feedback"}]
    play = Play(workflow(agents=single, handoffs=[rule("A")]))
    play.start()
    for _ in range(5):
        play.reply("me again")
    assert play.last(HandedOff).why == "reply_limit"
    play.take(RequestAnswered(next(iter(play.state.requests)), "go on", "user"))
    assert play.state.turn.agent == "A"
    backend = {"trigger": {"type": "webhook"}}
    play = Play(workflow(agents=single, handoffs=[rule("A")], orchestrator=backend))
    play.start()
    for _ in range(5):
        play.reply("me again")
    assert play.state.reason == "A has given 5 replies in a row"


def test_one_reply_in_a_row_is_one():
    single = [{"agent_name": "A", "human_interaction": "single"}]
    play = Play(
        workflow(agents=single, handoffs=[rule("A")], orchestrator={"trigger": {"type": "webhook"}})
    )
    play.start()
    play.reply("me again")
    assert play.state.reason == "A has given 1 reply in a row"


def test_rules_before_the_reply():
    rules = [rule("B", "skip", condition_scope="pre")]
    play = Play(workflow(handoffs=rules, variables={"skip": derived(default=True)}))
    play.start()
    assert play.state.turn.agent == "B"
    circle = [*rules, rule("A", "skip", source="B", condition_scope="pre")]
    play = Play(workflow(handoffs=circle, variables={"skip": derived(default=True)}))
    play.start()
    assert play.state.reason == "handoff rules form a cycle in which no agent replies"


def test_stop_now_and_after_the_turn():
    play = Play(workflow(handoffs=[rule("B")]))
    play.start()
    play.take(StopRequested("now", "ada"))
    assert (play.state.outcome, play.state.reason) == ("cancelled", "stopped by ada")
    play = Play(workflow(handoffs=[rule("B")]))
    play.start()
    play.take(StopRequested("after_turn", "ada"))
    assert play.state.status == "running"
    play.reply("the last words")
    assert play.state.reason == "stopped on request after the turn"
    play = Play(workflow())
    play.start(message=None)
    play.take(StopRequested("after_turn", "ada"))
    assert play.state.outcome == "cancelled"


def test_nothing_happens_after_the_end():
    play = Play(workflow())
    play.start()
    play.take(RunEnded("completed", "x"))
    before = play.state.copy()
    late = Event(play.state.seq + 1, 0, "t", 0, 1, ModelReplied(1, "late"))
    after, commands = reduce(play.compiled, play.state, late)
    before.seq += 1
    assert (after, commands) == (before, [])


@pytest.mark.parametrize(
    "late",
    [
        ContextAssembled("A", 9, {}, ""),
        ModelReplied(9, "x"),
        ModelFailed(9, "x"),
        OutputRefused(9, "x"),
        ToolCalled("c9", "look", {}),
        ToolReturned("c9", "x"),
        ToolFailed("c9", "x"),
    ],
)
def test_unexpected_results_change_nothing(late):
    for message in ("hello", None):
        play = Play(workflow())
        play.start(message=message)
        before = play.state.copy()
        assert play.take(late) == []
        before.seq += 1
        assert play.state == before


def test_restart_repeats_unfinished_effects():
    play = Play(workflow(tools=[TOOL]))
    assert list(pending(play.compiled, play.state)) == []
    (model,) = play.start()
    assert list(pending(play.compiled, play.state)) == [model]
    calls = play.reply("", request("c1"), request("c2"))
    assert list(pending(play.compiled, play.state)) == calls
    state, _ = reduce(play.compiled, play.state, Event(99, 0, "t", 0, 1, ToolReturned("c1", "x")))
    state, commands = reduce(
        play.compiled, state, Event(100, 0, "t", 0, 1, ToolReturned("c2", "x"))
    )
    assert commands == [Assemble("A", 1, 2)]
    assert list(pending(play.compiled, state)) == commands


def test_rows_follow_from_the_states():
    play = Play(workflow())
    before = play.state
    play.start(message=None)
    written = batch(before, play.state, play.events, id="b1")
    assert (written.expected, written.row.status, written.row.seq) == (0, "waiting", 2)
    assert (written.id, written.held, written.due_at) == ("b1", False, NEVER)
    (opened_row,) = written.changes
    assert isinstance(opened_row, RequestRow)
    assert opened_row.id == "r:1"
    middle = play.state
    play.take(RequestAnswered("r:1", "hi there", "user"))
    written = batch(middle, play.state, play.events[2:], id="b2")
    assert written.changes == (RequestClosed("r:1"),)
    assert (written.id, written.due_at) == ("b2", play.events[-1].at), "another continues it"
    assert written.row.preview == "hi there"


def test_open_requests_are_not_written_again():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    play.reply("", request("c1"), request("c2"))
    play.take(opened("c1"))
    before = play.state
    play.take(replace(opened("c2"), id="q2"))
    (row,) = batch(before, play.state, play.events[-1:], id="b").changes
    assert isinstance(row, RequestRow)
    assert row.id == "q2"
    before = play.state
    play.take(VariableSet("v", 1, "tool:look"))
    assert batch(before, play.state, play.events[-1:], id="b").changes == ()


def test_a_batch_says_when_the_first_timer_that_is_set_is_due():
    group = {"name": "Both", "members": ["A", "B"], "deadline_seconds": 1, "next": "user"}
    play = Play(workflow(orchestrator={"initial_agent": "Both", "parallel": [group]}))
    play.start()
    before = play.state
    again = Event(play.state.seq + 1, 5, "t", 4, 0, TimerSet("other", 9, "deadline"))
    after, _ = reduce(play.compiled, play.state, again)
    written = batch(before, after, [again], id="b", held=True)
    assert (written.changes, written.due_at) == ((), 9)
    for turn in (1, 2):
        play.reply("x", turn=turn)
    written = batch(after, play.state, play.events[-1:], id="c")
    assert [type(side) for side in written.changes] == [RequestRow]
    assert written.due_at == NEVER


def test_a_group_that_joins_takes_no_timers_of_others_with_it():
    group = {"name": "Both", "members": ["A", "B"], "deadline_seconds": 1, "next": "user"}
    play = Play(workflow(orchestrator={"initial_agent": "Both", "parallel": [group]}))
    play.start()
    play.take(TimerSet("other", 9, "trigger"), turn=0)
    assert len(play.state.timers) == 2
    for turn in (1, 2):
        play.reply("x", turn=turn)
    assert list(play.state.timers) == ["other"]


def test_spent_keeps_the_unknown_apart_from_nothing():
    play = Play(workflow(handoffs=[rule("B")]))
    play.start()
    play.take(ModelReplied(1, "a", usage=Usage(10, 5, 0, 0.5)))
    play.take(ModelReplied(1, "b", usage=Usage()))
    spent = play.state.spent
    assert (spent.calls, spent.input_tokens, spent.cost_usd, spent.unpriced_calls) == (
        2,
        10,
        0.5,
        1,
    )
    assert spent.unmetered_calls == 1


@pytest.mark.parametrize(
    ("usage", "unmetered_calls"),
    [
        (Usage(10, 5), 0),
        (Usage(0, 0), 0),
        (Usage(10), 1),
        (Usage(None, 5), 1),
        (Usage(cost_usd=0.5), 1),
    ],
)
def test_a_call_is_counted_if_both_its_sides_are(usage: Usage, unmetered_calls: int):
    assert Spent().plus(usage).unmetered_calls == unmetered_calls


def test_tool_results_that_are_texts_stay_as_they_are():
    play = Play(workflow(tools=[TOOL]))
    play.start()
    play.reply("", request())
    play.take(ToolReturned("c1", "plain"))
    assert list(play.state.messages)[-1] == Message(
        "tool", "A", "plain", play.events[-2].seq, call="c1"
    )


def test_turn_ended_and_variables_set_by_tools():
    play = Play(workflow(variables={"v": derived("int", default=1)}))
    play.start()
    play.take(VariableSet("v", 2, "tool:look"))
    assert play.state.variables == {"v": 2}
    play.take(TurnEnded("A"))
    assert play.state.turn is None


def test_variables_that_need_the_world_start_without_a_value():
    variables = {
        "fixed": {"type": "int", "source": {"type": "static", "value": 5}},
        "found": {"type": "str", "source": {"type": "file", "path": "a.txt"}},
        "timed": derived(triggers=[{"type": "timer_expired", "after_seconds": 5}]),
    }
    play = Play(workflow(variables=variables))
    play.start()
    assert play.state.variables == {"fixed": 5, "found": None, "timed": None}


def test_a_chat_waits_for_as_long_as_it_takes():
    play = Play(workflow())
    play.start(None)
    (question,) = play.state.requests
    play.take(RequestExpired(question))
    assert (play.state.status, list(play.state.requests)) == ("waiting", [question])


def test_a_result_sets_a_value_or_what_stands_in_it():
    base = {"type": "tool_response", "tool": "look"}
    variables = {
        "looked": derived("bool", default=False, triggers=[base]),
        "state": derived("str", triggers=[{**base, "response_key": "order.state"}]),
    }
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request())
    play.take(ToolReturned("c1", {"order": {"state": "sent"}}))
    assert play.state.variables == {"looked": True, "state": "sent"}
    assert play.kinds()[-3:] == ["VariableSet", "VariableSet", "ContextAssembled"]


def test_an_argument_sets_a_value_only_when_the_tool_has_returned():
    at_call = {"type": "tool_call", "tool": "look", "argument": "order.number"}
    after = {"type": "tool_response", "tool": "look", "argument": "order.number"}
    variables = {
        "asked": derived("int", default=0, triggers=[at_call]),
        "seen": derived("int", default=0, triggers=[after]),
    }
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", ToolRequest("c1", "look", {"order": {"number": 7}}))
    play.take(ToolFailed("c1", "there is no such order", "refused"))
    assert play.state.variables == {"asked": 7, "seen": 0}
    play.reply("", ToolRequest("c2", "look", {"order": {"number": 8}}))
    play.take(ToolReturned("c2", "sent"))
    assert play.state.variables == {"asked": 8, "seen": 8}


def test_user_message_sets_variables_before_rules():
    trigger = {"type": "user_text", "match": {"contains": "refund"}}
    rules = [
        {"source_agent": "A", "target_agent": "B", "condition": "money", "condition_scope": "pre"},
        {"source_agent": "A", "target_agent": "user"},
    ]
    variables = {"money": derived("bool", default=False, triggers=[trigger])}
    play = Play(workflow(variables=variables, handoffs=rules))
    play.start("I want a refund")
    assert play.state.turn.agent == "B"
    play = Play(workflow(variables=variables, handoffs=rules))
    play.start("hello")
    play.reply("what?")
    (question,) = play.state.requests
    play.take(RequestAnswered(question, "my Refund!", "user"))
    assert play.state.turn.agent == "B"


def test_the_way_of_the_word_sets_a_variable():
    triggers = [
        {"type": "handoff", "source_agent": "A", "target_agent": "B", "value": "passed"},
        {"type": "handoff", "source_agent": "B", "value": "returned"},
    ]
    variables = {"way": derived("str", default="", triggers=triggers)}
    rules = [
        {"source_agent": "A", "target_agent": "B"},
        {"source_agent": "B", "target_agent": "A"},
    ]
    play = Play(workflow(variables=variables, handoffs=rules))
    play.start()
    play.reply("x")
    assert play.state.variables == {"way": "passed"}
    play.reply("y")
    assert play.state.variables == {"way": "returned"}


def test_the_turns_of_an_agent_are_counted():
    trigger = {"type": "agent_turn_count", "agent": "A", "count": 2}
    rules = [
        {"source_agent": "A", "target_agent": "terminate", "condition": "tired"},
        {"source_agent": "A", "target_agent": "A"},
    ]
    variables = {"tired": derived("bool", default=False, triggers=[trigger])}
    play = Play(workflow(variables=variables, handoffs=rules))
    play.start()
    play.reply("x")
    assert play.state.variables == {"tired": False}
    play.reply("y")
    assert play.state.outcome == "completed"


def test_a_change_of_state_happens_from_where_it_begins():
    steps = [
        {"from": "new", "to": "open", "trigger": {"type": "tool_call", "tool": "look"}},
        {"from": "open", "to": "done", "trigger": {"type": "tool_call", "tool": "look"}},
    ]
    variables = {"phase": derived("str", default="new", transitions=steps)}
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request("c1"))
    assert play.state.variables == {"phase": "open"}
    play.take(ToolReturned("c1", "x"))
    play.reply("", request("c2"))
    assert play.state.variables == {"phase": "done"}
    play.take(ToolReturned("c2", "x"))
    play.reply("", request("c3"))
    assert play.state.variables == {"phase": "done"}
    assert "VariableRefused" not in play.kinds()


def test_last_of_several_triggers_counts():
    triggers = [
        {"type": "agent_text", "agent": "A", "match": {"contains": "x"}, "value": 1},
        {"type": "agent_text", "agent": "A", "match": {"contains": "y"}, "value": 2},
    ]
    play = Play(workflow(variables={"n": derived("int", default=0, triggers=triggers)}))
    play.start()
    play.reply("x y")
    assert play.state.variables == {"n": 2}
    (question,) = play.state.requests
    play.take(RequestAnswered(question, "go on", "user"))
    play.reply("x y")
    assert play.state.variables == {"n": 2}


def test_states_may_be_lists():
    steps = [{"from": [], "to": [1]}]
    trigger = {"type": "tool_call", "tool": "look", "argument": "to"}
    variables = {"n": derived("list[int]", default=[], triggers=[trigger], transitions=steps)}
    play = Play(workflow(variables=variables, tools=[TOOL]))
    play.start()
    play.reply("", request("c1", to=[2]), request("c2", to=[1]))
    assert play.state.variables == {"n": [1]}
    assert play.kinds().count("VariableRefused") == 1


@pytest.mark.parametrize("scope", ["pre", "post"])
def test_a_rule_without_an_answer_ends_the_run_explained(scope):
    rules = [
        {"source_agent": "A", "target_agent": "B", "condition": "x > 3", "condition_scope": scope}
    ]
    play = Play(workflow(variables={"x": derived("int | str", default="a")}, handoffs=rules))
    play.start()
    if scope == "post":
        play.reply("done")
    assert play.state.outcome == "failed"
    assert play.state.reason.startswith("a rule of A could not be evaluated: ")
