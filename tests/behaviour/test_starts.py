"""Runs that no chat begins: with a form, the body of a webhook, or a changed document."""

import asyncio

import pytest

from support.run_play import ADA
from weft.engine.events import RequestOpened, RunStarted
from weft.errors import UsageError
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel

CLAIM = {"name": "Claim", "fields": {"amount": {"type": "int"}, "why": {"type": "str"}}}


def started_by(trigger, **orchestrator):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": "Clerk",
                "trigger": trigger,
                **orchestrator,
            },
            "agents": [
                {
                    "agent_name": "Clerk",
                    "prompt_sections": [{"id": "task", "content": "Judge {amount}."}],
                }
            ],
            "models": [CLAIM],
            "variables": {
                "amount": {"type": "int", "source": {"type": "derived", "default": 0}},
                "limit": {"type": "int", "source": {"type": "static", "value": 5}},
            },
            "exposure": {"Clerk": ["amount"]},
            "handoffs": [{"source_agent": "Clerk", "target_agent": "terminate"}],
        }
    )


def play(spec, **start):
    """Start a run by hand; return its events and what its model was asked."""
    model = ScriptedModel(["Granted."])

    async def scenario():
        async with host_for(spec, model) as host:
            run = await host.start("W", scope=ADA, **start)
            row = await host.settled(run, scope=ADA)
            return row, [event async for event in host.events(run, scope=ADA)]

    row, events = asyncio.run(asyncio.wait_for(scenario(), 20))
    return row, events, model.requests


def refused(spec, **start):
    with pytest.raises(UsageError) as error:
        play(spec, **start)
    return f"{error.value} {error.value.hint}"


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "form_submit", "form": "Claim"},
        {"type": "form_submit"},
        {"type": "webhook", "path": "claims"},
        {"type": "database_condition", "collection": "Claims", "condition": "amount > 10"},
    ],
)
def test_start_input_reaches_the_first_agent_and_sets_variables(trigger):
    given = {"amount": 12, "why": "taxi"}
    row, events, requests = play(started_by(trigger), input=given)
    assert (row.status, row.outcome) == ("ended", "completed")
    (begun,) = [event.data for event in events if isinstance(event.data, RunStarted)]
    assert begun.input == given
    assert begun.values["amount"] == 12
    assert not [event for event in events if isinstance(event.data, RequestOpened)], (
        "nobody is waited for"
    )
    system, first = requests[0].messages
    assert "Judge 12." in system["content"]
    assert first == {
        "role": "user",
        "content": f'Started by {trigger["type"]}: {{"amount":12,"why":"taxi"}}',
    }


def test_a_schedule_starts_by_hand_with_nothing():
    spec = started_by({"type": "schedule", "cron": "0 9 * * *", "timezone": "Europe/Rome"})
    row, events, requests = play(spec)
    assert row.outcome == "completed"
    assert events[0].data.input is None
    assert [message["role"] for message in requests[0].messages] == ["system"]
    assert "started by schedule" in refused(spec, input={"amount": 1})


def test_a_chat_takes_a_message_and_no_input():
    assert "leave the input out" in refused(started_by({"type": "chat"}), input={"amount": 1})


def test_a_form_must_fit_its_model():
    form = started_by({"type": "form_submit", "form": "Claim"})
    assert "the fields of its form: amount, why" in refused(form)
    assert "amount" in refused(form, input={"amount": "much", "why": "taxi"})
    assert "why" in refused(form, input={"amount": 3})
    assert "not JSON" in refused(form, input={"amount": 3, "why": object()})


def test_a_document_must_fulfil_the_condition_that_starts_the_workflow():
    spec = started_by(
        {"type": "database_condition", "collection": "Claims", "condition": "amount > 10"}
    )
    assert "a document of Claims that fits amount > 10" in refused(spec)
    assert "does not hold" in refused(spec, input={"amount": 3})
    assert "cannot be answered" in refused(spec, input={"why": "taxi"})


def test_a_webhook_may_bring_nothing():
    row, events, _ = play(started_by({"type": "webhook"}))
    assert row.outcome == "completed"
    assert events[0].data.input == {}


def test_values_that_are_given_go_first_and_others_are_left_alone():
    spec = started_by({"type": "webhook"})
    _, events, _ = play(spec, input={"amount": 12, "limit": 99}, values={"amount": 7})
    assert events[0].data.values == {"amount": 7}
    assert events[0].data.input == {"amount": 12, "limit": 99}
    assert "amount" in refused(spec, input={"amount": "no number"})


def test_extensions_of_the_server_do_not_keep_a_run_from_starting():
    spec = started_by(
        {"type": "webhook"},
        runtime_extensions=[{"kind": "api_router", "entrypoint": "tools.api:get_router"}],
    )
    row, _, _ = play(spec, input={"amount": 1})
    assert row.outcome == "completed"
