"""Boundaries of turns and runs in the engine alone: what is called, fetched and written when."""

import pytest

from support.engine_play import Play, workflow
from weft.engine.commands import CallModel, CallTool, Fetch, Judge, Record, WriteDocument
from weft.engine.compile import compile_workflow, not_performed
from weft.engine.events import (
    ConditionJudged,
    ContextFetched,
    DocumentWritten,
    HandedOff,
    ModelConsulted,
    RequestExpired,
    RequestOpened,
    RunEnded,
    RunEnding,
    StopRequested,
    SurfaceShown,
    TimerFired,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    Usage,
    VariableRefused,
    VariableSet,
)
from weft.engine.reduce import fold, pending
from weft.engine.variables.access import IN_PRODUCTION, without_sources, write_error
from weft.spec.workflow import WorkflowSpec

END = [{"source_agent": "A", "target_agent": "terminate"}]
HOOKS = {"file": "h.py", "function": "f"}


def derived(default=None, type_="any", *triggers, **more):
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source, **more}


def computed(computation, *inputs, type_="any", **more):
    source = {"type": "computed", "computation": computation, "inputs": list(inputs), **more}
    return {"type": type_, "source": source}


def at(*points, **more):
    return [{"hook_type": point, **HOOKS, **more} for point in points]


def ids(effects):
    return [effect.id for effect in effects if isinstance(effect, CallTool)]


def test_a_function_is_called_before_the_next_reply_when_its_input_has_changed():
    tool = {"agent": "A", "function": "t"}
    variables = {"n": derived(1), "m": computed("tools.t:twice", "n", type_="int")}
    play = Play(workflow(["A"], END, variables, [tool]))
    play.start()
    (first,) = ids(play.effects)
    play.take(ToolReturned(first, 2), turn=0)
    play.reply("", ToolRequest("c", "t", {}))
    play.take(VariableSet("n", 5, "tool:t"))
    (call,) = play.take(ToolReturned("c", "ok"))
    assert (call.hook, call.variable, call.turn) == ("computed", "m", 1)
    (model,) = play.take(ToolReturned(call.id, 10))
    assert isinstance(model, CallModel)
    assert play.state.variables["m"] == 10
    assert play.state.dirty == {}


def test_invalid_function_result_fails_the_turn():
    play = Play(workflow(["A"], END, {"n": derived(1), "m": computed("t:f", "n", type_="int")}))
    play.start()
    play.take(ToolReturned(ids(play.effects)[0], "much"), turn=0)
    assert play.last(TurnFailed).kind == "source"
    assert 'm: expected int, got "much"' in play.state.reason


def test_end_of_turn_values_are_computed_before_the_next_reply():
    counted = {"type": "agent_turn_count", "agent": "A", "count": 1, "value": 5}
    variables = {"n": derived(1, "any", counted), "m": computed("t:f", "n")}
    rules = [{"source_agent": "A", "target_agent": "A"}]
    play = Play(workflow(["A"], rules, variables))
    play.start()
    play.take(ToolReturned(ids(play.effects)[0], 1), turn=0)
    (call,) = play.reply("one")
    assert (call.hook, call.variable, call.turn) == ("computed", "m", 2)


def test_a_condition_that_cannot_be_worked_out_is_refused_and_what_hangs_on_it_waits():
    said = {"type": "user_text", "match": {"contains": "x"}, "value": "text"}
    variables = {
        "n": derived("none", "any", said),
        "big": computed("n > 2", "n", type_="bool"),
        "bigger": computed("big", "big", type_="bool"),
    }
    play = Play(workflow(["A"], END, variables))
    play.start("x")
    refused = [event.data for event in play.events if isinstance(event.data, VariableRefused)]
    assert {part.name for part in refused} >= {"big"}
    assert play.state.variables["big"] is None


# What is asked of a person at a boundary


def test_unanswered_question_fails_its_hook():
    play = Play(workflow(["A"], END, hooks=at("before_agent")))
    (call,) = play.start()
    asked = RequestOpened("q", "ui", "A", tool="t", call=call.id, digest="d", expires_at=5)
    play.take(asked)
    assert play.state.status == "waiting"
    (model,) = play.take(RequestExpired("q"))
    assert isinstance(model, CallModel)
    assert play.last(ToolFailed).kind == "timeout"
    assert play.state.requests == {}


def test_a_hook_that_gives_up_takes_its_question_along():
    play = Play(workflow(["A"], END, hooks=at("before_agent")))
    (call,) = play.start()
    play.take(RequestOpened("q", "ui", "A", tool="t", call=call.id, digest="d"))
    play.take(ToolFailed(call.id, "gave up"))
    assert play.state.requests == {}


def test_a_run_that_is_ready_waits_for_its_first_message():
    waits = {"startup_mode": "UserDriven"}
    play = Play(workflow(["A"], END, hooks=at("before_chat"), orchestrator=waits))
    (call,) = play.start(message=None)
    assert play.take(ToolReturned(call.id, None), turn=0) == []
    assert play.state.status == "waiting"
    (model,) = play.say("hi")
    assert isinstance(model, CallModel)


