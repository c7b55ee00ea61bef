"""How a workflow's rules become moves, ways to the end, and answers of people."""

from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.cases import read_cases
from weft.adapters.models.sample_moves import Move, Steering, steering_of
from weft.adapters.models.sample_values import allowed_at, found_at, put_at
from weft.app.simulation import sample_answer
from weft.check.explore.ways import ways_to_end
from weft.check.subject import Subject
from weft.engine.compile import compile_workflow
from weft.spec.workflow import WorkflowSpec

CASES = read_cases(__file__)


def derived(type_: str = "bool", default: Any = False, *triggers: Any, **more: Any) -> Any:
    source = {"type": "derived", "default": default, "triggers": triggers, **more}
    return {"type": type_, "source": source}


def says(agent: str, value: Any = True, **match: str) -> Any:
    return {"type": "agent_text", "agent": agent, "match": match, "value": value}


def rule(source: str, target: str, condition: str | None = None, **more: Any) -> Any:
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def tool(function: str, agent: str = "A", **more: Any) -> Any:
    return {
        "tool_type": "Agent_Tool",
        "agent": agent,
        "file": "t.py",
        "function": function,
        "description": "d",
        **more,
    }


def workflow(
    variables: Any, handoffs: Any, agents: Any = "A", max_turns: int = 20, **more: Any
) -> Subject:
    functions = [tool["function"] for tool in more.get("tools", ())]
    code = "\n".join(f"def {name}(): ..." for name in functions)
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {
                    "workflow_name": "W",
                    "initial_agent": "A",
                    "max_turns": max_turns,
                },
                "agents": [
                    {"agent_name": agent} if isinstance(agent, str) else agent for agent in agents
                ],
                "variables": variables,
                "handoffs": handoffs,
                **more,
            }
        ),
        code={"tools/t.py": code},
    )


def turns(made: Subject) -> int | None:
    found = ways_to_end(made)
    assert found is not None
    return found.turns


def moves(made: Subject, agent: str = "A") -> tuple[Move, ...]:
    return steering_of(made).moves.get(agent, ())


def ways(made: Subject, agent: str = "A") -> tuple[tuple[Move, ...], ...]:
    return steering_of(made).ways.get(agent, ())


END = rule("A", "terminate", "done")


@pytest.mark.parametrize(
    ("match", "text"),
    [
        ({"equals": "BYE"}, "BYE"),
        ({"exact": "Bye."}, "Bye."),
        ({"contains": "@b"}, "[sample] @b"),
        ({"regex": r"^OK \d+$"}, "OK 1"),
    ],
)
def test_words_that_end_a_run_are_known(match: dict[str, str], text: str):
    made = workflow({"done": derived("bool", False, says("A", **match))}, [END, rule("A", "user")])
    assert moves(made) == (Move("say", text),)
    assert ways(made) == ((Move("say", text),),)


def test_words_that_cannot_be_made_up_are_left_out():
    triggers = (says("A", regex="a^b"), says("B", equals="BYE"))
    made = workflow({"done": derived("bool", False, *triggers)}, [END], agents="AB")
    assert moves(made) == ()


def test_value_without_a_rule_is_not_a_move():
    made = workflow({"other": derived("bool", False, says("A", equals="X"))}, [rule("A", "user")])
    assert steering_of(made) == Steering()
    made = workflow(
        {
            "done": derived("bool", False, says("A", equals="BYE")),
            "other": derived("bool", False, says("A", equals="X")),
            "fixed": {"type": "bool", "source": {"type": "static", "value": True}},
        },
        [rule("A", "terminate", "done and fixed")],
    )
    assert moves(made) == (Move("say", "BYE"),)


def test_all_that_words_set_is_taken_into_account():
    both = workflow(
        {
            "one": derived("bool", False, says("A", contains="go")),
            "two": derived("bool", False, says("A", contains="go on")),
        },
        [rule("A", "terminate", "one and two"), rule("A", "user")],
    )
    assert ways(both) == ((Move("say", "[sample] go on"),),)


