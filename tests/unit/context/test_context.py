"""What an agent is sent: instructions with values, the conversation it may see, a true manifest."""

import json
import time
import timeit
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.context.history import HistoryLimits, window
from weft.context.prompt import assemble, digest_of
from weft.context.segment import fitting_lines, value_of, values_of
from weft.context.view import BoardSlice, View, extras, make_view
from weft.engine.events import ToolRequest
from weft.engine.message import Message
from weft.engine.persistent import Log
from weft.engine.state import State
from weft.ports.model import ToolSchema
from weft.spec.agents import estimate_tokens
from weft.spec.workflow import WorkflowSpec

SPEC = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
        "agents": [
            {
                "agent_name": "A",
                "prompt_sections": [
                    {"id": "role", "heading": "[ROLE]", "content": "You help {user_id}."},
                    {"id": "rest", "content": 'Tier {tier}; say {{tier}} or {"a": 1}.'},
                ],
            },
            {"agent_name": "B"},
        ],
        "variables": {
            "tier": {"type": "str", "source": {"type": "static", "value": "gold"}},
            "seen": {"type": "list", "source": {"type": "derived"}},
        },
        "exposure": {"A": ["tier", "seen"]},
        "models": [{"name": "Out", "fields": {"n": {"type": "int"}}}],
        "registry": [{"agent": "B", "model": "Out"}],
    }
)
TOOL = ToolSchema("look", "Looks.", {"type": "object", "properties": {}})
A, B = SPEC.agents
LOOK = ToolRequest("c1", "look", {"q": "ü"})
PAST = HistoryLimits("history", "standard", 1000)


def state(*messages):
    known = State("r", app="app", user="ada", workflow="W")
    known.variables = {"tier": "gold", "seen": [1, None]}
    for message in messages:
        known.add_message(message)
    return known


def user(text, seq=1):
    return Message("user", "", text, seq)


def agent(name, text, seq=2, *requests):
    return Message("agent", name, text, seq, requests=requests)


def tool(name, text, seq=3, call="c1"):
    return Message("tool", name, text, seq, call=call)


def test_instructions_carry_the_values_and_the_exposed_variables():
    sent = assemble(make_view(SPEC, A, ()), state(user("hi")), 0)
    assert sent.messages[0] == {
        "role": "system",
        "content": "[ROLE]\nYou help ada.\n\n"
        'Tier gold; say {tier} or {"a": 1}.\n\n'
        "[CONTEXT VARIABLES]\ntier: gold\nseen: [1, null]",
    }
    assert sent.messages[1] == {"role": "user", "content": "hi"}


def test_the_manifest_says_where_everything_is_from():
    manifest = assemble(make_view(SPEC, A, (TOOL,)), state(user("hi", 7)), 0).manifest
    assert [segment["kind"] for segment in manifest["segments"]] == [
        "prompt",
        "prompt",
        "variables",
        "history",
        "tools",
    ]
    assert manifest["segments"][2]["names"] == ["tier", "seen"]
    assert manifest["segments"][3] | {"tokens": 0} == {
        "kind": "history",
        "origin": "standard",
        "messages": 1,
        "first": 7,
        "last": 7,
        "tokens": 0,
    }
    assert manifest["tokens"] == sum(segment["tokens"] for segment in manifest["segments"])
    assert manifest["left_out"] == []


def test_an_agent_without_instructions_is_sent_the_conversation_alone():
    sent = assemble(make_view(SPEC, B, ()), state(), 0)
    assert sent.messages == []
    assert [segment["kind"] for segment in sent.manifest["segments"]] == ["output"]


def test_the_same_state_gives_the_same_bytes_and_another_gives_others():
    view = make_view(SPEC, A, (TOOL,))
    assert (
        assemble(view, state(user("hi")), 0).digest == assemble(view, state(user("hi")), 0).digest
    )
    assert (
        assemble(view, state(user("hi")), 0).digest != assemble(view, state(user("ho")), 0).digest
    )


def test_messages_of_other_agents_are_sent_without_their_tool_calls():
    seen = window(
        state(
            user("hi"),
            agent("B", "", 2, LOOK),
            tool("B", "secret"),
            agent("B", "I looked", 4),
            agent("A", "thanks", 5),
        ).messages,
        "A",
        PAST,
    )
    assert seen.messages == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "B: I looked"},
        {"role": "assistant", "content": "thanks"},
    ]


def test_a_correction_is_between_the_agent_and_the_engine():
    told = Message("user", "", "say it again", 3, to="A")
    messages = state(agent("A", "before", 1), agent("A", "garbage", 2), told).messages
    own = window(messages, "A", PAST).messages
    assert [message["content"] for message in own] == ["before", "garbage", "say it again"]
    others = window(messages, "B", PAST).messages
    assert [other["content"] for other in others] == ["A: before"]


def test_own_tool_calls_are_sent_with_their_results():
    seen = window(state(agent("A", "", 2, LOOK), tool("A", "found")).messages, "A", PAST)
    call, result = seen.messages
    assert call["content"] is None
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"q": "ü"}
    assert result == {"role": "tool", "content": "found", "tool_call_id": "c1"}


def test_results_are_in_the_order_of_their_calls():
    asked = [ToolRequest(id_, "look", {}) for id_ in ("c1", "c2", "c3")]
    late_first = [tool("A", id_, seq, id_) for seq, id_ in ((3, "c3"), (4, "c1"), (5, "c2"))]
    seen = window(state(agent("A", "", 2, *asked), *late_first).messages, "A", PAST)
    assert [message["content"] for message in seen.messages[1:]] == ["c1", "c2", "c3"]
    assert [source.seq for source in seen.sources] == [2, 4, 5, 3]