def test_call_remembers_its_surfaces_and_consultations():
    play = Play(workflow(["A"], END, tools=[{"agent": "A", "function": "t"}]))
    play.start()
    play.reply("", ToolRequest("c", "t", {}))
    play.take(ModelConsulted("c", "digest", "text", Usage(1, 2)))
    play.take(SurfaceShown("c", 0, "board", "Board", "inline", None))
    call = play.state.calls["c"]
    assert (call.surfaces, [entry.value for entry in call.consulted]) == (1, ["text"])
    assert play.state.spent.calls == 2
    for late in (ModelConsulted("x", "d", "t"), SurfaceShown("x", 0, "b", "B", "inline", None)):
        before = play.state
        play.take(late)
        assert play.state.calls == before.calls


# The end of a run


def ending(**rest):
    play = Play(workflow(["A"], END, hooks=at("after_chat"), **rest))
    play.start()
    (call,) = play.reply("bye")
    return play, call


def test_a_run_that_is_ending_is_not_ended_twice():
    play, call = ending()
    play.take(RunEnding("failed", "again"), turn=0)
    assert play.state.ending.outcome == "completed"
    play.take(ToolReturned(call.id, None), turn=0)
    assert play.last(RunEnded).outcome == "completed"


def test_a_function_that_fails_when_all_else_is_done_fails_the_run():
    late = {"type": "lifecycle", "event": "after_chat", "value": 2}
    variables = {"n": derived(1, "any", late), "m": computed("t:f", "n")}
    play = Play(workflow(["A"], END, variables))
    play.start()
    play.take(ToolReturned(ids(play.effects)[0], 1), turn=0)
    (call,) = play.reply("bye")
    assert (call.hook, call.variable, call.turn) == ("computed", "m", 0)
    play.take(ToolFailed(call.id, "broke"), turn=0)
    assert play.last(RunEnded).outcome == "failed"
    assert play.state.reason == "A ended the run; t:f (computed:m) failed: broke"


NOTE = {"type": "entity", "collection": "notes", "search_by": "user_id"}


def with_note(strategy, **rest):
    note = {"type": "any", "source": {**NOTE, "write_strategy": strategy}}
    tools = [{"agent": "A", "function": "t"}]
    play = Play(workflow(["A", "B"], rest.pop("handoffs", END), {"note": note}, tools, **rest))
    play.start()
    (fetch,) = play.effects
    assert fetch == Fetch("", 0, ("note",), servers=False, seq=1)
    play.take(ContextFetched({}, {}), turn=0)
    play.reply("", ToolRequest("c", "t", {}))
    return play, play.take(VariableSet("note", {"n": 1}, "tool:t"))


def test_a_document_is_written_at_once_and_again_if_it_was_set_meanwhile():
    play, (write,) = with_note("immediate")
    assert isinstance(write, WriteDocument)
    assert play.take(VariableSet("note", {"n": 2}, "tool:t")) == [], "one after the other"
    assert list(pending(play.compiled, play.state))[-1] == write
    (again,) = play.take(DocumentWritten("note", write.seq), turn=0)
    assert again.seq > write.seq
    assert play.take(DocumentWritten("note", write.seq), turn=0) == [], "it was told before"
    assert play.take(DocumentWritten("note", again.seq), turn=0) == []
    assert play.state.unwritten == play.state.writing == {}


def test_a_document_that_cannot_be_written_fails_the_run_once():
    play, (write,) = with_note("immediate")
    (last,) = play.take(DocumentWritten("note", write.seq, "down"), turn=0)
    assert play.state.ending.reason == "the document of note could not be written: down"
    play.take(DocumentWritten("note", last.seq, "down"), turn=0)
    assert play.state.reason == "the document of note could not be written: down"
    assert play.state.outcome == "failed"


def test_a_run_that_is_writing_its_last_documents_is_not_cut_short():
    play, _ = with_note("on_workflow_end")
    play.take(ToolReturned("c", "ok"))
    (write,) = play.reply("bye")
    assert play.take(StopRequested("now", "ada"), turn=0) == []
    assert play.state.status == "running"
    play.take(DocumentWritten("note", write.seq, "down"), turn=0)
    assert play.state.outcome == "failed"


def test_a_document_is_written_when_another_agent_is_next():
    rules = [{"source_agent": "A", "target_agent": "B"}]
    play, none = with_note("on_phase_transition", handoffs=rules)
    assert none == []
    play.take(ToolReturned("c", "ok"))
    effects = play.reply("over to B")
    assert [type(effect) for effect in effects] == [WriteDocument, CallModel]


# Rules that a model judges, tools that hand off, tools of servers


def judged(scope):
    rule = {"source_agent": "A", "target_agent": "B", "condition": "x", "condition_type": "llm"}
    return workflow(["A", "B"], [{**rule, "condition_scope": scope}, *END])