@pytest.mark.parametrize("when", ["tool_call", "tool_response"])
def test_arguments_take_the_values_that_lead_on(when):
    asked = {"type": when, "tool": "pick", "argument": "deep.team"}
    reset = {"type": "tool_call", "tool": "reset", "value": "none"}
    made = workflow(
        {"team": derived('literal["none", "red"]', "none", asked, reset)},
        [rule("A", "terminate", "team == 'red'"), rule("A", "user")],
        tools=[tool("pick"), tool("reset")],
    )
    red = Move("call", "pick", ((("deep", "team"), "red"),))
    assert ways(made) == ((red,),)
    assert set(map(repr, moves(made))) == {
        repr(red),
        repr(Move("call", "pick", ((("deep", "team"), "none"),))),
        repr(Move("call", "reset")),
    }


def test_numbers_are_tried_around_what_they_are_compared_with():
    asked = {"type": "tool_call", "tool": "rate", "argument": "score"}
    made = workflow(
        {"score": derived("int", 0, asked)},
        [rule("A", "terminate", "score >= 8"), rule("A", "user")],
        tools=[tool("rate")],
    )
    (group,) = ways(made)
    assert all(value >= 8 for move in group for _, value in move.places)  # type: ignore[operator]


def test_value_without_a_choice_makes_no_move():
    asked = {"type": "tool_call", "tool": "rate", "argument": "one"}
    made = workflow(
        {"one": derived("str", "a", asked), "two": derived("str", "b")},
        [rule("A", "terminate", "one == two"), rule("A", "user")],
        tools=[tool("rate")],
    )
    assert moves(made) == ()


def test_tool_result_may_set_the_variable():
    back = {"type": "tool_response", "tool": "check", "response_key": "state"}
    told = {"type": "tool_response", "tool": "close", "value": "good"}
    made = workflow(
        {"state": derived('literal["new", "good"]', "new", back, told)},
        [rule("A", "terminate", "state == 'good'"), rule("A", "user")],
        tools=[tool("check"), tool("close")],
    )
    assert ways(made) == ((Move("call", "check"), Move("call", "close")),)


def test_changes_of_state_come_in_their_order():
    changes = [
        {"from": "new", "to": "sent", "trigger": {"type": "tool_call", "tool": "send"}},
        {"from": "sent", "to": "read", "trigger": says("A", equals="READ")},
        {"from": "read", "to": "new"},
    ]
    made = workflow(
        {"state": derived('literal["new", "sent", "read"]', "new", transitions=changes)},
        [rule("A", "terminate", "state == 'read'"), rule("A", "user")],
        tools=[tool("send")],
    )
    assert ways(made) == ((Move("call", "send"),), (Move("say", "READ"),))
    assert turns(made) == 1


def test_the_way_may_lead_through_others():
    made = workflow(
        {
            "next": derived('literal["-", "b", "c"]', "-", says("A", "b", contains="@b"),
                            says("A", "c", contains="@c")),
            "done": derived("bool", False, says("B", equals="BYE")),
        },
        [
            rule("A", "terminate", "done"),
            rule("A", "B", "next == 'b'", priority=2),
            rule("A", "C", "next == 'c'", priority=2),
            rule("A", "user"),
            rule("B", "A"),
            rule("C", "A"),
        ],
        agents="ABC",
    )  # fmt: skip
    steering = steering_of(made)
    assert steering.ways["A"] == ((Move("say", "[sample] @b"),),)
    assert steering.ways["B"] == ((Move("say", "BYE"),),)
    assert "C" not in steering.ways
    assert turns(made) == 3


def test_rules_before_a_turn_are_followed():
    made = workflow(
        {"done": derived("bool", False, says("A", equals="BYE"))},
        [
            rule("A", "B"),
            rule("B", "C", "done", condition_scope="pre"),
            rule("C", "terminate", "done", condition_scope="pre"),
            rule("B", "A"),
        ],
        agents="ABC",
    )
    assert ways(made) == ((Move("say", "BYE"),),)


@pytest.mark.parametrize(
    "before",
    [
        [rule("A", "user", "not done", condition_scope="pre")],
        [
            rule("A", "B", "not done", condition_scope="pre"),
            rule("B", "A", "not done", condition_scope="pre"),
        ],
    ],
)
def test_a_run_that_cannot_begin_leaves_every_move_open(before: list[Any]):
    variables = {
        "done": derived("bool", False, says("A", equals="BYE")),
        "count": derived("int", 0),
    }
    made = workflow(variables, [*before, END, rule("A", "user")], agents="AB")
    assert turns(made) is None
    assert ways(made) == ((Move("say", "BYE"),),)


