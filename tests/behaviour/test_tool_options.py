"""What a tool may say beside its result: that it failed, how far it is, what it shows."""

import asyncio

import pytest

from support.boundary_play import Kept, declared, derived, in_turns, of, rest
from support.run_play import ADA, play
from weft.context.audience import Audience
from weft.engine.events import (
    Event,
    RequestAnswered,
    RequestOpened,
    RunEnded,
    SurfaceShown,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnFailed,
    VariableSet,
)
from weft.inspect.replay import check_replay
from weft.ports.live import ToolProgress
from weft.runtime.signals import Answer
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call
from weft.wire.events import user_event_data

CODE = {
    "tools/work.py": b'''
import asyncio

from weft import Refuse, RetryModel, show_ui_tool, tool, use_ui_tool


def work(how: str) -> str:
    """Work."""
    if how == "refuse":
        raise Refuse("not today")
    if how == "retry":
        raise RetryModel("otherwise")
    if how == "raise":
        raise ValueError("it broke")
    return how


@tool(timeout=0.05)
async def hang() -> str:
    """Hang."""
    await asyncio.sleep(60)


async def read(context_variables) -> str:
    """Read a long text."""
    context_variables.progress(0.25, "opening")
    await asyncio.sleep(0)
    context_variables.progress(0.5)
    context_variables.progress(1, "done, canary-7f3a9c")
    return "read"


def too_far(context_variables) -> str:
    """Say nonsense."""
    context_variables.progress(2)


async def pick(context_variables) -> dict:
    """Show something, then ask."""
    await show_ui_tool("board", {"step": 1})
    answer = await use_ui_tool("pick", {"what": "tea"})
    await show_ui_tool("board", {"step": 2})
    seen = context_variables.get("choice")
    context_variables.set("choice", answer["choice"])
    return {"seen": seen, **answer}


async def board() -> None:
    """Draw a board."""
    await show_ui_tool("board", {"step": 0, "key": "canary-7f3a9c"})


async def wrong(what: str) -> None:
    """Show what cannot be shown."""
    await show_ui_tool(what, {"step": "none"})
'''
}


def tool(function, tool_type="Agent_Tool", **more):
    return {"tool_type": tool_type, "agent": "A", "file": "work.py", "function": function, **more}


def ui(function, component, mode="inline", **more):
    return tool(function, "UI_Tool", ui={"component": component, "mode": mode}, **more)


BOARD = ui(
    "board",
    "StoryBoard",
    "artifact",
    payload_schema={"properties": {"step": {"type": "integer"}}},
)
CHOICE = {"type": "ui_response", "tool": "pick", "response_key": "choice"}
VARIABLES = {"choice": derived("str", "none", CHOICE)}
SECRET = {
    "variables": {
        "key": {"type": "str", "secret": True, "source": {"type": "environment", "env_var": "KEY"}}
    }
}
CANARY = "canary-7f3a9c"


# on_error


@pytest.mark.parametrize("declared_tool", [tool("work"), ui("work", "Work")], ids=["agent", "ui"])
@pytest.mark.parametrize("on_error", ["tell", "fail"])
@pytest.mark.parametrize(
    ("how", "fails"), [("raise", True), ("refuse", False), ("retry", False), ("well", False)]
)
def test_on_error_reports_to_the_agent_or_fails_the_turn(declared_tool, on_error, how, fails):
    model = ScriptedModel([call("work", how=how), "sorry"])
    spec = declared(tools=[{**declared_tool, "on_error": on_error}])
    played = play(spec, model, code=CODE)
    ended = played.at(RunEnded).data
    if on_error == "fail" and fails:
        (failed,) = of(played, TurnFailed)
        assert (failed.kind, ended.outcome) == ("tool", "failed")
        assert ended.reason.startswith("the tool work of A failed: work failed: ValueError")
    else:
        assert ended.outcome == "completed"
        told = model.requests[1].messages[-1]["content"]
        assert told.startswith("error: ") is (how != "well")
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_tool_that_takes_too_long_fails_its_turn_where_that_is_declared():
    spec = declared(tools=[tool("hang", on_error="fail")])
    played = play(spec, ScriptedModel([call("hang")]), code=CODE)
    assert of(played, ToolFailed)[0].kind == "timeout"
    assert played.at(RunEnded).data.outcome == "failed"


# Progress


def followed(spec, model, **ports):
    heard = []

    async def listen(host, run):
        heard.extend([event async for event in host.events(run, scope=ADA, follow=True)])

    played = asyncio.run(in_turns(spec, [listen], [model], code=CODE, **ports))
    return heard, played


class Slow(ScriptedModel):
    """Lets whoever wants to listen come first."""

    async def reply(self, request, on_text=None):
        await asyncio.sleep(0.02)
        return await super().reply(request, on_text)