def test_a_run_that_is_to_stop_does_so_when_the_judge_has_spoken():
    play = Play(judged("pre"))
    (judge,) = play.start()
    assert isinstance(judge, Judge)
    assert list(pending(play.compiled, play.state)) == [judge]
    play.take(StopRequested("after_turn", "ada"), turn=0)
    play.take(ConditionJudged(0, holds=False, text="no"), turn=0)
    assert play.last(RunEnded).outcome == "cancelled"


def test_unexpected_judgement_changes_nothing():
    play = Play(judged("post"))
    play.start()
    play.take(ConditionJudged(0, holds=True, text="yes"), turn=0)
    assert play.state.spent.calls == 0


def test_handoff_by_a_group_member_is_refused():
    group = {"name": "Team", "members": ["B", "C"], "next": "A"}
    agents = ["A", {"agent_name": "B", "handoff_tools": True}, "C"]
    rules = [
        {"source_agent": "A", "target_agent": "Team"},
        {"source_agent": "B", "target_agent": "A"},
    ]
    play = Play(workflow(agents, rules, orchestrator={"parallel": [group]}))
    play.start()
    play.reply("go")
    (model,) = play.reply("", ToolRequest("c", "hand_off_to_A", {}), turn=2)
    assert (model.agent, model.call) == ("B", 2)
    assert play.last(ToolFailed).kind == "refused"
    play.reply("well then", turn=2)
    play.reply("done", turn=3)
    assert play.last(HandedOff).why == "joined"


def test_tools_of_servers_are_those_that_were_there_when_the_run_began():
    server = {"name": "s", "command": ["x"], "agents": ["A"]}
    play = Play(workflow(["A"], END, mcp_servers=[server]))
    play.start()
    (fetch,) = play.effects
    assert fetch.servers
    offered = {"name": "s_add", "tool": "add", "description": "", "parameters": {}, "reads": True}
    play.take(ContextFetched({}, {}, {"s": [offered]}), turn=0)
    (call,) = play.reply("", ToolRequest("c", "s_add", {"a": 1}))
    assert (call.tool, call.arguments) == ("s_add", {"a": 1})
    play.take(ToolReturned("c", 2))
    play.reply("", ToolRequest("d", "s_sub", {}))
    assert play.last(ToolFailed).error == "there is no tool s_sub; available: s_add"


def test_a_fork_cut_before_a_call_calls_it():
    """What a turn waits for may be missing from a journal that was cut there."""
    play = Play(workflow(["A"], END, hooks=at("before_agent")))
    play.start()
    cut = next(n for n, event in enumerate(play.events) if type(event.data) is ToolCalled)
    state = fold(play.compiled, "r", play.events[:cut])
    (again,) = pending(play.compiled, state)
    assert isinstance(again, Record)
    assert again.data == play.events[cut].data


def test_a_fork_cut_before_the_end_of_a_turn_ends_it():
    play = Play(workflow(["A"], END))
    play.start()
    play.reply("bye")
    cut = next(n for n, event in enumerate(play.events) if type(event.data) is TurnEnded)
    state = fold(play.compiled, "r", play.events[:cut])
    assert list(pending(play.compiled, state)) == [Record(TurnEnded("A"), 1)]


# Small parts


def test_a_kind_of_a_plug_in_that_is_not_there_waits_for_nothing():
    trigger = {"type": "x:none", "a": 1}
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {"v": derived(None, "any", trigger)},
        }
    )
    assert compile_workflow(spec).triggers.custom == []
    assert [finding.what for finding in not_performed(spec)] == ["a trigger of v, x:none"]


def test_a_timer_that_is_not_set_changes_nothing():
    play = Play(workflow(["A"], END))
    play.start()
    before = play.state
    play.take(TimerFired("none"), turn=0)
    assert play.state.variables is before.variables


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("app_id", "app_id identifies the user or tenant of the run and cannot be set"),
        ("hidden", "hidden is secret and cannot be set"),
        ("nowhere", "there is no variable nowhere"),
        ("fixed", "fixed comes from static and cannot be set"),
        ("note", 'note.n: expected int, got "x"'),
    ],
)
def test_refused_values_have_a_reason(name, told):
    fields = {"n": {"type": "int"}, "m": {"type": "int"}}
    variables = {
        "fixed": {"type": "int", "source": {"type": "static", "value": 1}},
        "hidden": {"type": "any", "secret": True, "source": NOTE},
        "note": {"type": "any", "source": {**NOTE, "document": fields}},
    }
    compiled = workflow(["A"], END, variables)
    assert write_error(compiled, {}, name, {"n": "x"}, "t") == told
    assert write_error(compiled, {}, "note", {"n": 1, "other": 2}, "t") is None


def test_an_ingredient_whose_variables_are_all_gone_goes_with_them():
    env = {"type": "str", "source": {"type": "environment", "env_var": "E"}}
    listed = [
        {"kind": "variables", "names": ["e"]},
        {"kind": "variables", "names": ["e", "v"]},
        {"kind": "history"},
    ]
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A", "context": listed}],
            "variables": {"e": env, "v": derived(1)},
        }
    )
    (agent,) = without_sources(spec, IN_PRODUCTION).agents
    assert [getattr(item, "names", None) for item in agent.context] == [("v",), None]
