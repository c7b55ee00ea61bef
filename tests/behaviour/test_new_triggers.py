"""Triggers that wait for boundaries, failures and functions, and what is hidden by them."""

import asyncio

import pytest

from support.boundary_play import END, declared, derived, of
from support.cases import read_cases
from support.group_play import team
from support.run_play import ADA, play, read
from weft.context.audience import Audience
from weft.engine.events import (
    ModelFailed,
    RunEnded,
    ToolCalled,
    ToolFailed,
    VariableRefused,
    VariableSet,
)
from weft.errors import ModelError
from weft.inspect.replay import check_replay
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call
from weft.wire.events import user_event_data

CASES = read_cases(__file__)

PIPELINE = {"orchestration_pattern": "Pipeline", "human_in_the_loop": False}
CODE = {
    "tools/rules.py": b'''
import asyncio

from weft import Refuse, tool


def length(values, content, messages, agent):
    assert values["size"] is None or isinstance(values["size"], int)
    return len(content)


def by_name(size, message):
    return (size or 0) + len(message)


def nothing(content):
    return None


def fails(values):
    raise KeyError("gone")


def text(content):
    return content


def is_done(content):
    return "done" in content


def work(how: str) -> str:
    """Work."""
    if how == "raise":
        raise ValueError("it broke")
    if how == "refuse":
        raise Refuse("not today")
    return how


@tool(timeout=0.05)
async def hang() -> str:
    """Hang."""
    await asyncio.sleep(60)
''',
}
TOOLS = [
    {
        "tool_type": "Agent_Tool",
        "agent": "A",
        "file": "rules.py",
        "function": name,
        "description": "d",
    }
    for name in ("work", "hang")
]


def with_trigger(*triggers, default=None, type_="optional[str]", **rest):
    return declared(variables={"size": derived(type_, default, *triggers)}, **rest)


def values(played):
    return [event.value for event in of(played, VariableSet)]


# Boundaries


@pytest.mark.parametrize(
    ("event", "agent", "turns"),
    CASES["test_a_lifecycle_trigger_fires_at_a_boundary_of_the_run_or_of_a_turn"],
)
def test_a_lifecycle_trigger_fires_at_a_boundary_of_the_run_or_of_a_turn(event, agent, turns):
    trigger = {"type": "lifecycle", "event": event, "agent": agent, "value": "x"}
    variables = {"size": derived("str", None, trigger)}
    agents = ("A", "B", "C") if agent == "C" else ("A", "B")
    spec = declared(*agents, variables=variables, orchestrator=PIPELINE)
    played = play(spec, ScriptedModel(["one", "two", "three"]))
    found = [event for event in played.events if isinstance(event.data, VariableSet)]
    assert [(event.turn, event.data.value) for event in found] == [(turn, "x") for turn in turns]
    assert check_replay(played.workflow, played.run, played.events) == []


def test_values_set_before_a_turn_are_visible_in_it():
    trigger = {"type": "lifecycle", "event": "before_agent", "agent": "B"}
    rules = [
        {"source_agent": "A", "target_agent": "B"},
        {"source_agent": "B", "target_agent": "C", "condition": "late", "condition_scope": "pre"},
        {"source_agent": "C", "target_agent": "terminate"},
    ]
    model = ScriptedModel({"A": ["one"], "C": ["three"]})
    late = {"late": derived("bool", False, trigger)}
    spec = declared("A", "B", "C", variables=late, handoffs=rules, exposure={"C": ["late"]})
    play(spec, model)
    assert [request.agent for request in model.requests] == ["A", "C"], (
        "a rule of B is asked once more"
    )
    assert "late: true" in model.requests[-1].messages[0]["content"]


def test_the_end_of_the_chat_is_recorded_before_the_end_of_the_run():
    trigger = {"type": "lifecycle", "event": "after_chat", "value": "over"}
    played = play(with_trigger(trigger), ScriptedModel([ModelError("down")]))
    assert [type(event.data).__name__ for event in played.events][-3:] == [
        *("RunEnding", "VariableSet", "RunEnded"),
    ]
    assert played.at(RunEnded).data.outcome == "failed"


# Functions


