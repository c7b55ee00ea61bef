"""What end users are sent of a flow: that it goes on, and what they themselves are asked."""

import json
from types import SimpleNamespace

import pytest

from support.flow_play import FlowPlay, flow_spec, step, variable
from weft.context.audience import Audience
from weft.spec.flow import Approval, Branch, Case, Flow, Fork, ForkPath, Path
from weft.wire.events import USER_FIELDS, user_event_data

PATHS = (
    ForkPath(name="canary-path", steps=(step("A"),)),
    ForkPath(name="b", steps=(step("B"),), on_failure=Path(steps=(step("R"),))),
)
NODES = (
    Branch(name="canary-branch", on="x", cases=(Case(value="canary-value", path=Path()),)),
    Fork(name="canary-fork", paths=PATHS, join=step("J")),
    Approval(name="Ok", approver="role:boss", text="canary-text of {x}"),
)
DOES = {"A": {"x": "canary-set"}, "B": RuntimeError("canary-error")}


@pytest.fixture
def play():
    spec = flow_spec(Flow(steps=NODES), x=variable("str"))
    return FlowPlay(spec, DOES, {"x": "canary-value"})


def seen(play, **who):
    workflow = SimpleNamespace(spec=play.spec, compiled=play.workflow.compiled, views={})
    audience = Audience(play.spec, **who)
    found = (user_event_data(event, "run", workflow, audience) for event in play.events)
    return [item for item in found if item is not None]


def test_nothing_of_what_steps_do_is_sent(play):
    play.answer("approve")
    sent = seen(play, user="me")
    assert "canary" not in json.dumps(sent)
    assert {event["kind"] for event in sent} == {
        "RunStarted", "TurnStarted", "TurnEnded", "RequestOpened", "RequestAnswered", "RunEnded",
    }  # fmt: skip
    assert not {"Branched", "Forked", "TimerSet", "TurnFailed", "VariableSet"} & USER_FIELDS.keys()


def test_an_approval_is_shown_to_whom_it_is_addressed(play):
    (opened,) = [event for event in seen(play, user="eve", addresses=("role:boss",))
                 if event["kind"] == "RequestOpened"]  # fmt: skip
    assert opened["data"]["payload"]["text"] == "canary-text of canary-set"
    (hidden,) = [event for event in seen(play, user="boss") if event["kind"] == "RequestOpened"]
    assert hidden["data"]["payload"] is None


def test_model_replies_of_a_flow_are_not_shown_to_users():
    audience = Audience(flow_spec(Flow(steps=(step("A"),))))
    assert not audience.hears("Writer/Write", "hello")
    assert not audience.sees_while_streaming("Writer/Write")
