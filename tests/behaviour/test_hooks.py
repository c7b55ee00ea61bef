"""Functions at the boundaries of runs and turns: when they are called, and in which order."""

import asyncio

import pytest

from support.boundary_play import declared, derived, in_turns, of, rest
from support.run_play import ADA, play
from weft.engine.events import (
    MessageSent,
    RunEnded,
    ToolCalled,
    ToolFailed,
    TurnFailed,
    VariableSet,
)
from weft.errors import LinkError, ModelError
from weft.inspect.replay import check_replay
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.models import FunctionModel, ScriptedModel, call

CODE = {
    "hooks/trail.py": b"""
def note(context_variables, what="hook"):
    context_variables.set("trail", [*context_variables.get("trail", []), what])


def hook(context_variables):
    note(context_variables)


def again(context_variables):
    note(context_variables, "again")
""",
    "tools/life.py": b'''
def life(context_variables):
    context_variables.set("trail", [*context_variables.get("trail", []), "tool"])


def work() -> str:
    """Work."""
    return "worked"
''',
    "hooks/bad.py": b"""
import asyncio
import time

from weft import Refuse, tool


def fails():
    raise ValueError("no luck")


def refuses():
    raise Refuse("not me")


def needs(moon):
    return moon


@tool(timeout=0.05)
async def hangs():
    await asyncio.sleep(60)


@tool(timeout=0.05)
def blocks():
    time.sleep(0.3)


def nothing_json():
    return object()
""",
}
TRAIL = {"trail": derived("list[str]", [])}
RUN_POINTS = ("on_start", "before_chat", "after_chat", "on_complete")
TURN_POINTS = (
    "before_agent",
    "update_agent_state",
    "process_all_messages_before_reply",
    "process_last_received_message",
    "process_message_before_send",
    "after_agent",
)
PIPELINE = {"orchestration_pattern": "Pipeline", "human_in_the_loop": False}


def hook(hook_type, function="hook", file="trail.py", **rest):
    return {"hook_type": hook_type, "file": file, "function": function, **rest}


def called(played):
    """What was called at boundaries: the turn, the boundary, the function."""
    return [
        (event.turn, event.data.hook, event.data.tool.rpartition(":")[2])
        for event in played.events
        if isinstance(event.data, ToolCalled) and event.data.hook
    ]


def test_hooks_for_all_are_called_at_every_boundary_of_the_run_and_of_each_turn():
    hooks = [hook(item) for item in (*reversed(TURN_POINTS), *reversed(RUN_POINTS), "on_fail")]
    spec = declared("A", "B", variables=TRAIL, hooks=hooks, orchestrator=PIPELINE)
    played = play(spec, ScriptedModel(["one", "two"]), code=CODE)
    assert [(turn, point) for turn, point, _ in called(played)] == [
        *((0, point) for point in RUN_POINTS[:2]),
        *((1, point) for point in TURN_POINTS),
        *((2, point) for point in TURN_POINTS),
        *((0, point) for point in RUN_POINTS[2:]),
    ]
    assert played.at(RunEnded).data.outcome == "completed"
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize("point", TURN_POINTS)
@pytest.mark.parametrize("agent", ["A", "B", None])
def test_a_hook_for_one_agent_is_called_at_its_turns_only(point, agent):
    spec = declared(
        "A", "B", variables=TRAIL, hooks=[hook(point, agent=agent)], orchestrator=PIPELINE
    )
    played = play(spec, ScriptedModel(["one", "two"]), code=CODE)
    assert [item for item, _, _ in called(played)] == {"A": [1], "B": [2], None: [1, 2]}[agent]


@pytest.mark.parametrize("trigger", [*RUN_POINTS, "before_agent", "after_agent"])
def test_lifecycle_tools_come_before_hooks_and_each_in_the_order_of_its_file(trigger):
    tool = {"file": "life.py", "function": "life", "trigger": trigger}
    hooks = [hook(trigger), hook(trigger, "again")]
    spec = declared(variables=TRAIL, hooks=hooks, lifecycle_tools=[tool, tool])
    played = play(spec, ScriptedModel(["one"]), code=CODE)
    assert [item for _, _, item in called(played)] == ["life", "life", "hook", "again"]
    last = of(played, VariableSet)[-1]
    assert last.value == ["tool", "tool", "hook", "again"], "each sees what those before it set"