def test_the_newest_message_is_always_sent_and_older_ones_are_left_out():
    messages = state(user("x" * 400, 1), user("y" * 400, 2)).messages
    seen = window(messages, "A", HistoryLimits("history", "context[0]", 10))
    assert [message["content"] for message in seen.messages] == ["y" * 400]
    assert seen.left_out == {
        "kind": "history",
        "origin": "context[0]",
        "before": 2,
        "reason": "over the budget of 10 tokens",
    }


def test_tokens_are_estimated_upwards():
    assert [estimate_tokens("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


@st.composite
def conversations(draw):
    log: Log[Message] = Log()
    for number in range(draw(st.integers(0, 12))):
        name = draw(st.sampled_from(["A", "B"]))
        kind = draw(st.sampled_from(["user", "say", "tools"]))
        text = draw(st.sampled_from(["", "short", "long " * 20]))
        if kind == "user":
            log = log.added(user(text, number))
        elif kind == "say":
            log = log.added(agent(name, text, number))
        else:
            ids = [f"{number}-{index}" for index in range(draw(st.integers(1, 3)))]
            asked = tuple(ToolRequest(id_, "look", {}) for id_ in ids)
            log = log.added(Message("agent", name, text, number, requests=asked))
            for id_ in draw(st.permutations(ids)):
                log = log.added(tool(name, text, number, id_))
    return log


@settings(max_examples=50 * TIMES, deadline=None)
@given(conversations(), st.integers(1, 100), st.none() | st.integers(1, 6))
def test_cutting_never_tears_a_call_from_its_results(log, budget, most):
    open_calls: set[str] = set()
    for message in window(log, "A", HistoryLimits("history", "standard", budget, most)).messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
        open_calls |= {call["id"] for call in message.get("tool_calls", ())}
    assert not open_calls


@settings(max_examples=50 * TIMES, deadline=None)
@given(conversations(), st.integers(1, 100), st.none() | st.integers(1, 6))
def test_history_keeps_the_newest_messages_that_fit(log, budget, most):
    whole = window(log, "A", HistoryLimits("history", "standard", 10**9))
    seen = window(log, "A", HistoryLimits("history", "standard", budget, most))
    length = len(seen.messages)
    assert whole.cut is None
    assert seen.messages == whole.messages[len(whole.messages) - length :]
    assert (seen.cut is None) == (length == len(whole.messages))
    groups = sum(message["role"] != "tool" for message in seen.messages)
    assert groups <= 1 or (seen.tokens <= budget and (most is None or length <= most))
    assert seen.tokens == sum(part.tokens for part in seen.slices())


def test_the_arguments_of_a_call_count():
    large = ToolRequest("c1", "look", {"q": "x" * 396})
    messages = state(user("hi"), agent("A", "", 2, large), tool("A", "found")).messages
    seen = window(messages, "A", HistoryLimits("history", "standard", 100))
    assert seen.tokens > 100
    assert [message["role"] for message in seen.messages] == ["assistant", "tool"]


def test_values_are_those_of_the_run_and_the_built_in_ones():
    known = state()
    assert values_of(known, 0) == {
        "tier": "gold",
        "seen": [1, None],
        "app_id": "app",
        "enterprise_id": "app",
        "user_id": "ada",
        "chat_id": "r",
        "workflow_name": "W",
    }
    seen = known.values_of(0)
    every = values_of(known, 0)
    assert {name: value_of(known, seen, name) for name in every} == every
    assert value_of(known, seen, "nothing") is None
    assert value_of(known, {"tier": "silver"}, "tier") == "silver"


def test_the_digest_is_of_everything_that_is_sent():
    sent = assemble(make_view(SPEC, A, ()), state(user("hi")), 0)
    assert sent.digest == digest_of(sent.messages, extras((), None))
    assert sent.digest == digest_of(tuple(sent.messages), extras((), None))
    other = assemble(make_view(SPEC, A, (TOOL,)), state(user("hi")), 0)
    assert other.messages == sent.messages
    assert other.digest != sent.digest


def slice_seconds(count):
    """Return how long it takes to leave out most of so many artifacts."""
    items = [{"id": str(number), "payload": {"text": "x" * 1_000}} for number in range(count)]
    fetched = {"engines": [0], "slices": [{"provider": "p", "items": items, "metadata": {}}]}
    active = SimpleNamespace(shown=None, edits=(), board_input=fetched, engine_index=0)
    state = SimpleNamespace(active={1: active}, offered={}, values_of=lambda turn: {})
    view = View("a", (BoardSlice("standard", 1_000),), (), (), None)
    work = timeit.Timer(lambda: assemble(view, state, 1), timer=time.process_time)
    return min(work.repeat(repeat=5, number=1))


def test_trimming_artifacts_takes_linear_time():
    assert slice_seconds(4_000) < 8 * slice_seconds(1_000) + 0.02


def test_budget_counts_like_estimate():
    for tokens in (1, 5, 6, 7, 100):
        lines = ["abc", "", "defgh", "i" * 9]
        kept = fitting_lines("[H]", lines, tokens)
        whole = "\n".join(("[H]", *kept))
        assert not kept or estimate_tokens(whole) <= tokens
        more = "\n".join(("[H]", *lines[: len(kept) + 1]))
        assert kept == lines or estimate_tokens(more) > tokens