def by_function(name, type_="optional[int]", default=None):
    trigger = {"type": "function", "function": f"tools.rules:{name}"}
    return declared(
        "A", "B", variables={"size": derived(type_, default, trigger)}, orchestrator=PIPELINE
    )


@pytest.mark.parametrize(
    ("name", "found"), [("length", [3, 5]), ("by_name", [3, 8]), ("nothing", [])]
)
def test_a_function_says_after_each_turn_what_a_variable_is(name, found):
    played = play(by_function(name), ScriptedModel(["one", "three"]), code=CODE)
    assert values(played) == found
    assert {event.writer for event in of(played, VariableSet)} <= {"trigger"}
    assert [(event.hook, event.variable) for event in of(played, ToolCalled)] == [
        ("trigger", "size")
    ] * 2
    assert check_replay(played.workflow, played.run, played.events) == []


def test_handoff_function_decides_the_next_agent():
    rules = [
        {"source_agent": "A", "target_agent": "terminate", "condition": "size == 3"},
        {"source_agent": "A", "target_agent": "B"},
    ]
    spec = by_function("length").model_copy(
        update={"handoffs": declared("A", handoffs=rules).handoffs}
    )
    model = ScriptedModel(["one"])
    assert play(spec, model, code=CODE).at(RunEnded).data.outcome == "completed"


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("fails", ToolFailed, "KeyError at tools/rules.py:21: 'gone'"),
        ("text", VariableRefused, 'size: expected int, got "one"'),
    ],
)
def test_a_function_that_raises_or_says_what_does_not_fit_changes_nothing(name, kind, told):
    played = play(by_function(name, default=7), ScriptedModel(["one", "two"]), code=CODE)
    faults = [event.error for event in of(played, kind)]
    assert len(faults) == 2
    assert told in faults[0]
    assert values(played) == []
    assert played.at(RunEnded).data.outcome == "completed"


def test_a_transition_is_made_when_its_function_says_true():
    step = {"type": "function", "function": "tools.rules:is_done"}
    source = {
        "type": "derived",
        "default": "open",
        "transitions": [
            {"from": "open", "to": "closed", "trigger": step},
            {"from": "closed", "to": "filed"},
        ],
    }
    spec = declared(
        "A", "B", variables={"phase": {"type": "str", "source": source}}, orchestrator=PIPELINE
    )
    assert values(play(spec, ScriptedModel(["not yet", "done"]), code=CODE)) == ["closed"]
    assert values(play(spec, ScriptedModel(["done", "done"]), code=CODE)) == ["closed"]


# Failures


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (
            call("work", how="raise"),
            "error",
            "work failed: ValueError at tools/rules.py:35: it broke",
        ),
        (call("work", how="refuse"), "refused", "not today"),
        (call("work"), "retry", "how is missing"),
        (call("hang"), "timeout", "hang took longer than 0.05 seconds and was abandoned"),
        (call("nap"), "unknown", "there is no tool nap; available: work, hang"),
    ],
)
def test_a_failed_tool_sets_a_value_its_kind_or_its_message(line, kind, message):
    failed = {"type": "tool_failed"}
    variables = {
        "any": derived("bool", False, failed),
        "own": derived("str", None, {**failed, "tool": line.tool, "kind": kind, "value": "own"}),
        "kind": derived("str", None, {**failed, "response_key": "kind"}),
        "said": derived("str", None, {**failed, "response_key": "message"}),
        "other": derived("bool", False, {**failed, "tool": "other"}),
        "wrong": derived(
            "bool", False, *({**failed, "kind": each_kind} for each_kind in KINDS - {kind})
        ),
    }
    spec = declared(variables=variables, tools=TOOLS)
    played = play(spec, ScriptedModel([line, "sorry"], strict=False), code=CODE)
    found = {event.name: event.value for event in of(played, VariableSet)}
    assert message in found.pop("said")
    assert found == {"any": True, "own": "own", "kind": kind}


KINDS = {"error", "timeout", "refused", "retry", "unknown"}