@pytest.mark.parametrize("trigger", ["before_agent", "after_agent"])
def test_the_agent_of_a_lifecycle_tool_says_at_whose_turns_it_is_called(trigger):
    tool = {"file": "life.py", "function": "life", "trigger": trigger, "agent": "B"}
    spec = declared("A", "B", variables=TRAIL, lifecycle_tools=[tool], orchestrator=PIPELINE)
    played = play(spec, ScriptedModel(["one", "two"]), code=CODE)
    assert called(played) == [(2, trigger, "life")]


def test_agent_function_at_a_run_hook_point_is_called():
    """Agents' own lifecycle tools may name such a boundary; it is the run's, whoever speaks."""
    spec = declared(variables=TRAIL, hooks=[hook(point, agent="A") for point in RUN_POINTS])
    played = play(spec, ScriptedModel(["one"]), code=CODE)
    assert [item for _, item, _ in called(played)] == list(RUN_POINTS)


def test_a_hook_before_the_first_turn_sets_what_the_first_agent_is_shown():
    spec = declared(variables=TRAIL, hooks=[hook("on_start")], exposure={"A": ["trail"]})
    model = ScriptedModel(["one"])
    play(spec, model, code=CODE)
    assert 'trail: ["hook"]' in model.requests[0].messages[0]["content"]


@pytest.mark.parametrize("point", [*RUN_POINTS, *TURN_POINTS, "on_fail"])
def test_a_hook_whose_error_is_logged_changes_nothing_but_is_recorded(point):
    model = ScriptedModel([ModelError("down")] if point == "on_fail" else ["one"])
    spec = declared(variables=TRAIL, hooks=[hook(point, "fails", "bad.py"), hook(point)])
    played = play(spec, model, code=CODE)
    (failed,) = of(played, ToolFailed)
    assert failed.error.endswith("ValueError at hooks/bad.py:9: no luck")
    assert [item for _, _, item in called(played)] == ["fails", "hook"]
    assert played.at(RunEnded).data.outcome == ("failed" if point == "on_fail" else "completed")
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize("point", [*RUN_POINTS, *TURN_POINTS])
def test_a_hook_whose_error_stops_lets_the_run_fail_and_what_comes_then_is_called(point):
    wrong = hook(point, "fails", "bad.py", on_error="stop")
    hooks = [wrong, hook(point), hook("after_chat", "again"), hook("on_fail", "again")]
    played = play(declared(variables=TRAIL, hooks=hooks), ScriptedModel(["one"]), code=CODE)
    ended = played.at(RunEnded).data
    assert ended.outcome == "failed"
    assert f"hooks/bad.py:fails ({point}) failed: " in ended.reason
    assert "no luck" in ended.reason
    names = [item for _, _, item in called(played)]
    assert "hook" not in names, "of its boundary nothing more is called"
    at_end = [item for _, item, name in called(played) if name == "again"]
    assert at_end == (["on_fail"] if point == "after_chat" else ["after_chat", "on_fail"])
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_lifecycle_tool_stops_as_a_hook_does():
    tool = {"file": "bad.py", "function": "fails", "trigger": "before_agent", "on_error": "stop"}
    code = {"tools/bad.py": CODE["hooks/bad.py"]}
    played = play(declared(lifecycle_tools=[tool]), ScriptedModel([]), code=code)
    (failed,) = of(played, TurnFailed)
    assert failed.kind == "hook"
    assert "tools/bad.py:fails (before_agent) failed" in failed.error


