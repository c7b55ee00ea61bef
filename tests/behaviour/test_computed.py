"""Computed variables follow their inputs, whoever changes these, and say why if they cannot."""

import asyncio

import pytest

from support.run_play import ADA
from support.source_play import declared, derived, desk, documents_in, play, variable
from weft.adapters.python_tools.calling import Limits
from weft.engine.events import (
    DocumentWritten,
    HandedOff,
    ToolCalled,
    ToolFailed,
    TurnFailed,
    VariableRefused,
    VariableSet,
)
from weft.runtime.signals import Answer, UserMessage
from weft.testing import hosts
from weft.testing.models import ScriptedModel, call

CODE = desk(
    '''
def put(name: str, value: int, context_variables) -> str:
    """Set a variable."""
    context_variables.set(name, value)
    return "done"
''',
    '''
async def ask() -> dict:
    """Ask a person."""
    from weft import use_ui_tool
    return await use_ui_tool("ask")
''',
    "def total(a, b): return (a or 0) + (b or 0)",
    "def double(total): return total * 2",
    "def words(total): return 'many'",
    "def few(a): return a if a < 5 else 'many'",
    "def breaks(a): raise ValueError(f'{a} is no good')",
    "def hangs(a): time.sleep(5)",
    "def spoils(items):\n    items.append(9)\n    return len(items)",
)
ASK = {
    "tool_type": "UI_Tool",
    "agent": "A",
    "file": "desk.py",
    "function": "ask",
    "ui": {"component": "Ask", "mode": "inline"},
}


def computed(type_, computation, *inputs, **more):
    source = {"computation": computation, "inputs": list(inputs)}
    return variable(type_, "computed", **source, **more)


def sums(a=1, b=2, **more):
    """Two numbers, their sum by a function, and whether that is large by a condition."""
    return {
        "a": derived("int", a),
        "b": derived("int", b),
        "total": computed("int", "tools.desk:total", "a", "b"),
        "large": {**computed("bool", "total > 5", "total"), "routing": True},
        **more,
    }


def run(variables, script, *, tools=("put",), **options):
    declare = options.pop("declare", {})
    spec = declared(variables, tools=tools, **declare)
    told = play(spec, ScriptedModel(script), code=CODE, **options)
    told.expect_same_again()
    return told


def test_a_chain_is_worked_out_before_the_first_turn():
    told = run(sums(4, 5, twice=computed("int", "tools.desk:double", "total")), ["Done."])
    assert told.values("total") == [9]
    assert told.values("large") == [False, True], "before and after its input is known"
    assert told.values("twice") == [18]
    assert set(told.writers("total") + told.writers("large")) == {"computed"}
    assert [event.variable for event in told.of(ToolCalled)] == ["total", "twice"]


def said(words, value):
    return {"type": "agent_text", "agent": "A", "match": {"contains": words}, "value": value}