def test_a_run_that_ends_at_once_needs_nothing():
    before = rule("A", "terminate", "not done", condition_scope="pre")
    made = workflow({"done": derived()}, [before])
    assert turns(made) == 0


def test_the_environment_counts_with_its_default():
    made = workflow(
        {
            "mode": {
                "type": "str",
                "source": {"type": "environment", "env_var": "MODE", "default": "on"},
            },
            "done": derived("bool", False, says("A", equals="BYE")),
        },
        [rule("A", "terminate", "done and mode == 'on'"), rule("A", "user")],
    )
    assert turns(made) == 1


def test_a_long_way_is_found_and_a_workflow_that_is_too_large_is_not_searched():
    def large(size: int) -> Subject:
        names = [f"v{number}" for number in range(size)]
        variables = {name: derived("bool", False, says("A", equals=name)) for name in names}
        rules = [rule("A", "terminate", " and ".join(names)), rule("A", "user")]
        return workflow(variables, rules)

    assert turns(large(12)) == 12
    assert ways_to_end(large(22)) is None
    assert len(ways(large(22))[0]) == 22


def test_a_workflow_that_takes_too_long_is_not_searched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weft.check.explore.ways.MOST_STEPS", 1)
    made = workflow({"done": derived("bool", False, says("A", equals="BYE"))}, [END])
    assert ways_to_end(made) is None


MODEL = {
    "name": "Out",
    "fields": {"team": {"type": 'literal["red", "blue"]'}, "more": {"type": "any"}},
}


def test_the_fields_of_a_reply_that_a_tool_is_called_with():
    team = {"type": "tool_call", "tool": "take", "argument": "team"}
    deep = {"type": "tool_call", "tool": "take", "argument": "more.sure"}
    variables = {
        "team": derived('literal["none", "red", "blue"]', "none", team),
        "sure": derived("bool", False, deep),
        "said": derived("bool", False, says("A", contains="yes"), says("A", equals="no")),
    }
    handoffs = [
        rule("A", "terminate", "team == 'red' and sure"),
        rule("A", "B", "said", priority=2),
        rule("A", "user"),
    ]
    agents = [{"agent_name": "A", "auto_tool_mode": True}, {"agent_name": "B"}]
    made = workflow(
        variables,
        handoffs,
        models=[MODEL],
        registry=[{"agent": "A", "model": "Out"}],
        tools=[tool("take", auto_invoke=True)],
        agents=agents,
    )
    found = moves(made)
    assert {move.kind for move in found} == {"say", "reply"}
    assert [move.what for move in found if move.kind == "say"] == ["[sample] yes"]
    best = Move("reply", "take", ((("team",), "red"), (("more", "sure"), True)))
    assert ways(made) == ((best,),)


def test_a_field_the_reply_does_not_have_makes_no_move():
    lost = {"type": "tool_call", "tool": "take", "argument": "nowhere"}
    made = workflow(
        {"lost": derived("bool", False, lost)},
        [rule("A", "terminate", "lost"), rule("A", "user")],
        models=[MODEL],
        registry=[{"agent": "A", "model": "Out"}],
        tools=[tool("take", auto_invoke=True)],
        agents=[{"agent_name": "A", "auto_tool_mode": True}],
    )
    assert moves(made) == ()


@pytest.mark.parametrize(("max_turns", "wandering"), [(1, 0), (3, 0), (4, 1), (6, 2), (50, 2)])
def test_there_is_time_to_look_around_or_there_is_not(max_turns: int, wandering: int):
    variables = {"done": derived("bool", False, says("A", equals="BYE"))}
    made = workflow(variables, [END, rule("A", "user")], max_turns=max_turns)
    assert steering_of(made).wandering == wandering


RESPONSE = {
    "type": "object",
    "properties": {"choice": {"enum": ["yes", "no"]}, "note": {"type": "string"}},
    "required": ["choice", "note"],
}