def test_progress_is_streamed_and_its_last_value_kept_with_the_result():
    model = Slow([call("read"), "done"])
    heard, played = followed(declared(tools=[tool("read")]), model)
    told = [(call.tool, call.share, call.text) for call in heard if isinstance(call, ToolProgress)]
    last = (1.0, f"done, {CANARY}")
    assert told == [("read", 0.25, "opening"), ("read", 0.5, ""), ("read", *last)]
    assert of(played, ToolReturned)[0].progress == last
    at = {type(item): number for number, item in enumerate(heard)}
    called = next(
        n
        for n, event in enumerate(heard)
        if isinstance(event, Event) and type(event.data) is ToolCalled
    )
    assert called < at[ToolProgress]


def test_progress_beyond_all_bounds_is_a_fault_of_the_tool():
    played = play(
        declared(tools=[tool("too_far")]), ScriptedModel([call("too_far"), "x"]), code=CODE
    )
    assert "progress is a share from 0 to 1, not 2" in of(played, ToolFailed)[0].error


def test_a_secret_is_neither_streamed_nor_kept_nor_shown():
    model = Slow([call("read"), call("board"), "done"])
    spec = declared(tools=[tool("read"), BOARD], **SECRET)
    heard, played = followed(spec, model, environment={"KEY": CANARY})
    assert [item for item in heard if isinstance(item, ToolProgress)]
    assert of(played, SurfaceShown)[0].payload == {"step": 0, "key": "(secret)"}
    assert CANARY not in str(heard)
    assert CANARY not in str(played.events)


# Surfaces


def picking(**rest):
    return declared(tools=[ui("pick", "Pick"), BOARD], variables=VARIABLES, **rest)


async def answer(host, run):
    await rest(host, run)
    (asked,) = await host.requests(scope=ADA, run=run)
    await host.deliver(run, Answer(asked.id, {"choice": "green"}), scope=ADA)
    await rest(host, run)


@pytest.mark.parametrize("anew", [False, True], ids=["in place", "called again after a restart"])
def test_surface_does_not_wait_and_is_shown_once(anew):
    scenes = [rest, answer] if anew else [answer]
    model = ScriptedModel([call("pick"), "done"])
    played = asyncio.run(in_turns(picking(), scenes, [model] * len(scenes), code=CODE))
    shown = of(played, SurfaceShown)
    assert [
        (call.number, call.tool, call.component, call.mode, call.payload) for call in shown
    ] == [
        (0, "board", "StoryBoard", "artifact", {"step": 1}),
        (1, "board", "StoryBoard", "artifact", {"step": 2}),
    ]
    assert len(of(played, RequestOpened)) == 2, "the first message, and what the tool asked"
    audience = Audience(picking())
    told = [
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    ]
    seen = [event["data"] for event in told if event and event["kind"] == "SurfaceShown"]
    assert [artifact["payload"]["step"] for artifact in seen] == [1, 2]
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("nothing", "the package has no UI tool nothing that could be shown"),
        ("work", "the package has no UI tool work that could be shown"),
        (
            "board",
            "the payload of board does not match its payload_schema: step: 'none' is not of type",
        ),
    ],
)
def test_invalid_surface_fails_the_tool(what, told):
    spec = declared(tools=[tool("wrong"), tool("work"), BOARD])
    played = play(spec, ScriptedModel([call("wrong", what=what), "done"]), code=CODE)
    assert told in of(played, ToolFailed)[0].error
    assert of(played, SurfaceShown) == []


# What a tool sees after an answer (field notes W3 and W5)


@pytest.mark.parametrize("anew", [False, True], ids=["in place", "called again after a restart"])
def test_tool_sees_the_values_that_its_answer_set(anew):
    scenes = [rest, answer] if anew else [answer]
    model = ScriptedModel([call("pick"), "done"])
    played = asyncio.run(in_turns(picking(), scenes, [model] * len(scenes), code=CODE))
    assert of(played, ToolReturned)[0].value == {"seen": "green", "choice": "green"}
    (only,) = of(played, VariableSet)
    assert (only.name, only.value, only.writer) == ("choice", "green", "trigger")
    kinds = [type(event.data) for event in played.events]
    assert kinds.index(VariableSet) == kinds.index(RequestAnswered, 3) + 1


async def test_open_question_is_found_after_a_restart():
    journal = Kept()
    model = ScriptedModel([call("pick"), "done"])
    async with host_for(picking(), model, code=CODE, store=journal) as host:
        run = await host.start("W", scope=ADA, message="hi")
        await rest(host, run)
        (before,) = await host.requests(scope=ADA)
    async with host_for(picking(), model, code=CODE, store=journal) as host:
        (again,) = await host.requests(scope=ADA)
    assert before == again
    assert (again.component, again.mode, again.payload) == ("Pick", "inline", {"what": "tea"})
