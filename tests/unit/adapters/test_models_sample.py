"""The sample model: always the same, always fitting, and always coming to an end."""

import json
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter

from support.effort import TIMES
from support.model_play import LOOKUP, ask, called, run, said
from support.schema_play import schemas
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import Move, Steering
from weft.adapters.models.sample_values import sample_value
from weft.errors import ModelError
from weft.ports.model import ModelReply, ModelRequest, OutputSchema, ToolSchema

VERDICT = OutputSchema(
    "Verdict",
    {
        "type": "object",
        "properties": {"score": {"type": "integer"}, "title": {"type": "string"}},
        "required": ["score", "title"],
        "additionalProperties": False,
    },
)


def answer(request: ModelRequest, seed: int = 0, steering: Steering | None = None) -> ModelReply:
    return run(SampleModel(seed, steering).reply(request))


@settings(max_examples=50 * TIMES, deadline=None)
@given(schemas(), st.integers())
def test_every_value_fits_its_schema(schema: dict[str, Any], seed: int):
    value = sample_value(schema, Random(seed))
    Draft202012Validator(schema).validate(value)
    json.dumps(value)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    day: str = Field(json_schema_extra={"format": "date"})


class Branch(BaseModel):
    kind: Literal["branch"] = "branch"
    parts: list["Branch | Leaf"] = Field(min_length=1)


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Order:
    colour: Colour
    point: Point
    tree: Annotated[Branch | Leaf, Field(discriminator="kind")]
    pair: tuple[int, str]
    tags: set[Literal["a", "b", "c"]]
    many: Annotated[list[Colour], Field(min_length=2)]
    unique: Annotated[set[int], Field(min_length=3, max_length=5)]
    code: Annotated[str, Field(min_length=12, max_length=14)]
    short: Annotated[str, Field(max_length=3)]
    above: Annotated[int, Field(gt=5, lt=8)]
    below: Annotated[int, Field(le=-200)]
    share: Annotated[float, Field(gt=0, lt=1)]
    tiny: Annotated[float, Field(gt=0, lt=0.001)]
    step: Annotated[int, Field(multiple_of=7, ge=1)]
    half: Annotated[float, Field(multiple_of=0.5, ge=1, le=3)]
    plate: Annotated[str, Field(pattern=r"^[A-Z]{2}$", examples=["AB"])]
    anything: Any
    free: dict[str, int]
    filled: Annotated[dict[str, bool], Field(min_length=2, max_length=2)]
    nothing: None
    maybe: int | None = None


@pytest.mark.parametrize("seed", range(10))
def test_arguments_fit_what_type_hints_say(seed: int):
    adapter = TypeAdapter(Order)
    schema = adapter.json_schema()
    value = sample_value(schema, Random(seed))
    Draft202012Validator(schema).validate(value)
    adapter.validate_json(json.dumps(value))


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["integer", "null"]},
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"items": {"type": "integer"}},
        {"prefixItems": [{"type": "integer"}], "items": False},
        {"type": "array", "items": {"enum": [1]}, "uniqueItems": True, "maxItems": 3},
        {"type": "array", "prefixItems": [{}, {}], "minItems": 3, "maxItems": 3},
        {"type": "number", "minimum": 5, "maximum": 5},
        {"type": "integer", "exclusiveMaximum": 0},
        {"type": "string", "format": "uuid"},
        {"type": "string", "format": "unheard-of"},
        {"type": "boolean"},
        {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"const": 1}}}]},
        {"allOf": [{"$ref": "#/definitions/A"}], "definitions": {"A": {"type": "null"}}},
        {"anyOf": [{"oneOf": [{"const": 1}, {"const": 2}]}, {"type": "null"}]},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
        {"type": "object", "additionalProperties": True},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_other_schemas_are_met_too(schema: dict[str, Any], seed: int):
    Draft202012Validator(schema).validate(sample_value(schema, Random(seed)))


ENDLESS = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}


def test_a_type_without_finite_values_is_refused():
    with pytest.raises(ModelError, match="no sample value exists"):
        sample_value(ENDLESS, Random(0))


@pytest.mark.parametrize("seed", range(8))
def test_infinite_optional_values_are_left_out(seed: int):
    endless = {**ENDLESS, "properties": {"next": {"$ref": "#/$defs/E"}}}
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"$ref": "#/$defs/E"}, {"type": "null"}]},
            "b": {"type": "array", "items": {"$ref": "#/$defs/E"}},
            "c": {"type": "object", "additionalProperties": {"$ref": "#/$defs/E"}},
            "d": {"$ref": "#/$defs/E"},
        },
        "required": ["a", "b", "c"],
        "$defs": {"E": endless},
    }
    assert sample_value(schema, Random(seed)) == {"a": None, "b": [], "c": {}}