WAYS = {
    "trigger": ({"b": derived("int", 2, said("seven", 7))}, ["seven", "Done."]),
    "tool": ({}, [call("put", name="b", value=7), "Done."]),
    "form": (
        {"b": derived("int", 2, {"type": "ui_response", "tool": "ask", "response_key": "b"})},
        [call("ask"), "Done."],
    ),
    "message": (
        {"b": derived("int", 2, {"type": "user_text", "match": {"contains": "7"}, "value": 7})},
        ["And?", "Done."],
    ),
    "fetch": (
        {
            "b": variable(
                "int",
                "database",
                collection="Orders",
                search_by="user_id",
                field="b",
                refresh_strategy="per_phase",
                default=2,
            )
        },
        ["Done."],
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_both_kinds_follow_an_input_that_changes_by(way, tmp_path):
    others, script = WAYS[way]

    async def go_on(host, run):
        for request in await host.requests(scope=ADA, run=run):
            if request.kind == "ui":
                await host.deliver(run, Answer(request.id, {"b": 7}), scope=ADA)
            else:
                await host.deliver(run, UserMessage("now 7"), scope=ADA)

    told = run(
        sums() | others,
        script,
        tools=("put", ASK),
        documents=tmp_path / "d.db",
        having={"Orders": {"user_id": "ada", "b": 7}},
        declare={
            "handoffs": [
                {"source_agent": "A", "target_agent": "terminate", "condition": "large == true"},
                {"source_agent": "A", "target_agent": "user"},
            ]
        },
        after=go_on,
    )
    assert told.values("total") == [1 if way == "fetch" else 3, 8]
    assert told.values("large")[-1] is True
    assert told.row.outcome == "completed", "and the rule after the turn has seen it"
    assert told.of(HandedOff)[-1].rule == 0


def test_a_rule_before_the_reply_sees_what_was_computed_in_the_middle_of_a_turn():
    rules = [
        {
            "source_agent": "A",
            "target_agent": "terminate",
            "condition": "large == true",
            "condition_scope": "pre",
        },
        {"source_agent": "A", "target_agent": "user"},
    ]
    told = run(sums(), [call("put", name="a", value=9)], declare={"handoffs": rules})
    assert told.row.outcome == "completed"


def test_functions_are_called_only_when_an_input_changes():
    told = run(sums(), [call("put", name="a", value=2), call("put", name="b", value=1), "Done."])
    assert told.values("total") == [3, 4, 3]
    told = run(sums(), [call("put", name="a", value=1), "Done."])
    assert [event.variable for event in told.of(ToolCalled) if event.hook] == ["total"]


def test_a_function_cannot_change_its_inputs():
    variables = {
        "items": derived("list[int]", [1]),
        "size": computed("int", "tools.desk:spoils", "items"),
    }
    told = run(variables, ["Done."])
    assert told.state.variables == {"items": [1], "size": 2}


@pytest.mark.parametrize(
    ("computation", "inputs", "reason"),
    [
        ("tools.desk:breaks", ["a"], "failed: tools.desk:breaks failed: ValueError at tools/"),
        ("tools.desk:hangs", ["a"], "took longer than 0.1 seconds and was abandoned"),
        ("tools.desk:words", ["total"], 'broken: expected int, got "many"'),
    ],
)
def test_a_function_that_fails_fails_the_turn_and_says_why(
    monkeypatch, computation, inputs, reason
):
    quick = Limits(timeout=0.1)
    loader = hosts.PythonToolLoader
    monkeypatch.setattr(hosts, "PythonToolLoader", lambda: loader(quick))
    told = run(sums(broken=computed("int", computation, *inputs)), ["Done."])
    assert told.row.outcome == "failed"
    assert reason in told.row.reason
    assert computation in told.row.reason
    (failed,) = told.of(TurnFailed)
    assert failed.kind == "source"
    assert told.state.variables["broken"] is None
    works = run(sums(), ["Done."])
    assert works.row.outcome == "completed"


def test_value_of_the_wrong_type_fails_the_turn_in_which_it_is_computed():
    counted = sums(count=computed("int", "tools.desk:few", "a"))
    told = run(counted, [call("put", name="a", value=9), "Done."])
    assert told.row.outcome == "failed"
    assert 'expected int, got "many"' in told.row.reason
    assert told.state.variables["count"] == 1


def test_a_condition_that_cannot_be_asked_is_refused_and_recorded():
    variables = {
        "a": derived("any", 1),
        "large": computed("bool", "a > 5", "a"),
    }
    code = desk(
        "def put(value: str, context_variables) -> str:\n"
        '    """Set."""\n    context_variables.set("a", value)\n    return "done"'
    )
    told = play(
        declared(variables, tools=["put"]),
        ScriptedModel([call("put", value="many"), "Done."]),
        code=code,
    )
    told.expect_same_again()
    (refused,) = told.of(VariableRefused)
    assert (refused.name, refused.writer) == ("large", "computed")
    assert told.state.variables["large"] is False


ORDERS = {
    "order": variable(
        "dict[str, any]",
        "entity",
        collection="Orders",
        search_by="user_id",
        schema={"total": {"type": "int"}, "large": {"type": "bool"}},
    )
}


@pytest.mark.parametrize("strategy", ["immediate", "on_workflow_end"])
def test_persist_to_keeps_a_value_in_the_document_of_an_entity(tmp_path, strategy):
    """Two that follow from one another, and neither takes the other's place."""
    order = {**ORDERS["order"], "source": {**ORDERS["order"]["source"], "write_strategy": strategy}}
    variables = sums(order=order)
    for name in ("total", "large"):
        variables[name]["source"]["persist_to"] = "order"
    told = run(
        variables,
        [call("put", name="a", value=9), "Done."],
        documents=tmp_path / "d.db",
        having={"Orders": {"user_id": "ada", "note": "kept"}},
    )
    assert told.row.outcome == "completed"
    kept = {"note": "kept", "total": 11, "large": True}
    assert told.state.variables["order"] == kept
    assert asyncio.run(documents_in(tmp_path / "d.db", "Orders")) == [{"user_id": "ada", **kept}]
    assert told.of(DocumentWritten)[-1].error == ""


AT_THE_END = {
    "hook_type": "after_chat",
    "file": "late.py",
    "function": "late",
}


@pytest.mark.parametrize(
    ("value", "outcome", "reason"),
    [(7, "completed", ""), (-1, "failed", "-1 is no good")],
)
def test_values_set_after_the_chat_are_computed_before_the_end(tmp_path, value, outcome, reason):
    code = {
        **CODE,
        "hooks/late.py": b"def late(context_variables): context_variables.set('a', %d)" % value,
        "tools/sums.py": b"""
def checked(a):
    if a < 0:
        raise ValueError(f"{a} is no good")
    return a * 2
""",
    }
    variables = {
        "a": derived("int", 1),
        "twice": computed("int", "tools.sums:checked", "a", persist_to="order"),
        **ORDERS,
    }
    spec = declared(variables, hooks=[AT_THE_END])
    having = {"Orders": {"user_id": "ada"}}
    told = play(
        spec, ScriptedModel(["Done."]), code=code, documents=tmp_path / "d.db", having=having
    )
    told.expect_same_again()
    assert told.row.outcome == outcome
    assert reason in told.row.reason
    expected = {"user_id": "ada", "twice": 14 if value == 7 else 2}
    assert asyncio.run(documents_in(tmp_path / "d.db", "Orders")) == [expected]


def test_persist_to_waits_until_the_document_was_read(tmp_path):
    """What is computed at the very start is neither lost nor takes the place of what is there."""
    variables = {
        "a": variable("int", "static", value=7),
        "large": computed("bool", "a > 5", "a", persist_to="order"),
        **ORDERS,
    }
    having = {"Orders": {"user_id": "ada", "note": "kept"}}
    told = run(variables, ["Done."], documents=tmp_path / "d.db", having=having)
    assert told.values("order")[0] == {"note": "kept"}
    assert asyncio.run(documents_in(tmp_path / "d.db", "Orders")) == [
        {"user_id": "ada", "note": "kept", "large": True}
    ]
    fresh = tmp_path / "fresh.db"
    told = run(variables, ["Done."], documents=fresh, having={})
    assert asyncio.run(documents_in(fresh, "Orders")) == [{"user_id": "ada", "large": True}]


def test_persist_to_refuses_what_does_not_fit_the_schema(tmp_path):
    variables = {
        "a": derived("int", 7),
        "total": computed("bool", "a > 5", "a", persist_to="order"),
        **ORDERS,
    }
    told = run(variables, ["Done."], documents=tmp_path / "d.db", having={})
    assert [(event.name, event.writer) for event in told.of(VariableRefused)] == [
        ("order", "computed")
    ]
    assert told.state.variables["order"] is None


def test_a_fork_calls_the_functions_that_were_due():
    """The turn begins with a function, since the message before it has changed an input."""
    others, _ = WAYS["message"]

    async def fork(host, run):
        await host.deliver(run, UserMessage("now 7"), scope=ADA)
        await host.settled(run, scope=ADA)
        return await host.fork(run, scope=ADA, turn=2, values={"a": 10})

    model = ["And?", "Then.", "Done."]
    rules = [{"source_agent": "A", "target_agent": "user"}]
    told = run(sums() | others, model, declare={"handoffs": rules}, after=fork)
    assert told.row.parent
    assert told.state.variables["total"] == 17
    assert not told.of(ToolFailed)


def test_members_of_a_group_compute_for_themselves_and_again_when_they_have_joined():
    tools = [
        {"tool_type": "Agent_Tool", "agent": name, "file": "desk.py", "function": "put"}
        for name in ("A", "B")
    ]
    told = run(
        sums(),
        {
            "L": "Go.",
            "A": [call("put", name="a", value=5), "a"],
            "B": [call("put", name="b", value=6), "b"],
            "E": ["Done."],
        },
        tools=tools,
        declare={
            "agents": ("L", "A", "B", "E"),
            "orchestrator": {"parallel": [{"name": "P", "members": ["A", "B"], "next": "E"}]},
            "handoffs": [
                {"source_agent": "L", "target_agent": "P"},
                {"source_agent": "E", "target_agent": "terminate"},
            ],
        },
    )
    assert sorted(told.values("total")) == [3, 7, 7, 11]
    assert told.state.variables == {"a": 5, "b": 6, "total": 11, "large": True}
    assert not told.of(VariableRefused)
    last = [event for event in told.events if isinstance(event.data, VariableSet)][-1]
    assert (last.data.name, last.data.value) in (("total", 11), ("large", True))
