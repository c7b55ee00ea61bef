"""Events as programs read them: one shape for all kinds, without secrets."""

import json
from dataclasses import fields

import pytest

from support.run_play import linked
from weft.engine.events import KIND_NAMES, KINDS, Event, RunStarted, VariableSet
from weft.spec.workflow import WorkflowSpec
from weft.testing.journal.kinds import EVERY_KIND
from weft.wire.audience import Audience
from weft.wire.events import (
    USER_FIELDS,
    VERSION,
    event_data,
    user_event_data,
)

ENVELOPE = ["v", "seq", "ts", "run", "turn", "kind", "actor", "cause", "data"]


def declared(**orchestrator):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "Helper", **orchestrator},
            "agents": [{"agent_name": "Helper"}, {"agent_name": "Closer"}, {"agent_name": "Form"}],
            "variables": {
                "key": {
                    "type": "str",
                    "secret": True,
                    "source": {"type": "environment", "env_var": "KEY"},
                },
                "plain": {"type": "str", "source": {"type": "derived", "default": ""}},
            },
            "models": [{"name": "Answer", "fields": {"agent_message": {"type": "str"}}}],
            "registry": [{"agent": "Form", "model": "Answer"}],
        }
    )


@pytest.fixture(scope="module")
def workflow():
    return linked(declared(), {})


def event(data, actor="agent:Helper"):
    return Event(7, 5000, actor, 6, 2, data)


def test_there_is_a_sample_of_every_kind():
    assert {type(it) for it in EVERY_KIND} == set(KINDS.values())


@pytest.mark.parametrize("data", EVERY_KIND, ids=lambda it: type(it).__name__)
def test_every_kind_has_the_same_envelope_and_all_its_fields(workflow, data):
    shape = event_data(event(data), "r1", workflow)
    assert list(shape) == ENVELOPE
    assert [shape[it] for it in ENVELOPE[:-1]] == [
        VERSION, 7, 5000, "r1", 2, KIND_NAMES[type(data)], "agent:Helper", 6,
    ]  # fmt: skip
    assert set(shape["data"]) == {it.name for it in fields(data)}
    assert json.loads(json.dumps(shape)) == shape


@pytest.mark.parametrize("data", EVERY_KIND, ids=lambda it: type(it).__name__)
def test_users_get_the_same_envelope_and_only_what_is_allowed(workflow, data):
    shape = user_event_data(event(data), "r1", workflow, Audience(workflow.spec))
    allowed = USER_FIELDS.get(KIND_NAMES[type(data)])
    if allowed is None:
        assert shape is None
    elif shape is not None:
        assert list(shape) == ENVELOPE
        assert set(shape["data"]) == allowed


def test_what_is_allowed_exists():
    for kind, names in USER_FIELDS.items():
        assert names <= {it.name for it in fields(KINDS[kind])}, kind


def test_of_a_structured_reply_users_read_what_is_shown(workflow):
    (reply,) = (it for it in EVERY_KIND if getattr(it, "shown", None))
    shape = user_event_data(event(reply), "r1", workflow, Audience(workflow.spec))
    assert shape is not None
    assert shape["data"] == {"call": 2, "text": "Let me see.", "answerer": "sample"}


@pytest.mark.parametrize(
    "data",
    [VariableSet("key", "s3cret", "start"), RunStarted("W", "d", "app", "me", {"key": "s3cret"})],
)
def test_the_values_of_secrets_are_in_no_event(workflow, data):
    assert "s3cret" not in str(event_data(event(data), "r1", workflow))


def test_other_values_are_whole_for_operators(workflow):
    begun = RunStarted("W", "d", "app", "me", {"plain": "v4lue"})
    for data in (VariableSet("plain", "v4lue", "start"), begun):
        assert "v4lue" in str(event_data(event(data), "r1", workflow))


def test_what_hidden_agents_do_is_not_for_users():
    workflow = linked(declared(visual_agents=["Closer"]), {})
    audience = Audience(workflow.spec)
    kinds = {
        KIND_NAMES[type(it)]
        for it in EVERY_KIND
        if user_event_data(event(it), "r1", workflow, audience)
    }
    assert not kinds & {"TurnStarted", "ModelReplied", "TurnEnded", "Joined"}