def test_a_rule_may_go_by_a_failed_tool():
    failed = {"broken": derived("bool", False, {"type": "tool_failed", "tool": "work"})}
    rules = [
        {"source_agent": "A", "target_agent": "B", "condition": "broken"},
        {"source_agent": "A", "target_agent": "terminate"},
    ]
    model = ScriptedModel({"A": [call("work", how="raise"), "it broke"], "B": ["I repair it"]})
    play(declared("A", "B", variables=failed, tools=TOOLS, handoffs=rules), model, code=CODE)
    assert model.requests[-1].agent == "B"


@pytest.mark.parametrize(("agent", "sets"), [(None, True), ("A", True), ("B", False)])
def test_a_failed_model_sets_a_variable_though_the_run_fails_with_it(agent, sets):
    failed = {"type": "model_failed", "agent": agent, "response_key": "message"}
    variables = {"why": derived("str", None, failed)}
    played = play(
        declared("A", "B", variables=variables, handoffs=END), ScriptedModel([ModelError("down")])
    )
    assert values(played) == (["down"] if sets else [])
    assert played.at(RunEnded).data.outcome == "failed"


async def test_values_set_by_a_failed_model_of_a_member_are_kept():
    spec = team(on_failure="continue")
    failed = derived("str", "none", {"type": "model_failed", "agent": "Ben", "value": "Ben"})
    variables = declared("A", variables={"failed": failed}).variables
    spec = spec.model_copy(
        update={
            "variables": {**spec.variables, **variables},
            "tools": (),
            "exposure": {"Editor": ("failed",)},
        }
    )

    def reply(request):
        return ModelError("down") if request.agent == "Ben" else f"I am {request.agent}"

    model = FunctionModel(reply)
    async with host_for(spec, model) as host:
        run = await host.start("Side", scope=ADA, message="go")
        await asyncio.wait_for(host.settled(run, scope=ADA), 10)
        played = await read(host, run)
    assert len(of(played, ModelFailed)) == 1
    assert "failed: Ben" in model.requests[-1].messages[0]["content"]
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "agent_text", "agent": "A", "match": {"contains": "one"}},
        {"type": "lifecycle", "event": "after_agent"},
        {"type": "agent_turn_count", "agent": "A", "count": 1},
        {"type": "tool_failed"},
    ],
    ids=lambda entry: entry["type"],
)
def test_a_null_that_is_written_down_is_a_value(trigger):
    spec = with_trigger({**trigger, "value": None}, default="held", tools=TOOLS)
    played = play(spec, ScriptedModel([call("work", how="raise"), "one"]), code=CODE)
    assert values(played) == [None]


# Who sees what


def test_an_agent_that_is_first_exposed_late_sees_defaults_and_later_changes():
    said = {"type": "agent_text", "agent": "A", "match": {"contains": "go"}, "value": "changed"}
    variables = {"kept": derived("str", "default"), "news": derived("str", "default", said)}
    rules = [
        {"source_agent": "A", "target_agent": "C", "condition": "news == 'changed'"},
        {"source_agent": "A", "target_agent": "B"},
        *({"source_agent": name, "target_agent": "A"} for name in ("B", "C")),
    ]
    model = ScriptedModel({"A": ["wait", "go", "on"], "B": ["first"], "C": ["now", "bye"]})
    spec = declared(
        *("A", "B", "C"),
        variables=variables,
        handoffs=rules,
        orchestrator={"max_turns": 5},
        exposure={"B": ["news"], "C": ["kept", "news"]},
    )
    play(spec, model)
    seen = [
        request.messages[0]["content"] for request in model.requests if request.agent in ("B", "C")
    ]
    assert seen[0].endswith("news: default")
    assert seen[1].endswith("kept: default\nnews: changed")


def test_a_user_text_sets_a_variable_and_its_words_may_be_hidden_from_users():
    said = {"type": "user_text", "match": {"equals": "open sesame"}, "value": "open"}
    for hidden in (True, False):
        spec = with_trigger({**said, "ui_hidden": hidden}, exposure={"A": ["size"]})
        model = ScriptedModel(["one"])
        played = play(spec, model, message="Open Sesame")
        assert values(played) == ["open"]
        assert model.requests[0].messages[-1]["content"] == "Open Sesame", "agents hear it"
        audience = Audience(spec, "ada")
        shown = [
            user_event_data(event, played.run, played.workflow, audience) for event in played.events
        ]
        assert ("Sesame" in str(shown)) is not hidden
