"""An agent's declared context: what is in it, in which order, and what is left out and why."""

import pytest
from pydantic import ValidationError

from support.engine_play import Play
from weft.context.prompt import Assembly, assemble
from weft.context.view import make_view
from weft.engine.compile import compile_workflow
from weft.engine.events import ToolRequest, ToolReturned
from weft.engine.message import Message
from weft.engine.state import State
from weft.spec.workflow import WorkflowSpec

VARIABLES = {
    "tier": {"type": "str", "source": {"type": "static", "value": "gold"}},
    "city": {"type": "str", "source": {"type": "static", "value": "Bern"}},
    "pay": {"type": "int", "source": {"type": "static", "value": 7}, "readers": ["B"]},
    "key": {"type": "str", "source": {"type": "environment", "env_var": "K"}, "secret": True},
}


def spec(*context, content="Help.", exposed=("tier", "city"), **more):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [
                {
                    "agent_name": "A",
                    "prompt_sections": [{"id": "role", "content": content}],
                    "context": list(context),
                },
                {"agent_name": "B"},
            ],
            "variables": VARIABLES,
            "exposure": {"A": list(exposed)},
            **more,
        }
    )


def seen(declared: WorkflowSpec, state: State) -> Assembly:
    turn = state.turn.number if state.turn else 0
    return assemble(make_view(declared, declared.agents[0], ()), state, turn)


def state(*texts):
    known = State("r", user="ada")
    known.variables = {"tier": "gold", "city": "Bern", "pay": 7, "key": "s3cret"}
    for number, text in enumerate(texts, start=1):
        known.add_message(Message("user", "", text, number))
    return known


def contents(sent: Assembly):
    return [(message["role"], message["content"]) for message in sent.messages]


def literal(text, **more):
    return {"kind": "literal", "text": text, **more}


def test_the_standard_context_is_variables_then_history():
    standard = seen(spec(), state("hi"))
    declared = seen(spec({"kind": "variables"}, {"kind": "history"}), state("hi"))
    assert contents(standard) == contents(declared)
    assert [piece["origin"] for piece in standard.manifest["segments"]] == [
        "role",
        "standard",
        "standard",
    ]
    assert [piece["origin"] for piece in declared.manifest["segments"]] == [
        "role",
        "context[0]",
        "context[1]",
    ]


def test_context_is_sent_in_the_declared_order_after_the_prompt():
    context = (
        literal("First."),
        {"kind": "history"},
        literal("{tier} stays as it is."),
        {"kind": "variables"},
    )
    sent = seen(spec(*context), state("hi", "ho"))
    assert contents(sent) == [
        ("system", "Help.\n\nFirst."),
        ("user", "hi"),
        ("user", "ho"),
        ("system", "{tier} stays as it is.\n\n[CONTEXT VARIABLES]\ntier: gold\ncity: Bern"),
    ]
    assert [(segment["kind"], segment["origin"]) for segment in sent.manifest["segments"]] == [
        ("prompt", "role"),
        ("literal", "context[0]"),
        ("history", "context[1]"),
        ("literal", "context[2]"),
        ("variables", "context[3]"),
    ]


def test_unlisted_parts_are_not_sent():
    assert contents(seen(spec(literal("Alone.")), state("hi"))) == [("system", "Help.\n\nAlone.")]


def test_only_the_variables_of_names_in_their_order():
    sent = seen(spec({"kind": "variables", "names": ["city"]}), state())
    assert contents(sent) == [("system", "Help.\n\n[CONTEXT VARIABLES]\ncity: Bern")]
    swapped = seen(spec({"kind": "variables", "names": ["city", "tier"]}), state())
    assert swapped.manifest["segments"][1]["names"] == ["city", "tier"]
    assert swapped.manifest["left_out"] == []


@pytest.mark.parametrize(
    ("max_tokens", "kept", "dropped"),
    [(11, ["tier", "city"], []), (10, ["tier"], ["city"]), (7, [], ["tier", "city"])],
)
def test_variables_over_max_tokens_drop_from_the_end(max_tokens, kept, dropped):
    sent = seen(spec({"kind": "variables", "max_tokens": max_tokens}), state())
    listed = [segment for segment in sent.manifest["segments"] if segment["kind"] == "variables"]
    assert [entry["names"] for entry in listed] == ([kept] if kept else [])
    assert all(entry["tokens"] <= max_tokens for entry in listed)
    assert sent.manifest["left_out"] == (
        [
            {
                "kind": "variables",
                "origin": "context[0]",
                "names": dropped,
                "reason": f"over the budget of {max_tokens} tokens",
            }
        ]
        if dropped
        else []
    )


def test_history_keeps_max_messages():
    sent = seen(spec({"kind": "history", "max_messages": 2}), state("a", "b", "c"))
    assert contents(sent)[1:] == [("user", "b"), ("user", "c")]
    assert sent.manifest["left_out"] == [
        {
            "kind": "history",
            "origin": "context[0]",
            "before": 2,
            "reason": "over the limit of 2 messages",
        }
    ]


def test_history_keeps_max_tokens():
    sent = seen(spec({"kind": "history", "max_tokens": 3}), state("a" * 40, "b" * 8, "c"))
    assert contents(sent)[1:] == [("user", "b" * 8), ("user", "c")]
    assert sent.manifest["left_out"][0]["reason"] == "over the budget of 3 tokens"
    assert sent.manifest["segments"][-1]["tokens"] == 3