@pytest.mark.parametrize(
    ("function", "kind", "told"),
    [
        ("hangs", "timeout", "took longer than 0.05 seconds"),
        ("blocks", "timeout", "took longer than 0.05 seconds"),
        ("refuses", "refused", "not me"),
        ("needs", "error", "takes moon, which is not given here; available: agent, sender"),
        ("nothing_json", "error", "returned"),
    ],
)
def test_a_hook_that_hangs_or_asks_for_the_moon_is_given_up(function, kind, told):
    spec = declared(hooks=[hook("before_agent", function, "bad.py")])
    played = play(spec, ScriptedModel(["one"]), code=CODE)
    (failed,) = of(played, ToolFailed)
    assert failed.kind == kind
    assert told in failed.error
    assert played.at(RunEnded).data.outcome == "completed"


def test_a_hook_that_is_not_there_is_refused_before_the_run():
    with pytest.raises(LinkError) as refused:
        play(declared(hooks=[hook("on_start", "hoook")]), ScriptedModel([]), code=CODE)
    assert "hoook" in str(refused.value.findings)


# The end of a run

AT_THE_END = [hook(name) for name in ("after_chat", "on_complete", "on_fail")]


@pytest.mark.parametrize(
    ("lines", "outcome", "points"),
    [
        (["one"], "completed", ["after_chat", "on_complete"]),
        ([ModelError("down")], "failed", ["after_chat", "on_fail"]),
        (["one", "two", "three"], "max_turns", ["after_chat"]),
    ],
)
def test_end_hooks_depend_on_the_outcome(lines, outcome, points):
    to = "A" if outcome == "max_turns" else "terminate"
    handoffs = [{"source_agent": "A", "target_agent": to}]
    orchestrator = {"max_turns": 3}
    spec = declared(variables=TRAIL, hooks=AT_THE_END, handoffs=handoffs, orchestrator=orchestrator)
    played = play(spec, ScriptedModel(lines), code=CODE)
    assert [item for _, item, _ in called(played)] == points
    assert played.at(RunEnded).data.outcome == outcome
    assert of(played, VariableSet)[-1].value == ["hook"] * len(points)


@pytest.mark.parametrize("mode", ["now", "after_turn"])
def test_what_comes_after_the_chat_is_called_when_a_run_is_cancelled(mode):
    handoffs = [{"source_agent": "A", "target_agent": "user"}]
    spec = declared(variables=TRAIL, hooks=AT_THE_END, handoffs=handoffs)

    async def stop(host, run):
        await host.deliver(run, Stop(mode), scope=ADA)

    played = play(spec, ScriptedModel(["one"]), code=CODE, after=stop)
    assert [item for _, item, _ in called(played)] == ["after_chat"]
    assert played.at(RunEnded).data.outcome == "cancelled"


def test_a_stop_while_the_run_gets_ready_ends_it_when_that_is_done():
    spec = declared(variables=TRAIL, hooks=[hook("before_chat")])

    async def stop(host, run):
        await host.deliver(run, Stop("after_turn"), scope=ADA)

    async def scenes():
        async def first(host, run):
            await stop(host, run)
            row = await rest(host, run)
            assert (row.status, row.outcome) == ("ended", "cancelled")

        return await in_turns(spec, [first], [ScriptedModel([])], code=CODE, message=None)

    played = asyncio.run(scenes())
    assert of(played, RunEnded)[0].reason == "stopped on request after the turn"


ASKING = {
    "hooks/ask.py": b"""
from weft import use_ui_tool


async def ask(context_variables):
    said = await use_ui_tool("pick", {"what": "tea"})
    context_variables.set("trail", [said["choice"]])
""",
    "tools/pick.py": b'''
from weft import use_ui_tool


async def pick() -> dict:
    """Let a person pick."""
    return await use_ui_tool("pick")
''',
}
PICK = {
    "tool_type": "UI_Tool",
    "agent": "A",
    "file": "pick.py",
    "function": "pick",
    "ui": {"component": "Pick", "mode": "artifact"},
}


async def answer(host, run):
    (asked,) = [
        request for request in await host.requests(scope=ADA, run=run) if request.kind == "ui"
    ]
    await host.deliver(run, Answer(asked.id, {"choice": "green"}), scope=ADA)
    await rest(host, run)


