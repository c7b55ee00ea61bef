"""Variables on a board: triggers set them, prompts show them, and what cannot be is refused."""

import asyncio

import pytest

from weft.engine.compile import not_performed
from weft.errors import LinkError
from weft.ports.scope import Scope
from weft.spec.workflow import WorkflowSpec
from weft.testing import FunctionModel, host_for

SCOPE = Scope("shop", "ann")

SPEC = {
    "orchestrator": {"workflow_name": "Desk"},
    "agents": [
        {
            "agent_name": "Writer",
            "prompt_sections": [{"id": "role", "content": "Mood: {mood}. Done: {done}."}],
        }
    ],
    "variables": {
        "mood": {
            "type": "str",
            "source": {
                "type": "derived",
                "default": "calm",
                "triggers": [
                    {
                        "type": "agent_text",
                        "agent": "Writer",
                        "match": {"contains": "hurry"},
                        "value": "busy",
                    }
                ],
            },
        },
        "begun": {
            "type": "bool",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [{"type": "lifecycle", "event": "before_agent", "agent": "Writer"}],
            },
        },
        "done": {
            "type": "bool",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [{"type": "agent_turn_count", "agent": "Writer", "count": 1}],
            },
        },
        "ready": {
            "type": "bool",
            "source": {"type": "computed", "computation": "mood == 'busy'", "inputs": ["mood"]},
        },
    },
    "models": [
        {"name": "Lead", "fields": {"text": {"type": "str"}}},
        {"name": "Pitch", "fields": {"text": {"type": "str"}}},
    ],
    "board": {
        "artifacts": ["Lead", "Pitch"],
        "agents": [
            {"agent": "Writer", "consumes": [{"types": ["Lead"]}], "publishes": [{"type": "Pitch"}]}
        ],
    },
}


def test_messages_and_turn_counts_set_variables():
    sent = []

    def say(request):
        sent.append(request.messages[0]["content"])
        return '{"text": "hurry up"}'

    async def run():
        spec = WorkflowSpec.model_validate(SPEC)
        async with host_for(spec, FunctionModel(say)) as host:
            for text in ("a", "b"):
                await host.publish("Desk", "Lead", {"text": text}, scope=SCOPE, correlation="c")
                await host.quiet()
            run = await host.run_of("Desk", "c", scope=SCOPE)
            return (await host.state(run, scope=SCOPE)).variables

    values = asyncio.run(run())
    assert values == {"mood": "busy", "begun": True, "done": True, "ready": True}
    assert "Mood: calm. Done: false." in sent[0]
    assert "Mood: busy. Done: true." in sent[1]


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        (
            "hooks",
            [{"hook_type": "update_agent_state", "file": "h.py", "function": "f"}],
            "the hook f",
        ),
        (
            "lifecycle_tools",
            [{"trigger": "before_agent", "file": "h.py", "function": "g"}],
            "the lifecycle tool g",
        ),
    ],
)
def test_code_that_a_board_does_not_call_is_refused(field, value, told):
    spec = WorkflowSpec.model_validate({**SPEC, field: value})
    assert [finding.what for finding in not_performed(spec)] == [told]
    with pytest.raises(LinkError, match=told):
        host_for(spec, FunctionModel(lambda _: ""))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            {"type": "computed", "computation": "tools.sums:total", "inputs": ["mood"]},
            "ready, computed by a function",
        ),
        (
            {"type": "derived", "triggers": [{"type": "function", "function": "tools.sums:total"}]},
            "a function trigger of ready",
        ),
    ],
)
def test_functions_of_variables_are_refused_on_a_board(source, told):
    variables = {**SPEC["variables"], "ready": {"type": "bool", "source": source}}
    spec = WorkflowSpec.model_validate({**SPEC, "variables": variables})
    assert [finding.what for finding in not_performed(spec)] == [told]


def test_run_hooks_are_called_on_a_board_too():
    hooks = [{"hook_type": "on_start", "file": "h.py", "function": "f"}]
    tools = [{"trigger": "after_chat", "file": "h.py", "function": "g"}]
    spec = WorkflowSpec.model_validate({**SPEC, "hooks": hooks, "lifecycle_tools": tools})
    assert not_performed(spec) == ()
