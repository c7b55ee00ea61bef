"""Canaries: what is not for end users is nowhere in what they are sent of a whole run."""

import json

import pytest

from support.inspection_play import derived
from support.run_play import ADA, play
from weft.engine.events import KIND_NAMES
from weft.errors import ModelError
from weft.ports.model import ModelReply
from weft.runtime.signals import Answer
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import ScriptedModel, call
from weft.wire.audience import Audience
from weft.wire.events import event_data, user_event_data

CODE = {
    "tools/desk.py": b'''
from weft import Ask, Refuse


def look(order: str, context_variables) -> dict:
    """Look an order up."""
    if order == "canary-second-argument":
        raise Refuse("canary-refusal")
    if order == "canary-third-argument":
        raise ValueError("canary-exception")
    context_variables.set("noted", "canary-written")
    return {"state": "canary-result"}


def agree(context_variables) -> str:
    """Ask a person."""
    if not context_variables.answers:
        raise Ask({"question": "Agreed?"}, timeout=60, otherwise={"text": "canary-otherwise"})
    return "canary-agreed"
'''
}

#: What only operators may read, by where it stands.
FOR_OPERATORS = {
    "start value": "canary-start",
    "model of the run": "canary-model",
    "tool argument": "canary-argument",
    "argument of a failed call": "canary-second-argument",
    "tool result": "canary-result",
    "result after an answer": "canary-agreed",
    "refusal of a tool": "canary-refusal",
    "exception of a tool": "canary-exception",
    "variable": "canary-written",
    "otherwise of a request": "canary-otherwise",
    "reply of a hidden agent": "canary-hidden-reply",
    "reply of a hidden member": "canary-member",
    "rejected reply": "canary-rejected",
    "other field of a structured reply": "canary-field",
    "sign to a trigger": "canary-sign",
    "earlier attempt": "canary-attempt",
    "model that was to answer": "canary-instead",
    "error of a member's model": "canary-member-error",
    "error of the last model, reason of the end": "canary-last-error",
}

#: What is in no event at all.
FOR_NOBODY = {
    "prompt": "canary-prompt",
    "condition of a handoff": "canary-condition",
    "secret": "canary-secret",
    "fixed value": "canary-static",
}

#: What users read.
FOR_USERS = ["Welcome.", "hello", "One moment.", "Agreed?", "I do", "All is well."]


def spec() -> WorkflowSpec:
    tool = {"tool_type": "Agent_Tool", "agent": "Front", "file": "desk.py", "description": "d"}
    sign = {"type": "agent_text", "agent": "Front", "match": {"contains": "canary-sign"}}
    agents = ["Front", "Back", "Clerk", "Left", "Right", "Last"]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Desk",
                "initial_agent": "Front",
                "initial_message_to_user": "Welcome.",
                "visual_agents": ["Front", "Clerk", "Last"],
                "parallel": [
                    {
                        "name": "Both",
                        "members": ["Left", "Right"],
                        "on_failure": "continue",
                        "next": "Last",
                    }
                ],
            },
            "agents": [
                {
                    "agent_name": name,
                    "prompt_sections": [{"id": "role", "content": "canary-prompt {noted}"}],
                }
                for name in agents
            ],
            "variables": {
                "given": derived("str", ""),
                "noted": derived("str", "", {**sign, "ui_hidden": True, "value": "signed"}),
                "count": derived(
                    "int", 0, {"type": "tool_call", "tool": "look", "argument": "order"}
                ),
                "fixed": {"type": "str", "source": {"type": "static", "value": "canary-static"}},
                "key": {
                    "type": "str",
                    "secret": True,
                    "source": {"type": "environment", "env_var": "DESK_KEY"},
                },
            },
            "models": [
                {
                    "name": "Verdict",
                    "fields": {"agent_message": {"type": "str"}, "internal": {"type": "str"}},
                }
            ],
            "registry": [{"agent": "Clerk", "model": "Verdict"}],
            "tools": [{"function": name, **tool} for name in ("look", "agree")],
            "handoffs": [
                {
                    "source_agent": "Front",
                    "target_agent": "Back",
                    "condition": 'given != "canary-condition" and noted == "signed"',
                },
                {"source_agent": "Front", "target_agent": "Front"},
                {"source_agent": "Back", "target_agent": "Clerk"},
                {"source_agent": "Clerk", "target_agent": "Both"},
                {"source_agent": "Last", "target_agent": "terminate"},
            ],
        }
    )


def script() -> ScriptedModel:
    verdict = {"agent_message": "All is well.", "internal": "canary-field"}
    first = ModelReply(
        "One moment.",
        retries=("attempt 1 of 2: canary-attempt",),
        instead_of="canary-instead, which is busy",
    )
    return ScriptedModel(
        {
            "Front": [
                (
                    call("look", order="canary-argument"),
                    call("look", order="canary-second-argument"),
                    call("look", order="canary-third-argument"),
                ),
                call("agree"),
                first,
                "canary-sign",
            ],
            "Back": ["canary-hidden-reply"],
            "Clerk": ["canary-rejected", verdict],
            "Left": ["canary-member"],
            "Right": [ModelError("canary-member-error")],
            "Last": [ModelError("canary-last-error")],
        }
    )


async def agree(host, run):
    (request,) = await host.requests(scope=ADA, run=run)
    await host.deliver(run, Answer(request.id, "I do"), scope=ADA)


@pytest.fixture(scope="module")
def played():
    return play(
        spec(),
        script(),
        code=CODE,
        message="hello",
        values={"given": "canary-start"},
        name="canary-model",
        environment={"DESK_KEY": "canary-secret"},
        after=agree,
    )


@pytest.fixture(scope="module")
def user_stream(played):
    audience = Audience(played.workflow.spec)
    return [
        seen
        for it in played.events
        if (seen := user_event_data(it, played.run, played.workflow, audience)) is not None
    ]


@pytest.fixture(scope="module")
def operator_stream(played):
    return [event_data(it, played.run, played.workflow) for it in played.events]


def test_the_run_went_through_everything(played):
    kinds = {KIND_NAMES[type(it.data)] for it in played.events}
    assert kinds >= {
        "ToolFailed", "VariableRefused", "OutputRefused", "RequestOpened", "Forked", "TurnFailed",
        "Joined", "ModelFailed", "HandedOff", "ContextAssembled",
    }  # fmt: skip
    ended = played.events[-1].data
    assert (ended.outcome, "canary-last-error" in ended.reason) == ("failed", True)


def test_nothing_that_is_not_for_users_is_sent_to_them(user_stream):
    text = json.dumps(user_stream)
    found = {where: it for where, it in (FOR_OPERATORS | FOR_NOBODY).items() if it in text}
    assert not found
    assert "canary" not in text


def test_operators_get_all_of_it_but_secrets(operator_stream):
    text = json.dumps(operator_stream)
    assert not {where: it for where, it in FOR_OPERATORS.items() if it not in text}
    assert not {where: it for where, it in FOR_NOBODY.items() if it in text}


def test_neither_digests_nor_rules_reach_users(played, user_stream):
    text = json.dumps(user_stream)
    assert played.workflow.digest not in text
    for it in user_stream:
        assert not {"digest", "rule", "manifest", "values", "reason", "usage"} & set(it["data"])


def test_users_get_what_is_for_them_in_order(user_stream):
    text = json.dumps(user_stream)
    places = [text.find(it) for it in FOR_USERS]
    assert -1 not in places
    assert user_stream[-1]["data"] == {"outcome": "failed"}