def test_a_literal_is_never_cut():
    sent = seen(spec(literal("x" * 400, max_tokens=1)), state())
    assert contents(sent) == [("system", "Help.\n\n" + "x" * 400)]
    assert sent.manifest["left_out"] == []


def test_unreadable_variables_are_hidden():
    declared = spec(content="Pay {pay}, {pay} and {key} for {tier}.", exposed=("tier", "pay"))
    sent = seen(declared, state())
    assert contents(sent) == [
        (
            "system",
            "Pay (hidden), (hidden) and (hidden) for gold.\n\n[CONTEXT VARIABLES]\ntier: gold",
        )
    ]
    assert sent.manifest["left_out"] == [
        {"kind": "prompt", "origin": "role", "names": ["pay", "key"], "reason": "hidden"},
        {"kind": "variables", "origin": "standard", "names": ["pay"], "reason": "hidden"},
    ]


def test_secrets_and_undeclared_or_unexposed_variables_are_hidden():
    names = ["key", "city", "nothing", "user_id"]
    sent = seen(
        spec(
            {"kind": "variables", "names": names},
            content="{key}",
            exposed=("key", "nothing", "user_id"),
        ),
        state(),
    )
    assert contents(sent) == [("system", "(hidden)\n\n[CONTEXT VARIABLES]\nuser_id: ada")]
    assert sent.manifest["left_out"][1]["names"] == ["key", "city", "nothing"]


def test_nothing_is_left_to_list():
    sent = seen(spec({"kind": "variables"}, exposed=("pay",)), state())
    assert contents(sent) == [("system", "Help.")]


def test_current_turn_is_sent_even_without_history():
    declared = spec(
        literal("No past."),
        tools=[
            {
                "tool_type": "Agent_Tool",
                "agent": "A",
                "file": "t.py",
                "function": "look",
                "description": "d",
            }
        ],
        handoffs=[
            {"source_agent": "A", "target_agent": "B"},
            {"source_agent": "B", "target_agent": "A"},
        ],
    )
    play = Play(compile_workflow(declared))
    play.start("hello")
    assert contents(seen(declared, play.state)) == [("system", "Help.\n\nNo past.")]
    play.reply("", ToolRequest("c1", "look", {}))
    play.take(ToolReturned("c1", "one"))
    play.reply("again", ToolRequest("c2", "look", {}))
    play.take(ToolReturned("c2", "two"))
    sent = seen(declared, play.state)
    assert contents(sent) == [
        ("system", "Help.\n\nNo past."),
        ("assistant", None),
        ("tool", "one"),
        ("assistant", "again"),
        ("tool", "two"),
    ]
    assert sent.manifest["segments"][-1]["kind"] == "turn"
    play.reply("done")
    play.reply("my turn was short")
    assert play.state.turn.agent == "A"
    assert contents(seen(declared, play.state)) == [("system", "Help.\n\nNo past.")]


def test_limits_of_a_history_hold_for_the_turn_under_way_as_well():
    known = state("hello")
    known.add_message(Message("agent", "A", "", 2, requests=(ToolRequest("c1", "look", {}),)))
    known.add_message(Message("tool", "A", "one", 3, call="c1"))
    known.add_message(Message("agent", "A", "", 4, requests=(ToolRequest("c2", "look", {}),)))
    known.add_message(Message("tool", "A", "two", 5, call="c2"))
    sent = seen(spec({"kind": "history", "max_messages": 2}), known)
    assert contents(sent)[1:] == [("assistant", None), ("tool", "two")]
    assert sent.manifest["left_out"] == [
        {
            "kind": "history",
            "origin": "context[0]",
            "before": 4,
            "reason": "over the limit of 2 messages",
        }
    ]


def test_a_refusal_belongs_to_the_turn():
    declared = spec(
        literal("Only JSON."),
        models=[{"name": "Out", "fields": {"n": {"type": "int"}}}],
        registry=[{"agent": "A", "model": "Out"}],
    )
    play = Play(compile_workflow(declared))
    play.start("hello")
    play.reply("no JSON")
    roles = [role for role, _ in contents(seen(declared, play.state))]
    assert roles == ["system", "assistant", "user"]


def test_slices_are_the_exact_prompt():
    context = (literal("First."), {"kind": "history"}, literal("Last."))
    known = state("hi")
    asked = (ToolRequest("c1", "look", {"q": 1}),)
    known.add_message(Message("agent", "A", "Let me see.", 2, requests=asked))
    known.add_message(Message("tool", "A", "found", 3, call="c1"))
    sent = seen(spec(*context), known)
    assert [(slice_.kind, slice_.origin, slice_.role, slice_.text) for slice_ in sent.slices()] == [
        ("prompt", "role", "system", "Help."),
        ("literal", "context[0]", "system", "First."),
        ("history", "event 1", "user", "hi"),
        ("history", "event 2", "assistant", 'Let me see.\nlook({"q":1})'),
        ("history", "event 3", "tool", "found"),
        ("literal", "context[2]", "system", "Last."),
    ]
    assert sum(slice_.tokens for slice_ in sent.slices()) == sent.manifest["tokens"]
    assert not any("text" in entry for entry in sent.manifest["segments"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "history", "max_messages": 0},
        {"kind": "history", "max_tokens": 0},
        {"kind": "variables", "max_tokens": -1},
        {"kind": "literal", "text": "x", "max_tokens": 0},
        {"kind": "other"},
    ],
)
def test_limits_below_one_and_unknown_kinds_are_refused(wrong):
    with pytest.raises(ValidationError):
        spec(wrong)
