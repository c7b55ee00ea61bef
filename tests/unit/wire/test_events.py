"""Events as programs read them: one shape for all kinds, without secrets."""

import json
from dataclasses import fields, replace

import pytest

from support.run_play import linked
from weft.context.audience import Audience
from weft.engine.events import (
    KIND_NAMES,
    KINDS,
    Event,
    MessageSent,
    ModelReplied,
    RequestAnswered,
    RequestOpened,
    RunStarted,
    VariableSet,
)
from weft.ports.live import ToolProgress
from weft.spec.workflow import WorkflowSpec
from weft.testing.store.kinds import EVERY_KIND
from weft.wire.events import (
    USER_FIELDS,
    VERSION,
    event_data,
    progress_data,
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
    assert {type(item) for item in EVERY_KIND} == set(KINDS.values())


@pytest.mark.parametrize("data", EVERY_KIND, ids=lambda item: type(item).__name__)
def test_every_kind_has_the_same_envelope_and_all_its_fields(workflow, data):
    shape = event_data(event(data), "r1", workflow)
    assert list(shape) == ENVELOPE
    assert [shape[item] for item in ENVELOPE[:-1]] == [
        VERSION, 7, 5000, "r1", 2, KIND_NAMES[type(data)], "agent:Helper", 6,
    ]  # fmt: skip
    assert set(shape["data"]) == {field.name for field in fields(data)}
    assert json.loads(json.dumps(shape)) == shape


@pytest.mark.parametrize("data", EVERY_KIND, ids=lambda item: type(item).__name__)
def test_users_get_the_same_envelope_and_only_what_is_allowed(workflow, data):
    shape = user_event_data(event(data), "r1", workflow, Audience(workflow.spec))
    allowed = USER_FIELDS.get(KIND_NAMES[type(data)])
    if allowed is None:
        assert shape is None
    elif shape is not None:
        assert list(shape) == ENVELOPE
        assert set(shape["data"]) == allowed


def test_allowed_names_exist():
    for kind, names in USER_FIELDS.items():
        assert names <= {field.name for field in fields(KINDS[kind])}, kind


def test_of_a_structured_reply_users_read_what_is_shown(workflow):
    (reply,) = (item for item in EVERY_KIND if getattr(item, "shown", None))
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


def seen(workflow, data, actor="agent:Helper", user="ann"):
    shape = user_event_data(event(data, actor), "r1", workflow, Audience(workflow.spec, user))
    return shape and shape["data"]


def test_users_read_the_reply_after_its_hooks(workflow):
    assert seen(workflow, MessageSent("Helper", "Hello.")) == {"agent": "Helper", "text": "Hello."}
    said = MessageSent("Form", '{"agent_message": "Done."}')
    assert seen(workflow, said) == {"agent": "Form", "text": "Done."}
    assert seen(workflow, MessageSent("Form", "no JSON at all")) is None
    assert seen(workflow, MessageSent("Helper", " ")) is None


def test_a_reply_that_its_hooks_have_first_is_not_for_users(workflow):
    assert seen(workflow, ModelReplied(1, "Hello.", shown="")) is None


def test_requests_to_others_and_their_answers_are_hidden_from_the_user(workflow):
    asked = RequestOpened("q", "ui", "Helper", "sign", payload={"sum": 3}, component="Form")
    for addressee, payload in (("", {"sum": 3}), ("user:ann", {"sum": 3}), ("role:boss", None)):
        told = seen(workflow, replace(asked, addressee=addressee))
        assert (told["addressee"], told["payload"], told["component"]) == (
            addressee, payload, "Form",
        )  # fmt: skip
    for user, value in (("ann", {"ok": True}), ("bob", None)):
        told = seen(workflow, RequestAnswered("q", {"ok": True}, user))
        assert told == {"id": "q", "value": value, "user": user}


def test_progress_has_a_shape_of_its_own():
    told = progress_data(ToolProgress("r1", 7, "scan", 0.5, "half of it"))
    assert told == {"run": "r1", "call": 7, "tool": "scan", "share": 0.5, "text": "half of it"}


def test_hidden_agents_are_not_shown_to_users():
    workflow = linked(declared(visual_agents=["Closer"]), {})
    audience = Audience(workflow.spec)
    kinds = {
        KIND_NAMES[type(item)]
        for item in EVERY_KIND
        if user_event_data(event(item), "r1", workflow, audience)
    }
    assert not kinds & {"TurnStarted", "ModelReplied", "MessageSent", "TurnEnded", "Joined"}