def test_deep_types_stay_small():
    tree = {
        "type": "object",
        "properties": {"parts": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["parts"],
    }
    assert max(len(json.dumps(sample_value(tree, Random(seed)))) for seed in range(50)) < 2000


def test_a_text_says_that_it_is_a_sample():
    assert str(sample_value({"type": "string"}, Random(0))).startswith("[sample] value")
    reply = answer(ask())
    assert reply.text == "[sample] Here Helper would answer. This is its turn 1."
    assert reply.answerer == "sample"
    assert reply.model == "sample"
    assert reply.usage.cost_usd == 0.0


def test_the_same_request_gives_the_same_answer_and_another_seed_another():
    request = ask(tools=(LOOKUP,), output=VERDICT)
    assert answer(request, seed=3) == answer(request, seed=3)
    assert len({answer(request, seed=seed).text for seed in range(20)}) > 3


def test_the_run_and_the_key_do_not_matter():
    one = answer(ask(output=VERDICT, key="run1:5"), seed=3)
    other = answer(ask(output=VERDICT, key="run2:9"), seed=3)
    assert one.text == other.text


def says(*texts: str, wandering: int = 0) -> Steering:
    moves = tuple(Move("say", text) for text in texts)
    return Steering({"Helper": moves}, {"Helper": (moves,)}, wandering=wandering)


@settings(max_examples=20 * TIMES, deadline=None)
@given(schemas(), st.integers(0, 1000))
def test_structured_replies_fit(schema: dict[str, Any], seed: int):
    reply = answer(ask(output=OutputSchema("M0", schema)), seed, says("DONE"))
    Draft202012Validator(schema).validate(json.loads(reply.text))


@pytest.mark.parametrize("seed", range(10))
def test_a_tool_is_called_at_most_once_in_a_turn_and_the_turn_ends(seed: int):
    tools = tuple(ToolSchema(name, "", LOOKUP.parameters) for name in ("a", "b", "c"))
    steering = Steering({"Helper": (Move("call", "a"),)}, {"Helper": ((Move("call", "a"),),)})
    messages = [said("user", "Hello")]
    used: Counter[str] = Counter()
    for _ in range(5):
        reply = answer(ask(*messages, tools=tools, key=f"r:{len(messages)}"), seed, steering)
        if not reply.tool_requests:
            break
        for call in reply.tool_requests:
            Draft202012Validator(LOOKUP.parameters).validate(call.arguments)
            used[call.tool] += 1
            messages.append(called(call.id, call.tool))
            messages.append(said("tool", "ok", tool_call_id=call.id))
    else:
        pytest.fail("the turn does not end")
    assert reply.text
    assert max(used.values(), default=1) == 1


def test_a_conversation_that_began_with_tools_has_used_them():
    messages = (called("c1", "lookup"), said("tool", "ok", tool_call_id="c1"))
    for seed in range(10):
        assert answer(ask(*messages, tools=(LOOKUP,)), seed).tool_requests == ()


def calls_in(seed: int, steering: Steering | None = None) -> set[str]:
    tools = (LOOKUP, ToolSchema("other", "", {}))
    return {request.tool for request in answer(ask(tools=tools), seed, steering).tool_requests}


def test_sometimes_no_tool_is_used_and_one_that_leads_on_always():
    plain = [calls_in(seed) for seed in range(200)]
    look = Move("call", "lookup")
    led = Steering({"Helper": (look,)}, {"Helper": ((look,),)}, wandering=0)
    assert 20 < sum(not calls for calls in plain) < 100
    assert all("lookup" in calls_in(seed, led) for seed in range(50))
    assert 60 < sum("lookup" in calls for calls in plain) < 140


def test_a_tool_that_matters_is_only_called_on_purpose():
    elsewhere = Steering({"Helper": (Move("call", "lookup"),)}, wandering=0)
    assert not any("lookup" in calls_in(seed, elsewhere) for seed in range(50))


PICK = ToolSchema(
    "pick",
    "",
    {
        "type": "object",
        "properties": {"team": {"enum": ["red", "blue"]}, "why": {"type": "string"}},
        "required": ["team", "why"],
    },
)
RED, BLUE, NONE = (Move("call", "pick", ((("team",), name),)) for name in ("red", "blue", "none"))


def picks(seed: int, groups: tuple[tuple[Move, ...], ...], *messages: Any) -> list[str]:
    moves = tuple(move for group in groups for move in group)
    steering = Steering({"Helper": moves}, {"Helper": groups}, wandering=0)
    reply = answer(ask(*messages, tools=(PICK,)), seed, steering)
    return [request.arguments["team"] for request in reply.tool_requests]


def test_a_tool_is_called_with_what_leads_on_unless_it_may_not():
    assert all(picks(seed, ((BLUE,),)) == ["blue"] for seed in range(20))
    assert {picks(seed, ((BLUE, RED),))[0] for seed in range(20)} == {"red", "blue"}
    assert all(picks(seed, ((NONE, RED),)) == ["red"] for seed in range(20))
    assert picks(0, ((NONE,),)) == []


@pytest.mark.parametrize("seed", range(10))
def test_unfinished_work_comes_first_in_order(seed: int):
    red = (called("c1", "pick", '{"team": "red"}'), said("tool", "ok"), said("user", "?"))
    garbage = (called("c1", "pick", "{"), said("tool", "ok"), said("user", "?"))
    assert picks(seed, ((RED,), (BLUE,)), said("user", "?")) == ["red"]
    assert picks(seed, ((RED,), (BLUE,)), *garbage) == ["red"]
    assert picks(seed, ((RED,), (BLUE,)), *red) == ["blue"]
    assert picks(seed, ((RED, BLUE),), *red) == ["blue"]
    assert picks(seed, ((RED,),), *red) == ["red"]


def conversation(steering: Steering, seed: int, turns: int) -> list[str]:
    messages = [said("user", "Hello")]
    for _ in range(turns):
        messages.append(said("assistant", answer(ask(*messages), seed, steering).text))
        messages.append(said("user", "And now?"))
    return [message["content"] or "" for message in messages if message["role"] == "assistant"]


@pytest.mark.parametrize("seed", range(10))
def test_needed_words_are_said_within_a_few_turns(seed: int):
    spoken = conversation(says("BILLING", "TECH", "DONE", wandering=2), seed, 5)
    assert {"BILLING", "TECH", "DONE"} <= set(spoken)
    first = list(dict.fromkeys(text for text in spoken if not text.startswith("[sample]")))
    assert [text for text in spoken if text in first][:3] == first


def test_an_agent_looks_around_before_it_makes_for_the_end():
    end, other = Move("say", "END"), Move("say", "OTHER")
    steering = Steering({"Helper": (other, end)}, {"Helper": ((end,),)}, wandering=2)
    talks = [conversation(steering, seed, 3) for seed in range(60)]
    assert all(talk[2] == "END" for talk in talks)
    kinds = Counter(talk[0].partition(" ")[0] for talk in talks)
    assert min(kinds[text] for text in ("END", "OTHER", "[sample]")) > 5


def test_words_are_repeated_after_all_were_said():
    assert conversation(says("DONE"), 1, 3) == ["DONE"] * 3


def test_words_that_lead_on_stand_in_the_first_free_text_of_a_structured_reply():
    reply = answer(ask(output=VERDICT), 1, says("NEXT"))
    assert json.loads(reply.text)["title"] == "NEXT"
    numbers = OutputSchema("N", {"type": "object", "properties": {}, "required": []})
    assert answer(ask(output=numbers), 1, says("NEXT")).text == "{}"


def test_a_reply_has_the_fields_that_lead_on():
    move = Move("reply", "take", ((("score",), 99),))
    steering = Steering({"Helper": (move,)}, {"Helper": ((move,),)}, wandering=0)
    for seed in range(5):
        reply = answer(ask(output=VERDICT), seed, steering)
        assert json.loads(reply.text)["score"] == 99
    again = Move("reply", "take", ((("score",), 98),))
    both = Steering({}, {"Helper": ((move, again),)}, wandering=0)
    request = ask(said("assistant", '{"score": 99}'), said("assistant", "no JSON"), output=VERDICT)
    assert {json.loads(answer(request, seed, both).text)["score"] for seed in range(9)} == {98}


def test_a_listener_hears_the_text_and_no_tool_calls():
    heard: list[str] = []
    run(SampleModel().reply(ask(), heard.append))
    assert len(heard) == 1
    heard.clear()
    look = Move("call", "lookup")
    model = SampleModel(0, Steering({}, {"Helper": ((look,),)}, wandering=0))
    assert run(model.reply(ask(tools=(LOOKUP,)), heard.append)).tool_requests
    assert heard == []