@pytest.mark.parametrize("point", [*RUN_POINTS, *TURN_POINTS])
@pytest.mark.parametrize("anew", [False, True], ids=["here", "in another process"])
def test_a_hook_may_ask_a_person_however_long_that_takes(point, anew):
    asks = [hook(point, "ask", "ask.py", agent="A"), hook(point)]
    code = {**CODE, **ASKING}
    spec = declared(variables=TRAIL, hooks=asks, tools=[PICK])
    model = ScriptedModel(["one"])

    async def both(host, run):
        await rest(host, run)
        await answer(host, run)

    scenes = [rest, answer] if anew else [both]

    played = asyncio.run(in_turns(spec, scenes, [model] * len(scenes), code=code))
    assert of(played, VariableSet)[-1].value == ["green", "hook"]
    assert played.at(RunEnded).data.outcome == "completed"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_run_that_waits_for_a_person_at_its_end_can_be_stopped():
    code = {**CODE, **ASKING}
    hooks = [hook("after_chat", "ask", "ask.py"), hook("on_complete")]

    async def stop(host, run):
        await host.deliver(run, Stop("after_turn"), scope=ADA)
        assert (await rest(host, run)).status == "waiting", "it is ending already"
        await host.deliver(run, Stop("now"), scope=ADA)

    spec = declared(variables=TRAIL, hooks=hooks, tools=[PICK])
    played = play(spec, ScriptedModel(["one"]), code=code, after=stop)
    assert played.at(RunEnded).data.outcome == "completed", "it had been before"
    assert [item for _, _, item in called(played)] == ["ask"]


def test_the_first_message_may_come_while_hooks_are_at_work():
    """A run that gets ready waits for nobody, and forgets nobody."""
    spec = declared(variables=TRAIL, hooks=[hook("before_chat", "ask", "ask.py")], tools=[PICK])

    async def early(host, run):
        await rest(host, run)
        await host.deliver(run, UserMessage("early"), scope=ADA)
        await answer(host, run)

    model = ScriptedModel(["one"])
    code = {**CODE, **ASKING}
    played = asyncio.run(in_turns(spec, [early], [model], code=code, message=None))
    assert model.requests[0].messages[-1]["content"] == "early"
    assert played.at(RunEnded).data.outcome == "completed"


def test_a_run_that_is_ready_waits_for_its_user_if_that_begins():
    spec = declared(variables=TRAIL, hooks=[hook("before_chat")])
    model = ScriptedModel(["one"])

    async def speak(host, run):
        assert (await rest(host, run)).status == "waiting"
        assert model.requests == []
        await host.deliver(run, UserMessage("now"), scope=ADA)
        await rest(host, run)

    asyncio.run(in_turns(spec, [speak], [model], code=CODE, message=None))
    assert [message["content"] for message in model.requests[0].messages] == ["now"]


def test_hooks_of_a_turn_are_called_before_each_reply_and_with_its_last_words_only():
    hooks = [hook(item) for item in ("before_agent", "update_agent_state", TURN_POINTS[4])]
    tool = {"tool_type": "Agent_Tool", "agent": "A", "file": "life.py", "function": "work"}
    model = ScriptedModel([call("work"), "done"])
    played = play(declared(variables=TRAIL, hooks=hooks, tools=[tool]), model, code=CODE)
    points = [item for _, item, _ in called(played)]
    assert points == [hooks[0]["hook_type"], *(["update_agent_state"] * 2), TURN_POINTS[4]]
    assert of(played, MessageSent) == [MessageSent("A", "done")]


def test_the_next_run_of_a_host_is_not_disturbed_by_a_hook_that_failed():
    failing = FunctionModel(lambda _: "one")
    hooks = [hook("before_chat", "hangs", "bad.py", on_error="stop")]

    async def again(host, run):
        row = await host.run(run, scope=ADA)
        assert row.outcome == "failed"
        second = await host.start("W", scope=ADA, message="again")
        assert (await rest(host, second)).outcome == "failed"
        return second

    played = play(declared(hooks=hooks), failing, code=CODE, after=again)
    assert of(played, TurnFailed)[0].kind == "hook"