def asking(response_schema: Any = None) -> Subject:
    answered = {"type": "ui_response", "tool": "confirm", "response_key": "choice"}
    ui = {
        "tool_type": "UI_Tool",
        "agent": "A",
        "file": "t.py",
        "function": "confirm",
        "ui": {"component": "Confirm", "mode": "inline"},
        "response_schema": response_schema,
    }
    return workflow(
        {
            "choice": derived('literal["yes", "no", "late"]', "late", answered),
            "deep": derived("int", 0, {**answered, "response_key": "more.count"}),
        },
        [rule("A", "terminate", "choice == 'yes'"), rule("A", "user", "choice == 'late'")],
        tools=[ui, tool("plain")],
    )


def test_a_question_is_asked_and_the_answer_that_leads_on_is_known():
    steering = steering_of(asking(RESPONSE))
    assert steering.moves["A"] == (Move("call", "confirm"),)
    assert (("choice",), "yes") in steering.answers["confirm"][0]


def test_answers_fit_their_schema_and_often_lead_on():
    made = asking(RESPONSE)
    steering = steering_of(made)
    answers = [
        sample_answer(compile_workflow(made.spec), steering, "confirm", Random(seed))
        for seed in range(60)
    ]
    for answer in answers:
        Draft202012Validator(RESPONSE).validate(answer)
    assert 35 < sum(answer["choice"] == "yes" for answer in answers) < 60  # type: ignore[index]


def test_an_answer_that_its_schema_forbids_is_not_given():
    only = {**RESPONSE, "properties": {"choice": {"const": "no"}, "note": {"type": "string"}}}
    made = asking(only)
    answers = [
        sample_answer(compile_workflow(made.spec), steering_of(made), "confirm", Random(number))
        for number in range(9)
    ]
    assert {answer["choice"] for answer in answers} == {"no"}  # type: ignore[index]


def test_without_a_schema_the_variables_say_what_an_answer_holds():
    made = asking()
    answer = sample_answer(compile_workflow(made.spec), Steering(), "confirm", Random(1))
    assert answer["choice"] in ("yes", "no", "late")  # type: ignore[index]
    assert isinstance(answer["more"]["count"], int)  # type: ignore[index]
    assert sample_answer(compile_workflow(made.spec), Steering(), "plain", Random(1)) == {}


def test_an_answer_need_not_be_an_object():
    made = asking({"type": "boolean"})
    assert sample_answer(compile_workflow(made.spec), Steering(), "confirm", Random(1)) in (
        True,
        False,
    )


def test_values_are_put_to_their_places_and_found_there():
    value: dict[str, Any] = {"a": {"b": 1}, "c": 2}
    places = ((("a", "x"), True), (("c", "d"), "e"), (("f",), None))
    assert not found_at(value, places)
    put_at(value, places)
    assert value == {"a": {"b": 1, "x": True}, "c": {"d": "e"}, "f": None}
    assert found_at(value, places)
    assert not found_at({"a": {"x": 1}, "c": {"d": "e"}}, places)
    assert not found_at("text", places)
    assert not found_at(None, ())


SCHEMA = {
    "type": "object",
    "properties": {
        "free": {"type": "string"},
        "listed": {"$ref": "#/$defs/Team"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Team"}, {"type": "null"}]},
        "one": {"oneOf": [{"const": 1}, {"const": 2}]},
        "inner": {"type": "object", "properties": {"x": {"const": True}}},
        "open": {"type": "object"},
    },
    "$defs": {"Team": {"enum": ["red", "blue"]}},
}


@pytest.mark.parametrize(
    ("path", "value", "allowed"), CASES["test_a_schema_says_what_may_stand_where"]
)
def test_a_schema_says_what_may_stand_where(path: str, value: Any, allowed: bool):
    assert allowed_at(SCHEMA, ((tuple(path.split(".")), value),)) is allowed


def test_cycle_of_rules_is_not_a_path():
    made = workflow(
        {
            "done": derived("bool", False, says("A", equals="BYE")),
            "lost": derived("bool", False, says("A", equals="LOST")),
        },
        [
            END,
            rule("A", "B", "lost", priority=2),
            rule("A", "user"),
            rule("B", "C", "lost", condition_scope="pre"),
            rule("C", "B", "lost", condition_scope="pre"),
        ],
        agents="ABC",
    )
    assert set(moves(made)) == {Move("say", "BYE"), Move("say", "LOST")}
    assert ways(made) == ((Move("say", "BYE"),),)
